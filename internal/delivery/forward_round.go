package delivery

import (
	"context"
	"maps"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

// round claims deliveries that are due and starts to send them. It returns when to look again.
func (f *Forwarder) round(ctx, sends context.Context) (time.Duration, error) {
	now := f.Now()
	if err := f.renew(ctx, now); err != nil {
		return lookEvery, err
	}
	recalling, err := f.recall(ctx, now)
	if err != nil {
		return lookEvery, err
	}
	var queues []store.ForwardQueue
	err = f.db.Glance(ctx, hookglass.System, func(v *store.View) (err error) {
		queues, err = v.ForwardQueues()
		return err
	})
	if err != nil {
		return lookEvery, err
	}
	if f.Now().Before(now.Add(-clockJump)) {
		return 0, nil // the clock went back: by the earlier now, new leases would seem to have ended
	}
	due, inLine, ended, wait := sortQueues(queues, now)
	if recalling {
		wait = 0
	}
	turns, soon := f.turns(inLine, now)
	wait = min(wait, soon)
	places := f.reserve(due, turns, now)
	if len(places) == 0 && len(ended) == 0 {
		f.note(due, nil, nil)
		f.tellLines(ctx, inLine, now)
		return wait, nil
	}
	next, err := f.take(ctx, sends, now, due, ended, places)
	if wait = min(wait, next); err != nil {
		f.release(turns, places)
		return wait, err
	}
	next, err = f.takeInTurn(ctx, sends, turns, places)
	f.tellLines(ctx, inLine, now)
	return min(wait, next), err
}

// renew renews the leases of the deliveries that this node has under way, now and then and when the clock jumped. After
// the database was away, or this node stood still for so long that the leases of others may have ended, they get the
// time to renew them, too: what they have under way would be sent a second time.
func (f *Forwarder) renew(ctx context.Context, now time.Time) error {
	since := now.Sub(f.renewed)
	if since.Abs() < forwardRenew && !f.away {
		return nil
	}
	away := f.away || !f.renewed.IsZero() && since >= forwardLease-forwardRenew
	f.mu.Lock()
	held := maps.Clone(f.held)
	f.mu.Unlock()
	if len(held) > 0 || away {
		err := f.db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
			if err := tx.ExtendForwards(held, now.Add(forwardLease)); err != nil || !away {
				return err
			}
			return tx.SpareForwards(now.Add(forwardRenew))
		})
		if err != nil {
			return err
		}
	}
	f.renewed, f.away = now, false
	return nil
}

// sortQueues sorts the queues into those with deliveries to send, those of targets with a rate limit, and those whose
// deliveries will never be sent. It also returns when the first of the other queues is due, lookEvery at most.
func sortQueues(queues []store.ForwardQueue, now time.Time) (due, inLine, ended []store.ForwardQueue, wait time.Duration) {
	wait = lookEvery
	for _, q := range queues {
		switch {
		case q.Gone || !q.Target.Enabled || q.AccountID != 0 && q.Entitlements.MayForward() != nil:
			ended = append(ended, q)
		case !q.Target.PausedAt.IsZero():
		case q.FirstAt.After(now):
			wait = min(wait, q.FirstAt.Sub(now))
		case q.Target.Rate.Bounded():
			inLine = append(inLine, q)
		default:
			due = append(due, q)
		}
	}
	return due, inLine, ended, wait
}

// take claims as many due deliveries as there are places and starts to send them. It ends those that will never be
// sent. It returns when to look again.
func (f *Forwarder) take(ctx, sends context.Context, now time.Time, due, ended []store.ForwardQueue, places map[int64]int) (time.Duration, error) {
	if len(ended) == 0 && !slices.ContainsFunc(due, func(q store.ForwardQueue) bool { return places[q.TargetID] > 0 }) {
		f.note(due, nil, nil)
		return lookEvery, nil
	}
	claimed, more, err := f.claim(ctx, now, due, ended, places)
	f.note(due, places, claimed)
	f.start(sends, due, places, claimed, time.Time{})
	if more {
		return 0, err
	}
	return lookEvery, err
}

