package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Nodes whose own clocks are an hour apart agree on the time when they share a database, and what they stamp can be
// compared.
func TestNodesGoByTheDatabasesClock(t *testing.T) {
	ahead := func() time.Time { return time.Now().Add(time.Hour) }
	for name, c := range map[string]struct {
		cfg store.Config
		off time.Duration
	}{
		"sqlite":   {store.Config{Path: filepath.Join(t.TempDir(), "hookglass.db"), Clock: ahead}, time.Hour}, // nobody to agree with
		"postgres": {store.Config{URL: storetest.Postgres(t), Clock: ahead}, 0},
	} {
		db := storetest.Open(t, c.cfg)
		var inside time.Time
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { inside = tx.Now; return nil })
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		for what, got := range map[string]time.Time{"Now": db.Now(), "of a transaction": inside, "Stamp": db.Stamp(ahead())} {
			if off := got.Sub(at) - c.off; off.Abs() > 10*time.Second {
				t.Errorf("%s, %s: off by %v", name, what, off)
			}
		}
	}
}
