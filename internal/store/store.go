// Package store is the only SQL of the service: schema, the two databases, tenant scoping,
// transactions, jobs enqueued on commit and announcements made on commit. It holds no policy.
//
// # The seam
//
// [DB.View] reads a consistent snapshot, [DB.Update] reads and writes in one transaction, and
// [DB.Capture] stores one event on a path of its own. Each of the first two is opened for a
// [hookglass.Principal], and what is not the principal's does not exist in it: a look-up answers
// not_found, a list leaves it out.
//
// # Durability
//
// Update and Capture return after the commit is on disk (SQLite's log synced after it, PostgreSQL
// with fsync and synchronous_commit). Work that waits together commits together: on SQLite one
// goroutine takes all that queue up, runs each in a savepoint and commits once; on PostgreSQL
// captures share a round trip and Updates have transactions of their own.
//
// # Announcements
//
// A commit is announced to this process and, on PostgreSQL, to all others. An announcement is a hint
// that a topic changed and carries nothing else; whoever hears it reads the table. Announcements can
// be lost, so a listener also looks now and then without one.
//
// # Concurrency
//
// All methods of DB are safe for concurrent use. A View or Tx belongs to its function.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"hookglass"
)

// Config says which database to open.
type Config struct {
	// Path is the SQLite file. It is used when URL is empty.
	Path string
	// URL is a postgres:// address.
	URL string
	// Log receives what an operator should know. nil discards.
	Log *slog.Logger
	// OnCapture observes each group of captures: how many, their bytes, how long the commit took. nil: nobody does.
	OnCapture func(events int, bytes int64, took time.Duration)
	// Clock is this machine's; nil: time.Now.
	Clock func() time.Time
	// Reserve keeps what a server holds for bad times: a file beside the SQLite file that is given up when the disk is
	// full, so that there is room to delete, and of PostgreSQL the connections of captures, so that they have them when
	// it gives no more out.
	Reserve bool
}

// DB is an open database.
type DB struct {
	log       *slog.Logger
	dialect   dialect
	read      *sql.DB
	write     *sql.DB
	ahead     *sql.DB // for Ahead
	hub       *hub
	queue     *queue
	engine    engine
	clock     clock
	takers    takers
	pace      pace
	onCapture func(int, int64, time.Duration)
	closeOnce sync.Once
	closeErr  error
}

// engine is what differs between the two databases in running transactions.
type engine interface {
	// update runs fn in a transaction and commits it.
	update(ctx context.Context, fn change) error
	// updateAlong is update for work that captures should feel as little as can be.
	updateAlong(ctx context.Context, fn change) error
	// capture stores one event and sets its Seq.
	capture(ctx context.Context, c *captureOp) error
	// announce tells other processes; this one knows already.
	announce(topics []string)
	// tell makes the transaction's commit announce topics to other processes; nil where there are no others.
	tell(ctx context.Context, tx *sql.Tx, topics []string) (*told, error)
	// health answers nil when the database accepts writes, and describes its durability settings.
	health(ctx context.Context) (map[string]string, error)
	// makeRoom reports whether what an error of a full disk has failed is worth another try.
	makeRoom(err error) bool
	// onReserve reports whether nothing is captured because the disk is full.
	onReserve() bool
	// lockSchema keeps other processes from migrating at the same time, and returns what to migrate by.
	lockSchema(ctx context.Context) (by *sql.DB, unlock func(), err error)
	close(ctx context.Context) error
}

// Open opens the database, creating an SQLite file when it is missing. It does not migrate: see [DB.Migrate].
// A PostgreSQL server that runs with fsync off is used with a warning.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	db := &DB{log: log, hub: newHub(), onCapture: cfg.OnCapture}
	if db.onCapture == nil {
		db.onCapture = func(int, int64, time.Duration) {}
	}
	db.clock.doubt = make(chan struct{}, 1)
	if db.clock.own = cfg.Clock; db.clock.own == nil {
		db.clock.own = time.Now
	}
	var err error
	if cfg.URL != "" {
		err = db.openPostgres(ctx, cfg.URL, cfg.Reserve)
	} else {
		err = db.openSQLite(ctx, cfg.Path, cfg.Reserve)
	}
	if err != nil {
		return nil, err
	}
	return db, nil
}

// Close ends the background work, waits for transactions under way and closes the database.
func (db *DB) Close() error {
	db.closeOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		db.closeErr = db.engine.close(ctx)
	})
	return db.closeErr
}

// Health answers nil when the database accepts writes. The map describes the database and its
// durability settings, for /readyz.
func (db *DB) Health(ctx context.Context) (map[string]string, error) { return db.engine.health(ctx) }

