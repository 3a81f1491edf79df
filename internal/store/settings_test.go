package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// What an administrator says of a database, for the sake of other programs, changes nothing of how ours works, and neither
// does all of it of how the schema is made.
func TestSettingsOfADatabaseChangeNothing(t *testing.T) {
	settings := map[string]string{
		"client_encoding": "WIN1252", "standard_conforming_strings": "off", "default_transaction_isolation": "serializable",
		"DateStyle": "German", "TimeZone": "Asia/Kathmandu", "IntervalStyle": "sql_standard", "bytea_output": "escape", "extra_float_digits": "-5",
		"quote_all_identifiers": "on",
	}
	set := func(t *testing.T, dsn, setting string) {
		t.Helper()
		exec(t, dsn, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET `+setting+` = %L', current_database(), '`+settings[setting]+`'); END $$`)
	}
	t.Run("all", func(t *testing.T) {
		dsn := storetest.Postgres(t)
		for setting := range settings {
			set(t, dsn, setting)
		}
		worksAsEver(t, dsn)
	})
	for setting := range settings {
		t.Run(setting, func(t *testing.T) {
			dsn := storetest.Migrated(t)
			set(t, dsn, setting)
			worksAsEver(t, dsn)
		})
	}
}

// worksAsEver captures, finds, dumps and deletes on a database.
func worksAsEver(t *testing.T, dsn string) {
	t.Helper()
	db := storetest.Open(t, store.Config{URL: dsn})
	if err := db.Migrate(t.Context()); err != nil { // what is made is looked at under the setting, too
		t.Fatal(err)
	}
	e := newEndpoint(t, db)
	const path = `/ÁÍ→\'%_` // some of its bytes stand for nothing in the old code page
	ev := newEvent(e, "{}")
	ev.Path = path
	if err := db.Capture(t.Context(), 0, ev); err != nil {
		t.Fatal(err)
	}
	q, err := query.Parse(`path:"*ÁÍ→\\'%_"`, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	err = db.EachEvent(t.Context(), hookglass.System, string(e.ID), q, store.NoBound, func(found *hookglass.Event) error {
		paths = append(paths, found.Path)
		return nil
	})
	if err != nil || len(paths) != 1 || paths[0] != path {
		t.Errorf("%q: %v", paths, err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "SET client_encoding = 'UTF8'"); err != nil {
		t.Fatal(err)
	}
	var characters int
	err = conn.QueryRow(t.Context(), "SELECT char_length(path) FROM events").Scan(&characters)
	if want := len([]rune(path)); err != nil || characters != want {
		t.Errorf("stored as %d characters, want %d: %v", characters, want, err)
	}
	dumped := &memory{rows: make(map[string][][]any)}
	if _, err := db.Dump(t.Context(), dumped); err != nil || len(dumped.rows["events"]) != 1 {
		t.Errorf("dumped %v: %v", dumped.rows["events"], err)
	}
	var deleted int64
	err = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
		if _, err := tx.Endpoint(string(e.ID)); err != nil {
			return err
		}
		// What was committed since is no obstacle.
		if err := db.Capture(t.Context(), 0, newEvent(e, "{}")); err != nil {
			return err
		}
		deleted, err = tx.DeleteAllEvents(string(e.ID))
		return err
	})
	if err != nil || deleted != 2 {
		t.Errorf("%d deleted: %v", deleted, err)
	}
}
