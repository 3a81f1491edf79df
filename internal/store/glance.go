package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"sync"

	"hookglass"
)

// Glance is View for a single statement, without a transaction. On PostgreSQL that is one round trip instead of three,
// and every call to the API begins with one. A second statement may see later data than the first.
func (db *DB) Glance(ctx context.Context, who hookglass.Principal, fn func(*View) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return classify(fn(&View{ctx: ctx, q: db.read, dialect: db.dialect, who: who, Now: db.Now()}))
}

// Together runs reads concurrently, which on PostgreSQL takes one round trip instead of several. In a transaction,
// which has one connection, and on an embedded database it runs them in sequence. It returns the error of the first one
// that fails, in the order in which they are given.
func (v *View) Together(reads ...func(*View) error) error {
	if _, pooled := v.q.(*sql.DB); !pooled || v.dialect != postgres {
		for _, read := range reads {
			if err := read(v); err != nil {
				return err
			}
		}
		return nil
	}
	errs, broke := make([]error, len(reads)), make([]any, len(reads))
	var beside sync.WaitGroup
	for i, read := range reads[1:] {
		beside.Go(func() {
			defer func() { broke[i] = recover() }() // to panic in the caller's goroutine
			errs[i+1] = read(v)
		})
	}
	errs[0] = reads[0](v)
	beside.Wait()
	if i := slices.IndexFunc(broke, func(b any) bool { return b != nil }); i >= 0 {
		panic(broke[i])
	}
	return cmp.Or(errs...)
}

// Jot is Update for a single statement that commits by itself: on PostgreSQL one round trip instead of three. fn must
// not announce or enqueue.
func (db *DB) Jot(ctx context.Context, who hookglass.Principal, fn func(*Tx) error) error {
	if db.dialect != postgres || db.joined(ctx) != nil {
		return db.Update(ctx, who, fn)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return classify(fn(&Tx{View: View{ctx: ctx, q: db.write, dialect: db.dialect, who: who, Now: db.Now()}, pace: &db.pace}))
}
