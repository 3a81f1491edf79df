package store_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
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

// Whoever goes away in the middle of a change is told so, and not what the database made of it.
func TestAnUpdateThatIsInterruptedSaysSo(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
			time.AfterFunc(10*time.Millisecond, cancel)
			return tx.Exec(`INSERT INTO forwards (target, endpoint, event, state, claim, lost, created_at)
				WITH RECURSIVE n (i) AS (SELECT cast(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < 100000000)
				SELECT max(i), 0, 0, 'delivered', 0, 0, 0 FROM n`)
		})
		if err == nil || strings.Contains(err.Error(), "savepoint") || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if err := db.Update(t.Context(), hookglass.System, func(*store.Tx) error { return nil }); err != nil {
			t.Errorf("the next update: %v", err)
		}
	})
}

// A look for lost announcements that failed is made again from where it began: neither over less, nor over all events
// that there ever were.
func TestALookThatFailedComesNoFurther(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		if err := db.CaptureWith(t.Context(), 0, newEvent(e, "x"), store.Work{}); err != nil {
			t.Fatal(err)
		}
		for since, last := range map[int64]int{-1: 1, 0: 2} { // the statement that fails
			ctx, cancel := context.WithCancel(t.Context())
			err := db.View(ctx, hookglass.System, func(v *store.View) error {
				n := 0
				v.Record(func(string, []any) {
					if n++; n == last {
						cancel()
					}
				})
				_, newest, err := v.EndpointsSince(since)
				if err == nil || newest != since {
					t.Errorf("a look from %d that failed came to %d, %v", since, newest, err)
				}
				return err
			})
			cancel()
			if err == nil {
				t.Error("a look that failed says nothing")
			}
		}
	})
}
