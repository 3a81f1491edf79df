// Package store holds all SQL of the service: the schema, the two databases, tenant scoping, transactions, and jobs and
// announcements that take effect on commit. It holds no policy.
//
// # The seam
//
// [DB.View] reads a consistent snapshot, [DB.Update] reads and writes in one transaction, and [DB.Capture] stores one
// event by a path of its own. A View or Update is for a [hookglass.Principal], and what the principal may not see does
// not exist in it: a look-up answers not_found, a list leaves it out.
//
// # Durability
//
// Update and Capture return after the commit is on disk (SQLite's log is synced after it, PostgreSQL runs with fsync
// and synchronous_commit). Work that waits together commits together: on SQLite one goroutine takes everything in the
// queue, runs each op in a savepoint and commits once; on PostgreSQL captures share a round trip, while Updates have
// their own transactions.
//
// # Announcements
//
// A commit is announced to this process and, on PostgreSQL, to all others. An announcement only says that a topic
// changed; the listener reads the tables. Announcements can be lost, so listeners also poll.
//
// # Concurrency
//
// All methods of DB are safe for concurrent use. A View or Tx must not be used outside its function.
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
	"hookglass/internal/fair"
)

// Config says which database to open.
type Config struct {
	// Path is the SQLite file, used if URL is empty.
	Path string
	// URL is a postgres:// address.
	URL string
	// Log receives messages for the operator; nil discards them.
	Log *slog.Logger
	// OnCapture observes each group of captures: their number, their bytes, and how long the commit took. May be nil.
	OnCapture func(events int, bytes int64, took time.Duration)
	// Clock is this machine's clock; nil is time.Now.
	Clock func() time.Time
	// Reserve holds resources for emergencies: with SQLite a file that is given up when the disk is full, so that there
	// is room to delete; with PostgreSQL the connections of captures, so that they have them when the server has no
	// more.
	Reserve bool
	// Connect bounds how long it may take to reach PostgreSQL, and to configure a session there; 0 is 5 s each.
	Connect time.Duration
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

// engine is how the two databases differ in running transactions.
type engine interface {
	// update runs fn in a transaction and commits it.
	update(ctx context.Context, fn change) error
	// updateAlong is update for work that should disturb captures as little as possible.
	updateAlong(ctx context.Context, fn change) error
	// capture stores one event and sets its Seq.
	capture(ctx context.Context, c *captureOp) error
	// announce announces topics to other processes, not to this one.
	announce(topics []string)
	// tell makes the transaction's commit announce topics to other processes; it returns nil if there are none.
	tell(ctx context.Context, tx *sql.Tx, topics []string) (*told, error)
	// health returns nil if the database accepts writes, and describes its durability settings.
	health(ctx context.Context) (map[string]string, error)
	// makeRoom tries to make room after an error of a full disk, and reports whether to retry.
	makeRoom(err error) bool
	// onReserve reports whether captures are stopped because the disk is full.
	onReserve() bool
	// lockSchema keeps other processes from migrating at the same time, and returns the database to migrate with.
	lockSchema(ctx context.Context) (by *sql.DB, unlock func(), err error)
	close(ctx context.Context) error
}

// Open opens the database and creates an SQLite file that does not exist. It does not migrate: see [DB.Migrate]. For a
// PostgreSQL server with fsync off it logs a warning.
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
		err = db.openPostgres(ctx, cfg.URL, cfg.Reserve, cfg.Connect)
	} else {
		err = db.openSQLite(ctx, cfg.Path, cfg.Reserve)
	}
	if err != nil {
		return nil, err
	}
	return db, nil
}

// Close ends the background work, waits for running transactions and closes the database.
func (db *DB) Close() error {
	db.closeOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		db.closeErr = db.engine.close(ctx)
	})
	return db.closeErr
}

// Health returns nil if the database accepts writes. The map describes the database and its durability settings, for
// /readyz.
func (db *DB) Health(ctx context.Context) (map[string]string, error) { return db.engine.health(ctx) }

