package store_test

import (
	"fmt"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Releases go with their mail, however it goes: by itself, with all of the endpoint, by its age, with its endpoint.
func TestReleasesGoWithTheirEvents(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		begin := func(of *hookglass.Event) *hookglass.Release {
			t.Helper()
			r := &hookglass.Release{ID: hookglass.NewSortableID(hookglass.PrefixRelease, time.Now()), EndpointNum: of.EndpointNum, EventSeq: of.Seq, EventID: of.ID, To: []string{"dev@example.com"}}
			writing(t, db, func(tx *store.Tx) error { return tx.BeginRelease(r) })
			return r
		}
		rows := func(want string) {
			t.Helper()
			var have []int64
			reading(t, db, func(v *store.View) (err error) {
				have, err = v.Ints("SELECT event FROM releases ORDER BY event")
				return err
			})
			if fmt.Sprint(have) != want {
				t.Errorf("there are releases of %v, want %s", have, want)
			}
		}
		var events []*hookglass.Event
		for i := range 4 {
			event := newEvent(e, fmt.Sprint(i))
			event.ReceivedAt = event.ReceivedAt.Add(time.Duration(i-10) * time.Minute)
			events = append(events, event)
		}
		capture(t, db, events...)
		kept := several(t, db, other, 1)[0]
		numbered(t, db, append(events, kept)...)
		for _, event := range append(events, kept) {
			begin(event)
		}
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), string(events[1].ID)) })
		rows(fmt.Sprint([]int64{events[0].Seq, events[2].Seq, events[3].Seq, kept.Seq}))
		writing(t, db, func(tx *store.Tx) error {
			_, _, err := tx.PurgeEvents(store.PurgeDue{EndpointNum: e.Num, Cutoff: events[2].ReceivedAt.Add(-time.Second)})
			return err
		})
		rows(fmt.Sprint([]int64{events[2].Seq, events[3].Seq, kept.Seq}))

		// One whose end is not stored yet finds nothing any more, and one that is to begin does not.
		late := &hookglass.Release{ID: "rel_late", EndpointNum: e.Num, EventSeq: events[0].Seq, EventID: events[0].ID, To: []string{"dev@example.com"}}
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.BeginRelease(late) })
		if !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("%v", err)
		}
		gone := begin(events[2])
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteEndpoint(&e) })
		erase := func() {
			t.Helper()
			for done := false; !done; {
				writing(t, db, func(tx *store.Tx) (err error) {
					done, err = tx.EraseEvents(e.Num)
					return err
				})
			}
		}
		erase()
		rows(fmt.Sprint([]int64{kept.Seq}))
		gone.Status = hookglass.ReleaseSent
		writing(t, db, func(tx *store.Tx) error { return tx.FinishRelease(gone) })
		rows(fmt.Sprint([]int64{kept.Seq}))
	})
}

// The end of a release is written once.
func TestAReleaseEndsOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		event := several(t, db, e, 1)[0]
		numbered(t, db, event)
		r := hookglass.Release{ID: "rel_one", EndpointNum: e.Num, EventSeq: event.Seq, EventID: event.ID, To: []string{"dev@example.com", "lea@example.com"}}
		writing(t, db, func(tx *store.Tx) error { return tx.BeginRelease(&r) })
		first, second := r, r
		first.Relayed = hookglass.Relayed{Status: hookglass.ReleaseUnknown, Failure: &hookglass.Failure{Code: "relay_no_answer", Message: "Nobody knows."}}
		second.Relayed = hookglass.Relayed{Status: hookglass.ReleaseSent, Code: 250, Message: "ok"}
		writing(t, db, func(tx *store.Tx) error { return tx.FinishRelease(&first) })
		writing(t, db, func(tx *store.Tx) error { return tx.FinishRelease(&second) })
		reading(t, db, func(v *store.View) error {
			all, err := v.Releases(string(e.ID), string(event.ID), 0, 10)
			if err != nil || len(all) != 1 || all[0].Status != hookglass.ReleaseUnknown || *all[0].Failure != *first.Failure || all[0].Code != 0 || len(all[0].To) != 2 || !all[0].FinishedAt.Equal(first.FinishedAt) {
				t.Errorf("%+v, %v", all, err)
			}
			return nil
		})
	})
}

// numbered gives events the numbers that they have in the database.
func numbered(t *testing.T, db *store.DB, events ...*hookglass.Event) {
	t.Helper()
	for _, e := range events {
		reading(t, db, func(v *store.View) error {
			n, err := v.Ints("SELECT seq FROM events WHERE id = $1", string(e.ID))
			if err == nil {
				e.Seq = n[0]
			}
			return err
		})
	}
}
