package store_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// The driver's own words name neither the role nor what would help.
func TestARoleThatMayNotMakeTablesIsToldTheGrant(t *testing.T) {
	for name, c := range map[string]struct{ schema, take, grant string }{
		"no CREATE":       {"public", "REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO PUBLIC", `GRANT USAGE, CREATE ON SCHEMA public TO "Builder-1"`},
		"not even USAGE":  {"public", "REVOKE ALL ON SCHEMA public FROM PUBLIC", `GRANT USAGE, CREATE ON SCHEMA public TO "Builder-1"`},
		"its own schema":  {"Builder-1", `CREATE SCHEMA "Builder-1"; REVOKE ALL ON SCHEMA public FROM PUBLIC`, `GRANT USAGE, CREATE ON SCHEMA "Builder-1" TO "Builder-1"`},
		"no schema there": {"", "DROP SCHEMA public", `CREATE SCHEMA AUTHORIZATION "Builder-1"`},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := storetest.Postgres(t)
			do := func(statement string) {
				t.Helper()
				if _, err := raw(t, store.Config{URL: dsn}).ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			// A role is of the whole server, and what it may do is of each database.
			do(`DO $$ BEGIN CREATE ROLE "Builder-1" LOGIN; EXCEPTION WHEN duplicate_object THEN END $$`)
			do(c.take)
			db, err := store.Open(t.Context(), store.Config{URL: with(t, dsn, "user", "Builder-1")})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for what, err := range map[string]error{"looked": db.MayCreate(t.Context()), "migrated": db.Migrate(t.Context()), "to load": db.MigrateTo(t.Context(), 1)} {
				var right *store.MissingRight
				if !errors.As(err, &right) || right.Role != "Builder-1" || right.Schema != c.schema || right.Grant != c.grant || !strings.Contains(err.Error(), right.Schema) {
					t.Errorf("%s: %v, %+v", what, err, right)
				}
			}
			do(c.grant)
			if err := errors.Join(db.MayCreate(t.Context()), db.Migrate(t.Context())); err != nil {
				t.Errorf("with what was said to be granted: %v", err)
			}
		})
	}
}

// with is the address of a database with a setting, such as the user.
func with(t *testing.T, dsn, name, value string) string {
	t.Helper()
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := at.Query()
	q.Set(name, value)
	at.RawQuery = q.Encode()
	return at.String()
}

// Another role may have made the tables, as from a dump. Their rights to read and write, which suffice for all else, do
// not let the payloads have a new range, or lose one that has expired. Nor does a membership that is not inherited.
func TestARoleWithTheTablesOfAnotherIsToldTheGrant(t *testing.T) {
	for name, c := range map[string]struct{ role, member, grant string }{
		"no member":                        {"INHERIT", "", `GRANT "Owner-1" TO "Reader-1"`},
		"a member that does not inherit":   {"NOINHERIT", `GRANT "Owner-1" TO "Reader-1"`, `ALTER ROLE "Reader-1" INHERIT`},
		"no member, and would not inherit": {"NOINHERIT", "", `GRANT "Owner-1" TO "Reader-1"; ALTER ROLE "Reader-1" INHERIT`},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := storetest.Migrated(t)
			exec(t, dsn, `DO $$ BEGIN CREATE ROLE "Reader-1" LOGIN; EXCEPTION WHEN duplicate_object THEN END $$`)
			exec(t, dsn, `ALTER ROLE "Reader-1" `+c.role)
			exec(t, dsn, `GRANT USAGE, CREATE ON SCHEMA public TO "Reader-1"; GRANT ALL ON ALL TABLES IN SCHEMA public TO "Reader-1"`)
			exec(t, dsn, `DO $$ BEGIN CREATE ROLE "Owner-1"; EXCEPTION WHEN duplicate_object THEN END $$`)
			exec(t, dsn, `GRANT USAGE, CREATE ON SCHEMA public TO "Owner-1"; ALTER TABLE payloads OWNER TO "Owner-1"`)
			exec(t, dsn, `REVOKE "Owner-1" FROM "Reader-1"; `+c.member)
			db := asItIs(t, store.Config{URL: with(t, dsn, "user", "Reader-1")})
			err := db.MayCreate(t.Context())
			var right *store.MissingRight
			// Since PostgreSQL 16 the grant itself says whether it is inherited.
			if !errors.As(err, &right) || right.Owner != "Owner-1" || right.Role != "Reader-1" ||
				right.Grant != c.grant && right.Grant != `GRANT "Owner-1" TO "Reader-1" WITH INHERIT TRUE` {
				t.Fatalf("%v, %+v", err, right)
			}
			exec(t, dsn, right.Grant)
			if err := db.MayCreate(t.Context()); err != nil {
				t.Errorf("with what was said to be granted: %v", err)
			}
		})
	}
}

// With the rights of a superuser, who may have restored a dump, the service would be one.
func TestARoleWithTheTablesOfASuperuserIsNotToldToBecomeOne(t *testing.T) {
	dsn := storetest.Migrated(t)
	exec(t, dsn, `DO $$ BEGIN CREATE ROLE "Reader-2" LOGIN; EXCEPTION WHEN duplicate_object THEN END $$`)
	exec(t, dsn, `GRANT USAGE, CREATE ON SCHEMA public TO "Reader-2"; GRANT ALL ON ALL TABLES IN SCHEMA public TO "Reader-2"`)
	err := asItIs(t, store.Config{URL: with(t, dsn, "user", "Reader-2")}).MayCreate(t.Context())
	var right *store.MissingRight
	if !errors.As(err, &right) || right.Owner == "" || right.Grant != "" {
		t.Errorf("%v, %+v", err, right)
	}
}
