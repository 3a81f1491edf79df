package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// channel carries announcements between nodes.
const channel = "hookglass"

// Keys of advisory locks, arbitrary constants. They do not fit an int of 32 bits.
const (
	schemaLock   int64 = 0x686f6f6b01
	captureLock  int64 = 0x686f6f6b02
	moveLock     int64 = 0x686f6f6b03 // held by a move's destination, for the session
	togetherLock int64 = 0x686f6f6b04 // see [DB.Together]
	rangesLock   int64 = 0x686f6f6b05 // see [DB.TendPayloads]
	eventsLock   int64 = 0x686f6f6b06 // held by a group, if there are other nodes, until its events are stored
)

// postgresEngine has a pool for views and updates, separate connections for captures, so that slow queries never delay
// a sender, and one connection that listens for announcements.
//
// The captures of all nodes commit one group after the other, under an advisory lock that is held until the group's
// transaction ends. So once a sequence number is visible, no smaller one can appear, and a reader's cursor is a plain
// number. The lock, the rows and the commit travel in one round trip: a node that freezes has usually sent all of it or
// nothing. If it stopped in between, its session is terminated; see makeWay.
type postgresEngine struct {
	db       *DB
	pool     *pgxpool.Pool
	captures *pgxpool.Pool
	ops      chan *op
	crowded  chan struct{} // signals that a second writer has something to do
	crowding atomic.Bool   // the second writer is working
	others   atomic.Bool   // other nodes may be capturing; then the second writer must not work
	done     chan struct{} // closed when the first writer has ended
	topics   chan string
	asked    chan string   // answers to send
	listener atomic.Uint32 // the server process of this node's listening connection; 0: none

	questions questions
	missed    atomic.Bool // a topic was dropped
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	mu        sync.RWMutex // guards closed against a send on ops
	closed    bool

	// The constants of the same names, which tests change.
	tellLimit, comeBack, stuckAfter time.Duration
	rangeLeast                      int64
}

func (db *DB) openPostgres(ctx context.Context, url string, hold bool, connect time.Duration) (err error) {
	pool, err := newPool(ctx, url, poolConns(), 0, connect, queryTimeout)
	if err != nil {
		return err
	}
	defer closeUnless(&err, pool)
	listener, err := checkSessions(ctx, pool)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			listener.Close(context.WithoutCancel(ctx))
		}
	}()
	if err := checkDurable(ctx, pool, db.log); err != nil {
		return err
	}
	held := 0
	if hold {
		held = captureConns
	}
	captures, err := newPool(ctx, url, captureConns, held, connect, 6*time.Second)
	if err != nil {
		return err
	}
	defer closeUnless(&err, captures)
	if err := connectHeld(ctx, captures); err != nil {
		return classify(err)
	}
	sqlDB := stdlib.OpenDBFromPool(pool)
	db.dialect, db.read, db.write, db.ahead = postgres, sqlDB, sqlDB, stdlib.OpenDBFromPool(captures)
	db.ahead.SetMaxOpenConns(aheadConns)
	if db.queue, err = postgresQueue(pool, &db.clock); err != nil {
		return err
	}
	background, cancel := context.WithCancel(context.Background())
	e := &postgresEngine{
		db: db, pool: pool, captures: captures, cancel: cancel,
		ops: make(chan *op, queueLen), crowded: make(chan struct{}, 1), done: make(chan struct{}), topics: make(chan string, 1024), asked: make(chan string, 64),
		questions: questions{open: make(map[string]*told)},
		tellLimit: tellLimit, comeBack: comeBack, stuckAfter: stuckAfter, rangeLeast: rangeLeast,
	}
	db.engine = e
	if err := e.look(ctx); err != nil {
		cancel()
		return classify(err)
	}
	e.wg.Go(func() { e.runClock(background) })
	e.wg.Go(e.runCaptures)
	e.wg.Go(e.runCrowd)
	e.wg.Go(func() { e.runListen(background, listener) })
	e.wg.Go(func() { e.runAnnounce(background) })
	e.wg.Go(func() { e.runAnswers(background) })
	return nil
}

