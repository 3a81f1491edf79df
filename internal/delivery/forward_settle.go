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
// retries, a restart and a deployment had their chance. One that answers now and then is never paused.
const (
	pauseFailures = 20
	pauseAfter    = 10 * time.Minute
)

// Bounds of writing down: how many deliveries together, and for how long it is tried before their leases must do.
const (
	settleAtOnce = 128
	settleFor    = leaseSlack
	settleEnd    = 3 * time.Second // when the node stops
	settleAgain  = 250 * time.Millisecond
)

// withdrawn reports whether an attempt sent nothing, because there was no turn for it or the node stops.
func withdrawn(a hookglass.ForwardAttempt) bool {
	return a.Failure != nil && outbound.Code(a.Failure.Code).Withheld()
}

// settleAll writes down what comes until the channel is closed: all that waits together, in one transaction. Once ctx
// has ended it is less patient.
func (f *Forwarder) settleAll(ctx context.Context) {
	for first := range f.settled {
		began := time.Now()
		batch := []*settled{first}
	gather:
		for len(batch) < settleAtOnce {
			select {
			case s, open := <-f.settled:
				if !open {
					break gather
				}
				batch = append(batch, s)
			default:
				break gather
			}
		}
		// All transactions take the rows in the same order, so that no two wait for each other.
		slices.SortFunc(batch, func(a, b *settled) int { return cmp.Compare(a.Num, b.Num) })
		f.settle(ctx, batch)
		if slices.ContainsFunc(batch, func(s *settled) bool { return s.State == hookglass.ForwardPending }) {
			f.lookAgain() // it may be due already
		}
		fair.Rest(ctx, began)
	}
}

// settle writes a batch down. While the storage cannot take it, it is tried again; a batch that it does not take for
// another reason is tried one by one. What is left in the end is sent again when its lease is over.
func (f *Forwarder) settle(ctx context.Context, batch []*settled) {
	for began := time.Now(); ; {
		patience := settleFor
		if ctx.Err() != nil {
			patience = settleEnd
		}
		err := f.db.UpdateAlong(context.WithoutCancel(ctx), hookglass.System, func(tx *store.Tx) error { return f.write(tx, batch) })
		switch {
		case err == nil:
			return
		case hookglass.Is(err, hookglass.CodeUnavailable) && time.Since(began) < patience:
			time.Sleep(settleAgain)
			continue
		case len(batch) > 1 && !hookglass.Is(err, hookglass.CodeUnavailable):
			for i := range batch {
				f.settle(ctx, batch[i:i+1])
			}
			return
		}
		f.Log.Warn("what became of deliveries could not be written down; they will be sent again", "deliveries", len(batch), "error", err)
		return
	}
}

func (f *Forwarder) write(tx *store.Tx, batch []*settled) error {
	tx.MayBeLost() // what is lost with the machine is sent again, as when it stops between the answer and this
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

// OutcomeOf is the last of the attempts of a delivery as figures and alerts count it; state is what became of the
// delivery.
func OutcomeOf(source hookglass.OutcomeSource, endpointNum, eventSeq int64, attempts []hookglass.ForwardAttempt, state hookglass.ForwardState) hookglass.Outcome {
	last := attempts[len(attempts)-1]
	o := hookglass.Outcome{
		EndpointNum: endpointNum, EventSeq: eventSeq, Source: source, At: last.At, Took: last.Duration, StatusCode: last.StatusCode,
		Earlier: len(attempts) > 1, // those before it were bad, or there would be no other
	}
	switch state {
	case hookglass.ForwardDelivered:
		o.Final = hookglass.OutcomeDelivered
	case hookglass.ForwardFailed:
		o.Final = hookglass.OutcomeFailed
	}
	return o
}

// streak is what a batch of deliveries tells of a target: the failures in a row, and whether they were broken.
type streak struct {
	endpointNum int64
	target      hookglass.ForwardingTarget
	broken      bool          // a delivery arrived
	failed      int           // deliveries that failed since
	unused      time.Duration // turns that nothing was sent in
}

// add counts a delivery that was written down.
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

// count keeps the number of failures in a row, and pauses a target that has failed for too long.
func (f *Forwarder) count(tx *store.Tx, k *streak) error {
	if k.broken && k.target.Failures > 0 { // counted when the delivery was taken; the next arrival ends those since
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
