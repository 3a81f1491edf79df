package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass/internal/cli"
	"hookglass/internal/store/storetest"
)

// patience is for what must happen soon; a test that waits so long has failed.
const patience = 2 * time.Minute

// feed is what a command that goes on has printed so far.
type feed struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newFeed() *feed { return &feed{more: make(chan struct{}, 1)} }

func (f *feed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
	return f.text.Write(p)
}

func (f *feed) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String()
}

// wait returns what a pattern's first group matched, as soon as it does.
func (f *feed) wait(t *testing.T, pattern string) string {
	t.Helper()
	compiled := regexp.MustCompile(pattern)
	limit := time.After(patience)
	for {
		if m := compiled.FindStringSubmatch(f.String()); m != nil {
			return m[len(m)-1]
		}
		select {
		case <-f.more:
		case <-limit:
			t.Fatalf("%q did not come; printed:\n%s", pattern, f)
		}
	}
}

// going is a command that goes on.
type going struct {
	out, err *feed
	stop     context.CancelFunc
	code     chan int
}

func begin(t *testing.T, stdin io.Reader, args ...string) *going {
	ctx, stop := context.WithCancel(t.Context())
	g := &going{out: newFeed(), err: newFeed(), stop: stop, code: make(chan int, 1)}
	go func() { g.code <- cli.Main(ctx, args, stdin, g.out, g.err) }()
	t.Cleanup(stop)
	return g
}

func (g *going) ends(t *testing.T, code int) {
	t.Helper()
	select {
	case got := <-g.code:
		if got != code {
			t.Errorf("exit code %d, want %d:\n%s", got, code, g.err)
		}
	case <-time.After(patience):
		t.Fatalf("it goes on:\n%s", g.err)
	}
}

// receiver is a local server, which answers what comes with the status that its body names.
func receiver(t *testing.T) (address string, got func() []string) {
	var mu sync.Mutex
	var all []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		all = append(all, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		mu.Unlock()
		status := 200
		_, _ = fmt.Sscanf(string(body), "status %d", &status)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "answer \x1b[31m")
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string{}, all...)
	}
}

func post(t *testing.T, url, body string) {
	t.Helper()
	res, err := http.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("%s: %s", url, res.Status)
	}
}

const hookPattern = `(http://\S+/hooks/ep_\w+)`

func TestOfALongAnswerListenSaysThatItIsTheBeginning(t *testing.T) {
	long := strings.Repeat("x", 2<<10)
	for _, c := range []struct {
		body      string
		size      int64
		truncated bool
		want      string
	}{
		{"whole", 5, false, "whole"},
		{long, 2 << 10, false, long},
		{long, 5000, true, long + " ..."},
		{long + "y", 2<<10 + 1, false, long + " ..."},
		{long[:2047] + "\xc3", 5000, true, long[:2047] + " ..."},
		{"\xff\x00" + long, 5000, true, "(5000 bytes, not text)"},
		{"caf\xe9", 4, false, "(4 bytes, not text)"},
		{"", 5000, true, " ..."},
	} {
		if got := cli.ShownBody([]byte(c.body), c.size, c.truncated); got != c.want {
			t.Errorf("%d of %d bytes are shown as %q, want %q", len(c.body), c.size, got, c.want)
		}
	}
}

