package store

import (
	"database/sql"
	"encoding/json"
	"math"
	"time"

	"hookglass"
)

const targetColumns = `t.id, t.endpoint, e.id, t.name, t.url, t.condition, t.header_names, t.sealed, t.enabled, t.timeout_seconds, t.retry_count, t.rate_limit, t.rate_period, t.dedupe_by, t.dedupe_seconds, t.failures,
	t.failing_from, t.paused_at, t.pause_reason, t.created_at, t.updated_at`

const targetTables = ` FROM forwarding_targets t JOIN endpoints e ON e.num = t.endpoint + 0`

func scanTarget(scan func(...any) error) (t hookglass.ForwardingTarget, err error) {
	var enabled, timeout, created, updated int64
	var limit, period, window, failing, paused sql.NullInt64
	var when, names, by, reason sql.NullString
	err = scan(&t.ID, &t.EndpointNum, &t.EndpointID, &t.Name, &t.URL, &when, &names, &t.Sealed, &enabled, &timeout, &t.RetryCount, &limit, &period, &by, &window, &t.Failures, &failing,
		&paused, &reason, &created, &updated)
	if err == nil && names.Valid {
		err = json.Unmarshal([]byte(names.String), &t.HeaderNames)
	}
	t.When = decodeText(when.String)
	t.Enabled, t.Timeout = enabled != 0, time.Duration(timeout)*time.Second
	t.Rate, t.Dedupe = rateOf(limit.Int64, period.Int64), dedupeOf(by.String, window.Int64)
	t.FailingFrom, t.PausedAt, t.PauseReason = fromMicros(failing), fromMicros(paused), reason.String
	t.CreatedAt, t.UpdatedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	return t, err
}

// rateOf decodes a rate limit; zero is none.
func rateOf(limit, period int64) hookglass.Rate {
	if limit == 0 {
		return hookglass.Rate{}
	}
	return hookglass.Rate{Limit: int(limit), Period: time.Duration(period) * time.Second}
}

// dedupeOf decodes a setting of duplicates; empty is none.
func dedupeOf(by string, seconds int64) hookglass.Dedupe {
	if by == "" {
		return hookglass.Dedupe{}
	}
	return hookglass.Dedupe{By: hookglass.DedupeBy(by), Window: time.Duration(seconds) * time.Second}
}

// targetHeaders returns the values of the columns of a target's headers: both are NULL if there are none.
func targetHeaders(t *hookglass.ForwardingTarget) (names, sealed any) {
	if len(t.HeaderNames) == 0 {
		return nil, nil
	}
	text, _ := json.Marshal(t.HeaderNames) // of strings it never fails
	return string(text), t.Sealed
}

// ForwardingTargets lists the targets of an endpoint with an id above after, oldest first; limit 0 is all.
func (v *View) ForwardingTargets(ref string, after int64, limit int) ([]hookglass.ForwardingTarget, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + targetColumns + targetTables + " WHERE " + v.dialect.oldestOf(a, "t.endpoint", e.Num, "t.id", after, limit)
	return queryAll(v, scanTarget, query, a.all()...)
}

// ForwardingTarget returns one target of an endpoint. It answers not_found.
func (v *View) ForwardingTarget(ref string, id int64) (t hookglass.ForwardingTarget, err error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return t, err
	}
	return v.forwardingTarget(e.Num, id, "")
}

func (v *View) forwardingTarget(endpointNum, id int64, lock string) (hookglass.ForwardingTarget, error) {
	return one(v, "forwarding target", scanTarget, "SELECT "+targetColumns+targetTables+" WHERE t.endpoint = $1 AND t.id = $2"+lock, &args{[]any{endpointNum, id}})
}

// TargetChoice is what decides, when an event is captured, whether a forwarding target gets it.
type TargetChoice struct {
	TargetID int64
	When     string // see [hookglass.ForwardingTarget]
	By       hookglass.DedupeBy
}

// TargetChoices lists the choices of an endpoint's enabled targets.
func (v *View) TargetChoices(endpointNum int64) ([]TargetChoice, error) {
	return queryAll(v, func(scan func(...any) error) (c TargetChoice, err error) {
		var when, by sql.NullString
		err = scan(&c.TargetID, &when, &by)
		c.When, c.By = decodeText(when.String), hookglass.DedupeBy(by.String)
		return c, err
	}, "SELECT id, condition, dedupe_by FROM forwarding_targets WHERE endpoint = $1 AND enabled = 1 ORDER BY id", endpointNum)
}

// SealedHeaders returns the sealed headers of targets as they are now, by their ids: nil for one without, nothing for
// one that is gone.
func (v *View) SealedHeaders(targets []int64) (map[int64][]byte, error) {
	sealed := make(map[int64][]byte, len(targets))
	err := v.queryEach(func(scan func(...any) error) error {
		var id int64
		var headers []byte
		err := scan(&id, &headers)
		sealed[id] = headers
		return err
	}, "SELECT id, sealed FROM forwarding_targets WHERE "+v.dialect.among("id", "$1"), v.dialect.list(targets))
	return sealed, err
}

