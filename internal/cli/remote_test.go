package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"hookglass/internal/cli"
	"hookglass/internal/httpd"
)

// at is a running server, with a token of each kind, and a home for the credentials.
type at struct {
	server, token, reading, tunnel string
	home                           string
	data                           storage
}

func running(t *testing.T) at {
	t.Helper()
	s := freshSQLite(t)
	tokens := peopled.copy(t, s.dir)
	a := at{home: t.TempDir(), data: s, token: tokens[0], reading: tokens[1], tunnel: tokens[2]}
	server, stop := serve(t, s)
	t.Cleanup(stop)
	a.server = server
	t.Setenv("HOME", a.home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOOKGLASS_SERVER", "")
	t.Setenv("HOOKGLASS_TOKEN", "")
	return a
}

func send(t *testing.T, url, contentType, body string) {
	t.Helper()
	answer, err := http.Post(url, contentType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("sent to %s: %s", url, answer.Status)
	}
}

func TestLoginRemembersOneServerForItsUserAlone(t *testing.T) {
	a := running(t)
	fails(t, 3, "not signed in", "whoami", "--server", a.server)
	fails(t, 3, "", "login", "--server", a.server, "--token", "hg_wrong")
	for _, token := range []string{a.token + "\n", a.token + "\r", "\x00" + a.token} { // of a file that was read whole
		fails(t, 2, "control character", "login", "--server", a.server, "--token", token)
		fails(t, 2, "control character", "whoami", "--server", a.server, "--token", token)
	}
	if left, _ := filepath.Glob(filepath.Join(a.home, "*", "*")); len(left) != 0 {
		t.Errorf("a login that failed left %v", left)
	}

	if who := object(t, "", "login", "--server", a.server, "--token", a.token); member(t, who, "user", "email") != "ada@example.com" {
		t.Errorf("login: %v", who)
	}
	path := filepath.Join(a.home, ".config", "hookglass", "credentials.json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("credentials: %v, %v", info, err)
	}
	if who := object(t, "", "whoami"); member(t, who, "account", "plan") != "business" || who["server"] != a.server {
		t.Errorf("whoami: %v", who)
	}
	// Another server is not told the token.
	fails(t, 3, "not signed in", "whoami", "--server", "http://127.0.0.1:1")
	// The environment stands above what login remembered.
	t.Setenv("HOOKGLASS_TOKEN", "hg_wrong")
	fails(t, 3, `"hookglass login" signs in`, "whoami")
	t.Setenv("HOOKGLASS_TOKEN", "")
	// Who signs in again signs in to the same server.
	fails(t, 2, "--token is empty", "login", "--token", "")
	if who := object(t, a.reading+"\n", "login", "--token", "-"); who["server"] != a.server {
		t.Errorf("login: %v", who)
	}
	fails(t, 2, "nothing came on standard input", "login", "--token", "-")

	if r := run(t, "", "logout"); r.code != 0 {
		t.Errorf("logout: %+v", r)
	}
	fails(t, 3, "not signed in", "whoami", "--server", a.server)
	if r := run(t, "", "logout"); r.code != 0 {
		t.Errorf("logout again: %+v", r)
	}
}

func TestEndpointsAndTheirEvents(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)

	made := object(t, "", "endpoints", "create", "Payments", "--provider", "stripe")
	id, hook := member(t, made, "data", "id").(string), member(t, made, "data", "webhook_url").(string)
	if r := run(t, "", "endpoints", "list"); r.code != 0 || !strings.Contains(r.out, id) || !strings.Contains(r.out, "Payments") || !strings.Contains(r.out, hook) {
		t.Errorf("endpoints list: %+v", r)
	}
	all := object(t, "", "endpoints", "list")
	if next, told := member(t, all, "meta").(map[string]any)["next_cursor"]; len(member(t, all, "data").([]any)) != 1 || !told || next != nil {
		t.Errorf("endpoints list: %v", all)
	}
	if r := run(t, "", "endpoints", "get", id); r.code != 0 || !strings.Contains(r.out, "stripe") {
		t.Errorf("endpoints get: %+v", r)
	}
	if mail := object(t, "", "endpoints", "create", "Inbox", "--kind", "email"); !strings.Contains(member(t, mail, "data", "email_address").(string), "@") {
		t.Errorf("endpoints create: %v", mail)
	}
	named := object(t, "", "endpoints", "create", "Support", "--kind", "email", "--email-local-part", "support", "--custom-id", "help-desk")
	if !strings.HasPrefix(member(t, named, "data", "email_address").(string), "support@") || member(t, named, "data", "custom_id") != "help-desk" {
		t.Errorf("endpoints create: %v", named)
	}
	fails(t, 1, "email_local_part", "endpoints", "create", "Shop", "--email-local-part", "shop")

	send(t, hook+"/a?b=c", "application/json", `{"id":12345678901234567890,"text":"\u001b]0;owned\u0007"}`)
	send(t, hook+"/b", "text/plain", "\x1b]0;owned\x07 plain \u202e text")
	list := object(t, "", "requests", "list", "-e", id)
	events := member(t, list, "data").([]any)
	if len(events) != 2 || member(t, list, "meta", "total") != 2. {
		t.Fatalf("requests list: %v", list)
	}
	first := member(t, events[1], "id").(string)
	if some := member(t, object(t, "", "requests", "list", "-e", id, "-q", "path:/b"), "data").([]any); len(some) != 1 {
		t.Errorf("requests list -q: %v", some)
	}
	if r := run(t, "", "requests", "list", "-e", id, "--limit", "1"); r.code != 0 || !strings.Contains(r.out, "1 of 2. More: --cursor ") {
		t.Errorf("requests list --limit: %+v", r)
	}
	if detail := object(t, "", "requests", "get", first, "-e", id); !strings.Contains(member(t, detail, "data", "body").(string), "12345678901234567890") {
		t.Errorf("requests get: %v", detail)
	}
	r := run(t, "", "requests", "get", first, "-e", id)
	if r.code != 0 || !strings.Contains(r.out, "POST "+hook+"/a?b=c") || !strings.Contains(r.out, "\n  \"id\": 12345678901234567890,") {
		t.Errorf("requests get: %+v", r)
	}
	second := member(t, events[0], "id").(string)
	if r := run(t, "", "requests", "get", second, "-e", id); strings.ContainsAny(r.out, "\x1b\x07\u202e") || !strings.Contains(r.out, "plain") {
		t.Errorf("a sender reaches the terminal: %q", r.out)
	}

	inbox := member(t, object(t, "", "endpoints", "create", "Letters", "--kind", "email"), "data", "id").(string)
	send(t, strings.Split(hook, "/hooks/")[0]+"/mail/"+inbox, "message/rfc822", "From: Shop <shop@example.com>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"+
		"--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nWW91ciBjb2RlIGlzIDQ4MjkxMxtdCmh0dHBzOi8vZXhhbXBsZS5jb20vdmVyaWZ5Cg==\r\n"+
		"--b\r\nContent-Type: application/pdf; name=invoice.pdf\r\n\r\nx\r\n--b--\r\n")
	letter := member(t, member(t, object(t, "", "requests", "list", "-e", inbox), "data").([]any)[0], "id").(string)
	if r := run(t, "", "requests", "get", second, "-e", id, "--body"); r.code != 0 || r.out != "\x1b]0;owned\x07 plain \u202e text" {
		t.Errorf("requests get --body: %+v", r)
	}
	if r := run(t, "", "requests", "get", letter, "-e", inbox, "--attachment", "0"); r.code != 0 || r.out != "x" {
		t.Errorf("requests get --attachment: %+v", r)
	}
	fails(t, 1, "no such attachment", "requests", "get", letter, "-e", inbox, "--attachment", "7")
	fails(t, 2, "can't be used together", "requests", "get", letter, "-e", inbox, "--attachment", "0", "--body")
	fails(t, 2, "no JSON", "requests", "get", letter, "-e", inbox, "--body", "--json")
	r = run(t, "", "requests", "get", letter, "-e", inbox)
	for _, want := range []string{"Subject: Grüße\n", "Your code is 482913", "Codes\n  482913\n", "Links\n  https://example.com/verify\n", "0  invoice.pdf  application/pdf  1 byte\n"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the mail is shown without %q:\n%s", want, r.out)
		}
	}
	if strings.Contains(r.out, "\x1b") || strings.Contains(r.out, "WW91ciBjb2Rl") {
		t.Errorf("the mail is shown as\n%s", r.out)
	}

	if gone := member(t, object(t, "", "requests", "delete", "wr_"+strings.TrimPrefix(first, "req_"), "-e", id), "data", "id"); gone != first {
		t.Errorf("requests delete tells the id %v, not %s", gone, first)
	}
	fails(t, 1, "no such request", "requests", "get", first, "-e", id)
	fails(t, 1, "", "requests", "list", "-e", id, "-q", "sig:(")
	fails(t, 2, "--endpoint", "requests", "list")
	for _, command := range [][]string{{"requests", "list", "-e", "x"}, {"actions", "runs", "-e", "x"}, {"alerts", "incidents", "x", "-e", "x"}, {"flow", "list"}, {"retries", "x"}} {
		fails(t, 2, "--limit: must be a whole number, 1 or more", append(command, "--limit", "0")...)
	}
	object(t, "", "endpoints", "delete", id)
	fails(t, 1, "no such endpoint", "endpoints", "get", id)
	called := member(t, object(t, "", "endpoints", "create", "Called", "--custom-id", "called"), "data", "id")
	if gone := member(t, object(t, "", "endpoints", "delete", "called"), "data", "id"); gone != called {
		t.Errorf("endpoints delete tells the id %v, not %s", gone, called)
	}

	t.Setenv("HOOKGLASS_TOKEN", a.reading)
	fails(t, 3, "write", "endpoints", "create", "More")
	t.Setenv("HOOKGLASS_SERVER", "http://127.0.0.1:1")
	fails(t, 1, "No server answers at http://127.0.0.1:1 (connection refused)", "endpoints", "list")
	fails(t, 1, "No server answers at http://127.0.0.1:1 (connection refused)", "requests", "tail", "-e", "ep_x")
	fails(t, 2, "--after must be the id of an event", "requests", "tail", "-e", "ep_x", "--after", "req_x")
}

