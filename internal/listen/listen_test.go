package listen_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
	"hookglass/internal/listen"
)

// local is a listener at work.
type local struct {
	t     *testing.T
	stop  context.CancelFunc
	mu    sync.Mutex
	notes []listen.Note
	ended chan struct{}
	sum   listen.Summary
	err   error
	*listen.Listener
}

// start runs a listener on the endpoint ep_a until the test ends, and returns when it is connected or has ended.
func start(t *testing.T, s *server, to string, change func(*listen.Config)) *local {
	t.Helper()
	cfg := listen.Config{Client: s.client("hg_x"), Endpoints: []listen.Endpoint{{ID: "ep_a"}}, Recover: listen.RecoverRecent}
	cfg.Patient(patience)
	if to != "" {
		where, err := listen.ParseTarget(to)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Endpoints[0].Target = &where
	}
	if change != nil {
		change(&cfg)
	}
	l := &local{t: t, ended: make(chan struct{})}
	connected := make(chan struct{})
	var once sync.Once
	cfg.Tell = func(n listen.Note) {
		if _, ok := n.(listen.Connected); ok {
			once.Do(func() { close(connected) })
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.notes = append(l.notes, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l.stop, l.Listener = cancel, listen.New(cfg)
	go func() {
		l.sum, l.err = l.Run(ctx)
		close(l.ended)
	}()
	t.Cleanup(func() { cancel(); <-l.ended })
	select {
	case <-connected:
	case <-l.ended:
	case <-time.After(patience):
		t.Fatal("not connected")
	}
	return l
}

// end stops the listener, or waits for its own end, and returns what it did.
func (l *local) end(stop bool) (listen.Summary, error) {
	l.t.Helper()
	if stop {
		l.stop()
	}
	select {
	case <-l.ended:
	case <-time.After(patience):
		l.t.Fatal("it goes on")
	}
	return l.sum, l.err
}

// told are the notes of one kind.
func told[N listen.Note](l *local) (some []N) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.notes {
		if n, ok := n.(N); ok {
			some = append(some, n)
		}
	}
	return some
}

// raw is a local server that keeps the bytes it gets and answers 204 to each request.
func raw(t *testing.T) (address string, next func() string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got := make(chan string, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				var seen bytes.Buffer
				in := bufio.NewReader(io.TeeReader(conn, &seen))
				for {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					got <- seen.String()
					seen.Reset()
					_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
				}
			}()
		}
	}()
	return l.Addr().String(), func() string { return <-got }
}

func some(s string) *string { return &s }

func TestAnEventArrivesAsItWasSent(t *testing.T) {
	s := newServer(t)
	address, next := raw(t)
	start(t, s, "http://"+address+"/hooks?fixed=1", nil)
	body := "\x00\xff\r\n\r\n{\"a\":1}"
	id := s.arrive(api.TunnelRequest{
		Path: "/a%2Fb//c", QueryString: "b=2&a=1&b=%3D", Method: "PATCH", Body: base64of(body), IPAddress: some("203.0.113.7"),
		HeaderList: [][2]string{
			{"Host", "hooks.example.com"}, {"x-lower", "1"}, {"X-UPPER", "2"}, {"X-Dup", "b"}, {"x-dup", "a"}, {"Content-Length", "999"},
			{"Connection", "keep-alive, x-gone"}, {"X-Gone", "1"}, {"Keep-Alive", "5"}, {"TE", "trailers"}, {"Upgrade", "h2c"}, {"Proxy-Authorization", "x"}, {"Expect", "100-continue"},
			{"Accept-Encoding", "gzip"}, {"X-Forwarded-For", "198.51.100.1"}, {"X-Service-Tunnel", "forged"}, {"X-Empty", ""}, {"Content-Type", "application/json; charset=UTF-8"},
		},
	})
	want := "PATCH /hooks/a%2Fb//c?fixed=1&b=2&a=1&b=%3D HTTP/1.1\r\nHost: " + address + "\r\nx-lower: 1\r\nX-UPPER: 2\r\nX-Dup: b\r\nx-dup: a\r\n" +
		fmt.Sprintf("Content-Length: %d\r\n", len(body)) + "Accept-Encoding: gzip\r\nX-Forwarded-For: 198.51.100.1\r\nX-Empty: \r\nContent-Type: application/json; charset=UTF-8\r\n" +
		"X-Forwarded-For: 203.0.113.7\r\nX-Service-Tunnel: true\r\nX-Service-Request-Id: " + id + "\r\n\r\n" + body
	if got := next(); got != want {
		t.Errorf("the target got\n%q, want\n%q", got, want)
	}
	eventually(t, "a report", func() bool { return get(s, func() bool { return s.delivered(id) }) })
	r := get(s, func() api.DeliveryReport { return s.reports[id][0] })
	if r.StatusCode.Value != 204 || r.ResponseMessage != "No Content" || r.TargetURL != "http://"+address+"/hooks?fixed=1" ||
		r.ResolvedURL != "http://"+address+"/hooks/a%2Fb//c?fixed=1&b=2&a=1&b=%3D" || r.TunnelClientID != "client-ticket-1" || r.TunnelClientCredential != "secret-ticket-1" {
		t.Errorf("the report is %+v", r)
	}
	if to := get(s, func() []string { return s.targets }); !slices.Equal(to, []string{r.TargetURL}) {
		t.Errorf("the server is told of the targets %q", to)
	}
}

