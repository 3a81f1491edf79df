package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"hookglass"
)

// ForwardQueue is the queue of one target, with what decides whether its deliveries may be sent.
type ForwardQueue struct {
	TargetID     int64
	Gone         bool // the target or its endpoint was deleted; nothing below is set
	Target       hookglass.ForwardingTarget
	HasHeaders   bool // of the target, which are to be loaded: see [View.SealedHeaders]
	AccountID    int64
	Entitlements hookglass.Entitlements // of the account, where there is one
	FirstAt      time.Time              // when the first of them is due
	NextTurn     time.Time              // of a target with a rate limit, see [hookglass.Rate]; zero: none was used yet
}

// awaited yields the targets with deliveries that are not final, and a NULL. It finds each with one index look-up,
// however long its queue is.
const awaited = `WITH RECURSIVE q (target) AS (
	SELECT (SELECT f.target FROM forwards f WHERE f.due_at IS NOT NULL ORDER BY f.target, f.due_at, f.num LIMIT 1)
	UNION ALL
	SELECT (SELECT f.target FROM forwards f WHERE f.due_at IS NOT NULL AND f.target > q.target ORDER BY f.target, f.due_at, f.num LIMIT 1) FROM q WHERE q.target IS NOT NULL
	)
	`

// ForwardQueues lists the targets with deliveries that are not final, by id.
func (v *View) ForwardQueues() ([]ForwardQueue, error) {
	return queryAll(v, scanForwardQueue, awaited+`SELECT q.target, (SELECT f.due_at FROM forwards f WHERE f.target = q.target AND f.due_at IS NOT NULL ORDER BY f.due_at, f.num LIMIT 1),
			coalesce(e.num, 0), coalesce(e.id, ''), coalesce(t.name, ''), coalesce(t.url, ''), t.sealed IS NOT NULL, coalesce(t.enabled, 0), coalesce(t.timeout_seconds, 0),
			coalesce(t.retry_count, 0), coalesce(t.rate_limit, 0), coalesce(t.rate_period, 0), t.rate_next, coalesce(t.dedupe_by, ''), coalesce(t.dedupe_seconds, 0), t.paused_at, coalesce(t.failures, 0), coalesce(a.id, 0), coalesce(a.plan, ''), coalesce(a.subscription, ''), coalesce(a.payment_method, 0)
		FROM q`+v.dialect.with("forwarding_targets", "t", "t.id = q.target")+
		v.dialect.with("endpoints", "e", "e.num = t.endpoint AND e.deleted_at IS NULL")+v.dialect.with("accounts", "a", "a.id = e.account_id")+`
		WHERE q.target IS NOT NULL ORDER BY q.target`)
}

func scanForwardQueue(scan func(...any) error) (q ForwardQueue, err error) {
	var first, next, paused sql.NullInt64
	var enabled, timeout, limit, period, window, payment int64
	var by string
	var a hookglass.Account
	t := &q.Target
	err = scan(&q.TargetID, &first, &t.EndpointNum, &t.EndpointID, &t.Name, &t.URL, &q.HasHeaders, &enabled, &timeout,
		&t.RetryCount, &limit, &period, &next, &by, &window, &paused, &t.Failures, &q.AccountID, &a.Plan, &a.Subscription, &payment)
	t.ID, t.Enabled, t.Timeout, t.PausedAt = q.TargetID, enabled != 0, time.Duration(timeout)*time.Second, fromMicros(paused)
	a.PaymentMethod = payment != 0
	t.Rate, q.NextTurn, t.Dedupe = rateOf(limit, period), fromMicros(next), dedupeOf(by, window)
	q.Gone, q.Entitlements, q.FirstAt = t.EndpointNum == 0, a.Entitlements(), fromMicros(first)
	return q, err
}

// ClaimedForward is a leased delivery. Claim is a fencing token: an outcome with an older one is refused.
type ClaimedForward struct {
	hookglass.Forward
	Claim int64
	Lost  int // earlier claims whose outcome was never reported

	Evidence  *hookglass.ForwardEvidence // of the last attempt, to be stored with it
	Duplicate *hookglass.Duplicate       // why it is skipped or waits, to be stored with it; nil: it is no duplicate
}

