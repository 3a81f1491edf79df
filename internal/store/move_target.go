package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river"
)

// What can be wrong with the destination of a move.
var (
	ErrMoveBusy   = errors.New("store: another process is filling the database")
	ErrMoveSource = errors.New("store: the database was filled from another source, or the source was written to since")
)

// The states of a move.
const (
	moveCopying  = "copying"
	moveComplete = "complete"
	moveLoading  = "loading" // not by a move, but by a restore
)

// MoveProgress is the progress of one table in the destination.
type MoveProgress struct {
	After []byte // the key of the last row that was copied; nil: none
	Rows  int64
	Bytes int64
	Done  bool
}

// MoveTarget fills a PostgreSQL database. It is for one goroutine at a time.
type MoveTarget struct {
	db     *DB
	conn   *pgx.Conn
	tables []MoveTable
}

// OpenMoveTarget locks a migrated PostgreSQL database for filling until the target is closed. It returns ErrMoveBusy if
// another process has it.
func (db *DB) OpenMoveTarget(ctx context.Context) (*MoveTarget, error) {
	e, ok := db.engine.(*postgresEngine)
	if !ok {
		return nil, errors.New("store: only PostgreSQL can be moved to")
	}
	have, need, err := db.SchemaVersion(ctx)
	if err != nil {
		return nil, err
	}
	if have != need {
		return nil, fmt.Errorf("store: the destination has schema version %d and this program needs %d", have, need)
	}
	cfg := e.pool.Config().ConnConfig.Copy()
	cfg.AfterConnect = setUp(connectTimeout, 0, 0, 0) // no time limits
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, unavailable("connect", err)
	}
	t := &MoveTarget{db: db, conn: conn}
	// Wait a little: the server may not have noticed yet that a former holder of the lock died.
	_, err = conn.Exec(ctx, fmt.Sprintf("SET lock_timeout = '5s'; SELECT pg_advisory_lock(%d); SET lock_timeout = 0", moveLock))
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == lockTimeout {
		err = ErrMoveBusy
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Close ends the move; what was committed stays.
func (t *MoveTarget) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return t.conn.Close(ctx)
}

// Begin prepares the database for the tables of the source, or continues a move with the same mark, and returns the
// progress of each table. restart first deletes what an earlier move copied. It returns ErrNotEmpty if there is data
// that no move copied, ErrForeign, or ErrMoveSource.
func (t *MoveTarget) Begin(ctx context.Context, tables []MoveTable, mark []byte, restart bool) (progress map[string]MoveProgress, complete bool, err error) {
	present, err := postgres.catalog(ctx, t.db.read)
	if err != nil {
		return nil, false, classify(err)
	}
	for _, p := range present {
		if !slices.ContainsFunc(tables, func(m MoveTable) bool { return m.Name == p.Name && sameColumns(m.Columns, p.Columns) }) {
			return nil, false, fmt.Errorf("%w: %s", ErrForeign, p.Name)
		}
	}
	there, err := postgres.tablesOf(ctx, t.db.read)
	if err != nil {
		return nil, false, classify(err)
	}
	if i := slices.IndexFunc(there, func(name string) bool { return !made()[name] && !ofLibraries(name) }); i >= 0 {
		return nil, false, fmt.Errorf("%w: %s", ErrForeign, there[i])
	}
	if len(present) != len(tables)-1 { // the queue stands for tables of a library
		return nil, false, errors.New("store: the destination lacks tables of the source")
	}
	t.tables = tables
	err = pgx.BeginFunc(ctx, t.conn, func(tx pgx.Tx) error {
		progress = make(map[string]MoveProgress)
		var source []byte
		var state string
		err := tx.QueryRow(ctx, "SELECT source, state FROM moves WHERE id = 1").Scan(&source, &state)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			if err := t.mustBeEmpty(ctx, tx); err != nil {
				return err
			}
			return t.reset(ctx, tx, mark)
		case err != nil:
			return err
		case restart:
			return t.reset(ctx, tx, mark)
		case !bytes.Equal(source, mark):
			return ErrMoveSource
		}
		complete = state == moveComplete
		return t.progress(ctx, tx, progress)
	})
	return progress, complete, classify(err)
}

// housekeeping lists the tables that a server fills without anybody using it. It may have run on the destination before
// the move, or after a move that failed before it claimed the destination.
var housekeeping = []string{queueTable.Name, "rate_limits", "rollup_cursor", "tunnel_nodes"}