func TestACallWithoutAnAnswerSaysWhyAndWhatToDo(t *testing.T) {
	t.Setenv("HOOKGLASS_TOKEN", "hg_x")
	for said, write := range map[string]string{"EOF": "", "malformed HTTP response": "SSH-2.0-x\r\n"} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, write)
				conn.Close()
			}
		}()
		server := "http://" + ln.Addr().String()
		t.Setenv("HOOKGLASS_SERVER", server)
		fails(t, 1, "No answer came from "+server+" (", "whoami")
		fails(t, 1, said, "whoami")
		fails(t, 1, "--server or HOOKGLASS_SERVER names another server.", "whoami")
		ln.Close()
	}
	safe := httptest.NewTLSServer(http.NotFoundHandler())
	defer safe.Close()
	t.Setenv("HOOKGLASS_SERVER", safe.URL)
	fails(t, 1, "The certificate of "+safe.URL+" is not trusted (", "whoami")
	fails(t, 1, "SSL_CERT_FILE", "whoami")
	other := strings.Replace(safe.URL, "127.0.0.1", "localhost", 1) // which it is not for, whoever signed it
	t.Setenv("HOOKGLASS_SERVER", other)
	fails(t, 1, "The certificate of "+other+" is not trusted (", "whoami")
	if r := run(t, "", "whoami"); strings.Contains(r.err, "SSL_CERT_FILE") {
		t.Errorf("other authorities are asked for: %s", r.err)
	}
}

