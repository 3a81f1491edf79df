package listen

import (
	"context"
	"errors"
	"slices"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/client"
)

const (
	overlap  = 30 * time.Second // that a look back reaches behind the last sign of life: what was on its way then may be lost
	pageSize = 100
	maxNamed = 100 // endpoints in one question, as the server has it
)

// recover catches up on what was missed: before the listener began, as its Recovery says, and while it had no
// connection.
func (l *Listener) recover(ctx context.Context) {
	l.mu.Lock()
	lost := l.lost
	if l.from.IsZero() && !lost.IsZero() {
		// What came before this listener began was never on its way to it.
		l.from = l.lastSign(lost).Add(-min(overlap, between(l.opened, lost)))
	}
	from, o := l.from, l.outage
	if o == nil && !lost.IsZero() {
		o = newOutage()
		l.outage = o
	}
	l.mu.Unlock()
	var gaps []api.Gap
	err := l.persist(ctx, func() (err error) {
		gaps, err = l.outages(ctx)
		return err
	})
	if err != nil {
		if !lost.IsZero() || l.cfg.Recover != RecoverNone {
			l.failedToRecover(ctx, err)
		}
		return
	}
	fresh := l.fresh(gaps)
	if lost.IsZero() {
		if l.cfg.Recover != RecoverNone {
			l.recoverEarlier(ctx, gaps)
		}
		return
	}
	o.found(gaps, fresh)
	cut := false
	if l.cfg.Recover != RecoverNone {
		for _, g := range gaps {
			if !l.refused(g) {
				got := l.recoverGap(ctx, g, l.oldest(), o)
				o.leave(g, got.left)
				cut = cut || got.cut
			}
		}
		// What was on its way when the connection broke fell into no gap, if the server thought that it had arrived.
		l.since(ctx, from, o)
	}
	all := o.total(ctx, l.cfg.Recover == RecoverNone)
	if ctx.Err() != nil && (cut || all.cut || !l.reached()) {
		return // the next session goes on with it
	}
	l.mu.Lock()
	l.lost, l.from, l.outage = time.Time{}, time.Time{}, nil
	l.mu.Unlock()
	l.tell(Offline{For: away(lost, o.ended()), Missed: all.missed(), Delivered: all.succeeded, Failed: all.failed, Shown: all.shown})
}

// away is how long a listener was without a connection. The clock of a process may stand still while its machine
// sleeps, and the wall clock may be set back; what the network had kept is read after that. So the longest counts, of
// both and of the server's word on the gaps that have ended now.
func away(lost time.Time, gaps []api.Gap) time.Duration {
	away := between(lost, time.Now())
	var from, to time.Time
	for _, g := range gaps {
		if g.ReconnectedAt == nil {
			continue
		}
		if from.IsZero() || g.StartedAt.Before(from) {
			from = g.StartedAt.Time
		}
		if g.ReconnectedAt.After(to) {
			to = g.ReconnectedAt.Time
		}
	}
	return max(away, to.Sub(from), 0)
}

// between is the time between two times of this machine, by the one of its clocks that shows more.
func between(a, b time.Time) time.Duration {
	return max(b.Sub(a), b.Round(0).Sub(a.Round(0)), 0)
}

// recoverEarlier sees to outages before this listener began.
func (l *Listener) recoverEarlier(ctx context.Context, gaps []api.Gap) {
	missed := 0
	for _, g := range gaps {
		missed += int(g.Counts.Pending)
	}
	if l.cfg.Recover == RecoverAsk && missed > 0 && (l.cfg.Ask == nil || !l.cfg.Ask(ctx, missed)) {
		l.mu.Lock()
		for _, g := range gaps {
			l.declined[g.ID] = true
		}
		l.mu.Unlock()
		for _, g := range gaps {
			if ctx.Err() == nil && g.Counts.Pending > 0 {
				_, _ = l.cfg.Client.RecoverGap(ctx, g.ID, api.RecoverGap{Outcome: "skipped"}) // a note for others to read, nothing more
			}
		}
		return
	}
	for _, g := range gaps {
		end := l.now()
		if g.ReconnectedAt != nil {
			end = g.ReconnectedAt.Time
		}
		if end.Before(l.oldest()) {
			continue
		}
		got := l.recoverGap(ctx, g, l.oldest(), nil)
		if got.left = 0; !got.cut && got.missed() > 0 {
			l.tell(Offline{For: end.Sub(g.StartedAt.Time), Missed: got.missed(), Delivered: got.succeeded, Failed: got.failed, Shown: got.shown})
		}
	}
}

