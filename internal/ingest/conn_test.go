package ingest_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/ingest"
)

func TestPipelinedHooksAreAnsweredInOrder(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	c.send(post(hook("/1"), "a") + chunkedPost(hook("/2"), "1\r\nb\r\n0\r\n\r\n") + get(hook("/3")))
	for i := range 3 {
		if a := c.want(200); a.body != fmt.Sprintf(`{"received":true,"id":"req_%d"}`, i+1) {
			t.Errorf("answer %d is %s", i+1, a.body)
		}
	}
	for i, a := range s.all() {
		if a.Path != fmt.Sprintf("/%d", i+1) {
			t.Errorf("arrival %d is %s", i+1, a.Path)
		}
	}
}

// odd is a hook request whose headers net/http would not keep as they are.
func odd(sub string) string {
	return "POST " + hook(sub) + " HTTP/1.1\r\nx-b: 1\r\nhOST: x\r\nX-a: 2\r\nContent-Length: 4\r\n\r\nbody"
}

const oddWire = "x-b: 1\r\nhOST: x\r\nX-a: 2\r\nContent-Length: 4\r\n"

func TestOneConnectionServesBothKinds(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{}, s, nil).dial()
	exchange := func(text string, status int, body string) {
		t.Helper()
		c.send(text)
		if a := c.want(status); body != "" && a.body != body {
			t.Fatalf("got %q, want %q", a.body, body)
		}
	}
	exchange(odd("/1"), 200, "")
	exchange(post("/api/a", "A"), 200, "POST /api/a A")
	exchange(odd("/2"), 200, "")
	exchange(get("/api/b"), 200, "GET /api/b ")
	exchange(odd("/3"), 200, "")
	exchange(odd("/4"), 200, "")
	exchange(chunkedPost("/api/c", "1;e\r\nC\r\n3\r\nDEF\r\n0\r\nX-T: t\r\n\r\n"), 200, "POST /api/c CDEF")
	exchange(chunkedPost("/api/c", "1;e\r\nC\r\n3\r\nDEF\r\n0\r\n\r\n"), 200, "POST /api/c CDEF")
	exchange(odd("/5"), 200, "")
	exchange(post("/hooks/unknown", "x"), 404, "")
	exchange(post("/api/d", strings.Repeat("d", 100_000)), 200, "POST /api/d "+strings.Repeat("d", 100_000))
	exchange(post(hook("/6"), strings.Repeat("d", 100_000)), 200, "")
	exchange("GET /api/e HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, "GET /api/e ")
	exchange("GET "+hook("/7")+" HTTP/1.0\r\n\r\n", 200, "")
	c.wantEnd()

	all := s.all()
	if len(all) != 7 {
		t.Fatalf("%d arrivals", len(all))
	}
	for i, a := range all[:5] {
		if a.Path != fmt.Sprintf("/%d", i+1) || wire(a.Headers) != oddWire {
			t.Errorf("arrival %d: %s %q", i+1, a.Path, wire(a.Headers))
		}
	}
}

func TestMixedPipelineIsAnsweredInOrder(t *testing.T) {
	for _, order := range []string{"ahaahhaah", "haahhha", "aaahhh", "hhhaaa"} {
		s := new(stub)
		hold := make(chan struct{})
		c := start(t, ingest.Config{}, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/0" {
				<-hold // everything behind it has come by then
			}
			echo(w, r)
		})).dial()
		var all strings.Builder
		for i, kind := range order {
			switch {
			case kind == 'h':
				all.WriteString(odd(fmt.Sprintf("/%d", i)))
			case i%3 == 1:
				all.WriteString(chunkedPost(fmt.Sprintf("/api/%d", i), "3\r\nabc\r\n0\r\n\r\n"))
			default:
				all.WriteString(post(fmt.Sprintf("/api/%d", i), "abc"))
			}
		}
		c.send(all.String())
		close(hold)
		hooks := 0
		for i, kind := range order {
			want := fmt.Sprintf("POST /api/%d abc", i)
			if kind == 'h' {
				hooks++
				want = fmt.Sprintf(`{"received":true,"id":"req_%d"}`, hooks)
			}
			if a := c.want(200); a.body != want {
				t.Fatalf("%s: answer %d is %q, want %q", order, i, a.body, want)
			}
		}
		for _, a := range s.all() {
			if wire(a.Headers) != oddWire {
				t.Errorf("%s: %q", order, wire(a.Headers))
			}
		}
	}
}

