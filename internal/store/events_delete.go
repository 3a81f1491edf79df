package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/query"
)

// Bounds of one deleting transaction: captures wait behind it.
const (
	deleteBytes = 64 << 20
	deleteLooks = 5_000 // rows examined to find them
)

// DeleteEvent deletes one event. It answers not_found.
func (tx *Tx) DeleteEvent(ref, id string) error {
	log, e, err := tx.eventIn(ref, id, "")
	if err != nil {
		return err
	}
	seqs := []int64{e.Seq}
	n, err := tx.deleteRows(log, seqs, seqs)
	if err == nil && n == 0 {
		err = hookglass.NotFound("request") // another transaction was faster
	}
	return err
}

// DeleteAllEvents deletes everything that an endpoint has captured so far, and returns how many events that was. They
// are invisible from the commit on; a job erases them.
func (tx *Tx) DeleteAllEvents(ref string) (int64, error) {
	log, err := tx.eventLog(ref)
	if err != nil {
		return 0, err
	}
	// Lock the row before reading the events, so that each capture is either among them or above the new floor.
	count, floor, err := tx.lockStats(log)
	if err != nil {
		return 0, err
	}
	log.floor = floor
	newest, err := tx.newestSeq(log)
	if err != nil || newest == 0 {
		return 0, err
	}
	_, err = tx.exec("UPDATE endpoint_stats SET event_count = 0, ignored_count = 0, floor_seq = $2 WHERE endpoint = $1", log.endpoint.Num, newest)
	tx.Enqueue(hookglass.EraseJob{EndpointNum: log.endpoint.Num})
	tx.Announce(TopicEvents(log.endpoint.Num), TopicTunnel(log.endpoint.Num)) // tunnel: its senders may wait
	return count, err
}

// EventRange is a deletion in progress of the events of an endpoint received between two times, both excluded. A zero
// time is no bound. Events captured after it began are not touched.
type EventRange struct {
	After, Before time.Time

	Deleted int64 // so far
	Done    bool
	begun   bool
	above   int64 // where it continues
	upTo    int64
}

// DeleteEvents deletes one batch of a range and returns what remains. The caller repeats it until Done, each time in
// its own transaction, so that captures can commit in between.
func (tx *Tx) DeleteEvents(ref string, r EventRange) (EventRange, error) {
	began := time.Now()
	log, err := tx.eventLog(ref)
	if err != nil {
		return r, err
	}
	q := query.Between(r.After, r.Before)
	if !r.begun {
		newest, err := tx.newestSeq(log)
		if err != nil {
			return r, err
		}
		narrow, below := log, newest+1
		if err := tx.bracket(&narrow, &below, q); err != nil {
			return r, err
		}
		r.begun, r.above, r.upTo = true, narrow.floor, below-1
	}
	r.above = max(r.above, log.floor)
	high, err := tx.nthAbove(log, r.above, deleteLooks, "")
	if err != nil {
		return r, err
	}
	high = min(high, r.upTo)
	seqs, reached, err := tx.toDelete(log.endpoint.Num, r.above, high, q)
	if err != nil {
		return r, err
	}
	n, err := tx.deleteRows(log, seqs, seqs)
	tx.pace.took(int64(len(seqs)), time.Since(began))
	r.Deleted += n
	r.above, r.Done = reached, reached >= r.upTo
	return r, err
}

// PurgeEvents deletes a batch of an endpoint's oldest events that were received before the cutoff, and reports whether
// there may be more.
func (tx *Tx) PurgeEvents(d PurgeDue) (deleted int64, more bool, err error) {
	began := time.Now()
	log, err := tx.eventLogOfNum(d.EndpointNum)
	if err != nil {
		return 0, false, err
	}
	// Start at the first event that does not have a future timestamp: events from a time when the clock was wrong must
	// not keep older ones behind them alive. Searching for the first expired event instead would read all events if
	// there is none.
	upTo := max(d.Cutoff.UnixMicro(), tx.Now.UnixMicro())
	a := &args{}
	first, err := tx.first(0, "SELECT seq FROM events WHERE "+tx.dialect.within(a, log.endpoint.Num, log.floor, math.MaxInt64)+
		" AND received_at <= "+a.add(upTo)+oldestFirst+" LIMIT 1", a.all()...)
	if err != nil || first == 0 {
		return 0, false, err
	}
	above := first - 1
	high, err := tx.nthAbove(log, above, tx.pace.rows(), "")
	if err != nil {
		return 0, false, err
	}
	seqs, reached, err := tx.toDelete(d.EndpointNum, above, high, query.Between(time.Time{}, d.Cutoff))
	if err != nil {
		return 0, false, err
	}
	bodies := seqs
	if d.Longest {
		if bodies, err = tx.withoutRange(seqs); err != nil {
			return 0, false, err
		}
	}
	deleted, err = tx.deleteRows(log, seqs, bodies)
	tx.pace.took(int64(len(seqs)), time.Since(began))
	return deleted, deleted > 0 && (high != math.MaxInt64 || reached < high), err
}