// refused reports whether a person did not want the events of a gap.
func (l *Listener) refused(g api.Gap) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.declined[g.ID]
}

// recoverLate catches up on gaps that the server found out about only now: a node that died holds its sessions for a
// while, and until then the server does not know that nobody was connected.
func (l *Listener) recoverLate(ctx context.Context) {
	var gaps []api.Gap
	err := l.persist(ctx, func() (err error) {
		gaps, err = l.outages(ctx)
		return err
	})
	if err != nil {
		l.failedToRecover(ctx, err)
		return
	}
	if gaps = l.fresh(gaps); len(gaps) > 0 {
		l.recoverEarlier(ctx, gaps)
	}
}

// outages are the gaps of all endpoints, oldest first.
func (l *Listener) outages(ctx context.Context) (all []api.Gap, err error) {
	for ids := range slices.Chunk(l.ids(), maxNamed) {
		some, err := l.cfg.Client.Gaps(ctx, ids)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(some, func(g api.Gap) bool { return !nameable(g.ID) })...)
	}
	slices.SortStableFunc(all, func(a, b api.Gap) int { return a.StartedAt.Compare(b.StartedAt.Time) })
	return all, nil
}

// fresh are the gaps that were not seen before.
func (l *Listener) fresh(gaps []api.Gap) (some []api.Gap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range gaps {
		if l.gaps.see(g.ID) {
			some = append(some, g)
		}
	}
	return some
}

// oldest is how far back events are wanted.
func (l *Listener) oldest() time.Time {
	if l.cfg.Recover == RecoverRecent {
		return l.now().Add(-recentWindow)
	}
	return time.Time{}
}

// lastSign is the server's time of its last sign of life before a connection was lost. The caller holds the lock.
func (l *Listener) lastSign(lost time.Time) time.Time {
	if l.ping.IsZero() || l.pinged.After(lost) {
		return lost.Add(l.ping.Sub(l.pinged)) // a ping of the new connection tells how the clocks differ
	}
	return l.ping
}

// recoverGap delivers the events of a gap, from a time on, and tells the server.
func (l *Listener) recoverGap(ctx context.Context, g api.Gap, oldest time.Time, of *outage) outcome {
	lane := l.lanes[g.EndpointID]
	switch {
	case lane == nil:
		return outcome{}
	case g.Counts.Pending == 0 && g.Counts.Failed > 0 && l.cfg.Recover != RecoverAll: // what failed was tried, and is for a person to see
		if g.State == string(hookglass.GapReconnected) { // who tried it did not come to say so
			l.recovered(ctx, g, api.RecoverGap{Outcome: "partial"}, nil)
		}
		return outcome{}
	}
	var total outcome
	var err error
	for cursor := ""; ; {
		var page api.Undelivered
		err = l.persist(ctx, func() (err error) {
			page, err = l.cfg.Client.UndeliveredIn(ctx, g, client.Page{Limit: pageSize, Cursor: cursor})
			return err
		})
		if err != nil {
			break
		}
		total.add(lane.deliverAll(ctx, page.Data, oldest, of))
		if total.cut || page.Meta == nil || page.Meta.NextCursor == nil {
			break
		}
		cursor = *page.Meta.NextCursor
	}
	said := api.RecoverGap{Outcome: "completed", AttemptedCount: int64(total.attempted), SucceededCount: int64(total.succeeded), FailedCount: int64(total.failed)}
	total.cut = total.cut || err != nil
	switch {
	case total.cut:
		said.Outcome = "interrupted"
	case total.failed > 0 || total.shown > 0 || total.left > 0:
		said.Outcome = "partial"
	}
	l.recovered(ctx, g, said, err)
	return total
}

// recovered tells the server how a recovery went, and the person where something of it failed.
func (l *Listener) recovered(ctx context.Context, g api.Gap, said api.RecoverGap, err error) {
	saying, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer cancel()
	if _, told := l.cfg.Client.RecoverGap(saying, g.ID, said); told != nil && err == nil {
		err = told
	}
	if err != nil {
		l.failedToRecover(ctx, err)
	}
}

// deliverAll delivers events and returns when each is settled.
func (a *lane) deliverAll(ctx context.Context, events []api.TunnelRequest, oldest time.Time, of *outage) (o outcome) {
	var sights []*sight
	for i := range events {
		r := &events[i]
		if !nameable(r.ID) {
			continue
		}
		if r.RequestedAt.Before(oldest) {
			o.left++
			continue
		}
		if s := a.offer(ctx, r, true); s != nil {
			sights = append(sights, s)
			of.take(r.ID, s)
		} else if _, wanted := a.endpoint.route(r); wanted { // the listener ends, or has as many as it is to take
			o.cut = true
			break
		}
	}
	for _, s := range sights {
		if !o.settled(ctx, s) {
			break
		}
	}
	return o
}

