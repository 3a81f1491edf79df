package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
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

// Advisory locks, by arbitrary constants of ours.
const (
	schemaLock   = 0x686f6f6b01
	captureLock  = 0x686f6f6b02
	moveLock     = 0x686f6f6b03 // of a database that is moved to, for the session
	togetherLock = 0x686f6f6b04 // see [DB.Together]
	rangesLock   = 0x686f6f6b05 // see [DB.TendPayloads]
	eventsLock   = 0x686f6f6b06 // of a group among other nodes, until its events are stored
)

// postgresEngine has a pool for views and updates, connections of its own for captures, so that slow
// queries never delay a sender, and one connection that listens for announcements.
//
// Captures of all nodes commit one group after the other, under an advisory lock that lives as long as the
// group's transaction. That is what makes a sequence number seen mean that none smaller is still to come,
// so a reader's cursor is a number. The lock, the rows and the commit travel in one round trip, so that a node that
// freezes has said all of it or, as a rule, nothing; where it stopped in between it is hung up on, see makeWay.
type postgresEngine struct {
	db       *DB
	pool     *pgxpool.Pool
	captures *pgxpool.Pool
	ops      chan *op
	crowded  chan struct{} // a hint that a second writer has something to do
	crowding atomic.Bool   // it does
	others   atomic.Bool   // other nodes may capture too, and it must not
	done     chan struct{} // closed when the first writer has ended
	topics   chan string
	asked    chan string   // answers to give
	listener atomic.Uint32 // the server process that this node listens to; 0: it does not

	questions questions
	missed    atomic.Bool // a topic did not fit
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	mu        sync.RWMutex // guards closed against a send on ops
	closed    bool

	// The bounds of these names; a test has more patience, or less.
	tellLimit, comeBack, stuckAfter time.Duration
	rangeLeast                      int64
}

func (db *DB) openPostgres(ctx context.Context, url string) error {
	pool, err := newPool(ctx, url, max(8, 4*runtime.NumCPU()), queryTimeout)
	if err != nil {
		return err
	}
	if err := checkSessions(ctx, pool); err != nil {
		pool.Close()
		return err
	}
	if err := checkDurable(ctx, pool, db.log); err != nil {
		pool.Close()
		return err
	}
	captures, err := newPool(ctx, url, 4+aheadConns, 6*time.Second) // two groups of captures, announcements, answers, and what stands before captures
	if err != nil {
		pool.Close()
		return err
	}
	sqlDB := stdlib.OpenDBFromPool(pool)
	db.dialect, db.read, db.write, db.ahead = postgres, sqlDB, sqlDB, stdlib.OpenDBFromPool(captures)
	db.ahead.SetMaxOpenConns(aheadConns)
	if db.queue, err = postgresQueue(pool, &db.clock); err != nil {
		captures.Close()
		pool.Close()
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
		captures.Close()
		pool.Close()
		return classify(err)
	}
	e.wg.Go(func() { e.runClock(background) })
	e.wg.Go(e.runCaptures)
	e.wg.Go(e.runCrowd)
	e.wg.Go(func() { e.runListen(background) })
	e.wg.Go(func() { e.runAnnounce(background) })
	e.wg.Go(func() { e.runAnswers(background) })
	return nil
}

// PostgresHosts is where the database of a URL is to be found over the network: host:port of each of its hosts, read as
// it is when they are connected to, with what the environment adds. One that is connected to by its socket is on this
// machine, and listens on the port in the socket's name if on any. It is none without a URL, and for one that cannot
// be read.
func PostgresHosts(url string) []string {
	if url == "" {
		return nil
	}
	cfg, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil
	}
	var hosts []string
	add := func(host string, port uint16) {
		network, address := pgconn.NetworkAddress(host, port)
		if network == "unix" {
			_, address = pgconn.NetworkAddress("localhost", port)
		}
		if !slices.Contains(hosts, address) {
			hosts = append(hosts, address)
		}
	}
	add(cfg.Host, cfg.Port)
	for _, other := range cfg.Fallbacks { // the other hosts, and each once more without TLS
		add(other.Host, other.Port)
	}
	return hosts
}

