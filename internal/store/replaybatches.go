package store

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"hookglass"
)

const batchColumns = `b.num, b.id, b.endpoint, b.query, b.target_url, b.identity_mode, b.signature_mode, b.rate, b.stop_on_failure, b.state,
	b.total, b.passed, b.failed, b.created_at, b.updated_at, b.finished_at`

func scanBatch(scan func(...any) error) (b hookglass.ReplayBatch, err error) {
	var stop, created, updated int64
	var finished sql.NullInt64
	err = scan(&b.Num, &b.ID, &b.EndpointNum, &b.Query, &b.TargetURL, &b.Options.Identity, &b.Options.Signature, &b.Rate, &stop, &b.State,
		&b.Total, &b.Passed, &b.Failed, &created, &updated, &finished)
	b.Query, b.StopOnFailure = decodeText(b.Query), stop != 0
	b.CreatedAt, b.UpdatedAt, b.FinishedAt = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC(), fromMicros(finished)
	return b, err
}

// CreateReplayBatch stores a bulk replay of those events with the given seqs that still exist, sets its Num, Total and
// times, and enqueues its job.
func (tx *Tx) CreateReplayBatch(b *hookglass.ReplayBatch, seqs []int64) error {
	b.CreatedAt, b.UpdatedAt = tx.Now, tx.Now
	err := tx.queryRow("replay batch", `INSERT INTO replay_batches (id, endpoint, query, target_url, identity_mode, signature_mode, rate, stop_on_failure, state,
		total, passed, failed, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, 0, $10, $10) RETURNING num`,
		[]any{b.ID, b.EndpointNum, encodeText(b.Query), b.TargetURL, string(b.Options.Identity), string(b.Options.Signature), b.Rate, boolInt(b.StopOnFailure),
			string(b.State), tx.Now.UnixMicro()}, &b.Num)
	if err != nil {
		return err
	}
	b.Total, err = tx.exec(`INSERT INTO replay_batch_items (batch, event, event_id, state) SELECT cast($1 AS bigint), seq, id, 'pending' FROM events
		WHERE endpoint = $2 AND `+tx.dialect.among("seq", "$3")+` ORDER BY seq`, b.Num, b.EndpointNum, tx.dialect.list(seqs))
	if err != nil {
		return err
	}
	tx.Enqueue(hookglass.ReplayBatchJob{BatchID: b.ID})
	return tx.change("replay batch", "UPDATE replay_batches SET total = $2 WHERE num = $1", b.Num, b.Total)
}

// EventSeqs returns the Seqs of an endpoint's events by their ids, each once. gone lists the indexes of ids that do not
// exist.
func (v *View) EventSeqs(ref string, ids []string) (seqs []int64, gone []int, err error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return nil, nil, err
	}
	a := &args{}
	var named []string
	places := map[hookglass.EventID][]int{} // indexes of ids not found yet
	for i, id := range ids {
		eventID, err := hookglass.ParseEventID(id)
		if err == nil {
			named = append(named, a.add(string(eventID)))
		}
		places[eventID] = append(places[eventID], i)
	}
	if len(named) == 0 {
		named = append(named, "NULL")
	}
	// The endpoint is compared in Go: in SQL it would make SQLite scan all events of the endpoint.
	err = v.queryEach(func(scan func(...any) error) error {
		var seq, endpoint int64
		var id hookglass.EventID
		err := scan(&seq, &endpoint, &id)
		if endpoint == log.endpoint.Num && seq > log.floor {
			seqs = append(seqs, seq)
			delete(places, id)
		}
		return err
	}, "SELECT seq, endpoint, id FROM events WHERE id IN ("+strings.Join(named, ", ")+")", a.all()...)
	for _, at := range places {
		gone = append(gone, at...)
	}
	slices.Sort(gone)
	return seqs, gone, err
}

// ReplayBatches lists the bulk replays of an endpoint, newest first. If before is not 0, only those with a smaller Num
// are listed.
func (v *View) ReplayBatches(ref string, before int64, limit int) ([]hookglass.ReplayBatch, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + batchColumns + " FROM replay_batches b WHERE " + v.dialect.newestOf(a, "b.endpoint", e.Num, "b.num", before, limit)
	return queryAll(v, scanBatch, query, a.all()...)
}

// ReplayBatch returns one bulk replay of an endpoint. It answers not_found.
func (v *View) ReplayBatch(ref, id string) (hookglass.ReplayBatch, error) {
	return v.replayBatch(ref, id, "")
}