func (t *MoveTarget) mustBeEmpty(ctx context.Context, tx pgx.Tx) error {
	for _, table := range t.tables {
		if slices.Contains(housekeeping, table.Name) {
			continue
		}
		var any bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM "+table.Name+")").Scan(&any); err != nil {
			return err
		}
		if any {
			return fmt.Errorf("%w: there are rows in %s", ErrNotEmpty, table.Name)
		}
	}
	return nil
}

// reset empties the database and records a new move.
func (t *MoveTarget) reset(ctx context.Context, tx pgx.Tx, mark []byte) error {
	names := []string{"river_job", "move_tables", "moves"}
	for _, table := range t.tables {
		if !table.Queue() {
			names = append(names, table.Name)
		}
	}
	for _, statement := range []string{"TRUNCATE " + strings.Join(names, ", "), noRanges} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, "INSERT INTO moves (id, source, state, started_at) VALUES (1, $1, $2, $3)", mark, moveCopying, now().UnixMicro())
	return err
}

func (t *MoveTarget) progress(ctx context.Context, tx pgx.Tx, progress map[string]MoveProgress) error {
	rows, err := tx.Query(ctx, "SELECT name, after, n, bytes, done = 1 FROM move_tables")
	if err != nil {
		return err
	}
	var name string
	var p MoveProgress
	_, err = pgx.ForEachRow(rows, []any{&name, &p.After, &p.Rows, &p.Bytes, &p.Done}, func() error {
		progress[name] = p
		p.After = nil
		return nil
	})
	return err
}

