package delivery_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/delivery"
	"hookglass/internal/endpoint"
	"hookglass/internal/outbound"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// yard is a database with an account, an endpoint and what forwards its events.
type yard struct {
	t         testing.TB
	db        *store.DB
	accounts  *account.Service
	endpoints *endpoint.Service
	client    delivery.Client
	owner     account.Registered
	ep        hookglass.Endpoint
	clock     *clock
	delays    *delays
	observe   func(string, hookglass.ForwardState, time.Duration)
	skipped   func()
}

func eachYard(t *testing.T, test func(t *testing.T, y *yard)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { test(t, newYard(t, db)) })
}

func newYard(t testing.TB, db *store.DB) *yard {
	t.Helper()
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	must(t, err)
	rule, err := outbound.ParseRule("127.0.0.1/32:1-65535")
	must(t, err)
	y := &yard{
		t: t, db: db, accounts: account.New(db, slog.New(slog.DiscardHandler)),
		client: outbound.New(outbound.Config{Allow: []outbound.Rule{rule}}), clock: &clock{}, delays: &delays{},
	}
	y.endpoints = endpoint.New(db, keys).Through(y.client)
	y.owner, y.ep = y.tenant("ada@example.com")
	return y
}

// tenant is an account with an endpoint.
func (y *yard) tenant(email string) (account.Registered, hookglass.Endpoint) {
	y.t.Helper()
	r, err := y.accounts.Register(y.t.Context(), account.Registration{Email: email})
	must(y.t, err)
	name := "Payments"
	e, err := y.endpoints.Create(y.t.Context(), hookglass.Principal{Account: r.Account.ID, User: r.User.ID, Scopes: hookglass.System.Scopes}, endpoint.Draft{Name: &name})
	must(y.t, err)
	return r, e
}

// target adds a target to an endpoint.
func (y *yard) target(e hookglass.Endpoint, url string, retries int64) hookglass.ForwardingTarget {
	y.t.Helper()
	name, timeout := "Target", int64(300)
	t, err := y.endpoints.CreateForwardingTarget(y.t.Context(), hookglass.System, string(e.ID), endpoint.TargetDraft{Name: &name, URL: &url, RetryCount: &retries, TimeoutSeconds: &timeout})
	must(y.t, err)
	return t
}

func (y *yard) change(t hookglass.ForwardingTarget, d endpoint.TargetDraft) {
	y.t.Helper()
	_, err := y.endpoints.UpdateForwardingTarget(y.t.Context(), hookglass.System, string(t.EndpointID), t.ID, d)
	must(y.t, err)
}

// capture stores an event as reception does.
func (y *yard) capture(e hookglass.Endpoint, headers, body string) *hookglass.Event {
	y.t.Helper()
	now := time.Now().UTC()
	ev := &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, now), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook, ReceivedAt: now,
		Method: "POST", Path: "/x", URL: "https://hooks.example.com/", Proto: "HTTP/1.1", Provider: hookglass.UnknownProvider,
		SignatureStatus: hookglass.SignatureUnchecked, Size: int64(len(body)), Status: 200,
		Payload: &hookglass.Payload{Headers: hookglass.ParseWire([]byte(headers)), Body: []byte(body), Reply: &hookglass.Reply{Status: 200, Source: hookglass.SourceDefault}},
	}
	must(y.t, y.db.CaptureWith(y.t.Context(), e.AccountID, ev, store.Work{Forward: true}))
	return ev
}

// start runs a node that forwards, and returns what stops it.
func (y *yard) start(db *store.DB) (stop func()) { return y.startBy(db, y.clock.now) }

// startBy is start with a clock.
func (y *yard) startBy(db *store.DB, now func() time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	f := delivery.NewForwarder(db, delivery.ForwardConfig{Client: y.client, Headers: y.endpoints.TargetHeaders, Log: slog.New(slog.DiscardHandler), Now: now, Delay: y.delays.choose, Observe: y.observe, Skipped: y.skipped})
	go func() { ended <- f.Run(ctx) }()
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

func (y *yard) deliveries(t hookglass.ForwardingTarget) (all []hookglass.Forward) {
	y.t.Helper()
	must(y.t, y.db.View(y.t.Context(), hookglass.System, func(v *store.View) (err error) {
		all, err = v.Forwards(string(t.EndpointID), t.ID, 0, 1000)
		return err
	}))
	return all
}

func (y *yard) read(t hookglass.ForwardingTarget) (now hookglass.ForwardingTarget) {
	y.t.Helper()
	must(y.t, y.db.View(y.t.Context(), hookglass.System, func(v *store.View) (err error) {
		now, err = v.ForwardingTarget(string(t.EndpointID), t.ID)
		return err
	}))
	return now
}

func (y *yard) failures() (lines []hookglass.Activity) {
	y.t.Helper()
	must(y.t, y.db.View(y.t.Context(), hookglass.System, func(v *store.View) (err error) {
		lines, err = v.Activity(hookglass.ActivityForwardingFailed, time.Now().Add(-time.Hour), 1000)
		return err
	}))
	return lines
}

// until waits for a condition that the database or a target shows.
func until(t testing.TB, what string, holds func() bool) {
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

// settledAll reports whether n deliveries have reached a state.
func (y *yard) settledAll(t hookglass.ForwardingTarget, n int, state hookglass.ForwardState) func() bool {
	return func() bool {
		found := 0
		for _, f := range y.deliveries(t) {
			if f.State == state {
				found++
			}
		}
		return found == n
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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

// delays chooses to wait for nothing, and keeps the bounds it was given.
type delays struct {
	mu     sync.Mutex
	bounds []time.Duration
}

func (d *delays) choose(bound time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bounds = append(d.bounds, bound)
	return 0
}

// hit is a request that a sink got.
type hit struct {
	method, path string
	header       http.Header
	body         string
}

// sink is a target on loopback that answers as it is told.
type sink struct {
	*httptest.Server
	mu   sync.Mutex
	hits []hit
}

// newSinkAway is a sink that answers 404 until it is up.
func newSinkAway(t testing.TB) (s *sink, up *atomic.Bool) {
	up = new(atomic.Bool)
	return newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			w.WriteHeader(404)
		}
	}), up
}

func newSink(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *sink {
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.hits = append(s.hits, hit{r.Method, r.URL.RequestURI(), r.Header.Clone(), string(body)})
		n := len(s.hits)
		s.mu.Unlock()
		answer(n, w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// stallingSink answers with one status, the nth request once back is closed; asked is closed when that has come.
func stallingSink(t testing.TB, nth, status int) (s *sink, asked, back chan struct{}) {
	asked, back = make(chan struct{}), make(chan struct{})
	return newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == nth {
			close(asked)
			<-back
		}
		w.WriteHeader(status)
	}), asked, back
}

// always answers with one status.
func always(status int) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func (s *sink) got() []hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]hit(nil), s.hits...)
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
