package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// places are where a database of either kind may be made.
func places(t *testing.T) map[string]store.Config {
	return map[string]store.Config{"sqlite": {Path: filepath.Join(t.TempDir(), "new.db")}, "postgres": {URL: storetest.Postgres(t), Connect: time.Minute}}
}

// hookglass doctor may be given any database, and looks alone.
func TestLookingAtTheVersionMakesNoSchema(t *testing.T) {
	for name, cfg := range places(t) {
		t.Run(name, func(t *testing.T) {
			db := asItIs(t, cfg)
			for range 2 {
				if have, need, err := db.SchemaVersion(t.Context()); have != 0 || need < 22 || err != nil {
					t.Fatal(have, need, err)
				}
			}
			if cfg.URL != "" {
				if err := db.Virgin(t.Context()); err != nil {
					t.Error(err)
				}
			}
			var tables int
			count := "SELECT count(*) FROM sqlite_master"
			if cfg.URL != "" {
				count = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"
			}
			if err := raw(t, cfg).QueryRowContext(t.Context(), count).Scan(&tables); err != nil || tables != 0 {
				t.Errorf("%d tables, %v", tables, err)
			}
		})
	}
}

// A table that stands where one of ours would be made is not ours to lose, and neither is another program's count of its
// own schema, which the same library keeps by the same name.
func TestNoSchemaIsMadeAmongTheTablesOfAnotherProgram(t *testing.T) {
	for what, statements := range map[string][]string{
		"users": {"CREATE TABLE customers (id text)", "CREATE TABLE users (id text)"},
		"goose_db_version": {
			"CREATE TABLE goose_db_version (id integer, version_id bigint, is_applied boolean, tstamp timestamp DEFAULT now())",
			"INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (1, 0, true), (2, 9999, true)",
		},
	} {
		for name, cfg := range places(t) {
			if what == "goose_db_version" && cfg.URL == "" {
				continue // the embedded database is a file of its own
			}
			t.Run(name+" "+what, func(t *testing.T) {
				db := asItIs(t, cfg)
				for _, statement := range statements {
					if _, err := raw(t, cfg).ExecContext(t.Context(), statement); err != nil {
						t.Fatal(err)
					}
				}
				for _, err := range []error{db.Foreign(t.Context()), db.Migrate(t.Context()), db.MigrateTo(t.Context(), 10)} {
					if !errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), what) {
						t.Error(err)
					}
				}
			})
		}
	}
}

func TestASchemaOfANewerProgramIsRefused(t *testing.T) {
	for name, cfg := range places(t) {
		t.Run(name, func(t *testing.T) {
			db := asItIs(t, cfg)
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			applied := "1"
			if cfg.URL != "" {
				applied = "true"
			}
			if _, err := raw(t, cfg).ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, "+applied+")"); err != nil {
				t.Fatal(err)
			}
			if err := db.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "newer program") {
				t.Errorf("migrated: %v", err)
			}
			if _, err := db.Dump(t.Context(), &memory{rows: make(map[string][][]any)}); err == nil || !strings.Contains(err.Error(), "newer program") {
				t.Errorf("dumped: %v", err)
			}
			if _, err := db.OpenMoveSource(t.Context()); cfg.URL == "" && (err == nil || !strings.Contains(err.Error(), "newer program")) {
				t.Errorf("moved: %v", err)
			}
		})
	}
}

// Whoever looks must learn that what he would look at is another's, without changing it.
func TestWhetherTheSchemaIsThisProgramsIsAskedFirst(t *testing.T) {
	for name, cfg := range places(t) {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			db := asItIs(t, cfg)
			have := func(version int64) {
				t.Helper()
				var schema *store.SchemaError
				if err := db.Current(t.Context()); !errors.As(err, &schema) || schema.Have != version || schema.Need < 22 || schema.Newer() {
					t.Errorf("with version %d: %v", version, err)
				}
				if have, _, err := db.SchemaVersion(t.Context()); err != nil || have != version {
					t.Errorf("who looked made version %d of %d, %v", have, version, err)
				}
			}
			have(0)
			if err := db.MigrateTo(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			have(10)
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := db.Current(t.Context()); err != nil {
				t.Error(err)
			}
			// Two times it was migrated, and each is one line for who starts it.
			if lines := strings.Count(log.String(), "schema migrated"); lines != 2 || !strings.Contains(log.String(), "from=0 to=10 took=") || !strings.Contains(log.String(), "from=10 to=") {
				t.Errorf("%d lines:\n%s", lines, log.String())
			}
		})
	}
}