// waiting picks the first deliveries of a target; $1 is the target and $3 the limit.
func (d dialect) waiting(condition string) string {
	return "WITH picked AS MATERIALIZED (SELECT num FROM forwards WHERE target = $1 AND due_at IS NOT NULL AND " + condition +
		" ORDER BY due_at, num LIMIT $3" + d.forUpdate() + d.skipLocked() + ") "
}

// ClaimForwards leases deliveries to a target that are due at a time, including those whose lease has expired, in the
// order of their due times. Claims are also times: one that a crash of the database undid must not equal a later one.
func (tx *Tx) ClaimForwards(targetID int64, at time.Time, limit int, lease time.Duration) ([]ClaimedForward, error) {
	return queryAll(&tx.View, scanClaimedForward, tx.dialect.waiting("due_at <= $2")+`UPDATE forwards
		SET state = 'sending', due_at = $4, claim = CASE WHEN claim < $4 THEN $4 ELSE claim + 1 END, lost = lost + CASE WHEN state = 'sending' THEN 1 ELSE 0 END
		WHERE `+tx.dialect.picked("num", "SELECT num FROM picked")+` RETURNING num, target, endpoint, event, claim, lost, spent, status, attempts, created_at`,
		targetID, at.UnixMicro(), limit, at.Add(lease).UnixMicro())
}

func scanClaimedForward(scan func(...any) error) (c ClaimedForward, err error) {
	var attempts []byte
	var created int64
	var status sql.NullInt64
	if err := scan(&c.Num, &c.TargetID, &c.EndpointNum, &c.EventSeq, &c.Claim, &c.Lost, &c.Spent, &status, &attempts, &created); err != nil {
		return c, err
	}
	c.StatusCode = int(status.Int64)
	c.State, c.CreatedAt = hookglass.ForwardSending, time.UnixMicro(created).UTC()
	c.Attempts, err = readAttempts(c.Num, attempts)
	return c, err
}

func readAttempts(num int64, text []byte) (attempts []hookglass.ForwardAttempt, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(text, &attempts); err != nil {
		return nil, fmt.Errorf("attempts of delivery %d: %w", num, err)
	}
	return attempts, nil
}

// SettleForwards stores the outcomes of claimed deliveries: state, attempts and, for those pending again, NextAt. It
// returns for each whether it was stored; if not, its claim was lost or its event deleted. The same delivery may occur
// twice, with a lost claim and with the current one.
func (tx *Tx) SettleForwards(settled []ClaimedForward) ([]bool, error) {
	in := input{columns: []inputColumn{
		{"num", inputInteger}, {"claim", inputInteger}, {"state", inputText}, {"due_at", inputInteger}, {"status", inputInteger}, {"attempts", inputBytes}, {"finished_at", inputInteger},
	}}
	for _, c := range settled {
		var attempts any // NULL: none was made
		if len(c.Attempts) > 0 {
			text, err := json.Marshal(c.Attempts)
			if err != nil {
				return nil, err
			}
			attempts = text
		}
		in.rows = append(in.rows, []any{c.Num, c.Claim, string(c.State), micros(c.NextAt), nullInt(int64(c.StatusCode)), attempts, micros(c.FinishedAt)})
	}
	stored := make([]bool, len(settled))
	if len(in.rows) == 0 {
		return stored, nil
	}
	from, args, err := in.from(tx.dialect, "s")
	if err != nil {
		return nil, err
	}
	type claim struct{ num, claim int64 }
	written, err := queryAll(&tx.View, func(scan func(...any) error) (c claim, err error) { err = scan(&c.num, &c.claim); return c, err },
		`UPDATE forwards SET state = s.state, due_at = s.due_at, status = s.status, attempts = s.attempts, finished_at = s.finished_at FROM `+from+`
		WHERE forwards.num = s.num`+in.lookup(tx.dialect, "forwards.num")+` AND forwards.claim = s.claim AND forwards.state = 'sending' RETURNING forwards.num, forwards.claim`, args...)
	failed := map[int64]bool{} // by endpoint
	for i, c := range settled {
		stored[i] = slices.Contains(written, claim{c.Num, c.Claim})
		if stored[i] && c.State == hookglass.ForwardFailed && !failed[c.EndpointNum] {
			failed[c.EndpointNum] = true
			tx.Announce(TopicEvents(c.EndpointNum))
		}
	}
	return stored, err
}