// closeUnless closes a pool if err is not nil by then.
func closeUnless(err *error, pool *pgxpool.Pool) {
	if *err != nil {
		pool.Close()
	}
}

// checkDurable refuses a server on which no session can be durable, and warns if the server as a whole is not. The
// latter can be a choice, for a throw-away database, but the log, /readyz and doctor show it (docs/decisions/0032).
func checkDurable(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	facts, err := durability(ctx, pool)
	if err != nil {
		return classify(fmt.Errorf("connect to PostgreSQL: %w", err))
	}
	if facts["synchronous_commit"] == "off" {
		return errors.New("store: PostgreSQL does not let synchronous_commit be turned on")
	}
	if facts["fsync"] != "on" {
		log.Warn("PostgreSQL runs with fsync off: a crash of its machine loses events that were answered for, or the whole database; set fsync = on for what is to last")
	}
	return nil
}

func durability(ctx context.Context, pool *pgxpool.Pool) (map[string]string, error) {
	var fsync, commit, pages, version string
	err := pool.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('synchronous_commit'),
		current_setting('full_page_writes'), current_setting('server_version')`).Scan(&fsync, &commit, &pages, &version)
	return map[string]string{
		"database": "postgres", "fsync": fsync, "synchronous_commit": commit, "full_page_writes": pages, "server_version": version,
	}, err
}

func (e *postgresEngine) health(ctx context.Context) (map[string]string, error) {
	facts, err := durability(ctx, e.pool)
	if err == nil {
		written := new(pgx.Batch) // one transaction
		written.Queue(healthWrite, now().UnixMicro())
		written.Queue(healthErase)
		err = e.pool.SendBatch(ctx, written).Close()
	}
	return facts, classify(err)
}

// updateTries is how often an update is run that the server aborts because of a deadlock, as between the deletion of an
// event and the saving of a run on it. By then the server has waited for its deadlock_timeout (1 s), so the other
// transaction has got ahead.
const updateTries = 4

func (e *postgresEngine) update(ctx context.Context, fn change) (err error) {
	for range updateTries {
		err = e.updateOnce(ctx, fn)
		if !inDeadlock(err) {
			return err
		}
	}
	return err
}

func (e *postgresEngine) updateOnce(ctx context.Context, fn change) error {
	tx, err := e.db.write.BeginTx(ctx, nil)
	if err != nil {
		return unavailable("begin update", err)
	}
	defer tx.Rollback()
	if _, err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (e *postgresEngine) updateAlong(ctx context.Context, fn change) error {
	return e.update(ctx, fn)
}

// announce queues topics for the goroutine that tells other nodes. If the queue is full, the next announcement is of
// everything.
func (e *postgresEngine) announce(topics []string) {
	for _, t := range topics {
		select {
		case e.topics <- t:
		default:
			e.missed.Store(true)
		}
	}
}

// notify need not be durable: a listener that survives a crash of the server reconnects, and then treats everything as
// changed.
const notify = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)"

// announceEvery bounds how often a node notifies, because NOTIFY serializes the commits of all nodes.
const announceEvery = 10 * time.Millisecond

// lastWord bounds how long the last announcements of a closing node may take.
const lastWord = 2 * time.Second

// runAnnounce announces topics until ctx ends, and then those that are left: a command that changes something may exit
// before a batch is complete.
func (e *postgresEngine) runAnnounce(ctx context.Context) {
	pending := make(map[string]struct{})
	var full <-chan time.Time // fires when the batch is to be sent
	for ctx.Err() == nil {
		select {
		case t := <-e.topics:
			pending[t] = struct{}{}
			if full == nil {
				full = time.After(announceEvery)
			}
		case <-full:
			e.tellOthers(ctx, 15*time.Second, pending)
			clear(pending)
			full = nil
		case <-ctx.Done():
		}
	}
	<-e.done // captures continue until then
	for len(e.topics) > 0 {
		pending[<-e.topics] = struct{}{}
	}
	e.tellOthers(context.WithoutCancel(ctx), lastWord, pending)
}

// tellOthers announces topics, or everything if some were dropped.
func (e *postgresEngine) tellOthers(ctx context.Context, limit time.Duration, topics map[string]struct{}) {
	if e.missed.Swap(false) {
		topics = map[string]struct{}{everything: {}}
	}
	if len(topics) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := e.captures.Exec(ctx, notify, channel, notice(slices.Collect(maps.Keys(topics)))); err != nil {
		e.missed.Store(true) // the next announcement covers these
		e.db.log.Debug("announcement lost", "error", err)
	}
}

// runListen receives the announcements of other nodes, at first in the session conn. After each interruption everything
// counts as changed.
func (e *postgresEngine) runListen(ctx context.Context, conn *pgx.Conn) {
	err := e.listen(ctx, conn)
	for wait := 100 * time.Millisecond; ctx.Err() == nil; wait = min(2*wait, 2*time.Second) {
		e.db.log.Warn("listening for announcements was cut off, trying again", "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if conn, err = pgx.ConnectConfig(ctx, e.pool.Config().ConnConfig); err == nil {
			err = e.listen(ctx, conn)
		}
	}
}

// listen closes conn in the end.
func (e *postgresEngine) listen(ctx context.Context, conn *pgx.Conn) error {
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "SET application_name = '"+listenerName+"'; LISTEN "+channel); err != nil {
		return err
	}
	var own uint32 // as the server numbers it: a pooler reports other process ids
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&own); err != nil {
		return err
	}
	e.db.hub.resync()
	e.listener.Store(own)
	defer e.listener.Store(0)
	for {
		// A ping finds a connection whose other end vanished silently.
		heard, cancel := context.WithTimeout(ctx, 15*time.Second)
		n, err := conn.WaitForNotification(heard)
		cancel()
		switch {
		case err == nil:
			e.hear(n.Payload)
		case ctx.Err() != nil:
			return ctx.Err()
		case heard.Err() != nil && !conn.IsClosed():
			ping, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := conn.Ping(ping)
			cancel()
			if err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// makeRoom does nothing: the disk is the server's.
func (e *postgresEngine) makeRoom(error) bool { return false }

func (e *postgresEngine) onReserve() bool { return false }

// lockSchema returns a separate database handle for migrations, without a statement timeout: building an index on a
// large table takes longer than any other statement may. A statement waits for others that use its table only for a
// moment at a time (see letBy), because captures of nodes that still run wait behind it.
func (e *postgresEngine) lockSchema(ctx context.Context) (*sql.DB, func(), error) {
	cfg := e.pool.Config().ConnConfig.Copy()
	cfg.AfterConnect = setUp(cfg.ConnectTimeout, 0, lockWait, idleTimeout)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, nil, unavailable("connect", err)
	}
	// A statement that waits for the lock would be a transaction for which the building of an index waits, and so the
	// holder of the lock.
	for {
		var locked bool
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", schemaLock).Scan(&locked); err != nil {
			conn.Close(context.WithoutCancel(ctx))
			return nil, nil, fmt.Errorf("store: wait for the schema: %w", err)
		}
		if locked {
			break
		}
		select {
		case <-time.After(schemaPause):
		case <-ctx.Done():
		}
	}
	by := stdlib.OpenDB(*cfg)
	return by, func() {
		by.Close()
		conn.Close(context.WithoutCancel(ctx))
	}, nil
}

// schemaPause is how often a process asks whether another one has migrated the schema.
const schemaPause = 100 * time.Millisecond

// letBy waits a moment after a migration waited for others that use its table for lockWait, and reports whether to
// retry. Meanwhile those that waited behind it go on.
func letBy(ctx context.Context, err error) bool {
	if failed, ok := errors.AsType[*pgconn.PgError](err); !ok || failed.Code != lockTimeout {
		return false
	}
	select {
	case <-time.After(lockPause):
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *postgresEngine) close(ctx context.Context) error {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.ops)
	}
	e.mu.Unlock()
	e.cancel()
	ended := make(chan struct{})
	go func() { e.wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := errors.Join(e.db.ahead.Close(), e.db.write.Close())
	e.captures.Close()
	e.pool.Close()
	return err
}
