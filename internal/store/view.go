package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/riverqueue/river"

	"hookglass"
)

// querier is the common part of sql.DB, sql.Tx and sql.Conn.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// View reads what one principal may see.
type View struct {
	Now     time.Time // by the database's clock, fixed for the whole transaction
	ctx     context.Context
	q       querier
	dialect dialect
	who     hookglass.Principal
	sparing *sparing // nil: payloads are always loaded
}

// sparing limits the payloads that a view loads: to most bytes; bytes counts those requested.
type sparing struct{ most, bytes int64 }

// spare counts bytes and reports whether they exceed the limit, so that the payload is not loaded.
func (v *View) spare(bytes int64) bool {
	if v.sparing == nil {
		return false
	}
	v.sparing.bytes += bytes
	return v.sparing.bytes > v.sparing.most
}

// as returns the view of another principal.
func (v *View) as(who hookglass.Principal) *View {
	other := *v
	other.who = who
	return &other
}

// Sparing returns a view for a caller that has not yet reserved memory for what it will read: once the single events
// read have more than most bytes in total, further ones are read in list form. weight returns the total size of all of
// them, including their reports.
func (v *View) Sparing(most int64) (sparingly *View, weight func() int64) {
	s := &sparing{most: most}
	light := *v
	light.sparing = s
	return &light, func() int64 { return s.bytes }
}

// Tx reads and writes for one principal.
type Tx struct {
	View
	sqlTx  *sql.Tx
	queue  *queue
	pace   *pace // of deleting events
	topics []string
	jobs   []river.InsertManyParams

	mayBeLost bool
	atOnce    bool // other processes learn of the topics before Update returns
}

// Announce announces topics on commit.
func (tx *Tx) Announce(topics ...string) { tx.topics = append(tx.topics, topics...) }

// AnnounceAtOnce is Announce for settings: a client that has the answer expects that its next request sees the change,
// at any node. All topics of the transaction are announced by its commit, which serializes such commits, and Update
// waits until the other nodes have received them, but not for a frozen one.
func (tx *Tx) AnnounceAtOnce(topics ...string) {
	tx.Announce(topics...)
	tx.atOnce = true
}

// MayBeLost lets Update return before the commit is on disk. It is for work that nobody was promised, and that is
// repeated if a crash undoes it. Later commits still imply this one.
func (tx *Tx) MayBeLost() {
	tx.mayBeLost = true
	if tx.dialect == postgres {
		_, _ = tx.exec("SET LOCAL synchronous_commit = off") // if this fails, so does the next statement
	}
}

// Enqueue makes the job part of the transaction.
func (tx *Tx) Enqueue(jobs ...hookglass.Job) { tx.enqueueAt(time.Time{}, jobs...) }

// enqueueAt is Enqueue for jobs that wait until a time.
func (tx *Tx) enqueueAt(at time.Time, jobs ...hookglass.Job) {
	tx.jobs = append(tx.jobs, insertParams(at, jobs)...)
}

func (tx *Tx) flushJobs() error {
	if len(tx.jobs) == 0 {
		return nil
	}
	tx.Announce(TopicJobs)
	if err := tx.queue.insert(tx.ctx, tx.sqlTx, tx.jobs); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

func (tx *Tx) exec(query string, args ...any) (int64, error) {
	res, err := tx.q.ExecContext(tx.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// change runs a statement that must affect a row; kind names what is missing if it affects none.
func (tx *Tx) change(kind, query string, values ...any) error {
	n, err := tx.exec(query, values...)
	if err == nil && n == 0 {
		err = hookglass.NotFound(kind)
	}
	return err
}

// lockRows locks the rows of a query, in its order. On SQLite, with its one writer, lock is empty and nothing is read.
func (tx *Tx) lockRows(lock, query string, args ...any) error {
	if lock == "" {
		return nil
	}
	_, err := queryAll(&tx.View, scanNum, query+lock, args...)
	return err
}

// queryRow scans one row; kind names what is missing if there is none.
func (v *View) queryRow(kind, query string, args []any, dest ...any) error {
	err := v.q.QueryRowContext(v.ctx, query, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return hookglass.NotFound(kind)
	}
	return err
}

// one scans the only row of a query; kind names what is missing if there is none. Text with a NUL or invalid UTF-8
// matches no row, so the query is not run: PostgreSQL would report it as an error.
func one[T any](v *View, kind string, scan func(func(...any) error) (T, error), query string, a *args) (T, error) {
	for _, value := range a.values {
		if text, ok := value.(string); ok && (!utf8.ValidString(text) || strings.Contains(text, "\x00")) {
			var none T
			return none, hookglass.NotFound(kind)
		}
	}
	return scan(func(dest ...any) error { return v.queryRow(kind, query, a.all(), dest...) })
}

// queryEach calls fn for each row.
func (v *View) queryEach(fn func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := v.q.QueryContext(v.ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	scan := rows.Scan // as a value it is allocated, so once for all rows
	for rows.Next() {
		if err := fn(scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// queryAll scans all rows.
func queryAll[T any](v *View, scan func(func(...any) error) (T, error), query string, args ...any) ([]T, error) {
	all := []T{}
	err := v.queryEach(func(row func(...any) error) error {
		t, err := scan(row)
		if err == nil {
			all = append(all, t)
		}
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// finds reports whether a query returns a number.
func (v *View) finds(query string, args ...any) (bool, error) {
	found, err := queryAll(v, scanNum, query, args...)
	return len(found) > 0, err
}

// first returns the first number that a query returns, or another one if there is none.
func (v *View) first(otherwise int64, query string, args ...any) (int64, error) {
	found, err := queryAll(v, scanNum, query, args...)
	if err != nil || len(found) == 0 {
		return otherwise, err
	}
	return found[0], nil
}

func scanNum(scan func(...any) error) (n int64, err error) {
	err = scan(&n)
	return n, err
}

func scanText(scan func(...any) error) (s string, err error) {
	err = scan(&s)
	return s, err
}

// args collects the arguments of a statement and numbers their placeholders.
type args struct{ values []any }

// add returns the placeholder of a value.
func (a *args) add(v any) string {
	a.values = append(a.values, v)
	return "$" + strconv.Itoa(len(a.values))
}

// all returns the arguments for the call that runs the statement. It is a method because that call may still add some:
// Go evaluates the calls among operands from left to right, but a field at any time between them.
func (a *args) all() []any { return a.values }

// oldestPage returns the end of a statement, behind its conditions, for a page of a list, oldest first: the rows whose
// number is greater than after. For what an owner has, see [dialect.oldestOf].
func (a *args) oldestPage(number string, after int64, limit int) string {
	return " AND " + number + " > " + a.add(after) + " ORDER BY " + number + a.limit(limit)
}

// limit returns the clause that bounds the rows; 0 is no bound.
func (a *args) limit(n int) string {
	if n <= 0 {
		return ""
	}
	return " LIMIT " + a.add(n)
}

// placeholders returns $1, $2 and so on for a list of columns.
func placeholders(columns string) string {
	names := strings.Split(columns, ",")
	for i := range names {
		names[i] = "$" + strconv.Itoa(i+1)
	}
	return strings.Join(names, ", ")
}
