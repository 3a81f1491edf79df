package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// captureConns is for two groups of captures, announcements, answers, and the look-ups before captures.
const captureConns = 4 + aheadConns

// poolConns returns how many connections everything else may use.
func poolConns() int { return max(8, 4*runtime.NumCPU()) }

// connectHeld opens the connections that a pool keeps open.
func connectHeld(ctx context.Context, pool *pgxpool.Pool) error {
	for range pool.Config().MinConns {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("connect to PostgreSQL: %w", err)
		}
		defer conn.Release()
	}
	return nil
}

// Connections returns how many connections PostgreSQL's settings allow the role to this database, and how many one
// server may use.
func (db *DB) Connections(ctx context.Context) (allowed, taken int, err error) {
	// least ignores NULL.
	err = db.read.QueryRowContext(ctx, `SELECT least(
			current_setting('max_connections')::int - CASE WHEN r.rolsuper THEN 0
				ELSE current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true), '0')::int END,
			CASE WHEN NOT r.rolsuper THEN nullif(r.rolconnlimit, -1) END, CASE WHEN NOT r.rolsuper THEN nullif(d.datconnlimit, -1) END)
		FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()`).Scan(&allowed)
	if err != nil {
		return 0, 0, fmt.Errorf("store: connections: %w", classify(err))
	}
	return allowed, poolConns() + captureConns + 1, nil // one listens
}

// newPool returns a pool of up to size connections that keeps held of them open once they were made.
func newPool(ctx context.Context, url string, size, held int, connect, statementTimeout time.Duration) (*pgxpool.Pool, error) {
	cfg, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = int32(size), int32(held), 0
	cfg.PingTimeout = pingTimeout
	if connect == 0 {
		connect = connectTimeout
	}
	cfg.ConnConfig.ConnectTimeout = connect
	cfg.ConnConfig.DialFunc = dialer().DialContext
	cfg.ConnConfig.RuntimeParams["application_name"] = "hookglass"
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	cfg.ConnConfig.AfterConnect = setUp(connect, statementTimeout, statementTimeout, idleTimeout)
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

// setUp returns a function that configures each new session. It uses SET rather than the startup message, of which a
// pooler accepts little: PgBouncer refuses sessions with other settings there or, if configured so, ignores the
// settings.
func setUp(connect, statement, lock, idle time.Duration) pgconn.AfterConnectFunc {
	var text strings.Builder
	for _, s := range [][2]string{
		// These override the settings of the role and the database. With another encoding some of what senders write
		// cannot be stored, with another meaning of backslashes our statements would break, and with stricter isolation
		// concurrent transactions would fail.
		{"synchronous_commit", "on"},
		{"client_encoding", "'UTF8'"},
		{"standard_conforming_strings", "on"},
		{"default_transaction_isolation", "'read committed'"},
		{"quote_all_identifiers", "off"}, // with it, the catalogue calls a type "text" in quotes
		{"statement_timeout", strconv.FormatInt(statement.Milliseconds(), 10)},
		{"lock_timeout", strconv.FormatInt(lock.Milliseconds(), 10)},
		{"idle_in_transaction_session_timeout", strconv.FormatInt(idle.Milliseconds(), 10)},
		// A plan that was made while a table was nearly empty scans it, and is kept while it grows. Every statement has
		// an index to use.
		{"enable_seqscan", "off"},
		// Merging two tables in the order of a key reads one of them up to the row that is wanted. Statistics that are
		// older than the row say that there is nothing to read.
		{"enable_mergejoin", "off"},
		{"jit", "off"}, // unavoidable scans would look so costly that they would be compiled first
		// Among many events each endpoint is taken for one that has a good part of them, for which processes would be
		// started. That takes longer than most of these queries.
		{"max_parallel_workers_per_gather", "0"},
		// The server notices within about 20 s that a node's machine is gone, even while it waits for the rest of a
		// message.
		{"tcp_keepalives_idle", "8"},
		{"tcp_keepalives_interval", "4"},
		{"tcp_keepalives_count", "3"},
	} {
		text.WriteString("SET " + s[0] + " = " + s[1] + ";")
	}
	// Listening and pooled connections may be idle for long, and long transactions have their own limits. Not every
	// version of the server has both settings.
	text.WriteString("SELECT set_config(name, '0', false) FROM (VALUES ('idle_session_timeout'), ('transaction_timeout')) AS limits (name) WHERE current_setting(name, true) IS NOT NULL")
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		if e := (&TooOldError{conn.ParameterStatus("server_version")}); e.is() {
			return e
		}
		ctx, cancel := context.WithTimeout(ctx, connect)
		defer cancel()
		err := conn.Exec(ctx, text.String()).Close()
		if e := encodingOf(conn); err != nil && e.Encoding != "" && !e.complete() {
			return e
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("let in, and not answered within %v: the server hangs, or a pooler has no connection left: %w", connect, err)
		}
		return err
	}
}

