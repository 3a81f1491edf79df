package store

import (
	"context"
	"time"

	"hookglass"
)

// persistAgain is how long to wait before the storage is tried again.
const persistAgain = 250 * time.Millisecond

// Persist is [DB.Update] for something that has happened and must not be lost. It tries at least once, even if ctx has
// ended. While the storage is unavailable, as during a restart of its server, it retries until ctx ends or most has
// passed. fn must be idempotent: a commit may succeed without its acknowledgement arriving.
func (db *DB) Persist(ctx context.Context, most time.Duration, who hookglass.Principal, fn func(*Tx) error) error {
	return persist(ctx, most, func(ctx context.Context) error { return db.Update(ctx, who, fn) })
}

// PersistAlong is Persist by [DB.UpdateAlong].
func (db *DB) PersistAlong(ctx context.Context, most time.Duration, who hookglass.Principal, fn func(*Tx) error) error {
	return persist(ctx, most, func(ctx context.Context) error { return db.UpdateAlong(ctx, who, fn) })
}

func persist(ctx context.Context, most time.Duration, update func(context.Context) error) error {
	try, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	for {
		err := update(try)
		if !hookglass.Is(err, hookglass.CodeUnavailable) || ctx.Err() != nil {
			return err
		}
		pause := time.NewTimer(persistAgain)
		select {
		case <-pause.C:
		case <-try.Done():
			pause.Stop()
			return err
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}
