package listen_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

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

func TestTargets(t *testing.T) {
	for text, want := range map[string]string{
		"3000": "http://localhost:3000", ":3000/x": "http://localhost:3000/x", "localhost:3000/a?b=c": "http://localhost:3000/a?b=c", "https://[::1]:8443/x/": "https://[::1]:8443/x/",
		"app.test": "http://app.test", "3000?k=v": "http://localhost:3000?k=v", "4000/invoices": "http://localhost:4000/invoices",
	} {
		if got, err := listen.ParseTarget(text); err != nil || got.String() != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "65536", "-1", "ftp://x", "http://", "http://u:p@x", "http://x/#f", "http://x:99999", "ht tp://x"} {
		if got, err := listen.ParseTarget(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	for _, c := range []struct{ target, path, query, want string }{
		{"3000", "/", "", "/"},
		{"3000", "", "a=1", "/?a=1"},
		{"3000/hooks", "/", "", "/hooks"},
		{"3000/hooks/", "/x", "", "/hooks/x"},
		{"3000/hooks", "//x", "", "/hooks//x"},
		{"3000/hooks?k=v", "/x", "a=1", "/hooks/x?k=v&a=1"},
		{"3000?k=v", "/", "", "/?k=v"},
	} {
		to, err := listen.ParseTarget("localhost:" + c.target)
		if err != nil {
			t.Fatal(err)
		}
		head, _, err := listen.Compose(&api.TunnelRequest{Method: "GET", Path: c.path, QueryString: c.query}, to, nil)
		if got := strings.Fields(head); err != nil || got[1] != c.want {
			t.Errorf("%+v: %q, %v", c, head, err)
		}
	}
}

func TestPatternsOfEvents(t *testing.T) {
	for _, c := range []struct {
		pattern string
		want    bool
	}{
		{"invoice.paid", true}, {"invoice.*", true}, {"*.paid", true}, {"*", true}, {"stripe.invoice.paid", true}, {"stripe.*", true}, {"in*e.p*d", true},
		{"invoice", false}, {"invoice.paid.*", false}, {"github.*", false}, {"*paid*invoice*", false}, {"", false}, {"invoice.paid*invoice.paid", false},
	} {
		if got := listen.Matches(c.pattern, "stripe", "invoice.paid"); got != c.want {
			t.Errorf("%q: %v", c.pattern, got)
		}
	}
}

func TestEventsGoWhereTheirRouteLeads(t *testing.T) {
	s := newServer(t)
	invoices, others := newTarget(t, nil), newTarget(t, nil)
	l := start(t, s, others.URL, func(c *listen.Config) {
		r, err := listen.ParseRoute("invoice.* = " + invoices.URL + "/invoices")
		if err != nil {
			t.Fatal(err)
		}
		c.Endpoints[0].Routes = []listen.Route{r}
		c.Endpoints[0].Events, c.Endpoints[0].Provider = []string{"invoice.*", "push"}, "stripe"
		c.Endpoints[0].When = func(e *hookglass.Event) bool { return e.Path != "/internal" }
		c.Endpoints[0].Headers = hookglass.Headers{{Name: "X-Dev", Value: "1"}}
	})
	event := func(provider, kind string) string {
		return s.arrive(api.TunnelRequest{DetectedProvider: provider, ProviderEventData: &api.ProviderEventData{EventType: &kind}, Path: "/p", HeaderList: [][2]string{{"x-dev", "theirs"}}})
	}
	event("stripe", "customer.created")
	event("github", "push")
	kind := "push"
	s.arrive(api.TunnelRequest{DetectedProvider: "stripe", ProviderEventData: &api.ProviderEventData{EventType: &kind}, Path: "/internal"})
	paid, push := event("stripe", "invoice.paid"), event("stripe", "push")
	eventually(t, "two deliveries", func() bool { return len(told[listen.Delivered](l)) == 2 })
	if got := invoices.ids(); !slices.Equal(got, []string{paid}) || invoices.got[0].URL.Path != "/invoices/p" || !slices.Equal(invoices.got[0].Header["X-Dev"], []string{"1"}) {
		t.Errorf("invoices got %v", got)
	}
	if got := others.ids(); !slices.Equal(got, []string{push}) {
		t.Errorf("the others got %v", got)
	}
	if sum, err := l.end(true); err != nil || sum.Filtered != 3 || sum.Delivered != 2 {
		t.Errorf("%+v, %v", sum, err)
	}
	for _, bad := range []string{"", "x", "=3000", "x=", "x=ftp://y"} {
		if _, err := listen.ParseRoute(bad); err == nil {
			t.Errorf("the route %q was taken", bad)
		}
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

func TestAnOutageCostsNothing(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, nil)
	first := s.arrive(api.TunnelRequest{})
	eventually(t, "the first", func() bool { return slices.Contains(h.ids(), first) })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool {
		return len(told[listen.Disconnected](l)) > 0 && get(s, func() bool { return len(s.gaps) == 1 })
	})
	for range 34 {
		s.arrive(api.TunnelRequest{})
	}
	// The machine slept: by its own clock nearly no time went by.
	s.set(func() { s.down, s.gaps[0].at = false, time.Now().Add(-time.Hour) })
	eventually(t, "it is back and has caught up", func() bool { return len(told[listen.Offline](l)) == 1 })
	if off := told[listen.Offline](l)[0]; off.Missed != 34 || off.Delivered != 34 || off.Failed != 0 || off.For < time.Hour || off.For > 90*time.Minute {
		t.Errorf("it tells %+v", off)
	}
	if ids := h.ids(); len(ids) != 35 {
		t.Errorf("%d deliveries of 35 events", len(ids))
	}
	s.set(func() {
		if len(s.said) != 1 || s.said[0] != (api.RecoverGap{Outcome: "completed", AttemptedCount: 34, SucceededCount: 34}) || s.gaps[0].state != "recovered" {
			t.Errorf("recoveries %+v of %+v", s.said, s.gaps[0])
		}
		if s.connects < 2 {
			t.Errorf("%d tickets", s.connects)
		}
		// What the socket takes may be read behind the word that the recovery is over, which then does not count it.
		if s.byREST < 34 {
			t.Errorf("of what was caught up on, %d were reported by REST", s.byREST)
		}
	})
	sum, err := l.end(true)
	if err != nil || sum.Delivered != 35 || sum.Failed != 0 || sum.Waiting != 0 || sum.Unreported != 0 || sum.Reconnects != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	eventually(t, "a goodbye", func() bool {
		return get(s, func() bool {
			return s.left == 1 && slices.Contains(s.closed, websocket.StatusNormalClosure) && len(s.gaps) == 1
		})
	})
}

// A server may take for missed what is being delivered. It is waited for, not delivered again, and counts: the server has
// its result before it hears that the recovery is over, also where it reads what the socket brings only later.
func TestWhatIsUnderWayIsPartOfARecovery(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	h := newTarget(t, func(int, http.ResponseWriter, *http.Request) { <-gate })
	l := start(t, s, h.URL, nil)
	s.arrive(api.TunnelRequest{})
	eventually(t, "it is under way", func() bool { return len(h.ids()) == 1 })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "a gap", func() bool { return get(s, func() bool { return len(s.gaps) == 1 }) })
	s.set(func() { s.down, s.behind, s.gaps[0].from = false, true, 0 })
	eventually(t, "the recovery", func() bool { return get(s, func() bool { return s.pages > 0 }) })
	close(gate)
	eventually(t, "its end", func() bool { return get(s, func() bool { return len(s.said) > 0 }) })
	if said := get(s, func() api.RecoverGap { return s.said[0] }); said != (api.RecoverGap{Outcome: "completed", AttemptedCount: 1, SucceededCount: 1}) {
		t.Errorf("the recovery was said to be %+v", said)
	}
	if state := get(s, func() string { return s.gaps[0].state }); state != "recovered" {
		t.Errorf("the gap is %s", state)
	}
	if sum, _ := l.end(true); len(h.ids()) != 1 || sum.Delivered != 1 {
		t.Errorf("%d deliveries, %+v", len(h.ids()), sum)
	}
}

func TestADeliveryIsOneWith2xx(t *testing.T) {
	for status, ok := range map[int]bool{0: false, 199: false, 200: true, 299: true, 300: false} {
		if got := (listen.Delivered{StatusCode: status}).OK(); got != ok {
			t.Errorf("%d: %t", status, got)
		}
	}
}

// A server is asked about a hundred endpoints at once, and no more.
func TestAnOutageOfManyEndpointsCostsNothing(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, func(c *listen.Config) {
		for i := range 150 {
			c.Endpoints = append(c.Endpoints, listen.Endpoint{ID: fmt.Sprintf("ep_%03d", i), Target: c.Endpoints[0].Target})
		}
	})
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool { return len(told[listen.Disconnected](l)) > 0 })
	var missed []string
	for _, e := range []string{"ep_a", "ep_000", "ep_120", "ep_149", "ep_000"} {
		missed = append(missed, s.arrive(api.TunnelRequest{EndpointID: e}))
	}
	s.set(func() { s.down = false })
	eventually(t, "it is back and has caught up", func() bool { return len(told[listen.Offline](l)) == 1 })
	if got := h.ids(); len(got) != len(missed) || slices.ContainsFunc(missed, func(id string) bool { return !slices.Contains(got, id) }) {
		t.Errorf("delivered %q of %q", got, missed)
	}
	if w := told[listen.Warning](l); len(w) != 0 {
		t.Errorf("the warnings are %v", w)
	}
}

