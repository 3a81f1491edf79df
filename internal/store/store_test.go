package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// newEndpoint stores an endpoint that belongs to nobody.
func newEndpoint(t testing.TB, db *store.DB) hookglass.Endpoint {
	t.Helper()
	e := hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "test", Kind: hookglass.KindWebhook, Enabled: true}
	err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.CreateEndpoint(&e, nil) })
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newEvent(e hookglass.Endpoint, body string) *hookglass.Event {
	at := time.Now()
	return &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, at), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook,
		ReceivedAt: at, Method: "POST", Path: "/", URL: "http://localhost/hooks/" + string(e.ID), Proto: "HTTP/1.1", IP: "127.0.0.1",
		Size: int64(len(body)), Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked,
		Payload: &hookglass.Payload{
			Headers: hookglass.Headers{{Name: "X-Test", Value: "caf\xe9"}}, Body: []byte(body),
			Reply: &hookglass.Reply{Status: 200, Source: hookglass.SourceDefault, Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}},
		},
	}
}

func TestCapturesThatComeTogetherAreStoredOnceEach(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		const senders, each = 20, 25
		var mu sync.Mutex
		seqs := make(map[int64]bool)
		var wg sync.WaitGroup
		for s := range senders {
			wg.Go(func() {
				last := int64(0)
				for i := range each {
					ev := newEvent(e, fmt.Sprintf("%d-%d", s, i))
					if err := db.Capture(t.Context(), 0, ev); err != nil {
						t.Error(err)
						return
					}
					if ev.Seq <= last {
						t.Errorf("a later capture has the smaller seq: %d after %d", ev.Seq, last)
					}
					last = ev.Seq
					mu.Lock()
					seqs[ev.Seq] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if len(seqs) != senders*each {
			t.Errorf("%d different seqs for %d captures", len(seqs), senders*each)
		}
		got, err := endpointNow(t, db, e)
		if err != nil {
			t.Fatal(err)
		}
		if got.EventCount != senders*each || got.LastEventAt.IsZero() {
			t.Errorf("the endpoint counts %d events, the last at %v", got.EventCount, got.LastEventAt)
		}
	})
}

func TestACaptureForADeletedEndpointIsNotFound(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		gone, other := newEndpoint(t, db), newEndpoint(t, db)
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEndpoint(&gone) })
		if err != nil {
			t.Fatal(err)
		}
		// Both at once, so that they may share a group: one must not spoil the other.
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := db.Capture(t.Context(), 0, newEvent(gone, "late")); !hookglass.Is(err, hookglass.CodeNotFound) {
					t.Errorf("capture for the deleted endpoint: %v", err)
				}
			})
			wg.Go(func() {
				if err := db.Capture(t.Context(), 0, newEvent(other, "fine")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if _, err := endpointNow(t, db, gone); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("the deleted endpoint: %v", err)
		}
	})
}

func TestACaptureAndItsWorkCommitTogether(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		sub := db.Listen(store.TopicTasks(store.TaskActions))
		defer sub.Close()
		ev := newEvent(e, "with work")
		if err := db.CaptureWith(t.Context(), 0, ev, store.Work{Tasks: []store.TaskKind{store.TaskActions}}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-sub.C:
		case <-time.After(time.Minute):
			t.Error("nobody was told of the task")
		}
		if ev.Seq == 0 {
			t.Error("the event has no seq")
		}
	})
}

func TestAnUpdateThatFailsLeavesNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "test", Kind: hookglass.KindWebhook}
		boom := errors.New("boom")
		for name, end := range map[string]func() error{
			"error": func() error { return boom },
			"panic": func() error { panic("boom") },
		} {
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				e.ID = hookglass.NewEndpointID()
				if err := tx.CreateEndpoint(&e, nil); err != nil {
					return err
				}
				return end()
			})
			if err == nil {
				t.Errorf("%s: the update says that it succeeded", name)
			}
			if _, err := endpointNow(t, db, e); !hookglass.Is(err, hookglass.CodeNotFound) {
				t.Errorf("%s: the endpoint: %v", name, err)
			}
		}
	})
}