func (v *View) replayBatch(ref, id, lock string) (b hookglass.ReplayBatch, err error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return b, err
	}
	return one(v, "replay batch", scanBatch, "SELECT "+batchColumns+" FROM replay_batches b WHERE b.endpoint = $1 AND b.id = $2"+lock, &args{[]any{e.Num, id}})
}

// LockReplayBatch is ReplayBatch with a lock: nobody else can change its state until the transaction ends.
func (tx *Tx) LockReplayBatch(ref, id string) (hookglass.ReplayBatch, error) {
	return tx.replayBatch(ref, id, tx.dialect.forUpdate())
}

// ReplayBatchByID returns a bulk replay of any endpoint. It answers not_found.
func (v *View) ReplayBatchByID(id string) (hookglass.ReplayBatch, error) {
	a := &args{}
	query := "SELECT " + batchColumns + " FROM replay_batches b JOIN endpoints e ON e.num = b.endpoint WHERE b.id = " + a.add(id) + " AND" + v.endpointScope(a)
	return one(v, "replay batch", scanBatch, query, a)
}

// MoveReplayBatch moves a bulk replay from one state to another, and enqueues its job if it is to run. It reports false
// if the bulk replay was in a different state.
func (tx *Tx) MoveReplayBatch(b *hookglass.ReplayBatch, from, to hookglass.BatchState) (bool, error) {
	finished := time.Time{}
	if to.Final() {
		finished = tx.Now
	}
	n, err := tx.exec("UPDATE replay_batches SET state = $3, updated_at = $4, finished_at = $5 WHERE num = $1 AND state = $2",
		b.Num, string(from), string(to), tx.Now.UnixMicro(), micros(finished))
	if err != nil || n == 0 {
		return false, err
	}
	b.State, b.UpdatedAt, b.FinishedAt = to, tx.Now, finished
	if to == hookglass.BatchRunning {
		tx.Enqueue(hookglass.ReplayBatchJob{BatchID: b.ID})
	}
	return true, nil
}

const itemColumns = "x.num, x.event, x.event_id, x.state, x.replay_id, x.status, x.error_code, x.error_text, x.finished_at"

func scanItem(scan func(...any) error) (i hookglass.BatchItem, err error) {
	var replay, code, text sql.NullString
	var status, finished sql.NullInt64
	err = scan(&i.Num, &i.EventSeq, &i.EventID, &i.State, &replay, &status, &code, &text, &finished)
	i.ReplayID, i.StatusCode, i.FinishedAt = replay.String, int(status.Int64), fromMicros(finished)
	if code.Valid {
		i.Failure = &hookglass.Failure{Code: code.String, Message: text.String}
	}
	return i, err
}

// BatchItems lists the events of a bulk replay with a Num above after, in the order of their replay.
func (v *View) BatchItems(ref, id string, after int64, limit int) ([]hookglass.BatchItem, error) {
	b, err := v.ReplayBatch(ref, id)
	if err != nil {
		return nil, err
	}
	a := &args{}
	query := "SELECT " + itemColumns + " FROM replay_batch_items x WHERE " + v.dialect.oldestOf(a, "x.batch", b.Num, "x.num", after, limit)
	return queryAll(v, scanItem, query, a.all()...)
}

// BeginBatchItem takes the next event of a running bulk replay and marks it as possibly sent. Only one event is in
// progress at a time: it answers conflict while one is, and not_found if none is left or the bulk replay does not run.
// If the rate does not allow the next event yet, it takes none and returns how long to wait.
func (tx *Tx) BeginBatchItem(b *hookglass.ReplayBatch) (i hookglass.BatchItem, wait time.Duration, err error) {
	// Lock the row, so that each worker sees what the one before has taken.
	if err := tx.queryRow("bulk replay", "SELECT num FROM replay_batches WHERE num = $1 AND state = 'running'"+tx.dialect.forUpdate(), []any{b.Num}, &b.Num); err != nil {
		return i, 0, err
	}
	next, err := one(&tx.View, "event", scanItem, "SELECT "+itemColumns+` FROM replay_batch_items x
		WHERE x.batch = $1 AND x.state = 'pending' AND x.finished_at IS NULL ORDER BY x.event LIMIT 1`, &args{[]any{b.Num}})
	if err != nil {
		return i, 0, err
	}
	var started, finished sql.NullInt64
	err = tx.queryRow("event", "SELECT started_at, finished_at FROM replay_batch_items WHERE batch = $1 AND event < $2 ORDER BY event DESC LIMIT 1",
		[]any{b.Num, next.EventSeq}, &started, &finished)
	switch {
	case hookglass.Is(err, hookglass.CodeNotFound): // it is the first
	case err != nil:
		return i, 0, err
	case !finished.Valid:
		return i, 0, hookglass.Errorf(hookglass.CodeConflict, "An event of the bulk replay is under way.")
	default:
		// A start in the future was recorded before the clock was set back.
		since := tx.Now.Sub(fromMicros(started))
		if wait := time.Second/time.Duration(b.Rate) - since; wait > 0 && since > -time.Second {
			return i, wait, nil
		}
	}
	if _, err := tx.exec("UPDATE replay_batches SET updated_at = $2 WHERE num = $1", b.Num, tx.Now.UnixMicro()); err != nil {
		return i, 0, err
	}
	return next, 0, tx.change("event", "UPDATE replay_batch_items SET state = 'sending', started_at = $2 WHERE num = $1 AND state = 'pending'", next.Num, tx.Now.UnixMicro())
}

