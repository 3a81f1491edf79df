package store_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// alter changes the database at an address, as its administrator would, and returns its name.
func alter(t *testing.T, dsn, how string) (name string) {
	t.Helper()
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	name = strings.TrimPrefix(at.Path, "/")
	exec(t, dsn, "ALTER DATABASE "+name+" "+how)
	return name
}

// asItIs opens a database and migrates nothing.
func asItIs(t *testing.T, cfg store.Config) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// A sender whose path has a character that the database does not know would be told 500, whenever they try.
func TestADatabaseThatCouldNotHoldWhatSendersWriteIsRefused(t *testing.T) {
	for encoding, refused := range map[string]bool{"LATIN1": true, "EUC_JP": true, "SQL_ASCII": false} {
		t.Run(encoding, func(t *testing.T) {
			db := asItIs(t, store.Config{URL: storetest.PostgresWith(t, "LOCALE 'C' ENCODING '"+encoding+"'")})
			for what, err := range map[string]error{"looked": db.Encodes(t.Context()), "to load": db.MigrateTo(t.Context(), 1), "migrated": db.Migrate(t.Context())} {
				var wrong *store.EncodingError
				if is := errors.As(err, &wrong); is != refused || err != nil && !is || is && wrong.Encoding != encoding {
					t.Errorf("%s: %v", what, err)
				}
			}
			if refused {
				if have, _, err := db.SchemaVersion(t.Context()); have != 0 || err != nil {
					t.Errorf("a schema was made: %d, %v", have, err)
				}
				return
			}
			e := newEndpoint(t, db)
			const path = "/Grüße/日本/\xff/𝄞"
			ev := newEvent(e, "{}")
			ev.Path = path
			if err := db.Capture(t.Context(), 0, ev); err != nil {
				t.Fatal(err)
			}
			got, err := store.Read(t.Context(), db, hookglass.System, func(v *store.View) (*hookglass.Event, error) { return v.Event(string(e.ID), string(ev.ID)) })
			if err != nil || got.Path != path {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// Between this encoding and ours nothing converts, and no session can be made.
func TestAnEncodingThatNoSessionCanHaveIsNamed(t *testing.T) {
	_, err := store.Open(t.Context(), store.Config{URL: storetest.PostgresWith(t, "LOCALE 'C' ENCODING 'MULE_INTERNAL'")})
	var wrong *store.EncodingError
	if !errors.As(err, &wrong) || wrong.Encoding != "MULE_INTERNAL" || hookglass.Is(err, hookglass.CodeUnavailable) {
		t.Errorf("%v", err)
	}
}

// An older server would be refused by the first statement that it does not know, and in its words.
func TestAServerThatIsTooOldSaysSo(t *testing.T) {
	for _, version := range []string{"9.6.24", "11.22 (Debian 11.22-1)"} {
		dsn := pooler(t, storetest.Postgres(t), func(_ *pgproto3.StartupMessage, client net.Conn) {
			backend := pgproto3.NewBackend(client, client)
			backend.Send(&pgproto3.AuthenticationOk{})
			backend.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: version})
			backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			_ = backend.Flush() // the client may be gone
			_, _ = io.Copy(io.Discard, client)
		})
		_, err := store.Open(t.Context(), store.Config{URL: dsn})
		var old *store.TooOldError
		if !errors.As(err, &old) || old.Version != version || hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// The driver's own words at the first statement of a migration are "bad connection".
func TestADatabaseThatMayOnlyBeReadSaysSo(t *testing.T) {
	dsn := storetest.Postgres(t)
	name := alter(t, dsn, "SET default_transaction_read_only = on")
	db := asItIs(t, store.Config{URL: dsn})
	for what, err := range map[string]error{"looked": db.Writable(t.Context()), "rights": db.MayCreate(t.Context()), "migrated": db.Migrate(t.Context())} {
		var only *store.NotWritable
		if !errors.As(err, &only) || only.Standby || only.Database != name || only.Role != "hookglass" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What an administrator says of sessions that are idle is not of those that wait for what comes.
func TestSessionsAreNotEndedForBeingIdle(t *testing.T) {
	dsn := storetest.Postgres(t)
	alter(t, dsn, "SET idle_session_timeout = '1s'")
	db := storetest.Open(t, store.Config{URL: dsn})
	var limit string
	if err := raw(t, store.Config{URL: dsn}).QueryRowContext(t.Context(), "SHOW idle_session_timeout").Scan(&limit); err != nil || limit != "1s" {
		t.Fatalf("the test's own session has %q: %v", limit, err)
	}
	if limit, err := db.Setting(t.Context(), "idle_session_timeout"); err != nil || limit != "0" {
		t.Errorf("a session of ours is ended after %q: %v", limit, err)
	}
}

// Where others took the last connection before, nothing was captured while the API read.
func TestAServerHasTheConnectionsOfCapturesFromTheStart(t *testing.T) {
	dsn := storetest.Postgres(t)
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	role := "few_" + strings.TrimPrefix(at.Path, "/") // roles are of the whole server
	exec(t, dsn, "CREATE ROLE "+role+" LOGIN CONNECTION LIMIT 40; CREATE SCHEMA AUTHORIZATION "+role)
	q := at.Query()
	q.Set("user", role)
	at.RawQuery = q.Encode()
	db := storetest.Open(t, store.Config{URL: at.String(), Reserve: true})
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if allowed, taken, err := db.Connections(t.Context()); allowed != 40 || taken < 15 || err != nil {
		t.Errorf("%d are allowed and %d are taken: %v", allowed, taken, err)
	}
	e := newEndpoint(t, db)
	for range 41 {
		conn, err := pgx.Connect(t.Context(), at.String())
		if store.Crowded(err) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
	}
	look := func(then func() error) func(*store.View) error {
		return func(v *store.View) error {
			_, err := v.Endpoint(string(e.ID))
			return errors.Join(err, then())
		}
	}
	err = db.Ahead(t.Context(), look(func() error {
		return db.Ahead(t.Context(), look(func() error { return db.Capture(t.Context(), 0, newEvent(e, "{}")) }))
	}))
	if err != nil {
		t.Errorf("two look-ups and a capture at once: %v", err)
	}
}

// With several servers in the URL it is the one that takes writes, wherever it stands among them.
func TestOfSeveralServersTheOneThatTakesWritesIsTaken(t *testing.T) {
	second := storetest.Postgres(t)
	at, err := url.Parse(second)
	if err != nil {
		t.Fatal(err)
	}
	name, first := strings.TrimPrefix(at.Path, "/"), storetest.NewCluster(t).DSN()
	exec(t, first, "CREATE DATABASE "+name)
	exec(t, first, "ALTER DATABASE "+name+" SET default_transaction_read_only = on") // as a standby has it
	var sockets []string
	for _, dsn := range []string{first, second} {
		at, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		sockets = append(sockets, at.Query().Get("host"))
	}
	db := storetest.Open(t, store.Config{URL: "postgres:///" + name + "?user=hookglass&sslmode=disable&host=" + strings.Join(sockets, ",")})
	if err := errors.Join(db.Writable(t.Context()), db.Migrate(t.Context())); err != nil {
		t.Error(err)
	}
}