// Builds of an evening knew version 30 and not yet 28 and 29, which were being written beside it.
func TestVersionsThatAnEarlierProgramDidNotKnowAreMadeUpFor(t *testing.T) {
	for name, cfg := range places(t) {
		t.Run(name, func(t *testing.T) {
			db := asItIs(t, cfg)
			if err := db.MigrateTo(t.Context(), 27); err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{
				"ALTER TABLE forwarding_targets ADD COLUMN condition text",
				"INSERT INTO goose_db_version (version_id, is_applied) VALUES (30, 1 = 1)",
			} {
				if _, err := raw(t, cfg).ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if lacking, err := db.Missing(t.Context()); err != nil || len(lacking) > 0 {
				t.Error("it lacks", lacking, err)
			}
			if have, need, err := db.SchemaVersion(t.Context()); have != need || err != nil {
				t.Error(have, need, err)
			}
		})
	}
}

// A server that starts and commands that are given meanwhile may all be the first who open a database.
func TestThoseWhoMeetAtAnOldDatabaseWaitForEachOther(t *testing.T) {
	for name, cfg := range places(t) {
		t.Run(name, func(t *testing.T) {
			for _, version := range []int64{0, 10} {
				if version > 0 {
					cfg = places(t)[name]
					db, err := store.Open(t.Context(), cfg)
					if err == nil {
						err = errors.Join(db.MigrateTo(t.Context(), version), db.Close())
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				var wg sync.WaitGroup
				for range 6 {
					wg.Go(func() {
						db, err := store.Open(t.Context(), cfg)
						if err != nil {
							t.Errorf("from version %d: %v", version, err)
							return
						}
						if err := errors.Join(db.Migrate(t.Context()), db.Close()); err != nil {
							t.Errorf("from version %d: %v", version, err)
						}
					})
				}
				wg.Wait()
			}
		})
	}
}

// A start that seems to hang says what it waits for.
func TestASchemaThatTakesItsTimeIsTold(t *testing.T) {
	for name, cfg := range places(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told, tell := io.Pipe()
			defer tell.Close()
			cfg.Log = slog.New(slog.NewTextHandler(tell, nil))
			db := asItIs(t, cfg)
			unlock, err := db.LockSchema(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			migrated := make(chan error, 1)
			go func() { migrated <- db.Migrate(t.Context()) }()
			lines := bufio.NewScanner(told)
			if !lines.Scan() || !strings.Contains(lines.Text(), "still preparing the schema") {
				t.Errorf("it says %q", lines.Text())
			}
			go io.Copy(io.Discard, told)
			unlock()
			if err := <-migrated; err != nil {
				t.Error(err)
			}
		})
	}
}

// A database of an earlier version may be large, and what a migration does to its tables takes its time: the limit of
// other statements is not for it.
func TestAMigrationMayTakeItsTime(t *testing.T) {
	cfg := store.Config{URL: storetest.Postgres(t)}
	db := asItIs(t, cfg)
	if err := db.MigrateTo(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	look := raw(t, cfg)
	for _, statement := range []string{
		"CREATE TABLE public.seen (command text, lim text)",
		`CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql AS
			'BEGIN INSERT INTO public.seen VALUES (tg_tag, current_setting(''statement_timeout'')); END'`,
		"CREATE EVENT TRIGGER note ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION public.note()",
	} {
		if _, err := look.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all, limited int
	if err := look.QueryRowContext(t.Context(), "SELECT count(*), count(CASE WHEN lim <> '0' THEN 1 END) FROM public.seen").Scan(&all, &limited); err != nil {
		t.Fatal(err)
	}
	if all == 0 || limited > 0 {
		t.Errorf("%d of %d indexes must be built within a limit", limited, all)
	}
	if have, need, err := db.SchemaVersion(t.Context()); have != need || err != nil {
		t.Error(have, need, err)
	}
}

// raw opens the database as any program does.
func raw(t *testing.T, cfg store.Config) *sql.DB {
	t.Helper()
	driver, name := "sqlite", cfg.Path
	if cfg.URL != "" {
		driver, name = "pgx", cfg.URL
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Nodes of the earlier version serve while the schema changes, and a backup may read meanwhile. Whoever comes behind a
// change that waits for the backup would wait as long.
func TestACaptureDoesNotWaitForAMigrationThatWaitsForABackup(t *testing.T) {
	for from, table := range map[int64]string{22: "endpoints", 23: "forwards", 26: "events"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			db, look := migratedTo(t, from)
			backup, err := look.BeginTx(t.Context(), nil)
			if err == nil {
				_, err = backup.ExecContext(t.Context(), "LOCK TABLE "+table+" IN ACCESS SHARE MODE")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer backup.Rollback()
			migrated := make(chan error, 1)
			go func() { migrated <- db.Migrate(t.Context()) }()
			seen(t, look, migrated, "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = to_regclass($1)", table)
			if err := captureInto(t, look, table); err != nil {
				t.Error("a capture:", err)
			}
			if err := errors.Join(backup.Rollback(), <-migrated); err != nil {
				t.Error(err)
			}
		})
	}
}

// The index of a large table takes a while to build.
func TestCapturesAndRunsGoOnWhileAMigrationBuildsAnIndex(t *testing.T) {
	for from, table := range map[int64]string{20: "events", 23: "forwards", 28: "events", 32: "action_runs"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			db, look := migratedTo(t, from)
			earlier := earlierReader(t, look)
			migrated := make(chan error, 1)
			go func() { migrated <- db.Migrate(t.Context()) }()
			seen(t, look, migrated, "SELECT count(*) FROM pg_stat_progress_create_index WHERE relid = to_regclass($1) AND lockers_total > 0", table)
			if err := captureInto(t, look, table); err != nil {
				t.Error("a capture:", err)
			}
			if err := errors.Join(earlier.Rollback(), <-migrated); err != nil {
				t.Error(err)
			}
		})
	}
}

// A process may die, or be ended, between any two statements of a migration.
func TestAMigrationThatWasCutOffIsDoneAgain(t *testing.T) {
	for _, from := range []int64{20, 23, 28, 32} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			db, look := migratedTo(t, from)
			earlier := earlierReader(t, look)
			ctx, cutOff := context.WithCancel(t.Context())
			migrated := make(chan error, 1)
			go func() { migrated <- db.Migrate(ctx) }()
			seen(t, look, migrated, "SELECT count(*) FROM pg_index WHERE NOT indisvalid AND $1 <> ''", "any")
			if cutOff(); <-migrated == nil {
				t.Fatal("it had ended before")
			}
			if err := errors.Join(earlier.Rollback(), db.Migrate(t.Context())); err != nil {
				t.Fatal(err)
			}
			var unfinished int
			if err := look.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_index WHERE NOT indisvalid").Scan(&unfinished); err != nil || unfinished > 0 {
				t.Error(unfinished, "indexes are unfinished", err)
			}
			if lacking, err := db.Missing(t.Context()); err != nil || len(lacking) > 0 {
				t.Error("it lacks", lacking, err)
			}
		})
	}
}