func TestBytesThatAreNoTextArriveAsTheyWereSent(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-~name"] = []string{"caf\xe9"}
		w.Header()["X-Text"] = []string{"caf\u00e9"}
	})
	event := hookglass.Event{Type: hookglass.EventWebhook, ID: "req_1", EndpointID: "ep_a", Method: "GET", Path: "/\xfc", RawQuery: "a=\xff", Payload: &hookglass.Payload{
		Headers: hookglass.Headers{{Name: "X-Text", Value: "caf\u00e9"}, {Name: "X-Latin", Value: "caf\xe9"}, {Name: "X-Both", Value: "\u00e9\xe9"}},
	}}
	message := api.FromTunnelRequest(&event)
	if want := []string{"/path", "/query_string", "/header_list/1/1", "/header_list/2/1"}; !slices.Equal(message.Latin1, want) || message.HeaderList[1][1] != "caf\u00e9" {
		t.Errorf("%v of %v; want %v", message.Latin1, message.HeaderList, want)
	}
	start(t, s, h.URL, nil)
	id := s.arrive(message)
	eventually(t, "a report", func() bool { return get(s, func() bool { return s.delivered(id) }) })
	h.mu.Lock()
	if r := h.got[0]; r.RequestURI != "/\xfc?a=\xff" || r.Header.Get("X-Text") != "caf\u00e9" || r.Header.Get("X-Latin") != "caf\xe9" || r.Header.Get("X-Both") != "\u00e9\xe9" {
		t.Errorf("the target got %q, %q", r.RequestURI, r.Header)
	}
	h.mu.Unlock()
	r := get(s, func() api.DeliveryReport { return s.reports[id][0] })
	if r.ResponseHeaders["X-~name"] != "caf\u00e9" || !slices.Equal(r.Latin1, []string{"/response_headers/X-~0name"}) || r.ResolvedURL != h.URL+"/\u00fc?a=\u00ff" {
		t.Errorf("the report is %+v", r)
	}

	command := api.FromTunnelCommand(hookglass.TunnelCommand{ID: "1", Request: hookglass.SentRequest{Method: "GET", Headers: event.Headers}, ExpiresAt: time.Now().Add(time.Minute)}, "/\xfc", "token")
	s.set(func() { s.push("ep_a", command) })
	eventually(t, "a result", func() bool { return get(s, func() bool { return len(s.results) == 1 }) })
	h.mu.Lock()
	if r := h.got[1]; r.RequestURI != "/\xfc" || r.Header.Get("X-Latin") != "caf\xe9" || r.Header.Get("X-Text") != "caf\u00e9" {
		t.Errorf("of a replay the target got %q, %q", r.RequestURI, r.Header)
	}
	h.mu.Unlock()

	// What another server says of strings that are not there, or no bytes, changes nothing.
	odd := api.TunnelRequest{Path: "/\u0436", HeaderList: [][2]string{{"A", "\u00e9"}}, Latin1: []string{"/path", "/header_list/1/1", "/header_list/0/0", "/header_list/-1/1", "/header_list", "", "/method"}}
	if path, query, fields := odd.Received(); path != odd.Path || query != "" || fields[0][1] != "\u00e9" {
		t.Errorf("%q %q %q", path, query, fields)
	}
}

