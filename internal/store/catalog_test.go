package store_test

import (
	"net/url"
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A role's own schema is called as the role.
func TestASchemaOfPostgresMayHaveAnyName(t *testing.T) {
	dsn := storetest.Postgres(t)
	if _, err := raw(t, store.Config{URL: dsn}).ExecContext(t.Context(), `CREATE SCHEMA "Hook-Glass"`); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := at.Query()
	q.Set("search_path", `"Hook-Glass"`)
	at.RawQuery = q.Encode()
	db := storetest.Open(t, store.Config{URL: at.String()})
	e := newEndpoint(t, db)
	if err := db.Capture(t.Context(), 0, newEvent(e, "x")); err != nil {
		t.Fatal(err)
	}
	sink := &memory{rows: make(map[string][][]any)}
	if _, err := db.Dump(t.Context(), sink); err != nil || len(sink.rows["events"]) != 1 {
		t.Errorf("a dump has %d events, %v", len(sink.rows["events"]), err)
	}
	err = db.View(t.Context(), hookglass.System, func(v *store.View) error {
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
