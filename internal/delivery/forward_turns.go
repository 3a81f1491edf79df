package delivery

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// Deliveries to a target with a bound (see [hookglass.Rate]) are not handed over by captures. They wait in the table,
// and are claimed together with the turns that they go in. A delivery that waits for its turn is neither claimed nor
// loaded.

const (
	// turnLook is how long a round leaves others in peace before it comes for the next turn.
	turnLook = 20 * time.Millisecond
	// turnLate is how late a request may be for its turn, where its bound leaves no more room. One that is later puts
	// the next turn off.
	turnLate = 50 * time.Millisecond
	// countEvery is how often the deliveries in line are counted.
	countEvery = 10 * time.Second
	// MostInLine is where the count of the deliveries in line stops.
	MostInLine = 10_000
)

// lines is what a node knows of the targets with a bound. The mutex of the forwarder guards the fields that not only
// the rounds use.
type lines struct {
	under   map[int64]int       // how many deliveries have had their turn and not gone yet
	stopped bool                // a target was passed over because of them
	ready   map[int64]time.Time // when there is a turn next

	counted time.Time // when they were counted last; of the rounds
	told    bool      // that there are some
}

func newLines() lines {
	return lines{under: make(map[int64]int), ready: make(map[int64]time.Time)}
}

// turns are those of the targets in line that have a turn now, and when the next of the others has one. While what had
// its turn has not gone, a target has none: however long that takes, no more can go at a time than have a turn at a
// time.
func (f *Forwarder) turns(inLine []store.ForwardQueue, now time.Time) (turns []store.ForwardQueue, soon time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.lines.ready)
	f.lines.stopped = false
	soon = lookEvery
	for _, q := range inLine {
		ready := q.Target.Rate.Ready(q.NextTurn, now)
		switch {
		case f.lines.under[q.TargetID] > 0:
			f.lines.stopped = true
		case ready.After(now):
			f.lines.ready[q.TargetID] = ready
			soon = min(soon, max(ready.Sub(now), turnLook))
		default:
			turns = append(turns, q)
		}
	}
	return turns, soon
}

// takeInTurn takes deliveries whose turn it is, as many as there are places, and starts to send them. It returns when
// to look again. They are claimed apart from others, because these claims have to be on disk: a turn that was lost
// would be had twice.
func (f *Forwarder) takeInTurn(ctx, sends context.Context, turns []store.ForwardQueue, places map[int64]int) (time.Duration, error) {
	turns, wait := f.placed(turns, places), lookEvery
	now := f.Now()
	if len(turns) == 0 {
		return wait, nil
	}
	claimed := make(map[int64][]store.ClaimedForward)
	ready := make(map[int64]time.Time)
	err := f.db.UpdateAlong(ctx, hookglass.System, func(tx *store.Tx) error {
		clear(claimed)
		clear(ready)
		for i := range turns {
			q := &turns[i]
			found, rate, next, err := tx.ClaimForwardsInTurn(q.TargetID, now, places[q.TargetID], q.Target.Timeout+leaseSlack)
			if err != nil {
				return err
			}
			if claimed[q.TargetID] = found; rate.Bounded() {
				q.Target.Rate = rate
				ready[q.TargetID] = rate.Ready(next, now)
			}
		}
		return nil
	})
	if err != nil {
		clear(claimed)
		clear(ready)
	}
	f.mu.Lock()
	for id, found := range claimed {
		f.lines.under[id] += len(found)
	}
	for id, at := range ready {
		switch {
		case at.After(now):
			f.lines.ready[id] = at
			wait = min(wait, max(at.Sub(f.Now()), turnLook))
		case len(claimed[id]) == places[id]:
			f.starved = true // there were more turns than places
		}
	}
	f.mu.Unlock()
	f.start(sends, turns, places, claimed, now)
	return wait, err
}

// placed are the queues for which places were taken.
func (f *Forwarder) placed(queues []store.ForwardQueue, places map[int64]int) (with []store.ForwardQueue) {
	for _, q := range queues {
		if places[q.TargetID] > 0 {
			with = append(with, q)
		}
	}
	return with
}

// release returns the places for which no delivery was taken.
func (f *Forwarder) release(queues []store.ForwardQueue, places map[int64]int) {
	f.start(context.Background(), f.placed(queues, places), places, nil, time.Time{})
}

// goes notes that the request of a delivery goes now. A request that is too late for its turn puts the next turn off;
// goes reports false when that could not be written down.
func (f *Forwarder) goes(ctx context.Context, s *settled) bool {
	if s.turn.IsZero() {
		return true
	}
	now, rate := f.Now(), s.queue.Target.Rate
	if now.Sub(s.turn) > max(rate.Slack(), turnLate) {
		err := f.db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
			now = f.Now()
			return tx.DelayForwardTurns(s.TargetID, now.Add(rate.Every()))
		})
		if err != nil {
			return false
		}
	}
	s.gone = true
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaves(s)
	return true
}

// leaves notes that a delivery that has had its turn is on its way, or was handed back. The caller holds the mutex of
// the forwarder.
func (f *Forwarder) leaves(s *settled) {
	if s.turn.IsZero() || s.left {
		return
	}
	s.left = true
	l := &f.lines
	if l.under[s.TargetID]--; l.under[s.TargetID] > 0 {
		return
	}
	delete(l.under, s.TargetID)
	if l.stopped {
		f.lookAgain()
	}
}

// comesInLine notes that a delivery was captured for a target with a bound. The caller holds the mutex of the
// forwarder.
func (f *Forwarder) comesInLine(targetID int64) {
	switch {
	case f.lines.under[targetID] > 0:
		f.lines.stopped = true
	case !f.Now().Before(f.lines.ready[targetID]):
		f.lookAgain()
	}
}

// tellLines tells InLine what waits for its turn.
func (f *Forwarder) tellLines(ctx context.Context, inLine []store.ForwardQueue, now time.Time) {
	l := &f.lines
	if len(inLine) == 0 {
		if l.told {
			l.told = false
			f.InLine(0, 0, time.Time{})
		}
		return
	}
	if time.Since(l.counted) < countEvery {
		return
	}
	ids, since := make([]int64, len(inLine)), now
	for i, q := range inLine {
		ids[i] = q.TargetID
		if q.FirstAt.Before(since) {
			since = q.FirstAt
		}
	}
	var n int
	err := f.db.Glance(ctx, hookglass.System, func(v *store.View) (err error) {
		n, err = v.CountForwardsInLine(ids, now, MostInLine)
		return err
	})
	if err == nil {
		l.told, l.counted = true, time.Now()
		f.InLine(len(inLine), n, since)
	}
}
