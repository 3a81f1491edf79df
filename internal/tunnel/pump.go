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

// flow is how far a session has come. It belongs to the round that is under way.
type flow struct {
	sent, confirmed int // events
	bytes, arrived  int // of messages
	pinged          time.Time
	asked           time.Time // moves on by confirmEvery with each ping, from confirmBurst of them ago at the earliest
	turn            int       // of the subscriptions, whose it is first
	pinging         bool      // one ping at a time is under way
	calling         bool      // a command waits for the client to show that it is there
	beat            time.Time
}

// mark is how far a session had come when a ping went out, and what became of the ping.
type mark struct {
	err           error
	events, bytes int
	cursors       map[*subscription]int64
}

func (f *flow) full() bool {
	return f.sent-f.confirmed >= windowEvents || f.bytes-f.arrived >= windowBytes
}

// pump is who may send on a session: a goroutine that is there while there is something to do. Thousands of idle
// sessions have none.
type pump struct {
	mu             sync.Mutex
	running, again bool
	over           bool
	done           chan struct{} // closed when the last round has ended after over was set
	timer          *time.Timer
}

// nudge makes the session look. It returns at once.
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

// rounds sends until nothing waits: events as they are captured, commands, and signs of life. It is the only one that
// writes, except for answers to the client's own commands, and for signs of life while it waits for the storage.
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

// halt lets nothing more be sent, and waits until nothing is.
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
	if m := x.answer.Swap(nil); m != nil && m.err == nil { // one that came last, and that no round was told
		_ = x.answered(&x.flow, *m)
	}
}

// round sends some of what waits. It reports whether more can go at once. A panic, over an event that nobody thought
// of, ends the socket and nothing else: whoever comes back begins behind that event.
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

// next is when there is something to do without being told.
func (f *flow) next(now time.Time) time.Duration {
	wait := f.beat.Add(beatEvery).Sub(now)
	if !f.pinging {
		wait = min(wait, f.due().Sub(now))
	}
	return max(wait, time.Millisecond)
}

// due is when to ping next. What goes out now and then is asked for at once: a client that is lost right behind an
// event which it had has not missed that one.
func (f *flow) due() time.Time {
	if f.sent > f.confirmed || f.calling {
		return f.asked
	}
	return f.pinged.Add(pingEvery)
}

// ask reports whether to ping now, and counts it.
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

// stayAlive shows the client that the server is there until end is called, should that be late: a storage may let the
// pump wait for longer than clients believe in a silent server.
func (x *Session) stayAlive(f *flow) (end func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	due := time.AfterFunc(time.Until(f.beat.Add(beatEvery)), func() {
		defer close(ended)
		for x.conn.Beat(x.ctx, x.s.db.Now()) == nil { // else the next round's fails
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

// ping asks the other side, when it is time, whether it has received what was sent.
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

// sendAll sends some of what waits, of each subscription in turn. It reports whether more can go at once.
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
			f.turn = at       // else one that always has something would fill the window each time
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

// send sends what may be read together of one subscription, and reports whether more may wait. Trouble in the storage
// waits for the next look.
func (x *Session) send(f *flow, sub *subscription) (more bool, err error) {
	defer x.stayAlive(f)()
	type batch struct {
		e      hookglass.Endpoint
		events []*hookglass.Event
		bytes  int64 // of which the large are not read
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
			sub.pending.Store(true) // with the next sign of life
			return false, nil
		}
		defer give()
		b, err = look(true)
	}
	if err != nil {
		if !hookglass.Is(err, hookglass.CodeNotFound) { // what is gone, the watcher ends
			sub.pending.Store(true) // with the next sign of life
		}
		return false, nil
	}
	for i, ev := range b.events {
		message, err := json.Marshal(x.s.message(b.e, ev))
		if err != nil {
			return false, err
		}
		seq, size := ev.Seq, len(message)
		b.events[i] = nil // nothing but what is being written is held for as long as that takes
		if err := x.conn.Deliver(x.ctx, sub.key, message); err != nil {
			return false, err
		}
		sub.cursor = seq
		f.sent++
		f.bytes += size
	}
	return len(b.events) > 0, nil
}

// room waits for room for large events, and lends it for as long as nobody waits or the client keeps a pace. Otherwise
// the session ends: the client comes back for what it has not received.
func (x *Session) room(e hookglass.Endpoint, bytes int64) (give func(), ok bool) {
	ctx := fair.Recallable(x.ctx, func() bool {
		x.s.Log.Warn("a tunnel was ended: others waited for the memory that its slow client held", "session", x.record.ID)
		go x.conn.Abort()
		return true
	})
	return x.s.bodies.Await(ctx, fair.Tenant(e.AccountID, e.Num), messageTimes*bytes, roomTime)
}

// message is an event as a client is sent it when it was captured just now.
func (s *Service) message(e hookglass.Endpoint, ev *hookglass.Event) api.TunnelRequest {
	m := s.Request(ev)
	m.Respond = answerable(e, ev) && s.db.Now().Sub(ev.ReceivedAt) < answerTime
	return m
}

// Request is an event as clients get it.
func (s *Service) Request(ev *hookglass.Event) api.TunnelRequest {
	if ev.Type == hookglass.EventEmail {
		return api.FromTunnelMail(ev, s.Mail(ev))
	}
	return api.FromTunnelRequest(ev)
}
