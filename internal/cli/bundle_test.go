package cli_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listening is an endpoint of a server that the environment names, and its address.
func listening(t *testing.T) (endpoint, hook string) {
	t.Helper()
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	made := object(t, "", "endpoints", "create", "Payments")
	return member(t, made, "data", "id").(string), member(t, made, "data", "webhook_url").(string)
}

func TestABundleIsMadeLookedAtVerifiedAndSent(t *testing.T) {
	endpoint, hook := listening(t)
	github := func(body string) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", hook+"/pushes?page=2", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "X-GitHub-Event": "push", "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958", "X-Hub-Signature-256": "sha256=00", "Cookie": "a=canary-cookie"} {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	github(`{"pusher":{"name":"Ada Lovelace","email":"ada@lovelace.example.org"},"secret_name":"zaphod beeblebrox"}`)
	file := filepath.Join(t.TempDir(), "b.json")
	made := run(t, "", "bundle", "create", "-e", endpoint, "-q", "provider:github", "--pointer", "/secret_name", "-o", file)
	if made.code != 0 || !strings.Contains(made.out, "/pusher/email") {
		t.Fatalf("%d %s%s", made.code, made.out, made.err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	for _, args := range [][]string{{"bundle", "inspect", file}, {"bundle", "inspect", file, "--json"}, {"bundle", "verify", file}} {
		r := run(t, "", args...)
		if r.code != 0 || strings.Contains(r.out, "ada@") || strings.Contains(r.out, "canary") || strings.Contains(r.out, "zaphod") {
			t.Errorf("%v: %d %s%s", args, r.code, r.out, r.err)
		}
	}
	if r := run(t, "", "bundle", "verify", file); !strings.Contains(r.out, "verified") {
		t.Errorf("%s", r.out)
	}
	seen, status := "", 200
	handler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mac := hmac.New(sha256.New, []byte("hookglass-published-test-secret"))
		mac.Write(body)
		if r.Header.Get("X-Hub-Signature-256") == "sha256="+hex.EncodeToString(mac.Sum(nil)) {
			seen = r.Method + " " + r.URL.String() + " " + string(body)
		}
		w.WriteHeader(status)
	}))
	defer handler.Close()
	if r := run(t, "", "bundle", "replay", file, "--to", handler.URL+"/in?x=y"); r.code != 0 || !strings.HasPrefix(seen, "POST /in/pushes?x=y&page=2 {") {
		t.Errorf("%d %s%s: %q", r.code, r.out, r.err, seen)
	}
	status = 401
	if r := run(t, "", "bundle", "replay", file, "--to", handler.URL, "--as-is"); r.code != 1 || !strings.Contains(r.err, "1 of 1") {
		t.Errorf("%d %s%s", r.code, r.out, r.err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, strings.Replace(string(text), "POST /pushes", "POST /pushed", 1), "bundle", "verify", "-"); r.code != 1 || !strings.Contains(r.err, "changed") {
		t.Errorf("%d %s%s", r.code, r.out, r.err)
	}
	for _, wrong := range [][]string{{"bundle", "create"}, {"bundle", "replay", file}, {"bundle", "replay", file, "--to", "nonsense"}} {
		if r := run(t, "", wrong...); r.code != 2 {
			t.Errorf("%v: %d", wrong, r.code)
		}
	}
}

