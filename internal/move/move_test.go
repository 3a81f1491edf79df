package move_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hookglass/internal/move"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// memory is a dump in memory.
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

func dump(t *testing.T, db *store.DB) *memory {
	t.Helper()
	m := &memory{rows: make(map[string][][]any)}
	if _, err := db.Dump(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// filled is an embedded database with n rows in every table there is, and in them what travels badly.
func filled(t *testing.T, n int) *store.DB {
	t.Helper()
	db := storetest.SQLite(t)
	tables := dump(t, db).tables
	schema, _, err := db.SchemaVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counters := make(map[string]int64)
	err = db.Load(t.Context(), schema, true, func(to store.Sink) error {
		for _, table := range tables {
			if err := to.Table(table); err != nil {
				return err
			}
			for i := 1; i <= n; i++ {
				if err := to.Row(row(table, i)); err != nil {
					return err
				}
			}
		}
		return to.Counters(counters)
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// row makes a row that refers to the rows of its number in other tables.
func row(table store.Table, i int) []any {
	values := make([]any, len(table.Columns))
	for k, c := range table.Columns {
		switch {
		case table.Name == "queue" && c.Name == "args":
			values[k] = fmt.Sprintf(`{"z":%d,"a":{"y":1.50,"x":"\u0001 <&>"}}`, i)
		case table.Name == "queue" && c.Name == "scheduled_at":
			values[k] = int64(i) * 1_000_000
		case table.Name == "queue" && c.Name == "priority":
			values[k] = int64(1 + i%4)
		case table.Name == "queue" && c.Name == "max_attempts":
			values[k] = int64(25)
		case table.Name == "queue":
			values[k] = fmt.Sprintf("%s%d", c.Name, i)
		case c.Type == store.IntColumn:
			values[k] = int64(i)
		case c.Type == store.TextColumn:
			values[k] = fmt.Sprintf("%d caf\u00e9 \U0010FF00\u2028<&>\"'\\%s", i, strings.Repeat("é", i%3))
		case c.Type == store.RealColumn:
			values[k] = float64(i) / 3
		default:
			values[k] = []byte(fmt.Sprintf("\x00\xff\xfe%d\x00", i))
			if i == 2 {
				values[k] = []byte{}
			}
			if i == 2 && slices.Contains([]string{"hash", "sealed"}, c.Name) {
				values[k] = []byte{0}
			}
		}
	}
	return values
}

// destination is an empty, migrated PostgreSQL database.
func destination(t *testing.T) (db *store.DB, dsn string) {
	t.Helper()
	dsn = storetest.Migrated(t)
	return storetest.Open(t, store.Config{URL: dsn}), dsn
}

// run moves from one to the other once.
func run(ctx context.Context, t *testing.T, from, to *store.DB, o move.Options) (*move.Report, error) {
	t.Helper()
	source, err := from.OpenMoveSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	target, err := to.OpenMoveTarget(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	return move.Run(ctx, source, target, o)
}

func mustRun(t *testing.T, from, to *store.DB, o move.Options) *move.Report {
	t.Helper()
	r, err := run(t.Context(), t, from, to, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// same fails the test unless both hold the same.
func same(t *testing.T, from, to *store.DB) {
	t.Helper()
	a, b := dump(t, from), dump(t, to)
	if len(a.rows["queue"]) != len(b.rows["queue"]) {
		t.Errorf("%d jobs became %d", len(a.rows["queue"]), len(b.rows["queue"]))
	}
	delete(a.rows, "queue") // whose arguments PostgreSQL spells in its own way
	delete(b.rows, "queue")
	if d := cmp.Diff(a.rows, b.rows); d != "" {
		t.Errorf("rows (-source +destination):\n%s", d)
	}
	if d := cmp.Diff(a.counters, b.counters); d != "" {
		t.Errorf("counters (-source +destination):\n%s", d)
	}
}

func unfinished(t *testing.T, db *store.DB) bool {
	t.Helper()
	open, err := db.Unfinished(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return open
}

func TestEveryTableIsMovedAndCompared(t *testing.T) {
	from := filled(t, 40)
	to, _ := destination(t)
	var steps []move.Progress
	r := mustRun(t, from, to, move.Options{BatchRows: 7, Progress: func(p move.Progress) { steps = append(steps, p) }})
	if !r.Equal || r.Resumed || r.Complete || len(r.Counters) > 0 {
		t.Errorf("report: %+v", r)
	}
	tables := len(dump(t, from).tables)
	if len(r.Tables) != tables || r.Copied != int64(40*tables) {
		t.Errorf("%d tables and %d rows of %d tables", len(r.Tables), r.Copied, tables)
	}
	for _, table := range r.Tables {
		if table.Source != 40 || table.Destination != 40 || table.Differing != 0 || len(table.Digest) != 64 || table.Bytes == 0 {
			t.Errorf("%+v", table)
		}
	}
	last := steps[len(steps)-1]
	if last.Rows != last.Of || last.Of != int64(40*tables) || last.Bytes == 0 || last.PerSecond <= 0 || last.Left != 0 {
		t.Errorf("the last of the progress: %+v", last)
	}
	same(t, from, to)
	if unfinished(t, to) {
		t.Error("a complete move may be served")
	}

	again := mustRun(t, from, to, move.Options{})
	if !again.Equal || !again.Complete || again.Copied != 0 {
		t.Errorf("moved again: %+v", again)
	}
	same(t, from, to)
}

func TestAnEmptyInstallationIsMoved(t *testing.T) {
	from := storetest.SQLite(t)
	to, _ := destination(t)
	if r := mustRun(t, from, to, move.Options{}); !r.Equal {
		t.Errorf("report: %+v", r)
	}
	same(t, from, to)
}

// A server that was started on the destination before, or where a move was cut off before it claimed the destination,
// leaves nothing that belongs to anybody.
func TestADestinationThatAServerWasOnlyStartedOnIsEmpty(t *testing.T) {
	from := filled(t, 3)
	to, dsn := destination(t)
	exec(t, dsn, `INSERT INTO tunnel_nodes (id, seen_at, lease_until) VALUES ('node', 1, 2);
		INSERT INTO rollup_cursor (id, seq) VALUES (1, 7) ON CONFLICT (id) DO UPDATE SET seq = 7;
		INSERT INTO river_job (kind, args, max_attempts, state) VALUES ('purge', '{}', 1, 'available')`)
	if r := mustRun(t, from, to, move.Options{}); !r.Equal {
		t.Errorf("%+v", r)
	}
	same(t, from, to)
}

func TestLargeRowsTravelOneByOne(t *testing.T) {
	from := filled(t, 1)
	to, _ := destination(t)
	schema, _, err := from.SchemaVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := dump(t, from)
	body := bytes.Repeat([]byte("\x00\xff body"), 3<<20)
	err = from.Load(t.Context(), schema, true, func(sink store.Sink) error {
		for _, table := range m.tables {
			if err := sink.Table(table); err != nil {
				return err
			}
			if table.Name != "payloads" {
				continue
			}
			for i := 1; i <= 3; i++ {
				values := row(table, i)
				values[slices.IndexFunc(table.Columns, func(c store.Column) bool { return c.Name == "body" })] = body
				if err := sink.Row(values); err != nil {
					return err
				}
			}
		}
		return sink.Counters(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	batches := 0
	r := mustRun(t, from, to, move.Options{Progress: func(p move.Progress) {
		if p.Doing == move.Copying {
			batches++
		}
	}})
	if !r.Equal || batches != 3 {
		t.Errorf("%d batches for 3 rows of 21 MiB; %+v", batches, r)
	}
}

// A move that is cut off in the middle of each table in turn ends with everything there once.
func TestAMoveThatIsCutOffGoesOn(t *testing.T) {
	from := filled(t, 20)
	to, dsn := destination(t)
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	cut := make(map[string]bool)
	rounds := 0
	for {
		rounds++
		ctx, stop := context.WithCancel(t.Context())
		r, err := run(ctx, t, from, to, move.Options{BatchRows: 6, Progress: func(p move.Progress) {
			if p.Doing != move.Copying || cut[p.Table] || p.TableRows == p.TableOf {
				return
			}
			cut[p.Table] = true
			if len(cut)%2 == 0 {
				stop() // the process is told to end
				return
			}
			// The connection is lost.
			if _, err := admin.Exec("SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND a.datname = current_database()"); err != nil {
				t.Error(err)
			}
		}})
		stop()
		if err == nil {
			if !r.Equal || !r.Resumed {
				t.Errorf("report: %+v", r)
			}
			break
		}
		if !unfinished(t, to) {
			t.Fatal("what is not complete must not be served")
		}
		if rounds > 200 {
			t.Fatal(err)
		}
	}
	if tables := len(dump(t, from).tables); len(cut) != tables || rounds != tables+1 {
		t.Errorf("%d of %d tables were cut, in %d rounds", len(cut), tables, rounds)
	}
	same(t, from, to)
}

func TestWhatDiffersIsNamedAndTheDestinationNotServed(t *testing.T) {
	from := filled(t, 30)
	to, dsn := destination(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	// All rows are there, the comparison is still to come.
	if _, err := run(ctx, t, from, to, move.Options{Progress: func(p move.Progress) {
		if p.Table == "queue" {
			stop()
		}
	}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, statement := range []string{
		"UPDATE payloads SET body = body || '\\x00' WHERE seq = 7",
		"UPDATE events SET subject = NULL WHERE seq = 30",
		"DELETE FROM event_tasks WHERE event IN (1, (SELECT max(event) FROM event_tasks))",
		"INSERT INTO rate_limits (bucket, tat) VALUES ('zz', 5)",
		"DELETE FROM river_job WHERE kind = 'kind3'",
		"INSERT INTO river_job (state, max_attempts, priority, kind, queue, args, metadata, scheduled_at, created_at) SELECT state, max_attempts, priority, kind, queue, args, metadata, scheduled_at, created_at FROM river_job WHERE kind = 'kind4'",
	} {
		if _, err := admin.Exec(statement); err != nil {
			t.Fatal(statement, err)
		}
	}
	r := mustRun(t, from, to, move.Options{})
	if r.Equal {
		t.Fatal("nothing was noticed")
	}
	found := make(map[string]string)
	for _, table := range r.Tables {
		for _, d := range table.Differences {
			found[table.Table] += d.What + " " + d.Key + ";"
		}
		if table.Differing != int64(len(table.Differences)) {
			t.Errorf("%+v", table)
		}
	}
	for table, want := range map[string]string{
		"payloads": "altered seq=7;", "events": "altered seq=30;", "rate_limits": `extra bucket="zz";`,
	} {
		if found[table] != want {
			t.Errorf("%s: %q, want %q", table, found[table], want)
		}
		delete(found, table)
	}
	for table, want := range map[string][]string{"event_tasks": {"missing", "missing"}, "queue": {"extra", "missing"}} {
		var what []string
		for difference := range strings.SplitSeq(strings.TrimSuffix(found[table], ";"), ";") {
			one, _, _ := strings.Cut(difference, " ")
			what = append(what, one)
		}
		if !slices.Equal(what, want) {
			t.Errorf("%s: %q, want %q", table, found[table], want)
		}
		delete(found, table)
	}
	if len(found) > 0 {
		t.Errorf("besides: %v", found)
	}
	if !unfinished(t, to) {
		t.Error("what differs must not be served")
	}
	if r := mustRun(t, from, to, move.Options{Restart: true}); !r.Equal {
		t.Errorf("begun anew: %+v", r)
	}
	same(t, from, to)
}

// Numbers that were given and taken back leave no row: they are compared by themselves.
func TestANumberThatOnlyTheDestinationGaveIsNamed(t *testing.T) {
	from := filled(t, 5)
	to, dsn := destination(t)
	mustRun(t, from, to, move.Options{})
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err := admin.Exec("SELECT setval('events_seq_seq', 99)"); err != nil {
		t.Fatal(err)
	}
	r := mustRun(t, from, to, move.Options{})
	if r.Equal || len(r.Counters) != 1 || r.Counters[0] != "events: 5 in the source, 99 in the destination" {
		t.Errorf("equal: %t, %q", r.Equal, r.Counters)
	}
}

func TestMovesThatAreRefused(t *testing.T) {
	from := filled(t, 3)

	t.Run("a destination with data", func(t *testing.T) {
		to, dsn := destination(t)
		exec(t, dsn, "INSERT INTO users (email, name, created_at) VALUES ('a@b.c', 'A', 1)")
		for _, restart := range []bool{false, true} {
			if _, err := run(t.Context(), t, from, to, move.Options{Restart: restart}); !errors.Is(err, store.ErrNotEmpty) {
				t.Errorf("restart %t: %v", restart, err)
			} else if words, _ := move.Explain(err); strings.Contains(words, "store:") || !strings.Contains(words, "rows in users") {
				t.Error(words)
			}
		}
		if n := len(dump(t, to).rows); n != 1 {
			t.Errorf("%d tables hold rows", n)
		}
	})
	t.Run("a destination with tables of another program", func(t *testing.T) {
		to, dsn := destination(t)
		exec(t, dsn, "CREATE TABLE customers (id bigint)")
		if _, err := run(t.Context(), t, from, to, move.Options{}); !errors.Is(err, store.ErrForeign) {
			t.Error(err)
		}
	})
	t.Run("another source, or the same after it was served", func(t *testing.T) {
		to, _ := destination(t)
		mustRun(t, from, to, move.Options{})
		for _, other := range []*store.DB{filled(t, 2), filled(t, 4)} {
			if _, err := run(t.Context(), t, other, to, move.Options{}); !errors.Is(err, store.ErrMoveSource) {
				t.Error(err)
			}
		}
	})
	t.Run("two at once", func(t *testing.T) {
		to, _ := destination(t)
		first, err := to.OpenMoveTarget(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		if _, err := to.OpenMoveTarget(t.Context()); !errors.Is(err, store.ErrMoveBusy) {
			t.Error(err)
		}
	})
	t.Run("PostgreSQL as the source, SQLite as the destination", func(t *testing.T) {
		to, _ := destination(t)
		if _, err := to.OpenMoveSource(t.Context()); err == nil {
			t.Error("PostgreSQL was taken for a source")
		}
		if _, err := from.OpenMoveTarget(t.Context()); err == nil {
			t.Error("SQLite was taken for a destination")
		}
	})
	t.Run("an older schema", func(t *testing.T) {
		old, err := store.Open(t.Context(), store.Config{Path: t.TempDir() + "/old.db"})
		if err != nil {
			t.Fatal(err)
		}
		defer old.Close()
		if err := old.MigrateTo(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		if _, err := old.OpenMoveSource(t.Context()); err == nil || !strings.Contains(err.Error(), "schema has version 5") {
			t.Error(err)
		}
	})
}

func TestAFailedMoveMayBeReplacedByABackup(t *testing.T) {
	from := filled(t, 3)
	to, _ := destination(t)
	ctx, stop := context.WithCancel(t.Context())
	_, err := run(ctx, t, from, to, move.Options{Progress: func(move.Progress) { stop() }})
	if err == nil || !unfinished(t, to) {
		t.Fatal("it was not cut off")
	}
	schema, _, err := to.SchemaVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Load(t.Context(), schema, true, func(sink store.Sink) error { return sink.Counters(nil) }); err != nil {
		t.Fatal(err)
	}
	if unfinished(t, to) {
		t.Error("a restored database is refused")
	}
}

func exec(t *testing.T, dsn, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}