// Append stores tuples and, in the same transaction, the progress of the table.
func (t *MoveTarget) Append(ctx context.Context, table MoveTable, tuples []byte, p MoveProgress) error {
	err := pgx.BeginFunc(ctx, t.conn, func(tx pgx.Tx) error {
		// A crash may lose the last batches together with their progress; they are copied again. The move's last commit
		// is synchronous, and covers all before it.
		if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
			return err
		}
		if err := t.store(ctx, tx, table, tuples); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO move_tables (name, after, n, bytes, done) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (name) DO UPDATE SET after = excluded.after, n = excluded.n, bytes = excluded.bytes, done = excluded.done`,
			table.Name, p.After, p.Rows, p.Bytes, boolInt(p.Done))
		return err
	})
	if err != nil {
		return fmt.Errorf("store: fill %s: %w", table.Name, err)
	}
	return nil
}

func (t *MoveTarget) store(ctx context.Context, tx pgx.Tx, table MoveTable, tuples []byte) error {
	if len(tuples) == 0 {
		return nil
	}
	if table.Queue() {
		return t.enqueue(ctx, tx, tuples)
	}
	_, err := t.conn.PgConn().CopyFrom(ctx, io.MultiReader(strings.NewReader(copyHead), bytes.NewReader(tuples), strings.NewReader(copyTail)),
		"COPY "+table.Name+" ("+strings.Join(table.columnNames(), ", ")+") FROM STDIN BINARY")
	return err
}

func (t *MoveTarget) enqueue(ctx context.Context, tx pgx.Tx, tuples []byte) error {
	var params []river.InsertManyParams
	text := func() string {
		var v []byte
		v, tuples = field(tuples)
		return string(v)
	}
	number := func() int64 { return int64(binary.BigEndian.Uint64([]byte(text()))) }
	for len(tuples) > 0 {
		tuples = tuples[2:]
		j := dumpedJob{kind: text(), args: json.RawMessage(text())}
		params = append(params, river.InsertManyParams{Args: j, InsertOpts: &river.InsertOpts{
			Queue: text(), Priority: int(number()), MaxAttempts: int(number()), ScheduledAt: time.UnixMicro(number()).UTC(),
		}})
	}
	return t.db.queue.insertPgx(ctx, tx, params)
}

// SetCounters makes new rows get ids after the last that the source assigned.
func (t *MoveTarget) SetCounters(ctx context.Context, counters map[string]int64) error {
	for table, last := range counters {
		if last == 0 {
			continue
		}
		if err := postgres.setCounter(ctx, t.db.write, table, last); err != nil {
			return classify(err)
		}
	}
	return nil
}

// Counters returns the last ids that were assigned; see [Sink].
func (t *MoveTarget) Counters(ctx context.Context) (map[string]int64, error) {
	counters, err := postgres.counters(ctx, t.db.read)
	return counters, classify(err)
}

// Complete records that everything was copied and compared: from now on the database may be served. It returns when all
// is on disk.
func (t *MoveTarget) Complete(ctx context.Context) error {
	_, err := t.conn.Exec(ctx, "UPDATE moves SET state = $1, finished_at = $2 WHERE id = 1", moveComplete, now().UnixMicro())
	return classify(err)
}

// Analyze updates the planner's statistics, which are those of empty tables.
func (t *MoveTarget) Analyze(ctx context.Context) error {
	_, err := t.conn.Exec(ctx, "ANALYZE")
	return classify(err)
}

// Rows reads a table in the order of its key.
func (t *MoveTarget) Rows(ctx context.Context, table MoveTable) iter.Seq2[MovedRow, error] {
	if table.Queue() {
		return t.jobs(ctx)
	}
	return func(yield func(MovedRow, error) bool) {
		rows, err := t.conn.Query(ctx, table.selection(postgres, false), pgx.QueryExecModeDescribeExec)
		if err != nil {
			yield(MovedRow{}, classify(err))
			return
		}
		defer rows.Close()
		for i, f := range rows.FieldDescriptions() {
			if f.Format != pgx.BinaryFormatCode && table.Columns[i].Type != TextColumn { // text has one form
				yield(MovedRow{}, fmt.Errorf("store: column %s does not come as it is stored", f.Name))
				return
			}
		}
		var row MovedRow
		for rows.Next() {
			values := rows.RawValues()
			row.Tuple = binary.BigEndian.AppendUint16(row.Tuple[:0], uint16(len(values)))
			for _, v := range values {
				row.Tuple = appendBytes(row.Tuple, v)
			}
			row.Key = binary.BigEndian.AppendUint16(row.Key[:0], uint16(len(table.key)))
			for _, k := range table.key {
				row.Key = appendBytes(row.Key, values[k])
			}
			if !yield(row, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(MovedRow{}, classify(err))
		}
	}
}

func (t *MoveTarget) jobs(ctx context.Context) iter.Seq2[MovedRow, error] {
	return func(yield func(MovedRow, error) bool) {
		rows, err := t.conn.Query(ctx, `SELECT id, kind, cast(args AS text), queue, cast(priority AS bigint), cast(max_attempts AS bigint), scheduled_at
			FROM river_job WHERE state IN `+pending+` ORDER BY id`)
		if err != nil {
			yield(MovedRow{}, classify(err))
			return
		}
		defer rows.Close()
		eachJob(rows, yield)
	}
}

// movesSchema is the first schema with the table moves.
const movesSchema = 17

// PrepareLoad gives an unused database the schema of a dump. A new one on PostgreSQL is Unfinished from then on until a
// Load, or a server would take what a restore left that was cut off for an empty installation. One that has been an
// installation before stays one: Load may refuse it.
func (db *DB) PrepareLoad(ctx context.Context, schema int64) error {
	have, _, err := db.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if db.dialect == postgres && have < movesSchema && movesSchema <= schema {
		if err := db.MigrateTo(ctx, movesSchema); err != nil { // as early as can be
			return err
		}
		_, err := db.write.ExecContext(ctx, "INSERT INTO moves (id, source, state, started_at) VALUES (2, '', $1, $2)", moveLoading, now().UnixMicro())
		if err != nil {
			return classify(err)
		}
	}
	return db.MigrateTo(ctx, schema)
}

// Unfinished reports whether a move or a restore into the database is incomplete. Such a database must not be served.
func (db *DB) Unfinished(ctx context.Context) (unfinished bool, err error) {
	err = db.read.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM moves WHERE state <> $1)", moveComplete).Scan(&unfinished)
	return unfinished, classify(err)
}

// Virgin returns ErrForeign if a database without our tables holds tables of another program. It changes nothing.
func (db *DB) Virgin(ctx context.Context) error {
	there, err := db.dialect.tablesOf(ctx, db.read)
	if err != nil {
		return classify(err)
	}
	i := slices.IndexFunc(there, func(name string) bool { return name != versionTable })
	if i < 0 || slices.Contains(there, firstTable) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrForeign, there[i])
}

// Used reports whether the database has users or events.
func (db *DB) Used(ctx context.Context) (used bool, err error) {
	for _, table := range []string{"users", "events"} {
		var made bool
		if err := db.read.QueryRowContext(ctx, db.dialect.hasTable(table)).Scan(&made); err != nil || !made {
			return false, classify(err)
		}
	}
	err = db.read.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM users) OR EXISTS (SELECT FROM events)").Scan(&used)
	return used, classify(err)
}