// AddForwardEvidence stores the evidence of the last attempts that have it. Call it in the transaction that settles
// them.
func (tx *Tx) AddForwardEvidence(settled []ClaimedForward) error {
	in := input{columns: []inputColumn{{"forward", inputInteger}, {"event", inputInteger}, {"attempt", inputInteger}, {"record", inputBytes}}}
	for _, c := range settled {
		if c.Evidence == nil {
			continue
		}
		e := *c.Evidence
		e.Request, e.Response = *exchange(&e.Request, encodeText), answered(e.Response, encodeText)
		record, err := json.Marshal(e)
		if err != nil {
			return err
		}
		in.rows = append(in.rows, []any{c.Num, c.EventSeq, e.Attempt, record})
	}
	return tx.insert("forward_evidence", in, "")
}

// ExtendForwards extends leases. claims holds the claims by delivery; those that were lost are left alone.
func (tx *Tx) ExtendForwards(claims map[int64]int64, until time.Time) error {
	in := input{columns: []inputColumn{{"num", inputInteger}, {"claim", inputInteger}, {"due_at", inputInteger}}}
	for _, num := range slices.Sorted(maps.Keys(claims)) { // all transactions lock the rows in the same order
		in.rows = append(in.rows, []any{num, claims[num], until.UnixMicro()})
	}
	return tx.update("forwards", "due_at = i.due_at", in, " AND forwards.claim = i.claim AND forwards.state = 'sending'")
}

// SpareForwards extends all leases that end before a time.
func (tx *Tx) SpareForwards(until time.Time) error {
	targets, err := queryAll(&tx.View, scanNum, awaited+"SELECT q.target FROM q WHERE q.target IS NOT NULL ORDER BY q.target")
	for _, id := range targets {
		if err == nil {
			_, err = tx.exec(tx.dialect.waiting("due_at < $2 AND state = 'sending'")+"UPDATE forwards SET due_at = $2 WHERE "+tx.dialect.picked("num", "SELECT num FROM picked"),
				id, until.UnixMicro(), math.MaxInt32)
		}
	}
	return err
}

// SkipForwards marks up to limit waiting deliveries of a target as skipped, and returns how many. They lose their keys
// (see [Tx.DropForwardKeys]).
func (tx *Tx) SkipForwards(targetID int64, at time.Time, limit int) (int64, error) {
	skipped, err := queryAll(&tx.View, scanNum, tx.dialect.waiting("(state = 'pending' OR due_at <= $2)")+`UPDATE forwards SET state = 'skipped', due_at = NULL, finished_at = $2
		WHERE `+tx.dialect.picked("num", "SELECT num FROM picked")+" RETURNING num", targetID, at.UnixMicro(), limit)
	if err != nil || len(skipped) == 0 {
		return 0, err
	}
	return int64(len(skipped)), tx.DropForwardKeys(skipped)
}

// recallRows bounds the deliveries that one transaction recalls, because captures wait for it.
const recallRows = 500

// dueTooLate is the condition that a delivery is due later than any delay can explain: its due time was computed before
// the clock was set back. The limit is $1, or $2 for a target's own Retry-After. A delivery created after $1 is such a
// one too.
const dueTooLate = "due_at > $1 AND (state <> 'pending' OR attempts IS NULL OR created_at > $1 OR due_at > $2)"

func tooLate(beyond time.Time) []any {
	return []any{beyond.UnixMicro(), beyond.Add(hookglass.MaxForwardWait).UnixMicro()}
}

// ForwardRecall is a search for a target's deliveries that are due later than any delay can explain.
type ForwardRecall struct {
	TargetID int64

	due, num int64 // where it continues
}

// ForwardRecalls lists the targets with deliveries due later than a time.
func (v *View) ForwardRecalls(beyond time.Time) ([]ForwardRecall, error) {
	return queryAll(v, func(scan func(...any) error) (r ForwardRecall, err error) { err = scan(&r.TargetID); return r, err }, awaited+`SELECT q.target FROM q
		WHERE (SELECT f.due_at FROM forwards f WHERE f.target = q.target AND f.due_at IS NOT NULL ORDER BY f.due_at DESC, f.num DESC LIMIT 1) > $1
		ORDER BY q.target`, beyond.UnixMicro())
}

