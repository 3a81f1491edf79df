package store_test

import (
	"fmt"
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A client may report on an event again and again. The newest reports are kept, and those on other events all the same.
func TestReportsOfAnEventAreBoundedByThemselves(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		events := several(t, db, e, 2)
		report := func(tx *store.Tx, event *hookglass.Event, attempt string) error {
			_, err := tx.RecordReport(string(e.ID), string(event.ID), &hookglass.DeliveryReport{Version: 1, AttemptID: attempt, StatusCode: 500})
			return err
		}
		writing(t, db, func(tx *store.Tx) error {
			if err := report(tx, events[0], "other"); err != nil {
				return err
			}
			for i := range 102 {
				if err := report(tx, events[1], fmt.Sprint(i)); err != nil {
					return err
				}
			}
			return nil
		})
		reading(t, db, func(v *store.View) error {
			others, err := v.Reports(events[0].Seq, 200)
			if err != nil {
				return err
			}
			all, err := v.Reports(events[1].Seq, 200)
			if len(others) != 1 || len(all) != 100 || all[0].AttemptID != "101" || all[99].AttemptID != "2" {
				t.Errorf("%d reports, and %d on the other event; want the newest 100, and 1", len(all), len(others))
			}
			return err
		})
	})
}
