package store

import (
	"context"
	"time"

	"hookglass"
)

// clocksDiffer is how far the clocks of two calls of one bucket may lie apart: a call that waits for the row brings the
// time at which it set out, and two nodes agree to within clockAgrees.
const clocksDiffer = patience + 2*clockAgrees

// A bucket is one number, the time from which it is empty again in microseconds. It never lies further ahead than the
// period and what clocks differ by, except after a clock went back, and then the bucket counts as empty.

// countInPeriod counts a call. The number is the end of the period, a multiple of periodStep, and the calls that it has
// had.
//
// $1 bucket, $2 now, $3 the end of a period that begins now, $4 the furthest ahead, $5 limit; all times in
// microseconds.
const countInPeriod = `INSERT INTO rate_limits (bucket, tat) VALUES ($1, cast($3 AS bigint) + 1)
	ON CONFLICT (bucket) DO UPDATE SET tat = 1 + CASE
		WHEN rate_limits.tat - rate_limits.tat % 1024 > cast($2 AS bigint) AND rate_limits.tat <= cast($4 AS bigint) THEN rate_limits.tat
		ELSE cast($3 AS bigint) END
	WHERE rate_limits.tat % 1024 < cast($5 AS bigint)
		OR rate_limits.tat - rate_limits.tat % 1024 <= cast($2 AS bigint) OR rate_limits.tat > cast($4 AS bigint)
	RETURNING tat`

// periodStep is what ends of periods are multiples of, in microseconds, and so more than the calls of any of them.
const periodStep = 1024

// takeFromBucket takes a call. The number is the theoretical arrival time of the generic cell rate algorithm (ITU-T
// I.371).
//
// $1 bucket, $2 now, $3 interval between calls at the steady rate, $4 period, $5 the furthest ahead; all times in
// microseconds.
const takeFromBucket = `INSERT INTO rate_limits (bucket, tat) VALUES ($1, cast($2 AS bigint) + cast($3 AS bigint))
	ON CONFLICT (bucket) DO UPDATE SET tat = cast($3 AS bigint) + CASE
		WHEN rate_limits.tat BETWEEN cast($2 AS bigint) AND cast($5 AS bigint) THEN rate_limits.tat
		ELSE cast($2 AS bigint) END
	WHERE rate_limits.tat <= cast($2 AS bigint) + cast($4 AS bigint) - cast($3 AS bigint)
		OR rate_limits.tat > cast($5 AS bigint)
	RETURNING tat`

// Allow takes one call from a bucket that all nodes share: limit calls, fewer than periodStep, in a period, which
// begins with its first. The others of the period are answered rate_limited, with RetryAfter saying when it ends; a
// call that is refused takes nothing.
func (db *DB) Allow(ctx context.Context, bucket string, limit int, per time.Duration) error {
	ends := func(tat int64) time.Time { return time.UnixMicro(tat - tat%periodStep) }
	return db.take(ctx, bucket, per, ends, countInPeriod, func(now time.Time) []any {
		end := now.Add(per).UnixMicro() / periodStep * periodStep // never late: nobody is told to wait for longer than a period
		return []any{now.UnixMicro(), end, now.Add(per + clocksDiffer).UnixMicro(), limit}
	})
}

// AllowEvenly is Allow with a bucket that is refilled evenly over the period, so that nobody is kept out for the rest
// of it: limit calls at once, and nearly twice as many in a period.
func (db *DB) AllowEvenly(ctx context.Context, bucket string, limit int, per time.Duration) error {
	interval := per / time.Duration(limit)
	next := func(tat int64) time.Time { return time.UnixMicro(tat).Add(interval - per) }
	return db.take(ctx, bucket, per, next, takeFromBucket, func(now time.Time) []any {
		return []any{now.UnixMicro(), interval.Microseconds(), per.Microseconds(), now.Add(per + clocksDiffer).UnixMicro()}
	})
}

// take lets a call through if the statement takes it. next says when a bucket with this number lets another through.
func (db *DB) take(ctx context.Context, bucket string, per time.Duration, next func(tat int64) time.Time, statement string, rest func(now time.Time) []any) error {
	return db.Update(ctx, hookglass.System, func(tx *Tx) error {
		var tat int64
		err := tx.queryRow("bucket", statement, append([]any{bucket}, rest(tx.Now)...), &tat)
		if !hookglass.Is(err, hookglass.CodeNotFound) { // which the statement answers where it takes nothing
			return err
		}
		if err := tx.queryRow("bucket", "SELECT tat FROM rate_limits WHERE bucket = $1", []any{bucket}, &tat); err != nil {
			return err
		}
		return &hookglass.Error{
			Code: hookglass.CodeRateLimited, Message: "Too many requests. Try again later.",
			RetryAfter: min(next(tat).Sub(db.Now()), per), // which the clock of another node may make longer
		}
	})
}

// purgeBuckets bounds the buckets that one transaction looks at: captures stand behind it.
const purgeBuckets = 2_000

// PurgeRateLimits deletes buckets that are empty again, among some of those behind one. It returns where to go on, and
// "" where no more are behind them.
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