func TestSplitAnywhereOneConnectionIsReadTheSame(t *testing.T) {
	text := odd("/1") + post("/api/a", "A") + odd("/2") + chunkedPost("/api/b", "1\r\nB\r\n0\r\n\r\n") + odd("/3")
	s := new(stub)
	sv := start(t, ingest.Config{}, s, nil)
	for i := 1; i < len(text); i += 3 {
		c := sv.dial()
		c.send(text[:i])
		c.send(text[i:])
		for range 5 {
			c.want(200)
		}
		c.nc.Close()
	}
	for _, a := range s.all() {
		if wire(a.Headers) != oddWire || string(a.Body) != "body" {
			t.Fatalf("got %q %q", wire(a.Headers), a.Body)
		}
	}
}

func TestWebSocketPassesThrough(t *testing.T) {
	s := new(stub)
	sv := start(t, ingest.Config{}, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/cable" {
			echo(w, r)
			return
		}
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		for {
			kind, b, err := ws.Read(r.Context())
			if err != nil {
				return
			}
			ws.Write(r.Context(), kind, b)
		}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, "ws://"+sv.addr+"/cable", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	for _, text := range []string{"one", get(hook("")), strings.Repeat("long", 5000)} {
		if err := ws.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := ws.Read(ctx); err != nil || string(got) != text {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	ws.Close(websocket.StatusNormalClosure, "")

	// An upgrade that is refused leaves the connection as it was.
	c := sv.dial()
	c.send("GET /cable HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if a := c.read("GET"); a.StatusCode/100 != 4 {
		t.Fatalf("answered %d", a.StatusCode)
	}
	c.send(odd("/1"))
	c.want(200)
	if wire(s.one(t).Headers) != oddWire {
		t.Error("the headers are others")
	}
}

func TestHijackerGetsWhatWasSentBehindTheRequest(t *testing.T) {
	c := start(t, ingest.Config{}, new(stub), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nc, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		io.WriteString(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		io.Copy(nc, rw)
	})).dial()
	early := get(hook("/is/not/a/request/any/more"))
	c.send("GET /up HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n" + early)
	c.read("GET")
	c.send("late")
	c.nc.CloseWrite()
	if got, _ := io.ReadAll(c.r); string(got) != early+"late" {
		t.Errorf("got %q", got)
	}
}

func TestStreamsAndTheirEnd(t *testing.T) {
	gone := make(chan struct{})
	s := new(stub)
	sv := start(t, ingest.Config{}, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			http.NewResponseController(w).Flush()
		}
		if r.URL.Path == "/ends" {
			return
		}
		<-r.Context().Done()
		close(gone)
	}))
	c := sv.dial()
	c.send(odd("/1") + get("/ends") + odd("/2"))
	c.want(200)
	if a := c.want(200); a.body != "data: 0\n\ndata: 1\n\ndata: 2\n\n" {
		t.Errorf("got %q", a.body)
	}
	c.want(200)

	c.send(get("/stream"))
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, len("data: 0\n\n")*3)); err != nil {
		t.Fatal(err)
	}
	c.nc.SetLinger(0) // a reset, which is told at once
	c.nc.Close()
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the handler was not told that the client is gone")
	}
}

func TestAClientThatClosesItsHalfHasItsAnswer(t *testing.T) {
	server, client := authority(t)
	client.ServerName = "127.0.0.1"
	synctest.Test(t, func(t *testing.T) {
		b := inBubbleWith(t, slog.New(slog.DiscardHandler), server, ingest.Config{}, new(stub), func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(900 * time.Millisecond)
			soon := r.Context().Err()
			time.Sleep(200 * time.Millisecond)
			fmt.Fprint(w, soon, ", ", r.Context().Err())
		})
		nc := tls.Client(b.dial().nc, client)
		if _, err := io.WriteString(nc, get("/api")); err != nil {
			t.Fatal(err)
		}
		if err := nc.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(nc)
		if want := "\r\n\r\n<nil>, context canceled"; err != nil || !strings.HasSuffix(string(got), want) {
			t.Errorf("got %q, %v", got, err)
		}
		nc.Close()
		b.stop()
	})
}