func newPool(ctx context.Context, url string, size int, statementTimeout time.Duration) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("store: the database URL can not be read") // its text may hold a password
	}
	cfg.MaxConns = int32(size)
	cfg.PingTimeout = pingTimeout
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	cfg.ConnConfig.DialFunc = dialer().DialContext
	cfg.ConnConfig.RuntimeParams["application_name"] = "hookglass"
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	cfg.ConnConfig.AfterConnect = setUp(statementTimeout, statementTimeout, idleTimeout)
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		writeArrays(conn.TypeMap())
		return nil
	}
	failed := cfg.ConnConfig.OnPgError
	cfg.ConnConfig.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		return err.Code != readOnlySession && failed(conn, err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return pool, nil
}

// setUp tells each new session how it is to work. It is told here and not in the session's first message, of which a
// pooler takes little: PgBouncer refuses a session that asks for more, or, where it is told to, passes over it.
func setUp(statement, lock, idle time.Duration) pgconn.AfterConnectFunc {
	var text strings.Builder
	for _, s := range [][2]string{
		// Over what role and database say. Another encoding has no place for some of what senders write, another
		// meaning of backslashes takes the end of our statements away, and a stricter isolation fails those that meet.
		{"synchronous_commit", "on"},
		{"client_encoding", "'UTF8'"},
		{"standard_conforming_strings", "on"},
		{"default_transaction_isolation", "'read committed'"},
		{"statement_timeout", strconv.FormatInt(statement.Milliseconds(), 10)},
		{"lock_timeout", strconv.FormatInt(lock.Milliseconds(), 10)},
		{"idle_in_transaction_session_timeout", strconv.FormatInt(idle.Milliseconds(), 10)},
		// A plan that is made while a table is nearly empty reads all of it, and is kept while it grows. Each statement
		// has an index to go by.
		{"enable_seqscan", "off"},
		{"jit", "off"}, // what reads a table all the same counts as so dear that it would be compiled first
		// The server notices within about 20 s that a node's machine is gone, also while it waits for the rest of what
		// that node says.
		{"tcp_keepalives_idle", "8"},
		{"tcp_keepalives_interval", "4"},
		{"tcp_keepalives_count", "3"},
	} {
		text.WriteString("SET " + s[0] + " = " + s[1] + ";")
	}
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		return conn.Exec(ctx, text.String()).Close()
	}
}

const (
	connectTimeout = 5 * time.Second  // of each half of connecting: the way there with the password, and the settings
	pingTimeout    = time.Second      // of the question whether a session that nobody used for a second is still one
	queryTimeout   = 15 * time.Second // of a statement that no sender waits for
	idleTimeout    = 10 * time.Second // within a transaction
)

// notLetIn reports whether the server has no such database, or does not let this role into it. At the start that is
// what the URL says, which waiting does not mend; later it is the server's, which let us in before.
func notLetIn(err error) bool {
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(said.Code, "28") || strings.HasPrefix(said.Code, "3D") || strings.HasPrefix(said.Code, "42"))
}

// checkSessions refuses a pooler that hands connections of its own out for a transaction at a time: there a lock is
// held, a setting made and a statement prepared for whoever comes next.
func checkSessions(ctx context.Context, pool *pgxpool.Pool) error {
	var conns [2]*pgxpool.Conn
	for i := range conns {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			err = fmt.Errorf("connect to PostgreSQL: %w", err)
			if notLetIn(err) {
				return fmt.Errorf("store: %w", err)
			}
			return classify(err)
		}
		defer conn.Release()
		conns[i] = conn
	}
	// A pooler of transactions that hands out what was returned last gives the second what the first has; one that goes
	// round gives the first another at once. While the second is in a transaction, what it has cannot go to the first.
	var behind [4]string
	for i, ask := range []struct {
		of   int
		text string
	}{{0, "SELECT pg_backend_pid()"}, {0, "SELECT pg_backend_pid()"}, {1, "BEGIN; SELECT pg_backend_pid()"}, {0, "SELECT pg_backend_pid()"}} {
		results, err := conns[ask.of].Conn().PgConn().Exec(ctx, ask.text).ReadAll()
		if err != nil {
			return classify(fmt.Errorf("connect to PostgreSQL: %w", err))
		}
		behind[i] = string(results[len(results)-1].Rows[0][0])
	}
	if err := conns[1].Conn().PgConn().Exec(ctx, "ROLLBACK").Close(); err != nil {
		return classify(fmt.Errorf("connect to PostgreSQL: %w", err))
	}
	if first := behind[0]; first != behind[1] || first == behind[2] || first != behind[3] {
		return errors.New("store: what stands before PostgreSQL gives sessions no connection of their own: set pool_mode = session in PgBouncer, or connect to the server itself")
	}
	return nil
}