// What is too old to be delivered was missed all the same.
func TestWhatIsLeftOfAnOutageIsSaidToBeMissed(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, nil)
	eventually(t, "connected", func() bool { return len(told[listen.Connected](l)) == 1 })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool { return get(s, func() bool { return len(s.gaps) == 1 }) })
	for range 3 {
		s.arrive(api.TunnelRequest{})
	}
	s.set(func() { s.down, s.events[0].RequestedAt.Time = false, time.Now().Add(-3*time.Hour) })
	eventually(t, "it is back", func() bool { return len(told[listen.Offline](l)) == 1 })
	if off := told[listen.Offline](l)[0]; off.Missed != 3 || off.Delivered != 2 || off.Failed != 0 {
		t.Errorf("it tells %+v", off)
	}
	if _, err := l.end(true); err != nil {
		t.Error(err)
	}
}

func TestWhatTheServerTookForDeliveredIsAskedForAgain(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, nil)
	// Sent into a connection that is already broken: no gap holds it.
	s.set(func() {
		s.events = append(s.events, api.TunnelRequest{Type: api.TunnelWebhookRequest, ID: "req_lost", EndpointID: "ep_a", Method: "POST", RequestedAt: api.Time{Time: time.Now()}})
	})
	s.cut()
	eventually(t, "it was delivered", func() bool { return slices.Contains(h.ids(), "req_lost") })
	eventually(t, "it is told", func() bool { o := told[listen.Offline](l); return len(o) == 1 && o[0].Delivered == 1 })
}

func TestGapsOfAnEarlierTimeAreRecoveredAsAskedFor(t *testing.T) {
	for _, c := range []struct {
		mode      listen.Recovery
		yes       bool
		age       time.Duration
		delivered int
		said      string
	}{
		{listen.RecoverNone, false, 0, 0, "skipped"}, {listen.RecoverRecent, false, 0, 3, "completed"}, {listen.RecoverAsk, true, 0, 3, "completed"},
		{listen.RecoverAsk, false, 0, 0, "skipped"}, {listen.RecoverRecent, false, 3 * time.Hour, 0, "partial"}, {listen.RecoverAll, false, 3 * time.Hour, 3, "completed"},
	} {
		t.Run(fmt.Sprint(c.mode, c.yes, c.age), func(t *testing.T) {
			s := newServer(t)
			h := newTarget(t, nil)
			s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now().Add(-c.age - time.Minute), state: "open"}}
			for i := range 3 {
				s.arrive(api.TunnelRequest{})
				s.events[i].RequestedAt.Time = time.Now().Add(-c.age)
			}
			asked := 0
			l := start(t, s, h.URL, func(cfg *listen.Config) {
				cfg.Recover = c.mode
				cfg.Ask = func(_ context.Context, n int) bool { asked = n; return c.yes }
			})
			live := s.arrive(api.TunnelRequest{})
			eventually(t, "the live one", func() bool { return slices.Contains(h.ids(), live) })
			if c.said != "" {
				eventually(t, "the end of the recovery", func() bool { return get(s, func() bool { return len(s.said) == 1 }) })
			}
			s.set(func() {
				if c.said != "" && s.said[0].Outcome != c.said {
					t.Errorf("it says %+v", s.said)
				}
			})
			if sum, _ := l.end(true); sum.Delivered != 1+c.delivered || (asked == 3) != (c.mode == listen.RecoverAsk) {
				t.Errorf("%+v; asked about %d", sum, asked)
			}
		})
	}
}