func TestWhatIsNoHookGoesToNetHTTP(t *testing.T) {
	s := new(stub)
	sv := start(t, ingest.Config{}, s, nil)
	for text, status := range map[string]int{
		"POST /api HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n":     200, // echo ignores the error
		"GET /%68ooks/" + knownRef + "/p HTTP/1.1\r\nHost: x\r\n\r\n":                        200,
		"GET /hooksandmore HTTP/1.1\r\nHost: x\r\n\r\n":                                      200,
		"GET //hooks/" + knownRef + " HTTP/1.1\r\nHost: x\r\n\r\n":                           200,
		"POST /api HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n": 200,
	} {
		c := sv.dial()
		c.send(text)
		if a := c.read("GET"); a.StatusCode != status {
			t.Errorf("%.80q answered %d, want %d", text, a.StatusCode, status)
		}
	}
	if a := s.one(t); a.Path != "/p" { // the escaped spelling, by the fallback
		t.Errorf("got %+v", a)
	}
	c := sv.dial()
	c.send("POST /api HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
	c.want(100)
	c.send("b")
	c.want(200)
	c.send(odd("/1"))
	c.want(200)
	if a := s.all()[1]; wire(a.Headers) != oddWire {
		t.Errorf("got %q", wire(a.Headers))
	}
}

// Whoever calls the API reads its errors as JSON, those of HTTP itself too. Where the path cannot be read, nobody knows
// who calls.
func TestWhatNeverBecomesARequestIsRefusedInJSON(t *testing.T) {
	sv := start(t, ingest.Config{MaxHeaderBytes: 8 << 10}, new(stub), nil)
	long := strings.Repeat("v", 20<<10)
	for text, want := range map[string]string{
		"nonsense\r\n\r\n":             "400 bad_request",
		"\x16\x03\x01\x00\n\n":         "400 bad_request",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n": "505 bad_request",
		"OPTIONS * HTTP/1.1\r\n\r\n":   "400 bad_request", // no Host
	} {
		sv.refused(text, want)
	}
	for _, path := range []string{"/api/v1/endpoints", "/mcp", "/page", "http://x/api"} {
		h := "POST " + path + " HTTP/1.1\r\n"
		for text, want := range map[string]string{
			h + "\r\n":                        "400 bad_request", // no Host
			h + "Host: x\r\nHost: y\r\n\r\n":  "400 bad_request",
			h + "Host: x/y\r\n\r\n":           "400 bad_request",
			h + "Host: x\r\nA b: c\r\n\r\n":   "400 bad_request",
			h + "Host: x\r\nno colon\r\n\r\n": "400 bad_request",
			h + "Host: x\r\nA: \x01\r\n\r\n":  "400 bad_request",
			h + "Host: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n": "400 bad_request",
			h + "Host: x\r\nContent-Length: 99999999999999999999\r\n\r\n":   "413 payload_too_large",
			h + "Host: x\r\nTransfer-Encoding: gzip\r\n\r\n":                "501 bad_request",
			h + "Host: x\r\nExpect: 200-ok\r\n\r\n":                         "417 expectation_failed",
			h + "Host: x\r\nX-Long: " + long + "\r\n\r\n":                   "431 headers_too_large",
			h + "Host: x\r\n" + strings.Repeat("a:\r\n", 256) + "\r\n":      "431 headers_too_large",
			"G(T " + path + " HTTP/1.1\r\nHost: x\r\n\r\n":                  "400 bad_request",
			"GET " + path + " HTTP/3.0\r\nHost: x\r\n\r\n":                  "505 bad_request",
			"GET " + path + "/%zz HTTP/1.1\r\nHost: x\r\n\r\n":              "400 bad_request",
			"GET " + path + "?q=" + long + " HTTP/1.1\r\nHost: x\r\n\r\n":   "414 uri_too_long",
		} {
			sv.refused(text, want)
		}
	}
}

// refused checks that a text is refused in JSON, which ends the connection, as the first of it and behind an answer of
// net/http.
func (sv *service) refused(text, want string) {
	sv.t.Helper()
	for _, before := range []string{"", get("/api/a")} {
		c := sv.dial()
		if before != "" {
			c.send(before)
			c.want(200)
		}
		go func() { c.nc.Write([]byte(text)) }()
		a := c.read("GET")
		var said struct{ Error, Message string }
		_ = json.Unmarshal([]byte(a.body), &said)
		if got := fmt.Sprint(a.StatusCode, " ", said.Error); got != want || said.Message == "" || !a.Close || a.Header.Get("Content-Type") != "application/json" {
			sv.t.Errorf("%.60q answered %s, close %v, want %s: %s", text, got, a.Close, want, a.body)
		}
	}
}

// RFC 9112, section 6.1: what stands on the way may have taken the rest for a part of the request.
func TestNothingIsReadBehindARequestThatMayEndElsewhere(t *testing.T) {
	for name, text := range map[string]string{
		"both lengths":             "POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a coding before HTTP/1.1": "POST /api HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		for _, before := range []string{"", get("/api/a")} {
			s := new(stub)
			c := start(t, ingest.Config{}, s, nil).dial()
			if before != "" {
				c.send(before)
				c.want(200)
			}
			c.send(text + post(hook("/smuggled"), "a") + get("/api/b"))
			if a := c.want(400); !a.Close || !strings.Contains(a.body, `"error":"bad_request"`) {
				t.Errorf("%s: close %v, %s", name, a.Close, a.body)
			}
			c.nc.CloseWrite()
			c.wantEnd()
			if n := len(s.all()); n != 0 {
				t.Errorf("%s: %d arrivals", name, n)
			}
		}
	}
}

