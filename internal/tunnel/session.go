package tunnel

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

// Bounds of the subscriptions of one socket. A key is kept and sent with each message; it contains a target of up to
// maxURL bytes, escaped twice.
const (
	maxSubscriptions = 1000
	maxKey           = 64 << 10
	maxKeys          = 2 << 20 // bytes of all keys
)

// Session is one open socket.
type Session struct {
	s       *Service
	conn    Conn
	who     hookglass.Principal
	home    int64 // the endpoint that the ticket was requested for
	record  hookglass.TunnelSession
	ctx     context.Context
	cancel  context.CancelFunc
	pump    pump
	flow    flow
	answer  atomic.Pointer[mark] // of a ping
	pings   sync.WaitGroup
	heard   atomic.Int64 // when the client last gave a sign of life, by the database's clock, in microseconds
	told    atomic.Bool  // the server has ended it
	silent  atomic.Bool  // the client did not answer a ping
	command atomic.Bool  // a command may wait

	mu   sync.Mutex
	subs []*subscription
}

// subscription is a session's subscription to one endpoint. Once it is live, only the running round touches it, except
// for the fields that say otherwise.
type subscription struct {
	hookglass.TunnelSubscription
	key      string
	cursor   int64       // sent up to
	received int64       // known to have been received; guarded by the session's mu
	stored   int64       // received, as last stored; used by the keeper only
	pending  atomic.Bool // there may be events after the cursor
	events   *store.Subscription
	commands *store.Subscription
}

func stopping() error {
	return &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "The service is stopping."}
}

// Open redeems a ticket and opens a session. It answers unauthorized, and unavailable when the server stops.
func (s *Service) Open(ctx context.Context, ticket string, conn Conn) (*Session, error) {
	select {
	case <-s.held:
	case <-s.stops:
		return nil, stopping()
	case <-ctx.Done():
		return nil, &hookglass.Error{Code: hookglass.CodeUnavailable, Message: "The service is starting.", Err: ctx.Err()}
	}
	x := &Session{
		s: s, conn: conn,
		record: hookglass.TunnelSession{ID: hookglass.NewSortableID(hookglass.PrefixTunnelSession, s.db.Now()), Node: s.node},
	}
	t, err := aside(func() (hookglass.TunnelTicket, error) { return s.redeem(ctx, ticket, &x.record) })
	if err != nil {
		return nil, err
	}
	x.who, x.home = t.Who, t.EndpointNum
	x.ctx, x.cancel = context.WithCancel(context.Background())
	x.flow.pinged, x.flow.beat = time.Now(), time.Now()
	x.pump.done, x.pump.timer = make(chan struct{}), time.AfterFunc(beatEvery, x.nudge)
	x.Heard()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		x.cancel()
		x.halt()
		s.end(store.TunnelEnd{Session: x.record.Num})
		return nil, stopping()
	}
	s.sessions[x] = struct{}{}
	s.open.Add(1)
	s.mu.Unlock()
	s.Log.Debug("tunnel opened", "session", x.record.ID, "client", x.record.Client.Name)
	return x, nil
}

// Heard records a sign of life of the client.
func (x *Session) Heard() { x.heard.Store(x.s.db.Now().UnixMicro()) }

// Wish is a client's request to subscribe, with what it says about itself.
type Wish struct {
	Endpoint  string // id or custom id
	TargetURL string
	Hostname  string
}

// Subscribe starts to send an endpoint's events under a key, and confirms or rejects that to the client. A key that is
// in use already changes nothing. Storage that does not answer is no refusal, which a client would take for the end:
// the socket is ended, and the client is to come again. After an error the socket must be closed.
func (x *Session) Subscribe(key string, w Wish) error {
	x.Heard()
	if x.find(key) != nil {
		return nil
	}
	sub, err := aside(func() (*subscription, error) { return x.subscribe(key, w) })
	if err != nil {
		if code := hookglass.CodeOf(err); code == hookglass.CodeInternal || code == hookglass.CodeUnavailable {
			x.s.Log.Warn("a subscription to a tunnel failed", "session", x.record.ID, "error", err)
			x.disconnect(ReasonRestart, true)
			return nil // the disconnect closes the socket once the client was told
		}
		return x.conn.Reject(x.ctx, key)
	}
	if err := x.conn.Confirm(x.ctx, key); err != nil {
		return err
	}
	sub.events = x.s.db.Watch(store.TopicEvents(sub.EndpointNum), func() { sub.pending.Store(true); x.nudge() })
	sub.commands = x.s.db.Watch(store.TopicCommands(sub.EndpointNum), func() { x.command.Store(true); x.nudge() })
	sub.pending.Store(true)
	x.command.Store(true)
	x.mu.Lock()
	x.subs = append(x.subs, sub)
	x.mu.Unlock()
	x.nudge()
	return nil
}

