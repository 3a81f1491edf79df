package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"hookglass"
)

// clocksDiffer is how far the clocks of two calls of one bucket may lie apart: a call that waits for the row brings the time at
// which it set out, and two nodes agree to within clockAgrees.
const clocksDiffer = patience + 2*clockAgrees

// A bucket holds the theoretical arrival time of the generic cell rate algorithm (ITU-T I.371): when the
// bucket is empty again if nothing more comes. It never lies further ahead than the period and what clocks differ by,
// except after a clock went back, and then it counts as empty.
//
// $1 bucket, $2 now, $3 interval between calls at the steady rate, $4 period, $5 the furthest ahead; all times in microseconds.
const takeFromBucket = `INSERT INTO rate_limits (bucket, tat) VALUES ($1, cast($2 AS bigint) + cast($3 AS bigint))
	ON CONFLICT (bucket) DO UPDATE SET tat = cast($3 AS bigint) + CASE
		WHEN rate_limits.tat BETWEEN cast($2 AS bigint) AND cast($2 AS bigint) + cast($5 AS bigint) THEN rate_limits.tat
		ELSE cast($2 AS bigint) END
	WHERE rate_limits.tat <= cast($2 AS bigint) + cast($4 AS bigint) - cast($3 AS bigint)
		OR rate_limits.tat > cast($2 AS bigint) + cast($5 AS bigint)
	RETURNING tat`

// Allow takes one call from a bucket that all nodes share: at most limit calls at once, refilled evenly over
// the period. When the bucket is exhausted it answers rate_limited, with RetryAfter saying when the next call
// will be let through; a call that is refused takes nothing.
func (db *DB) Allow(ctx context.Context, bucket string, limit int, per time.Duration) error {
	return db.Update(ctx, hookglass.System, func(tx *Tx) error {
		interval := per / time.Duration(limit)
		var tat int64
		err := tx.q.QueryRowContext(ctx, takeFromBucket, bucket, tx.Now.UnixMicro(), interval.Microseconds(), per.Microseconds(),
			(per + clocksDiffer).Microseconds()).Scan(&tat)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := tx.queryRow("bucket", "SELECT tat FROM rate_limits WHERE bucket = $1", []any{bucket}, &tat); err != nil {
			return err
		}
		return &hookglass.Error{
			Code: hookglass.CodeRateLimited, Message: "Too many requests. Try again later.",
			RetryAfter: time.UnixMicro(tat).Sub(db.Now()) - per + interval,
		}
	})
}

// PurgeRateLimits deletes buckets that are empty again.
func (tx *Tx) PurgeRateLimits() error {
	_, err := tx.exec("DELETE FROM rate_limits WHERE tat < $1", micros(tx.Now))
	return err
}
