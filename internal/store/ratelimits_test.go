package store_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// step is by how much a period may be shorter: ends are multiples of 1024 µs.
const step = 2 * time.Millisecond

// allow is one of the two kinds of buckets.
type allow func(db *store.DB, ctx context.Context, bucket string, limit int, per time.Duration) error

// eachKind runs the test for both kinds of buckets.
func eachKind(t *testing.T, test func(t *testing.T, allow allow)) {
	t.Run("period", func(t *testing.T) { test(t, (*store.DB).Allow) })
	t.Run("evenly", func(t *testing.T) { test(t, (*store.DB).AllowEvenly) })
}

func TestABucketLetsItsLimitThroughAndSaysWhenTheNextMayCome(t *testing.T) {
	t.Run("period", func(t *testing.T) { testLimit(t, (*store.DB).Allow, time.Hour) })
	t.Run("evenly", func(t *testing.T) { testLimit(t, (*store.DB).AllowEvenly, time.Hour/30) })
}

func testLimit(t *testing.T, allow allow, most time.Duration) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const limit, calls = 30, 60
		var allowed, denied atomic.Int64
		began := time.Now()
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				err := allow(db, t.Context(), "token:1", limit, time.Hour)
				var coded *hookglass.Error
				switch {
				case err == nil:
					allowed.Add(1)
				case errors.As(err, &coded) && coded.Code == hookglass.CodeRateLimited:
					denied.Add(1)
					if least := most - time.Since(began) - step; coded.RetryAfter < least || coded.RetryAfter > most {
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
		if err := allow(db, t.Context(), "token:2", limit, time.Hour); err != nil {
			t.Errorf("another bucket: %v", err)
		}
	})
}

// The clock stands still but for what the test moves it; a PostgreSQL's own would correct it.
func TestALimitHoldsToTheEndOfItsPeriod(t *testing.T) {
	began := time.Now()
	var ahead atomic.Int64
	db := storetest.Open(t, store.Config{
		Path: filepath.Join(t.TempDir(), "hookglass.db"), Clock: func() time.Time { return began.Add(time.Duration(ahead.Load())) },
	})
	const limit, per = 3, time.Minute
	for period := range 2 {
		for i := range limit {
			if err := db.Allow(t.Context(), "b", limit, per); err != nil {
				t.Fatalf("call %d of period %d: %v", i, period, err)
			}
			ahead.Add(int64(10 * time.Second))
		}
		ahead.Add(int64(29 * time.Second))
		err := db.Allow(t.Context(), "b", limit, per)
		var coded *hookglass.Error
		if !errors.As(err, &coded) || coded.Code != hookglass.CodeRateLimited {
			t.Fatalf("one call more in period %d: %v, want rate_limited", period, err)
		}
		if coded.RetryAfter < time.Second-step || coded.RetryAfter > time.Second {
			t.Errorf("retry after %v, want the second that is left", coded.RetryAfter)
		}
		ahead.Add(int64(coded.RetryAfter))
	}
}