func TestWhatCanNotBeSentIsLeftOutOfTheHead(t *testing.T) {
	to := listen.Target{Scheme: "http", Host: "localhost:3000"}
	head, _, err := listen.Compose(&api.TunnelRequest{
		ID: "req_1", Method: "GET", Path: "/a b\r\nX: y", HeaderList: [][2]string{{"A", "1\r\nInjected: 1"}, {"B: C", "1"}, {"D", "tab\tcaf\u00e9"}},
	}, to, hookglass.Headers{{Name: "Authorization", Value: "Bearer x"}})
	want := "GET /a%20b%0D%0AX:%20y HTTP/1.1\r\nHost: localhost:3000\r\nD: tab\tcaf\u00e9\r\nAuthorization: Bearer x\r\nX-Service-Tunnel: true\r\nX-Service-Request-Id: req_1\r\n\r\n"
	if err != nil || head != want {
		t.Errorf("%q, %v; want %q", head, err, want)
	}
	for _, method := range []string{"", "A B", "CONNECT", "GET\r\n"} {
		if _, _, err := listen.Compose(&api.TunnelRequest{Method: method}, to, nil); err == nil {
			t.Errorf("the method %q was taken", method)
		}
	}
	if _, _, err := listen.Compose(&api.TunnelRequest{Method: "POST", Body: "no base64!"}, to, nil); err == nil {
		t.Error("a body that is no base64 was taken")
	}
	head, body, err := listen.Compose(&api.TunnelRequest{Method: "EMAIL", Path: "a@example.com", Body: base64of(`{}`)}, to, nil)
	if err != nil || !strings.HasPrefix(head, "POST /a@example.com HTTP/1.1\r\n") || !strings.Contains(head, "Content-Type: application/json\r\n") || body != "{}" {
		t.Errorf("mail is sent as %q %q, %v", head, body, err)
	}
}

func TestEventsAreBegunInOrderAndSixteenAtATime(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	h := newTarget(t, func(int, http.ResponseWriter, *http.Request) { <-gate })
	l := start(t, s, h.URL, nil)
	var sent []string
	for range 40 {
		sent = append(sent, s.arrive(api.TunnelRequest{}))
	}
	eventually(t, "sixteen under way", func() bool { return len(h.ids()) == 16 })
	close(gate)
	eventually(t, "all delivered", func() bool { return len(told[listen.Delivered](l)) == 40 })
	if h.most != 16 {
		t.Errorf("%d at once", h.most)
	}
	got := h.ids()
	slices.Sort(got)
	if !slices.Equal(got, sent) {
		t.Errorf("delivered %v", got)
	}
	// One after another where the handler answers at once.
	h.mu.Lock()
	h.got = nil
	h.mu.Unlock()
	sent = nil
	for range 30 {
		sent = append(sent, s.arrive(api.TunnelRequest{}))
		eventually(t, "it came", func() bool { return len(h.ids()) == len(sent) })
	}
	if got := h.ids(); !slices.Equal(got, sent) {
		t.Errorf("in the order %v, want %v", got, sent)
	}
}

// A server with a thread for each connection takes requests that are written at once in any order.
func TestWhatIsAnsweredSoonIsAnsweredBeforeTheNext(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, func(c *listen.Config) { c.Ahead(time.Minute) })
	var sent []string
	for range 40 {
		sent = append(sent, s.arrive(api.TunnelRequest{}))
	}
	eventually(t, "all delivered", func() bool { return len(told[listen.Delivered](l)) == len(sent) })
	if got := h.ids(); h.most != 1 || !slices.Equal(got, sent) {
		t.Errorf("%d at once, in the order %v, want %v", h.most, got, sent)
	}
}

