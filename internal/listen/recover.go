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
	overlap  = 30 * time.Second // how far to look back beyond the last sign of life: events in transit may be lost
	pageSize = 100
	maxNamed = 100 // endpoints in one query, the server's bound
)

// recover catches up on missed events: those from before the listener began, as its Recovery says, and those from while
// it had no connection.
func (l *Listener) recover(ctx context.Context) {
	l.mu.Lock()
	lost := l.lost
	if l.from.IsZero() && !lost.IsZero() {
		// Events from before this listener began were never in transit to it.
		l.from = l.lastSign(lost).Add(-min(overlap, between(l.opened, lost)))
	}
	from, o := l.from, l.outage
	if o == nil && !lost.IsZero() {
		o = newOutage()
		l.outage = o
	}
	l.mu.Unlock()
	var gaps []api.Gap
	err := persist(ctx, func() (err error) {
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
		l.recoverEarlier(ctx, gaps)
		if !l.cfg.Since.IsZero() {
			l.since(ctx, l.cfg.Since, nil)
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
		// Events in transit when the connection broke are in no gap if the server believed that they had arrived.
		l.since(ctx, from, o)
	} else {
		l.skip(ctx, gaps)
	}
	all := o.total(ctx, l.cfg.Recover == RecoverNone)
	if ctx.Err() != nil && (cut || all.cut || !l.reached()) {
		return // the next session continues
	}
	l.mu.Lock()
	l.lost, l.from, l.outage = time.Time{}, time.Time{}, nil
	l.mu.Unlock()
	o.told()
	l.tell(Offline{For: away(lost, o.ended()), Missed: all.missed(), Delivered: all.succeeded, Failed: all.failed, Shown: all.shown})
	l.recoverEarlier(ctx, l.undecided(gaps))
}

// away returns how long a listener was without a connection: the longest of several measures. The monotonic clock may
// stand still while the machine sleeps, the wall clock may be set back, and buffered data is read only after that; so
// the server's times of the gaps count, too.
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

// between returns the time from a to b by this machine's monotonic or wall clock, whichever shows more.
func between(a, b time.Time) time.Duration {
	return max(b.Sub(a), b.Round(0).Sub(a.Round(0)), 0)
}

// skip tells the server that gaps are left out on purpose. What another listener said of a gap stays.
func (l *Listener) skip(ctx context.Context, gaps []api.Gap) {
	for _, g := range gaps {
		if ctx.Err() == nil && g.Counts.Pending > 0 && g.State != string(hookglass.GapPartial) {
			_, _ = l.cfg.Client.RecoverGap(ctx, g.ID, api.RecoverGap{Outcome: "skipped"}) // informational only
		}
	}
}

// recoverEarlier handles outages from before this listener began.
func (l *Listener) recoverEarlier(ctx context.Context, gaps []api.Gap) {
	if l.cfg.Recover == RecoverNone {
		l.skip(ctx, gaps)
		return
	}
	missed := 0
	for _, g := range gaps {
		missed += int(g.Counts.Pending)
	}
	if l.cfg.Recover == RecoverAsk && missed > 0 && (l.cfg.Ask == nil || !l.cfg.Ask(ctx, missed)) {
		decided := ctx.Err() == nil
		l.mu.Lock()
		for _, g := range gaps {
			l.declined[g.ID] = decided
		}
		l.mu.Unlock()
		l.skip(ctx, gaps)
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
		o := newOutage()
		got := l.recoverGap(ctx, g, l.oldest(), o)
		if got.left = 0; !got.cut && got.missed() > 0 {
			o.told()
			l.tell(Offline{For: end.Sub(g.StartedAt.Time), Missed: got.missed(), Delivered: got.succeeded, Failed: got.failed, Shown: got.shown})
		}
	}
}

// refused reports whether the user declined to recover a gap, or was asked and has not answered.
func (l *Listener) refused(g api.Gap) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, is := l.declined[g.ID]
	return is
}

// undecided takes back the gaps that the user was asked about when the connection broke.
func (l *Listener) undecided(gaps []api.Gap) (some []api.Gap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range gaps {
		if decided, asked := l.declined[g.ID]; asked && !decided {
			delete(l.declined, g.ID)
			some = append(some, g)
		}
	}
	return some
}

// recoverLate catches up on gaps that the server found only later: until a dead node's lease ends, the server does not
// know that its clients were disconnected.
func (l *Listener) recoverLate(ctx context.Context) {
	var gaps []api.Gap
	err := persist(ctx, func() (err error) {
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

// outages returns the gaps of all endpoints, oldest first.
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

// fresh returns the gaps that were not seen before.
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

// oldest returns how far back events are wanted.
func (l *Listener) oldest() time.Time {
	if l.cfg.Recover == RecoverRecent {
		return l.now().Add(-recentWindow)
	}
	return time.Time{}
}

// lastSign returns the server's time of its last sign of life before a connection was lost. The caller holds the lock.
func (l *Listener) lastSign(lost time.Time) time.Time {
	if l.ping.IsZero() || l.pinged.After(lost) {
		return lost.Add(l.ping.Sub(l.pinged)) // the new connection's ping gives the difference of the clocks
	}
	return l.ping
}

// recoverGap delivers the events of a gap that are not older than oldest, and reports the recovery to the server.
func (l *Listener) recoverGap(ctx context.Context, g api.Gap, oldest time.Time, of *outage) outcome {
	lane := l.lanes[g.EndpointID]
	switch {
	case lane == nil:
		return outcome{}
	case g.Counts.Pending == 0 && g.Counts.Failed > 0 && l.cfg.Recover != RecoverAll: // only failed ones are left, which were tried before
		if g.State == string(hookglass.GapReconnected) { // whoever tried did not report it
			l.recovered(ctx, g, api.RecoverGap{Outcome: "partial"}, nil)
		}
		return outcome{}
	}
	var total outcome
	var err error
	for cursor := ""; ; {
		var page api.Undelivered
		err = persist(ctx, func() (err error) {
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

// recovered reports a recovery to the server, and warns the user if something failed.
func (l *Listener) recovered(ctx context.Context, g api.Gap, said api.RecoverGap, err error) {
	saying, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cfg.limits.drain)
	defer cancel()
	if _, told := l.cfg.Client.RecoverGap(saying, g.ID, said); told != nil && err == nil {
		err = told
	}
	if err != nil {
		l.failedToRecover(ctx, err)
	}
}

// deliverAll delivers events and returns when all are settled.
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
		} else if _, wanted := a.endpoint.route(r); wanted { // the listener ends, or has ExitAfter events
			o.cut = true
			break
		}
	}
	for _, s := range sights {
		if !o.settled(ctx, s) {
			break
		}
		a.l.reports.confirm(ctx, s.attempt) // of one that was under way
	}
	return o
}

// since delivers events that were captured since a time and not delivered yet.
func (l *Listener) since(ctx context.Context, t time.Time, of *outage) {
	if oldest := l.oldest(); t.Before(oldest) {
		t = oldest // unwanted events would be listed each time
	}
	for ids := range slices.Chunk(l.ids(), maxNamed) {
		l.sinceOf(ctx, ids, t, of)
	}
}

// sinceOf is since for some endpoints. It repeats the query until there is nothing new.
func (l *Listener) sinceOf(ctx context.Context, ids []string, t time.Time, of *outage) {
	for ctx.Err() == nil {
		newest, fresh, err := l.allSince(ctx, ids, t, of)
		switch {
		case tooOld(err): // retention moves on while a slow handler works
			if t = l.retained(ctx, ids, t); t.IsZero() {
				return
			}
			continue
		case err != nil:
			l.failedToRecover(ctx, err)
			return
		case !fresh:
			return
		}
		// Continue near the end of the list, where new events are. Failed and filtered events may be more than is
		// remembered, and from the start they would count as new each time.
		if later := newest.Add(-overlap); later.After(t) {
			t = later
		}
	}
}

// allSince delivers what one list of events says that were captured since a time and not delivered yet. It reads all
// pages: failed deliveries are listed too, possibly before events that were never tried. fresh reports whether there
// was anything that was not seen before, and room for more.
func (l *Listener) allSince(ctx context.Context, ids []string, t time.Time, of *outage) (newest time.Time, fresh bool, err error) {
	newest = t
	for cursor := ""; ctx.Err() == nil; {
		var page api.Undelivered
		err := persist(ctx, func() (err error) {
			page, err = l.cfg.Client.UndeliveredSince(ctx, ids, t, client.Page{Limit: pageSize, Cursor: cursor})
			return err
		})
		if err != nil {
			return newest, fresh, err
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
			return newest, false, nil
		}
		if page.Meta == nil || page.Meta.NextCursor == nil {
			break
		}
		cursor = *page.Meta.NextCursor
	}
	return newest, fresh, nil
}

// tooOld reports whether the server refused to look back that far because it retains nothing from that time.
func tooOld(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status == 422
}

// retained finds, to a second, the earliest time after a refused one from which the server lists events; zero: there is
// none. The refusal does not say it, so this is a binary search, of some twenty calls for a month.
func (l *Listener) retained(ctx context.Context, ids []string, refused time.Time) (earliest time.Time) {
	for end := l.now(); end.Sub(refused) > time.Second; {
		middle := refused.Add(end.Sub(refused) / 2)
		err := persist(ctx, func() error {
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

// unseen returns the events that were not seen yet, by endpoint.
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

// catchUp fetches events that were left for later because too many waited.
func (l *Listener) catchUp(ctx context.Context, since time.Time) {
	l.mu.Lock()
	l.behind = time.Time{}
	l.mu.Unlock()
	l.since(ctx, since.Add(-time.Second), nil)
	if ctx.Err() != nil { // for the next session: its own look back may not reach this far
		l.mu.Lock()
		l.leave(since)
		l.mu.Unlock()
	}
}

func (l *Listener) failedToRecover(ctx context.Context, err error) {
	if ctx.Err() == nil {
		l.tell(Warning{"some missed events could not be fetched: " + err.Error()})
	}
}

// persist repeats a call until it succeeds, is refused for good, or ctx ends.
func persist(ctx context.Context, call func() error) error {
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