// ReturnBatchItem unmarks an event whose attempt began at a time and sent nothing, unless another worker has taken it
// since.
func (tx *Tx) ReturnBatchItem(num int64, began time.Time) error {
	_, err := tx.exec("UPDATE replay_batch_items SET state = 'pending', started_at = NULL WHERE num = $1 AND started_at = $2 AND state = 'sending'",
		num, began.UnixMicro())
	return err
}

// FinishBatchItem stores the outcome of an event, unless it has one, and counts it.
func (tx *Tx) FinishBatchItem(batchNum int64, i hookglass.BatchItem) error {
	var code, text any
	if i.Failure != nil {
		code, text = i.Failure.Code, i.Failure.Message
	}
	n, err := tx.exec(`UPDATE replay_batch_items SET state = $2, replay_id = $3, status = $4, error_code = $5, error_text = $6, finished_at = $7
		WHERE num = $1 AND finished_at IS NULL`, i.Num, string(i.State), nullString(i.ReplayID), nullInt(int64(i.StatusCode)), code, text, tx.Now.UnixMicro())
	if err != nil || n == 0 {
		return err
	}
	passed := boolInt(i.State == hookglass.ItemPassed)
	_, err = tx.exec("UPDATE replay_batches SET passed = passed + cast($2 AS bigint), failed = failed + cast($3 AS bigint), updated_at = $4 WHERE num = $1",
		batchNum, passed, 1-passed, tx.Now.UnixMicro())
	return err
}

// OrphanedItem is an event of a bulk replay whose worker died.
type OrphanedItem struct {
	Batch hookglass.ReplayBatch
	Item  hookglass.BatchItem
}

// OrphanedBatchItems lists events of bulk replays that began before a time and were not finished, including those of
// cancelled bulk replays.
func (v *View) OrphanedBatchItems(begunBefore time.Time, limit int) ([]OrphanedItem, error) {
	return queryAll(v, func(scan func(...any) error) (o OrphanedItem, err error) {
		o.Batch, err = scanBatch(func(batch ...any) (err error) {
			o.Item, err = scanItem(func(item ...any) error { return scan(append(batch, item...)...) })
			return err
		})
		return o, err
	}, "SELECT "+batchColumns+", "+itemColumns+" FROM replay_batches b"+v.dialect.each("replay_batch_items", "x.batch = b.num AND x.state = 'sending' AND x.finished_at IS NULL AND x.started_at < $1")+
		" AND (b.finished_at IS NULL OR b.state = 'canceled') ORDER BY x.num LIMIT $2", begunBefore.UnixMicro(), limit)
}

// PostponeReplayBatch records that a bulk replay has a waiting job.
func (tx *Tx) PostponeReplayBatch(num int64) error {
	_, err := tx.exec("UPDATE replay_batches SET updated_at = $2 WHERE num = $1", num, tx.Now.UnixMicro())
	return err
}

// RequeueReplayBatches enqueues a new job for running bulk replays that have none and have not moved since a time.
func (tx *Tx) RequeueReplayBatches(before time.Time, limit int) error {
	ids, err := queryAll(&tx.View, scanText, `UPDATE replay_batches SET updated_at = $1 WHERE `+tx.dialect.picked("num",
		"SELECT num FROM replay_batches WHERE state = 'running' AND finished_at IS NULL AND updated_at < $2 AND NOT "+tx.dialect.hasJob(hookglass.ReplayBatchJob{}, "BatchID", "id")+
			" ORDER BY num LIMIT $3")+" AND state = 'running' RETURNING id",
		tx.Now.UnixMicro(), before.UnixMicro(), limit)
	for _, id := range ids {
		tx.Enqueue(hookglass.ReplayBatchJob{BatchID: id})
	}
	return err
}