// PurgeDue is an endpoint with events past their retention.
type PurgeDue struct {
	EndpointNum int64
	Cutoff      time.Time // events received before it expire
	// Longest says that no account keeps events longer. The payloads may then stay until their whole range is dropped
	// (see TendPayloads): nobody can read them any more.
	Longest bool
}

// PurgesDue lists the endpoints whose oldest event is past the retention of their account, or past the given one of the
// installation if the account has none, most overdue first. It examines one event per endpoint and skips events with a
// future timestamp.
func (v *View) PurgesDue(at time.Time, retention time.Duration) ([]PurgeDue, error) {
	type row struct {
		PurgeDue
		past int64 // by how much it is overdue
	}
	scan := func(scan func(...any) error) (r row, err error) {
		var cutoff int64
		err = scan(&r.EndpointNum, &cutoff, &r.past, &r.Longest)
		r.Cutoff = time.UnixMicro(cutoff).UTC()
		return r, err
	}
	rows, err := queryAll(v, scan, `SELECT num, cutoff, cutoff - oldest, cutoff <= cast($1 AS bigint) - `+longestRetention("$2")+` FROM (
			SELECT e.num, cast($1 AS bigint) - `+retained+` AS cutoff,
				(SELECT received_at FROM events WHERE `+v.dialect.between("e.num", "s.floor_seq", "cast($3 AS bigint)")+" AND received_at <= cast($1 AS bigint)"+oldestFirst+` LIMIT 1) AS oldest
			FROM endpoints e JOIN endpoint_stats s ON s.endpoint = e.num LEFT JOIN accounts c ON c.id = e.account_id
			WHERE e.deleted_at IS NULL AND s.event_count > 0
		) AS d WHERE oldest < cutoff ORDER BY num`, at.UnixMicro(), retention.Microseconds(), int64(math.MaxInt64))
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.past, a.past) })
	due := make([]PurgeDue, len(rows))
	for i, r := range rows {
		due[i] = r.PurgeDue
	}
	return due, err
}

// EraseEvents erases a batch of events that were deleted at once: those of a deleted endpoint, or those below the floor
// of a live one. It reports whether it is done. Then a deleted endpoint has no rows left except the attempts of its
// last day, which no figure counts, and SQLite's file has shrunk.
func (tx *Tx) EraseEvents(endpointNum int64) (done bool, err error) {
	began, floor := time.Now(), int64(math.MaxInt64)
	var deleted sql.NullInt64
	err = tx.queryRow("endpoint", "SELECT deleted_at FROM endpoints WHERE num = $1", []any{endpointNum}, &deleted)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		deleted.Valid = true
	} else if err != nil {
		return false, err
	}
	if !deleted.Valid {
		if err := tx.queryRow("endpoint", "SELECT floor_seq FROM endpoint_stats WHERE endpoint = $1", []any{endpointNum}, &floor); err != nil {
			return false, err
		}
	}
	seqs, reached, err := tx.toDelete(endpointNum, 0, floor, query.Query{})
	if err != nil {
		return false, err
	}
	if _, err := tx.eraseRows(endpointNum, seqs, seqs); err != nil {
		return false, err
	}
	tx.pace.took(int64(len(seqs)), time.Since(began))
	if reached < floor {
		return false, nil
	}
	if deleted.Valid {
		if gone, err := tx.eraseEndpoint(endpointNum); err != nil || !gone {
			return false, err
		}
	}
	return tx.shrink()
}

