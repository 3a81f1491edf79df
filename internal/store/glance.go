package store

import (
	"context"

	"hookglass"
)

// Glance is View for a single statement, which sees a snapshot of its own without a transaction around it. On PostgreSQL that is
// one round trip instead of three, where every call to the API begins with one. A second statement may see later data than the first.
func (db *DB) Glance(ctx context.Context, who hookglass.Principal, fn func(*View) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return classify(fn(&View{ctx: ctx, q: db.read, dialect: db.dialect, who: who, Now: db.Now()}))
}

// Jot is Update for a single statement, which commits by itself: on PostgreSQL one round trip instead of three. fn neither announces
// nor enqueues.
func (db *DB) Jot(ctx context.Context, who hookglass.Principal, fn func(*Tx) error) error {
	if db.dialect != postgres || db.joined(ctx) != nil {
		return db.Update(ctx, who, fn)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return classify(fn(&Tx{View: View{ctx: ctx, q: db.write, dialect: db.dialect, who: who, Now: db.Now()}}))
}