// claim claims as many due deliveries as there are places, and ends those that will never be sent. more says that there
// may be more of either.
func (f *Forwarder) claim(ctx context.Context, now time.Time, due, ended []store.ForwardQueue, places map[int64]int) (claimed map[int64][]store.ClaimedForward, more bool, err error) {
	claimed = make(map[int64][]store.ClaimedForward)
	ctx = context.WithoutCancel(ctx) // a claim that is given up may be stored, and then nobody sends until its lease ends
	err = f.db.UpdateAlong(ctx, hookglass.System, func(tx *store.Tx) error {
		clear(claimed)
		tx.MayBeLost() // then these deliveries are just due again
		for _, q := range ended {
			n, err := tx.SkipForwards(q.TargetID, now, endAtOnce)
			if err != nil {
				return err
			}
			more = more || n == endAtOnce
		}
		for _, q := range due {
			if n := places[q.TargetID]; n > 0 {
				found, err := tx.ClaimForwards(q.TargetID, now, n, forwardLease)
				if err != nil {
					return err
				}
				claimed[q.TargetID] = found
				more = more || len(found) == n
			}
		}
		return nil
	})
	if err != nil {
		clear(claimed)
	}
	return claimed, more, err
}

// tooLate returns a time after which no delivery can be due that was claimed, or found to be a duplicate, by now.
func tooLate(now time.Time) time.Time {
	return now.Add(max(forwardLease, maxSameWait) + clockJump)
}

// recall makes deliveries due that are due implausibly late: after a clock went back, while this node was down or just
// now, they must not wait until it has caught up. It works a piece a round, because there may be many of them, and
// reports whether more may be left.
func (f *Forwarder) recall(ctx context.Context, now time.Time) (more bool, err error) {
	beyond := tooLate(now)
	if !now.After(f.looked.Add(-clockJump)) || f.recalled.IsZero() || time.Since(f.recalled) >= recallEvery {
		err := f.db.Glance(ctx, hookglass.System, func(v *store.View) (err error) {
			f.recalls, err = v.ForwardRecalls(beyond)
			return err
		})
		if err != nil {
			return false, err
		}
		f.recalled = time.Now()
	}
	f.looked = now
	for len(f.recalls) > 0 {
		var late []int64
		var left store.ForwardRecall
		err := f.db.Glance(ctx, hookglass.System, func(v *store.View) (err error) {
			late, left, err = v.LateForwards(f.recalls[0], beyond)
			return err
		})
		if err != nil {
			return false, err
		}
		if len(late) == 0 {
			f.recalls = f.recalls[1:]
			continue
		}
		err = f.db.UpdateAlong(ctx, hookglass.System, func(tx *store.Tx) error {
			// Measure against a fresh now: deliveries claimed since the round began may be due later than the old one
			// allows.
			now := f.Now()
			return tx.RecallForwards(late, now, tooLate(now))
		})
		if err != nil {
			return false, err
		}
		f.recalls[0] = left
		return true, nil
	}
	return false, nil
}

// reserve takes places for targets with due deliveries, for one with a rate limit no more than it has turns now.
func (f *Forwarder) reserve(due, turns []store.ForwardQueue, now time.Time) (places map[int64]int) {
	lines := make([]fair.Line, len(due), len(due)+len(turns))
	for i := range turns {
		q := &turns[i]
		lines = append(lines, fair.Line{Tenant: tenant(q), Num: q.TargetID, Most: q.Target.Rate.Turns(q.NextTurn, now)})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range due {
		lines[i] = fair.Line{Tenant: tenant(&due[i]), Num: due[i].TargetID}
		if !f.direct.IsBehind(due[i].Target.EndpointNum) {
			lines[i].Most = fair.Few // captures hand over the rest
		}
	}
	places, f.starved = f.shares.Share(lines)
	return places
}

// note records which endpoints still have waiting deliveries, after places were taken and deliveries claimed. It also
// drops old entries of begun.
func (f *Forwarder) note(due []store.ForwardQueue, places map[int64]int, claimed map[int64][]store.ClaimedForward) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.direct.Clear()
	for i := range due {
		if id := due[i].TargetID; len(claimed[id]) == places[id] {
			f.direct.Behind(due[i].Target.EndpointNum)
		}
	}
	maps.DeleteFunc(f.begun, func(_ int64, at time.Time) bool { return time.Since(at) > together })
}