func TestListenSaysThatItsTemporaryEndpointIsNoMore(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	g := begin(t, strings.NewReader(""), "listen")
	key := g.err.wait(t, `--key (tk_\w+)`)
	g.err.wait(t, "connected;")
	claim, err := http.NewRequestWithContext(t.Context(), "POST", a.server+"/api/v1/endpoints/claim", strings.NewReader(`{"tunnel_key":"`+key+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	claim.Header.Set("Authorization", "Bearer "+a.token)
	claim.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(claim)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
	g.ends(t, 3)
	if told := g.err.String(); !strings.Contains(told, "24 hours are over") || strings.Contains(told, "hookglass login") {
		t.Errorf("it ends with\n%s", told)
	}
}

func TestListenNeedsNoAccount(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	local, got := receiver(t)
	g := begin(t, strings.NewReader(""), "listen", strings.TrimPrefix(local, "http://")+"/base", "--exit-after", "3", "--show-body")
	key := g.err.wait(t, `--key (tk_\w+)`)
	hook := g.err.wait(t, hookPattern)
	g.err.wait(t, "connected;")
	post(t, hook+"/a%2Fb?x=1", "status 201")
	g.out.wait(t, `201 `)
	post(t, hook, "status 500")
	g.out.wait(t, `500 `)
	post(t, hook+"/x", "\x1b]0;owned\x07")
	g.ends(t, 0)
	if all := got(); len(all) != 3 || all[0] != "POST /base/a%2Fb?x=1 status 201" || all[1] != "POST /base status 500" {
		t.Errorf("the handler got %q", all)
	}
	out := g.out.String()
	if n := len(regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d +\d{3} +\d+ms +req_\w+ +POST /`).FindAllString(out, -1)); n != 3 {
		t.Errorf("%d lines of events in\n%s", n, out)
	}
	if strings.ContainsAny(out+g.err.String(), "\x1b\x07") {
		t.Errorf("a sender or a handler reaches the terminal, or there is colour in a pipe: %q", out)
	}
	if !strings.Contains(out, "> status 201") || !strings.Contains(out, "< answer") {
		t.Errorf("bodies are not shown:\n%s", out)
	}
	if !regexp.MustCompile(`3 events in \S+: 2 delivered, 1 failed`).MatchString(g.err.String()) {
		t.Errorf("no summary in\n%s", g.err)
	}

	// The key leads to the same endpoint.
	g = begin(t, strings.NewReader(""), "listen", local, "--key", key, "--output", "json", "--exit-after", "1")
	if again := g.err.wait(t, hookPattern); again != hook {
		t.Errorf("the key leads to %s, not to %s", again, hook)
	}
	g.err.wait(t, "connected;")
	post(t, hook+"/json?y", "status 204")
	g.ends(t, 0)
	var line map[string]any
	if err := json.Unmarshal([]byte(g.out.String()), &line); err != nil || line["status_code"] != 204. || line["delivered"] != true || line["path"] != "/json" || line["query_string"] != "y" || line["target_url"] != local+"/json?y" {
		t.Errorf("printed %s, %v", g.out, err)
	}
	fails(t, 3, "live for 24 hours", "listen", "--key", "tk_"+strings.Repeat("0", 26))
	fails(t, 3, "live for 24 hours", "listen", "--key", "tk_short")

	// Who comes from another program names the target by a flag.
	g = begin(t, strings.NewReader(""), "listen", "--forward-to", local, "--key", key)
	g.err.wait(t, "-> "+regexp.QuoteMeta(local)+`\n  see \S+  \(by its key\)`)
	g.err.wait(t, "connected;")
	g.stop()
	g.ends(t, 0)
	fails(t, 2, "named twice", "listen", "3000", "-f", "4000")
}

// full takes nothing, as a disk that is full does.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// What could not be printed is not passed over: a pipeline that keeps the lines is told by the exit code.
func TestOutputThatIsLostIsAFailure(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	local, got := receiver(t)
	for _, output := range []string{"json", "compact"} {
		status, code := newFeed(), make(chan int, 1)
		go func() {
			code <- cli.Main(t.Context(), []string{"listen", local, "--output", output, "--exit-after", "2"}, strings.NewReader(""), full{}, status)
		}()
		hook := status.wait(t, hookPattern)
		status.wait(t, "connected;")
		post(t, hook, "status 200")
		post(t, hook, "status 200")
		if n := <-code; n != 1 || !strings.Contains(status.String(), "not all events were printed: no space left on device") {
			t.Errorf("exit code %d of %s, want 1:\n%s", n, output, status)
		}
		if told := strings.Count(status.String(), "warning: events cannot be printed"); told != 1 || !strings.Contains(status.String(), "2 delivered") {
			t.Errorf("%d warnings of %s, want one:\n%s", told, output, status)
		}
	}
	if n := len(got()); n != 4 {
		t.Errorf("the handler got %d events, want 4", n)
	}

	t.Setenv("HOOKGLASS_TOKEN", a.token)
	endpoint := object(t, "", "endpoints", "create", "Orders", "--json")["data"].(map[string]any)
	send(t, endpoint["webhook_url"].(string), "text/plain", "hello")
	page := object(t, "", "requests", "list", "-e", endpoint["id"].(string), "--json")["data"].([]any)
	args := []string{"replay", page[0].(map[string]any)["id"].(string), "-e", endpoint["id"].(string), "--to", "https://1.1.1.1/", "--dry-run"}
	var status bytes.Buffer
	if n := cli.Main(t.Context(), args, strings.NewReader(""), full{}, &status); n != 1 || !strings.Contains(status.String(), "no space left") {
		t.Errorf("a replay that was not printed ends with %d: %s", n, &status)
	}
}

func TestListenToEndpointsOfAnAccount(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	fails(t, 3, "not signed in", "listen", "3000", "-e", "x")
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	local, got := receiver(t)

	// The first endpoint is made where there is none, the only one is taken, and one of several is to be named.
	g := begin(t, strings.NewReader(""), "listen", local)
	first := g.err.wait(t, hookPattern)
	g.err.wait(t, "connected;")
	g.stop()
	g.ends(t, 0)
	g = begin(t, strings.NewReader(""), "listen", local)
	if again := g.err.wait(t, hookPattern); again != first {
		t.Errorf("listened at %s and then at %s", first, again)
	}
	g.err.wait(t, "connected;")
	g.stop()
	g.ends(t, 0)
	second := member(t, object(t, "", "endpoints", "create", "Second"), "data", "webhook_url").(string)
	fails(t, 2, "name one with -e", "listen", local)
	object(t, "", "endpoints", "create", "Inbox", "--kind", "email")

	g = begin(t, strings.NewReader(""), "listen", "--all", "--route", "none="+local)
	g.err.wait(t, "connected;")
	post(t, first, "1")
	g.out.wait(t, `- +- +req_\w+ +POST /`)
	beside := begin(t, strings.NewReader(""), "listen", local, "-e", regexp.MustCompile(`ep_\w+`).FindString(first))
	beside.err.wait(t, "another session is connected to it")
	for _, one := range []*going{beside, g} {
		one.stop()
		one.ends(t, 0)
	}
	if len(got()) != 0 {
		t.Errorf("the handler got %q", got())
	}

	id := regexp.MustCompile(`ep_\w+`).FindString(second)
	file := filepath.Join(t.TempDir(), "hookglass.yaml")
	config := "version: 1\nendpoints:\n  - endpoint: " + id + "\n    upstream:\n      url: " + local + "/file\n    when: -path:/left\n    headers:\n      X-Dev: '1'\n    routes:\n      - events: nothing.*\n        upstream: {url: 1}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	g = begin(t, strings.NewReader(""), "listen", "--config", file, "--exit-after", "1", "--output", "quiet")
	g.err.wait(t, "connected;")
	post(t, first, "not this one")
	post(t, second+"/left", "nor this one")
	post(t, second+"/x", "this one")
	g.ends(t, 0)
	if all := got(); len(all) != 1 || all[0] != "POST /file/x this one" || g.out.String() != "" {
		t.Errorf("the handler got %q; printed %q", all, g.out)
	}
	fails(t, 2, "does not name", "listen", "--config", file, "-e", "other")
	// Flags take some of the file's endpoints, by either of their names, and none that it does not have.
	object(t, "", "endpoints", "create", "Third", "--custom-id", "third")
	third := member(t, object(t, "", "endpoints", "get", "third"), "data", "id").(string)
	fails(t, 2, "does not name third", "listen", "--config", file, "-e", id, "-e", "third", "--timeout", patience.String())
	config += "  - endpoint: third\n    upstream: {url: " + local + "/third}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{third, "third"} {
		g = begin(t, strings.NewReader(""), "listen", "--config", file, "-e", name)
		g.err.wait(t, `-> (http://\S+/third)`)
		g.err.wait(t, "connected;")
		g.stop()
		g.ends(t, 0)
		if strings.Contains(g.err.String(), id) {
			t.Errorf("-e %s: %s", name, g.err)
		}
	}
	// What a second entry of one endpoint says would be passed over.
	if err := os.WriteFile(file, []byte(config+"  - endpoint: "+third+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, 2, "names "+third+" twice", "listen", "--config", file, "--timeout", patience.String())

	// The time passes first.
	fails(t, 4, "0 of 1 events came within 500ms", "listen", local, "-e", id, "--exit-after", "1", "--timeout", "500ms")
	// A server that is starting, and one that does not answer.
	starting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer hg_hangs" {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":"unavailable","message":"The service is starting."}`)
	}))
	defer starting.Close()
	for token, says := range map[string]string{"hg_x": "The service is starting.", "hg_hangs": "deadline"} {
		// How soon the first answers is not what is asked here: the time is doubled until it does.
		for timeout := 2 * time.Second; ; timeout *= 2 {
			r := run(t, "", "listen", local, "-e", id, "--exit-after", "1", "--timeout", timeout.String(), "--server", starting.URL, "--token", token)
			if r.code != 4 || !strings.Contains(r.err, "0 of 1 events came within "+timeout.String()) || !strings.Contains(r.err, says) && timeout > time.Minute {
				t.Errorf("%s: %+v", token, r)
			}
			if strings.Contains(r.err, says) || timeout > time.Minute {
				break
			}
		}
	}
	for timeout := 300 * time.Millisecond; ; timeout *= 2 { // until it is long enough to be connected
		r := run(t, "", "listen", local, "-e", id, "--timeout", timeout.String())
		if connected := strings.Contains(r.err, "connected;"); !connected && timeout < time.Minute {
			continue
		} else if !connected || r.code != 0 || r.out != "" {
			t.Errorf("%+v", r)
		}
		break
	}
	t.Setenv("HOOKGLASS_TOKEN", a.reading)
	fails(t, 3, "tunnel", "listen", local, "-e", id)

	// A token for tunnels alone is enough where the endpoint is named by its id.
	t.Setenv("HOOKGLASS_TOKEN", a.tunnel)
	fails(t, 3, "read", "listen", local)
	fails(t, 3, "read", "listen", local, "-e", "second")
	g = begin(t, strings.NewReader(""), "listen", local, "-e", id, "--exit-after", "1", "--output", "quiet")
	g.err.wait(t, "connected;")
	post(t, second+"/tunnel", "alone")
	g.ends(t, 0)
	if all := got(); all[len(all)-1] != "POST /tunnel alone" {
		t.Errorf("the handler got %q", all)
	}
}

// A server that has said that it is starting is there, and may stop and start once more before it can answer.
func TestListenWaitsForAServerThatStartsTwice(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", a.token)
	id := member(t, object(t, "", "endpoints", "create", "Second"), "data", "id").(string)
	local, _ := receiver(t)
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	storetest.HoldPort(t, door)
	asked := make(chan struct{}, 10)
	starting := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":"unavailable","message":"The service is starting."}`)
		asked <- struct{}{}
	})}
	go func() { _ = starting.Serve(door) }()
	g := begin(t, strings.NewReader(""), "listen", local, "-e", id, "--output", "quiet", "--server", "http://"+door.Addr().String())
	<-asked
	g.err.wait(t, "Trying again")
	starting.Close()
	<-time.After(1300 * time.Millisecond) // it asks after a second, and nobody takes the connection
	back, err := net.Listen("tcp", door.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(a.server)
	if err != nil {
		t.Fatal(err)
	}
	started := &http.Server{Handler: httputil.NewSingleHostReverseProxy(to)}
	go func() { _ = started.Serve(back) }()
	t.Cleanup(func() { started.Close() })
	g.err.wait(t, "connected;")
	g.stop()
	g.ends(t, 0)
}

func TestListenRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for _, args := range [][]string{
		{"0"}, {"70000"}, {"ftp://x"}, {"3000", "--route", "x"}, {"3000", "--header", "x"}, {"3000", "--header", "a b: c"}, {"3000", "--header", "content-length: 5"}, {"3000", "--header", "Transfer-Encoding: chunked"}, {"3000", "--recover", "some"}, {"3000", "--output", "xml"},
		{"3000", "--exit-after", "-1"}, {"3000", "--timeout", "-1s"}, {"3000", "--chaos", "drop=2"}, {"3000", "--when", "size:big"}, {"3000", "--when", "sig:failed"}, {"3000", "--when", "tag:x"}, {"3000", "--all", "-e", "x"}, {"3000", "--new", "--all"}, {"3000", "--key", "short"},
		{"3000", "--key", "tk_" + strings.Repeat("0", 26), "-e", "x"},
	} {
		fails(t, 2, "--help", append([]string{"listen"}, args...)...)
	}
	fails(t, 2, "cannot use status", "listen", "3000", "--when", "-tag:x")
	for text, says := range map[string]string{
		"endpoints:\n  - endpont: x\n":                           `line 2: there is no key "endpont" here`,
		"endpoints:\n  - endpoint: x\n    upstream: 3000\n":      "line 3: a mapping belongs here, not a number",
		"endpoints: x\n":                                         "line 1: a list belongs here, not a text",
		"endpoints:\n  - endpoint: x\n    upstream: {url: 0}\n":  "endpoints[0]: upstream: 0 is no port",
		"endpoints:\n  - upstream: {url: 1}\n":                   "endpoint is missing",
		"endpoints:\n  - endpoint: x\n    headers: {\"a b\": c}": "no header field",
		"endpoints:\n  - endpoint: x\n    routes: [{events: a}]": "routes[0]",
		"endpoints:\n  - endpoint: x\n    when: \"tag:x\"\n":     "endpoints[0]: when: cannot use status, tag",
		"version: 2\nendpoints: [{endpoint: x}]\n":               "version 2",
		"recover: some\nendpoints: [{endpoint: x}]\n":            "recover is one of",
		"endpoints: []\n":                                        "names none",
		"":                                                       "names none",
		"endpoints: [":                                           "line 1",
	} {
		file := filepath.Join(t.TempDir(), "hookglass.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		fails(t, 2, says, "listen", "--config", file)
	}
}

