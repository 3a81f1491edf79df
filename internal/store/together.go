package store

import (
	"context"
	"fmt"

	"hookglass"
)

// togetherKey is under which a context holds the transaction of [DB.Together].
type togetherKey struct{ db *DB }

// Together makes one transaction of all that fn does: every View and Update that is made with its context, by whichever
// capability, sees what those before it changed, and all is kept or, when fn returns an error, nothing. An Update that
// fails leaves nothing of itself behind, so fn may go on. Within fn another Together is a part that may be undone
// alone.
//
// One runs at a time in the whole installation, whatever the number of nodes. fn must be as quick as that of an
// [DB.Update], must use its context from one goroutine alone, and may be called again when the commit of others has
// failed.
func (db *DB) Together(ctx context.Context, fn func(ctx context.Context) error) error {
	return db.Update(ctx, hookglass.System, func(tx *Tx) error {
		if db.joined(ctx) == nil && db.dialect == postgres {
			if _, err := tx.exec("SELECT pg_advisory_xact_lock($1)", int64(togetherLock)); err != nil {
				return err
			}
		}
		return fn(context.WithValue(tx.ctx, togetherKey{db}, tx))
	})
}

// joined returns the transaction that a context is part of, nil when it is of none.
func (db *DB) joined(ctx context.Context) *Tx {
	tx, _ := ctx.Value(togetherKey{db}).(*Tx)
	return tx
}

// part runs fn as a part of the transaction that can be undone alone.
func (tx *Tx) part(who hookglass.Principal, fn func(*Tx) error) (err error) {
	if _, err := tx.exec("SAVEPOINT part"); err != nil {
		return err
	}
	inner := &Tx{View: View{ctx: tx.ctx, q: tx.q, dialect: tx.dialect, who: who, Now: tx.Now}, sqlTx: tx.sqlTx, queue: tx.queue, pace: tx.pace}
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