// eraseEndpoint erases what a deleted endpoint had besides events. It reports whether it is done.
func (tx *Tx) eraseEndpoint(endpointNum int64) (done bool, err error) {
	for _, many := range []struct {
		rows string
		most int64
	}{ // tables that may hold as many rows as there were events, or more
		{"script_positions WHERE " + tx.dialect.pickedRows("FROM script_positions x WHERE x.endpoint = $1 LIMIT $2"), purgeRows},
		{"replay_batch_items WHERE " + tx.dialect.picked("num", "SELECT x.num FROM replay_batches b"+tx.dialect.each("replay_batch_items", "x.batch = b.num")+" AND b.endpoint = $1 LIMIT $2"), purgeItems},
		{"replay_case_runs WHERE " + tx.dialect.picked("num", "SELECT num FROM replay_case_runs WHERE endpoint = $1 LIMIT $2"), purgeRuns},
		{"activities WHERE " + tx.dialect.picked("id", "SELECT id FROM activities WHERE endpoint = $1 LIMIT $2"), purgeRows},
	} {
		if n, err := tx.exec("DELETE FROM "+many.rows, endpointNum, many.most); err != nil || n == many.most {
			return false, err
		}
	}
	// Keep roll-ups out: an attempt that is not in the figures yet would create figures for the erased endpoint.
	if _, err := tx.rollCursor(false); err != nil {
		return false, err
	}
	// An owner goes before what it owns: its delete waits for a transaction that changes it, so the delete of the rest
	// sees what that adds. Such transactions may still run, because not every job waits for eraseAfter: the one that
	// erases the events of a live endpoint may find it deleted.
	for _, owner := range []struct {
		name   string
		column string // that names it
		owned  []string
	}{
		{"actions", "action", []string{"action_refs"}},
		{"alerts", "alert", []string{"alert_incidents", "alert_channels"}},
	} {
		nums, err := queryAll(&tx.View, scanNum, "DELETE FROM "+owner.name+" WHERE endpoint = $1 RETURNING num", endpointNum)
		if err != nil {
			return false, err
		}
		for _, table := range owner.owned {
			if _, err := tx.exec("DELETE FROM "+table+" WHERE "+tx.dialect.among(owner.column, "$1"), tx.dialect.list(nums)); err != nil {
				return false, err
			}
		}
	}
	for _, statement := range []string{
		"DELETE FROM outcomes WHERE endpoint = $1 AND rolled = 0",
		"DELETE FROM replays WHERE endpoint = $1",
		"DELETE FROM releases WHERE endpoint = $1",
		"DELETE FROM replay_cases WHERE endpoint = $1",
		"DELETE FROM replay_batches WHERE endpoint = $1",
		"DELETE FROM forwarding_targets WHERE endpoint = $1",
		"DELETE FROM tunnel_gaps WHERE endpoint = $1",
		"DELETE FROM tunnel_commands WHERE endpoint = $1",
		"DELETE FROM tunnel_clients WHERE account_id = 0 AND endpoint = $1",
		"DELETE FROM action_runs WHERE endpoint = $1",
		"DELETE FROM action_totals WHERE endpoint = $1",
		"DELETE FROM rollups WHERE endpoint = $1",
		"DELETE FROM shares WHERE endpoint = $1",
		"DELETE FROM saved_searches WHERE endpoint = $1",
		"DELETE FROM signature_configs WHERE endpoint = $1",
		"DELETE FROM event_schemas WHERE endpoint = $1",
		"DELETE FROM declared WHERE endpoint = $1",
		"DELETE FROM endpoint_stats WHERE endpoint = $1",
		"DELETE FROM endpoints WHERE num = $1",
	} {
		if _, err := tx.exec(statement, endpointNum); err != nil {
			return false, err
		}
	}
	return true, nil
}

// shrinkPages bounds the pages that one transaction returns to SQLite's file system.
const shrinkPages = 2_000

// shrink returns some free pages of SQLite's file to the file system and reports whether that is enough: up to a
// quarter of the file is kept for future events. PostgreSQL vacuums by itself.
func (tx *Tx) shrink() (done bool, err error) {
	if tx.dialect == postgres {
		return true, nil
	}
	var pages, free int64
	if err := tx.queryRow("page", "PRAGMA page_count", nil, &pages); err != nil {
		return false, err
	}
	if err := tx.queryRow("page", "PRAGMA freelist_count", nil, &free); err != nil {
		return false, err
	}
	spare := pages - (pages-free)*4/3
	if spare <= 0 {
		return true, nil
	}
	_, err = tx.exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", min(spare, shrinkPages)))
	return spare <= shrinkPages, err
}