const (
	connectTimeout = 5 * time.Second  // each: to reach the server and authenticate, and to configure the session
	pingTimeout    = time.Second      // for checking a connection that was idle for a second
	queryTimeout   = 15 * time.Second // for a statement that no sender waits for
	idleTimeout    = 10 * time.Second // within a transaction
)

// notLetIn reports whether the server has no such database, does not admit the role, refuses the settings, or is too
// old. At the start this is a fault of the URL, which waiting does not mend; later the server is at fault, because it
// admitted us before.
func notLetIn(err error) bool {
	said, ok := errors.AsType[*pgconn.PgError](err)
	return errors.As(err, new(*EncodingError)) || errors.As(err, new(*TooOldError)) ||
		ok && slices.ContainsFunc([]string{"22", "28", "3D", "42", "55P02"}, func(class string) bool { return strings.HasPrefix(said.Code, class) })
}

// checkSessions refuses a pooler in transaction or statement mode, which changes the server connection after each:
// locks, settings and prepared statements would end up with other clients. Of the two sessions that this takes it
// returns the one that is not of the pool.
func checkSessions(ctx context.Context, pool *pgxpool.Pool) (_ *pgx.Conn, err error) {
	first, err := pool.Acquire(ctx)
	if err != nil {
		err = fmt.Errorf("connect to PostgreSQL: %w", err)
		if notLetIn(err) {
			return nil, fmt.Errorf("store: %w", err)
		}
		return nil, classify(err)
	}
	defer first.Release()
	second, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return nil, classify(fmt.Errorf("connect to PostgreSQL: %w", err))
	}
	defer func() {
		if err != nil {
			second.Close(context.WithoutCancel(ctx))
		}
	}()
	// A pooler that hands out the connection returned last gives both clients the same one; a pooler that rotates gives
	// the first client a different one at once. While the second is in a transaction, its connection cannot go to the
	// first.
	var behind [4]string
	for i, ask := range []struct {
		of   *pgx.Conn
		text string
	}{
		{first.Conn(), "SELECT pg_backend_pid()"},
		{first.Conn(), "SELECT pg_backend_pid()"},
		{second, "BEGIN; SELECT pg_backend_pid()"},
		{first.Conn(), "SELECT pg_backend_pid()"},
	} {
		results, err := ask.of.PgConn().Exec(ctx, ask.text).ReadAll()
		// PgBouncer has one code for all that it says.
		if said, ok := errors.AsType[*pgconn.PgError](err); ok && strings.Contains(said.Message, "statement pooling mode") {
			return nil, errNoSessions
		}
		if err != nil {
			return nil, classify(fmt.Errorf("connect to PostgreSQL: %w", err))
		}
		behind[i] = string(results[len(results)-1].Rows[0][0])
	}
	// A pooler whose only connection is in the transaction lets the first client wait until the server ends that.
	if b := behind; b[0] != b[1] || b[0] == b[2] || b[0] != b[3] {
		return nil, errNoSessions
	}
	if err := second.PgConn().Exec(ctx, "ROLLBACK").Close(); err != nil {
		return nil, classify(fmt.Errorf("connect to PostgreSQL: %w", err))
	}
	return second, nil
}

var errNoSessions = errors.New("store: the connection pooler in front of PostgreSQL does not give each session its own connection: set pool_mode = session in PgBouncer, or connect to the server itself")