// migratedTo is a new PostgreSQL database with an earlier schema.
func migratedTo(t *testing.T, version int64) (db *store.DB, look *sql.DB) {
	t.Helper()
	cfg := store.Config{URL: storetest.Postgres(t)}
	db = asItIs(t, cfg)
	if err := db.MigrateTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	return db, raw(t, cfg)
}

// earlierReader is a transaction that has read: an index is not done before those that began earlier have ended.
func earlierReader(t *testing.T, look *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := look.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // where it has not ended
	if _, err := tx.ExecContext(t.Context(), "SELECT count(*) FROM users"); err != nil {
		t.Fatal(err)
	}
	return tx
}

// seen waits until a query about a table counts something, while the migration goes on.
func seen(t *testing.T, look *sql.DB, migrated <-chan error, query, table string) {
	t.Helper()
	for n := 0; n == 0; {
		select {
		case err := <-migrated:
			t.Fatal("the migration waited for nobody:", err)
		case <-time.After(5 * time.Millisecond):
		}
		if err := look.QueryRowContext(t.Context(), query, table).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
}

// captureInto takes what a capture takes of a table before it writes to it, and does not wait long.
func captureInto(t *testing.T, look *sql.DB, table string) error {
	t.Helper()
	tx, err := look.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), "SET LOCAL lock_timeout = '5s'"); err != nil {
		t.Fatal(err)
	}
	_, err = tx.ExecContext(t.Context(), "LOCK TABLE "+table+" IN ROW EXCLUSIVE MODE")
	return err
}
