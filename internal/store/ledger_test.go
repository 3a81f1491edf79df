package store_test

import (
	"fmt"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// The ledger is added up from books that can disagree: a row that vanishes without having been counted, and a delivery
// that nothing would ever go on with, are named.
func TestTheLedgerNamesWhatWasLost(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "app", URL: "https://app.example.com/", Enabled: true, Timeout: time.Second}
		update(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		for range 3 {
			if err := db.CaptureWith(t.Context(), 0, newEvent(e, "x"), store.Work{Forward: true}); err != nil {
				t.Fatal(err)
			}
		}
		rollUp(t, db)
		names := func() (names []string) {
			hour := time.Now().UTC().Truncate(time.Hour)
			err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
				l, err := v.Ledger(string(e.ID), hour.Add(-time.Hour), hour.Add(2*time.Hour))
				for _, d := range l.Differences() {
					names = append(names, d.Name)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return names
		}
		if got := names(); len(got) > 0 {
			t.Fatalf("at first: %v", got)
		}
		update(t, db, func(tx *store.Tx) error {
			return tx.Exec("UPDATE forwards SET due_at = NULL WHERE num = (SELECT max(num) FROM forwards)")
		})
		if got := names(); len(got) != 1 || got[0][len(got[0])-6:] != ":stuck" {
			t.Errorf("a delivery that is never due: %v", got)
		}
		update(t, db, func(tx *store.Tx) error {
			return tx.Exec("DELETE FROM events WHERE seq = (SELECT min(seq) FROM events)")
		})
		if got := names(); len(got) < 2 || got[0] != "stored" {
			t.Errorf("an event that vanished: %v", got)
		}
	})
}

// A target is owed what came while it was as it is: of one that was not changed in the window, everything, of one that
// was, what came since, and of one that is off, nothing.
func TestATargetIsOwedWhatCameSinceItWasChanged(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		now := time.Now().UTC()
		want := map[string]int64{}
		for _, c := range []struct {
			changed time.Duration // ago
			enabled bool
			owed    int64
		}{{100 * time.Hour, true, 3}, {30 * time.Minute, true, 1}, {0, true, 0}, {100 * time.Hour, false, 0}} {
			target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: fmt.Sprint(c), URL: "https://app.example.com/", Enabled: c.enabled, Timeout: time.Second}
			update(t, db, func(tx *store.Tx) error {
				if err := tx.CreateForwardingTarget(&target); err != nil {
					return err
				}
				return tx.Exec("UPDATE forwarding_targets SET updated_at = $1 WHERE id = $2", now.Add(-c.changed).UnixMicro(), target.ID)
			})
			want[target.Name] = c.owed
		}
		arrive := func(ago time.Duration, forward bool) {
			t.Helper()
			event := newEvent(e, "x")
			event.ReceivedAt = now.Add(-ago)
			if err := db.CaptureWith(t.Context(), 0, event, store.Work{Forward: forward}); err != nil {
				t.Fatal(err)
			}
		}
		arrive(20*time.Minute, true)
		arrive(50*time.Minute, false)
		arrive(40*time.Minute, false)
		arrive(20*time.Minute, false)
		rollUp(t, db)
		hour := now.Truncate(time.Hour)
		reading(t, db, func(v *store.View) error {
			l, err := v.Ledger(string(e.ID), hour.Add(-2*time.Hour), hour.Add(2*time.Hour))
			for _, c := range l.Consumers {
				if c.Owed != want[c.Name] {
					t.Errorf("%s: owed %d, want %d", c.Name, c.Owed, want[c.Name])
				}
			}
			if len(l.Consumers) != len(want) {
				t.Errorf("%d consumers", len(l.Consumers))
			}
			return err
		})
	})
}

// What was erased and refused before the books began is in no window that is asked for.
func TestTheBooksBeginWithTheirMigration(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		began := time.Now()
		rollUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.Exec("UPDATE rollup_cursor SET books_at = $1", began.UnixMicro()) })
		err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
			from, err := v.BooksFrom()
			if !from.Equal(began.Truncate(time.Microsecond)) {
				t.Errorf("they begin at %s", from)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