// together is how soon deliveries to one target must follow one another to share a connection.
const together = 100 * time.Millisecond

// tenant is the key of the account, or temporary endpoint, whose deliveries are bounded together.
func tenant(q *store.ForwardQueue) string { return tenantOf(q.AccountID, q.Target.EndpointNum) }

func tenantOf(account, endpointNum int64) string {
	return "forwards of " + fair.Tenant(account, endpointNum)
}

// start loads the claimed deliveries, starts to send them, and returns the places that nothing was claimed for. turnAt
// is when they had their turn, if their targets have a rate limit.
func (f *Forwarder) start(sends context.Context, due []store.ForwardQueue, places map[int64]int, claimed map[int64][]store.ClaimedForward, turnAt time.Time) {
	var seqs, headed, once []int64
	f.mu.Lock()
	for i := range due {
		q := &due[i]
		for range places[q.TargetID] - len(claimed[q.TargetID]) {
			f.shares.Give(tenant(q), q.TargetID)
		}
		// All places were used, so more deliveries may be waiting for one.
		f.starved = f.starved || !q.Target.Rate.Bounded() && places[q.TargetID] > 0 && len(claimed[q.TargetID]) == places[q.TargetID]
		for _, c := range claimed[q.TargetID] {
			seqs = append(seqs, c.EventSeq)
			if q.Target.Dedupe.On() && mayBeDuplicate(&c) {
				once = append(once, c.Num)
			}
		}
		if q.HasHeaders && len(claimed[q.TargetID]) > 0 {
			headed = append(headed, q.TargetID)
		}
	}
	f.mu.Unlock()
	if len(seqs) == 0 {
		return
	}
	l, err := f.loadRound(sends, seqs, headed, once)
	for i := range due {
		headers, there := l.sealed[due[i].TargetID]
		due[i].Target.Sealed = headers
		gone := err == nil && due[i].HasHeaders && !there // the target was deleted, and the next round skips what waits for it
		for _, c := range claimed[due[i].TargetID] {
			s := &settled{queue: due[i], ClaimedForward: c, event: l.events[c.EventSeq], placed: true, turn: turnAt}
			duplicate, repeats := l.duplicates[c.Num]
			switch {
			case err != nil || gone:
				f.later(s, handBack)
			case s.event == nil:
				s.State, s.FinishedAt = hookglass.ForwardSkipped, f.Now() // deleted, and the row goes with it
			case repeats:
				f.repeats(s, duplicate)
			default:
				if wait := s.event.VerdictWait(f.Now()); wait > 0 {
					f.later(s, wait) // waits in the table, like everything else
					break
				}
				f.begin(sends, s)
				continue
			}
			f.hand(s)
		}
	}
}

// loaded is what a round reads of what it claimed.
type loaded struct {
	events     map[int64]*hookglass.Event    // by seq
	sealed     map[int64][]byte              // headers of targets, by target
	duplicates map[int64]hookglass.Duplicate // by delivery
}

// loadRound loads the events with these seqs, the headers of these targets, and which of these deliveries repeat
// another.
func (f *Forwarder) loadRound(ctx context.Context, seqs, targets, deliveries []int64) (l loaded, err error) {
	if l.events, err = f.load(ctx, seqs, fair.SmallBody); err != nil {
		return l, err
	}
	if len(targets) > 0 {
		err = f.db.Glance(ctx, hookglass.System, func(v *store.View) (err error) {
			l.sealed, err = v.SealedHeaders(targets)
			return err
		})
	}
	if len(deliveries) > 0 && err == nil {
		err = f.db.Glance(ctx, hookglass.System, func(v *store.View) (err error) {
			l.duplicates, err = v.Duplicates(deliveries)
			return err
		})
	}
	return l, err
}