// OnReserve reports whether the disk of an embedded database is full, so that what was held in reserve on it is given
// up for deleting, and nothing is captured.
func (db *DB) OnReserve() bool { return db.engine.onReserve() }

// The write that health tries, and what takes it away in the same transaction: a look leaves nothing behind, by which a
// database that was moved would differ from its source.
const (
	healthWrite = "INSERT INTO rate_limits (bucket, tat) VALUES ('health', $1) ON CONFLICT (bucket) DO UPDATE SET tat = excluded.tat"
	healthErase = "DELETE FROM rate_limits WHERE bucket = 'health'"
)

// Postgres reports whether the database is PostgreSQL, which several nodes may share.
func (db *DB) Postgres() bool { return db.dialect == postgres }

// patience is how long a transaction may take altogether. A server that is there ends statements by itself; one that
// hangs, or that the network no longer reaches, ends nothing.
const patience = 15 * time.Second

// View runs fn on a consistent snapshot of what the principal may see. Errors of fn come back as they are.
func (db *DB) View(ctx context.Context, who hookglass.Principal, fn func(*View) error) error {
	return db.view(ctx, db.read, who, fn)
}

// Read is View for what is read in one go. Where read fails, what it returned comes back too.
func Read[T any](ctx context.Context, db *DB, who hookglass.Principal, read func(*View) (T, error)) (got T, err error) {
	err = db.View(ctx, who, func(v *View) (err error) {
		got, err = read(v)
		return err
	})
	return got, err
}

// aheadConns are the connections of Ahead.
const aheadConns = 2

// Ahead is View for the system, on connections of its own: for the look-ups that stand before each capture, which
// no number of slow searches may hold up. fn must be quick.
func (db *DB) Ahead(ctx context.Context, fn func(*View) error) error {
	return db.view(ctx, db.ahead, hookglass.System, fn)
}

func (db *DB) view(ctx context.Context, pool *sql.DB, who hookglass.Principal, fn func(*View) error) error {
	if tx := db.joined(ctx); tx != nil {
		return classify(fn(&View{ctx: ctx, q: tx.q, dialect: db.dialect, who: who, Now: tx.Now}))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tx, err := pool.BeginTx(ctx, db.dialect.viewOptions())
	if err != nil {
		return unavailable("begin view", err)
	}
	defer tx.Rollback()
	if err := fn(&View{ctx: ctx, q: tx, dialect: db.dialect, who: who, Now: db.Now()}); err != nil {
		return classify(err)
	}
	return nil
}

// Update runs fn in a transaction and commits it durably. When fn returns an error nothing of it is
// kept. fn must be quick and must not wait for anything: other writers stand behind it. It may be called again, when
// the commit of others has failed or the server has ended it so that others could go on: what it sets outside it sets
// anew.
func (db *DB) Update(ctx context.Context, who hookglass.Principal, fn func(*Tx) error) error {
	return db.updateBy(ctx, who, fn, db.engine.update)
}

// UpdateAlong is Update for what nobody waits for. On SQLite it lets all else pass for a moment, and then waits a
// moment for a sync that is made for others, so that captures neither stand behind it nor behind a sync of its own.
func (db *DB) UpdateAlong(ctx context.Context, who hookglass.Principal, fn func(*Tx) error) error {
	return db.updateBy(ctx, who, fn, db.engine.updateAlong)
}

func (db *DB) updateBy(ctx context.Context, who hookglass.Principal, fn func(*Tx) error, update func(context.Context, change) error) error {
	if tx := db.joined(ctx); tx != nil {
		return classify(tx.part(who, fn))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var topics []string
	var others *told
	err := update(ctx, func(sqlTx *sql.Tx) (mayBeLost bool, err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("store: panic in update: %v", r)
			}
		}()
		if others != nil { // the commit of the last call failed
			others.forget()
			others = nil
		}
		tx := &Tx{View: View{ctx: ctx, q: sqlTx, dialect: db.dialect, who: who, Now: db.Now()}, sqlTx: sqlTx, queue: db.queue, pace: &db.pace}
		if err := fn(tx); err != nil {
			return false, err
		}
		if err := tx.flushJobs(); err != nil {
			return false, err
		}
		topics = tx.topics
		if tx.atOnce {
			others, err = db.engine.tell(ctx, sqlTx, topics)
		}
		return tx.mayBeLost, err
	})
	if others != nil {
		defer others.forget()
	}
	switch {
	case err != nil:
		return classify(err)
	case others != nil:
		db.hub.publish(topics...)
		others.wait(ctx)
	default:
		db.announce(topics...)
	}
	return nil
}

func (db *DB) announce(topics ...string) {
	if len(topics) == 0 {
		return
	}
	db.hub.publish(topics...)
	db.engine.announce(topics)
}

