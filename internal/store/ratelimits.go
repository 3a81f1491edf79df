package store

import (
	"context"
	"time"

	"hookglass"
)

// clocksDiffer bounds how far apart the times of two calls on one bucket may be: a call that waits for the row carries
// the time when it started, and nodes agree within clockAgrees.
const clocksDiffer = patience + 2*clockAgrees

// A bucket is one number, the time in microseconds from which it is empty again. It is never further ahead than the
// period plus clocksDiffer. If it is, a clock was set back, and the bucket counts as empty.

// countInPeriod counts a call. The number is the end of the period, a multiple of periodStep, plus the calls so far.
//
// $1 bucket, $2 now, $3 the end of a period that begins now, $4 the furthest time ahead, $5 limit; all times are in
// microseconds.
const countInPeriod = `INSERT INTO rate_limits (bucket, tat) VALUES ($1, cast($3 AS bigint) + 1)
	ON CONFLICT (bucket) DO UPDATE SET tat = 1 + CASE
		WHEN rate_limits.tat - rate_limits.tat % 1024 > cast($2 AS bigint) AND rate_limits.tat <= cast($4 AS bigint) THEN rate_limits.tat
		ELSE cast($3 AS bigint) END
	WHERE rate_limits.tat % 1024 < cast($5 AS bigint)
		OR rate_limits.tat - rate_limits.tat % 1024 <= cast($2 AS bigint) OR rate_limits.tat > cast($4 AS bigint)
	RETURNING tat`

// periodStep is the unit of period ends in microseconds. It exceeds the number of calls in any period.
const periodStep = 1024

// takeFromBucket takes a call. The number is the theoretical arrival time of the generic cell rate algorithm (ITU-T
// I.371).
//
// $1 bucket, $2 now, $3 interval between calls at the steady rate, $4 period, $5 the furthest time ahead; all times are
// in microseconds.
const takeFromBucket = `INSERT INTO rate_limits (bucket, tat) VALUES ($1, cast($2 AS bigint) + cast($3 AS bigint))
	ON CONFLICT (bucket) DO UPDATE SET tat = cast($3 AS bigint) + CASE
		WHEN rate_limits.tat BETWEEN cast($2 AS bigint) AND cast($5 AS bigint) THEN rate_limits.tat
		ELSE cast($2 AS bigint) END
	WHERE rate_limits.tat <= cast($2 AS bigint) + cast($4 AS bigint) - cast($3 AS bigint)
		OR rate_limits.tat > cast($5 AS bigint)
	RETURNING tat`

// Allow takes one call from a bucket that all nodes share: limit calls, less than periodStep, per period, which begins
// with its first call. Further calls are answered rate_limited, with RetryAfter until the period ends; they take
// nothing.
func (db *DB) Allow(ctx context.Context, bucket string, limit int, per time.Duration) error {
	ends := func(tat int64) time.Time { return time.UnixMicro(tat - tat%periodStep) }
	return db.take(ctx, bucket, per, ends, countInPeriod, func(now time.Time) []any {
		end := now.Add(per).UnixMicro() / periodStep * periodStep // rounded down: nobody waits longer than a period
		return []any{now.UnixMicro(), end, now.Add(per + clocksDiffer).UnixMicro(), limit}
	})
}

// AllowEvenly is Allow with a bucket that refills evenly, so that nobody is locked out for the rest of a period: limit
// calls at once, and nearly twice as many in a period.
func (db *DB) AllowEvenly(ctx context.Context, bucket string, limit int, per time.Duration) error {
	interval := per / time.Duration(limit)
	next := func(tat int64) time.Time { return time.UnixMicro(tat).Add(interval - per) }
	return db.take(ctx, bucket, per, next, takeFromBucket, func(now time.Time) []any {
		return []any{now.UnixMicro(), interval.Microseconds(), per.Microseconds(), now.Add(per + clocksDiffer).UnixMicro()}
	})
}

// take runs a statement that takes a call. next returns when a bucket with the given number allows another call.
func (db *DB) take(ctx context.Context, bucket string, per time.Duration, next func(tat int64) time.Time, statement string, rest func(now time.Time) []any) error {
	return db.Update(ctx, hookglass.System, func(tx *Tx) error {
		// The row is locked until the commit, and calls on one bucket may be many.
		tx.MayBeLost()
		// The call carries the time when it started. Others that started later may have come before it, so it is
		// refused only if it may not come by now either; the row stays locked meanwhile.
		for now := tx.Now; ; now = db.Now() {
			var tat int64
			err := tx.queryRow("bucket", statement, append([]any{bucket}, rest(now)...), &tat)
			if !hookglass.Is(err, hookglass.CodeNotFound) { // no row means that it took nothing
				return err
			}
			if err := tx.queryRow("bucket", "SELECT tat FROM rate_limits WHERE bucket = $1", []any{bucket}, &tat); err != nil {
				return err
			}
			if wait := next(tat).Sub(db.Now()); wait > 0 {
				return &hookglass.Error{
					Code: hookglass.CodeRateLimited, Message: "Too many requests. Try again later.",
					RetryAfter: min(wait, per), // another node's clock could make it longer
				}
			}
		}
	})
}

// purgeBuckets bounds the buckets that one transaction examines: captures wait behind it.
const purgeBuckets = 2_000

// PurgeRateLimits examines some buckets after a name and deletes the empty ones. It returns where to continue, or "" at
// the end.
func (tx *Tx) PurgeRateLimits(behind string) (last string, err error) {
	err = tx.queryRow("bucket", "SELECT bucket FROM rate_limits WHERE bucket > $1 ORDER BY bucket LIMIT 1 OFFSET $2", []any{behind, purgeBuckets - 1}, &last)
	condition, args := "tat < $1 AND bucket > $2", []any{micros(tx.Now), behind}
	if err == nil {
		condition, args = condition+" AND bucket <= $3", append(args, last)
	} else if !hookglass.Is(err, hookglass.CodeNotFound) {
		return "", err
	}
	_, err = tx.exec("DELETE FROM rate_limits WHERE "+condition, args...)
	return last, err
}