// OnReserve reports whether the disk of an embedded database is full, so that captures are stopped and the reserve is
// used for deleting.
func (db *DB) OnReserve() bool { return db.engine.onReserve() }

// The write that health tries, and its removal in the same transaction: a health check must leave nothing behind by
// which a moved database would differ from its source.
const (
	healthWrite = "INSERT INTO rate_limits (bucket, tat) VALUES ('health', $1) ON CONFLICT (bucket) DO UPDATE SET tat = excluded.tat"
	healthErase = "DELETE FROM rate_limits WHERE bucket = 'health'"
)

// Postgres reports whether the database is PostgreSQL, which several nodes can share.
func (db *DB) Postgres() bool { return db.dialect == postgres }

// patience bounds a whole transaction. A live server has its own statement timeouts, but one that hangs or is
// unreachable ends nothing.
const patience = 15 * time.Second

// View runs fn on a consistent snapshot of what the principal may see. It returns errors of fn, with a code added if
// they come from the storage.
func (db *DB) View(ctx context.Context, who hookglass.Principal, fn func(*View) error) error {
	return db.view(ctx, db.read, who, fn)
}

// Read is View with a result. If read fails, its result is returned too.
func Read[T any](ctx context.Context, db *DB, who hookglass.Principal, read func(*View) (T, error)) (got T, err error) {
	err = db.View(ctx, who, func(v *View) (err error) {
		got, err = read(v)
		return err
	})
	return got, err
}

// aheadConns is the number of Ahead's connections.
const aheadConns = 2

// Ahead is View for the system on separate connections. It is for the look-ups before each capture, which slow searches
// must not hold up. fn must be quick.
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

// Update runs fn in a transaction and commits it durably. If fn returns an error, nothing is kept. fn must be quick and
// must not wait for anything, because other writers wait behind it. It may be called again, after a failed group commit
// or a deadlock, so it must reset the variables that it sets outside.
func (db *DB) Update(ctx context.Context, who hookglass.Principal, fn func(*Tx) error) error {
	return db.updateBy(ctx, who, fn, db.engine.update)
}

// UpdateAlong is Update for work that nobody waits for. On SQLite it first gives way to other writes and then shares
// their sync, each for a moment, so that captures wait neither for it nor for its sync.
func (db *DB) UpdateAlong(ctx context.Context, who hookglass.Principal, fn func(*Tx) error) error {
	return db.updateBy(ctx, who, fn, db.engine.updateAlong)
}

// UpdateInPieces calls piece in transactions of UpdateAlong, by the system, until there is no more to do. It rests
// between them, so that other users of the storage have their turn.
func (db *DB) UpdateInPieces(ctx context.Context, piece func(*Tx) (more bool, err error)) error {
	for more := true; more; {
		began := time.Now()
		err := db.UpdateAlong(ctx, hookglass.System, func(tx *Tx) (err error) {
			more, err = piece(tx)
			return err
		})
		if err != nil {
			return err
		}
		fair.Rest(ctx, began)
	}
	return nil
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
		if others != nil { // this is a retry after a failed commit
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

// Listen returns a subscription to topics; see the constants and functions named Topic.
func (db *DB) Listen(topics ...string) *Subscription { return db.hub.subscribe(topics...) }

// Watch is Listen for callers with thousands of topics. fn is called synchronously at every announcement, so it must
// return at once and must not use the database or the subscription.
func (db *DB) Watch(topic string, fn func()) *Subscription {
	return db.hub.add(&Subscription{fn: fn, hub: db.hub, topics: []string{topic}})
}

// classify adds a code to driver errors: unavailable if a retry may succeed; others stay internal.
func classify(err error) error {
	var coded *hookglass.Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone) || storageTrouble(err) { // ErrTxDone: ctx ended it
		return unavailable("storage", err)
	}
	return fmt.Errorf("store: %w", err)
}

func unavailable(doing string, err error) error {
	return &hookglass.Error{
		Code: hookglass.CodeUnavailable, Message: "The storage cannot answer now. Try again shortly.",
		RetryAfter: 5 * time.Second, Err: fmt.Errorf("store: %s: %w", doing, err),
	}
}