func TestAnAnnouncementReachesListeners(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		sub, other := db.Listen(store.TopicEvents(e.Num)), db.Listen(store.TopicEvents(e.Num+1))
		defer sub.Close()
		defer other.Close()
		drain(other)
		if err := db.Capture(t.Context(), 0, newEvent(e, "x")); err != nil {
			t.Fatal(err)
		}
		select {
		case <-sub.C:
		case <-time.After(time.Minute):
			t.Error("no announcement")
		}
	})
}

func TestACaptureGivesUpWithItsContext(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := db.Capture(ctx, 0, newEvent(e, "late")); err != nil && !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}

// What an update wrote to is its caller's again when it returns, also where that is because of its context.
func TestAnUpdateThatIsLeftRunsNoMore(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		begun, goOn, returned := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			returned <- db.Update(ctx, hookglass.System, func(*store.Tx) error {
				close(begun)
				<-goOn
				return nil
			})
		}()
		<-begun
		cancel()
		select {
		case <-returned:
			t.Error("it returned while its function ran")
		case <-time.After(50 * time.Millisecond):
		}
		close(goOn)
		if err := <-returned; err != nil && !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAClosedDatabaseRefusesWork(t *testing.T) {
	db := storetest.SQLite(t)
	e := newEndpoint(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Capture(t.Context(), 0, newEvent(e, "x")); !hookglass.Is(err, hookglass.CodeUnavailable) {
		t.Errorf("capture: %v", err)
	}
}

func TestPostgresSessionsAreDurableWhateverTheDatabaseSays(t *testing.T) {
	dsn := storetest.Migrated(t)
	sqlDB, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer sqlDB.Close()
	// What a role or database says against durability is overruled for our sessions.
	if _, err := sqlDB.Exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Config{URL: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	facts, err := db.Health(t.Context())
	if err != nil || facts["synchronous_commit"] != "on" || facts["fsync"] != "on" {
		t.Errorf("health: %v %v", facts, err)
	}
}

// What is left behind in a database that was moved would make it differ from its source.
func TestALookAtTheHealthLeavesNothingBehind(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for range 2 {
			if _, err := db.Health(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if after, _ := dump(t, db); len(after.rows["rate_limits"]) != 0 {
			t.Errorf("left behind: %v", after.rows["rate_limits"])
		}
	})
}

func endpointNow(t testing.TB, db *store.DB, e hookglass.Endpoint) (found hookglass.Endpoint, err error) {
	err = db.View(t.Context(), hookglass.System, func(v *store.View) error {
		found, err = v.Endpoint(string(e.ID))
		return err
	})
	return found, err
}

func drain(s *store.Subscription) {
	select {
	case <-s.C:
	default:
	}
}

// A server whose disk is full, or that is being put in order, refuses connections with errors of any class.
func TestADatabaseThatLetsNobodyInIsUnavailable(t *testing.T) {
	dsn := storetest.Migrated(t)
	outside, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	do := func(statement string) {
		t.Helper()
		if _, err := outside.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	do("CREATE ROLE guest LOGIN SUPERUSER")
	db := storetest.Open(t, store.Config{URL: with(t, dsn, "user", "guest")})
	e := newEndpoint(t, db)

	do("ALTER ROLE guest NOLOGIN")
	do("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'guest'")
	look := func(v *store.View) error { _, err := v.EndpointByNum(e.Num); return err }
	for what, err := range map[string]error{
		"glance": db.Glance(t.Context(), hookglass.System, look), "view": db.View(t.Context(), hookglass.System, look),
		"capture": db.Capture(t.Context(), 0, newEvent(e, "x")),
	} {
		if !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("%s while nobody is let in: %v", what, err)
		}
	}
	if other, err := store.Open(t.Context(), store.Config{URL: with(t, dsn, "user", "guest")}); err == nil {
		_ = other.Close()
		t.Error("opened as a role that may not log in")
	} else if hookglass.Is(err, hookglass.CodeUnavailable) {
		t.Errorf("what the URL says wrong would be waited for: %v", err)
	}

	do("ALTER ROLE guest LOGIN")
	if err := db.Capture(t.Context(), 0, newEvent(e, "x")); err != nil {
		t.Error(err)
	}
}

// These are names of libpq for how it connects, and the driver takes them for settings of the session.
func TestASettingThatNoSessionCanHaveIsNotWaitedFor(t *testing.T) {
	dsn := storetest.Postgres(t)
	for _, setting := range []string{"gssencmode=disable", "ssl_min_protocol_version=TLSv1.2"} {
		if db, err := store.Open(t.Context(), store.Config{URL: dsn + "&" + setting}); err == nil {
			_ = db.Close()
			t.Error("opened with", setting)
		} else if hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

// Sessions stay as they were opened, so those of a database that was read-only for a while have to be left.
// A damaged page, and a right that somebody took away, are no fault of who sends: it is told to come again.
func TestWhatPostgreSQLDoesNotLetBeStoredIsUnavailable(t *testing.T) {
	dsn := storetest.Migrated(t)
	db := storetest.Open(t, store.Config{URL: dsn})
	e := newEndpoint(t, db)
	outside := raw(t, store.Config{URL: dsn})
	for _, code := range []string{"XX001", "42501"} { // data_corrupted, insufficient_privilege
		for _, statement := range []string{
			"CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '" + code + "'; END $$",
			"CREATE OR REPLACE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse()",
		} {
			if _, err := outside.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Capture(t.Context(), 0, newEvent(e, "x")); !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("%s: %v", code, err)
		}
	}
}

func TestADatabaseThatWasReadOnlyIsWrittenAgain(t *testing.T) {
	dsn := storetest.Migrated(t)
	db := storetest.Open(t, store.Config{URL: dsn})
	e := newEndpoint(t, db)
	outside, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	do := func(statements string) {
		t.Helper()
		if _, err := outside.Exec(statements); err != nil {
			t.Fatal(err)
		}
	}
	until := func(what string, reached func() bool) {
		t.Helper()
		for began := time.Now(); !reached(); time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatal(what)
			}
		}
	}
	capture := func() error { return db.Capture(t.Context(), 0, newEvent(e, "x")) }
	update := func() error {
		return db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			other := hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "other", Kind: hookglass.KindWebhook, Enabled: true}
			return tx.CreateEndpoint(&other, nil)
		})
	}
	health := func() error { _, err := db.Health(t.Context()); return err }
	if err := capture(); err != nil {
		t.Fatal(err)
	}
	do(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	do(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	refused := func(err error) bool { // by such a session, not for want of one
		var said *pgconn.PgError
		return errors.As(err, &said) && said.Code == "25006" && hookglass.Is(err, hookglass.CodeUnavailable)
	}
	until("nothing was refused", func() bool { return refused(capture()) && refused(update()) && refused(health()) })
	do(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$`)
	for what, do := range map[string]func() error{"health": health, "update": update, "capture": capture} {
		err := do()
		for range 20 { // each session may refuse once
			if err != nil {
				err = do()
			}
		}
		if err != nil {
			t.Errorf("%s is refused still: %v", what, err)
		}
	}
}

// A database whose locale sorts words as dictionaries do lists names as any other does.
func TestNamesAreSortedByTheirBytes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		want := []string{"B", "_b", "a", "a b", "a-b", "ab", "é"}
		var got []string
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			for _, name := range slices.Backward(want) {
				if err := tx.SaveSearch(&hookglass.SavedSearch{EndpointNum: e.Num, Name: name, Query: "x"}); err != nil {
					return err
				}
			}
			saved, err := tx.SavedSearches(string(e.ID))
			for _, s := range saved {
				got = append(got, s.Name)
			}
			return err
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, want %q: %v", got, want, err)
		}
	})
}