func TestABundleIsSentInItsOwnHeadersAlone(t *testing.T) {
	endpoint, hook := listening(t)
	at, err := url.Parse(hook)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// Bytes that are no text in the path, and a % and a # that nobody escaped; names in lower case; nothing that says who
	// sends.
	fmt.Fprintf(conn, "POST %s/\xff/50%%/#x?q=\xfe HTTP/1.1\r\nHost: %s\r\nx-oNe: push\r\nx-two: 1\r\nX-Two: 2\r\nContent-Length: 2\r\n\r\n{}", at.Path, at.Host)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
		t.Fatal(line, err)
	}
	file := filepath.Join(t.TempDir(), "b.json")
	if made := run(t, "", "bundle", "create", "-e", endpoint, "-q", "method:POST", "-o", file); made.code != 0 {
		t.Fatalf("%d %s%s", made.code, made.out, made.err)
	}

	if r := run(t, "", "bundle", "inspect", file); !strings.HasPrefix(r.out, "1. unknown, received ") { // it has no event type
		t.Errorf("%s%s", r.out, r.err)
	}

	handler, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer handler.Close()
	head := make(chan string, 1)
	go func() {
		c, err := handler.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in, lines := bufio.NewReader(c), ""
		for !strings.HasSuffix(lines, "\r\n\r\n") {
			line, err := in.ReadString('\n')
			if err != nil {
				break
			}
			lines += line
		}
		var answer bytes.Buffer
		z := gzip.NewWriter(&answer)
		io.WriteString(z, "seen")
		z.Close()
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", answer.Len(), &answer)
		head <- lines
	}()
	if r := run(t, "", "bundle", "replay", file, "--to", "http://"+handler.Addr().String(), "--as-is"); r.code != 0 || !strings.Contains(r.out, "seen") {
		t.Fatalf("%d %s%s", r.code, r.out, r.err)
	}
	want := "POST /%FF/50%/%23x?q=%FE HTTP/1.1\r\nHost: " + handler.Addr().String() + "\r\nContent-Length: 2\r\nX-Two: 2\r\nx-oNe: push\r\nx-two: 1\r\n\r\n"
	if got := <-head; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// net/http sends no path that begins with two slashes and has a % which escapes nothing. It does not end the replay.
func TestABundleIsSentWhateverItsPathsAre(t *testing.T) {
	endpoint, hook := listening(t)
	at, err := url.Parse(hook)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"//50%?a=%", "//a%2Fb", "/last"} {
		conn, err := net.Dial("tcp", at.Host)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 2\r\n\r\n{}", at.Path, target, at.Host)
		line, err := bufio.NewReader(conn).ReadString('\n')
		conn.Close()
		if err != nil || !strings.Contains(line, " 200 ") {
			t.Fatal(line, err)
		}
	}
	file := filepath.Join(t.TempDir(), "b.json")
	if made := run(t, "", "bundle", "create", "-e", endpoint, "-q", "method:POST", "-o", file); made.code != 0 {
		t.Fatalf("%d %s%s", made.code, made.out, made.err)
	}
	var got []string
	handler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got = append(got, r.RequestURI) }))
	defer handler.Close()
	if r := run(t, "", "bundle", "replay", file, "--to", handler.URL); r.code != 0 {
		t.Errorf("%d %s%s", r.code, r.out, r.err)
	}
	if want := []string{"//50%25?a=%", "//a%2Fb", "/last"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestALongCompressedAnswerIsShownAsWhatItSays(t *testing.T) {
	endpoint, hook := listening(t)
	send(t, hook, "application/json", `{"a":1}`)
	file := filepath.Join(t.TempDir(), "b.json")
	if made := run(t, "", "bundle", "create", "-e", endpoint, "-q", "method:POST", "-o", file); made.code != 0 {
		t.Fatalf("%d %s%s", made.code, made.out, made.err)
	}
	noise := make([]byte, 150_000) // half of it is lost in compression
	rand.Read(noise)
	long := "" // compressed it is some bytes all the same
	handler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, long)
		z.Close()
	}))
	defer handler.Close()
	if r := run(t, "", "bundle", "replay", file, "--to", handler.URL, "--json"); r.code != 0 || !strings.Contains(r.out, `"body":""`) {
		t.Errorf("an empty answer: %d %q %s", r.code, r.out, r.err)
	}
	long = "It begins. " + hex.EncodeToString(noise)
	r := run(t, "", "bundle", "replay", file, "--to", handler.URL)
	if r.code != 0 || !strings.Contains(r.out, "It begins. ") || !strings.Contains(r.out, "(the answer goes on)") {
		t.Errorf("%d %.200q %s", r.code, r.out, r.err)
	}
	r = run(t, "", "bundle", "replay", file, "--to", handler.URL, "--json")
	var sent []struct {
		Body      string `json:"body"`
		Truncated bool   `json:"body_truncated"`
	}
	if err := json.Unmarshal([]byte(r.out), &sent); err != nil || len(sent) != 1 || !strings.HasPrefix(long, sent[0].Body) || len(sent[0].Body) != 64<<10 || !sent[0].Truncated {
		t.Errorf("%d %.200q %s %v", r.code, r.out, r.err, err)
	}
}

