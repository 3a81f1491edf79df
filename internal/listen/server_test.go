package listen_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	jsonv2 "github.com/go-json-experiment/json"

	"hookglass/api"
	"hookglass/client"
)

// server is the other end of a tunnel, as spec: decisions, section 10, has it, and no more than that: what a client
// gets along with here, it gets along with anywhere.
type server struct {
	t    *testing.T
	http *httptest.Server

	mu       sync.Mutex
	down     bool // 503 to everything
	unacked  bool // reports of the socket are not confirmed
	behind   bool // reports of the socket wait to be read
	forgot   bool // the clients: reports that name one are refused
	deaf     bool // 404 to every report
	refuse   int  // the status of connects; 0: they work
	deleted  map[string]bool
	others   []api.Endpoint  // of the account
	tickets  map[string]bool // false: used
	connects int
	sockets  map[*socket]bool
	events   []api.TunnelRequest // in order of capture
	reports  map[string][]api.DeliveryReport
	byREST   int
	attempts map[string]bool
	gaps     []*gap
	said     []api.RecoverGap
	results  []api.TunnelReplayResult
	beats    int
	left     int       // unsubscribes
	listed   int       // lists of gaps
	pages    int       // of what was not delivered
	stalled  bool      // those are not answered
	retained time.Time // what was captured before is deleted; zero: nothing is
	closed   []websocket.StatusCode
	ahead    time.Duration // of its clock

	targets []string // that were named, in the order of the subscriptions
	barred  bool     // 403 to who asks what was not delivered
	busy    int      // reports that are answered with 503
	refusal string   // in the acknowledgements of reports over the socket; "": they are taken
}

// evidenceLimit is how much of an answer the server takes: less than a listener sends to one that says nothing of it.
const evidenceLimit = 60_000

type gap struct {
	id       string
	endpoint string
	from, to int       // of events; to -1: open
	at, back time.Time // its begin and its end; zero: now
	state    string
}

type socket struct {
	conn *websocket.Conn
	mu   sync.Mutex        // of subs
	subs map[string]string // identifier by endpoint
}

func newServer(t *testing.T) *server {
	s := &server{
		t: t, tickets: map[string]bool{}, sockets: map[*socket]bool{}, reports: map[string][]api.DeliveryReport{}, attempts: map[string]bool{}, deleted: map[string]bool{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/tunnel/connect", s.connect)
	mux.HandleFunc("POST /api/v1/tunnel/connect_anonymous", s.connect)
	mux.HandleFunc("GET /api/v1/endpoints", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, api.List[api.Endpoint]{Data: get(s, func() []api.Endpoint { return append([]api.Endpoint{}, s.others...) })})
	})
	mux.HandleFunc("GET /cable", s.cable)
	mux.HandleFunc("POST /api/v1/tunnel/delivery_reports", s.restReport)
	mux.HandleFunc("POST /api/v1/tunnel/delivery_reports_anonymous", s.restReport)
	mux.HandleFunc("GET /api/v1/tunnel/gaps", s.listGaps)
	mux.HandleFunc("GET /api/v1/tunnel/undelivered", s.undelivered)
	mux.HandleFunc("POST /api/v1/tunnel/gaps/{id}/recovery", s.recovery)
	mux.HandleFunc("POST /api/v1/tunnel/replay_results", s.replayResult)
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		down := s.down
		s.mu.Unlock()
		if down {
			refuse(w, 503, "unavailable")
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.cut(); s.http.Close() })
	return s
}

func (s *server) client(token string) *client.Client {
	c, err := client.New(s.http.URL, token)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(api.Error{Error: code, Message: code})
}