func TestWhatLoginRemembersIsReadOnlyWhereItIsNeeded(t *testing.T) {
	a := running(t)
	path := filepath.Join(a.home, ".config", "hookglass", "credentials.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"server":"`), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, 1, "cannot be read; sign in again", "whoami")
	fails(t, 1, "cannot be read; sign in again", "whoami", "--server", a.server)
	if who := object(t, "", "whoami", "--server", a.server, "--token", a.token); who["server"] != a.server {
		t.Errorf("whoami: %v", who)
	}
}

func TestAnAnswerThatIsNoneOfHookglassEndsNoCommandWithAPanic(t *testing.T) {
	for _, answer := range []string{`{"data":{"id":"x"}}`, `{"data":{"id":"x","delivered":true}}`, `{"data":{"id":"x","delivered":true,"error":{}}}`} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		defer other.Close()
		t.Setenv("HOOKGLASS_SERVER", other.URL)
		t.Setenv("HOOKGLASS_TOKEN", "hg_x")
		for _, args := range [][]string{{"ledger", "ep_a"}, {"replay", "req_a", "-e", "ep_a", "--to", "https://example.com"}} {
			fails(t, 1, "not like a hookglass server", args...)
		}
	}
}

// Each command asks for addresses that the server of its own version has.
func TestAServerThatHasNoAddressForACommandMayBeOlder(t *testing.T) {
	older := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpd.WriteError(w, r, httpd.ErrNowhere)
	}))
	defer older.Close()
	t.Setenv("HOOKGLASS_SERVER", older.URL)
	t.Setenv("HOOKGLASS_TOKEN", "hg_x")
	fails(t, 1, "The server may be older than this program.", "flow", "list")
}

func TestTheEndpointThatAnErrorIsAboutIsNamed(t *testing.T) {
	endpoint, _ := listening(t)
	fails(t, 1, "endpoint nowhere: There is no such endpoint.", "listen", "-e", endpoint, "-e", "nowhere")
}

func TestTailPrintsEventsAsTheyCome(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	made := object(t, "", "endpoints", "create", "Payments")
	id, hook := member(t, made, "data", "id").(string), member(t, made, "data", "webhook_url").(string)
	send(t, hook+"/before", "text/plain", "1")
	before := member(t, member(t, object(t, "", "requests", "list", "-e", id), "data").([]any)[0], "id").(string)
	send(t, hook+"/first", "text/plain", "2")

	ctx, stop := context.WithCancel(t.Context())
	out, write := io.Pipe()
	var errors bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(ctx, []string{"requests", "tail", "-e", id, "--after", before, "--json"}, strings.NewReader(""), write, &errors)
		write.Close()
	}()
	next := func(path string) {
		t.Helper()
		line := make([]byte, 1<<16) // what is printed by one write is read by one read
		n, err := out.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		if e := decode(t, string(line[:n])); e["path"] != path {
			t.Errorf("event %v, want %s", e, path)
		}
	}
	next("/first")
	send(t, hook+"/second", "text/plain", "3")
	next("/second")
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("tail ended with %d: %s", code, errors.String())
	}
}

func TestTailTellsThatTheServerIsAway(t *testing.T) {
	var streams atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/stream") {
			_, _ = io.WriteString(w, `{"data":{"id":"ep_1"}}`)
			return
		}
		turn := streams.Add(1)
		if turn == 2 || turn == 3 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "id: req_%d\ndata: {\"id\":\"req_%d\",\"path\":\"/turn%d\"}\n\n", turn, turn, turn)
		if turn > 3 {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	defer srv.Close()
	ctx, stop := context.WithCancel(t.Context())
	out, write := io.Pipe()
	var notes bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		args := []string{"requests", "tail", "-e", "ep_1", "--server", srv.URL, "--token", "hg_x"}
		ended <- cli.Main(ctx, args, strings.NewReader(""), write, &notes)
		write.Close()
	}()
	lines := bufio.NewScanner(out)
	for _, want := range []string{"/turn1", "/turn4"} {
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("printed %q, want %s", lines.Text(), want)
		}
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("tail ended with %d", code)
	}
	want := "Waiting for the server: The server answered 502 Bad Gateway, but not like a hookglass server; is this its address?\nThe server answers again; nothing that came meanwhile is left out.\n"
	if notes.String() != want {
		t.Errorf("told %q, want %q", notes.String(), want)
	}
}

func TestWhoStopsACommandIsToldSo(t *testing.T) {
	asked := make(chan bool)
	hangs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or it would not see that the caller is gone
		asked <- true
		<-r.Context().Done()
	}))
	defer hangs.Close()
	for want, args := range map[string][]string{
		" answered.\n": {"endpoints", "list"}, " answered. It may have done what it was asked for.\n": {"endpoints", "create", "x"},
	} {
		ctx, signal := context.WithCancel(t.Context())
		go func() {
			<-asked
			signal()
		}()
		var out, notes bytes.Buffer
		code := cli.Main(ctx, append(args, "--server", hangs.URL, "--token", "hg_x"), strings.NewReader(""), &out, &notes)
		if code != 1 || notes.String() != "hookglass: Stopped before "+hangs.URL+want {
			t.Errorf("%v: %d %s", args, code, &notes)
		}
	}
	ctx, signal := context.WithCancel(t.Context())
	go func() {
		<-asked
		signal()
	}()
	var notes bytes.Buffer
	code := cli.Main(ctx, []string{"flow", "run", "-", "--server", hangs.URL, "--token", "hg_x"}, strings.NewReader(`{"steps":[]}`), io.Discard, &notes)
	if want := "hookglass: Stopped before " + hangs.URL + " answered. It may have done what it was asked for.\n"; code != 2 || notes.String() != want {
		t.Errorf("a flow: %d %s", code, &notes)
	}
}
