package store_test

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestABucketLetsItsLimitThroughAndSaysWhenTheNextMayCome(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const limit, calls = 30, 60
		var allowed, denied atomic.Int64
		began := time.Now()
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				err := db.Allow(t.Context(), "token:1", limit, time.Hour)
				var coded *hookglass.Error
				switch {
				case err == nil:
					allowed.Add(1)
				case errors.As(err, &coded) && coded.Code == hookglass.CodeRateLimited:
					denied.Add(1)
					if least, most := 2*time.Minute-time.Since(began), 2*time.Minute; coded.RetryAfter < least || coded.RetryAfter > most {
						t.Errorf("retry after %v, want %v to %v", coded.RetryAfter, least, most)
					}
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if allowed.Load() != limit || denied.Load() != calls-limit {
			t.Errorf("%d allowed and %d denied of %d, limit %d", allowed.Load(), denied.Load(), calls, limit)
		}
		if err := db.Allow(t.Context(), "token:2", limit, time.Hour); err != nil {
			t.Errorf("another bucket: %v", err)
		}
	})
}

func TestABucketRefillsEvenly(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const limit, per = 3, 150 * time.Millisecond
		began := time.Now()
		allowed := 0
		for allowed < 2*limit {
			err := db.Allow(t.Context(), "b", limit, per)
			if err == nil {
				allowed++
			} else if !hookglass.Is(err, hookglass.CodeRateLimited) {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < per {
			t.Errorf("twice the limit of %d went through in %v", limit, took)
		}
	})
}

func TestABucketOutlivesAClockThatGoesBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		// A period of an hour leaves a time further ahead than one of a second may ever leave.
		if err := db.Allow(t.Context(), "b", 1, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := db.Allow(t.Context(), "b", 1, time.Second); err != nil {
			t.Errorf("locked out until the clock is there again: %v", err)
		}
	})
}

// Calls that wait for one another, and those of several nodes, bring times that are not in the order in which they are let through.
func TestABucketIsNotEmptiedByACallThatSetOutEarlier(t *testing.T) {
	for name, cfg := range map[string]store.Config{
		"sqlite":   {Path: filepath.Join(t.TempDir(), "hookglass.db")},
		"postgres": {URL: storetest.Postgres(t)},
	} {
		t.Run(name, func(t *testing.T) {
			var back atomic.Int64
			cfg.Clock = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
			db := storetest.Open(t, cfg)
			if err := db.Allow(t.Context(), "b", 1, time.Hour); err != nil {
				t.Fatal(err)
			}
			back.Store(int64(500 * time.Millisecond)) // less than what makes a node correct its clock
			if err := db.Allow(t.Context(), "b", 1, time.Hour); !hookglass.Is(err, hookglass.CodeRateLimited) {
				t.Errorf("a call of half a second ago: %v, want rate_limited", err)
			}
		})
	}
}

func TestPurgingForgetsEmptyBucketsAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if err := db.Allow(t.Context(), "full", 1, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := db.Allow(t.Context(), "empty", 1, time.Microsecond); err != nil {
			t.Fatal(err)
		}
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.PurgeRateLimits() })
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Allow(t.Context(), "full", 1, time.Hour); !hookglass.Is(err, hookglass.CodeRateLimited) {
			t.Errorf("a purge gave a call back: %v", err)
		}
	})
}
