package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Of two updates that wait for each other the server ends one, which is done again behind the other.
func TestUpdatesThatWaitForEachOtherAreBothDone(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	a, b := newEndpoint(t, db), newEndpoint(t, db)
	var wg, begun sync.WaitGroup
	begun.Add(2)
	calls := make([]int, 2)
	for i, order := range [][]hookglass.Endpoint{{a, b}, {b, a}} {
		wg.Go(func() {
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				calls[i]++
				for n, e := range order {
					if err := tx.SaveEndpoint(&e); err != nil {
						return err
					}
					if n == 0 && calls[i] == 1 { // each has what the other wants next
						begun.Done()
						begun.Wait()
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if calls[0]+calls[1] < 3 {
		t.Errorf("no update was ended: %d and %d calls", calls[0], calls[1])
	}
}

// Who deletes a tag locks it, then the events that have it. Who gives it once more to one of these, which is locked, must
// not wait for the tag.
func TestATagIsGivenTwiceBesideItsDeletion(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	home := newTenant(t, db, "tags@example.com")
	e := endpointIn(t, db, home.first)
	event := several(t, db, e, 1)[0]
	give := func(tx *store.Tx) error { _, err := tx.TagEvent(string(e.ID), string(event.ID), "vip"); return err }
	writing(t, db, give)
	reading(t, db, func(v *store.View) error {
		tags, err := v.Tags(home.first.ID, 0, 0)
		if err != nil || len(tags) != 1 {
			t.Fatal(tags, err)
		}
		writing(t, db, func(tx *store.Tx) error {
			if _, err := tx.LockTag(tags[0].ID); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return db.Update(ctx, hookglass.System, give)
		})
		return nil
	})
}

// An update that is ended whatever others do is given up.
func TestAnUpdateThatIsAlwaysEndedIsGivenUp(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	calls := 0
	err := db.Update(t.Context(), hookglass.System, func(*store.Tx) error {
		calls++
		return &pgconn.PgError{Code: "40P01"}
	})
	var pg *pgconn.PgError
	if !hookglass.Is(err, hookglass.CodeUnavailable) || !errors.As(err, &pg) || calls < 2 || calls > 10 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// Nodes of an early version take the turn of a group before they count its events. One and a group that counted them,
// and waits for its turn, wait for each other: the server ends the one that looks first.
func TestCapturesThatAnEarlierNodeWaitsForAreStored(t *testing.T) {
	dsn := storetest.Migrated(t)
	db := storetest.Open(t, store.Config{URL: with(t, dsn, "deadlock_timeout", "1ms")})
	a, b := newEndpoint(t, db), newEndpoint(t, db)
	const count = "UPDATE endpoint_stats SET event_count = event_count + 1 WHERE endpoint = $1"
	look, between, earlier := newTurn(t, dsn), newTurn(t, dsn), newTurn(t, with(t, dsn, "deadlock_timeout", "1h"))
	between.run("BEGIN")
	between.run(count, b.Num)
	earlier.run("BEGIN")
	earlier.run("SELECT pg_advisory_xact_lock($1)", store.CaptureLock)
	events := []*hookglass.Event{newEvent(a, "a"), newEvent(b, "b")}
	var both sync.WaitGroup
	both.Go(func() {
		for _, err := range db.CaptureGroup(context.WithoutCancel(t.Context()), events, store.Work{}) {
			if err != nil {
				t.Error(err)
			}
		}
	})
	look.waiting(1)
	both.Go(func() {
		_, counted := earlier.conn.Exec(t.Context(), count, a.Num)
		_, ended := earlier.conn.Exec(t.Context(), "COMMIT")
		if err := errors.Join(counted, ended); err != nil {
			t.Error(err)
		}
	})
	look.waiting(2)
	between.run("COMMIT")
	both.Wait()
}

// waiting waits until so many transactions wait for the end of others.
func (o turn) waiting(others int) {
	for n := 0; n < others; {
		err := o.conn.QueryRow(o.t.Context(), `SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
			WHERE locktype = 'transactionid' AND NOT granted AND datname = current_database()`).Scan(&n)
		if err != nil {
			o.t.Fatal(err)
		}
	}
}
