package listen_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"hookglass/api"
	"hookglass/internal/listen"
)

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
	s.set(func() { s.ahead = 3 * time.Hour }) // by the server's clock it is too late
	s.throw("ep_a", get(s, s.ping))
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
