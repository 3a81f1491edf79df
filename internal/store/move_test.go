package store_test

import (
	"database/sql"
	"testing"

	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestADatabaseOfAnotherProgramIsLeftAsItIs(t *testing.T) {
	dsn := storetest.Postgres(t)
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err := admin.Exec("CREATE TABLE customers (id uuid)"); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Config{URL: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Virgin(t.Context()); err == nil {
		t.Error("another program's database was taken for an empty one")
	}
	var tables int
	if err := admin.QueryRow("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'").Scan(&tables); err != nil || tables != 1 {
		t.Errorf("%d tables, %v", tables, err)
	}
}

// A provider's databases come with the views of pg_stat_statements, or with the tables of another extension.
func TestWhatAnExtensionBringsIsNoOtherProgram(t *testing.T) {
	dsn := storetest.Postgres(t)
	db, err := store.Open(t.Context(), store.Config{URL: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	admin := raw(t, store.Config{URL: dsn})
	for _, statement := range []string{"CREATE EXTENSION file_fdw", "CREATE TABLE brought (id uuid)", "CREATE VIEW seen AS SELECT 1 AS one",
		"ALTER EXTENSION file_fdw ADD TABLE brought", "ALTER EXTENSION file_fdw ADD VIEW seen"} {
		if _, err := admin.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Virgin(t.Context()); err != nil {
		t.Error(err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Dump(t.Context(), &memory{rows: make(map[string][][]any)}); err != nil {
		t.Error(err)
	}
}

// A role with a schema of its own finds those of others behind it in its search_path.
func TestADatabaseIsNotUsedBecauseAnotherSchemaIs(t *testing.T) {
	dsn := storetest.Postgres(t)
	exec(t, dsn, "CREATE SCHEMA hookglass; CREATE TABLE public.users (id int); CREATE TABLE public.events (id int); INSERT INTO public.users VALUES (1)")
	db, err := store.Open(t.Context(), store.Config{URL: dsn})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, when := range []string{"without a schema", "just migrated"} {
		if used, err := db.Used(t.Context()); used || err != nil {
			t.Errorf("%s: used %v, %v", when, used, err)
		}
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