// checkDurable refuses a server on which no session can be durable, and warns of one that as a whole is not: a
// throw-away database is somebody's choice, which everybody who looks at the log, /readyz or doctor is to know of
// (docs/decisions/0032).
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

// updateTries is how often an update is done that the server ends because it and another wait for each other, as who
// deletes an event and who stores a run on it may. The server has waited for its deadlock_timeout (1 s) before that,
// and the other goes on by then.
const updateTries = 4

func (e *postgresEngine) update(ctx context.Context, fn change) (err error) {
	for range updateTries {
		err = e.updateOnce(ctx, fn)
		if failed, ok := errors.AsType[*pgconn.PgError](err); !ok || failed.Code != deadlocked {
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

// announce hands topics to the goroutine that tells other nodes. When that falls behind, one
// announcement of everything replaces what does not fit.
func (e *postgresEngine) announce(topics []string) {
	for _, t := range topics {
		select {
		case e.topics <- t:
		default:
			e.missed.Store(true)
		}
	}
}

// notify does not wait for the disk: a listener that outlives the server's crash reconnects, and then everything may
// have changed.
const notify = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)"

// announceEvery bounds how often a node notifies: NOTIFY makes commits of all nodes wait for each other.
const announceEvery = 10 * time.Millisecond

// lastWord is how long the last announcements of a node that is closed may take.
const lastWord = 2 * time.Second

// runAnnounce tells other nodes of the topics until ctx ends, and then of what is left: a command that changes
// something and is done lives no longer than topics are gathered for.
func (e *postgresEngine) runAnnounce(ctx context.Context) {
	pending := make(map[string]struct{})
	var full <-chan time.Time // when they are told
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
	<-e.done // which captures until then
	for len(e.topics) > 0 {
		pending[<-e.topics] = struct{}{}
	}
	e.tellOthers(context.WithoutCancel(ctx), lastWord, pending)
}

// tellOthers announces topics, or everything where some were missed.
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
		e.missed.Store(true) // the next one says that there was more
		e.db.log.Debug("announcement lost", "error", err)
	}
}

// runListen hears other nodes. After each gap in listening everything may have changed.
func (e *postgresEngine) runListen(ctx context.Context) {
	for wait := time.Duration(0); ctx.Err() == nil; {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		err := e.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		e.db.log.Warn("listening for announcements was cut off, trying again", "error", err)
		wait = min(max(2*wait, 100*time.Millisecond), 2*time.Second)
	}
}

func (e *postgresEngine) listen(ctx context.Context) error {
	cfg := e.pool.Config().ConnConfig.Copy()
	cfg.RuntimeParams["application_name"] = listenerName
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	var own uint32 // by the server's own word: a pooler gives sessions other numbers
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&own); err != nil {
		return err
	}
	e.db.hub.resync()
	e.listener.Store(own)
	defer e.listener.Store(0)
	for {
		// A connection whose other end vanished without a word is found by asking it.
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

// makeRoom cannot: the disk is the server's.
func (e *postgresEngine) makeRoom(error) bool { return false }

func (e *postgresEngine) onReserve() bool { return false }

// lockSchema returns a database of its own to migrate by: an index of a large table takes longer than any other
// statement may.
func (e *postgresEngine) lockSchema(ctx context.Context) (*sql.DB, func(), error) {
	cfg := e.pool.Config().ConnConfig.Copy()
	cfg.AfterConnect = setUp(0, queryTimeout, idleTimeout)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, nil, unavailable("connect", err)
	}
	if _, err := conn.Exec(ctx, "SET lock_timeout = 0"); err != nil {
		conn.Close(ctx)
		return nil, nil, err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(schemaLock)); err != nil {
		conn.Close(ctx)
		return nil, nil, fmt.Errorf("store: wait for the schema: %w", err)
	}
	by := stdlib.OpenDB(*cfg)
	return by, func() {
		by.Close()
		conn.Close(context.WithoutCancel(ctx))
	}, nil
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
