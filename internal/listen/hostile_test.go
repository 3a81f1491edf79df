package listen_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass/api"
	"hookglass/internal/listen"
)

// throw sends texts as they are to who is connected, with the identifier of its subscription for %s.
func (s *server) throw(endpoint string, texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.sockets {
		name, _ := json.Marshal(c.identifier(endpoint))
		for _, text := range texts {
			_ = c.send(strings.ReplaceAll(text, "%s", string(name)))
		}
	}
}

// A server that sends what no server does ends no listener, and is no longer listened to only where it is no JSON.
func TestWhatNoServerSendsIsPassedOver(t *testing.T) {
	s, h := newServer(t), newTarget(t, nil)
	l := start(t, s, h.URL, nil)
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	long := strings.Repeat("x", 1<<20)
	for _, text := range []string{
		`null`, `{}`, `{"type":"ping"}`, `{"type":"ping","message":"soon"}`, `{"type":"ping","message":9223372036854775807}`, `{"type":"ping","message":-1}`, `{"type":"unknown"}`,
		`{"type":"confirm_subscription"}`, `{"type":"confirm_subscription","identifier":"other"}`, `{"type":"reject_subscription"}`, `{"type":"reject_subscription","identifier":"other"}`,
		`{"identifier":"other","message":{"type":"webhook_request","id":"req_other"}}`, `{"identifier":%s}`, `{"identifier":%s,"message":null}`, `{"identifier":%s,"message":7}`,
		`{"identifier":%s,"message":` + deep + `}`, `{"identifier":%s,"message":{"type":7}}`, `{"identifier":%s,"message":{"type":"webhook_request"}}`,
		`{"identifier":%s,"message":{"type":"webhook_request","id":7}}`, `{"identifier":%s,"message":{"type":"webhook_request","id":"` + long + `"}}`,
		`{"identifier":%s,"message":{"type":"webhook_request","id":"req_list","header_list":[["a"]]}}`, `{"identifier":%s,"message":{"type":"webhook_request","id":"req_x","body":{}}}`,
		`{"identifier":%s,"message":{"type":"tunnel_replay_command"}}`, `{"identifier":%s,"message":{"type":"tunnel_replay_command","command_id":"` + long + `"}}`,
		`{"identifier":%s,"message":{"type":"tunnel_replay_command","command_id":[]}}`, `{"identifier":%s,"message":{"type":"delivery_report_ack"}}`,
		`{"identifier":%s,"message":{"type":"delivery_report_ack","delivery_attempt_id":{},"status":1}}`,
	} {
		s.throw("ep_a", text)
	}
	s.arrive(api.TunnelRequest{ID: "req_good", Latin1: []string{"", "/", "/path", "/header_list", "/header_list/9/1", "/header_list/-1/1", "/header_list/0/7", "/body", "x"}})
	eventually(t, "the event behind it", func() bool { ids := h.ids(); return len(ids) > 0 && ids[len(ids)-1] == "req_good" })
	if n := len(told[listen.Disconnected](l)); n > 0 {
		t.Errorf("the connection was lost %d times", n)
	}
	if r := told[listen.Replayed](l); len(r) > 0 {
		t.Errorf("replayed: %+v", r)
	}
	for _, w := range told[listen.Warning](l) {
		if !strings.HasPrefix(w.Text, "the server sent an event that cannot be read: ") {
			t.Errorf("it warns: %s", w.Text)
		}
	}
	if n := len(told[listen.Warning](l)); n != 4 {
		t.Errorf("it warns of %d events", n)
	}
	s.throw("ep_a", `{"type":"welcome"}`)
	s.arrive(api.TunnelRequest{ID: "req_welcome"})
	eventually(t, "the event behind it", func() bool { return slices.Contains(h.ids(), "req_welcome") })
	if n := get(s, func() int { return len(s.targets) }); n != 1 {
		t.Errorf("welcomed again, it subscribed again: %d times", n)
	}
	s.throw("ep_a", `{"type":`)
	eventually(t, "a new connection", func() bool { return get(s, func() int { return s.connects }) >= 2 })
}

// A server chooses what comes, but not how many requests it becomes: no field ends the head.
func TestAServerWritesNoRequestOfItsOwn(t *testing.T) {
	s := newServer(t)
	address, next := raw(t)
	start(t, s, address, nil)
	evil := " 1\r\nX-Evil: 1\r\n\r\nGET /admin HTTP/1.1\r\nHost: inside\r\n\r\n"
	id := s.arrive(api.TunnelRequest{ID: "req_1" + evil, Method: "GET", Path: "/a" + evil, QueryString: evil, IPAddress: &evil, HeaderList: [][2]string{{"X-A", evil}, {"X-B" + evil, "1"}, {"Host", evil}}})
	got := next()
	if strings.Contains(got, "X-Evil: 1\r") || strings.Contains(got, "X-Service-Request-Id: "+id) || strings.Count(got, "HTTP/1.1\r\n") != 1 || strings.Count(got, "\r\nHost: "+address+"\r\n") != 1 || !strings.Contains(got, "X-Service-Tunnel: true\r\n") {
		t.Errorf("%q", got)
	}
}