// A listener that was killed behind its last delivery left the gap without a word about it. What failed is sent again to
// who asks for all.
func TestAGapWhoseEventsWereAllTriedIsSaidToBeOver(t *testing.T) {
	for mode, again := range map[listen.Recovery]int64{listen.RecoverRecent: 0, listen.RecoverAsk: 0, listen.RecoverAll: 1} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			s := newServer(t)
			h := newTarget(t, nil)
			s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now(), state: "open"}}
			tried := s.arrive(api.TunnelRequest{})
			s.set(func() {
				s.take(api.DeliveryReport{EndpointID: "ep_a", WebhookRequestID: tried, TargetURL: h.URL, StatusCode: api.Some[int64](500), ReportVersion: 2, DeliveryAttemptID: "before"})
			})
			l := start(t, s, h.URL, func(cfg *listen.Config) { cfg.Recover = mode })
			eventually(t, "a word about the gap", func() bool { return get(s, func() bool { return len(s.said) == 1 }) })
			want := api.RecoverGap{Outcome: "partial"}
			if again > 0 {
				want = api.RecoverGap{Outcome: "completed", AttemptedCount: again, SucceededCount: again}
			}
			if said := get(s, func() api.RecoverGap { return s.said[0] }); said != want {
				t.Errorf("it says %+v", said)
			}
			if sum, _ := l.end(true); int64(sum.Delivered) != again || sum.Failed != 0 {
				t.Errorf("what had failed: %+v", sum)
			}
		})
	}
}

// Who catches up on nothing says that of what nobody has tried. What another listener said of an outage stays.
func TestWhatIsSkippedIsWhatNobodyTried(t *testing.T) {
	s := newServer(t)
	tried := s.arrive(api.TunnelRequest{})
	s.arrive(api.TunnelRequest{})
	s.arrive(api.TunnelRequest{})
	s.set(func() {
		s.take(api.DeliveryReport{EndpointID: "ep_a", WebhookRequestID: tried, TargetURL: "http://x.test/", StatusCode: api.Some[int64](500), ReportVersion: 2, DeliveryAttemptID: "before"})
		for i, state := range []string{"reconnected", "partial", "reconnected"} {
			s.gaps = append(s.gaps, &gap{id: fmt.Sprintf("tgap_%d", i), endpoint: "ep_a", from: i, to: i + 1, at: time.Now().Add(time.Duration(i-3) * time.Minute), state: state})
		}
	})
	l := start(t, s, "http://x.test/", func(cfg *listen.Config) { cfg.Recover = listen.RecoverNone })
	eventually(t, "a word about the last", func() bool { return get(s, func() bool { return s.gaps[2].state == "partial" }) })
	if said := get(s, func() []api.RecoverGap { return slices.Clone(s.said) }); !slices.Equal(said, []api.RecoverGap{{Outcome: "skipped"}}) {
		t.Errorf("it says %+v", said)
	}
	if sum, _ := l.end(true); sum.Received != 0 {
		t.Errorf("%+v", sum)
	}
}

// An outage from before a listener began is caught up on to its end, though some of its events were tried, and though
// all fail: each is sent once, and the server is told how many.
func TestALongGapIsTriedToItsEnd(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now(), state: "open"}}
	const n = 25 // pages of ten
	for range n {
		s.arrive(api.TunnelRequest{})
	}
	s.set(func() {
		s.take(api.DeliveryReport{EndpointID: "ep_a", WebhookRequestID: s.events[0].ID, TargetURL: h.URL, StatusCode: api.Some[int64](500), ReportVersion: 2, DeliveryAttemptID: "before"})
	})
	l := start(t, s, h.URL, nil)
	eventually(t, "a word about the gap", func() bool { return get(s, func() bool { return len(s.said) == 1 }) })
	if said := get(s, func() api.RecoverGap { return s.said[0] }); said != (api.RecoverGap{Outcome: "partial", AttemptedCount: n, FailedCount: n}) {
		t.Errorf("it says %+v", said)
	}
	if sum, _ := l.end(true); sum.Failed != n || len(h.ids()) != n {
		t.Errorf("%d deliveries, %+v", len(h.ids()), sum)
	}
}

func TestAReportIsKeptUntilTheServerHasIt(t *testing.T) {
	s := newServer(t)
	s.unacked = true
	gate := make(chan struct{})
	h := newTarget(t, func(int, http.ResponseWriter, *http.Request) { <-gate })
	l := start(t, s, h.URL, nil)
	id := s.arrive(api.TunnelRequest{})
	eventually(t, "it is under way", func() bool { return len(h.ids()) == 1 })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool { return len(told[listen.Disconnected](l)) > 0 })
	close(gate)
	eventually(t, "it is delivered", func() bool { return len(told[listen.Delivered](l)) == 1 })
	if n := get(s, func() int { return len(s.reports[id]) }); n != 0 {
		t.Fatalf("%d reports at a server that is away", n)
	}
	s.set(func() { s.down = false })
	eventually(t, "it is reported", func() bool { return get(s, func() bool { return s.delivered(id) }) })
	sum, _ := l.end(true)
	if n := get(s, func() int { return len(s.reports[id]) }); n != 1 || len(h.ids()) != 1 || sum.Unreported != 0 {
		t.Errorf("%d reports, deliveries %v, %+v", n, h.ids(), sum)
	}
}

// A report says that an event was delivered whoever delivered it: where the server knows the client no longer, it is sent
// without its name. One that the server will not have is named.
func TestAReportIsWorthMoreThanItsClient(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now(), state: "open"}}
	missed := s.arrive(api.TunnelRequest{})
	s.set(func() { s.forgot = true })
	l := start(t, s, h.URL, nil)
	eventually(t, "a word about the gap", func() bool { return get(s, func() bool { return len(s.said) == 1 }) })
	s.set(func() {
		if r := s.reports[missed]; len(r) != 1 || r[0].TunnelClientID != "" || r[0].TunnelClientCredential != "" {
			t.Errorf("reports %+v", r)
		}
	})
	if w := told[listen.Warning](l); len(w) != 0 {
		t.Errorf("it warns: %v", w)
	}
	s.set(func() { s.deaf, s.down = true, true })
	s.cut()
	eventually(t, "a gap", func() bool { return get(s, func() bool { return len(s.gaps) == 2 }) })
	s.arrive(api.TunnelRequest{})
	s.set(func() { s.down = false })
	eventually(t, "a warning", func() bool {
		return slices.ContainsFunc(told[listen.Warning](l), func(w listen.Warning) bool { return strings.HasPrefix(w.Text, "a result was not taken: ") })
	})
}

