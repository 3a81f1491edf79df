package store

import (
	"context"
	"fmt"

	"hookglass"
)

// togetherKey is the context key of [DB.Together]'s transaction.
type togetherKey struct{ db *DB }

// Together runs fn in one transaction: every View and Update with fn's context sees the changes of those before it, and
// all are committed or, if fn returns an error, none. An Update that fails leaves nothing behind, so fn may continue. A
// nested Together can be undone separately.
//
// Only one runs at a time in the whole installation, across all nodes. fn must be as quick as an [DB.Update], must use
// its context from one goroutine only, and may be called again after a failed group commit.
func (db *DB) Together(ctx context.Context, fn func(ctx context.Context) error) error {
	return db.Update(ctx, hookglass.System, func(tx *Tx) error {
		if db.joined(ctx) == nil && db.dialect == postgres {
			if _, err := tx.exec("SELECT pg_advisory_xact_lock($1)", togetherLock); err != nil {
				return err
			}
		}
		return fn(context.WithValue(tx.ctx, togetherKey{db}, tx))
	})
}

// joined returns the transaction that a context belongs to, or nil.
func (db *DB) joined(ctx context.Context) *Tx {
	tx, _ := ctx.Value(togetherKey{db}).(*Tx)
	return tx
}

// part runs fn as a part of the transaction that can be undone separately.
func (tx *Tx) part(who hookglass.Principal, fn func(*Tx) error) (err error) {
	if _, err := tx.exec("SAVEPOINT part"); err != nil {
		return err
	}
	inner := &Tx{View: *tx.as(who), sqlTx: tx.sqlTx, queue: tx.queue, pace: tx.pace}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("store: panic in update: %v", r)
		}
		if err != nil {
			if _, e := tx.exec("ROLLBACK TO SAVEPOINT part"); e != nil {
				err = fmt.Errorf("%w (and it could not be undone: %w)", err, e)
			}
		} else {
			tx.Announce(inner.topics...)
			tx.atOnce = tx.atOnce || inner.atOnce
		}
		if _, e := tx.exec("RELEASE SAVEPOINT part"); e != nil && err == nil {
			err = e
		}
	}()
	if err := fn(inner); err != nil {
		return err
	}
	return inner.flushJobs()
}