// Listen returns a subscription to topics. See [Topic...] functions for their names.
func (db *DB) Listen(topics ...string) *Subscription { return db.hub.subscribe(topics...) }

// Watch is Listen for those that hold thousands of topics and cannot wait for each: fn is called at every
// announcement, in the midst of it, so it must return at once and must not use the database or the subscription.
func (db *DB) Watch(topic string, fn func()) *Subscription {
	return db.hub.add(&Subscription{fn: fn, hub: db.hub, topics: []string{topic}})
}

// querier is the part of sql.DB, sql.Tx and sql.Conn that statements need.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// View reads what one principal may see.
type View struct {
	Now     time.Time // by the database's clock, one for the whole transaction
	ctx     context.Context
	q       querier
	dialect dialect
	who     hookglass.Principal
	sparing *sparing // nil: what is read is read whole
}

// sparing is how much a view reads whole, and how much that would have been.
type sparing struct{ most, bytes int64 }

// spare reports whether a view that is sparing leaves out what has so many bytes.
func (v *View) spare(bytes int64) bool {
	if v.sparing == nil {
		return false
	}
	v.sparing.bytes += bytes
	return v.sparing.bytes > v.sparing.most
}

// Sparing is the view for whoever has no room yet for what they are about to read: once single events have more than
// most bytes together, no more of them is read than the list form. weight returns how many bytes all of them have, with
// what was reported of them.
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
	pace   *pace // of deletions
	topics []string
	jobs   []hookglass.Job

	mayBeLost bool
	atOnce    bool // other processes hear of the topics before Update returns
}

// Announce makes the commit tell the topics.
func (tx *Tx) Announce(topics ...string) { tx.topics = append(tx.topics, topics...) }

// AnnounceAtOnce is Announce for what people set: who has the answer expects that whatever is sent next, to any node,
// meets it. All topics of the transaction are told to other nodes with its commit, which makes commits of that kind
// wait for each other, and Update returns when they have heard, except for one that stands still.
func (tx *Tx) AnnounceAtOnce(topics ...string) {
	tx.Announce(topics...)
	tx.atOnce = true
}

// MayBeLost lets the commit return before it is on disk: for what nobody was promised, and what is done again
// when a crash of the database, or of the machine with it, takes it. What commits later is on disk no sooner than this.
func (tx *Tx) MayBeLost() {
	tx.mayBeLost = true
	if tx.dialect == postgres {
		_, _ = tx.exec("SET LOCAL synchronous_commit = off") // a transaction that this spoils fails in its next statement
	}
}

// Enqueue makes the job part of the transaction.
func (tx *Tx) Enqueue(jobs ...hookglass.Job) { tx.jobs = append(tx.jobs, jobs...) }

func (tx *Tx) flushJobs() error {
	if len(tx.jobs) == 0 {
		return nil
	}
	tx.Announce(TopicJobs)
	return tx.queue.enqueue(tx.ctx, tx.sqlTx, tx.jobs)
}

func (v *View) exec(query string, args ...any) (int64, error) {
	res, err := v.q.ExecContext(v.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// queryRow scans one row; kind names what is missing when there is none.
func (v *View) queryRow(kind, query string, args []any, dest ...any) error {
	err := v.q.QueryRowContext(v.ctx, query, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return hookglass.NotFound(kind)
	}
	return err
}

// queryAll scans each row by scan.
func queryAll[T any](v *View, scan func(func(...any) error) (T, error), query string, args ...any) ([]T, error) {
	rows, err := v.q.QueryContext(v.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := []T{}
	for rows.Next() {
		t, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, rows.Err()
}

// classify gives driver errors a code: what a retry may mend is unavailable, the rest stays internal.
func classify(err error) error {
	var coded *hookglass.Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone) || storageTrouble(err) { // a transaction is done early when its context is
		return unavailable("storage", err)
	}
	return fmt.Errorf("store: %w", err)
}

func unavailable(doing string, err error) error {
	return &hookglass.Error{
		Code: hookglass.CodeUnavailable, Message: "The storage can not answer now. Try again shortly.",
		RetryAfter: 5 * time.Second, Err: fmt.Errorf("store: %s: %w", doing, err),
	}
}

// args numbers the placeholders of a statement that is put together.
type args struct{ values []any }

// add returns the placeholder of a value.
func (a *args) add(v any) string {
	a.values = append(a.values, v)
	return fmt.Sprintf("$%d", len(a.values))
}

// now is the time as the store keeps it: UTC, whole microseconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// micros is a time as a column; the zero time is NULL.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// fromMicros reads a column written by micros.
func fromMicros(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}

func nullString(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func nullInt(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