func TestEscapedHooksReachTheFallback(t *testing.T) {
	s := new(stub)
	c := start(t, ingest.Config{MaxBodyBytes: 100}, s, nil).dial()
	hook := func(sub string) string { return "/%68ooks/" + knownRef + sub }
	c.send("POST " + hook("//a/../%2F?q;") + " HTTP/1.1\r\nHost: x\r\nx-b: 1\r\nX-A: 2\r\nContent-Length: 4\r\n\r\nbody")
	c.want(200)
	c.send(chunkedPost(hook(""), "4\r\nbody\r\n0\r\n\r\n"))
	c.want(200)
	c.send(get("/%68ooks/unknown"))
	if a := c.want(404); a.body != `{"error":"not_found","message":"There is no such endpoint."}` {
		t.Errorf("got %s", a.body)
	}
	c.send("PROPFIND " + hook("") + " HTTP/1.1\r\nHost: x\r\n\r\n")
	c.want(405)
	all := s.all()
	if a := all[0]; a.Path != "//a/../%2F" || a.RawQuery != "q;" || a.Target != hook("//a/../%2F?q;") || string(a.Body) != "body" || a.Client.String() != "127.0.0.1" || a.Scheme != "http" {
		t.Errorf("got %+v", a)
	}
	if got := wire(all[0].Headers); got != lines("Host: x", "Content-Length: 4", "X-A: 2", "X-B: 1") {
		t.Errorf("got %q", got)
	}
	if string(all[1].Body) != "body" {
		t.Errorf("chunked: %q", all[1].Body)
	}
	c.send(post(hook(""), strings.Repeat("b", 101)))
	c.want(413)
	if s.refusals() != 1 {
		t.Errorf("%d refusals", s.refusals())
	}
}

func TestPanicsAnswer500AndHurtNothingElse(t *testing.T) {
	s := &stub{capture: func(_ context.Context, _ capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
		if a.Path == "/panic" {
			panic("here")
		}
		return nil, nil
	}}
	sv := start(t, ingest.Config{}, s, nil)
	other := sv.dial()
	other.send(get(hook("")))
	other.want(200)
	c := sv.dial()
	c.send(post(hook("/panic"), "body"))
	if a := c.want(500); !a.Close || a.body != `{"error":"internal","message":"Something went wrong here; it has been recorded."}` {
		t.Errorf("close %v, %s", a.Close, a.body)
	}
	c.wantEnd()
	if !strings.Contains(sv.log.String(), "panic=here") {
		t.Errorf("logged %q", sv.log)
	}
	other.send(get(hook("")))
	other.want(200)
}