func TestAReportThatTheSocketTookAndNobodyConfirmedGoesByREST(t *testing.T) {
	for again, confirmed := range []bool{true, false} {
		s := newServer(t)
		s.unacked = !confirmed
		h := newTarget(t, nil)
		l := start(t, s, h.URL, nil)
		id := s.arrive(api.TunnelRequest{})
		eventually(t, "a report", func() bool { return get(s, func() bool { return s.delivered(id) }) })
		if confirmed {
			eventually(t, "the server's word", func() bool { return l.Unreported() == 0 })
		}
		l.end(true)
		if n := get(s, func() int { return s.byREST }); n != again {
			t.Errorf("confirmed %t: %d reports by REST", confirmed, n)
		}
	}
}

// What the server does not take now is reported later, and what it will never take is named.
func TestAReportIsRefusedForNowOrForGood(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now(), state: "open"}}
	missed := s.arrive(api.TunnelRequest{})
	s.set(func() { s.busy = 1 })
	l := start(t, s, h.URL, nil)
	eventually(t, "a report", func() bool { return get(s, func() bool { return s.delivered(missed) }) })
	eventually(t, "the server's word", func() bool { return l.Unreported() == 0 })
	s.set(func() { s.refusal = "not this one" })
	s.arrive(api.TunnelRequest{})
	eventually(t, "a warning", func() bool {
		return slices.Equal(told[listen.Warning](l), []listen.Warning{{Text: "a result was not taken: not this one"}})
	})
	if n := len(h.ids()); n != 2 || l.Unreported() != 0 {
		t.Errorf("%d deliveries, %d not reported", n, l.Unreported())
	}
}

func TestAReportCarriesTheAnswer(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("X-A", "1")
		w.Header().Add("X-A", "2")
		switch n {
		case 1:
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(201)
			_, _ = io.WriteString(w, "said \u00e9")
		case 2:
			_, _ = w.Write([]byte{0xff, 0})
		case 3:
			_, _ = io.WriteString(w, strings.Repeat("x", evidenceLimit+1))
		case 5: // at an address that is longer than a report takes
			w.Header()["Set-Cookie"] = []string{"a=1, 2", "b=3"} // which are no list
		case 6, 7: // what a note holds, and more
			_, _ = io.WriteString(w, strings.Repeat("x", 2048+n-6))
		case 8: // nobody waits for it
			_, _ = io.WriteString(w, strings.Repeat("x", evidenceLimit+2))
		case 9:
			w.Header().Set("Content-Length", "9")
			_, _ = io.WriteString(w, "broken")
		case 4: // more than a report takes: it is told all the same
			w.Header().Set("Content-Type", "text/plain; x="+strings.Repeat("x", 300))
			w.Header().Set("X-Long", strings.Repeat("x", 40_000))
			for i := range 150 {
				w.Header().Set(fmt.Sprintf("X-%d", i), "v")
			}
		}
	})
	l := start(t, s, h.URL, nil)
	path, respond := "/", true
	report := func() api.DeliveryReport {
		id := s.arrive(api.TunnelRequest{Respond: respond, Path: path})
		eventually(t, "a report", func() bool { return get(s, func() bool { return len(s.reports[id]) == 1 }) })
		return get(s, func() api.DeliveryReport { return s.reports[id][0] })
	}
	if r := report(); r.StatusCode.Value != 201 || r.ContentType != "text/plain" || r.ResponseHeaders["X-A"] != "1, 2" || r.Body != "said \u00e9" || r.BodyEncoding != "utf8" ||
		!*r.CaptureComplete || *r.DecodedBytesObserved != 7 || *r.RetainedBytes != 7 || *r.DeclaredContentLength != 7 || r.ResponseTimeMS == nil {
		t.Errorf("%+v", r)
	}
	if r := report(); r.Body != "/wA=" || r.BodyEncoding != "base64" {
		t.Errorf("%+v", r)
	}
	if r := report(); len(r.Body) != evidenceLimit || *r.CaptureComplete || r.TruncationReason != "body_limit" || *r.DecodedBytesObserved != evidenceLimit+1 || *r.RetainedBytes != evidenceLimit ||
		r.DeclaredContentLength != nil {
		t.Errorf("%d bytes, %s", len(r.Body), r.TruncationReason)
	}
	if r := report(); len(r.ResponseHeaders) != hookglass.EvidenceFields || r.ResponseHeaders["X-Long"] != "" || r.ResponseHeaders["X-1"] != "v" || len(r.ContentType) != hookglass.EvidenceWordLimit {
		t.Errorf("%d fields, a type of %d bytes", len(r.ResponseHeaders), len(r.ContentType))
	}
	path = "/" + strings.Repeat("x", hookglass.AddressLimit)
	if r := report(); r.ResolvedURL != "" || r.TargetURL != h.URL || r.ResponseHeaders["Set-Cookie"] != "a=1, 2" || *r.DeclaredContentLength != 0 {
		t.Errorf("%d bytes of an address, %s, %+v", len(r.ResolvedURL), r.TargetURL, r)
	}
	path, respond = "/", false
	report()
	report()
	report()
	if r := report(); r.StatusCode.Value != 200 || r.Body != "broken" || *r.CaptureComplete || r.TruncationReason != "connection_lost" {
		t.Errorf("%+v", r)
	}
	eventually(t, "nine notes", func() bool { return len(told[listen.Delivered](l)) == 9 })
	cut := map[int64]bool{}
	for _, d := range told[listen.Delivered](l) {
		cut[d.Size] = d.Truncated
	}
	if want := map[int64]bool{7: false, 2: false, evidenceLimit + 1: true, 0: false, 2048: false, 2049: true, evidenceLimit + 2: true, 6: true}; !maps.Equal(cut, want) {
		t.Errorf("sizes of answers, and whether the note has only their beginning: %v, want %v", cut, want)
	}
	if w := told[listen.Warning](l); len(w) != 1 || !strings.Contains(w[0].Text, "is given the first 60000 bytes of the answer") {
		t.Errorf("the warnings are %q", w)
	}
}

