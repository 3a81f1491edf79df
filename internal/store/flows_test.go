package store_test

import (
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A node that holds the flows of many accounts keeps all of their leases: a statement has only so many arguments.
func TestLeasesOfManyFlowsAreKept(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		held := make([]store.HeldFlow, 40_000)
		for i := range held {
			held[i] = store.HeldFlow{Flow: hookglass.Flow{Num: int64(i + 1000)}, Claim: 1}
		}
		writing(t, db, func(tx *store.Tx) error {
			still, err := tx.ExtendFlows(held, time.Minute)
			if len(still) > 0 {
				t.Errorf("%d flows are held that there are not", len(still))
			}
			return err
		})
		writing(t, db, func(tx *store.Tx) error { return tx.ReleaseFlows(held) })
	})
}
