package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Sink receives a dump: for each table its shape and then its rows, and finally the id counters. Values are nil, int64,
// string, []byte or float64, and valid until the next call returns.
type Sink interface {
	Table(Table) error
	Row(values []any) error
	Counters(map[string]int64) error
}

// Dump writes a consistent snapshot of everything stored to the sink, while writing goes on, and returns the version of
// the schema. Finished jobs are left out. It refuses a schema of a newer program: this one cannot know what of it
// belongs in a dump.
func (db *DB) Dump(ctx context.Context, sink Sink) (schema int64, err error) {
	schema, need, err := db.SchemaVersion(ctx)
	if err != nil {
		return 0, err
	}
	if err := refuseNewer(schema, need); err != nil {
		return 0, err
	}
	tx, err := db.read.BeginTx(ctx, db.dialect.viewOptions())
	if err != nil {
		return 0, unavailable("begin dump", err)
	}
	defer tx.Rollback()
	if db.dialect == postgres {
		// A dump may take long: what it is written to may be slow.
		if _, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return 0, classify(err)
		}
		if _, err := tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
			return 0, classify(err)
		}
	}
	tables, err := db.dialect.catalog(ctx, tx)
	if err != nil {
		return 0, classify(err)
	}
	for _, t := range tables {
		if err := dumpTable(ctx, tx, t, sink); err != nil {
			return 0, fmt.Errorf("store: dump %s: %w", t.Name, err)
		}
	}
	if err := db.dumpQueue(ctx, tx, sink); err != nil {
		return 0, fmt.Errorf("store: dump the queue: %w", err)
	}
	counters, err := db.dialect.counters(ctx, tx)
	if err != nil {
		return 0, classify(err)
	}
	return schema, sink.Counters(counters)
}

func dumpTable(ctx context.Context, tx *sql.Tx, t Table, sink Sink) error {
	if err := sink.Table(t); err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, dumpOf(t))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := scanValues(rows, t.Columns)
		if err != nil {
			return err
		}
		if err := sink.Row(values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// dumpOf returns the statement that reads a table. Rows are ordered by the first column, the key, so that a row comes
// after an earlier one of its table that it refers to.
func dumpOf(t Table) string {
	condition := ""
	if t.Name == "payloads" { // those of deleted events may remain until their range is dropped
		condition = " WHERE (SELECT 1 FROM events WHERE events.seq = payloads.seq) IS NOT NULL" // PostgreSQL would sort a join
	}
	return "SELECT " + strings.Join(t.columnNames(), ", ") + " FROM " + t.Name + condition + " ORDER BY 1"
}

func scanValues(rows *sql.Rows, columns []Column) ([]any, error) {
	targets := make([]any, len(columns))
	for i, c := range columns {
		switch c.Type {
		case IntColumn:
			targets[i] = new(sql.NullInt64)
		case TextColumn:
			targets[i] = new(sql.NullString)
		case RealColumn:
			targets[i] = new(sql.NullFloat64)
		default:
			targets[i] = new(sql.Null[[]byte])
		}
	}
	if err := rows.Scan(targets...); err != nil {
		return nil, err
	}
	values := make([]any, len(columns))
	for i, target := range targets {
		switch v := target.(type) {
		case *sql.NullInt64:
			if v.Valid {
				values[i] = v.Int64
			}
		case *sql.NullString:
			if v.Valid {
				values[i] = v.String
			}
		case *sql.NullFloat64:
			if v.Valid {
				values[i] = v.Float64
			}
		case *sql.Null[[]byte]:
			if v.Valid && v.V == nil {
				values[i] = []byte{} // empty is not NULL
			} else if v.Valid {
				values[i] = v.V
			}
		}
	}
	return values, nil
}

// dumpQueue writes the jobs that are still to be done to the sink.
func (db *DB) dumpQueue(ctx context.Context, tx *sql.Tx, sink Sink) error {
	if err := sink.Table(queueTable); err != nil {
		return err
	}
	var exists bool
	if err := tx.QueryRowContext(ctx, db.dialect.hasTable("river_job")).Scan(&exists); err != nil || !exists {
		return err
	}
	rows, err := tx.QueryContext(ctx, `SELECT kind, cast(args AS text), queue, priority, max_attempts, scheduled_at FROM river_job
		WHERE state IN `+pending+` ORDER BY id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, args, queue string
		var priority, maxAttempts int64
		var at time.Time
		if err := rows.Scan(&kind, &args, &queue, &priority, &maxAttempts, &at); err != nil {
			return err
		}
		// Normalised for both databases: one of them reformats JSON, the other keeps only milliseconds.
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(args)); err != nil {
			return err
		}
		if err := sink.Row([]any{kind, compact.String(), queue, priority, maxAttempts, at.Truncate(time.Millisecond).UnixMicro()}); err != nil {
			return err
		}
	}
	return rows.Err()
}