func TestWhatWasSentBeforeAHandlerWentAwayIsTold(t *testing.T) {
	endpoint, hook := listening(t)
	send(t, hook, "text/plain", "1")
	send(t, hook, "text/plain", "2")
	file := filepath.Join(t.TempDir(), "b.json")
	if made := run(t, "", "bundle", "create", "-e", endpoint, "-q", "method:POST", "-o", file); made.code != 0 {
		t.Fatalf("%d %s%s", made.code, made.out, made.err)
	}
	asked := 0
	leaving := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > 1 {
			panic(http.ErrAbortHandler)
		}
	}))
	defer leaving.Close()
	r := run(t, "", "bundle", "replay", file, "--to", leaving.URL, "--json")
	var sent []any
	if err := json.Unmarshal([]byte(r.out), &sent); err != nil || len(sent) != 1 || r.code != 1 || !strings.Contains(r.err, "send to ") {
		t.Errorf("%+v: %v", r, err)
	}
}

func TestReplayMovesTimes(t *testing.T) {
	endpoint, hook := listening(t)
	send(t, hook, "application/json", `{"created":1700000000}`)
	id := member(t, member(t, object(t, "", "requests", "list", "-e", endpoint), "data").([]any)[0], "id").(string)
	r := run(t, "", "replay", id, "-e", endpoint, "--to", "https://app.example.com/", "--time-shift", "+3h", "--dry-run")
	if r.code != 0 || !strings.Contains(r.out, "would send POST https://app.example.com/") || !strings.Contains(r.out, "\n  X-Service-Replay: true\n") || !strings.Contains(r.out, "/created 1700000000 -> 1700010800") {
		t.Errorf("%d %s%s", r.code, r.out, r.err)
	}
	r = run(t, "", "replay", id, "-e", endpoint, "--to", "https://app.example.com/a?x=1#y", "--query", "b=%20", "--dry-run")
	if r.code != 0 || !strings.Contains(r.out, "would send POST https://app.example.com/a?b=%20 (") {
		t.Errorf("%d %s%s", r.code, r.out, r.err)
	}
}

// A bundle is a file of somebody else's: no command lets it write to the terminal.
func TestABundleWritesNothingToTheTerminal(t *testing.T) {
	const escape = "\x1b]0;title\x07\x1b[2J"
	handler := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer handler.Close()
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	const head = "POST /in HTTP/1.1\r\n\r\n"
	for _, signature := range []any{nil, map[string]string{"provider": escape, "secret": escape}} {
		text, err := json.Marshal(map[string]any{
			"format": "hookglass-bundle", "version": 1,
			"events": []any{map[string]any{
				"number": 1, "type": "webhook", "provider": escape, "event_type": escape, "event_id": escape, "unsigned": escape, "signature": signature,
				"received_at": "2026-11-20T10:00:00Z", "head": head, "head_sha256": digest(head), "body_base64": "", "body_sha256": digest(""),
			}},
			"replaced": []any{map[string]any{"event": 1, "pointer": escape, "kind": escape, "count": 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"inspect", "-"}, {"verify", "-"}, {"replay", "-", "--to", handler.URL}} {
			if r := run(t, string(text), append([]string{"bundle"}, args...)...); r.out+r.err == "" || strings.ContainsAny(r.out+r.err, "\x1b\x07") {
				t.Errorf("%v: %d %q %q", args, r.code, r.out, r.err)
			}
		}
	}
}
