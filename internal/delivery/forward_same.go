package delivery

import (
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// Bounds of how long a duplicate waits for the delivery of the first before it is judged again: as long as it has
// waited so far. Usually the end of that delivery wakes it sooner, but not if both are stored at the same moment.
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

// wake makes duplicates due that wait for deliveries which have now ended, and takes the keys of those that failed.
func (f *Forwarder) wake(tx *store.Tx, settled []store.ClaimedForward, queues map[int64]*streak) error {
	var ended, failed []int64
	for _, c := range settled {
		if c.State == hookglass.ForwardPending || c.Duplicate != nil || !queues[c.TargetID].target.Dedupe.On() {
			continue
		}
		ended = append(ended, c.Num)
		if c.State == hookglass.ForwardFailed {
			failed = append(failed, c.Num)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	woken, err := tx.WakeDuplicates(ended, f.Now())
	if woken > 0 {
		tx.Announce(store.TopicForwards)
	}
	if err != nil || len(failed) == 0 {
		return err
	}
	return tx.DropForwardKeys(failed)
}
