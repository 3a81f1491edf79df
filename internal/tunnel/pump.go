package tunnel

import (
	"encoding/json"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

// flow is what a pump knows of its socket.
type flow struct {
	sent, confirmed int // events
	bytes, arrived  int // of messages
	pinged          time.Time
	pinging         bool
	answers         chan mark // one ping at a time is under way
	beat            time.Time
}

// mark is how far a session had come when a ping went out.
type mark struct {
	err           error
	events, bytes int
	cursors       map[*subscription]int64
}

func (f *flow) full() bool {
	return f.sent-f.confirmed >= windowEvents || f.bytes-f.arrived >= windowBytes
}

// pump sends until the session ends: events as they are captured, commands, and signs of life. It is the only one that writes, but for
// answers to the client's own commands.
func (x *Session) pump() {
	defer close(x.pumped)
	if err := x.run(); err != nil && x.ctx.Err() == nil {
		x.conn.Abort()
	}
}

func (x *Session) run() error {
	f := flow{answers: make(chan mark, 1), pinged: time.Now(), beat: time.Now()}
	timer := time.NewTimer(beatEvery)
	defer timer.Stop()
	for {
		busy, err := x.sendAll(&f)
		if err != nil {
			return err
		}
		now := time.Now()
		if now.Sub(f.beat) >= beatEvery {
			if err := x.conn.Beat(x.ctx); err != nil {
				return err
			}
			f.beat = now
		}
		x.ping(&f, now)
		timer.Reset(f.next(now))
		if busy {
			select {
			case m := <-f.answers:
				if err := x.answered(&f, m); err != nil {
					return err
				}
			case <-x.ctx.Done():
				return nil
			default:
			}
			continue
		}
		select {
		case <-x.wake:
		case <-timer.C:
		case m := <-f.answers:
			if err := x.answered(&f, m); err != nil {
				return err
			}
		case <-x.ctx.Done():
			return nil
		}
	}
}

// next is when there is something to do without being told.
func (f *flow) next(now time.Time) time.Duration {
	wait := f.beat.Add(beatEvery).Sub(now)
	if !f.pinging {
		every := pingEvery
		if f.sent > f.confirmed {
			every = confirmEvery
		}
		wait = min(wait, f.pinged.Add(every).Sub(now))
	}
	return max(wait, time.Millisecond)
}

// ping asks the other side, when it is time, whether it has received what was sent.
func (x *Session) ping(f *flow, now time.Time) {
	every := pingEvery
	if f.sent > f.confirmed {
		every = confirmEvery
	}
	if f.pinging || now.Sub(f.pinged) < every {
		return
	}
	m := mark{events: f.sent, bytes: f.bytes, cursors: make(map[*subscription]int64)}
	for _, sub := range x.list() {
		m.cursors[sub] = sub.cursor
	}
	f.pinging, f.pinged = true, now
	go func() {
		m.err = x.conn.Ping(x.ctx)
		f.answers <- m // one has room
	}()
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
	if x.command.Swap(false) {
		if err := x.sendCommands(); err != nil {
			return false, err
		}
	}
	for _, sub := range x.list() {
		if f.full() {
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

// send sends what may be read together of one subscription, and reports whether more may wait. Trouble in the storage waits for the next look.
func (x *Session) send(f *flow, sub *subscription) (more bool, err error) {
	var e hookglass.Endpoint
	var events []*hookglass.Event
	err = x.s.db.View(x.ctx, x.who, func(v *store.View) (err error) {
		e, events, err = v.TunnelEvents(sub.EndpointNum, sub.cursor)
		return err
	})
	if err != nil {
		if !hookglass.Is(err, hookglass.CodeNotFound) { // what is gone, the watcher ends
			sub.pending.Store(true) // with the next sign of life
		}
		return false, nil
	}
	for _, ev := range events {
		message, err := json.Marshal(x.s.message(e, ev))
		if err != nil {
			return false, err
		}
		if err := x.conn.Deliver(x.ctx, sub.key, message); err != nil {
			return false, err
		}
		sub.cursor = ev.Seq
		f.sent++
		f.bytes += len(message)
	}
	return len(events) > 0, nil
}

// message is an event as a client is sent it when it was captured just now.
func (s *Service) message(e hookglass.Endpoint, ev *hookglass.Event) api.TunnelRequest {
	m := s.Request(ev)
	m.Respond = answerable(e, ev) && time.Since(ev.ReceivedAt) < AnswerTime
	return m
}

// Request is an event as clients get it.
func (s *Service) Request(ev *hookglass.Event) api.TunnelRequest {
	if ev.Type == hookglass.EventEmail {
		return api.FromTunnelMail(ev, s.Mail(ev))
	}
	return api.FromTunnelRequest(ev)
}
