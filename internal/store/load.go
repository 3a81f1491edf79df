package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
)

// ErrNotEmpty says that a database holds data that a load would replace.
var ErrNotEmpty = errors.New("store: the database is not empty")

// PostgresInUse reports whether other processes of this program are connected to the database. It answers unavailable,
// and does not wait long if the server hangs.
func PostgresInUse(ctx context.Context, url string) (bool, error) {
	parsed, err := parseURL(url)
	if err != nil {
		return false, err
	}
	cfg := parsed.ConnConfig
	cfg.RuntimeParams["application_name"] = "hookglass check"
	cfg.ConnectTimeout = connectTimeout
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, unavailable("connect", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// The server notices the end of a process a moment later, for example that of a command run just before.
	for began := time.Now(); ; {
		// Nothing is prepared: a pooler that openPostgres refuses may hand the server connection to somebody else.
		counted, err := conn.PgConn().Exec(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name SIMILAR TO '(hookglass|"+listenerName+")"+pooledName+"'").ReadAll()
		if err != nil {
			return false, unavailable("look for other processes", err)
		}
		others := string(counted[0].Rows[0][0]) != "0"
		if !others || time.Since(began) > endSeen {
			return others, nil
		}
		select {
		case <-time.After(endSeen / 20):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// endSeen is how long a server may take to see that a connection has ended.
const endSeen = 2 * time.Second

// Load fills the database from a dump of the same version of the schema (see [DB.MigrateTo]), replacing what it holds.
// fn calls the Sink as Dump did. Without replace it answers ErrNotEmpty for a database that holds data. On PostgreSQL a
// failed load changes nothing; an SQLite file is unusable after one. Nobody else may use the database meanwhile.
func (db *DB) Load(ctx context.Context, schema int64, replace bool, fn func(Sink) error) error {
	have, _, err := db.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if have != schema {
		return fmt.Errorf("store: the database has schema version %d, the dump %d: load it into a new, empty database", have, schema)
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return unavailable("begin load", err)
	}
	defer conn.Close()
	if db.dialect == sqliteDialect {
		// The writer, and with it the checkpoints, stand still until conn is returned.
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", copyPages)); err != nil {
			return classify(err)
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA wal_autocheckpoint = 0")
	}
	l := &loader{ctx: ctx, db: db, conn: conn}
	if err := l.begin(); err != nil {
		return classify(err)
	}
	defer func() { l.tx.Rollback() }()
	if l.tables, err = db.dialect.catalog(ctx, l.tx); err != nil {
		return classify(err)
	}
	if err := l.clear(replace); err != nil {
		return classify(err)
	}
	if err := fn(l); err != nil {
		return err
	}
	if err := l.flush(); err != nil {
		return classify(err)
	}
	return classify(l.tx.Commit())
}

// Bounds of what is buffered.
const (
	loadRows  = 1000
	loadBytes = 16 << 20
)

type loader struct {
	ctx    context.Context
	db     *DB
	conn   *sql.Conn
	tx     *sql.Tx
	tables []Table

	table Table
	rows  [][]any
	bytes int
}

func (l *loader) begin() (err error) {
	if l.tx, err = l.conn.BeginTx(l.ctx, nil); err != nil {
		return err
	}
	if l.db.dialect == postgres {
		_, err = l.tx.ExecContext(l.ctx, "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")
	}
	return err
}

// clear empties the tables, referring ones before those that they refer to.
func (l *loader) clear(replace bool) error {
	for _, t := range slices.Backward(l.tables) {
		if !replace && t.Name != "rate_limits" { // filled by health checks alone
			var any bool
			if err := l.tx.QueryRowContext(l.ctx, "SELECT EXISTS (SELECT 1 FROM "+t.Name+")").Scan(&any); err != nil {
				return err
			}
			if any {
				return ErrNotEmpty
			}
		}
		if l.db.dialect == sqliteDialect {
			if _, err := l.tx.ExecContext(l.ctx, "DELETE FROM "+t.Name); err != nil {
				return err
			}
		}
	}
	if l.db.dialect == postgres {
		names := make([]string, len(l.tables))
		for i, t := range l.tables {
			names[i] = t.Name
		}
		for _, statement := range []string{"TRUNCATE " + strings.Join(names, ", "), noRanges} {
			if _, err := l.tx.ExecContext(l.ctx, statement); err != nil {
				return err
			}
		}
	}
	_, err := l.tx.ExecContext(l.ctx, "DELETE FROM river_job")
	if err != nil || l.db.dialect == sqliteDialect {
		return err
	}
	// The data of an unfinished move is gone, so drop its record too, which forbids serving the database, as that of
	// PrepareLoad does.
	var moved bool
	if err := l.tx.QueryRowContext(l.ctx, postgres.hasTable("moves")).Scan(&moved); err != nil || !moved {
		return err
	}
	_, err = l.tx.ExecContext(l.ctx, "TRUNCATE moves, move_tables")
	return err
}

// Table implements Sink.
func (l *loader) Table(t Table) error {
	if err := l.flush(); err != nil {
		return classify(err)
	}
	known := slices.ContainsFunc(l.tables, func(k Table) bool { return k.Name == t.Name && sameColumns(k.Columns, t.Columns) })
	if !known && (t.Name != queueTable.Name || !slices.Equal(t.Columns, queueTable.Columns)) {
		return fmt.Errorf("store: the dump's table %q is not one of this schema", t.Name)
	}
	l.table = t
	return nil
}

func sameColumns(a, b []Column) bool {
	if len(a) != len(b) {
		return false
	}
	for _, c := range a {
		if !slices.Contains(b, c) {
			return false
		}
	}
	return true
}

// Row implements Sink.
func (l *loader) Row(values []any) error {
	l.rows = append(l.rows, values)
	for _, v := range values {
		switch v := v.(type) {
		case string:
			l.bytes += len(v)
		case []byte:
			l.bytes += len(v)
		}
	}
	if len(l.rows) < loadRows && l.bytes < loadBytes {
		return nil
	}
	return classify(l.flush())
}

// Counters implements Sink.
func (l *loader) Counters(counters map[string]int64) error {
	if err := l.flush(); err != nil {
		return classify(err)
	}
	for table, last := range counters {
		if err := l.db.dialect.setCounter(l.ctx, l.tx, table, last); err != nil {
			return classify(err)
		}
	}
	return nil
}

func (l *loader) flush() error {
	rows := l.rows
	l.rows, l.bytes = nil, 0
	if len(rows) == 0 {
		return nil
	}
	if l.table.Name == queueTable.Name {
		return l.enqueue(rows)
	}
	if l.db.dialect == postgres {
		return l.copy(rows)
	}
	if err := l.insert(rows); err != nil {
		return err
	}
	// One transaction for everything would make the write-ahead log as large as the database. Until the load has ended
	// the file is unusable anyway.
	if err := l.tx.Commit(); err != nil {
		return err
	}
	return l.begin()
}

func (l *loader) insert(rows [][]any) error {
	columns := strings.Join(l.table.columnNames(), ", ")
	stmt, err := l.tx.PrepareContext(l.ctx, "INSERT INTO "+l.table.Name+" ("+columns+") VALUES ("+placeholders(columns)+")")
	if err != nil {
		return err
	}
	defer stmt.Close()
	for _, values := range rows {
		if _, err := stmt.ExecContext(l.ctx, values...); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) copy(rows [][]any) error {
	return l.conn.Raw(func(driverConn any) error {
		conn := driverConn.(*stdlib.Conn).Conn()
		_, err := conn.CopyFrom(l.ctx, pgx.Identifier{l.table.Name}, l.table.columnNames(), pgx.CopyFromRows(rows))
		return err
	})
}

// dumpedJob is a job known only by its kind and arguments, which its worker interprets.
type dumpedJob struct {
	kind string
	args json.RawMessage
}

func (j dumpedJob) Kind() string                 { return j.kind }
func (j dumpedJob) MarshalJSON() ([]byte, error) { return j.args, nil }

func (l *loader) enqueue(rows [][]any) error {
	params := make([]river.InsertManyParams, len(rows))
	for i, r := range rows {
		if slices.ContainsFunc(r, func(v any) bool { return v == nil }) {
			return errors.New("store: the dump holds an incomplete job")
		}
		params[i] = river.InsertManyParams{
			Args: dumpedJob{r[0].(string), json.RawMessage(r[1].(string))},
			InsertOpts: &river.InsertOpts{
				Queue: r[2].(string), Priority: int(r[3].(int64)), MaxAttempts: int(r[4].(int64)), ScheduledAt: time.UnixMicro(r[5].(int64)).UTC(),
			},
		}
	}
	return l.db.queue.insert(l.ctx, l.tx, params)
}