func (x *Session) subscribe(key string, w Wish) (*subscription, error) {
	full := x.full(key)
	nul := strings.Contains(w.TargetURL, "\x00") // no address holds one, nor does PostgreSQL
	if full || len(w.TargetURL) > maxURL || nul || !word(w.Hostname) {
		return nil, hookglass.Invalid("identifier", "cannot be subscribed to")
	}
	if w.Hostname == "" {
		w.Hostname = x.record.Client.Hostname
	}
	has := func(capability string) bool { return slices.Contains(x.record.Client.Capabilities, capability) }
	sub := &subscription{key: key, TunnelSubscription: hookglass.TunnelSubscription{
		SessionNum: x.record.Num, TargetURL: w.TargetURL, Hostname: w.Hostname,
		Reports: has(hookglass.CapabilityEvidence), Replays: has(hookglass.CapabilityReplay),
	}}
	err := x.s.db.Update(x.ctx, x.who, func(tx *store.Tx) error {
		_, err := tx.SubscribeTunnel(w.Endpoint, &sub.TunnelSubscription)
		return err
	})
	sub.cursor, sub.received, sub.stored = sub.Received, sub.Received, sub.Received
	return sub, err
}

// full reports whether another subscription with this key would exceed the bounds.
func (x *Session) full(key string) bool {
	bytes := len(key)
	subs := x.list()
	for _, sub := range subs {
		bytes += len(sub.key)
	}
	return len(subs) >= maxSubscriptions || len(key) > maxKey || bytes > maxKeys
}

// Unsubscribe ends a subscription at the client's request.
func (x *Session) Unsubscribe(key string) {
	x.Heard()
	if sub := x.remove(key); sub != nil {
		_, _ = aside(func() (struct{}, error) { x.s.end(store.TunnelEnd{Subscription: sub.Num}); return struct{}{}, nil })
	}
}

// remove removes a subscription from the session.
func (x *Session) remove(key string) *subscription {
	x.mu.Lock()
	i := slices.IndexFunc(x.subs, func(s *subscription) bool { return s.key == key })
	if i < 0 {
		x.mu.Unlock()
		return nil
	}
	sub := x.subs[i]
	x.subs = slices.Concat(x.subs[:i], x.subs[i+1:]) // a copy: a round may be iterating over the old slice
	x.mu.Unlock()
	sub.close()
	return sub
}

func (sub *subscription) close() {
	sub.events.Close()
	sub.commands.Close()
}

func (x *Session) find(key string) *subscription {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.IndexFunc(x.subs, func(s *subscription) bool { return s.key == key }); i >= 0 {
		return x.subs[i]
	}
	return nil
}

func (x *Session) list() []*subscription {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.subs
}

// disconnect ends the socket on the server's initiative.
func (x *Session) disconnect(reason string, reconnect bool) {
	if !x.told.Swap(true) {
		x.conn.Disconnect(reason, reconnect)
	}
}

// End ends the session after its socket has ended; own says that the client closed it in good order. Otherwise, if
// nothing else is subscribed to an endpoint, a gap opens there.
func (x *Session) End(own bool) {
	now := x.s.db.Now()
	x.cancel()
	x.halt()
	x.mu.Lock()
	subs := x.subs
	x.subs = nil
	e := store.TunnelEnd{Session: x.record.Num, Received: make(map[int64]int64, len(subs))}
	for _, sub := range subs {
		e.Received[sub.Num] = sub.received
	}
	x.mu.Unlock()
	for _, sub := range subs {
		sub.close()
	}
	e.Lost = !own || x.told.Load()
	e.Since = now
	if x.silent.Load() {
		e.Since = time.UnixMicro(x.heard.Load())
	}
	x.s.end(e)
	x.s.mu.Lock()
	delete(x.s.sessions, x)
	x.s.mu.Unlock()
	x.s.open.Done()
	x.s.Log.Debug("tunnel closed", "session", x.record.ID, "own", own)
}

// end stores the end of a session or of one subscription, or leaves it to whoever is just storing others. If the
// storage is unavailable, the keeper retries; if the node dies before that, other nodes end the session.
func (s *Service) end(e store.TunnelEnd) {
	s.mu.Lock()
	s.ended = append(s.ended, e)
	s.mu.Unlock()
	s.settle(context.Background())
}

// settle stores the ends that wait, many in one transaction: a node that stops has thousands. It does nothing while
// another goroutine does that.
func (s *Service) settle(ctx context.Context) {
	for len(s.unsettled()) > 0 && s.settling.TryLock() {
		err := s.storeEnds(ctx)
		s.settling.Unlock()
		if err != nil {
			s.Log.Warn("the ends of tunnels could not be stored yet", "error", err)
			return
		}
	}
}

// unsettled returns the first ends that wait, as many as one transaction stores.
func (s *Service) unsettled() []store.TunnelEnd {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended[:min(len(s.ended), endAtOnce)]
}

// storeEnds stores some of the ends that wait. The caller holds settling.
func (s *Service) storeEnds(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopFor)
	defer cancel()
	some := s.unsettled()
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.EndTunnels(some) })
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended = s.ended[len(some):]; len(s.ended) == 0 {
		s.ended = nil
	}
	return nil
}

// Report stores a client's report on a delivery for one of its subscriptions; the report need not name the endpoint.
// See [Service.Report].
func (x *Session) Report(key string, r api.DeliveryReport) error {
	if r.EndpointID == "" {
		if sub := x.find(key); sub != nil {
			r.EndpointID = string(sub.EndpointID)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopFor)
	defer cancel()
	_, err := x.s.Report(ctx, x.who, r)
	return err
}
