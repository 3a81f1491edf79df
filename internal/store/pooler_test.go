package store_test

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// pooled are the parameters that PgBouncer takes of a client's first message; any other ends the session.
var pooled = []string{"user", "database", "client_encoding", "datestyle", "timezone", "standard_conforming_strings", "application_name"}

// pooler stands before a database as PgBouncer does, and returns the address to connect to. serve has what a client
// said first, and its connection.
func pooler(t *testing.T, dsn string, serve func(first *pgproto3.StartupMessage, client net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	t.Cleanup(clients.Wait)
	t.Cleanup(func() { l.Close() })
	clients.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			clients.Go(func() {
				defer client.Close()
				backend := pgproto3.NewBackend(client, client)
				message, err := backend.ReceiveStartupMessage()
				first, ok := message.(*pgproto3.StartupMessage)
				if err != nil || !ok { // gone, or the wish to cancel a statement
					return
				}
				for name := range first.Parameters {
					if !slices.Contains(pooled, strings.ToLower(name)) {
						backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: " + name})
						_ = backend.Flush()
						return
					}
				}
				serve(first, client)
			})
		}
	})
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return "postgres://" + cfg.User + ":" + cfg.Password + "@" + l.Addr().String() + "/" + cfg.Database + "?sslmode=disable"
}

func dialServer(dsn string) (net.Conn, error) {
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	return net.Dial(network, address)
}

// welcome passes on what the server says until it is ready, but for the number of its process: a pooler has its own.
func welcome(client io.Writer, server net.Conn) bool {
	frontend := pgproto3.NewFrontend(server, server)
	for {
		message, err := frontend.Receive()
		if err != nil {
			return false
		}
		if key, ok := message.(*pgproto3.BackendKeyData); ok {
			key.ProcessID = 1<<32 - 1
		}
		said, err := message.Encode(nil)
		if err != nil {
			return false
		}
		if _, err := client.Write(said); err != nil {
			return false
		}
		if _, ready := message.(*pgproto3.ReadyForQuery); ready {
			return true
		}
	}
}

// poolerOfSessions gives each client a session of its own. As PgBouncer can, it adds the client's address to the name.
func poolerOfSessions(t *testing.T, dsn string) string {
	return pooler(t, dsn, func(first *pgproto3.StartupMessage, client net.Conn) {
		server, err := dialServer(dsn)
		if err != nil {
			return
		}
		first.Parameters["application_name"] += " - " + client.RemoteAddr().String()
		hello, err := first.Encode(nil)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := server.Write(hello); err != nil {
			return
		}
		if !welcome(client, server) {
			server.Close()
			return
		}
		var back sync.WaitGroup
		back.Go(func() {
			_, _ = io.Copy(client, server)
			client.Close()
		})
		_, _ = io.Copy(server, client)
		server.Close()
		back.Wait()
	})
}

// How sessions work is said in no first message, of which a pooler takes little; it holds all the same.
func TestAPoolerOfSessionsMayStandBeforePostgreSQL(t *testing.T) {
	dsn := storetest.Postgres(t)
	exec(t, dsn, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
	db := storetest.Open(t, store.Config{URL: poolerOfSessions(t, dsn)})
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	listening(t, db)
	set(t, db, newEndpoint(t, db)) // which asks the other nodes that listen
	facts, err := db.Health(t.Context())
	if err != nil || facts["synchronous_commit"] != "on" {
		t.Errorf("health: %v %v", facts, err)
	}
}

func TestNodesBehindAPoolerAreKnown(t *testing.T) {
	dsn := storetest.Migrated(t)
	url := poolerOfSessions(t, dsn)
	node, other := storetest.Open(t, store.Config{URL: url}), storetest.Open(t, store.Config{URL: url})
	if used, err := store.PostgresInUse(t.Context(), dsn); err != nil || !used {
		t.Errorf("a restore finds the database in use: %t, %v", used, err)
	}
	whatIsSetIsHeard(t, node, other)
}

// PgBouncer lets clients in and then has them wait for a connection of its pool.
func TestAPoolerWithoutAFreeConnectionIsSuspected(t *testing.T) {
	url := pooler(t, storetest.Postgres(t), func(_ *pgproto3.StartupMessage, client net.Conn) {
		backend := pgproto3.NewBackend(client, client)
		backend.Send(&pgproto3.AuthenticationOk{})
		backend.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: "15.0"})
		backend.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if backend.Flush() == nil {
			_, _ = io.Copy(io.Discard, client)
		}
	})
	for began := time.Now(); ; {
		_, err := store.Open(t.Context(), store.Config{URL: url, Connect: 100 * time.Millisecond})
		if hookglass.Is(err, hookglass.CodeUnavailable) && strings.Contains(err.Error(), "a pooler has no connection left") {
			return
		}
		if time.Since(began) > time.Minute { // a busy machine may take longer to be let in
			t.Fatalf("opened with %v", err)
		}
	}
}

