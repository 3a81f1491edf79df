package delivery

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// Captures do not hand over deliveries to a target with a rate limit (see [hookglass.Rate]). These wait in the table,
// neither claimed nor loaded, and are claimed together with their turns.

const (
	// turnLook is the least time between rounds that wait for a turn, so that they do not spin.
	turnLook = 20 * time.Millisecond
	// turnLate is how late a request may be for its turn, if its rate allows no more. A later one delays the next turn.
	turnLate = 50 * time.Millisecond
	// countEvery is how often the deliveries that wait for a turn are counted.
	countEvery = 10 * time.Second
	// MostInLine is where that count stops.
	MostInLine = 10_000
)

// lines is what a node knows about targets with a rate limit. The forwarder's mutex guards the fields that are used
// outside of rounds, too.
type lines struct {
	under   map[int64]int       // by target: deliveries that have their turn and are not sent yet
	stopped bool                // a target was passed over because of them
	ready   map[int64]time.Time // by target: when the next turn is

	counted time.Time // when deliveries were last counted; used by rounds only
	told    bool      // InLine was told that there are some
}

func newLines() lines {
	return lines{under: make(map[int64]int), ready: make(map[int64]time.Time)}
}

// turns returns the targets that have a turn now, and when the next of the others has one. A target has none while a
// delivery with a turn is not sent yet: however long that takes, no more can go at once than have turns at once.
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

// takeInTurn claims deliveries whose turn it is, as many as there are places, and starts to send them. It returns when
// to look again. These claims have a transaction of their own because they must be durable: a turn that was lost would
// be used twice.
func (f *Forwarder) takeInTurn(ctx, sends context.Context, turns []store.ForwardQueue, places map[int64]int) (time.Duration, error) {
	turns, wait := placed(turns, places), lookEvery
	now := f.Now()
	if len(turns) == 0 {
		return wait, nil
	}
	claimed := make(map[int64][]store.ClaimedForward)
	ready := make(map[int64]time.Time)
	ctx = context.WithoutCancel(ctx) // see claim
	err := f.db.UpdateAlong(ctx, hookglass.System, func(tx *store.Tx) error {
		clear(claimed)
		clear(ready)
		for i := range turns {
			q := &turns[i]
			found, rate, next, err := tx.ClaimForwardsInTurn(q.TargetID, now, places[q.TargetID], forwardLease)
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

// placed returns the queues for which places were taken.
func placed(queues []store.ForwardQueue, places map[int64]int) (with []store.ForwardQueue) {
	for _, q := range queues {
		if places[q.TargetID] > 0 {
			with = append(with, q)
		}
	}
	return with
}

// release returns the places for which no delivery was taken.
func (f *Forwarder) release(queues []store.ForwardQueue, places map[int64]int) {
	f.start(context.Background(), placed(queues, places), places, nil, time.Time{})
}

// goes records that a request is about to be sent. A request that is too late for its turn delays the next turn; goes
// reports false when that could not be stored.
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

// leaves records that a delivery with a turn was sent or handed back. The caller holds the forwarder's mutex.
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

// comesInLine records that a delivery was captured for a target with a rate limit. The caller holds the forwarder's
// mutex.
func (f *Forwarder) comesInLine(targetID int64) {
	switch {
	case f.lines.under[targetID] > 0:
		f.lines.stopped = true
	case !f.Now().Before(f.lines.ready[targetID]):
		f.lookAgain()
	}
}

// tellLines calls InLine with what waits for a turn.
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
