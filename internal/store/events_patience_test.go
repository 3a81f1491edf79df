package store_test

import (
	"testing"
	"time"

	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A page that shall be there at once takes what a search finds by then, and goes on from there.
func TestAnImpatientSearchSaysWhereItGoesOn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		flood(t, db, e, time.Now().Add(-time.Hour), 4_000)
		q, err := query.Filter{EventType: "there.is.none"}.Parse(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		reading(t, db, func(v *store.View) error {
			pages := 0
			for before := int64(0); pages == 0 || before > 0; pages++ {
				page, err := v.Events(string(e.ID), store.EventList{Query: q, Limit: 25, Before: before, Patience: 1})
				if err != nil {
					return err
				}
				if len(page.Events) > 0 || page.Next >= before && before > 0 {
					t.Fatalf("%d events, and goes on at %d after %d", len(page.Events), page.Next, before)
				}
				before = page.Next
			}
			if pages < 2 {
				t.Errorf("it took %d pages, so it was patient", pages)
			}
			whole, err := v.Events(string(e.ID), store.EventList{Query: q, Limit: 25, Patience: time.Minute})
			if whole.Next != 0 {
				t.Errorf("a patient search goes on at %d", whole.Next)
			}
			return err
		})
	})
}
