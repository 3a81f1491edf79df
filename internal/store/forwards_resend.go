package store

import (
	"cmp"
	"math"
	"time"

	"hookglass"
)

// resendAtOnce bounds how many failed deliveries one transaction queues again, and resendLooks how many it reads to
// find them, because captures wait for it.
const (
	resendAtOnce = 250
	resendLooks  = 5_000
)

// FailedRange is a walk over a target's failed deliveries that were created between two times, both excluded. A zero
// time is no bound. The walk visits each delivery at most once, even if it fails again meanwhile, and none created
// after the walk began.
type FailedRange struct {
	After, Before time.Time

	Done  bool
	begun bool
	above int64 // where it continues
	upTo  int64

	atOnce, looks int // resendAtOnce and resendLooks once begun; tests use smaller ones
}

// FailedForwards returns the next deliveries of a walk, oldest first and without evidence, and the remaining walk. The
// caller repeats it until Done, each time in a new transaction. It locks the deliveries and skips those that another
// transaction has locked. A deleted event has no deliveries.
func (tx *Tx) FailedForwards(t hookglass.ForwardingTarget, r FailedRange) (found []hookglass.Forward, left FailedRange, err error) {
	log, err := tx.eventLog(string(t.EndpointID))
	if err != nil {
		return nil, r, err
	}
	if !r.begun {
		if err := tx.beginFailed(t.ID, &r); err != nil {
			return nil, r, err
		}
	}
	// Find the end of the batch in the index, so that at most r.looks rows are read.
	end, err := tx.first(r.upTo, "SELECT num FROM forwards f WHERE "+failedOf+" AND (f.target, f.num) > ($1, $2) AND (f.target, f.num) <= ($1, $3) ORDER BY f.target, f.num LIMIT 1 OFFSET $4",
		t.ID, r.above, r.upTo, r.looks-1)
	if err != nil {
		return nil, r, err
	}
	after, before := int64(math.MinInt64), int64(math.MaxInt64)
	if !r.After.IsZero() {
		after = r.After.UnixMicro()
	}
	if !r.Before.IsZero() {
		before = r.Before.Add(time.Microsecond - 1).UnixMicro() // rounded up to whole microseconds
	}
	found, err = queryAll(&tx.View, func(scan func(...any) error) (f hookglass.Forward, err error) {
		var attempts []byte
		var created int64
		if err := scan(&f.Num, &f.EventSeq, &attempts, &created); err != nil {
			return f, err
		}
		f.TargetID, f.EndpointNum, f.State, f.CreatedAt = t.ID, t.EndpointNum, hookglass.ForwardFailed, time.UnixMicro(created).UTC()
		f.Attempts, err = readAttempts(f.Num, attempts)
		return f, err
	}, "SELECT num, event, attempts, created_at FROM forwards f WHERE "+failedOf+" AND (f.target, f.num) > ($1, $2) AND (f.target, f.num) <= ($1, $3) AND created_at > $4 AND created_at < $5 AND event > $6"+
		" ORDER BY f.target, f.num LIMIT $7"+tx.dialect.forUpdate()+tx.dialect.skipLocked(), t.ID, r.above, end, after, before, log.floor, r.atOnce)
	if err != nil {
		return nil, r, err
	}
	if len(found) == r.atOnce {
		end = found[len(found)-1].Num
	}
	r.above, r.Done = end, end >= r.upTo
	return found, r, nil
}

// failedOf is the condition of the partial index of failed deliveries. Queries compare and order by both of its
// columns: by num alone, the primary key would look as good to the planner while there is only one target.
const failedOf = "f.state = 'failed'"

// beginFailed finds where a walk begins and ends. Deliveries are nearly in the order of their creation times, as events
// are (see bracket).
func (v *View) beginFailed(targetID int64, r *FailedRange) error {
	newest, err := v.first(0, "SELECT num FROM forwards f WHERE "+failedOf+" AND (f.target, f.num) > ($1, 0) AND (f.target, f.num) < ($1, cast($2 AS bigint)) ORDER BY f.target DESC, f.num DESC LIMIT 1",
		targetID, int64(math.MaxInt64))
	if err != nil {
		return err
	}
	r.begun, r.atOnce, r.looks = true, cmp.Or(r.atOnce, resendAtOnce), cmp.Or(r.looks, resendLooks)
	if newest == 0 {
		return nil
	}
	place := func(at time.Time) (int64, error) {
		return placeOf(at.UnixMicro(), 0, newest, func(above int64) ([]int64, error) {
			return queryAll(v, scanNum, "SELECT created_at FROM forwards f WHERE "+failedOf+" AND (f.target, f.num) > ($1, $2) AND (f.target, f.num) < ($1, cast($3 AS bigint)) ORDER BY f.target, f.num LIMIT 1",
				targetID, above, int64(math.MaxInt64))
		})
	}
	r.upTo = newest
	if !r.Before.IsZero() {
		if r.upTo, err = place(r.Before.Add(clockError)); err != nil {
			return err
		}
	}
	if !r.After.IsZero() {
		r.above, err = place(r.After.Add(-clockError))
	}
	return err
}

// LockForward returns the delivery of an event to a target and locks it: nobody else can change it until the
// transaction ends. It answers not_found.
func (tx *Tx) LockForward(t hookglass.ForwardingTarget, event hookglass.EventID) (f hookglass.Forward, err error) {
	log, err := tx.eventLog(string(t.EndpointID))
	if err != nil {
		return f, err
	}
	return tx.forward(log, t, event, tx.dialect.forUpdateOf("f"))
}

// ResendForwards queues failed, locked deliveries again: they are due now, with all retries ahead. Earlier attempts
// stay with them.
func (tx *Tx) ResendForwards(failed []hookglass.Forward) error {
	if len(failed) == 0 {
		return nil
	}
	in := input{columns: []inputColumn{{"num", inputInteger}, {"due_at", inputInteger}, {"spent", inputInteger}}}
	for _, f := range failed {
		in.rows = append(in.rows, []any{f.Num, tx.Now.UnixMicro(), len(f.Attempts)})
	}
	tx.Announce(TopicForwards, TopicEvents(failed[0].EndpointNum))
	set := "state = 'pending', due_at = i.due_at, lost = 0, spent = i.spent, finished_at = NULL"
	return tx.update("forwards", set, in, "")
}

// FailedForwardsOf is Forwards for failed deliveries only.
func (v *View) FailedForwardsOf(ref string, targetID, before int64, limit int) ([]hookglass.Forward, error) {
	return v.forwards(ref, targetID, before, limit, failedOf+" AND ")
}

// CountFailedForwards counts the failed deliveries to a target, up to most.
func (v *View) CountFailedForwards(t hookglass.ForwardingTarget, most int) (n int, err error) {
	log, err := v.eventLog(string(t.EndpointID))
	if err != nil {
		return 0, err
	}
	err = v.queryRow("delivery", "SELECT count(*) FROM (SELECT f.event FROM forwards f WHERE "+failedOf+" AND (f.target, f.num) > ($1, 0) AND (f.target, f.num) < ($1, cast($4 AS bigint))"+
		" ORDER BY f.target DESC, f.num DESC LIMIT $2) AS n WHERE n.event > $3", []any{t.ID, most, log.floor, int64(math.MaxInt64)}, &n)
	return n, err
}
