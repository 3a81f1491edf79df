package store

import (
	"math"
	"time"

	"hookglass/internal/query"
)

// clockError is how far the clocks that stamped the events of one endpoint may have been apart, or one have jumped.
// Events are in the order of their seqs, and so nearly in that of their times: this is how nearly.
const clockError = 24 * time.Hour

// bracketFrom is the number of events from which on it pays to look for the place of a time.
const bracketFrom = 10_000

// bracket narrows the log and the seq below which a walk begins to where events can be that the query means by their
// id, or that were received within its bounds. There is no index on times; a binary search over the seqs finds the
// place, give or take clockError.
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
		found, err := queryAll(v, scanNum, "SELECT seq FROM events WHERE id = $1 AND endpoint = $2", id, log.endpoint.Num)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			found = []int64{log.floor} // which nothing has
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

// seqAt returns a seq behind which the first event was received at the time, in microseconds, or later, and before
// which the last was received earlier. Where times are out of order there are several such places, within clockError.
func (v *View) seqAt(log eventLog, at, newest int64) (int64, error) {
	return placeOf(at, log.floor, newest, func(above int64) ([]int64, error) {
		a := &args{}
		query := "SELECT received_at FROM events WHERE " + v.dialect.within(a, log.endpoint.Num, above, math.MaxInt64) + oldestFirst + " LIMIT 1"
		return queryAll(v, scanNum, query, a.values...)
	})
}

// placeOf searches numbers that are nearly in the order of their times, by halves. It returns one between low and high
// behind which the first has the time or a later one, and before which the last has an earlier one. first reads the
// time of the first number that is greater than above.
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
