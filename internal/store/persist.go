package store

import (
	"context"
	"time"

	"hookglass"
)

// persistAgain is how soon storage that could not answer is asked again.
const persistAgain = 250 * time.Millisecond

// Persist is [DB.Update] for what has happened already and must not be forgotten: it is tried at least once, also when
// ctx has ended, and while the storage cannot answer, as when its server is restarted, again until ctx ends or a
// time is over. What fn does must hold when it is done twice: that a transaction was committed may not have been heard.
func (db *DB) Persist(ctx context.Context, most time.Duration, who hookglass.Principal, fn func(*Tx) error) error {
	return persist(ctx, most, func(ctx context.Context) error { return db.Update(ctx, who, fn) })
}

// PersistAlong is Persist for what nobody waits for.
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