// LateForwards returns the next deliveries of a recall and the remaining recall. If it returns none, the recall is
// done.
func (v *View) LateForwards(r ForwardRecall, beyond time.Time) (nums []int64, left ForwardRecall, err error) {
	type place struct{ due, num int64 }
	found, err := queryAll(v, func(scan func(...any) error) (p place, err error) { err = scan(&p.due, &p.num); return p, err },
		"SELECT due_at, num FROM forwards WHERE "+dueTooLate+" AND target = $3 AND due_at IS NOT NULL AND (due_at, num) > ($4, $5) ORDER BY due_at, num LIMIT $6",
		append(tooLate(beyond), r.TargetID, max(r.due, beyond.UnixMicro()), r.num, recallRows)...)
	for _, p := range found {
		nums = append(nums, p.num)
		r.due, r.num = p.due, p.num
	}
	return nums, r, err
}

// RecallForwards makes those of the given deliveries that are still due too late due now.
func (tx *Tx) RecallForwards(nums []int64, now, beyond time.Time) error {
	_, err := tx.exec("UPDATE forwards SET due_at = $3 WHERE "+tx.dialect.among("num", "$4")+" AND "+dueTooLate, append(tooLate(beyond), now.UnixMicro(), tx.dialect.list(nums))...)
	return err
}

// CountForwardFailures adds to a target's number of consecutive failed deliveries and returns the updated target. It
// answers not_found.
func (tx *Tx) CountForwardFailures(endpointNum, targetID int64, n int, at time.Time) (hookglass.ForwardingTarget, error) {
	err := tx.change("forwarding target", `UPDATE forwarding_targets SET failures = failures + cast($2 AS bigint), failing_from = coalesce(failing_from, cast($3 AS bigint)) WHERE id = $1`,
		targetID, n, at.UnixMicro())
	if err != nil {
		return hookglass.ForwardingTarget{}, err
	}
	return tx.forwardingTarget(endpointNum, targetID, "")
}

// ClearForwardFailures resets a target's number of consecutive failed deliveries.
func (tx *Tx) ClearForwardFailures(targetID int64) error {
	_, err := tx.exec("UPDATE forwarding_targets SET failures = 0, failing_from = NULL WHERE id = $1 AND failures > 0", targetID)
	return err
}

// PauseForwardingTarget makes a target's deliveries wait until it is resumed.
func (tx *Tx) PauseForwardingTarget(targetID int64, at time.Time, reason string) error {
	tx.Announce(TopicEndpoints)
	return tx.change("forwarding target", "UPDATE forwarding_targets SET paused_at = $2, pause_reason = $3 WHERE id = $1", targetID, at.UnixMicro(), reason)
}

// EventsBySeq returns those of the events with the given seqs that still exist. It loads payloads of up to maxSize
// bytes.
func (v *View) EventsBySeq(seqs []int64, maxSize int64) (map[int64]*hookglass.Event, error) {
	a := &args{}
	events, err := queryAll(v, func(scan func(...any) error) (*hookglass.Event, error) {
		var log eventLog
		e, err := log.scan(func(dest ...any) error { return scan(append([]any{&log.endpoint.Num, &log.endpoint.ID}, dest...)...) })
		if err == nil {
			e.EndpointNum, e.EndpointID = log.endpoint.Num, log.endpoint.ID
		}
		return e, err
	}, "SELECT endpoint, (SELECT e.id FROM endpoints e WHERE e.num = endpoint), "+listColumns+" FROM events WHERE "+v.dialect.among("seq", a.add(v.dialect.list(seqs)))+
		" AND seq > (SELECT s.floor_seq FROM endpoint_stats s WHERE s.endpoint = events.endpoint)", a.all()...)
	if err != nil {
		return nil, err
	}
	found := make(map[int64]*hookglass.Event, len(events))
	var small []*hookglass.Event
	for _, e := range events {
		found[e.Seq] = e
		if e.Size <= maxSize {
			small = append(small, e)
		}
	}
	if len(small) == 0 {
		return found, nil
	}
	return found, v.loadPayloads(small)
}

// forwardColumns lists the columns of a delivery f of an event e. It is a duplicate if it was skipped as one, which is
// when it has no key any more, or waits without an attempt.
const forwardColumns = `f.num, f.target, f.endpoint, f.event, e.id, f.state, f.due_at, f.status, f.attempts, f.created_at, f.finished_at,
	(SELECT k.same_as FROM forward_keys k WHERE k.forward = f.num AND (f.state = 'skipped' AND k.key IS NULL OR f.state = 'pending' AND f.attempts IS NULL))`

