package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

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

// Clients choose the ids of their attempts. Those of one endpoint are not those of another, and a report that comes again
// is the one that is there.
func TestAnAttemptIsOfItsEndpoint(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var nums []int64
		for range 2 {
			e := newEndpoint(t, db)
			events := several(t, db, e, 2)
			report := func(event *hookglass.Event) (stored *hookglass.DeliveryReport, err error) {
				err = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
					stored, err = tx.RecordReport(string(e.ID), string(event.ID), &hookglass.DeliveryReport{Version: 1, AttemptID: "1", StatusCode: 200})
					return err
				})
				return stored, err
			}
			for range 2 {
				r, err := report(events[0])
				if err != nil || r.EventSeq != events[0].Seq {
					t.Fatalf("%+v, %v", r, err)
				}
				nums = append(nums, r.Num)
			}
			if _, err := report(events[1]); !hookglass.Is(err, hookglass.CodeConflict) {
				t.Errorf("the same attempt at another event: %v", err)
			}
		}
		if nums[0] != nums[1] || nums[2] != nums[3] || nums[0] == nums[2] {
			t.Errorf("reports %v; want two, each of them twice", nums)
		}
	})
}

// What an outage left undelivered is what it counts: what was tried before it was noticed is not sent again for it. A
// span has all that no report calls delivered, from its first microsecond on.
func TestWhatAnOutageLeftIsWhatItCounts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		session := subscribed(t, db, "tsess_1", "node", e)
		var events []*hookglass.Event
		began := time.Now().Truncate(time.Microsecond)
		for i := range 4 {
			event := newEvent(e, "x")
			event.ReceivedAt = began.Add(time.Duration(i) * time.Microsecond)
			events = append(events, capture(t, db, event)...)
		}
		since := events[1].ReceivedAt
		report := func(event *hookglass.Event, status int) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error {
				_, err := tx.RecordReport(string(e.ID), string(event.ID), &hookglass.DeliveryReport{Version: 2, AttemptID: string(event.ID), StatusCode: status})
				return err
			})
		}
		report(events[1], 500)
		writing(t, db, func(tx *store.Tx) error {
			return tx.EndTunnels([]store.TunnelEnd{{Session: session, Lost: true, Since: tx.Now}})
		})
		report(events[2], 500)
		report(events[3], 200)
		gaps := missed(t, db, e)
		if want := (hookglass.GapCounts{Total: 3, Pending: 1, Failed: 1, Recovered: 1, Retained: 3}); len(gaps) != 1 || gaps[0].Counts != want {
			t.Fatalf("%+v", gaps)
		}
		reading(t, db, func(v *store.View) error {
			for _, c := range []struct {
				of   store.Undelivered
				want []*hookglass.Event
			}{
				{store.Undelivered{Gap: &gaps[0]}, []*hookglass.Event{events[0], events[2]}},
				{store.Undelivered{}, events[:3]},
				{store.Undelivered{Since: since}, events[1:3]},
			} {
				c.of.Limit = 10
				found, more, err := v.UndeliveredEvents(e.Num, c.of)
				if err != nil {
					return err
				}
				if more || !slices.EqualFunc(found, c.want, func(a, b *hookglass.Event) bool { return a.ID == b.ID }) {
					t.Errorf("%+v: %d events, more: %t", c.of, len(found), more)
				}
			}
			undelivered, all, err := v.CountUndelivered(e.Num, since)
			if undelivered != 2 || all != 3 {
				t.Errorf("%d of %d were not delivered", undelivered, all)
			}
			return err
		})
	})
}