// BatchItemsLeft counts the events of a bulk replay without an outcome.
func (v *View) BatchItemsLeft(batchNum int64) (n int64, err error) {
	err = v.queryRow("replay batch", "SELECT count(*) FROM replay_batch_items WHERE batch = $1 AND finished_at IS NULL", []any{batchNum}, &n)
	return n, err
}

// CancelReplayBatches cancels some of the bulk replays that have been paused for longer than the retention of their
// account (of the installation, if the account has none): none of their events is left. It reports whether there may
// be more.
func (tx *Tx) CancelReplayBatches(retention time.Duration) (more bool, err error) {
	n, err := tx.exec("UPDATE replay_batches SET state = 'canceled', updated_at = $1, finished_at = $1 WHERE state = 'paused' AND "+tx.dialect.picked("num",
		`SELECT b.num FROM replay_batches b JOIN endpoints e ON e.num = b.endpoint LEFT JOIN accounts c ON c.id = e.account_id
		WHERE b.state = 'paused' AND b.finished_at IS NULL AND b.updated_at < cast($1 AS bigint) - `+retained+" LIMIT $3"),
		tx.Now.UnixMicro(), retention.Microseconds(), purgeBatches)
	return n == purgeBatches, err
}

// Bounds of a purge: rows of each kind that are deleted at a time, and how long a run is kept at least, because its
// idempotency key is valid while it exists.
const (
	purgeRuns    = 500
	purgeBatches = 20
	purgeItems   = 10_000
	keepRuns     = 24 * time.Hour
)

// OverdueReplays are case runs and bulk replays that are past their retention.
type OverdueReplays struct{ runs, batches []int64 }

// None reports whether there are none.
func (o OverdueReplays) None() bool { return len(o.runs)+len(o.batches) == 0 }

// ReplaysDue returns some of the case runs and of the bulk replays that ended longer ago than the retention of their
// account, or the given one if the account has none. A run is kept for at least a day, and a case's last run as long as
// the case. Single replays go with their events. This is looked up where no capture waits, as [View.overdue] is.
func (v *View) ReplaysDue(at time.Time, retention time.Duration) (due OverdueReplays, err error) {
	// A single bound per endpoint, so that an index answers it: with two conditions SQLite may use the index for the
	// other.
	ended := func(table string, least time.Duration, rest string, most int) ([]int64, error) {
		of := fmt.Sprintf("CASE WHEN c.retention > %[1]d THEN c.retention WHEN c.retention > 0 OR cast($2 AS bigint) < %[1]d THEN %[1]d ELSE cast($2 AS bigint) END", least.Microseconds())
		return queryAll(v, scanNum, "SELECT x.num FROM endpoints e LEFT JOIN accounts c ON c.id = e.account_id"+
			v.dialect.each(table, "x.endpoint = e.num AND x.finished_at IS NOT NULL AND x.finished_at < cast($1 AS bigint) - "+of)+
			rest+" LIMIT $3", at.UnixMicro(), retention.Microseconds(), most)
	}
	due.runs, err = ended("replay_case_runs", keepRuns,
		" AND (EXISTS (SELECT 1 FROM replay_case_runs n WHERE n.case_num = x.case_num AND n.num > x.num) OR (SELECT n.num FROM replay_cases n WHERE n.num = x.case_num) IS NULL)", purgeRuns)
	if err != nil {
		return due, err
	}
	due.batches, err = ended("replay_batches", 0, " ORDER BY x.num", purgeBatches)
	return due, err
}

// PurgeReplays deletes what is due, and reports whether the bulk replays are left, which go once their items are gone.
func (tx *Tx) PurgeReplays(due OverdueReplays) (more bool, err error) {
	if _, err := tx.exec("DELETE FROM replay_case_runs WHERE "+tx.dialect.among("num", "$1"), tx.dialect.list(due.runs)); err != nil {
		return false, err
	}
	batches := tx.dialect.list(due.batches)
	items, err := tx.exec("DELETE FROM replay_batch_items WHERE "+tx.dialect.picked("num", "SELECT num FROM replay_batch_items WHERE "+tx.dialect.among("batch", "$1")+" LIMIT $2"), batches, purgeItems)
	if err != nil || items == purgeItems {
		return true, err
	}
	_, err = tx.exec("DELETE FROM replay_batches WHERE "+tx.dialect.among("num", "$1"), batches)
	return false, err
}
