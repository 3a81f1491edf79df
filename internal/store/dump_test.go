package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// memory is a dump in memory. Rows are kept by what they hold, because jobs get new ids when they are loaded.
type memory struct {
	tables   []store.Table
	rows     map[string][][]any
	counters map[string]int64
}

func (m *memory) Table(t store.Table) error { m.tables = append(m.tables, t); return nil }

func (m *memory) Row(values []any) error {
	kept := slices.Clone(values)
	for i, v := range kept {
		if b, ok := v.([]byte); ok {
			kept[i] = bytes.Clone(b)
		}
	}
	name := m.tables[len(m.tables)-1].Name
	m.rows[name] = append(m.rows[name], kept)
	return nil
}

func (m *memory) Counters(c map[string]int64) error { m.counters = maps.Clone(c); return nil }

func (m *memory) replay(sink store.Sink) error {
	for _, t := range m.tables {
		if err := sink.Table(t); err != nil {
			return err
		}
		for _, r := range m.rows[t.Name] {
			if err := sink.Row(r); err != nil {
				return err
			}
		}
	}
	return sink.Counters(m.counters)
}

func dump(t *testing.T, db *store.DB) (*memory, int64) {
	t.Helper()
	m := &memory{rows: make(map[string][][]any)}
	schema, err := db.Dump(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return m, schema
}

// furnish stores something of everything, with values that travel badly.
func furnish(t *testing.T, db *store.DB) hookglass.Endpoint {
	t.Helper()
	n := newTenant(t, db, "ada@example.com")
	e := newEndpoint(t, db)
	for i := range 5 {
		ev := newEvent(e, fmt.Sprintf("%d\x00\xff\n\u2028<&>", i))
		ev.Path, ev.RawQuery, ev.ContentType = "/caf\xe9\x00\U0010FFFD", `"\`, "text/plain\r"
		if i == 0 {
			ev.Headers, ev.Body = nil, nil
		}
		if err := db.CaptureWith(t.Context(), n.account.ID, ev, store.Work{Tasks: []store.TaskKind{store.TaskActions}}); err != nil {
			t.Fatal(err)
		}
	}
	gone := newEndpoint(t, db)
	err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		if err := tx.CreateSession(store.SessionBrowser, []byte{0, 1, 255}, n.user.ID, tx.Now.Add(time.Hour)); err != nil {
			return err
		}
		tx.Enqueue(hookglass.PurgeJob{})
		return tx.DeleteEndpoint(&gone)
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func databases(t *testing.T) map[string]func(t *testing.T) *store.DB {
	return map[string]func(t *testing.T) *store.DB{
		"sqlite":   func(t *testing.T) *store.DB { return storetest.SQLite(t) },
		"postgres": func(t *testing.T) *store.DB { return storetest.Open(t, store.Config{URL: storetest.Migrated(t)}) },
	}
}

func TestADumpOfEitherDatabaseLoadsIntoEither(t *testing.T) {
	storetest.Each(t, func(t *testing.T, from *store.DB) {
		e := furnish(t, from)
		dumped, schema := dump(t, from)
		if len(dumped.rows["queue"]) != 2 || len(dumped.rows["event_tasks"]) != 5 || len(dumped.rows["events"]) != 5 || len(dumped.rows["users"]) != 1 {
			t.Fatalf("dumped %d jobs, %d events and %d users", len(dumped.rows["queue"]), len(dumped.rows["events"]), len(dumped.rows["users"]))
		}
		for name, open := range databases(t) {
			t.Run("into "+name, func(t *testing.T) {
				to := open(t)
				if err := to.Load(t.Context(), schema, false, dumped.replay); err != nil {
					t.Fatal(err)
				}
				again, _ := dump(t, to)
				if d := cmp.Diff(dumped.rows, again.rows); d != "" {
					t.Errorf("rows (-dumped +loaded):\n%s", d)
				}
				if d := cmp.Diff(dumped.counters, again.counters); d != "" {
					t.Errorf("counters (-dumped +loaded):\n%s", d)
				}
				// Life goes on where it stopped: a new event comes after all that were ever there.
				ev := newEvent(e, "after")
				if err := to.Capture(t.Context(), 0, ev); err != nil {
					t.Fatal(err)
				}
				if ev.Seq != dumped.counters["events"]+1 {
					t.Errorf("the next event has seq %d, after %d", ev.Seq, dumped.counters["events"])
				}
				if !to.Postgres() {
					if err := to.Verify(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	})
}

// A backup is loaded with the schema that it was made with, and brought up to date from there.
func TestADumpOfAnEarlierSchemaLoads(t *testing.T) {
	for _, version := range []int64{10, 19} {
		at := func(t *testing.T, cfg store.Config) *store.DB {
			db, err := store.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if err := db.MigrateTo(t.Context(), version); err != nil {
				t.Fatal(err)
			}
			return db
		}
		for name, cfg := range places(t) {
			t.Run(fmt.Sprintf("%d into %s", version, name), func(t *testing.T) {
				dumped, schema := dump(t, at(t, places(t)["sqlite"]))
				to := at(t, cfg)
				if err := to.Load(t.Context(), schema, false, dumped.replay); err != nil {
					t.Fatal(err)
				}
				if err := to.Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := to.Capture(t.Context(), 0, newEvent(newEndpoint(t, to), "{}")); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestADumpHoldsEveryTable(t *testing.T) {
	lite, _ := dump(t, storetest.SQLite(t))
	pg, _ := dump(t, storetest.Open(t, store.Config{URL: storetest.Migrated(t)}))
	names := func(m *memory) []string {
		var all []string
		for _, table := range m.tables {
			var columns []string
			for _, c := range table.Columns {
				columns = append(columns, c.Name+" "+string(c.Type))
			}
			all = append(all, table.Name+": "+strings.Join(columns, ", "))
		}
		slices.Sort(all)
		return all
	}
	if d := cmp.Diff(names(lite), names(pg)); d != "" {
		t.Errorf("the two schemas differ (-sqlite +postgres):\n%s", d)
	}
	if len(lite.tables) < 10 {
		t.Errorf("tables: %v", names(lite))
	}
}

// Whether a table is dumped is told by the migrations, and what is there is what they have made.
func TestADumpHoldsWhatTheMigrationsMake(t *testing.T) {
	for name, cfg := range places(t) {
		t.Run(name, func(t *testing.T) {
			db := storetest.Open(t, cfg)
			list := "SELECT name FROM sqlite_master WHERE type = 'table'"
			if cfg.URL != "" {
				list = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"
			}
			rows, err := raw(t, cfg).QueryContext(t.Context(), list)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			dumped, _ := dump(t, db)
			for rows.Next() {
				var table string
				if err := rows.Scan(&table); err != nil {
					t.Fatal(err)
				}
				ofLibraries := table == "goose_db_version" || strings.HasPrefix(table, "river_") || strings.HasPrefix(table, "sqlite_")
				if !ofLibraries && table != "moves" && table != "move_tables" && !slices.ContainsFunc(dumped.tables, func(d store.Table) bool { return d.Name == table }) {
					t.Errorf("%s is not dumped", table)
				}
			}
			if err := rows.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Somebody keeps a copy of a table beside it, or another program has its tables there as well.
func TestWhatIsNotOursIsNeitherDumpedNorEmptied(t *testing.T) {
	for name, cfg := range places(t) {
		t.Run(name, func(t *testing.T) {
			db := storetest.Open(t, cfg)
			furnish(t, db)
			before, _ := dump(t, db)
			by := raw(t, cfg)
			other := "CREATE TABLE customers (id bigint PRIMARY KEY, since timestamp)"
			if cfg.URL != "" {
				other = "CREATE TABLE customers (id bigint GENERATED ALWAYS AS IDENTITY, since timestamp, code uuid)"
			}
			for _, statement := range []string{other, "INSERT INTO customers (since) VALUES (NULL)", "CREATE TABLE users_before AS SELECT * FROM users"} {
				if _, err := by.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			dumped, schema := dump(t, db)
			if d := cmp.Diff(before.rows, dumped.rows); d != "" {
				t.Errorf("rows:\n%s", d)
			}
			if d := cmp.Diff(before.counters, dumped.counters); d != "" {
				t.Errorf("counters:\n%s", d)
			}
			if err := db.Load(t.Context(), schema, true, dumped.replay); err != nil {
				t.Fatal(err)
			}
			for _, table := range []string{"customers", "users_before"} {
				var rows int
				if err := by.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows); err != nil || rows != 1 {
					t.Errorf("%s holds %d rows, %v", table, rows, err)
				}
			}
		})
	}
}

// A restore asks first who uses the database. Connections to a frozen one are made, by its system, and nobody answers.
func TestWhoUsesAFrozenDatabaseIsNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := store.PostgresInUse(ctx, "postgres://hookglass@"+frozen.Addr().String()+"/hookglass?sslmode=disable"); !hookglass.Is(err, hookglass.CodeUnavailable) || ctx.Err() != nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}

func TestALoadReplacesOnlyWhenItMay(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		furnish(t, db)
		before, schema := dump(t, db)
		empty := &memory{rows: map[string][][]any{}, tables: before.tables, counters: map[string]int64{}}

		if err := db.Load(t.Context(), schema, false, empty.replay); !errors.Is(err, store.ErrNotEmpty) {
			t.Errorf("loaded over data: %v", err)
		}
		if err := db.Load(t.Context(), schema+1, true, empty.replay); err == nil {
			t.Error("loaded a dump of another schema")
		}
		again, _ := dump(t, db)
		if d := cmp.Diff(before.rows, again.rows); d != "" {
			t.Errorf("what was refused changed (-before +after):\n%s", d)
		}
		if err := db.Load(t.Context(), schema, true, empty.replay); err != nil {
			t.Fatal(err)
		}
		after, _ := dump(t, db)
		if len(after.rows) != 0 {
			t.Errorf("left after the replacement: %v", after.rows)
		}
	})
}

func TestOnPostgresALoadThatFailsChangesNothing(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	furnish(t, db)
	before, schema := dump(t, db)
	cut := errors.New("the file ends here")
	err := db.Load(t.Context(), schema, true, func(sink store.Sink) error {
		half := *before
		half.counters = nil
		if err := half.replay(sink); err != nil {
			return err
		}
		return cut
	})
	if !errors.Is(err, cut) {
		t.Errorf("got %v", err)
	}
	after, _ := dump(t, db)
	if d := cmp.Diff(before.rows, after.rows); d != "" {
		t.Errorf("changed (-before +after):\n%s", d)
	}
}

// A restore that is cut off leaves a database that looks empty, in which a server must not begin anew.
func TestANewDatabaseThatIsPreparedForALoadIsUnfinished(t *testing.T) {
	db, err := store.Open(t.Context(), store.Config{URL: storetest.Postgres(t), Connect: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	used := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	furnish(t, used)
	dumped, schema := dump(t, used)
	is := func(db *store.DB, want bool) {
		t.Helper()
		if unfinished, err := db.Unfinished(t.Context()); err != nil || unfinished != want {
			t.Errorf("unfinished: %v, %v, want %v", unfinished, err, want)
		}
	}
	prepare := func(db *store.DB) {
		t.Helper()
		if err := db.PrepareLoad(t.Context(), schema); err != nil {
			t.Fatal(err)
		}
	}
	prepare(db)
	is(db, true)
	cut := errors.New("the file ends here")
	if err := db.Load(t.Context(), schema, false, func(store.Sink) error { return cut }); !errors.Is(err, cut) {
		t.Errorf("got %v", err)
	}
	is(db, true)
	prepare(db) // for the restore that is made again
	is(db, true)
	if err := db.Load(t.Context(), schema, false, dumped.replay); err != nil {
		t.Fatal(err)
	}
	is(db, false)

	prepare(used)
	if err := used.Load(t.Context(), schema, false, dumped.replay); !errors.Is(err, store.ErrNotEmpty) {
		t.Errorf("loaded over data: %v", err)
	}
	is(used, false) // it is served as before
}

func TestPostgresIsInUseWhileAProcessIsConnected(t *testing.T) {
	dsn := storetest.Migrated(t)
	if used, err := store.PostgresInUse(t.Context(), dsn); err != nil || used {
		t.Errorf("an idle database: %t, %v", used, err)
	}
	storetest.Open(t, store.Config{URL: dsn})
	if used, err := store.PostgresInUse(t.Context(), dsn); err != nil || !used {
		t.Errorf("a database in use: %t, %v", used, err)
	}
}

// The time that a busy database takes to answer is no difference of clocks.
func TestClocksDifferByNoMoreThanIsSeen(t *testing.T) {
	at := time.Now()
	for _, c := range []struct{ before, after, want time.Duration }{
		{0, 0, 0}, {-10 * time.Second, 0, 0}, {0, 10 * time.Second, 0}, {-time.Second, time.Second, 0},
		{time.Second, 20 * time.Second, -time.Second}, {-20 * time.Second, -time.Second, time.Second},
	} {
		if got := store.Apart(at, at.Add(c.before), at.Add(c.after)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestTheClockAndTheNewestEvent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ahead, newest, err := db.Clock(t.Context())
		if err != nil || !newest.IsZero() || ahead.Abs() > time.Second {
			t.Errorf("%v ahead, newest %v, %v", ahead, newest, err)
		}
		e := newEndpoint(t, db)
		ev := newEvent(e, "x")
		if err := db.Capture(t.Context(), 0, ev); err != nil {
			t.Fatal(err)
		}
		if _, newest, err := db.Clock(t.Context()); err != nil || !newest.Equal(ev.ReceivedAt.Truncate(time.Microsecond)) {
			t.Errorf("newest %v, %v; want %v", newest, err, ev.ReceivedAt)
		}
	})
}