// CountForwardingTargets counts the targets of an endpoint.
func (v *View) CountForwardingTargets(endpointNum int64) (n int64, err error) {
	err = v.queryRow("endpoint", "SELECT count(*) FROM forwarding_targets WHERE endpoint = $1", []any{endpointNum}, &n)
	return n, err
}

// CreateForwardingTarget stores a new target and sets its id and times.
func (tx *Tx) CreateForwardingTarget(t *hookglass.ForwardingTarget) error {
	t.CreatedAt, t.UpdatedAt = tx.Now, tx.Now
	names, sealed := targetHeaders(t)
	tx.AnnounceAtOnce(TopicEndpoints)
	return tx.queryRow("forwarding target", `INSERT INTO forwarding_targets (endpoint, name, url, condition, header_names, sealed, enabled, timeout_seconds, retry_count, rate_limit, rate_period,
			dedupe_by, dedupe_seconds, failures, created_at, updated_at)
		VALUES ($1, $2, $3, $10, $11, $12, $4, $5, $6, $8, $9, $13, $14, 0, $7, $7) RETURNING id`,
		[]any{t.EndpointNum, t.Name, t.URL, boolInt(t.Enabled), int64(t.Timeout / time.Second), t.RetryCount, tx.Now.UnixMicro(),
			nullInt(int64(t.Rate.Limit)), nullInt(int64(t.Rate.Period / time.Second)), nullString(encodeText(t.When)), names, sealed,
			nullString(string(t.Dedupe.By)), nullInt(int64(t.Dedupe.Window / time.Second))}, &t.ID)
}

// SkipForwardsOfDisabled skips up to limit deliveries that wait for a target, if it is disabled, and reports whether
// there may be more. Call it until then before the target is enabled, so that ChangeForwardingTarget has little to
// skip. If the process dies in between, the target is still disabled, and the rest is skipped in the background. It
// answers not_found.
func (tx *Tx) SkipForwardsOfDisabled(endpointNum, id int64, limit int) (more bool, err error) {
	t, err := tx.forwardingTarget(endpointNum, id, tx.dialect.forUpdateOf("t"))
	if err != nil || t.Enabled {
		return false, err
	}
	n, err := tx.SkipForwards(id, tx.Now, limit)
	return n == int64(limit), err
}

// ChangeForwardingTarget loads a target, applies change and stores the result. Enabling a disabled target skips the
// deliveries that have waited since before it was disabled. It answers not_found.
func (tx *Tx) ChangeForwardingTarget(endpointNum, id int64, change func(*hookglass.ForwardingTarget) error) (t hookglass.ForwardingTarget, err error) {
	// The row is locked, so that this and the counting of failures do not overwrite each other.
	if t, err = tx.forwardingTarget(endpointNum, id, tx.dialect.forUpdateOf("t")); err != nil {
		return t, err
	}
	disabled, rate := !t.Enabled, t.Rate
	if err := change(&t); err != nil {
		return t, err
	}
	if disabled && t.Enabled {
		// What SkipForwardsOfDisabled has left, which is little, must not be sent.
		if _, err := tx.SkipForwards(id, tx.Now, math.MaxInt32); err != nil {
			return t, err
		}
	}
	if t.Rate != rate {
		if err := tx.changeForwardRate(id, t.Rate); err != nil {
			return t, err
		}
	}
	t.UpdatedAt = tx.Now
	names, sealed := targetHeaders(&t)
	tx.AnnounceAtOnce(TopicEndpoints, TopicForwards)
	return t, tx.change("forwarding target", `UPDATE forwarding_targets SET name = $2, url = $3, enabled = $4, timeout_seconds = $5, retry_count = $6,
		failures = $7, failing_from = $8, paused_at = $9, pause_reason = $10, updated_at = $11, condition = $12, header_names = $13, sealed = $14,
		dedupe_by = $15, dedupe_seconds = $16 WHERE id = $1`,
		id, t.Name, t.URL, boolInt(t.Enabled), int64(t.Timeout/time.Second), t.RetryCount,
		t.Failures, micros(t.FailingFrom), micros(t.PausedAt), nullString(t.PauseReason), tx.Now.UnixMicro(), nullString(encodeText(t.When)), names, sealed,
		nullString(string(t.Dedupe.By)), nullInt(int64(t.Dedupe.Window/time.Second)))
}

// DeleteForwardingTarget deletes a target. Its deliveries are in no list of deliveries any more, and what waits is
// skipped in the background; their rows go with their events. It answers not_found.
func (tx *Tx) DeleteForwardingTarget(endpointNum, id int64) error {
	tx.AnnounceAtOnce(TopicEndpoints, TopicForwards)
	return tx.change("forwarding target", "DELETE FROM forwarding_targets WHERE endpoint = $1 AND id = $2", endpointNum, id)
}
