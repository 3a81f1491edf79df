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
		"postgres": {store.Config{URL: storetest.Migrated(t), Clock: ahead}, 0},
	} {
		db := storetest.Open(t, c.cfg)
		var inside time.Time
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { inside = tx.Now; return nil })
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		for what, got := range map[string]time.Time{"Now": db.Now(), "of a transaction": inside, "Stamp": db.Stamp(ahead())} {
			if off := got.Sub(at) - c.off; off.Abs() > time.Minute {
				t.Errorf("%s, %s: off by %v", name, what, off)
			}
		}
	}
}

// A node that stands still between its question and the answer reads a time that is past. It does not take it for the
// present.
func TestAnAnswerThatIsReadLateMovesNoClock(t *testing.T) {
	const apart = -time.Hour // by which the database's clock is ahead of the node's
	for name, c := range map[string]struct {
		before, at, least, most time.Duration // of the database's clock, against the node's: before, as it is read, and after it
	}{
		"the clocks agree":              {0, -5 * time.Second, 0, 0},
		"they are an hour apart":        {apart, apart - 5*time.Second, apart, apart},
		"they agreed, as it may seem":   {apart, -5 * time.Second, 0, 0},
		"one of them was set meanwhile": {0, -10 * time.Second, -10 * time.Second, -5 * time.Second},
		"the other way round":           {0, 10 * time.Second, 10 * time.Second, 15 * time.Second},
	} {
		own := time.Now()
		db := storetest.Open(t, store.Config{Path: filepath.Join(t.TempDir(), "hookglass.db"), Clock: func() time.Time { return own }})
		db.ClockShowed(own, own.Add(c.before))
		db.ClockShowed(own.Add(-5*time.Second), own.Add(c.at))
		if off := db.Now().Sub(own.UTC().Truncate(time.Microsecond)); off < c.least || off > c.most {
			t.Errorf("%s: the database's clock is thought to be %v ahead, want %v to %v", name, off, c.least, c.most)
		}
		own = own.Add(time.Second)
		db.ClockShowed(own, own.Add(apart))
		if off := db.Now().Sub(own.UTC().Truncate(time.Microsecond)); off != apart {
			t.Errorf("%s: after an answer at once it is thought to be %v ahead, want %v", name, off, apart)
		}
	}
}
