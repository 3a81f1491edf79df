package store_test

import (
	"errors"
	"sync"
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A step finds its tag, or makes it, though somebody deletes it in the same moment.
func TestATagThatIsRequiredIsThere(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		home := newTenant(t, db, "tags@example.com")
		require := func() (id int64, err error) {
			err = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
				id, err = tx.RequireTag(home.first.ID, "vip")
				return err
			})
			return id, err
		}
		for range 100 {
			id, err := require()
			if err != nil {
				t.Fatal(err)
			}
			var both sync.WaitGroup
			var deleting, requiring error
			both.Go(func() {
				deleting = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
					if _, err := tx.LockTag(id); err != nil {
						return err
					}
					return tx.DeleteTag(id)
				})
			})
			both.Go(func() { _, requiring = require() })
			both.Wait()
			if err := errors.Join(deleting, requiring); err != nil {
				t.Fatal(err)
			}
		}
	})
}
