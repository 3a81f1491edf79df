package tunnel

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// flow is the progress of a session. It belongs to the running round.
type flow struct {
	sent, confirmed int // events
	bytes, arrived  int // of messages
	pinged          time.Time
	asked           time.Time // when the next ping may confirm events; see ask
	turn            int       // the subscription to begin with
	pinging         bool      // a ping is under way, the only one
	calling         bool      // a command waits for a sign of life of the client
	beat            time.Time
}

// mark is the progress of a session when a ping was sent, and the ping's result.
type mark struct {
	err           error
	events, bytes int
	cursors       map[*subscription]int64
}

func (f *flow) full() bool {
	return f.sent-f.confirmed >= windowEvents || f.bytes-f.arrived >= windowBytes
}

// pump sends on a session, in a goroutine that exists only while there is something to do. Thousands of idle sessions
// have none.
type pump struct {
	mu             sync.Mutex
	running, again bool
	over           bool
	done           chan struct{} // closed when the last round has ended after over was set
	timer          *time.Timer
}

// nudge starts a round. It returns at once.
func (x *Session) nudge() {
	p := &x.pump
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
	case p.running:
		p.again = true
	default:
		p.running = true
		go x.rounds()
	}
}

// rounds sends until nothing waits: events, commands, and signs of life. Nothing else writes to the socket, except
// answers to the client's own commands, and stayAlive while a round waits for the storage.
func (x *Session) rounds() {
	p := &x.pump
	for {
		busy, err := x.round(time.Now())
		if err != nil {
			x.conn.Abort() // the reader notices, and ends the session
		}
		p.mu.Lock()
		if err == nil && !p.over && (busy || p.again) {
			p.again = false
			p.mu.Unlock()
			continue
		}
		p.running = false
		switch {
		case p.over:
			close(p.done)
		case err == nil:
			p.timer.Reset(x.flow.next(time.Now()))
		default:
			p.over = true
			close(p.done)
		}
		p.mu.Unlock()
		return
	}
}

// halt stops the pump and waits until nothing is being sent.
func (x *Session) halt() {
	p := &x.pump
	p.mu.Lock()
	if !p.over && !p.running {
		close(p.done)
	}
	p.over = true
	p.timer.Stop()
	p.mu.Unlock()
	<-p.done
	x.pings.Wait()
	if m := x.answer.Swap(nil); m != nil && m.err == nil { // the last ping's result, which no round has handled
		_ = x.answered(&x.flow, *m)
	}
}

// round sends some of what waits. It reports whether more can be sent at once. A panic over one event ends this socket
// and nothing else; a client that comes back continues after that event.
func (x *Session) round(now time.Time) (busy bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			x.s.Log.Error("panic in a tunnel", "session", x.record.ID, "panic", p, "stack", string(debug.Stack()))
			busy, err = false, fmt.Errorf("panic: %v", p)
		}
	}()
	f := &x.flow
	if m := x.answer.Swap(nil); m != nil {
		if err := x.answered(f, *m); err != nil {
			return false, err
		}
	}
	if busy, err = x.sendAll(f); err != nil {
		return false, err
	}
	if now.Sub(f.beat) >= beatEvery {
		if err := x.conn.Beat(x.ctx, x.s.db.Now()); err != nil {
			return false, err
		}
		f.beat = now
	}
	x.ping(f, now)
	return busy, nil
}

// next returns the time until there is something to do unprompted.
func (f *flow) next(now time.Time) time.Duration {
	wait := f.beat.Add(beatEvery).Sub(now)
	if !f.pinging {
		wait = min(wait, f.due().Sub(now))
	}
	return max(wait, time.Millisecond)
}

// due returns when to ping next. While events are unconfirmed that is soon: if the client is lost right after it
// received an event, that event must not count as missed.
func (f *flow) due() time.Time {
	if f.sent > f.confirmed || f.calling {
		return f.asked
	}
	return f.pinged.Add(pingEvery)
}

// ask reports whether to ping now, and records it. Pings that confirm events are rate-limited to one per confirmEvery,
// with bursts of confirmBurst.
func (f *flow) ask(now time.Time) bool {
	if f.pinging || now.Before(f.due()) {
		return false
	}
	if earliest := now.Add(-confirmBurst * confirmEvery); f.asked.Before(earliest) {
		f.asked = earliest
	}
	f.pinging, f.pinged, f.asked = true, now, f.asked.Add(confirmEvery)
	return true
}

// stayAlive sends signs of life until end is called, once one is due: the storage may hold up the pump for longer than
// clients trust a silent server.
func (x *Session) stayAlive(f *flow) (end func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	due := time.AfterFunc(time.Until(f.beat.Add(beatEvery)), func() {
		defer close(ended)
		for x.conn.Beat(x.ctx, x.s.db.Now()) == nil { // an error shows in the next round, too
			f.beat = time.Now()
			select {
			case <-over:
				return
			case <-time.After(beatEvery):
			}
		}
	})
	return func() {
		if !due.Stop() {
			close(over)
			<-ended
		}
	}
}

