package store

import (
	"cmp"
	"context"
	"database/sql"

	"hookglass"
)

// Glance is View for a single statement, without a transaction. On PostgreSQL that is one round trip instead of three,
// and every call to the API begins with one. A second statement may see later data than the first.
func (db *DB) Glance(ctx context.Context, who hookglass.Principal, fn func(*View) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return classify(fn(&View{ctx: ctx, q: db.read, dialect: db.dialect, who: who, Now: db.Now()}))
}

// Both runs two reads concurrently, which on PostgreSQL takes one round trip instead of two. In a transaction, which
// has one connection, and on an embedded database it runs them in sequence. If both fail, it returns the first one's
// error.
func (v *View) Both(one, other func(*View) error) error {
	if _, pooled := v.q.(*sql.DB); !pooled || v.dialect != postgres {
		if err := one(v); err != nil {
			return err
		}
		return other(v)
	}
	var beside error
	var broke any
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		defer func() { broke = recover() }() // to panic in the caller's goroutine
		beside = other(v)
	}()
	err := one(v)
	if <-looked; broke != nil {
		panic(broke)
	}
	return cmp.Or(err, beside)
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
