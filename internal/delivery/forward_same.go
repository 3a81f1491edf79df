package delivery

import (
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// Bounds of how long a duplicate waits for the delivery of the first before it is judged again: as long as it has
// waited so far. The end of that delivery wakes it sooner, unless two nodes store both at the same moment or the first
// is deleted.
const (
	minSameWait = time.Second
	maxSameWait = time.Minute
)

// mayBeDuplicate reports whether a claimed delivery may be a duplicate. One that was sent before is none, nor is one
// that people sent again.
func mayBeDuplicate(c *store.ClaimedForward) bool { return len(c.Attempts) == 0 }

// repeats skips a duplicate, or has it wait for the delivery of the first.
func (f *Forwarder) repeats(s *settled, d hookglass.Duplicate) {
	if s.Duplicate = &d; !d.Skipped() {
		f.later(s, min(max(f.Now().Sub(s.CreatedAt), minSameWait), maxSameWait))
		return
	}
	s.State, s.FinishedAt = hookglass.ForwardSkipped, f.Now()
	f.Skipped()
}

// resume makes those of a batch's duplicates due at once whose first has ended since they were judged: nothing would
// wake them. On PostgreSQL it does not see an end that is being stored by another node; then they wait for a while.
func (f *Forwarder) resume(tx *store.Tx, batch []*settled) error {
	var firsts []int64
	for _, s := range batch {
		if s.Duplicate != nil && !s.Duplicate.Skipped() {
			firsts = append(firsts, s.Duplicate.Num)
		}
	}
	if len(firsts) == 0 {
		return nil
	}
	underway, err := tx.Underway(firsts)
	if err != nil {
		return err
	}
	for _, s := range batch {
		if s.Duplicate != nil && !s.Duplicate.Skipped() && !slices.Contains(underway, s.Duplicate.Num) {
			s.NextAt = f.Now()
		}
	}
	return nil
}

// wake makes duplicates due: the next of those that wait for each delivery which has now ended, and the next of those
// that are behind one which was skipped now, until none is left. It takes the keys of deliveries that did not arrive.
func (f *Forwarder) wake(tx *store.Tx, settled []store.ClaimedForward, queues map[int64]*streak) error {
	var ended, lost []int64
	for _, c := range settled {
		switch {
		case c.State == hookglass.ForwardPending || !queues[c.TargetID].target.Dedupe.On():
		case c.Duplicate != nil:
			ended = append(ended, c.Duplicate.Num)
		default:
			ended = append(ended, c.Num)
			if c.State != hookglass.ForwardDelivered {
				lost = append(lost, c.Num)
			}
		}
	}
	if len(ended) == 0 {
		return nil
	}
	slices.Sort(ended)
	woken, err := tx.WakeDuplicates(slices.Compact(ended), f.Now())
	if woken > 0 {
		tx.Announce(store.TopicForwards)
	}
	if err != nil || len(lost) == 0 {
		return err
	}
	return tx.DropForwardKeys(lost)
}
