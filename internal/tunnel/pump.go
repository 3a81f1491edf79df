package tunnel

import (
	"context"
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

// keep renews the node's lease, writes down how far clients are, and ends what dead nodes left behind.
func (s *Service) keep(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	first, purged := true, time.Now()
	for {
		err := s.renew(ctx)
		if err == nil && first {
			first = false
			close(s.held)
			err = s.sweep(ctx, !s.db.Postgres())
		} else if err == nil {
			err = s.sweep(ctx, false)
		}
		if err == nil {
			s.settle(ctx)
			if time.Since(purged) >= purgeEvery {
				purged = time.Now()
				err = s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.PurgeTunnels(purged.Add(-s.gapLife())) })
			}
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("the tunnels of this node could not be kept", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// gapLife is how long a gap is remembered once a session is back: its events are gone by then.
func (s *Service) gapLife() time.Duration { return s.Retention + 7*24*time.Hour }

func (s *Service) renew(ctx context.Context) error {
	var held bool
	received, stored := make(map[int64]int64), make(map[*subscription]int64)
	s.mu.Lock()
	had := make([]*Session, 0, len(s.sessions))
	for x := range s.sessions {
		had = append(had, x)
	}
	s.mu.Unlock()
	for _, x := range had {
		x.mu.Lock()
		for _, sub := range x.subs {
			if sub.received > sub.stored {
				received[sub.Num], stored[sub] = sub.received, sub.received
			}
		}
		x.mu.Unlock()
	}
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		if held, err = tx.RenewTunnelNode(s.node, tx.Now.Add(leaseFor)); err != nil {
			return err
		}
		return tx.SaveTunnelReceived(received)
	})
	if err != nil {
		return err
	}
	for sub, seq := range stored {
		sub.stored = seq
	}
	if !held {
		for _, x := range had { // others took them for lost
			x.disconnect(ReasonRestart, true)
		}
	}
	return nil
}

// sweep ends the sessions of nodes whose lease has ended; of all other nodes where alone says that there can be none.
func (s *Service) sweep(ctx context.Context, alone bool) error {
	at := time.Now()
	if alone {
		at = at.Add(leaseFor)
	}
	var lost []store.LostTunnelNode
	err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		lost, err = v.LostTunnelNodes(s.node, at)
		return err
	})
	if err != nil {
		return err
	}
	for _, n := range lost {
		for done := false; !done; {
			if err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
				done, err = tx.EndTunnelNode(n, endAtOnce)
				return err
			}); err != nil {
				return err
			}
		}
		s.Log.Info("tunnels of a node that is gone were ended", "node", n.ID)
	}
	return nil
}

// endAtOnce bounds the sessions that one transaction ends: captures wait behind it.
const endAtOnce = 100

// watch is the slow poll, and hears of rights that end.
func (s *Service) watch(ctx context.Context) {
	tokens := s.db.Listen(store.TopicTokens)
	defer tokens.Close()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	newest := int64(-1)
	for {
		select {
		case <-tick.C:
			newest = s.look(ctx, newest)
		case <-tokens.C:
		case <-ctx.Done():
			return
		}
		if err := s.checkRights(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("the rights of tunnels could not be looked at", "error", err)
		}
	}
}

// look wakes the sessions of endpoints with events that came since the last look.
func (s *Service) look(ctx context.Context, since int64) int64 {
	var endpoints []int64
	newest := since
	err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		endpoints, newest, err = v.EndpointsSince(since)
		return err
	})
	if err != nil {
		return since
	}
	changed := make(map[int64]bool, len(endpoints))
	for _, num := range endpoints {
		changed[num] = true
	}
	for _, x := range s.all() {
		for _, sub := range x.list() {
			if changed[sub.EndpointNum] {
				sub.pending.Store(true)
				x.nudge()
			}
		}
		if x.command.Load() {
			x.nudge()
		}
	}
	return newest
}

func (s *Service) all() []*Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Session, 0, len(s.sessions))
	for x := range s.sessions {
		all = append(all, x)
	}
	return all
}

// checkRights ends sockets whose token was revoked or has expired, and those whose endpoint is gone. A socket that has other endpoints left is
// told that the one is.
func (s *Service) checkRights(ctx context.Context) error {
	sessions := s.all()
	if len(sessions) == 0 {
		return nil
	}
	var tokens, endpoints []int64
	for _, x := range sessions {
		if x.who.Token != 0 {
			tokens = append(tokens, x.who.Token)
		}
		endpoints = append(endpoints, x.home)
		for _, sub := range x.list() {
			endpoints = append(endpoints, sub.EndpointNum)
		}
	}
	var usable map[int64]bool
	var kept map[int64]hookglass.Endpoint
	err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		if usable, err = v.UsableTokens(distinct(tokens), time.Now()); err != nil {
			return err
		}
		kept, err = v.KeptEndpoints(distinct(endpoints))
		return err
	})
	if err != nil {
		return err
	}
	for _, x := range sessions {
		x.checkRights(usable, kept)
	}
	return nil
}

func (x *Session) checkRights(usable map[int64]bool, kept map[int64]hookglass.Endpoint) {
	if x.who.Token != 0 && !usable[x.who.Token] {
		x.disconnect(ReasonUnauthorized, false)
		return
	}
	if _, there := kept[x.home]; x.who.Token == 0 && !there {
		x.disconnect(ReasonUnauthorized, false)
		return
	}
	subs := x.list()
	var lost []*subscription
	for _, sub := range subs {
		e, there := kept[sub.EndpointNum]
		switch {
		case !there,
			x.who.Token == 0 && e.AccountID != 0,
			x.who.Token != 0 && (e.AccountID != x.who.Account || x.who.Workspace != 0 && e.WorkspaceID != x.who.Workspace):
			lost = append(lost, sub)
		}
	}
	if len(lost) == 0 {
		return
	}
	if len(lost) == len(subs) {
		x.disconnect(ReasonUnauthorized, false)
		return
	}
	for _, sub := range lost {
		if x.remove(sub.key) == nil {
			continue
		}
		go func() { // a socket that is stuck must not hold up the others
			_ = x.conn.Reject(x.ctx, sub.key) // its end is noticed elsewhere
			x.s.end(ending{subscription: sub.Num})
		}()
	}
}

func distinct(nums []int64) []int64 {
	seen := make(map[int64]bool, len(nums))
	var some []int64
	for _, n := range nums {
		if !seen[n] {
			seen[n] = true
			some = append(some, n)
		}
	}
	return some
}
