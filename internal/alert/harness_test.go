package alert_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/alert"
	"hookglass/internal/endpoint"
	"hookglass/internal/outbound"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// yard is a database with an account, an endpoint and a clock.
type yard struct {
	t     *testing.T
	db    *store.DB
	keys  *seal.Keys
	who   hookglass.Principal
	ep    hookglass.Endpoint
	clock *clock
	svc   *alert.Service
}

func each(t *testing.T, test func(t *testing.T, y *yard)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
		must(t, err)
		r, err := account.New(db, slog.New(slog.DiscardHandler)).Register(t.Context(), account.Registration{Email: "ada@example.com"})
		must(t, err)
		y := &yard{t: t, db: db, keys: keys, who: hookglass.Principal{Account: r.Account.ID, User: r.User.ID, Scopes: hookglass.System.Scopes}, clock: &clock{}}
		name := "Payments"
		y.ep, err = endpoint.New(db, keys).Create(t.Context(), y.who, endpoint.Draft{Name: &name})
		must(t, err)
		y.svc = y.node()
		test(t, y)
	})
}

// node is one more process on the database.
func (y *yard) node() *alert.Service {
	y.t.Helper()
	rule, err := outbound.ParseRule("127.0.0.1/32:1-65535")
	must(y.t, err)
	return alert.New(y.db, alert.Config{
		Client: outbound.New(outbound.Config{Allow: []outbound.Rule{rule}}), Sealer: y.keys, Log: slog.New(slog.DiscardHandler), Now: y.clock.now,
		Delay: func(time.Duration) time.Duration { return 0 },
	})
}

// run has a node send until the test ends, or stop is called.
func (y *yard) run(s *alert.Service) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				y.t.Error(err)
			}
		})
	}
	y.t.Cleanup(stop)
	return stop
}

// capture stores an event as reception does.
func (y *yard) capture(body string) *hookglass.Event { y.t.Helper(); return y.captureWith(nil, body) }

func (y *yard) captureWith(headers hookglass.Headers, body string) *hookglass.Event {
	y.t.Helper()
	return y.captureAll(headers, body, store.Work{})
}

// captureFor stores an event with tasks.
func (y *yard) captureFor(body string, tasks ...store.TaskKind) *hookglass.Event {
	y.t.Helper()
	return y.captureAll(nil, body, store.Work{Tasks: tasks})
}

func (y *yard) captureAll(headers hookglass.Headers, body string, follow store.Work) *hookglass.Event {
	y.t.Helper()
	now := y.clock.now().UTC().Truncate(time.Microsecond)
	e := &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, now), EndpointNum: y.ep.Num, EndpointID: y.ep.ID, Type: hookglass.EventWebhook, ReceivedAt: now,
		Method: "POST", Path: "/orders", URL: "http://example.com/", Proto: "HTTP/1.1", Size: int64(len(body)), Provider: "unknown",
		SignatureStatus: hookglass.SignatureUnchecked,
		Payload:         &hookglass.Payload{Headers: append(hookglass.Headers{{Name: "X-Canary", Value: "blue"}}, headers...), Body: []byte(body), Reply: &hookglass.Reply{Status: 200, Source: hookglass.SourceDefault}},
	}
	must(y.t, y.db.CaptureWith(y.t.Context(), y.who.Account, e, follow))
	return e
}

func (y *yard) update(fn func(*store.Tx) error) {
	y.t.Helper()
	must(y.t, y.db.Update(y.t.Context(), hookglass.System, fn))
}

// webhook makes a channel that leads to a URL and follows what is named.
func (y *yard) webhook(name, url string, events ...string) hookglass.Channel {
	y.t.Helper()
	kind := hookglass.ChannelWebhook
	c, _, err := y.svc.CreateChannel(y.t.Context(), y.who, alert.ChannelDraft{Name: &name, Kind: &kind, Config: &alert.ChannelSettings{URL: &url, Secret: new(secret), Events: &events}})
	must(y.t, err)
	return c
}

// pass moves the clock on and has the nodes look.
func (y *yard) pass(d time.Duration) {
	y.clock.advance(d)
	y.update(func(tx *store.Tx) error { tx.Announce(store.TopicNotifications); return nil })
}

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func (y *yard) channel(id string) (c hookglass.Channel) {
	y.t.Helper()
	must(y.t, y.db.View(y.t.Context(), hookglass.System, func(v *store.View) (err error) {
		c, err = v.Channel(id)
		return err
	}))
	return c
}

// watch makes an alert.
func (y *yard) watch(kind hookglass.AlertKind, config alert.Settings, channels ...string) hookglass.Alert {
	y.t.Helper()
	name := "Watch"
	a, err := y.svc.Create(y.t.Context(), y.who, string(y.ep.ID), alert.Draft{Name: &name, Kind: &kind, Config: &config, ChannelIDs: &channels})
	must(y.t, err)
	return a
}

// judge evaluates on several nodes at the same time, and returns the alert as it is then.
func (y *yard) judge(a hookglass.Alert) hookglass.Alert {
	y.t.Helper()
	done := make(chan error)
	for range 3 {
		go func() { done <- y.node().Evaluate(y.t.Context()) }()
	}
	for range 3 {
		must(y.t, <-done)
	}
	must(y.t, y.db.View(y.t.Context(), hookglass.System, func(v *store.View) (err error) {
		a, err = v.Alert(string(y.ep.ID), a.ID)
		return err
	}))
	return a
}

// want judges and checks the state, the lines in the feed and the incidents.
func (y *yard) want(when string, a hookglass.Alert, state hookglass.AlertState, incidents int) {
	y.t.Helper()
	got := y.judge(a)
	must(y.t, y.db.View(y.t.Context(), hookglass.System, func(v *store.View) error {
		lines, err := v.Activity(hookglass.ActivityAlertTriggered, time.Now().Add(-24*time.Hour), 100)
		if err != nil {
			return err
		}
		history, err := v.Incidents(string(y.ep.ID), a.ID, 0, 100)
		open := 0
		for _, i := range history {
			if i.ResolvedAt.IsZero() {
				open++
			}
		}
		if got.State != state || len(lines) != incidents || len(history) != incidents || (open == 1) != (state == hookglass.AlertTriggered) || open > 1 {
			y.t.Errorf("%s: it is %s with %d lines and %d incidents, %d of them open; want %s and %d", when, got.State, len(lines), len(history), open, state, incidents)
		}
		return err
	}))
}

// clock is the time, which a test moves on.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// hit is a message that a receiver got.
type hit struct {
	path   string
	target string // the path with the query
	header http.Header
	raw    []byte
	body   map[string]any
}

// receiver is a chat or a webhook on loopback that answers as it is told.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	hits []hit
}

func newReceiver(t *testing.T, answer func(n int) int) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h := hit{path: req.URL.Path, target: req.URL.RequestURI(), header: req.Header.Clone()}
		h.raw, _ = io.ReadAll(req.Body)
		if err := json.Unmarshal(h.raw, &h.body); err != nil {
			t.Errorf("a message is no JSON: %v", err)
		}
		r.mu.Lock()
		r.hits = append(r.hits, h)
		n := len(r.hits)
		r.mu.Unlock()
		w.WriteHeader(answer(n))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []hit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]hit(nil), r.hits...)
}

func always(status int) func(int) int { return func(int) int { return status } }

// until waits for a condition that the database or a receiver shows.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s did not come to pass", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