func (s *server) connect(w http.ResponseWriter, r *http.Request) {
	var body struct {
		EndpointID string `json:"endpoint_id"`
		TunnelKey  string `json:"tunnel_key"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connects++
	switch {
	case s.refuse != 0:
		refuse(w, s.refuse, map[int]string{401: "unauthorized", 403: "plan_required"}[s.refuse])
		return
	case s.deleted[body.EndpointID]:
		refuse(w, 404, "not_found")
		return
	case body.TunnelKey == "" && r.Header.Get("Authorization") == "":
		refuse(w, 401, "unauthorized")
		return
	}
	ticket := fmt.Sprintf("ticket-%d", s.connects)
	s.tickets[ticket] = true
	answer(w, api.TunnelTicket{
		Ticket: ticket, ExpiresIn: 30, URL: strings.Replace(s.http.URL, "http", "ws", 1) + "/cable?ticket=" + ticket, EndpointID: "ep_a",
		TunnelClientID: "client-" + ticket, TunnelClientCredential: "secret-" + ticket,
		TunnelProtocol: api.TunnelProtocol{DeliveryReportVersion: 2, EvidenceBodyLimit: evidenceLimit},
	})
}

func (s *server) cable(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{api.CableProtocol}})
	if err != nil {
		return
	}
	conn.SetReadLimit(1 << 20)
	defer conn.CloseNow()
	s.mu.Lock()
	good := s.tickets[r.URL.Query().Get("ticket")]
	s.tickets[r.URL.Query().Get("ticket")] = false
	c := &socket{conn: conn, subs: map[string]string{}}
	if good {
		s.sockets[c] = true
	}
	s.mu.Unlock()
	if !good || conn.Subprotocol() != api.CableProtocol {
		c.send(`{"type":"disconnect","reason":"unauthorized","reconnect":false}`)
		return
	}
	defer s.gone(c)
	c.send(`{"type":"welcome"}`)
	ctx := r.Context()
	go func() {
		tick := time.NewTicker(3 * time.Second)
		defer tick.Stop()
		for {
			if c.send(get(s, s.ping)) != nil {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			s.mu.Lock()
			s.closed = append(s.closed, websocket.CloseStatus(err))
			s.mu.Unlock()
			if code := websocket.CloseStatus(err); code == 1000 || code == 1001 {
				c.mu.Lock()
				clear(c.subs)
				c.mu.Unlock()
			}
			return
		}
		var m struct{ Command, Identifier, Data string }
		if err := json.Unmarshal(text, &m); err != nil {
			s.t.Errorf("the client sent %s", text)
			return
		}
		s.command(c, m.Command, m.Identifier, m.Data)
	}
}

func (s *server) command(c *socket, command, identifier, data string) {
	var sub api.TunnelSubscription
	if err := json.Unmarshal([]byte(identifier), &sub); err != nil || sub.Channel != "TunnelChannel" || sub.ClientID == "" {
		s.t.Errorf("identifier %q", identifier)
	}
	name, _ := json.Marshal(identifier)
	switch command {
	case "subscribe":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.targets = append(s.targets, sub.TargetURL)
		if s.deleted[sub.EndpointID] {
			c.send(`{"identifier":` + string(name) + `,"type":"reject_subscription"}`)
			return
		}
		for _, g := range s.gaps {
			if g.endpoint == sub.EndpointID && g.to < 0 {
				g.to, g.state = len(s.events), "reconnected"
			}
		}
		c.mu.Lock()
		c.subs[sub.EndpointID] = identifier
		c.mu.Unlock()
		c.send(`{"identifier":` + string(name) + `,"type":"confirm_subscription"}`)
	case "unsubscribe":
		s.mu.Lock()
		s.left++
		s.mu.Unlock()
		c.mu.Lock()
		delete(c.subs, sub.EndpointID)
		c.mu.Unlock()
	case "message":
		var act struct {
			Action string `json:"action"`
			api.DeliveryReport
		}
		if err := jsonv2.Unmarshal([]byte(data), &act); err != nil {
			s.t.Errorf("data %q: %v", data, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch act.Action {
		case "heartbeat":
			s.beats++
		case "delivery_report":
			if s.behind {
				return
			}
			if s.refusal != "" {
				c.send(fmt.Sprintf(`{"identifier":%s,"message":{"type":"delivery_report_ack","delivery_attempt_id":%q,"status":"error","error":%q}}`, name, act.DeliveryAttemptID, s.refusal))
				return
			}
			s.take(act.DeliveryReport)
			if !s.unacked {
				c.send(fmt.Sprintf(`{"identifier":%s,"message":{"type":"delivery_report_ack","delivery_attempt_id":%q,"status":"ok"}}`, name, act.DeliveryAttemptID))
			}
		default:
			s.t.Errorf("action %q", act.Action)
		}
	}
}

func (c *socket) send(text string) error {
	return c.conn.Write(context.Background(), websocket.MessageText, []byte(text))
}

func (c *socket) identifier(endpoint string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subs[endpoint]
}

// gone opens gaps behind a socket that did not say goodbye.
func (s *server) gone(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sockets, c)
	c.mu.Lock()
	defer c.mu.Unlock()
	for endpoint := range c.subs {
		s.gaps = append(s.gaps, &gap{id: fmt.Sprintf("tgap_%d", len(s.gaps)), endpoint: endpoint, from: len(s.events), to: -1, at: time.Now(), state: "open"})
	}
}

// take stores a report.
func (s *server) take(r api.DeliveryReport) {
	if r.DeliveryAttemptID == "" || r.ReportVersion != 2 || !r.StatusCode.Set || r.TargetURL == "" || r.EndpointID == "" {
		s.t.Errorf("report %+v", r)
	}
	if !s.attempts[r.DeliveryAttemptID] {
		s.attempts[r.DeliveryAttemptID] = true
		s.reports[r.WebhookRequestID] = append(s.reports[r.WebhookRequestID], r)
	}
}

func (s *server) restReport(w http.ResponseWriter, r *http.Request) {
	var body api.DeliveryReport
	if err := jsonv2.UnmarshalRead(r.Body, &body); err != nil {
		s.t.Error(err)
	}
	if strings.HasSuffix(r.URL.Path, "anonymous") != (body.TunnelKey != "") {
		s.t.Errorf("%s with key %q", r.URL.Path, body.TunnelKey)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.deaf:
		refuse(w, 404, "not_found")
		return
	case s.busy > 0:
		s.busy--
		refuse(w, 503, "unavailable")
		return
	case s.forgot && body.TunnelClientID != "":
		refuse(w, 403, "forbidden")
		return
	}
	s.byREST++
	s.take(body)
	answer(w, map[string]any{"data": map[string]any{}, "status": "ok"})
}

// delivered reports whether a report says so. The caller holds the lock.
func (s *server) delivered(id string) bool {
	return slices.ContainsFunc(s.reports[id], func(r api.DeliveryReport) bool { return r.StatusCode.Value >= 200 && r.StatusCode.Value < 300 })
}

func (s *server) counts(g *gap) (c api.GapCounts) {
	for i := g.from; i < len(s.events) && (g.to < 0 || i < g.to); i++ {
		e := s.events[i]
		switch {
		case e.EndpointID != g.endpoint:
			continue
		case s.delivered(e.ID):
			c.Recovered++
		case len(s.reports[e.ID]) > 0:
			c.Failed++
		default:
			c.Pending++
		}
		c.Total++
	}
	return c
}

func (s *server) listGaps(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed++
	if len(r.URL.Query()["endpoint_ids[]"]) > 100 {
		refuse(w, 422, "validation_failed")
		return
	}
	list := api.List[api.Gap]{Data: []api.Gap{}}
	for _, g := range s.gaps {
		if counts := s.counts(g); g.state != "recovered" && counts.Total > 0 && slices.Contains(r.URL.Query()["endpoint_ids[]"], g.endpoint) {
			back := api.Time{Time: g.back}
			if back.IsZero() {
				back.Time = time.Now()
			}
			list.Data = append(list.Data, api.Gap{ID: g.id, EndpointID: g.endpoint, State: g.state, Status: g.state, StartedAt: api.Time{Time: g.at}, DetectedAt: api.Time{Time: g.at}, ReconnectedAt: &back, Counts: counts})
		}
	}
	answer(w, list)
}

// undelivered answers pages smaller than asked for, which is allowed.
func (s *server) undelivered(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var since time.Time
	if text := q.Get("since"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339Nano, text); err != nil {
			s.t.Error(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages++
	if s.barred {
		refuse(w, 403, "forbidden")
		return
	}
	if q.Has("since") && since.Before(s.retained) || len(q["endpoint_ids[]"]) > 100 {
		refuse(w, 422, "validation_failed")
		return
	}
	if s.stalled {
		s.mu.Unlock()
		<-r.Context().Done()
		s.mu.Lock()
		return
	}
	from, to, limit := 0, len(s.events), 50
	for _, g := range s.gaps {
		if g.id == q.Get("gap_id") {
			from, limit = g.from, 10
			if g.to >= 0 {
				to = g.to
			}
		}
	}
	if q.Get("cursor") != "" {
		from, _ = strconv.Atoi(q.Get("cursor"))
	}
	out := api.Undelivered{Data: []api.TunnelRequest{}, Meta: &api.UndeliveredMeta{}}
	for i := from; i < to; i++ {
		e := s.events[i]
		if !slices.Contains(q["endpoint_ids[]"], e.EndpointID) || e.RequestedAt.Before(since) || e.RequestedAt.Before(s.retained) || s.delivered(e.ID) {
			continue
		}
		if len(out.Data) == limit {
			next := strconv.Itoa(i)
			out.Meta.NextCursor = &next
			break
		}
		out.Data = append(out.Data, e)
	}
	answer(w, out)
}

func (s *server) recovery(w http.ResponseWriter, r *http.Request) {
	var body api.RecoverGap
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, body)
	for _, g := range s.gaps {
		if g.id == r.PathValue("id") {
			if c := s.counts(g); c.Pending+c.Failed == 0 {
				g.state = "recovered"
			} else {
				g.state = "partial"
			}
			answer(w, api.One[api.Gap]{Data: api.Gap{ID: g.id, State: g.state}})
			return
		}
	}
	refuse(w, 404, "not_found")
}

func (s *server) replayResult(w http.ResponseWriter, r *http.Request) {
	var body api.TunnelReplayResult
	if err := jsonv2.UnmarshalRead(r.Body, &body); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, body)
	answer(w, map[string]any{"data": map[string]any{}})
}

// arrive captures an event and sends it to who is subscribed. What e leaves out is filled in.
func (s *server) arrive(e api.TunnelRequest) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.ID == "" {
		e.ID = fmt.Sprintf("req_%06d", len(s.events))
	}
	if e.EndpointID == "" {
		e.EndpointID = "ep_a"
	}
	if e.Method == "" {
		e.Method = "POST"
	}
	if e.Path == "" {
		e.Path = "/"
	}
	if e.RequestedAt.IsZero() {
		e.RequestedAt.Time = time.Now()
	}
	e.Type, e.BodyEncoding = api.TunnelWebhookRequest, "base64"
	s.events = append(s.events, e)
	s.push(e.EndpointID, e)
	return e.ID
}

// push sends a message to who is subscribed. The caller holds the lock.
func (s *server) push(endpoint string, message any) {
	text, _ := json.Marshal(message)
	for c := range s.sockets {
		if identifier := c.identifier(endpoint); identifier != "" {
			name, _ := json.Marshal(identifier)
			_ = c.send(`{"identifier":` + string(name) + `,"message":` + string(text) + `}`)
		}
	}
}

// ping is a sign of life. The caller holds the lock.
func (s *server) ping() string {
	return fmt.Sprintf(`{"type":"ping","message":%d}`, time.Now().Add(s.ahead).Unix())
}

// cut ends every socket without a word.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.sockets {
		_ = c.conn.CloseNow()
	}
}

// set changes the server.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// get looks at the server.
func get[T any](s *server, look func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return look()
}

func base64of(b string) string { return base64.StdEncoding.EncodeToString([]byte(b)) }

// patience is for what must happen soon; a test that waits so long has failed.
const patience = 2 * time.Minute

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); !holds(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// target is a local handler that keeps what it got.
type target struct {
	*httptest.Server
	mu   sync.Mutex
	got  []*http.Request
	body []string
	busy int
	most int
	then func(n int, w http.ResponseWriter, r *http.Request)
}

func newTarget(t *testing.T, then func(n int, w http.ResponseWriter, r *http.Request)) *target {
	h := &target{then: then}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		h.got, h.body = append(h.got, r), append(h.body, string(body))
		n := len(h.got)
		h.busy++
		h.most = max(h.most, h.busy)
		h.mu.Unlock()
		if h.then != nil {
			h.then(n, w, r)
		}
		h.mu.Lock()
		h.busy--
		h.mu.Unlock()
	}))
	t.Cleanup(h.Close)
	return h
}

// ids are the events that came, in order.
func (h *target) ids() (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.got {
		ids = append(ids, r.Header.Get("X-Service-Request-Id"))
	}
	return ids
}