// toDelete returns the oldest events of a range that match the query, as many as one transaction may delete, and the
// seq up to which there are no others.
func (tx *Tx) toDelete(endpointNum, above, upTo int64, q query.Query) (seqs []int64, reached int64, err error) {
	a, most := &args{}, int(tx.pace.rows())
	text := "SELECT seq, size FROM events WHERE " + tx.dialect.within(a, endpointNum, above, next(upTo))
	conditions, _ := tx.dialect.where(q, a)
	text += conditions + oldestFirst + " LIMIT " + a.add(most)
	type row struct{ seq, size int64 }
	rows, err := queryAll(&tx.View, func(scan func(...any) error) (r row, err error) {
		err = scan(&r.seq, &r.size)
		return r, err
	}, text, a.all()...)
	if err != nil {
		return nil, 0, err
	}
	var bytes int64
	for i, r := range rows {
		if bytes += r.size; i > 0 && bytes > deleteBytes {
			return seqs, seqs[i-1], nil
		}
		seqs = append(seqs, r.seq)
	}
	if len(rows) == most {
		return seqs, seqs[most-1], nil
	}
	return seqs, upTo, nil
}

// deleteRows deletes events, but only the payloads of bodies, and updates the counters. It returns how many of the
// events had been visible.
//
// Every transaction locks the event rows first and the counters last, and those only briefly: captures wait for them.
func (tx *Tx) deleteRows(log eventLog, seqs, bodies []int64) (int64, error) {
	if len(seqs) == 0 {
		return 0, nil
	}
	rows, err := tx.eraseRows(log.endpoint.Num, seqs, bodies)
	if err != nil {
		return 0, err
	}
	_, floor, err := tx.lockStats(log)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return 0, nil // the endpoint was deleted, and all its events with it
	} else if err != nil {
		return 0, err
	}
	var count, ignored int64
	for _, r := range rows {
		if r.seq > floor {
			count++
			ignored += r.ignored
		}
	}
	if count == 0 {
		return 0, nil
	}
	tx.Announce(TopicEvents(log.endpoint.Num), TopicTunnel(log.endpoint.Num)) // tunnel: its senders may wait
	_, err = tx.exec("UPDATE endpoint_stats SET event_count = event_count - cast($2 AS bigint), ignored_count = ignored_count - cast($3 AS bigint) WHERE endpoint = $1",
		log.endpoint.Num, count, ignored)
	return count, err
}

type erasedRow struct {
	seq, ignored int64
	event        *hookglass.Event // the fields that figures count
}

// ofEvents lists the tables whose rows are deleted with their event. A delivery goes before its evidence: its delete
// waits for an attempt that is being recorded, so the delete of the evidence sees what the attempt added.
var ofEvents = []string{"tunnel_reports", "tunnel_events", "replays", "releases", "forwards", "forward_evidence", "forward_keys", "action_runs", "mail_verdicts"}

// eraseRows deletes events of an endpoint with everything that belongs to them, but only the payloads of bodies. It
// returns the events that existed.
func (tx *Tx) eraseRows(endpointNum int64, seqs, bodies []int64) ([]erasedRow, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	rows, err := queryAll(&tx.View, func(scan func(...any) error) (r erasedRow, err error) {
		if r.event, err = scanFigured(scan); err == nil {
			r.seq, r.ignored = r.event.Seq, boolInt(r.event.Ignored != "")
		}
		return r, err
	}, "DELETE FROM events WHERE "+tx.dialect.among("seq", "$1")+" RETURNING "+figureColumns, tx.dialect.list(seqs))
	if err != nil {
		return nil, err
	}
	expired, err := tx.countErased(endpointNum, rows)
	if err != nil {
		return nil, err
	}
	if err := tx.figureErased(rows, expired); err != nil {
		return nil, err
	}
	for _, table := range ofEvents {
		if _, err := tx.exec("DELETE FROM "+table+" WHERE "+tx.dialect.among("event", "$1"), tx.dialect.list(seqs)); err != nil {
			return nil, err
		}
	}
	if len(bodies) > 0 {
		_, err = tx.exec("DELETE FROM payloads WHERE "+tx.dialect.among("seq", "$1"), tx.dialect.list(bodies))
	}
	return rows, err
}

// lockStats locks the counters of an endpoint until the end of the transaction. It returns the number of events and the
// floor.
func (tx *Tx) lockStats(log eventLog) (count, floor int64, err error) {
	err = tx.queryRow("endpoint", "SELECT event_count, floor_seq FROM endpoint_stats WHERE endpoint = $1"+tx.dialect.forUpdate(), []any{log.endpoint.Num}, &count, &floor)
	return count, floor, err
}

// next returns the seq after the given one.
func next(seq int64) int64 {
	if seq == math.MaxInt64 {
		return seq
	}
	return seq + 1
}