// ping asks the client, when it is time, whether it has received everything that was sent.
func (x *Session) ping(f *flow, now time.Time) {
	if !f.ask(now) {
		return
	}
	m := mark{events: f.sent, bytes: f.bytes, cursors: make(map[*subscription]int64)}
	for _, sub := range x.list() {
		m.cursors[sub] = sub.cursor
	}
	x.pings.Go(func() {
		m.err = x.conn.Ping(x.ctx)
		x.answer.Store(&m)
		x.nudge()
	})
}

func (x *Session) answered(f *flow, m mark) error {
	f.pinging = false
	if m.err != nil {
		x.silent.Store(true)
		return m.err
	}
	x.Heard()
	f.confirmed, f.arrived = m.events, m.bytes
	x.mu.Lock()
	defer x.mu.Unlock()
	for sub, seq := range m.cursors {
		sub.received = max(sub.received, seq)
	}
	return nil
}

// sendAll sends some of what waits for each subscription in turn. It reports whether more can be sent at once.
func (x *Session) sendAll(f *flow) (busy bool, err error) {
	if f.calling = x.command.Load() && !x.near(); !f.calling && x.command.Swap(false) {
		if err := x.sendCommands(f); err != nil {
			return false, err
		}
	}
	subs := x.list()
	for i, first := 0, f.turn; i < len(subs); i++ {
		at := (first + i) % len(subs)
		sub := subs[at]
		if f.full() {
			f.turn = at       // so that a busy subscription does not fill the window each time
			return false, nil // the answer to a ping wakes the pump
		}
		if !sub.pending.Swap(false) {
			continue
		}
		more, err := x.send(f, sub)
		if err != nil {
			return false, err
		}
		if more {
			sub.pending.Store(true)
			busy = true
		}
	}
	return busy && !f.full(), nil
}

// send sends one batch of a subscription's events, and reports whether more may wait. An error of the storage is
// retried with the next round.
func (x *Session) send(f *flow, sub *subscription) (more bool, err error) {
	defer x.stayAlive(f)()
	type batch struct {
		e      hookglass.Endpoint
		events []*hookglass.Event
		bytes  int64 // large ones are counted but not loaded
	}
	look := func(whole bool) (batch, error) {
		return aside(func() (b batch, err error) {
			err = x.s.db.View(x.ctx, x.who, func(v *store.View) (err error) {
				weight := func() int64 { return 0 }
				if !whole {
					v, weight = v.Sparing(unboundBytes)
				}
				b.e, b.events, err = v.TunnelEvents(sub.EndpointNum, sub.cursor)
				b.bytes = weight()
				return err
			})
			return b, err
		})
	}
	b, err := look(false)
	if err == nil && b.bytes > unboundBytes {
		give, ok := x.room(b.e, b.bytes)
		if !ok {
			sub.pending.Store(true) // retried with the next sign of life
			return false, nil
		}
		defer give()
		b, err = look(true)
	}
	if err != nil {
		if !hookglass.Is(err, hookglass.CodeNotFound) { // the watcher ends subscriptions to deleted endpoints
			sub.pending.Store(true) // retried with the next sign of life
		}
		return false, nil
	}
	for i, ev := range b.events {
		message, err := json.Marshal(x.s.message(b.e, ev))
		if err != nil {
			return false, err
		}
		seq, size := ev.Seq, len(message)
		b.events[i] = nil // writing may take long; hold only what is being written
		if err := x.conn.Deliver(x.ctx, sub.key, message); err != nil {
			return false, err
		}
		sub.cursor = seq
		f.sent++
		f.bytes += size
	}
	return len(b.events) > 0, nil
}

// room reserves memory for large events, for as long as nobody else waits for it or the client is fast enough.
// Otherwise the session is ended; the client reconnects for what it has not received.
func (x *Session) room(e hookglass.Endpoint, bytes int64) (give func(), ok bool) {
	ctx := fair.Recallable(x.ctx, func() bool {
		x.s.Log.Warn("a tunnel was ended: others waited for the memory that its slow client held", "session", x.record.ID)
		go x.conn.Abort()
		return true
	})
	return x.s.bodies.Await(ctx, fair.Tenant(e.AccountID, e.Num), messageTimes*bytes, roomTime)
}

// message returns a newly captured event as clients get it.
func (s *Service) message(e hookglass.Endpoint, ev *hookglass.Event) api.TunnelRequest {
	m := s.Request(ev)
	m.Respond = answerable(e, ev) && s.db.Now().Sub(ev.ReceivedAt) < answerTime
	return m
}

// Request returns an event as clients get it.
func (s *Service) Request(ev *hookglass.Event) api.TunnelRequest {
	if ev.Type == hookglass.EventEmail {
		return api.FromTunnelMail(ev, s.Mail(ev))
	}
	return api.FromTunnelRequest(ev)
}
