package store

import (
	"database/sql"
	"time"

	"hookglass"
)

// The row of a target with a rate limit holds the time of its next turn. The transaction that claims deliveries to the
// target updates it, so the limit holds across nodes and restarts.

// ClaimForwardsInTurn is [Tx.ClaimForwards] for a target with a rate limit. It claims only deliveries whose turn has
// come by at, limit at most, and returns the rate and the next turn afterwards. While another transaction claims for
// the target, or if the target has no limit, is paused or is disabled, it claims nothing and returns the zero rate.
func (tx *Tx) ClaimForwardsInTurn(targetID int64, at time.Time, limit int, lease time.Duration) (claimed []ClaimedForward, rate hookglass.Rate, next time.Time, err error) {
	type turn struct {
		rate hookglass.Rate
		next time.Time
	}
	found, err := queryAll(&tx.View, func(scan func(...any) error) (t turn, err error) {
		var limit, period int64
		var next sql.NullInt64
		err = scan(&limit, &period, &next)
		t.rate, t.next = rateOf(limit, period), fromMicros(next)
		return t, err
	}, "SELECT rate_limit, rate_period, rate_next FROM forwarding_targets WHERE id = $1 AND enabled = 1 AND paused_at IS NULL AND rate_limit IS NOT NULL"+
		tx.dialect.forUpdate()+tx.dialect.skipLocked(), targetID)
	if err != nil || len(found) == 0 {
		return nil, rate, next, err
	}
	rate, next = found[0].rate, found[0].next
	if limit = min(limit, rate.Turns(next, at)); limit == 0 {
		return nil, rate, next, nil
	}
	if claimed, err = tx.ClaimForwards(targetID, at, limit, lease); err != nil || len(claimed) == 0 {
		return nil, rate, next, err
	}
	next = rate.After(next, at, len(claimed))
	_, err = tx.exec("UPDATE forwarding_targets SET rate_next = $2 WHERE id = $1", targetID, next.UnixMicro())
	return claimed, rate, next, err
}

// ReturnForwardTurns gives back unused turns; turns is their total duration.
func (tx *Tx) ReturnForwardTurns(targetID int64, turns time.Duration) error {
	_, err := tx.exec("UPDATE forwarding_targets SET rate_next = rate_next - cast($2 AS bigint) WHERE id = $1 AND rate_next IS NOT NULL", targetID, turns.Microseconds())
	return err
}

// DelayForwardTurns moves the next turn of a target to a time, unless it is later already.
func (tx *Tx) DelayForwardTurns(targetID int64, until time.Time) error {
	_, err := tx.exec("UPDATE forwarding_targets SET rate_next = cast($2 AS bigint) WHERE id = $1 AND rate_next < cast($2 AS bigint)", targetID, until.UnixMicro())
	return err
}

// changeForwardRate sets or removes a rate limit. A delivery that waits for its turn under the old limit waits at most
// one turn of the new one.
func (tx *Tx) changeForwardRate(id int64, rate hookglass.Rate) error {
	if !rate.Bounded() {
		return tx.change("forwarding target", "UPDATE forwarding_targets SET rate_limit = NULL, rate_period = NULL, rate_next = NULL WHERE id = $1", id)
	}
	soonest := tx.Now.Add(rate.Every()).UnixMicro()
	return tx.change("forwarding target", `UPDATE forwarding_targets SET rate_limit = $2, rate_period = $3,
		rate_next = CASE WHEN rate_next < cast($4 AS bigint) THEN rate_next ELSE cast($4 AS bigint) END WHERE id = $1`,
		id, rate.Limit, int64(rate.Period/time.Second), soonest)
}

// CountForwardsInLine counts the pending deliveries to some targets that are due by a time, up to most.
func (v *View) CountForwardsInLine(targets []int64, at time.Time, most int) (n int, err error) {
	err = v.queryRow("delivery", "SELECT count(*) FROM (SELECT 1 FROM forwards WHERE "+v.dialect.among("target", "$1")+" AND due_at <= $2 AND state = 'pending' LIMIT $3) AS n",
		[]any{v.dialect.list(targets), at.UnixMicro(), most}, &n)
	return n, err
}

// ForwardBacklogs returns what waits for each of some targets of an endpoint. Per target it reads at most
// [hookglass.MostPending] deliveries, and those being sent.
func (v *View) ForwardBacklogs(ref string, targets ...hookglass.ForwardingTarget) ([]hookglass.ForwardBacklog, error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return nil, err
	}
	all := make([]hookglass.ForwardBacklog, len(targets))
	for i, t := range targets {
		if all[i], err = v.forwardBacklog(t, log.floor); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// forwardBacklog returns what waits for a target. The condition is "state <> 'sending'" on purpose: for "state =
// 'pending'", PostgreSQL would, before the table is analysed, expect so few rows that it sorts the whole queue.
func (v *View) forwardBacklog(t hookglass.ForwardingTarget, floor int64) (b hookglass.ForwardBacklog, err error) {
	const pending = "FROM forwards WHERE target = $1 AND due_at IS NOT NULL AND state <> 'sending'"
	var last, next sql.NullInt64
	err = v.queryRow("forwarding target", "SELECT (SELECT count(*) FROM (SELECT 1 "+pending+" AND event + 0 > $2 LIMIT $3) AS n), (SELECT due_at "+pending+
		" ORDER BY due_at DESC, num DESC LIMIT 1), rate_next FROM forwarding_targets WHERE id = $1", []any{t.ID, floor, hookglass.MostPending}, &b.Pending, &last, &next)
	if err != nil || b.Pending == 0 || !t.Enabled || !t.PausedAt.IsZero() {
		return b, err
	}
	b.Until = v.Now
	if t.Rate.Bounded() {
		b.Until = t.Rate.Last(fromMicros(next), v.Now, b.Pending)
	}
	if due := fromMicros(last); due.After(b.Until) {
		b.Until = due
	}
	return b, nil
}
