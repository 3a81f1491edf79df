package store_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// places are where a database of either kind may be made.
func places(t *testing.T) map[string]store.Config {
	return map[string]store.Config{"sqlite": {Path: filepath.Join(t.TempDir(), "new.db")}, "postgres": {URL: storetest.Postgres(t)}}
}

// hookglass doctor may be given any database, and looks alone.
func TestLookingAtTheVersionMakesNoSchema(t *testing.T) {
	for name, cfg := range places(t) {
		t.Run(name, func(t *testing.T) {
			db, err := store.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
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

func TestASchemaOfANewerProgramIsRefused(t *testing.T) {
	for name, cfg := range places(t) {
		t.Run(name, func(t *testing.T) {
			db, err := store.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
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
				t.Error(err)
			}
		})
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