// The event is stored by then: a 500 would have its sender send it again.
func TestAPanicBehindAnAwaitedReplyLeavesTheReply(t *testing.T) {
	s := replying(&hookglass.Reply{Status: 202, Awaits: &hookglass.Event{ID: "req_x"}})
	s.answer = func(context.Context, *hookglass.Reply) *hookglass.Reply { panic("over an answer") }
	sv := start(t, ingest.Config{}, s, nil)
	c := sv.dial()
	for _, path := range []string{hook(""), "/%68ooks/" + knownRef} {
		c.send(get(path))
		c.want(202)
	}
	if !strings.Contains(sv.log.String(), `panic="over an answer"`) {
		t.Errorf("logged %q", sv.log)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	sv := start(t, ingest.Config{MaxConns: 2}, new(stub), nil)
	a, b := sv.dial(), sv.dial()
	a.send(get(hook("")))
	a.want(200)
	b.send(get("/api"))
	b.want(200)
	c := sv.dial()
	if got := c.want(503); got.Header.Get("Retry-After") == "" || !got.Close {
		t.Errorf("got %v", got.Header)
	}
	c.wantEnd()
	sv.dial().want(503)
	if n := strings.Count(sv.log.String(), "connections are refused: as many are open as may be"); n != 1 {
		t.Errorf("the log tells of it %d times:\n%s", n, sv.log)
	}
	a.send("GET " + hook("") + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	a.want(200)
	a.wantEnd()
	c = sv.dial()
	c.send(get(hook("")))
	c.want(200)
}

// A sender that is told so while it sends gets to read it: a connection that is closed at once fails its next write.
func TestConnectionsTooManyAreNotInterrupted(t *testing.T) {
	sv := start(t, ingest.Config{MaxConns: 1}, new(stub), nil)
	a := sv.dial()
	a.send(get(hook("")))
	a.want(200)
	for left := 5; ; left-- { // a slow machine may take longer than a sender is given
		c := sv.dial()
		c.want(503)
		var err error
		for _, piece := range []string{"POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", "he", "llo"} {
			if err == nil {
				_, err = c.nc.Write([]byte(piece))
			}
		}
		if err == nil {
			return
		}
		if left == 0 {
			t.Fatalf("the sender was interrupted: %v", err)
		}
	}
}

// TestManyClientsMixEverything lets clients that keep their connections send both kinds in random order, and
// give up on some: every answer that comes is the one to its request.
func TestManyClientsMixEverything(t *testing.T) {
	s := &stub{capture: func(_ context.Context, _ capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
		return &hookglass.Reply{Status: 200, Body: fmt.Appendf(nil, "%s %s %s", a.Method, a.Target, a.Body)}, nil
	}}
	sv := start(t, ingest.Config{}, s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/hang" {
			io.Copy(io.Discard, r.Body) // net/http watches the client from the end of the body on
			<-r.Context().Done()        // until it gives up
			return
		}
		echo(w, r)
	}))
	var clients sync.WaitGroup
	for seed := range uint64(8) {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 2}, Timeout: patience}
			defer client.CloseIdleConnections()
			for i := range 60 {
				ctx, cancel := context.WithCancel(t.Context())
				path, body := fmt.Sprintf("/api/%d", i), strings.Repeat("b", rng.IntN(9000))
				switch rng.IntN(8) {
				case 0, 1, 2, 3:
					path = hook(fmt.Sprintf("/%d", i))
				case 4:
					path = "/api/hang"
					time.AfterFunc(time.Millisecond, cancel)
				}
				var r io.Reader = strings.NewReader(body)
				if rng.IntN(2) == 0 {
					r = io.MultiReader(r) // chunked
				}
				req, err := http.NewRequestWithContext(ctx, "POST", "http://"+sv.addr+path, r)
				if err != nil {
					t.Error(err)
				}
				resp, err := client.Do(req)
				if err == nil {
					var got []byte
					got, err = io.ReadAll(resp.Body)
					resp.Body.Close()
					if want := "POST " + path + " " + body; err == nil && string(got) != want {
						t.Errorf("got %.60q, want %.60q", got, want)
					}
				}
				if err != nil && path != "/api/hang" {
					t.Errorf("%s: %v", path, err)
				}
				cancel()
			}
		})
	}
	clients.Wait()
}

