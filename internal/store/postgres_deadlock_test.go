package store_test

import (
	"errors"
	"sync"
	"testing"

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
