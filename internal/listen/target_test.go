package listen_test

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/listen"
	"hookglass/internal/store/storetest"
)

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
	storetest.HoldPort(t, socket)
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