// A development server may serve one connection at a time, to its end: none that waits for another use keeps the next
// from its turn.
func TestAConnectionThatWaitsHoldsNothingUp(t *testing.T) {
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	conns, second, gate := make(chan net.Conn, 10), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(conns)
		for n := 1; ; n++ {
			conn, err := in.Accept()
			if err != nil {
				return
			}
			if conns <- conn; n == 2 {
				close(second)
			}
		}
	}()
	go func() {
		for conn := range conns {
			for from := bufio.NewReader(conn); ; {
				req, err := http.ReadRequest(from)
				if err != nil {
					break
				}
				_, _ = io.Copy(io.Discard, req.Body)
				<-gate
				_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			}
			conn.Close()
		}
	}()
	s := newServer(t)
	l := start(t, s, "http://"+in.Addr().String(), nil)
	s.arrive(api.TunnelRequest{})
	s.arrive(api.TunnelRequest{})
	<-second
	close(gate)
	eventually(t, "both delivered", func() bool { return len(told[listen.Delivered](l)) == 2 })
	for _, d := range told[listen.Delivered](l) {
		if !d.OK() {
			t.Errorf("%s: %d %s", d.Event.ID, d.StatusCode, d.Problem)
		}
	}
}

func TestAnEventThatComesTwiceIsDeliveredOnce(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, nil)
	id := s.arrive(api.TunnelRequest{})
	s.set(func() { s.push("ep_a", s.events[0]); s.push("ep_a", s.events[0]) })
	last := s.arrive(api.TunnelRequest{})
	eventually(t, "both", func() bool { return slices.Contains(h.ids(), id) && slices.Contains(h.ids(), last) })
	if got := slices.Sorted(slices.Values(h.ids())); !slices.Equal(got, []string{id, last}) { // begun in order, and side by side
		t.Errorf("delivered %v", got)
	}
	if sum, _ := l.end(true); sum.Received != 2 {
		t.Errorf("%+v", sum)
	}
}

func TestADeliveryIsOneWith2xx(t *testing.T) {
	for status, ok := range map[int]bool{0: false, 199: false, 200: true, 299: true, 300: false} {
		if got := (listen.Delivered{StatusCode: status}).OK(); got != ok {
			t.Errorf("%d: %t", status, got)
		}
	}
}

func TestItEndsAfterSoManyEvents(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, func(c *listen.Config) { c.ExitAfter = 3 })
	for range 5 {
		s.arrive(api.TunnelRequest{})
	}
	sum, err := l.end(false)
	if err != nil || sum.Delivered != 3 || sum.Unreported != 0 || len(h.ids()) != 3 {
		t.Errorf("%+v, %v; %v", sum, err, h.ids())
	}
	if n := get(s, func() int { return len(s.reports) }); n != 3 {
		t.Errorf("%d reports", n)
	}
}

