package capture_test

import (
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Arrivals that were answered an error are counted by its code in the figures of their minute; one at an endpoint that
// is not there counts nowhere.
func TestRefusalsAreCountedByTheirCode(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		target, err := b.captures.Admit(t.Context(), string(b.ep.ID))
		if err != nil {
			t.Fatal(err)
		}
		b.captures.Refuse(t.Context(), target)
		b.captures.Refuse(t.Context(), target)
		b.set(func(e *hookglass.Endpoint) { e.Enabled = false })
		if _, err := b.captures.Admit(t.Context(), string(b.ep.ID)); !hookglass.Is(err, hookglass.CodeGone) {
			t.Fatalf("a disabled endpoint: %v", err)
		}
		if _, err := b.captures.Admit(t.Context(), string(hookglass.NewEndpointID())); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Fatalf("no endpoint: %v", err)
		}
		deadline, tick := time.After(20*time.Second), time.NewTicker(10*time.Millisecond)
		defer tick.Stop()
		for refused := map[string]int64{}; refused["payload_too_large"] != 2 || refused["gone"] != 1 || len(refused) != 2; {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("they are counted as %v", refused)
			}
			hour := time.Now().UTC().Truncate(time.Hour)
			err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
				l, err := v.Ledger(string(b.ep.ID), hour.Add(-time.Hour), hour.Add(2*time.Hour))
				refused = l.Refused
				if n := l.Received(); err == nil && n != refused["payload_too_large"]+refused["gone"] {
					t.Errorf("%d received, %v refused", n, refused)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Who is told that a body is too large finds the refusal counted, at once and by any node.
func TestARefusalForSizeIsOnRecordWhenItIsTold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		target, err := b.captures.Admit(t.Context(), string(b.ep.ID))
		if err != nil {
			t.Fatal(err)
		}
		for want := range int64(5) {
			b.captures.Refuse(t.Context(), target)
			err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
				e, err := v.Endpoint(string(b.ep.ID))
				if err == nil && e.RefusedCount != want+1 {
					t.Errorf("%d refused, %d are on record", want+1, e.RefusedCount)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
