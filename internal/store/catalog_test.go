package store_test

import (
	"errors"
	"slices"
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A schema that is called as the role comes first in its search_path, also where it is made later. The service would begin
// anew in it, as if nothing had ever been stored.
func TestASchemaThatIsMadeLaterHidesNothing(t *testing.T) {
	dsn := storetest.Migrated(t)
	exec(t, dsn, `DO $$ BEGIN EXECUTE format('CREATE SCHEMA %I', current_user); END $$`)
	if err := asItIs(t, store.Config{URL: dsn}).Migrate(t.Context()); !errors.Is(err, store.ErrHidden) {
		t.Error(err)
	}
	if err := asItIs(t, store.Config{URL: with(t, dsn, "search_path", "public")}).Migrate(t.Context()); err != nil {
		t.Error("with the schema named:", err)
	}
}

// A role's own schema is called as the role.
func TestASchemaOfPostgresMayHaveAnyName(t *testing.T) {
	dsn := storetest.Postgres(t)
	if _, err := raw(t, store.Config{URL: dsn}).ExecContext(t.Context(), `CREATE SCHEMA "Hook-Glass"`); err != nil {
		t.Fatal(err)
	}
	db := storetest.Open(t, store.Config{URL: with(t, dsn, "search_path", `"Hook-Glass"`)})
	e := newEndpoint(t, db)
	if err := db.Capture(t.Context(), 0, newEvent(e, "x")); err != nil {
		t.Fatal(err)
	}
	sink := &memory{rows: make(map[string][][]any)}
	if _, err := db.Dump(t.Context(), sink); err != nil || len(sink.rows["events"]) != 1 {
		t.Errorf("a dump has %d events, %v", len(sink.rows["events"]), err)
	}
	err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
		n, err := v.Ints(`SELECT count(*) FROM "Hook-Glass".events`)
		if err == nil && n[0] != 1 {
			t.Errorf("%d events in the schema", n[0])
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWhatASchemaLacksIsFound(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		wants := func(when string, want ...string) {
			t.Helper()
			if got, err := db.Missing(t.Context()); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q is missing, %v; want %q", when, got, err, want)
			}
		}
		wants("a current schema")
		var all []string
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
			// What the databases make by themselves for a key is not looked for.
			query := "SELECT name FROM sqlite_master WHERE type IN ('table', 'index') AND name NOT LIKE 'sqlite%'"
			if db.Postgres() {
				query = `SELECT c.relname FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid WHERE relnamespace = current_schema()::regnamespace
					AND relkind IN ('r', 'p', 'i', 'I') AND NOT coalesce(i.indisprimary, FALSE) AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = c.oid) AND relname NOT LIKE 'payloads_%'`
			}
			if all, err = tx.Texts(query); err != nil {
				return err
			}
			for _, statement := range []string{"DROP INDEX forwards_failed", "DROP TABLE flows", "DROP TABLE river_queue", "DELETE FROM goose_db_version WHERE version_id = 17"} {
				if err := tx.Exec(statement); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		lacking, err := db.Missing(t.Context())
		for _, want := range []string{"table flows", "index forwards_failed", "table river_queue", "version 17 in goose_db_version"} {
			if err != nil || !slices.Contains(lacking, want) {
				t.Errorf("%q is missing, %v; want %s", lacking, err, want)
			}
		}
		for _, name := range all {
			if name != "goose_db_version" && !slices.Contains(store.Created(db), name) {
				t.Errorf("%s is not looked for", name)
			}
		}
	})
}