// One that gives its connections out for a transaction at a time would let locks be held by whoever comes next.
func TestAPoolerOfTransactionsIsRefused(t *testing.T) {
	t.Run("that hands out the one returned last", func(t *testing.T) { poolerOfTransactions(t, 1, "") })
	t.Run("that hands out each in turn", func(t *testing.T) { poolerOfTransactions(t, 2, "") })
	t.Run("that has one, and the server ends a transaction for which another waits", func(t *testing.T) { poolerOfTransactions(t, 1, idleTransaction) })
	t.Run("and one of statements", func(t *testing.T) { poolerOfTransactions(t, 1, statementsOnly) })
}

const (
	statementsOnly  = "08P01" // as PgBouncer 1.18 answers BEGIN
	idleTransaction = "25P03" // what a client hears whose transaction the server has ended
)

// poolerOfTransactions has size connections to the server. Where one ends a client's session with an error, refuses is
// its code.
func poolerOfTransactions(t *testing.T, size int, refuses string) {
	dsn := storetest.Postgres(t)
	servers := make([]*pgx.Conn, size)
	for i := range servers {
		server, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { servers[i].Close(context.Background()) }()
		servers[i] = server
	}
	var mu sync.Mutex // all clients share the connections
	var turn int
	var within net.Conn // the client whose transaction it is
	url := pooler(t, dsn, func(_ *pgproto3.StartupMessage, client net.Conn) {
		backend := pgproto3.NewBackend(client, client)
		backend.Send(&pgproto3.AuthenticationOk{})
		backend.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
		for {
			backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			if backend.Flush() != nil {
				return
			}
			message, err := backend.Receive()
			query, ok := message.(*pgproto3.Query)
			if err != nil || !ok {
				return
			}
			begins := strings.HasPrefix(query.String, "BEGIN")
			if refuses == statementsOnly && begins {
				backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: statementsOnly, Message: "transaction blocks not allowed in statement pooling mode"})
				_ = backend.Flush()
				return
			}
			mu.Lock()
			switch {
			case refuses != idleTransaction:
			case begins:
				within = client
			case within == client:
				mu.Unlock()
				backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: idleTransaction, Message: "terminating connection due to idle-in-transaction timeout"})
				_ = backend.Flush()
				return
			case within != nil:
				servers[0].Close(t.Context())
				if servers[0], err = pgx.Connect(t.Context(), dsn); err != nil {
					mu.Unlock()
					t.Error(err)
					return
				}
			}
			results, err := servers[turn%size].PgConn().Exec(t.Context(), query.String).ReadAll()
			turn++
			mu.Unlock()
			if err != nil {
				backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "XX000", Message: err.Error()})
				continue
			}
			for _, r := range results {
				if len(r.FieldDescriptions) > 0 {
					backend.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("pid"), DataTypeOID: 23, DataTypeSize: 4, TypeModifier: -1}}})
				}
				for _, row := range r.Rows {
					backend.Send(&pgproto3.DataRow{Values: row})
				}
				backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(r.CommandTag.String())})
			}
		}
	})
	db, err := store.Open(t.Context(), store.Config{URL: url})
	if err == nil {
		db.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "pool_mode = session") {
		t.Errorf("opened with %v", err)
	}
	// A restore looks for others before it opens the database, and is to hear the same.
	if _, err := store.PostgresInUse(t.Context(), url); err != nil {
		t.Errorf("looked for other processes with %v", err)
	}
}

func exec(t *testing.T, dsn, text string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}