func TestWhyNoAnswerCame(t *testing.T) {
	rude := func(answer string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, answer)
				conn.Close()
			}
		}()
		return "http://" + l.Addr().String()
	}
	plain := newTarget(t, nil)
	for name, c := range map[string]struct{ method, url, category, says string }{
		"no request":   {"CONNECT", plain.URL, api.FailureUnknown, ""},
		"refused":      {"", "http://127.0.0.1:1", api.FailureConnectionRefused, ""},
		"unknown name": {"", "http://nowhere.invalid:3000", api.FailureDNS, ""},
		"no TLS":       {"", strings.Replace(plain.URL, "http:", "https:", 1), api.FailureTLS, "must begin with http://"},
		"TLS":          {"", rude("\x15\x03\x01\x00\x02\x02\x46"), api.FailureHTTP, "must begin with https://"},
		"hung up":      {"", rude(""), api.FailureHTTP, ""},
		"not HTTP":     {"", rude("SSH-2.0-x\r\n\r\n"), api.FailureHTTP, ""},
		"no status":    {"", rude("HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"), api.FailureHTTP, ""},
		"two lengths":  {"", rude("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), api.FailureHTTP, ""},
		"no end":       {"", rude(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 40) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), api.FailureHTTP, ""},
		"all head":     {"", rude("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 2000) + "\r\n"), api.FailureHTTP, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			l := start(t, s, c.url, nil)
			id := s.arrive(api.TunnelRequest{Method: c.method, Respond: true})
			eventually(t, "a note", func() bool { return len(told[listen.Delivered](l)) == 1 })
			if d := told[listen.Delivered](l)[0]; d.Failure != c.category || d.Problem == "" || !strings.Contains(d.Problem, c.says) || d.Truncated {
				t.Errorf("%+v", d)
			}
			eventually(t, "a report", func() bool { return get(s, func() bool { return len(s.reports[id]) == 1 }) })
			r := get(s, func() api.DeliveryReport { return s.reports[id][0] })
			if r.StatusCode.Value != 0 || r.FailureCategory != c.category || r.ResponseMessage == "" || r.CaptureComplete != nil || r.DeclaredContentLength != nil {
				t.Errorf("%+v", r)
			}
			warned := len(told[listen.Warning](l)) > 0
			if warned != (c.category == api.FailureConnectionRefused || c.category == api.FailureDNS) {
				t.Errorf("warnings: %v", told[listen.Warning](l))
			}
			if sum, err := l.end(true); err != nil || sum.Failed != 1 || sum.Delivered != 0 {
				t.Errorf("%+v, %v", sum, err)
			}
		})
	}
}

// A handler may answer before it has read a large body, and never read the rest.
func TestALargeBodyIsSentWhileItsAnswerIsAwaited(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		conn, err := socket.Accept()
		if err != nil {
			return
		}
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		_, _ = conn.Read(make([]byte, 100))
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
		<-t.Context().Done()
		conn.Close()
	}()
	start(t, s, h.URL, func(c *listen.Config) {
		c.Endpoints = append(c.Endpoints, listen.Endpoint{ID: "ep_b", Target: &listen.Target{Scheme: "http", Host: socket.Addr().String()}})
	})
	body := strings.Repeat("0123456789abcdef", 16<<10)
	for endpoint, want := range map[string]int64{"ep_a": 200, "ep_b": 413} {
		sent := body
		if want == 413 { // more than a connection holds
			sent = strings.Repeat(body, 20)
		}
		id := s.arrive(api.TunnelRequest{EndpointID: endpoint, Body: base64of(sent)})
		eventually(t, "a report", func() bool { return get(s, func() bool { return len(s.reports[id]) == 1 }) })
		if r := get(s, func() api.DeliveryReport { return s.reports[id][0] }); r.StatusCode.Value != want {
			t.Errorf("%s: %+v", endpoint, r)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.body) != 1 || h.body[0] != body || h.got[0].ContentLength != int64(len(body)) {
		t.Errorf("the target got %d bytes", len(strings.Join(h.body, "")))
	}
}

// The certificate of a handler under development is its own. A person is told once what takes it.
func TestWhoIsNotTrustedIsNamedOnceWithTheWayOut(t *testing.T) {
	s := newServer(t)
	h := newTLSTarget(t)
	l := start(t, s, h, nil)
	to, err := listen.ParseTarget(h)
	if err != nil {
		t.Fatal(err)
	}
	l.Probe(t.Context(), to)
	s.arrive(api.TunnelRequest{})
	eventually(t, "it is tried", func() bool { return len(told[listen.Delivered](l)) == 1 })
	if w := told[listen.Warning](l); len(w) != 1 || !strings.Contains(w[0].Text, "the certificate of "+h+" is not trusted here (") || !strings.Contains(w[0].Text, "; --insecure takes any; to send again") {
		t.Errorf("%v", w)
	}
}

// A person is told once that a handler stopped answering, with what sends the events again, and once that it is back.
func TestAHandlerThatStopsAnsweringIsNamedOnce(t *testing.T) {
	s := newServer(t)
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := socket.Addr().String()
	socket.Close()
	l := start(t, s, "http://"+address, nil)
	arrive := func(total int) {
		t.Helper()
		s.arrive(api.TunnelRequest{})
		eventually(t, "it is tried", func() bool { return len(told[listen.Delivered](l)) == total })
	}
	arrive(1)
	arrive(2)
	if w := told[listen.Warning](l); len(w) != 1 || !strings.Contains(w[0].Text, "nothing answers at http://"+address) || !strings.Contains(w[0].Text, "-e ep_a -q tunnel:failed") {
		t.Errorf("while it is away: %v", w)
	}
	if socket, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: http.NotFoundHandler()}
	go func() { _ = h.Serve(socket) }()
	t.Cleanup(func() { h.Close() })
	arrive(3)
	arrive(4)
	if w := told[listen.Warning](l); len(w) != 2 || w[1].Text != "http://"+address+" answers again" {
		t.Errorf("once it is back: %v", w)
	}
	for advice, change := range map[string]func(*listen.Config){
		"": func(c *listen.Config) { c.Client = s.client("tk_" + strings.Repeat("0", 26)) }, // which may not replay
		"; to send again all that failed: hookglass replays run -e EP -q tunnel:failed --to tunnel": func(c *listen.Config) { c.Endpoints = append(c.Endpoints, listen.Endpoint{ID: "ep_b"}) },
	} {
		l := start(t, s, "http://127.0.0.1:1", change)
		s.arrive(api.TunnelRequest{})
		eventually(t, "it is tried", func() bool { return len(told[listen.Delivered](l)) == 1 })
		if w := told[listen.Warning](l); len(w) != 1 || !strings.HasSuffix(w[0].Text, "is not sent again by itself"+advice) {
			t.Errorf("%v, want %q", w, advice)
		}
		l.end(true)
	}
}

