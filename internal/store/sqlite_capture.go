package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"hookglass"
)

// rowSizes are the numbers of rows per INSERT. A statement of many rows costs little more than one of a single row;
// there are only a few sizes, so that each is prepared once.
var rowSizes = []int{32, 8, 1}

// captureStatements holds the prepared statements of the hot path. Only the writer uses them.
type captureStatements struct {
	db      *sql.DB
	bump    *sql.Stmt // nil until prepared
	nextSeq *sql.Stmt
	event   []*sql.Stmt // for each of rowSizes
	payload []*sql.Stmt
	forward *sql.Stmt
	task    *sql.Stmt

	handedTargets, handedForward, handedTask *sql.Stmt
	forwardKey                               *sql.Stmt
}

// forwardAll stores a delivery of each of an endpoint's events, ?2, to each of its enabled targets except ?4. Both are
// JSON arrays.
const forwardAll = `INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, created_at)
	SELECT t.id, t.endpoint, j.value, 'pending', ?3, 0, 0, ?3
	FROM json_each(?2) j JOIN forwarding_targets t ON t.endpoint = ?1 AND t.enabled = 1
	WHERE t.id NOT IN (SELECT value FROM json_each(?4)) ORDER BY j.value, t.id`

// taskAll stores a task of one kind for each of an endpoint's events, ?3, a JSON array of seqs.
const taskAll = `INSERT INTO event_tasks (kind, endpoint, event, due_at, leased, claim, lost)
	SELECT ?2, ?1, value, ` + sqliteClock + `, 0, 0, 0 FROM json_each(?3) ORDER BY key`

// Work that is handed over concerns only a few events and is stored row by row, which is cheaper than statements of
// many rows with RETURNING. So is work with keys, which are each of one event.
const (
	handedTargets = `SELECT t.paused_at IS NULL AND t.rate_limit IS NULL, t.paused_at IS NULL, ` + handedTarget + ` FROM forwarding_targets t
		JOIN endpoints e ON e.num = t.endpoint LEFT JOIN accounts a ON a.id = e.account_id WHERE t.endpoint = ? AND t.enabled = 1 ORDER BY t.id`
	forwardOne = `INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, created_at) VALUES (?, ?, ?, ?, ?, ?, 0, ?)`
	keyOne     = `INSERT INTO forward_keys (forward, target, event, received_at, key) VALUES (?, ?, ?, ?, ?)`
	taskOne    = `INSERT INTO event_tasks (kind, endpoint, event, due_at, leased, claim, lost) VALUES (?, ?, ?, ?, 1, 1, 0)`
)

const nextSeq = `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)`

// prepare prepares the statements once. It fails while there is no schema. It must be called outside a transaction,
// which has the only connection.
func (s *captureStatements) prepare(ctx context.Context) error {
	if s.bump != nil {
		return nil
	}
	var p captureStatements
	var failed error
	prepare := func(query string) *sql.Stmt {
		stmt, err := s.db.PrepareContext(ctx, query)
		failed = errors.Join(failed, err)
		return stmt
	}
	for _, n := range rowSizes {
		p.event = append(p.event, prepare(insertRows(insertEvent, eventCols, n)))
		p.payload = append(p.payload, prepare(insertRows(insertPayload, payloadCols, n)))
	}
	p.nextSeq, p.forward, p.task, p.bump = prepare(nextSeq), prepare(forwardAll), prepare(taskAll), prepare(bumpStats)
	p.handedTargets, p.handedForward, p.handedTask, p.forwardKey = prepare(handedTargets), prepare(forwardOne), prepare(taskOne), prepare(keyOne)
	if failed != nil {
		p.close()
		return failed
	}
	p.db, *s = s.db, p
	return nil
}

func (s *captureStatements) close() {
	for _, stmt := range slices.Concat(s.event, s.payload, []*sql.Stmt{s.bump, s.nextSeq, s.forward, s.task, s.handedTargets, s.handedForward, s.handedTask, s.forwardKey}) {
		if stmt != nil {
			stmt.Close()
		}
	}
}

