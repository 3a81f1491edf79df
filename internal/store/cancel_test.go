package store_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Whoever goes away in the middle of a question, as a browser does with each page that it leaves, harms nobody else's.
func TestCallersWhoGoAwayHarmNobody(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		for range 40 {
			if err := db.CaptureWith(t.Context(), 0, newEvent(e, "x"), store.Work{}); err != nil {
				t.Fatal(err)
			}
		}
		read := func(ctx context.Context) error {
			return db.View(ctx, hookglass.System, func(v *store.View) error {
				_, err := v.Events(string(e.ID), store.EventList{Limit: 100})
				return err
			})
		}
		var wg sync.WaitGroup
		var left atomic.Int64
		done := make(chan struct{})
		for range 2 {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(2*time.Millisecond))))
					if read(ctx) != nil {
						left.Add(1)
					}
					cancel()
				}
			})
		}
		for i := range 100 {
			if err := read(t.Context()); err != nil {
				t.Errorf("read %d: %v", i, err)
				break
			}
		}
		close(done)
		wg.Wait()
		if left.Load() == 0 {
			t.Error("nobody went away in the middle")
		}
	})
}