// Calls come in another order than they started in. One that may come by now is not refused for having started too early.
func TestACallThatStartedBeforeTheFirstIsNotRefused(t *testing.T) {
	began := time.Now()
	var at, step atomic.Int64
	db := storetest.Open(t, store.Config{
		Path: filepath.Join(t.TempDir(), "hookglass.db"), Clock: func() time.Time { return began.Add(time.Duration(at.Add(step.Load()))) },
	})
	const limit, per = 3, time.Hour
	for i := range limit {
		if i == limit-1 {
			at.Store(int64(-30 * time.Millisecond))
			step.Store(int64(20 * time.Millisecond)) // it starts 10 ms before the first, and is counted 10 ms after that
		}
		if err := db.AllowEvenly(t.Context(), "b", limit, per); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestTwiceTheLimitTakesAPeriod(t *testing.T) {
	eachKind(t, func(t *testing.T, allow allow) {
		storetest.Each(t, func(t *testing.T, db *store.DB) {
			const limit, per = 3, 150 * time.Millisecond
			began := time.Now()
			allowed := 0
			for allowed < 2*limit {
				err := allow(db, t.Context(), "b", limit, per)
				if err == nil {
					allowed++
				} else if !hookglass.Is(err, hookglass.CodeRateLimited) {
					t.Fatal(err)
				}
			}
			if took := time.Since(began); took < per-step {
				t.Errorf("twice the limit of %d went through in %v", limit, took)
			}
		})
	})
}

func TestABucketOutlivesAClockThatGoesBack(t *testing.T) {
	eachKind(t, func(t *testing.T, allow allow) {
		storetest.Each(t, func(t *testing.T, db *store.DB) {
			// A period of an hour leaves a time further ahead than one of a second may ever leave.
			if err := allow(db, t.Context(), "b", 1, time.Hour); err != nil {
				t.Fatal(err)
			}
			if err := allow(db, t.Context(), "b", 1, time.Second); err != nil {
				t.Errorf("locked out until the clock is there again: %v", err)
			}
		})
	})
}

// Calls that wait for one another, and those of several nodes, bring times that are not in the order in which they are
// let through.
func TestABucketIsNotEmptiedByACallThatSetOutEarlier(t *testing.T) {
	for name, cfg := range map[string]store.Config{
		"sqlite":   {Path: filepath.Join(t.TempDir(), "hookglass.db")},
		"postgres": {URL: storetest.Migrated(t)},
	} {
		t.Run(name, func(t *testing.T) {
			var back atomic.Int64
			cfg.Clock = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
			db := storetest.Open(t, cfg)
			eachKind(t, func(t *testing.T, allow allow) {
				back.Store(0)
				if err := allow(db, t.Context(), t.Name(), 1, time.Hour); err != nil {
					t.Fatal(err)
				}
				back.Store(int64(500 * time.Millisecond)) // less than what makes a node correct its clock
				if err := allow(db, t.Context(), t.Name(), 1, time.Hour); !hookglass.Is(err, hookglass.CodeRateLimited) {
					t.Errorf("a call of half a second ago: %v, want rate_limited", err)
				}
			})
		})
	}
}

func TestPurgingForgetsEmptyBucketsAlone(t *testing.T) {
	eachKind(t, func(t *testing.T, allow allow) {
		storetest.Each(t, func(t *testing.T, db *store.DB) {
			if err := allow(db, t.Context(), "full", 1, time.Hour); err != nil {
				t.Fatal(err)
			}
			if err := allow(db, t.Context(), "empty", 1, time.Microsecond); err != nil {
				t.Fatal(err)
			}
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				last, err := tx.PurgeRateLimits("")
				if err == nil && last != "" {
					t.Errorf("there is more behind %q", last)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := allow(db, t.Context(), "full", 1, time.Hour); !hookglass.Is(err, hookglass.CodeRateLimited) {
				t.Errorf("a purge gave a call back: %v", err)
			}
		})
	})
}

// Captures stand behind what a purge deletes, and there are as many buckets as addresses called.
func TestBucketsArePurgedInPieces(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const all, full = 5_000, 7 // which every seventh is
		now := db.Now().UnixMicro()
		writing(t, db, func(tx *store.Tx) error {
			return tx.Exec(`INSERT INTO rate_limits (bucket, tat) WITH RECURSIVE n (i) AS (SELECT cast(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < cast($1 AS bigint))
				SELECT 'call:' || i, cast($2 AS bigint) + CASE WHEN i % cast($3 AS bigint) = 0 THEN 3600000000 ELSE -3600000000 END FROM n`, all, now, full)
		})
		count := func(v *store.View) int64 {
			n, err := v.Ints("SELECT count(*) FROM rate_limits")
			if err != nil {
				t.Fatal(err)
			}
			return n[0]
		}
		left := int64(all)
		for last, more, pieces := "", true, 0; more; more = last != "" {
			if pieces++; pieces > 10 {
				t.Fatal("it does not end")
			}
			writing(t, db, func(tx *store.Tx) (err error) {
				if last, err = tx.PurgeRateLimits(last); err != nil {
					return err
				}
				n := count(&tx.View)
				if left-n > 2_000 {
					t.Errorf("a transaction deleted %d", left-n)
				}
				left = n
				return nil
			})
		}
		if want := int64(all / full); left != want {
			t.Errorf("%d buckets are left, want the %d that are not empty", left, want)
		}
	})
}

// A statement that went by the context of whoever asked could wait for longer than a transaction may, where that has no
// end of its own and the server says no more.
func TestStatementsGoByTheContextOfTheirTransaction(t *testing.T) {
	others := regexp.MustCompile(`\b(tx|v)\.q\.\w+Context\(ctx\b`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if at := others.FindIndex(text); at != nil && !strings.HasSuffix(file, "_test.go") {
			t.Errorf("%s, line %d: a statement by another context", file, 1+bytes.Count(text[:at[0]], []byte("\n")))
		}
	}
}