// The names of this machine lead to a handler on either of its addresses, whatever its resolver makes of them.
func TestNamesOfThisMachineMeanBothOfItsAddresses(t *testing.T) {
	on := func(address string) (port string, ok bool) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return "", false
		}
		h := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		t.Cleanup(func() { h.Close() })
		go func() { _ = h.Serve(l) }()
		_, port, _ = net.SplitHostPort(l.Addr().String())
		return port, true
	}
	four, ok := on("127.0.0.1:0")
	if !ok {
		t.Fatal("no address of this machine can be listened on")
	}
	targets := []string{"http://localhost:" + four, "http://App.localhost:" + four}
	if six, ok := on("[::1]:0"); ok { // a machine may have none
		targets = append(targets, "http://localhost:"+six, "http://app.localhost:"+six)
	}
	for _, to := range targets {
		s := newServer(t)
		l := start(t, s, to, nil)
		id := s.arrive(api.TunnelRequest{})
		eventually(t, "a report", func() bool { return get(s, func() bool { return len(s.reports[id]) == 1 }) })
		if !get(s, func() bool { return s.delivered(id) }) {
			t.Errorf("%s: %+v", to, told[listen.Delivered](l))
		}
	}
	s := newServer(t)
	start(t, s, "http://app.localhost:1", nil)
	id := s.arrive(api.TunnelRequest{})
	eventually(t, "a report", func() bool { return get(s, func() bool { return len(s.reports[id]) == 1 }) })
	if r := get(s, func() api.DeliveryReport { return s.reports[id][0] }); r.FailureCategory != api.FailureConnectionRefused {
		t.Errorf("nothing there: %+v", r)
	}
}

func TestCertificatesOfTargetsAreCheckedUnlessToldOtherwise(t *testing.T) {
	for _, insecure := range []bool{false, true} {
		s := newServer(t)
		h := newTLSTarget(t)
		start(t, s, h, func(c *listen.Config) { c.Insecure = insecure })
		id := s.arrive(api.TunnelRequest{})
		eventually(t, "a report", func() bool { return get(s, func() bool { return len(s.reports[id]) == 1 }) })
		if got := get(s, func() bool { return s.delivered(id) }); got != insecure {
			t.Errorf("insecure %v: delivered %v", insecure, got)
		}
	}
}

func TestWhatIsOlderThanWantedIsLeft(t *testing.T) {
	s := newServer(t)
	s.set(func() {
		s.events = append(s.events, api.TunnelRequest{Type: api.TunnelWebhookRequest, ID: "req_old", EndpointID: "ep_a", Method: "POST", RequestedAt: api.Time{Time: time.Now().Add(-3 * time.Hour)}})
	})
	l := listen.New(listen.Config{Client: s.client("hg_x"), Endpoints: []listen.Endpoint{{ID: "ep_a"}}, Recover: listen.RecoverRecent})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l.CatchUp(ctx, time.Now().Add(-4*time.Hour))
	if ctx.Err() != nil {
		t.Error("it asked for the same again and again")
	}
	if l.Admitted() > 0 {
		t.Error("it was delivered")
	}
}

// A backlog of what failed, or of what nobody asked for, is longer than what is remembered of it.
func TestALongBacklogIsCaughtUpOnOnce(t *testing.T) {
	s := newServer(t)
	const n = 200
	s.set(func() {
		for i := range n {
			at := time.Now().Add(time.Duration(i-n) * time.Minute)
			s.events = append(s.events, api.TunnelRequest{
				Type: api.TunnelWebhookRequest, ID: fmt.Sprintf("req_%d", i), EndpointID: "ep_a", Method: "POST", DetectedProvider: "y", RequestedAt: api.Time{Time: at},
			})
		}
	})
	l := listen.New(listen.Config{Client: s.client("hg_x"), Endpoints: []listen.Endpoint{{ID: "ep_a", Provider: "x"}}, Recover: listen.RecoverAll})
	l.Remember(10)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l.CatchUp(ctx, time.Now().Add(-n*time.Hour))
	if ctx.Err() != nil {
		t.Error("it asked for the same again and again")
	}
	if asked := get(s, func() int { return s.pages }); asked > n/50+2 {
		t.Errorf("it asked for %d pages", asked)
	}
	if known := l.Remembered(); known != 10 {
		t.Errorf("it remembers %d events", known)
	}
}

func TestMoreThanWaitsIsFetchedLater(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			s := newServer(t)
			gate := make(chan struct{})
			h := newTarget(t, func(_ int, w http.ResponseWriter, _ *http.Request) { <-gate; w.WriteHeader(status) })
			l := start(t, s, h.URL, nil)
			const n = 1_200
			for range n {
				s.arrive(api.TunnelRequest{Body: base64of("x")})
			}
			eventually(t, "sixteen under way", func() bool { return len(h.ids()) == 16 })
			close(gate)
			eventually(t, "all are reported", func() bool { return get(s, func() bool { return len(s.reports) == n }) })
			eventually(t, "nothing is left to ask for", func() bool { return !l.Behind() })
			eventually(t, "nothing waits", func() bool { return l.Weight() == 0 })
			if got := len(h.ids()); got != n {
				t.Errorf("%d deliveries", got)
			}
			if sum, _ := l.end(true); sum.Reconnects != 0 || sum.Delivered+sum.Failed != n {
				t.Errorf("%+v", sum)
			}
		})
	}
}

// Events wait up to so many bytes. What would be more is left for later, and delivered all the same.
func TestSoManyBytesWaitAtMost(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, nil)
	body := base64of("xyz") // which is how they wait
	l.Fill(int64(len(body)))
	for i, later := range []bool{false, true} {
		s.arrive(api.TunnelRequest{Body: base64of([]string{"xyz", "xyz+"}[i])})
		eventually(t, "it is delivered", func() bool { return len(told[listen.Delivered](l)) == i+1 })
		if d := told[listen.Delivered](l)[i]; d.Recovered != later || !d.OK() {
			t.Errorf("event %d: left for later: %t, want %t; %s", i, d.Recovered, later, d.Problem)
		}
	}
}

// What a slow sender began to send long before is captured behind what came since.
func TestWhatCameLongBeforeItWasCapturedIsFetchedLaterToo(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	h := newTarget(t, func(int, http.ResponseWriter, *http.Request) { <-gate })
	l := start(t, s, h.URL, nil)
	const n = 600
	now := time.Now()
	for range n {
		s.arrive(api.TunnelRequest{RequestedAt: api.Time{Time: now}})
	}
	slow := s.arrive(api.TunnelRequest{RequestedAt: api.Time{Time: now.Add(-time.Minute)}})
	eventually(t, "sixteen under way", func() bool { return len(h.ids()) == 16 })
	close(gate)
	eventually(t, "all are reported", func() bool { return get(s, func() bool { return len(s.reports) == n+1 }) })
	if !slices.Contains(h.ids(), slow) {
		t.Error("what came before was not delivered")
	}
	if sum, _ := l.end(true); sum.Delivered != n+1 {
		t.Errorf("%+v", sum)
	}
}