// forwardOf returns a scanner for deliveries to a target.
func forwardOf(t hookglass.ForwardingTarget) func(scan func(...any) error) (hookglass.Forward, error) {
	return func(scan func(...any) error) (f hookglass.Forward, err error) {
		var due, status, finished sql.NullInt64
		var attempts []byte
		var created int64
		var same sql.NullString
		if err := scan(&f.Num, &f.TargetID, &f.EndpointNum, &f.EventSeq, &f.EventID, &f.State, &due, &status, &attempts, &created, &finished, &same); err != nil {
			return f, err
		}
		f.SameAs = hookglass.EventID(same.String)
		if f.State == hookglass.ForwardPending && t.PausedAt.IsZero() {
			f.NextAt = fromMicros(due)
		}
		f.StatusCode, f.CreatedAt, f.FinishedAt = int(status.Int64), time.UnixMicro(created).UTC(), fromMicros(finished)
		f.Attempts, err = readAttempts(f.Num, attempts)
		return f, err
	}
}

// Forwards lists the deliveries to a target of an endpoint, newest first. If before is not 0, only those with a smaller
// Num are listed. It answers not_found.
func (v *View) Forwards(ref string, targetID, before int64, limit int) ([]hookglass.Forward, error) {
	return v.forwards(ref, targetID, before, limit, "")
}

// forwards lists the deliveries to a target that meet a condition, which ends with AND.
func (v *View) forwards(ref string, targetID, before int64, limit int, condition string) ([]hookglass.Forward, error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return nil, err
	}
	t, err := v.forwardingTarget(log.endpoint.Num, targetID, "")
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + forwardColumns + " FROM forwards f JOIN events e ON e.seq = f.event WHERE " + condition + "f.event > " + a.add(log.floor) + " AND " +
		v.dialect.newestOf(a, "f.target", targetID, "f.num", before, limit)
	return queryAll(v, forwardOf(t), query, a.all()...)
}

// Forward returns the delivery of an event to a target of an endpoint, with the evidence of its attempts as far as it
// is kept. It answers not_found.
func (v *View) Forward(ref string, targetID int64, event hookglass.EventID) (f hookglass.Forward, evidence []hookglass.ForwardEvidence, err error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return f, nil, err
	}
	t, err := v.forwardingTarget(log.endpoint.Num, targetID, "")
	if err != nil {
		return f, nil, err
	}
	if f, err = v.forward(log, t, event, ""); err != nil {
		return f, nil, err
	}
	evidence, err = queryAll(v, func(scan func(...any) error) (e hookglass.ForwardEvidence, err error) {
		var record []byte
		if err := scan(&record); err != nil {
			return e, err
		}
		if err := json.Unmarshal(record, &e); err != nil {
			return e, fmt.Errorf("evidence of delivery %d: %w", f.Num, err)
		}
		e.Request, e.Response = *exchange(&e.Request, decodeText), answered(e.Response, decodeText)
		return e, nil
	}, "SELECT record FROM forward_evidence WHERE forward = $1 ORDER BY attempt", f.Num)
	if err != nil {
		return f, nil, err
	}
	return f, evidence, v.completeEvidence(f.EventSeq, evidence)
}

func (v *View) forward(log eventLog, t hookglass.ForwardingTarget, event hookglass.EventID, lock string) (hookglass.Forward, error) {
	// "+ 0" as in EventOf.
	return one(v, "delivery", forwardOf(t), "SELECT "+forwardColumns+` FROM events e JOIN forwards f ON f.event = e.seq
		WHERE e.endpoint + 0 = $1 AND e.id = $2 AND f.target = $3 AND e.seq + 0 > $4`+lock, &args{[]any{log.endpoint.Num, string(event), t.ID, log.floor}})
}

// completeEvidence fills in the request bodies that are stored only with the event.
func (v *View) completeEvidence(eventSeq int64, evidence []hookglass.ForwardEvidence) error {
	most := 0
	for _, e := range evidence {
		most = max(most, e.EventBody)
	}
	if most == 0 {
		return nil
	}
	var body []byte
	if err := v.queryRow("request", "SELECT SUBSTR(body, 1, $2) FROM payloads WHERE seq = $1", []any{eventSeq, most}, &body); err != nil {
		return err
	}
	for i := range evidence {
		if n := evidence[i].EventBody; n > 0 {
			evidence[i].Request.Body = body[:min(n, len(body))]
		}
	}
	return nil
}
