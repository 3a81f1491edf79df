package store_test

import (
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A link opens the event that it was made for, to who has its secret, until it ends.
func TestALinkIsOfItsEventAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		events := append(several(t, db, e, 2), several(t, db, other, 1)...)
		ends := time.Now().Add(time.Hour).Truncate(time.Microsecond)
		links := make([]hookglass.Share, len(events))
		secret := func(i int) []byte { return hashOf(string(events[i].ID)) }
		for i, ev := range events {
			links[i] = hookglass.Share{EndpointNum: ev.EndpointNum, EventSeq: ev.Seq, EventID: ev.ID, ExpiresAt: ends}
			writing(t, db, func(tx *store.Tx) error { return tx.CreateShare(&links[i], secret(i)) })
		}
		list := func(what string, wanted store.ShareList, at time.Time, want ...int) {
			t.Helper()
			reading(t, db, func(v *store.View) error {
				found, err := v.Shares(string(e.ID), wanted, at)
				ids := []int64{}
				for _, l := range found {
					ids = append(ids, l.ID)
				}
				places := []int64{}
				for _, i := range want {
					places = append(places, links[i].ID)
				}
				same(t, what, ids, err, places)
				return nil
			})
		}
		last := ends.Add(-time.Microsecond)
		list("all", store.ShareList{}, last, 1, 0)
		list("at their end", store.ShareList{}, ends)
		list("the newest", store.ShareList{Limit: 1}, last, 1)
		list("those before it", store.ShareList{Before: links[1].ID}, last, 0)
		list("those of one event", store.ShareList{Event: string(events[0].ID)}, last, 0)
		reading(t, db, func(v *store.View) error {
			for i := range links {
				found, err := v.ShareByHash(secret(i), last)
				same(t, "by its secret", found.ID, err, links[i].ID)
			}
			found, err := v.ShareByHash(secret(0), ends)
			missing(t, "at its end", found, err)
			found, err = v.ShareByHash(hashOf("a guess"), last)
			missing(t, "by a guess", found, err)
			return nil
		})

		remove := func(l hookglass.Share) error {
			return db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteShare(string(e.ID), l.ID) })
		}
		missing(t, "another's, to be deleted", "nothing", remove(links[2]))
		if err := remove(links[0]); err != nil {
			t.Error(err)
		}
		list("one was deleted", store.ShareList{}, last, 1)
		reading(t, db, func(v *store.View) error {
			found, err := v.ShareByHash(secret(2), last)
			same(t, "another's", found.ID, err, links[2].ID)
			return nil
		})
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), string(events[1].ID)) })
		list("its event was deleted", store.ShareList{}, last)
		late := several(t, db, e, 1)[0]
		links[0] = hookglass.Share{EndpointNum: e.Num, EventSeq: late.Seq, EventID: late.ID, ExpiresAt: ends}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateShare(&links[0], hashOf("late")) })
		list("there is one again", store.ShareList{}, last, 0)
		writing(t, db, func(tx *store.Tx) error { _, err := tx.DeleteAllEvents(string(e.ID)); return err })
		list("all events were deleted, and none is erased yet", store.ShareList{}, last)
	})
}