// What was left for later is older than what a look back at an outage asks for.
func TestWhatWasLeftForLaterOutlastsTheConnection(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	h := newTarget(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/last" {
			<-gate
		}
	})
	l := start(t, s, h.URL, func(c *listen.Config) {
		c.Endpoints = append(c.Endpoints, listen.Endpoint{ID: "ep_b", Target: c.Endpoints[0].Target})
	})
	eventually(t, "nothing was missed before", func() bool { return get(s, func() int { return s.listed }) == 1 })
	const n = 700
	began := time.Now().Add(-time.Hour)
	for i := range n {
		s.arrive(api.TunnelRequest{RequestedAt: api.Time{Time: began.Add(time.Duration(i) * time.Second)}})
	}
	last := s.arrive(api.TunnelRequest{EndpointID: "ep_b", Path: "/last"})
	eventually(t, "each was taken in or left", func() bool { return slices.Contains(h.ids(), last) })
	s.set(func() { s.stalled = true })
	close(gate)
	eventually(t, "the rest is asked for", func() bool { return get(s, func() int { return s.pages }) > 0 })
	s.cut()
	eventually(t, "the break is noticed", func() bool { return len(told[listen.Disconnected](l)) == 1 })
	s.set(func() { s.stalled = false })
	eventually(t, "all are reported", func() bool { return get(s, func() bool { return len(s.reports) == n+1 }) })
	if got := len(h.ids()); got != n+1 {
		t.Errorf("%d deliveries", got)
	}
}

// For the race detector: what comes live and what is caught up on meet the same chaos.
func TestChaosMeetsWhatIsCaughtUpOnToo(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	const n = 100
	s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", to: -1, at: time.Now(), state: "open"}}
	for range n {
		s.arrive(api.TunnelRequest{})
	}
	l := start(t, s, h.URL, func(c *listen.Config) {
		c.Chaos, c.Recover = &listen.Chaos{MaxDelay: time.Millisecond, Seed: 1}, listen.RecoverAll
	})
	for range n {
		s.arrive(api.TunnelRequest{})
	}
	eventually(t, "all are reported", func() bool { return get(s, func() bool { return len(s.reports) == 2*n }) })
	if sum, err := l.end(true); err != nil || sum.Delivered != 2*n {
		t.Errorf("%+v, %v", sum, err)
	}
}