func TestListenWarnsWhenNothingAnswers(t *testing.T) {
	a := running(t)
	t.Setenv("HOOKGLASS_SERVER", a.server)
	g := begin(t, strings.NewReader(""), "listen", "1", "--exit-after", "1")
	hook := g.err.wait(t, hookPattern)
	g.err.wait(t, `warning: nothing answers at http://localhost:1 \(connection refused\); an event that fails is not sent again by itself\n`)
	g.err.wait(t, "connected;")
	post(t, hook, "x")
	g.ends(t, 0)
	if !regexp.MustCompile(`ERR +\d+ms +req_\w+ +POST / +connection refused`).MatchString(g.out.String()) {
		t.Errorf("printed %q", g.out)
	}
}

// What came while the app was down is found, and sent again in one step; what fails then, too, is left for the next.
func TestWhatFailedWhileTheAppWasDownIsSentAgain(t *testing.T) {
	endpoint, hook := listening(t)
	app, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := app.Addr().String()
	storetest.HoldPort(t, app)
	app.Close()
	g := begin(t, strings.NewReader(""), "listen", address, "-e", endpoint)
	again := strings.Fields(g.err.wait(t, `to send again all that failed: hookglass (.+)\n`))
	g.err.wait(t, "connected;")
	for n := range 3 {
		post(t, hook, fmt.Sprint(n))
	}
	for limit := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // until all are reported
		failed := member(t, object(t, "", "requests", "list", "-e", endpoint, "-q", "tunnel:failed"), "data").([]any)
		if len(failed) == 3 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("found %v", failed)
		}
	}
	if app, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	var mended atomic.Bool
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) == "1" && !mended.Load() {
			w.WriteHeader(500)
		}
	})}
	go func() { _ = s.Serve(app) }()
	t.Cleanup(func() { _ = s.Close() })
	if r := run(t, "", again...); r.code != 1 || !strings.Contains(r.out, "completed: 2 passed, 1 failed, 0 not sent") {
		t.Errorf("%q: %+v", again, r)
	}
	mended.Store(true)
	if r := run(t, "", again...); r.code != 0 || !strings.Contains(r.out, "completed: 1 passed, 0 failed, 0 not sent") {
		t.Errorf("once more: %+v", r)
	}
	if r := run(t, "", append(again, "--dry-run")...); r.out != "It would be 0 requests.\n" {
		t.Errorf("at last: %+v", r)
	}
}

