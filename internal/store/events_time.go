package store

import (
	"math"
	"time"

	"hookglass/internal/query"
)

// clockError bounds how far apart the clocks that stamped an endpoint's events may have been, or how far one may have
// jumped. Within it, the order of seqs is that of the times.
const clockError = 24 * time.Hour

// bracketFrom is the number of events from which a search for the place of a time pays off.
const bracketFrom = 10_000

// bracket narrows the log's floor and the seq below which a walk begins to where the events of a query can be, if it
// asks for an id or for times of reception. Times have no index; a binary search over the seqs finds their place,
// within clockError.
func (v *View) bracket(log *eventLog, below *int64, q query.Query) error {
	if log.endpoint.EventCount < bracketFrom {
		return nil
	}
	oldest, newest := int64(math.MinInt64), int64(math.MaxInt64)
	for _, t := range q.Terms() {
		if t.Field == query.Received && !t.Not {
			oldest, newest = max(oldest, t.Min), min(newest, t.Max)
		}
	}
	for _, t := range q.Terms() {
		id, exact := t.Pattern.Exact()
		if t.Field != query.ID || t.Not || !exact {
			continue
		}
		found, err := queryAll(v, scanNum, "SELECT seq FROM events WHERE id = $1 AND endpoint = $2", encodeText(id), log.endpoint.Num)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			found = []int64{log.floor} // no event has it
		}
		log.floor, *below = max(log.floor, found[0]-1), min(*below, found[0]+1)
	}
	slack := clockError.Microseconds()
	last := int64(-1)
	place := func(at int64) (seq int64, err error) {
		if last < 0 {
			if last, err = v.newestSeq(*log); err != nil {
				return 0, err
			}
		}
		return v.seqAt(*log, at, last)
	}
	if newest < math.MaxInt64-slack {
		seq, err := place(newest + slack)
		if err != nil {
			return err
		}
		*below = min(*below, seq+1)
	}
	if oldest > math.MinInt64+slack {
		seq, err := place(oldest - slack)
		if err != nil {
			return err
		}
		log.floor = max(log.floor, seq)
	}
	return nil
}

// seqAt returns a seq after which the first event was received at the given time in microseconds or later, and before
// which the last was received earlier. If times are out of order there are several such places, within clockError.
func (v *View) seqAt(log eventLog, at, newest int64) (int64, error) {
	return placeOf(at, log.floor, newest, func(above int64) ([]int64, error) {
		a := &args{}
		query := "SELECT received_at FROM events WHERE " + v.dialect.within(a, log.endpoint.Num, above, math.MaxInt64) + oldestFirst + " LIMIT 1"
		return queryAll(v, scanNum, query, a.all()...)
	})
}

// placeOf does a binary search over numbers that are nearly in the order of their times. It returns a number from low
// to high such that the first one after it has the given time or a later one, and the last one before it an earlier
// one. first returns the time of the first number above the given one.
func placeOf(at, low, high int64, first func(above int64) ([]int64, error)) (int64, error) {
	for low < high {
		middle := low + (high-low)/2
		found, err := first(middle)
		if err != nil {
			return 0, err
		}
		if len(found) == 0 || found[0] >= at {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, nil
}

// newestOfAll is the greatest seq of any event, 0 when there is none.
const newestOfAll = "coalesce((SELECT seq FROM events ORDER BY seq DESC LIMIT 1), 0)"

// NewestOfAll is the greatest Seq of any event, 0 when there is none.
func (v *View) NewestOfAll() (seq int64, err error) {
	err = v.queryRow("event", "SELECT "+newestOfAll, nil, &seq)
	return seq, err
}
