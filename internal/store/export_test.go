package store

import (
	"context"
	"database/sql"
	"net"
	"os"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/query"
)

// Record makes the view tell fn every statement that it runs, before it runs it.
func (v *View) Record(fn func(query string, args []any)) { v.q = recorder{v.q, fn} }

// EventsInNoTime is Events with time for the smallest piece alone.
func (v *View) EventsInNoTime(ref string, list EventList) (EventPage, error) {
	return v.events(ref, list, 0, 0)
}

// Span is where an export begins and ends.
func (v *View) Span(ref string, q query.Query) (above, last int64, err error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return 0, 0, err
	}
	return v.span(log, q)
}

// Pace is how many events are deleted at a time when the last ones took so long each.
func Pace(took ...time.Duration) (rows []int64) {
	var p pace
	for _, d := range took {
		p.took(p.rows(), d)
		rows = append(rows, p.rows())
	}
	return rows
}

// LockSchema is what excludes others from migrating until unlock.
func (db *DB) LockSchema(ctx context.Context) (unlock func(), err error) {
	_, unlock, err = db.engine.lockSchema(ctx)
	return unlock, err
}

// Exec runs a statement of a test's own.
func (tx *Tx) Exec(query string, args ...any) error {
	_, err := tx.exec(query, args...)
	return err
}

// Ints reads one column of integers.
func (v *View) Ints(query string, args ...any) ([]int64, error) {
	return queryAll(v, scanNum, query, args...)
}

// Copying answers a statement by each connection that copies the log of an embedded database into its file.
func (db *DB) Copying(ctx context.Context, query string) (answers []int64, err error) {
	for _, pool := range []*sql.DB{db.write, db.engine.(*sqliteEngine).copier.db} {
		var n int64
		if err := pool.QueryRowContext(ctx, query).Scan(&n); err != nil {
			return nil, err
		}
		answers = append(answers, n)
	}
	return answers, nil
}

// EachInt hands each row of one column of integers to fn while the rows are being read.
func (v *View) EachInt(query string, args []any, fn func(int64) error) error {
	rows, err := v.q.QueryContext(v.ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		if err := fn(n); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Dial connects to an address as sessions of PostgreSQL do.
func Dial(ctx context.Context, address string) (net.Conn, error) {
	pool, err := newPool(ctx, "postgres://"+address, 1, 0, 0, 0)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	return pool.Config().ConnConfig.DialFunc(ctx, "tcp", address)
}

// AskedFor is how long a session that was not used of late may take to say that it is one.
func AskedFor(ctx context.Context) (time.Duration, error) {
	pool, err := newPool(ctx, "postgres://127.0.0.1:1", 1, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	return pool.Config().PingTimeout, nil
}

// CaptureLock is the advisory lock of a group of captures.
const (
	CaptureLock = captureLock
	EventsLock  = eventsLock
)

// CaptureForwards stores the deliveries of a group of captures on PostgreSQL.
var CaptureForwards = captureForwards.text

// KeptStatements is how many statements a connection to SQLite keeps.
const KeptStatements = keptStatements

// Plan returns how the database means to run a statement, one line a step.
func (db *DB) Plan(ctx context.Context, query string, args ...any) ([]string, error) {
	if db.dialect == postgres {
		rows, err := db.read.QueryContext(ctx, "EXPLAIN "+query, args...)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var lines []string
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				return nil, err
			}
			lines = append(lines, line)
		}
		return lines, rows.Err()
	}
	rows, err := db.read.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var id, parent, unused int
		var line string
		if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, rows.Err()
}

// DumpOf is the statement that dumps a table.
var DumpOf = dumpOf

// PlanForAll returns how PostgreSQL means to run a statement with any arguments, which is what it keeps.
func (db *DB) PlanForAll(ctx context.Context, query string, args ...any) (lines []string, err error) {
	conn, err := db.read.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	for _, statement := range []string{"SET plan_cache_mode = force_generic_plan", "PREPARE asked AS " + query} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	none := ""
	if len(args) > 0 {
		none = "(NULL" + strings.Repeat(", NULL", len(args)-1) + ")"
	}
	rows, err := conn.QueryContext(ctx, "EXPLAIN EXECUTE asked"+none)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	_, err = conn.ExecContext(ctx, "DEALLOCATE asked")
	return lines, err
}

// Analyze gives the planner of PostgreSQL its statistics now.
func (db *DB) Analyze(ctx context.Context) error {
	if db.dialect != postgres {
		return nil
	}
	_, err := db.write.ExecContext(ctx, "VACUUM (ANALYZE) events, payloads, endpoint_stats, forwards, event_tasks, outcomes, replays")
	return err
}

type recorder struct {
	querier
	fn func(string, []any)
}

func (r recorder) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	r.fn(query, args)
	return r.querier.ExecContext(ctx, query, args...)
}

func (r recorder) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	r.fn(query, args)
	return r.querier.QueryContext(ctx, query, args...)
}

func (r recorder) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	r.fn(query, args)
	return r.querier.QueryRowContext(ctx, query, args...)
}

// Texts reads one column of texts.
func (v *View) Texts(query string, args ...any) ([]string, error) {
	return queryAll(v, scanText, query, args...)
}

