package delivery

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

// A target is paused after pauseFailures deliveries that failed in a row, the first of them pauseAfter ago: by then
// retries, a restart or a deployment had their chance. A target that answers now and then is never paused.
const (
	pauseFailures = 20
	pauseAfter    = 10 * time.Minute
)

// Bounds of storing outcomes: how many in one transaction, and how often it is tried while the storage is away.
const (
	settleAtOnce = 128
	settleAgain  = 250 * time.Millisecond
	settleTold   = time.Minute     // how often that is logged
	settleEnd    = 3 * time.Second // for how long it is tried when the node stops
)

// withdrawn reports whether an attempt sent nothing, because there was no turn for it or the node stops.
func withdrawn(a hookglass.ForwardAttempt) bool {
	return a.Failure != nil && outbound.Code(a.Failure.Code).Withheld()
}

// settleAll stores outcomes until the channel is closed, all that wait in one transaction. Once ctx has ended it gives
// up sooner.
func (f *Forwarder) settleAll(ctx context.Context) {
	for first := range f.settled {
		began := time.Now()
		batch := []*settled{first}
		for len(batch) < settleAtOnce && len(f.settled) > 0 {
			batch = append(batch, <-f.settled)
		}
		// All transactions lock the rows in the same order, so that none deadlock.
		slices.SortFunc(batch, func(a, b *settled) int { return cmp.Compare(a.Num, b.Num) })
		f.settle(ctx, batch)
		f.mu.Lock()
		for _, s := range batch {
			if f.held[s.Num] == s.Claim { // another claim: it was taken again already
				delete(f.held, s.Num)
			}
		}
		f.mu.Unlock()
		if slices.ContainsFunc(batch, func(s *settled) bool { return s.State == hookglass.ForwardPending || s.Duplicate != nil }) {
			f.lookAgain() // it may be due already, or its turn is there for another
		}
		fair.Rest(ctx, began)
	}
}

// settle stores a batch. It retries while the storage is unavailable, however long: the leases are renewed as soon as
// it is back, so nobody sends again what was sent. When too many outcomes wait, deliveries keep their places and no
// more are begun. A batch that fails for another reason is stored one by one. What cannot be stored is sent again when
// its lease ends.
func (f *Forwarder) settle(ctx context.Context, batch []*settled) {
	var told time.Time
	for began := time.Now(); ; {
		err := f.db.UpdateAlong(context.WithoutCancel(ctx), hookglass.System, func(tx *store.Tx) error { return f.write(tx, batch) })
		switch {
		case err == nil:
			return
		case hookglass.Is(err, hookglass.CodeUnavailable) && (ctx.Err() == nil || time.Since(began) < settleEnd):
			if time.Since(told) >= settleTold {
				told = time.Now()
				f.Log.Warn("the outcome of deliveries cannot be stored yet", "deliveries", len(batch), "error", err)
			}
			time.Sleep(settleAgain)
			continue
		case len(batch) > 1 && !hookglass.Is(err, hookglass.CodeUnavailable):
			for i := range batch {
				f.settle(ctx, batch[i:i+1])
			}
			return
		}
		f.Log.Warn("the outcome of deliveries could not be stored; they will be sent again", "deliveries", len(batch), "error", err)
		return
	}
}

func (f *Forwarder) write(tx *store.Tx, batch []*settled) error {
	tx.MayBeLost() // lost outcomes are sent again, as after a crash between answer and commit
	if err := f.resume(tx, batch); err != nil {
		return err
	}
	claimed := make([]store.ClaimedForward, len(batch))
	for i := range batch {
		claimed[i] = batch[i].ClaimedForward
	}
	written, err := tx.SettleForwards(claimed)
	if err != nil {
		return err
	}
	targets := map[int64]*streak{}
	kept := make([]store.ClaimedForward, 0, len(batch))
	outcomes := make([]hookglass.Outcome, 0, len(batch))
	for i, s := range batch {
		if !written[i] {
			continue // another node has it, or it was deleted
		}
		kept = append(kept, s.ClaimedForward)
		if s.made {
			outcomes = append(outcomes, OutcomeOf(hookglass.OutcomeTarget, s.EndpointNum, s.EventSeq, s.Attempts[s.Spent:], s.State))
		}
		if s.State == hookglass.ForwardFailed {
			line := failedLine(s.queue.Target, s.event, s.Attempts[len(s.Attempts)-1], len(s.Attempts))
			if err := tx.AddActivity(line); err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
				return err
			}
		}
		k := targets[s.TargetID]
		if k == nil {
			k = &streak{endpointNum: s.EndpointNum, target: s.queue.Target}
			targets[s.TargetID] = k
		}
		k.add(s)
	}
	if err := tx.AddForwardEvidence(kept); err != nil {
		return err
	}
	if err := tx.MarkDuplicates(kept); err != nil {
		return err
	}
	if err := f.wake(tx, kept, targets); err != nil {
		return err
	}
	if err := tx.AddOutcomes(outcomes...); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(targets)) {
		if turns := targets[id].unused; turns > 0 {
			if err := tx.ReturnForwardTurns(id, turns); err != nil {
				return err
			}
		}
		if err := f.count(tx, targets[id]); err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
			return err
		}
	}
	return nil
}

// OutcomeOf returns the last attempt of a delivery as figures and alerts count it; state is the delivery's new state.
func OutcomeOf(source hookglass.OutcomeSource, endpointNum, eventSeq int64, attempts []hookglass.ForwardAttempt, state hookglass.ForwardState) hookglass.Outcome {
	last := attempts[len(attempts)-1]
	o := hookglass.Outcome{
		EndpointNum: endpointNum, EventSeq: eventSeq, Source: source, At: last.At, Took: last.Duration, StatusCode: last.StatusCode,
		Earlier: len(attempts) > 1, // earlier attempts were bad, or there would be no later one
	}
	switch state {
	case hookglass.ForwardDelivered:
		o.Final = hookglass.OutcomeDelivered
	case hookglass.ForwardFailed:
		o.Final = hookglass.OutcomeFailed
	}
	return o
}

// streak is what a batch of deliveries says about a target: its failures in a row, and whether a success broke them.
type streak struct {
	endpointNum int64
	target      hookglass.ForwardingTarget
	broken      bool          // a delivery arrived
	failed      int           // deliveries that failed since
	unused      time.Duration // turns in which nothing was sent
}

// add counts a stored delivery.
func (k *streak) add(s *settled) {
	if !s.turn.IsZero() && !s.gone {
		k.unused += s.queue.Target.Rate.Every()
	}
	switch s.State {
	case hookglass.ForwardDelivered:
		k.broken, k.failed = true, 0
	case hookglass.ForwardFailed:
		k.failed++
	}
}

// count stores the number of failures in a row, and pauses a target that has failed for too long.
func (f *Forwarder) count(tx *store.Tx, k *streak) error {
	if k.broken && k.target.Failures > 0 { // those counted when it was claimed; the next success clears later ones
		if err := tx.ClearForwardFailures(k.target.ID); err != nil {
			return err
		}
	}
	if k.failed == 0 {
		return nil
	}
	now := f.Now()
	t, err := tx.CountForwardFailures(k.endpointNum, k.target.ID, k.failed, now)
	if err != nil {
		return err
	}
	if t.PausedAt.IsZero() && t.Failures >= pauseFailures && now.Sub(t.FailingFrom) >= pauseAfter {
		f.Log.Info("a forwarding target was paused", "target", t.ID, "failures", t.Failures)
		return tx.PauseForwardingTarget(t.ID, now, hookglass.PauseFailing)
	}
	return nil
}
