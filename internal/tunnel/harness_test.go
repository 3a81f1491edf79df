package tunnel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/account"
	"hookglass/internal/delivery"
	"hookglass/internal/endpoint"
	"hookglass/internal/seal"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
	"hookglass/internal/tunnel"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// bench is an account with an endpoint on a database that two nodes share.
type bench struct {
	t         testing.TB
	dbs       []*store.DB // of each node; SQLite has one
	accounts  *account.Service
	endpoints *endpoint.Service
	owner     account.Registered
	who       hookglass.Principal
	ep        hookglass.Endpoint
}

// each runs a test on each database: two nodes share one of PostgreSQL.
func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		db := storetest.SQLite(t)
		test(t, newBench(t, db, db))
	})
	t.Run("postgres", func(t *testing.T) {
		url := storetest.Migrated(t)
		test(t, newBench(t, storetest.Open(t, store.Config{URL: url}), storetest.Open(t, store.Config{URL: url})))
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newBench(t testing.TB, dbs ...*store.DB) *bench {
	t.Helper()
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	must(t, err)
	b := &bench{t: t, dbs: dbs, accounts: account.New(dbs[0], slog.New(slog.DiscardHandler)), endpoints: endpoint.New(dbs[0], keys)}
	b.owner, err = b.accounts.Register(t.Context(), account.Registration{Email: "ada@example.com"})
	must(t, err)
	_, token, err := b.accounts.CreateToken(t.Context(), hookglass.System, account.TokenRequest{
		User: b.owner.User.ID, Account: b.owner.Account.ID, Level: hookglass.LevelAccount, Scopes: hookglass.System.Scopes,
	})
	must(t, err)
	b.who = hookglass.Principal{Account: b.owner.Account.ID, User: b.owner.User.ID, Token: token.ID, Scopes: hookglass.System.Scopes}
	b.ep = b.endpoint("Payments")
	return b
}

func (b *bench) endpoint(name string) hookglass.Endpoint {
	b.t.Helper()
	e, err := b.endpoints.Create(b.t.Context(), b.who, endpoint.Draft{Name: &name})
	must(b.t, err)
	return e
}

// save stores what the test set on the endpoint.
func (b *bench) save() {
	b.t.Helper()
	must(b.t, b.dbs[0].Update(b.t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.SaveEndpoint(&b.ep) }))
}

// node is a running node.
type node struct {
	*tunnel.Service
	drain func() // as a server that stops does
	stop  func() // and waits until it has
}

// node starts a node on one of the databases.
func (b *bench) node(i int, lease time.Duration) *node {
	b.t.Helper()
	return b.nodeWith(i, lease, delivery.MailJSON)
}

// nodeWith is node where mail goes to local machines in a form of the test's own.
func (b *bench) nodeWith(i int, lease time.Duration, mail func(*hookglass.Event) []byte) *node {
	b.t.Helper()
	draining := make(chan struct{})
	s := tunnel.New(b.dbs[i%len(b.dbs)], tunnel.Config{
		Mail: mail, Retention: time.Hour, Draining: draining, Log: slog.New(slog.DiscardHandler),
	})
	s.Share()
	if lease > 0 {
		s.SetLease(lease)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Run(ctx) }()
	n := &node{Service: s, drain: sync.OnceFunc(func() { close(draining) })}
	n.stop = sync.OnceFunc(func() { n.drain(); cancel(); <-ended })
	b.t.Cleanup(n.stop)
	return n
}

// socket is the other end of a session, without a network between.
type socket struct {
	t       testing.TB
	session *tunnel.Session

	mu       sync.Mutex
	messages []api.TunnelRequest
	commands []api.TunnelReplayCommand
	words    []string // confirm, reject and disconnect with what they say
	beats    int
	clock    time.Time // by the last of them
	changed  chan struct{}
	hold     chan struct{} // while it is set, nothing is taken and no ping answered
	silent   bool          // what is sent is taken, and no ping answered
	mute     bool          // likewise, and it is noticed at once
	gone     chan struct{}
	end      func(own bool)
}

var errGone = errors.New("the socket is gone")

func (c *socket) note(f func()) error {
	c.mu.Lock()
	hold := c.hold
	c.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-c.gone:
			return errGone
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.gone:
		return errGone
	default:
	}
	f()
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

func (c *socket) word(format string, args ...any) error {
	return c.note(func() { c.words = append(c.words, fmt.Sprintf(format, args...)) })
}

func (c *socket) Confirm(_ context.Context, key string) error { return c.word("confirm %s", key) }
func (c *socket) Reject(_ context.Context, key string) error  { return c.word("reject %s", key) }

func (c *socket) Ping(context.Context) error {
	c.mu.Lock()
	silent, mute := c.silent, c.mute
	c.mu.Unlock()
	if mute {
		return errGone
	}
	if silent {
		<-c.gone
	}
	return c.note(func() {})
}

func (c *socket) Beat(_ context.Context, now time.Time) error {
	return c.note(func() { c.beats, c.clock = c.beats+1, now })
}

func (c *socket) Deliver(_ context.Context, key string, message []byte) error {
	var m api.TunnelRequest
	if err := json.Unmarshal(message, &m); err != nil {
		return err
	}
	return c.note(func() {
		if m.Type == api.TunnelReplay {
			var command api.TunnelReplayCommand
			_ = json.Unmarshal(message, &command)
			c.commands = append(c.commands, command)
			return
		}
		c.messages = append(c.messages, m)
	})
}

func (c *socket) Disconnect(reason string, reconnect bool) {
	go func() {
		_ = c.word("disconnect %s %t", reason, reconnect)
		c.close(false)
	}()
}

func (c *socket) Abort() { go c.close(false) }

// close ends the socket, as its own client or not, and waits until the session has ended.
func (c *socket) close(own bool) { c.end(own) }

// connect opens a session on a node with a fresh ticket.
func (b *bench) connect(n *node, who hookglass.Principal, ref string, client hookglass.TunnelClient) *socket {
	b.t.Helper()
	g, err := n.Connect(b.t.Context(), who, ref, client)
	must(b.t, err)
	return b.open(n, g.Ticket)
}

func (b *bench) open(n *node, ticket string) *socket {
	b.t.Helper()
	c := &socket{t: b.t, changed: make(chan struct{}), gone: make(chan struct{})}
	var err error
	opened := make(chan struct{})
	c.end = func(bool) {}
	var once sync.Once
	ended := make(chan struct{})
	c.end = func(own bool) {
		once.Do(func() {
			close(c.gone)
			<-opened
			if c.session != nil {
				c.session.End(own)
			}
			close(ended)
		})
		<-ended
	}
	c.session, err = n.Open(b.t.Context(), ticket, c)
	close(opened)
	must(b.t, err)
	b.t.Cleanup(func() { c.close(true) })
	return c
}

// subscribe asks for an endpoint's events by its id as the key.
func (c *socket) subscribe(e hookglass.Endpoint) {
	c.t.Helper()
	must(c.t, c.session.Subscribe(string(e.ID), tunnel.Wish{Endpoint: string(e.ID), TargetURL: "http://localhost:3000/in", Hostname: "ada-laptop"}))
}

// patience is for what must happen soon; a test that waits so long has failed.
const patience = 2 * time.Minute

// await waits until what is known of a socket is so.
func (c *socket) await(what string, so func() bool) {
	c.t.Helper()
	late := time.After(patience)
	for {
		c.mu.Lock()
		done, changed := so(), c.changed
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-late:
			c.t.Fatalf("waited in vain for %s: %d messages, %q", what, len(c.messages), c.words)
		}
	}
}