// insertRows completes an INSERT with n rows of placeholders. These are unnamed, because SQLite searches named ones
// linearly.
func insertRows(insert string, cols, n int) string {
	row := " (?" + strings.Repeat(",?", cols-1) + ")"
	return insert + row + strings.Repeat(","+row, n-1)
}

// run stores the captures among the ops. It sets the error not_found for captures whose endpoint is gone; the returned
// error concerns the whole group.
func (s *captureStatements) run(ctx context.Context, tx *sql.Tx, ops []*op) error {
	groups := byEndpoint(ops)
	if len(groups) == 0 {
		return nil
	}
	unhand(ops)
	events := make([]*hookglass.Event, 0, len(ops))
	bump := tx.StmtContext(ctx, s.bump)
	for _, g := range groups {
		res, err := bump.ExecContext(ctx, g.endpoint, len(g.ops), g.last.UnixMicro())
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil {
			return err
		} else if n == 0 {
			for _, o := range g.ops {
				o.err = hookglass.NotFound("endpoint")
			}
			continue
		}
		for _, o := range g.ops {
			events = append(events, o.capture.event)
		}
	}
	if len(events) == 0 {
		return nil
	}
	var seq int64
	if err := tx.StmtContext(ctx, s.nextSeq).QueryRowContext(ctx).Scan(&seq); err != nil {
		return err
	}
	for _, e := range events {
		seq++
		e.Seq = seq
	}
	if err := insertAll(ctx, tx, s.event, eventCols, events, appendEventArgs); err != nil {
		return err
	}
	if err := insertAll(ctx, tx, s.payload, payloadCols, events, appendPayloadArgs); err != nil {
		return err
	}
	return s.follow(ctx, tx, groups)
}

// follow stores the work for the events.
func (s *captureStatements) follow(ctx context.Context, tx *sql.Tx, groups []*endpointGroup) error {
	at := now()
	var captures []*captureOp
	var forwards []HandedForward
	var tasks []Task
	for _, g := range groups {
		for _, f := range g.following() {
			var err error
			switch {
			case f.kind == "" && (!f.until.IsZero() || f.keyed != nil):
				forwards, err = s.handForwards(ctx, tx, forwards, g.endpoint, f, at)
			case f.kind == "":
				_, err = tx.StmtContext(ctx, s.forward).ExecContext(ctx, g.endpoint, sqliteDialect.list(f.seqs), at.UnixMicro(), sqliteDialect.list(f.but))
			case !f.until.IsZero():
				tasks, err = s.handTasks(ctx, tx, tasks, g.endpoint, f)
			default:
				_, err = tx.StmtContext(ctx, s.task).ExecContext(ctx, g.endpoint, string(f.kind), sqliteDialect.list(f.seqs))
			}
			if err != nil {
				return err
			}
		}
		for _, o := range g.ops {
			captures = append(captures, o.capture)
		}
	}
	hand(captures, forwards, tasks)
	return nil
}

// handForwards stores deliveries of an endpoint's events to its enabled targets, and appends those that it claims. A
// delivery to a paused target waits. One to a target with a rate limit, or of an event that may be a duplicate, waits
// too, but is appended without a claim.
func (s *captureStatements) handForwards(ctx context.Context, tx *sql.Tx, handed []HandedForward, endpoint int64, f *following, at time.Time) ([]HandedForward, error) {
	type target struct {
		open  bool // neither paused nor limited
		turns bool // not paused, so possibly limited
		queue ForwardQueue
	}
	targets, err := rowsOf(ctx, tx, s.handedTargets, func(scan func(...any) error) (t target, err error) {
		t.queue, err = scanHandedTarget(scan, &t.open, &t.turns)
		return t, err
	}, endpoint)
	if err != nil {
		return nil, err
	}
	stored, keys, created, take := tx.StmtContext(ctx, s.handedForward), tx.StmtContext(ctx, s.forwardKey), at.UnixMicro(), !f.until.IsZero()
	for _, seq := range f.seqs {
		for _, t := range targets {
			if slices.Contains(f.but, t.queue.TargetID) {
				continue
			}
			var key []byte
			if f.keyed != nil {
				key = f.keyed.work.keyAt(t.queue.TargetID)
			}
			h := HandedForward{Queue: t.queue}
			h.EventSeq = seq
			state, due := hookglass.ForwardPending, created
			taken := take && t.open && key == nil
			if taken {
				h.Claim = f.until.UnixMicro()
				h.claimed(time.UnixMicro(created))
				state, due = h.State, h.Claim
			}
			if h.Num, err = insertRow(ctx, stored, t.queue.TargetID, endpoint, seq, string(state), due, h.Claim, created); err != nil {
				return nil, err
			}
			if key != nil {
				if _, err := keys.ExecContext(ctx, h.Num, t.queue.TargetID, seq, f.keyed.event.ReceivedAt.UnixMicro(), key); err != nil {
					return nil, err
				}
			}
			if take && (taken || t.turns) {
				handed = append(handed, h)
			}
		}
	}
	return handed, nil
}