// A replay is delivered when a complete answer came (spec: decisions, section 13), whichever way it takes to its
// target.
func TestAnAnswerThatBreaksOffIsNoneToAReplay(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		switch _, _ = io.WriteString(w, "beginning"); r.URL.Path {
		case "/closed":
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/late":
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	start(t, s, h.URL, nil)
	replay := func(path string, timeout time.Duration) api.TunnelReplayResult {
		n := get(s, func() int { return len(s.results) })
		s.set(func() {
			s.push("ep_a", api.TunnelReplayCommand{
				Type: api.TunnelReplay, CommandID: fmt.Sprint(n, path), ResultToken: "token", Method: "POST", URL: path, TimeoutMS: timeout.Milliseconds(),
				ExpiresAt: api.Time{Time: time.Now().Add(time.Hour)},
			})
		})
		eventually(t, "a result", func() bool { return get(s, func() bool { return len(s.results) > n }) })
		return get(s, func() api.TunnelReplayResult { return s.results[n] })
	}
	for _, c := range []struct {
		path, category string
		timeout        time.Duration
	}{{"/closed", api.FailureHTTP, patience}, {"/late", api.FailureTimeout, 500 * time.Millisecond}} {
		before := len(h.ids())
		r := replay(c.path, c.timeout)
		for len(h.ids()) == before && c.timeout < patience { // the time was over before it was sent
			c.timeout *= 2
			r = replay(c.path, c.timeout)
		}
		if r.StatusCode.Value != 0 || r.FailureCategory != c.category || r.Error == "" || !*r.RequestMayHaveBeenSent || r.Body != "" {
			t.Errorf("%s: %+v", c.path, r)
		}
	}
}

func TestReplaysGoToTheTargetAndNowhereElse(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") })
	closed := newTarget(t, nil)
	closed.Close()
	start(t, s, h.URL+"/base", nil)
	run := func(c api.TunnelReplayCommand) api.TunnelReplayResult {
		t.Helper()
		c.Type, c.Method, c.ResultToken, c.TimeoutMS = api.TunnelReplay, "PUT", "token-"+c.CommandID, patience.Milliseconds()
		if c.ExpiresAt.IsZero() {
			c.ExpiresAt.Time = time.Now().Add(time.Minute)
		}
		before := get(s, func() int { return len(s.results) })
		s.set(func() { s.push("ep_a", c); s.push("ep_a", c) })
		eventually(t, "a result", func() bool { return get(s, func() bool { return len(s.results) > before }) })
		r := get(s, func() api.TunnelReplayResult { return s.results[before] })
		if r.CommandID != c.CommandID || r.ResultToken != c.ResultToken {
			t.Errorf("%+v", r)
		}
		return r
	}
	r := run(api.TunnelReplayCommand{CommandID: "1", URL: "/x?y=1", HeaderList: [][2]string{{"x-kept", "1"}}, BodyBase64: base64of("body")})
	if r.StatusCode.Value != 200 || !*r.RequestMayHaveBeenSent || r.Body != "done" || r.ResolvedURL != h.URL+"/base/x?y=1" {
		t.Errorf("%+v", r)
	}
	if r := run(api.TunnelReplayCommand{CommandID: "2", URL: h.URL + "/whole?z=1"}); r.StatusCode.Value != 200 || r.ResolvedURL != h.URL+"/whole?z=1" {
		t.Errorf("%+v", r)
	}
	for _, bad := range []string{"http://169.254.169.254/latest", h.URL + "0/x", h.URL + "@evil.test/"} {
		if r := run(api.TunnelReplayCommand{CommandID: "3" + bad, URL: bad}); r.StatusCode.Value != 0 || *r.RequestMayHaveBeenSent || r.Error == "" {
			t.Errorf("%s: %+v", bad, r)
		}
	}
	if r := run(api.TunnelReplayCommand{CommandID: "4", URL: "/late", ExpiresAt: api.Time{Time: time.Now().Add(-time.Minute)}}); r.StatusCode.Value != 0 || r.FailureCategory != api.FailureTimeout || *r.RequestMayHaveBeenSent {
		t.Errorf("%+v", r)
	}
	for url, want := range map[string]string{h.URL: h.URL + "/", h.URL + "?a=b": h.URL + "/?a=b", h.URL + "/a b": h.URL + "/a%20b", "x": h.URL + "/base/x", "/x?to=http://y": h.URL + "/base/x?to=http://y"} {
		if r := run(api.TunnelReplayCommand{CommandID: "5" + url, URL: url, EvidenceBodyLimit: 3}); r.StatusCode.Value != 200 || r.ResolvedURL != want || r.Body != "don" || *r.CaptureComplete {
			t.Errorf("%s: %+v", url, r)
		}
	}
	s.throw("ep_a", fmt.Sprintf(`{"type":"ping","message":%d}`, time.Now().Add(3*time.Hour).Unix())) // by the server's clock it is too late
	if r := run(api.TunnelReplayCommand{CommandID: "6", URL: "/late", ExpiresAt: api.Time{Time: time.Now().Add(time.Hour)}}); r.StatusCode.Value != 0 || r.FailureCategory != api.FailureTimeout {
		t.Errorf("%+v", r)
	}
	if h.mu.Lock(); len(h.got) != 7 || h.got[0].Method != "PUT" || h.body[0] != "body" || h.got[0].Header.Get("X-Kept") != "1" {
		t.Errorf("the target got %v", h.got)
	}
	h.mu.Unlock()
}

// A replay goes where its event went, below the route's target instead of the announced one.
func TestReplaysGoWhereTheirRouteLeads(t *testing.T) {
	s := newServer(t)
	invoices, others := newTarget(t, nil), newTarget(t, nil)
	start(t, s, others.URL+"/base/?k=v", func(c *listen.Config) {
		r, err := listen.ParseRoute("invoice.* = " + invoices.URL + "/invoices")
		if err != nil {
			t.Fatal(err)
		}
		c.Endpoints[0].Routes = []listen.Route{r}
	})
	n := 0
	for _, c := range []struct{ provider, event, url, want string }{
		{"stripe", "invoice.paid", others.URL + "/base/x?k=v&to=http://a.test", invoices.URL + "/invoices/x?to=http://a.test"},
		{"stripe", "invoice.paid", others.URL + "/base/?k=v", invoices.URL + "/invoices"},
		{"stripe", "charge.refunded", others.URL + "/base/x?k=v", others.URL + "/base/x?k=v"},
		{"", "", others.URL + "/base/x?k=v", others.URL + "/base/x?k=v"}, // of a server that does not name the event
	} {
		n++
		s.set(func() {
			s.push("ep_a", api.TunnelReplayCommand{
				Type: api.TunnelReplay, CommandID: fmt.Sprint("tcmd_", n), Method: "POST", URL: c.url, ResultToken: "token", TimeoutMS: patience.Milliseconds(),
				DetectedProvider: c.provider, ProviderEventData: &api.ProviderEventData{EventType: &c.event},
			})
		})
		eventually(t, "a result", func() bool { return get(s, func() bool { return len(s.results) == n }) })
		if r := get(s, func() api.TunnelReplayResult { return s.results[n-1] }); r.StatusCode.Value != 200 || r.ResolvedURL != c.want {
			t.Errorf("%s %s: %+v, want %s", c.event, c.url, r, c.want)
		}
	}
}

// What does not match a route is only shown when there is no other target, so a replay of it is sent nowhere.
func TestAReplayWithoutATargetIsNotSent(t *testing.T) {
	s := newServer(t)
	invoices := newTarget(t, nil)
	start(t, s, "", func(c *listen.Config) {
		r, err := listen.ParseRoute("invoice.* = " + invoices.URL)
		if err != nil {
			t.Fatal(err)
		}
		c.Endpoints[0].Routes = []listen.Route{r}
	})
	event := "charge.refunded"
	s.set(func() {
		s.push("ep_a", api.TunnelReplayCommand{
			Type: api.TunnelReplay, CommandID: "tcmd_1", Method: "POST", URL: invoices.URL + "/x", ResultToken: "token", TimeoutMS: patience.Milliseconds(),
			DetectedProvider: "stripe", ProviderEventData: &api.ProviderEventData{EventType: &event},
		})
	})
	eventually(t, "a result", func() bool { return get(s, func() bool { return len(s.results) == 1 }) })
	if r := get(s, func() api.TunnelReplayResult { return s.results[0] }); r.StatusCode.Value != 0 || *r.RequestMayHaveBeenSent || r.Error == "" {
		t.Errorf("%+v", r)
	}
}

// What a replay came to is told by REST, so it needs no socket.
func TestAReplayOutlastsItsConnection(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	h := newTarget(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
			_, _ = io.WriteString(w, "done")
		case <-r.Context().Done():
		}
	})
	l := start(t, s, h.URL, nil)
	s.set(func() {
		s.push("ep_a", api.TunnelReplayCommand{Type: api.TunnelReplay, CommandID: "1", Method: "POST", URL: "/x", ResultToken: "token", TimeoutMS: patience.Milliseconds()})
	})
	eventually(t, "it is under way", func() bool { return len(h.ids()) == 1 })
	s.cut()
	eventually(t, "the next connection", func() bool { return len(told[listen.Connected](l)) == 2 })
	close(gate)
	eventually(t, "the result", func() bool { return get(s, func() bool { return len(s.results) == 1 }) })
	if r := get(s, func() api.TunnelReplayResult { return s.results[0] }); r.StatusCode.Value != 200 || r.Body != "done" {
		t.Errorf("%+v", r)
	}
}

// Whoever asked for it need not wait until the command expires.
func TestAReplayThatTheEndStopsHasAResult(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	l := start(t, s, h.URL, nil)
	s.set(func() {
		s.push("ep_a", api.TunnelReplayCommand{Type: api.TunnelReplay, CommandID: "1", Method: "POST", URL: "/x", ResultToken: "token", TimeoutMS: patience.Milliseconds()})
	})
	eventually(t, "it is under way", func() bool { return len(h.ids()) == 1 })
	if _, err := l.end(true); err != nil {
		t.Fatal(err)
	}
	got := get(s, func() []api.TunnelReplayResult { return s.results })
	if len(got) != 1 || got[0].ResultToken != "token" || got[0].Error != "stopped before an answer came" || !*got[0].RequestMayHaveBeenSent {
		t.Errorf("the results are %+v", got)
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

func TestWhatWasMissedWithoutATargetHasNotFailed(t *testing.T) {
	s := newServer(t)
	l := start(t, s, "", nil)
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool {
		return len(told[listen.Disconnected](l)) > 0 && get(s, func() bool { return len(s.gaps) == 1 })
	})
	s.arrive(api.TunnelRequest{})
	s.arrive(api.TunnelRequest{})
	s.set(func() { s.down = false })
	eventually(t, "it is back", func() bool { return len(told[listen.Offline](l)) == 1 })
	if off := told[listen.Offline](l)[0]; off.Missed != 2 || off.Shown != 2 || off.Delivered != 0 || off.Failed != 0 {
		t.Errorf("it tells %+v", off)
	}
	if sum, err := l.end(true); err != nil || sum.Shown != 2 || sum.Failed != 0 {
		t.Errorf("%+v, %v", sum, err)
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