// got waits for a number of events and returns their ids.
func (c *socket) got(n int) (ids []string) {
	c.t.Helper()
	c.await(fmt.Sprintf("%d events", n), func() bool { return len(c.messages) >= n })
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.messages {
		ids = append(ids, m.ID)
	}
	return ids
}

// freeze makes the socket take nothing until it is thawed.
func (c *socket) freeze() (thaw func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hold := make(chan struct{})
	c.hold = hold
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hold = nil
		close(hold)
	}
}

// event makes one that is not stored yet.
func event(e hookglass.Endpoint, body string) *hookglass.Event {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, now), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook, ReceivedAt: now,
		Method: "POST", Path: "/orders", RawQuery: "a=1&a=2", URL: "https://hooks.example.com/", Proto: "HTTP/1.1", Provider: hookglass.UnknownProvider,
		SignatureStatus: hookglass.SignatureUnchecked, Size: int64(len(body)), Status: 200,
		Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "X-A", Value: "1"}}, Body: []byte(body), Reply: &hookglass.Reply{Status: 200, Source: hookglass.SourceDefault}},
	}
}

// capture stores events of an endpoint through a node and returns their ids.
func (b *bench) capture(nodeNum int, e hookglass.Endpoint, n int) (ids []string) {
	b.t.Helper()
	for i := range n {
		ev := event(e, fmt.Sprintf("body %d", i))
		must(b.t, b.dbs[nodeNum%len(b.dbs)].Capture(b.t.Context(), e.AccountID, ev))
		ids = append(ids, string(ev.ID))
	}
	return ids
}

// report says what became of an event.
func (b *bench) report(n *node, e hookglass.Endpoint, id string, status int) {
	b.t.Helper()
	_, err := n.Report(b.t.Context(), b.who, api.DeliveryReport{
		EndpointID: string(e.ID), WebhookRequestID: id, TargetURL: "http://localhost:3000/in", StatusCode: api.Some(int64(status)),
	})
	must(b.t, err)
}

// gaps are those of an endpoint that are not recovered.
func (b *bench) gaps(n *node, e hookglass.Endpoint) []hookglass.Gap {
	b.t.Helper()
	gaps, err := n.Gaps(b.t.Context(), b.who, []string{string(e.ID)}, 0, 100)
	must(b.t, err)
	for _, g := range gaps {
		c := g.Counts
		if c.Total != c.Recovered+c.Failed+c.Pending+c.Expired {
			b.t.Fatalf("the counts of %s do not balance: %+v", g.ID, c)
		}
	}
	return gaps
}

// newest is the seq of the event that was captured last.
func (b *bench) newest() (seq int64) {
	b.t.Helper()
	must(b.t, b.dbs[0].View(b.t.Context(), hookglass.System, func(v *store.View) (err error) {
		seq, err = v.NewestOfAll()
		return err
	}))
	return seq
}

// active is tunnel_active as the endpoint's record has it.
func (b *bench) active(e hookglass.Endpoint) (active bool) {
	b.t.Helper()
	must(b.t, b.dbs[0].View(b.t.Context(), b.who, func(v *store.View) error {
		got, err := v.Endpoint(string(e.ID))
		active = got.TunnelActive
		return err
	}))
	return active
}

// eventually waits for what no announcement tells.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !so() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