// A server may ask for any number of replays: some are made at once, some wait, and the others are left.
func TestReplaysWithoutEndTakeNoMemoryWithoutEnd(t *testing.T) {
	s := newServer(t)
	free := make(chan struct{})
	h := newTarget(t, func(int, http.ResponseWriter, *http.Request) { <-free })
	l := start(t, s, h.URL, nil)
	before := runtime.NumGoroutine()
	const asked = 5_000
	for i := range asked {
		s.throw("ep_a", fmt.Sprintf(`{"identifier":%%s,"message":{"type":"tunnel_replay_command","command_id":"tcmd_%d","method":"POST","url":"/x","timeout_ms":600000,"result_token":"trt"}}`, i))
	}
	eventually(t, "those that are too many", func() bool { return len(told[listen.Warning](l)) > 0 })
	most := runtime.NumGoroutine() - before
	h.mu.Lock()
	busy := h.most
	h.mu.Unlock()
	if busy > 64 || most > 1_000+4*64+100 {
		t.Errorf("%d replays at once, %d goroutines", busy, most)
	}
	close(free)
	eventually(t, "the results of those that were taken", func() bool { return get(s, func() bool { return len(s.results) >= 1_000 }) })
	tries := 0
	eventually(t, "a replay once there is room", func() bool {
		tries++
		s.throw("ep_a", fmt.Sprintf(`{"identifier":%%s,"message":{"type":"tunnel_replay_command","command_id":"tcmd_last_%d","method":"POST","url":"/last","result_token":"trt"}}`, tries))
		return get(s, func() bool {
			return slices.ContainsFunc(s.results, func(r api.TunnelReplayResult) bool { return strings.HasPrefix(r.CommandID, "tcmd_last") })
		})
	})
}

// A server that takes no report has the listener keep what came of each event, and of large answers what they were.
func TestReportsThatNobodyTakesAreKeptWithoutTheirBodies(t *testing.T) {
	const answer, events = 1 << 20, 100
	r := listen.NewReports(func(string) {})
	for i := range events {
		r.Keep(api.DeliveryReport{DeliveryAttemptID: fmt.Sprint(i), TunnelEvidence: api.TunnelEvidence{Body: strings.Repeat("x", answer)}})
	}
	whole, bytes := 0, 0
	for i := range events {
		report := r.Kept(fmt.Sprint(i))
		if report.DeliveryAttemptID == "" {
			t.Fatalf("report %d is gone", i)
		}
		if bytes += len(report.Body); len(report.Body) == answer {
			whole++
		} else if *report.RetainedBytes != 0 || *report.CaptureComplete {
			t.Errorf("report %d: %+v", i, report.TunnelEvidence)
		}
	}
	if bytes > 64<<20 || whole != 64 || r.Kept("99").Body == "" {
		t.Errorf("%d bytes are kept, %d whole", bytes, whole)
	}
}

// One report that the server does not take is kept, however many it takes after it; of too many the oldest go.
func TestReportsThatAreTakenPushOutNoOther(t *testing.T) {
	const bound, large = 10_000, 1 << 20
	warned := 0
	var r listen.Reports
	r = listen.NewReports(func(string) {
		if warned++; r.Busy() { // whoever is told may take as long as a terminal that stands still
			t.Error("reports wait for a warning")
		}
	})
	keep := func(attempt string, body string) {
		r.Keep(api.DeliveryReport{DeliveryAttemptID: attempt, TunnelEvidence: api.TunnelEvidence{Body: body}})
	}
	keep("stuck", "answer")
	for i := range 5 * bound {
		keep(fmt.Sprint("taken ", i), "")
		r.Acked(fmt.Sprint("taken ", i))
	}
	if r.Kept("stuck").Body != "answer" {
		t.Error("the one that was not taken is gone")
	}
	if n := r.Listed(); n > 2*bound {
		t.Errorf("%d are remembered", n)
	}
	for i := range bound {
		keep(fmt.Sprint("kept ", i), "")
	}
	if r.Kept("stuck").DeliveryAttemptID != "" || r.Kept("kept 0").DeliveryAttemptID == "" || warned != 1 {
		t.Error("of more than are kept it is not the oldest that goes")
	}
	for i := range 100 { // those whose answers are gone are known after others went from between them, too
		keep(fmt.Sprint("large ", i), strings.Repeat("x", large))
	}
	for i := range 5 * bound {
		if keep(fmt.Sprint("later ", i), ""); i > 0 {
			r.Acked(fmt.Sprint("later ", i))
		}
	}
	for i := range 64 {
		keep(fmt.Sprint("larger ", i), strings.Repeat("x", large))
	}
	bytes := 0
	for i := range 100 {
		bytes += len(r.Kept(fmt.Sprint("large ", i)).Body)
	}
	if bytes != 0 || r.Kept("larger 0").Body == "" {
		t.Errorf("%d bytes of older answers are kept, of the newer ones %d", bytes, len(r.Kept("larger 0").Body))
	}
}

// A server that says to come back in a hundred years is asked again before.
func TestAServerIsWaitedForWithinBounds(t *testing.T) {
	if wait := listen.Asked(time.Second, 100*365*24*time.Hour); wait != 5*time.Minute {
		t.Error(wait)
	}
	if wait := listen.Asked(time.Second, 30*time.Second); wait != 30*time.Second {
		t.Error(wait)
	}
}
