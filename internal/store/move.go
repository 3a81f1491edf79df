package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A move fills an empty PostgreSQL database from an embedded one, row by row. Package internal/move decides what is
// copied and compared; this file has the SQL of the source, move_target.go that of the destination. Rows travel as
// tuples of PostgreSQL's binary COPY. These are canonical: a row has the same bytes from either database, so a digest
// of the tuple is a digest of the row.

// MoveTable is a table to copy, with the indexes of its key columns. Rows are read in the order of the key.
type MoveTable struct {
	Table
	key []int
}

// MovedRow is a row, valid until the next one is read.
type MovedRow struct {
	Key   []byte // the tuple of the key's columns
	Tuple []byte
}

// queueKey is the key of a pending job. Jobs get new ids in the destination, so comparisons ignore it.
var queueKey = []Column{{"id", IntColumn}}

// Queue reports whether the table stands for the pending jobs.
func (t MoveTable) Queue() bool { return t.Name == queueTable.Name }

func (t MoveTable) keyColumns() []Column {
	if t.Queue() {
		return queueKey
	}
	columns := make([]Column, len(t.key))
	for i, k := range t.key {
		columns[i] = t.Columns[k]
	}
	return columns
}

// Compare orders two keys of the table.
func (t MoveTable) Compare(a, b []byte) int {
	a, b = a[2:], b[2:]
	for _, c := range t.keyColumns() {
		var x, y []byte
		x, a = field(a)
		y, b = field(b)
		order := bytes.Compare(x, y)
		if c.Type == IntColumn {
			order = cmp.Compare(int64(binary.BigEndian.Uint64(x)), int64(binary.BigEndian.Uint64(y)))
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

// Describe formats a key for people.
func (t MoveTable) Describe(key []byte) string {
	var parts []string
	values := t.arguments(key)
	for i, c := range t.keyColumns() {
		form := "%s=%q"
		switch c.Type {
		case IntColumn:
			form = "%s=%d"
		case BytesColumn:
			form = "%s=%x"
		}
		parts = append(parts, fmt.Sprintf(form, c.Name, values[i]))
	}
	return strings.Join(parts, " ")
}

// arguments returns the values of a key as arguments of a statement, none for no key.
func (t MoveTable) arguments(key []byte) (values []any) {
	if key == nil {
		return nil
	}
	key = key[2:]
	for _, c := range t.keyColumns() {
		var v []byte
		v, key = field(key)
		switch c.Type {
		case IntColumn:
			values = append(values, int64(binary.BigEndian.Uint64(v)))
		case BytesColumn:
			values = append(values, v)
		default:
			values = append(values, string(v))
		}
	}
	return values
}

// field splits the first field, which must not be NULL, from the rest of a tuple.
func field(tuple []byte) (value, rest []byte) {
	n := binary.BigEndian.Uint32(tuple)
	return tuple[4 : 4+n], tuple[4+n:]
}

// appendTuple appends a row in the form of PostgreSQL's binary COPY (its documentation, "COPY", "Binary Format").
func appendTuple(b []byte, columns []Column, values []any) ([]byte, error) {
	b = binary.BigEndian.AppendUint16(b, uint16(len(columns)))
	for i, c := range columns {
		switch v := values[i].(type) {
		case nil:
			b = appendNull(b)
			continue
		case int64:
			if c.Type == IntColumn {
				b = appendInteger(b, v)
				continue
			}
		case float64:
			if c.Type == RealColumn {
				b = appendInteger(b, int64(math.Float64bits(v)))
				continue
			}
		case string:
			if c.Type == TextColumn {
				if !utf8.ValidString(v) || strings.IndexByte(v, 0) >= 0 {
					return b, fmt.Errorf("column %s holds text that PostgreSQL does not take", c.Name)
				}
				b = appendElement(b, v)
				continue
			}
		case []byte:
			if c.Type == BytesColumn {
				b = appendElement(b, v)
				continue
			}
		}
		return b, fmt.Errorf("column %s holds a value of another type", c.Name)
	}
	return b, nil
}

// MoveSource reads an embedded database. It holds the write lock: other processes cannot write until it is closed.
type MoveSource struct {
	tx     *sql.Tx
	tables []MoveTable
	schema int64
}

// OpenMoveSource returns a source for db, an embedded database, which cannot be used otherwise until the source is
// closed. It returns a [SchemaError] for a schema that is not this program's.
func (db *DB) OpenMoveSource(ctx context.Context) (*MoveSource, error) {
	if db.dialect != sqliteDialect {
		return nil, errors.New("store: only an embedded database can be moved")
	}
	have, need, err := db.SchemaVersion(ctx)
	if err != nil {
		return nil, err
	}
	if have != need {
		return nil, fmt.Errorf("the embedded database: %w", &SchemaError{have, need})
	}
	tx, err := db.write.BeginTx(ctx, nil) // takes the write lock
	if err != nil {
		return nil, classify(err)
	}
	s := &MoveSource{tx: tx, schema: have}
	if err := s.describe(ctx); err != nil {
		tx.Rollback()
		return nil, err
	}
	return s, nil
}

func (s *MoveSource) describe(ctx context.Context) error {
	tables, err := sqliteDialect.catalog(ctx, s.tx)
	if err != nil {
		return classify(err)
	}
	for _, t := range tables {
		m := MoveTable{Table: t}
		err := eachTriple(ctx, s.tx, "SELECT name, '' FROM pragma_table_info('"+t.Name+"') WHERE pk > 0 ORDER BY pk", func(name, _, _ string) error {
			m.key = append(m.key, slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name }))
			return nil
		})
		if err != nil {
			return classify(err)
		}
		if len(m.key) == 0 {
			return fmt.Errorf("store: table %s has no key by which it could be moved", t.Name)
		}
		s.tables = append(s.tables, m)
	}
	s.tables = append(s.tables, MoveTable{Table: queueTable})
	return nil
}

// Close ends reading. The database is unchanged.
func (s *MoveSource) Close() error { return s.tx.Rollback() }

// Tables lists the tables to copy, each after those that it refers to, the queue last.
func (s *MoveSource) Tables() []MoveTable { return s.tables }

// Counters returns the last ids that were assigned; see [Sink].
func (s *MoveSource) Counters(ctx context.Context) (map[string]int64, error) {
	counters, err := sqliteDialect.counters(ctx, s.tx)
	return counters, classify(err)
}

// pending lists the states of jobs to be done, including those that were running when their process ended.
const pending = "('available', 'pending', 'retryable', 'running', 'scheduled')"

// Count counts the rows of a table.
func (s *MoveSource) Count(ctx context.Context, t MoveTable) (n int64, err error) {
	query := "SELECT count(*) FROM " + t.Name
	if t.Queue() {
		query = "SELECT count(*) FROM river_job WHERE state IN " + pending
	}
	err = s.tx.QueryRowContext(ctx, query).Scan(&n)
	return n, classify(err)
}

// Mark identifies the database in its present state: it differs for other databases, and for this one once it was
// served again. It is made of the first account's creation time, the ids assigned and the newest job. A change that
// assigns no id shows when rows are compared.
func (s *MoveSource) Mark(ctx context.Context) ([]byte, error) {
	counters, err := s.Counters(ctx)
	if err != nil {
		return nil, err
	}
	var born, newest sql.NullInt64
	err = s.tx.QueryRowContext(ctx, "SELECT (SELECT min(created_at) FROM accounts), (SELECT max(id) FROM river_job)").Scan(&born, &newest)
	if err != nil {
		return nil, classify(err)
	}
	text, err := json.Marshal([]any{s.schema, born.Int64, newest.Int64, counters})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return sum[:], nil
}

// Rows reads the rows of a table after a key; nil is the beginning.
func (s *MoveSource) Rows(ctx context.Context, t MoveTable, after []byte) iter.Seq2[MovedRow, error] {
	if t.Queue() {
		return s.jobs(ctx, t, after)
	}
	return func(yield func(MovedRow, error) bool) {
		rows, err := s.tx.QueryContext(ctx, t.selection(sqliteDialect, after != nil), t.arguments(after)...)
		if err != nil {
			yield(MovedRow{}, classify(err))
			return
		}
		defer rows.Close()
		values, targets := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		for i := range values {
			targets[i] = &values[i]
		}
		keyColumns, keyValues := t.keyColumns(), make([]any, len(t.key))
		var row MovedRow
		for rows.Next() {
			if err := rows.Scan(targets...); err != nil {
				yield(MovedRow{}, classify(err))
				return
			}
			for i, k := range t.key {
				keyValues[i] = values[k]
			}
			row.Key, err = appendTuple(row.Key[:0], keyColumns, keyValues)
			if err == nil {
				row.Tuple, err = appendTuple(row.Tuple[:0], t.Columns, values)
				if err != nil {
					err = fmt.Errorf("store: %s, %s: %w", t.Name, t.Describe(row.Key), err)
				}
			}
			if err != nil || !yield(row, nil) {
				if err != nil {
					yield(MovedRow{}, err)
				}
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(MovedRow{}, classify(err))
		}
	}
}

// selection returns the query for the rows of a table in the order of its key, all or those after a key.
func (t MoveTable) selection(d dialect, behind bool) string {
	var names []string
	for _, c := range t.keyColumns() {
		name := c.Name
		if c.Type == TextColumn {
			name = d.byBytes(name)
		}
		names = append(names, name)
	}
	key := strings.Join(names, ", ")
	query := "SELECT " + strings.Join(t.columnNames(), ", ") + " FROM " + t.Name
	if behind {
		query += " WHERE (" + key + ") > (" + placeholders(key) + ")"
	}
	return query + " ORDER BY " + key
}

// jobs reads the pending jobs.
func (s *MoveSource) jobs(ctx context.Context, t MoveTable, after []byte) iter.Seq2[MovedRow, error] {
	return func(yield func(MovedRow, error) bool) {
		behind := int64(0)
		if after != nil {
			behind = t.arguments(after)[0].(int64)
		}
		rows, err := s.tx.QueryContext(ctx, `SELECT id, kind, cast(args AS text), queue, priority, max_attempts, scheduled_at FROM river_job
			WHERE state IN `+pending+` AND id > $1 ORDER BY id`, behind)
		if err != nil {
			yield(MovedRow{}, classify(err))
			return
		}
		defer rows.Close()
		eachJob(rows, yield)
	}
}

// eachJob yields jobs up to the first error. The interface is common to the rows of both drivers.
func eachJob(rows interface {
	Next() bool
	Scan(...any) error
	Err() error
}, yield func(MovedRow, error) bool) {
	for rows.Next() {
		row, err := scanJob(rows.Scan)
		if !yield(row, classify(err)) || err != nil {
			return
		}
	}
	if err := rows.Err(); err != nil {
		yield(MovedRow{}, classify(err))
	}
}

// scanJob reads a job in a form common to both databases: one reformats JSON, the other keeps only milliseconds.
func scanJob(scan func(...any) error) (row MovedRow, err error) {
	var id, priority, attempts int64
	var kind, args, queue string
	var at time.Time
	if err := scan(&id, &kind, &args, &queue, &priority, &attempts, &at); err != nil {
		return row, err
	}
	var v any
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return row, fmt.Errorf("the arguments of job %d: %w", id, err)
	}
	canonical, err := json.Marshal(v)
	if err != nil {
		return row, err
	}
	if row.Key, err = appendTuple(nil, queueKey, []any{id}); err != nil {
		return row, err
	}
	row.Tuple, err = appendTuple(nil, queueTable.Columns, []any{kind, string(canonical), queue, priority, attempts, at.Truncate(time.Millisecond).UnixMicro()})
	return row, err
}