// browse is a browser of a user who is signed in.
func browse(t *testing.T, a at) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	res, err := browser.PostForm(a.server+"/sign-in", url.Values{"email": {"bob@example.com"}, "password": {"correct horse battery"}})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return browser
}

// signingIn starts a server that the command line is not signed in to, and a browser whose user is.
func signingIn(t *testing.T) (a at, browser *http.Client) {
	s := freshSQLite(t)
	object(t, "correct horse battery\n", s.args("admin", "user", "create", "--email", "bob@example.com", "--password-stdin")...)
	server, stop := serve(t, s)
	t.Cleanup(stop)
	a = at{server: server, home: t.TempDir()}
	t.Setenv("HOME", a.home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOOKGLASS_SERVER", a.server)
	t.Setenv("HOOKGLASS_TOKEN", "")
	t.Setenv("PATH", t.TempDir()) // nothing there opens a browser
	return a, browse(t, a)
}

// loggingIn begins a login and returns the page that the browser is to open.
func loggingIn(t *testing.T) (g *going, page *url.URL) {
	t.Helper()
	g = begin(t, strings.NewReader(""), "login")
	page, err := url.Parse(g.err.wait(t, `(http://\S+/auth/cli\?\S+)`))
	if err != nil {
		t.Fatal(err)
	}
	return g, page
}

// A script that plays the browser brings the token, and need not follow redirects.
func TestLoginEndsSoonAfterATokenFromWhatDoesNotFollowRedirects(t *testing.T) {
	a, browser := signingIn(t)
	g, page := loggingIn(t)
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := browser.PostForm(a.server+"/auth/cli", page.Query())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res, err = browser.Get(res.Header.Get("Location")); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	elapsed := storetest.Watch(t)
	g.ends(t, 0)
	if took := elapsed(); took > 5*time.Second {
		t.Errorf("it ended %s after the token came", took)
	}
	if who := object(t, "", "whoami"); member(t, who, "user", "email") != "bob@example.com" {
		t.Errorf("whoami: %v", who)
	}
}

func TestLoginByABrowserAndByACode(t *testing.T) {
	a, browser := signingIn(t)

	g, page := loggingIn(t)
	// Another page on this machine knows the port, and not the state.
	res, err := http.Get("http://127.0.0.1:" + page.Query().Get("callback_port") + "/callback?token=hg_evil&state=guess")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 403 {
		t.Errorf("a guess was answered %s", res.Status)
	}
	res, err = browser.PostForm(a.server+"/auth/cli", page.Query())
	if err != nil {
		t.Fatal(err)
	}
	said, _ := bufio.NewReader(res.Body).ReadString('\n')
	res.Body.Close()
	if !strings.Contains(said, "You can close this page") {
		t.Errorf("the browser shows %q", said)
	}
	if at := res.Request.URL.String(); strings.Contains(at, "hg_") {
		t.Errorf("the token stands in the browser's address: %s", at)
	}
	g.ends(t, 0)
	if who := object(t, "", "whoami"); member(t, who, "user", "email") != "bob@example.com" {
		t.Errorf("whoami: %v", who)
	}

	run(t, "", "logout")
	in, typed := io.Pipe()
	g = begin(t, in, "login", "--no-browser")
	g.err.wait(t, "Code: ")
	res, err = browser.PostForm(a.server+"/auth/cli", url.Values{})
	if err != nil {
		t.Fatal(err)
	}
	shown, _ := io.ReadAll(res.Body)
	res.Body.Close()
	fmt.Fprintln(typed, regexp.MustCompile(`\w{4}-\w{4}-\w{4}`).FindString(string(shown)))
	g.ends(t, 0)
	if who := object(t, "", "whoami"); member(t, who, "user", "email") != "bob@example.com" {
		t.Errorf("whoami: %v", who)
	}
	if r := run(t, "AAAA-BBBB-CCCC\n", "login", "--no-browser"); r.code != 3 || !strings.Contains(r.err, "code is wrong") {
		t.Errorf("%+v", r)
	}
	fails(t, 3, "Nobody approved", "login", "--wait", "50ms")
}