// RangeLeast changes how many payloads a range holds at least.
func (db *DB) RangeLeast(n int64) { db.engine.(*postgresEngine).rangeLeast = n }

// RetagLooking is Retag that looks through so many events.
func (tx *Tx) RetagLooking(workspaceID, after int64, from, to string, looks int) (reached int64, err error) {
	return tx.retag(workspaceID, after, from, to, looks)
}

// InSteps is the walk with other bounds of what one transaction puts in line, and looks at.
func (r FailedRange) InSteps(atOnce, looks int) FailedRange {
	r.atOnce, r.looks = atOnce, looks
	return r
}

// OnSync has fn bring the log of an embedded database to the disk. It must be called before anything is written.
func (db *DB) OnSync(fn func(log *os.File) error) { db.engine.(*sqliteEngine).log.sync = fn }

// SyncData brings a file's bytes to the disk.
var SyncData = syncData

// LogPages is how long the log of an embedded database may grow, in pages.
const LogPages = logPages

// ComeBack changes how long a group waits among other nodes.
func (db *DB) ComeBack(wait time.Duration) { db.engine.(*postgresEngine).comeBack = wait }

// StuckAfter changes when a group that does not end is ended.
func (db *DB) StuckAfter(after time.Duration) { db.engine.(*postgresEngine).stuckAfter = after }

// Queued is how many writes wait for a writer.
func (db *DB) Queued() int {
	if e, ok := db.engine.(*sqliteEngine); ok {
		return len(e.ops) + len(e.along)
	}
	return len(db.engine.(*postgresEngine).ops)
}

// CaptureGroup captures events as one group, the works following them in turn, and returns what became of each.
func (db *DB) CaptureGroup(ctx context.Context, events []*hookglass.Event, work ...Work) []error {
	errs := make([]error, len(events))
	var ops []*op
	for i, ev := range events {
		ops = append(ops, &op{ctx: ctx, capture: &captureOp{event: ev, work: work[i%len(work)]}, done: make(chan struct{})})
	}
	switch e := db.engine.(type) {
	case *postgresEngine:
		e.group(ops)
	case *sqliteEngine: // whose writer is held until all wait
		held, release := make(chan struct{}), make(chan struct{})
		e.ops <- &op{ctx: ctx, done: make(chan struct{}), update: func(*sql.Tx) (bool, error) {
			close(held)
			<-release
			return false, nil
		}}
		<-held
		for _, o := range ops {
			e.ops <- o
		}
		close(release)
		for _, o := range ops {
			<-o.done
		}
	}
	for i, o := range ops {
		errs[i] = classify(o.err)
	}
	return errs
}

// Listens reports whether a node hears others. It is for PostgreSQL.
func (db *DB) Listens() bool { return db.engine.(*postgresEngine).listener.Load() != 0 }

// TellFor changes how long an Update waits until others have heard. It is for PostgreSQL.
func (db *DB) TellFor(limit time.Duration) { db.engine.(*postgresEngine).tellLimit = limit }

// Unnested is what the database reads of rows that a statement is given: an integer, a text and a byte string each, any
// of them nil.
func (v *View) Unnested(rows [][]any) (read [][]any, err error) {
	in := input{columns: []inputColumn{{"n", inputInteger}, {"t", inputText}, {"b", inputBytes}}, rows: rows}
	from, args, err := in.from(v.dialect, "i")
	if err != nil {
		return nil, err
	}
	return queryAll(v, func(scan func(...any) error) ([]any, error) {
		var n sql.NullInt64
		var t sql.NullString
		var b []byte
		var missing bool // a driver may read an empty byte string as nil
		row := []any{nil, nil, nil}
		if err := scan(&n, &t, &b, &missing); err != nil {
			return nil, err
		}
		if n.Valid {
			row[0] = n.Int64
		}
		if t.Valid {
			row[1] = t.String
		}
		if !missing {
			row[2] = string(b)
		}
		return row, nil
	}, "SELECT n, t, b, b IS NULL FROM "+from, args...)
}

// MakeRoom has a part of the reserve given up for an error of a full disk.
func (db *DB) MakeRoom(err error) bool { return db.engine.makeRoom(err) }

// WantReserve says how large the reserve should be.
func (db *DB) WantReserve(size int64) {
	r := db.engine.(*sqliteEngine).reserve
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size = func() (int64, error) { return size, nil }
}

// NoBound is a Holding that lets everything be read.
func NoBound(int64, int64) (give func(), err error) { return func() {}, nil }

// Setting is a setting of PostgreSQL as sessions for reading have it.
func (db *DB) Setting(ctx context.Context, name string) (value string, err error) {
	err = db.read.QueryRowContext(ctx, "SELECT current_setting($1)", name).Scan(&value)
	return value, err
}

// Apart is how far a clock is ahead of one that was looked at before and afterwards.
var Apart = apart

// ClockShowed has the node read that the database's clock showed at, since it was asked.
func (db *DB) ClockShowed(asked, at time.Time) { db.clock.set(asked, at) }

// Created are the names of what the migrations of a database create.
func Created(db *DB) (names []string) {
	for _, one := range append(db.dialect.created(), db.dialect.ofQueue()...) {
		names = append(names, one.name)
	}
	return names
}