// handTasks stores tasks for an endpoint's events and appends them. It claims all of them.
func (s *captureStatements) handTasks(ctx context.Context, tx *sql.Tx, handed []Task, endpoint int64, f *following) ([]Task, error) {
	stored := tx.StmtContext(ctx, s.handedTask)
	for _, seq := range f.seqs {
		num, err := insertRow(ctx, stored, string(f.kind), endpoint, seq, f.until.UnixMicro())
		if err != nil {
			return nil, err
		}
		handed = append(handed, Task{Num: num, Kind: f.kind, EndpointNum: endpoint, EventSeq: seq, Claim: 1})
	}
	return handed, nil
}

// insertRow inserts a row and returns its number.
func insertRow(ctx context.Context, stmt *sql.Stmt, args ...any) (int64, error) {
	res, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// following is work that is stored together: tasks of one kind or, if that is empty, deliveries to the same targets;
// either all claimed or all not.
type following struct {
	kind  TaskKind
	but   []int64    // targets that get none
	keyed *captureOp // the only event, if it has keys; nil: none has
	until time.Time  // the latest claim; zero: not claimed
	seqs  []int64
}

// following returns the work for the events of the group, in the order of first occurrence, which makes it
// deterministic.
func (g *endpointGroup) following() (all []*following) {
	add := func(kind TaskKind, but []int64, keyed *captureOp, until time.Time, seq int64) {
		i := slices.IndexFunc(all, func(f *following) bool {
			return f.kind == kind && slices.Equal(f.but, but) && f.keyed == keyed && f.until.IsZero() == until.IsZero()
		})
		if i < 0 {
			i, all = len(all), append(all, &following{kind: kind, but: but, keyed: keyed})
		}
		if all[i].seqs = append(all[i].seqs, seq); until.After(all[i].until) {
			all[i].until = until
		}
	}
	for _, o := range g.ops {
		if o.err != nil {
			continue
		}
		c := o.capture
		if c.work.Forward {
			var keyed *captureOp
			if len(c.work.Keys) > 0 {
				keyed = c
			}
			add("", c.work.But, keyed, c.forwards.until, c.event.Seq)
		}
		for i, kind := range c.work.Tasks {
			add(kind, nil, nil, c.taskUntil(i), c.event.Seq)
		}
	}
	return all
}

// rowsOf returns the rows of a statement of the hot path.
func rowsOf[W any](ctx context.Context, tx *sql.Tx, stmt *sql.Stmt, scan func(func(...any) error) (W, error), args ...any) (all []W, err error) {
	rows, err := tx.StmtContext(ctx, stmt).QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		w, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, rows.Err()
}

// insertAll stores one row per event, many rows per statement.
func insertAll(ctx context.Context, tx *sql.Tx, stmts []*sql.Stmt, cols int, events []*hookglass.Event, appendArgs func([]any, *hookglass.Event) []any) error {
	values := make([]any, 0, cols*min(len(events), rowSizes[0]))
	for i, n := range rowSizes {
		for ; len(events) >= n; events = events[n:] {
			values = values[:0]
			for _, e := range events[:n] {
				values = appendArgs(values, e)
			}
			if _, err := tx.StmtContext(ctx, stmts[i]).ExecContext(ctx, values...); err != nil {
				return err
			}
		}
	}
	return nil
}