func TestWhatIsUnderWayAtTheEndIsFinished(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	h := newTarget(t, func(int, http.ResponseWriter, *http.Request) { <-gate })
	l := start(t, s, h.URL, nil)
	id := s.arrive(api.TunnelRequest{})
	eventually(t, "it is under way", func() bool { return len(h.ids()) == 1 })
	l.stop()
	eventually(t, "the goodbye", func() bool { return get(s, func() bool { return s.left == 1 }) })
	close(gate)
	if sum, err := l.end(false); err != nil || sum.Delivered != 1 || sum.Unreported != 0 || !get(s, func() bool { return s.delivered(id) }) {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestWithoutATargetEventsAreShown(t *testing.T) {
	s := newServer(t)
	l := start(t, s, "", nil)
	id := s.arrive(api.TunnelRequest{})
	eventually(t, "it is shown", func() bool {
		d := told[listen.Delivered](l)
		return len(d) == 1 && d[0].Event.ID == id && d[0].TargetURL == ""
	})
	s.set(func() {
		s.push("ep_a", api.TunnelReplayCommand{Type: api.TunnelReplay, CommandID: "1", Method: "PUT", URL: "/x", ResultToken: "token"})
	})
	eventually(t, "the replay is refused", func() bool { r := told[listen.Replayed](l); return len(r) == 1 && r[0].URL == "/x" })
	if sum, _ := l.end(true); sum.Shown != 1 || sum.Delivered != 0 || len(s.reports) != 0 {
		t.Errorf("%+v, %v", sum, s.reports)
	}
}

func TestARefusalEndsIt(t *testing.T) {
	for status, code := range map[int]hookglass.Code{401: hookglass.CodeUnauthorized, 403: hookglass.CodePlanRequired} {
		s := newServer(t)
		h := newTarget(t, nil)
		l := start(t, s, h.URL, nil)
		s.set(func() { s.refuse = status })
		s.cut()
		sum, err := l.end(false)
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Code != code || sum.Reconnects != 0 {
			t.Errorf("%d: %v, %+v", status, err, sum)
		}
	}
}

func TestAnEndpointThatIsGoneIsLeftOut(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	s.deleted["ep_b"], s.deleted["ep_c"] = true, true
	l := start(t, s, h.URL, func(c *listen.Config) {
		c.Endpoints = append(append([]listen.Endpoint{{ID: "ep_b"}}, c.Endpoints...), listen.Endpoint{ID: "ep_c"})
	})
	id := s.arrive(api.TunnelRequest{})
	eventually(t, "the other goes on", func() bool { return slices.Contains(h.ids(), id) })
	if w := told[listen.Warning](l); len(w) != 2 || !strings.HasSuffix(w[0].Text, " ep_b") || !strings.HasSuffix(w[1].Text, " ep_c") {
		t.Errorf("it warns of %q", w)
	}
	s.set(func() { s.deleted["ep_a"] = true })
	s.cut()
	if _, err := l.end(false); err == nil {
		t.Error("it ended well, without an endpoint")
	}
}

// There are no tickets for mailboxes, which use the tunnel of any webhook endpoint.
func TestAMailboxOutlivesWhoseTunnelItUses(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	s.others = []api.Endpoint{{ID: "ep_mail", Kind: "email"}, {ID: "ep_gone", Kind: "webhook"}, {ID: "ep_door", Kind: "webhook"}}
	s.deleted["ep_gone"] = true
	l := start(t, s, h.URL, func(c *listen.Config) {
		to := c.Endpoints[0].Target
		c.Endpoints = append([]listen.Endpoint{{ID: "ep_mail", Email: true, Target: to}}, c.Endpoints...)
	})
	s.set(func() { s.deleted["ep_a"] = true })
	s.cut()
	eventually(t, "it is back", func() bool { return len(told[listen.Connected](l)) == 2 })
	id := s.arrive(api.TunnelRequest{EndpointID: "ep_mail"})
	eventually(t, "mail goes on", func() bool { return slices.Contains(h.ids(), id) })

	s.set(func() { s.deleted["ep_door"] = true })
	s.cut()
	eventually(t, "it says what misses", func() bool {
		return slices.ContainsFunc(told[listen.Disconnected](l), func(d listen.Disconnected) bool { return errors.Is(d.Err, listen.ErrNoDoor) })
	})
	l.end(true)

	s.set(func() { delete(s.deleted, "ep_door"); s.deleted["ep_mail"] = true })
	l = start(t, s, h.URL, func(c *listen.Config) { c.Endpoints[0].ID, c.Endpoints[0].Email = "ep_mail", true })
	if _, err := l.end(false); err == nil {
		t.Error("it ended well, without its mailbox")
	}
}

func TestAKeyIsEnough(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, func(c *listen.Config) { c.Client = s.client("tk_" + strings.Repeat("0", 26)) })
	s.arrive(api.TunnelRequest{})
	eventually(t, "it is delivered", func() bool { return len(h.ids()) == 1 })
	s.set(func() { s.unacked = true })
	s.arrive(api.TunnelRequest{})
	eventually(t, "it is delivered", func() bool { return len(h.ids()) == 2 })
	s.cut()
	eventually(t, "it is back", func() bool { return len(told[listen.Offline](l)) == 1 })
	if sum, err := l.end(true); err != nil || sum.Unreported != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
}