// since delivers what was captured since a time and not delivered yet.
func (l *Listener) since(ctx context.Context, t time.Time, of *outage) {
	if oldest := l.oldest(); t.Before(oldest) {
		t = oldest // what is not wanted would be listed each time
	}
	for ids := range slices.Chunk(l.ids(), maxNamed) {
		l.sinceOf(ctx, ids, t, of)
	}
}

// sinceOf is since for some endpoints: it asks again and again until nothing new is there.
func (l *Listener) sinceOf(ctx context.Context, ids []string, t time.Time, of *outage) {
	for fresh := true; fresh && ctx.Err() == nil; {
		fresh = false
		newest := t
		// Page by page to the end: what was tried and failed is listed too, and may stand before what was never tried.
		for cursor, more := "", true; more && ctx.Err() == nil; {
			var page api.Undelivered
			err := l.persist(ctx, func() (err error) {
				page, err = l.cfg.Client.UndeliveredSince(ctx, ids, t, client.Page{Limit: pageSize, Cursor: cursor})
				return err
			})
			if tooOld(err) { // also on a later page: what is kept moves on while a slow handler works
				if t = l.retained(ctx, ids, t); t.IsZero() {
					return
				}
				newest, fresh = t, true
				break
			}
			if err != nil {
				l.failedToRecover(ctx, err)
				return
			}
			if n := len(page.Data); n > 0 {
				newest = page.Data[n-1].RequestedAt.Time
			}
			for id, some := range l.unseen(page.Data) {
				fresh = true
				l.lanes[id].deliverAll(ctx, some, time.Time{}, of)
			}
			l.mu.Lock()
			full := l.full()
			l.mu.Unlock()
			if full {
				return
			}
			if more = page.Meta != nil && page.Meta.NextCursor != nil; more {
				cursor = *page.Meta.NextCursor
			}
		}
		// What came meanwhile is behind all that was listed. That may be more than is remembered, and what failed or
		// nobody asked for would be new once more, each time.
		if later := newest.Add(-overlap); later.After(t) {
			t = later
		}
	}
}

// tooOld reports whether a server refuses to look back as far as it was asked, because it keeps nothing of that time.
func tooOld(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status == 422
}

// retained finds, to a second, the earliest time behind a refused one that the server looks back to; zero: there is
// none. The refusal does not tell it, and halving what is left takes some twenty questions for a month.
func (l *Listener) retained(ctx context.Context, ids []string, refused time.Time) (earliest time.Time) {
	for end := l.now(); end.Sub(refused) > time.Second; {
		middle := refused.Add(end.Sub(refused) / 2)
		err := l.persist(ctx, func() error {
			_, err := l.cfg.Client.UndeliveredSince(ctx, ids, middle, client.Page{Limit: 1})
			return err
		})
		switch {
		case tooOld(err):
			refused = middle
		case err != nil:
			l.failedToRecover(ctx, err)
			return time.Time{}
		default:
			earliest, end = middle, middle
		}
	}
	return earliest
}

// unseen are those of some events that were not seen yet, by endpoint.
func (l *Listener) unseen(events []api.TunnelRequest) map[string][]api.TunnelRequest {
	unseen := make(map[string][]api.TunnelRequest)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range events {
		if nameable(r.ID) && l.seen.byID[r.ID] == nil && l.lanes[r.EndpointID] != nil {
			unseen[r.EndpointID] = append(unseen[r.EndpointID], r)
		}
	}
	return unseen
}

// catchUp fetches what was left for later because too many events waited.
func (l *Listener) catchUp(ctx context.Context, since time.Time) {
	l.mu.Lock()
	l.behind = time.Time{}
	l.mu.Unlock()
	l.since(ctx, since.Add(-time.Second), nil)
	if ctx.Err() != nil { // the next session goes on with it: a look back at its outage need not reach so far
		l.mu.Lock()
		l.leave(since)
		l.mu.Unlock()
	}
}

func (l *Listener) failedToRecover(ctx context.Context, err error) {
	if ctx.Err() == nil {
		l.tell(Warning{"what was missed could not all be fetched: " + err.Error()})
	}
}

// persist repeats a call until it is answered, or will never be.
func (l *Listener) persist(ctx context.Context, call func() error) error {
	pause := newBackoff()
	for {
		err := call()
		if err == nil || hopeless(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(asked(pause.next(false), err)):
		case <-ctx.Done():
			return err
		}
	}
}