func TestHandlerAlone(t *testing.T) {
	s := new(stub)
	front := ingest.New(ingest.Config{}, s, nil)
	w := httptest.NewRecorder()
	front.Handler(nil).ServeHTTP(w, httptest.NewRequest("POST", "http://x"+hook("/p?q"), strings.NewReader("body")))
	if a := s.one(t); w.Code != 200 || a.Path != "/p" || a.Target != hook("/p?q") || string(a.Body) != "body" || a.Host != "x" {
		t.Errorf("answered %d to %+v", w.Code, a)
	}
}

// Clients of HTTP/2 may name the host in a field of its own, or not at all.
func TestTheHostOfHTTP2IsListedAsItWasNamed(t *testing.T) {
	for _, c := range []struct {
		authority string
		hosts     []string
		want      string
	}{
		{"a.test", []string{"a.test", "b.test"}, lines("Host: a.test", "host: b.test", "x-a: 1")},
		{"", nil, lines("x-a: 1")},
	} {
		s := new(stub)
		front := ingest.New(ingest.Config{MaxBodyBytes: 1000}, s, slog.New(slog.DiscardHandler))
		r := httptest.NewRequest("GET", hook(""), nil)
		r.Proto, r.ProtoMajor, r.ProtoMinor, r.Host = "HTTP/2.0", 2, 0, c.authority
		r.Header = http.Header{"Host": c.hosts, "X-A": {"1"}}
		front.Handler(http.HandlerFunc(echo)).ServeHTTP(httptest.NewRecorder(), r)
		if got := wire(s.one(t).Headers); got != c.want {
			t.Errorf("got %q", got)
		}
	}
}

func TestHTTP2PassesThroughToTheFallback(t *testing.T) {
	server, own := authority(t)
	s := new(stub)
	sv := startOn(t, server, ingest.Config{MaxBodyBytes: 1000}, s, nil)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: own, ForceAttemptHTTP2: true}}
	send := func(path string, body io.Reader) int {
		resp, err := client.Post("https://"+sv.addr+path, "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if status := send(hook("//p?q"), strings.NewReader("body")); status != 200 {
		t.Errorf("answered %d", status)
	}
	if a := s.one(t); a.Proto != "HTTP/2.0" || a.Path != "//p" || a.RawQuery != "q" || string(a.Body) != "body" || a.Host != sv.addr {
		t.Errorf("got %+v", a)
	}
	if status := send(hook(""), strings.NewReader(strings.Repeat("b", 1001))); status != 413 {
		t.Errorf("answered %d", status)
	}
	if status := send(hook(""), io.MultiReader(strings.NewReader(strings.Repeat("b", 1001)))); status != 413 || s.refusals() != 2 {
		t.Errorf("answered %d, %d refusals", status, s.refusals())
	}
	client.CloseIdleConnections()
}

func TestSlowReadersAreCutOff(t *testing.T) {
	s := replying(&hookglass.Reply{Status: 200, Body: make([]byte, 32<<20)})
	sv := start(t, ingest.Config{WriteTimeout: 100 * time.Millisecond, MaxConns: 1}, s, nil)
	slow := sv.dial()
	slow.send(get(hook(""))) // and never reads
	for deadline := time.Now().Add(patience); ; {
		c := sv.dial()
		c.send("HEAD " + hook("") + " HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, err := http.ReadResponse(c.r, &http.Request{Method: "HEAD"})
		if err == nil && resp.StatusCode == 200 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the connection is held")
		}
		c.nc.Close()
	}
}
