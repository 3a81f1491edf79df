package capture_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/seal"
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
		deadline, tick := time.After(time.Minute), time.NewTicker(10*time.Millisecond)
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

// A service that stops while refusals are on their way into the database counts them once.
func TestRefusalsThatAreBeingWrittenAtTheEndAreCountedOnce(t *testing.T) {
	db := storetest.SQLite(t) // whose updates commit in groups, so that one can be held open behind another
	keys, err := seal.LoadOrCreate(filepath.Join(t.TempDir(), "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	endpoints := endpoint.New(db, keys)
	e, _, err := endpoints.CreateTemporary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.Enabled = false
	if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.SaveEndpoint(&e) }); err != nil {
		t.Fatal(err)
	}
	captures := newService(db, endpoints, nil)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); captures.Run(ctx) }()

	// hold keeps the writer, and all that is written with it, until a channel is closed.
	hold := func(until <-chan struct{}) (held <-chan struct{}) {
		began := make(chan struct{})
		go db.Update(t.Context(), hookglass.System, func(*store.Tx) error {
			close(began)
			<-until
			return nil
		})
		return began
	}
	queued := make(chan struct{})
	<-hold(queued)
	if _, err := captures.Admit(t.Context(), string(e.ID)); !hookglass.Is(err, hookglass.CodeGone) {
		t.Fatalf("a disabled endpoint: %v", err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for captures.Unwritten() != 0 { // until it is on its way
		<-tick.C
	}
	behind := hold(ctx.Done())
	close(queued)
	<-behind
	stop()
	<-ended
	err = db.View(t.Context(), hookglass.System, func(v *store.View) error {
		got, err := v.Endpoint(string(e.ID))
		if err == nil && got.RefusedCount != 1 {
			t.Errorf("one was refused, %d are on record", got.RefusedCount)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
