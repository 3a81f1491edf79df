package store_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Whatever the size of a group, and whether what follows is handed over or waits, a delivery with a key waits to be
// judged, and all but the first with it are duplicates. Without a key it is handed over as ever.
func TestADeliveryIsStoredWithItsKey(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		targets := make([]hookglass.ForwardingTarget, 3)
		writing(t, db, func(tx *store.Tx) error {
			for i := range targets {
				targets[i] = hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "there", URL: "http://127.0.0.1:1/", Enabled: true, Timeout: time.Second}
				if i < 2 {
					targets[i].Dedupe = hookglass.Dedupe{By: hookglass.DedupeBody, Window: time.Hour}
				}
				if err := tx.CreateForwardingTarget(&targets[i]); err != nil {
					return err
				}
			}
			return nil
		})
		for round, n := range []int{1, 3, 7, 21} { // alone, inserted, handed over or copied
			for _, taken := range []bool{false, true} {
				desk := newDesk[store.HandedForward](30 * time.Second)
				if taken {
					db.HandForwards(desk)
				}
				key := func(of byte) hookglass.DeliveryKey {
					return hookglass.DedupeBody.Key([]byte{byte(round), of}, []byte(t.Name()))
				}
				if taken {
					key = func(of byte) hookglass.DeliveryKey { return hookglass.DedupeID.Key([]byte{byte(round), of}) }
				}
				works := []store.Work{
					{Forward: true, Keys: []store.TargetKey{{TargetID: targets[0].ID, Key: key(0)}, {TargetID: targets[1].ID, Key: key(1)}}},
					{Forward: true, Keys: []store.TargetKey{{TargetID: targets[0].ID, Key: key(0)}}, But: []int64{targets[1].ID}},
					{Forward: true},
				}
				events := assortment(n, e, other)
				for i, err := range db.CaptureGroup(t.Context(), events, works...) {
					if err != nil {
						t.Fatalf("event %d of %d: %v", i, n, err)
					}
				}
				first := map[hookglass.DeliveryKey]hookglass.EventID{}
				for i, ev := range events {
					for k, target := range targets {
						if ev.EndpointNum != target.EndpointNum {
							continue
						}
						var f hookglass.Forward
						var d map[int64]hookglass.Duplicate
						var there bool
						reading(t, db, func(v *store.View) (err error) {
							f, _, err = v.Forward(string(ev.EndpointID), target.ID, ev.ID)
							if hookglass.Is(err, hookglass.CodeNotFound) {
								return nil
							}
							there = true
							if err == nil {
								d, err = v.Duplicates([]int64{f.Num})
							}
							return err
						})
						work, what := works[i%len(works)], hookglass.DeliveryKey{}
						for _, of := range work.Keys {
							if of.TargetID == target.ID {
								what = of.Key
							}
						}
						if there != !(k == 1 && len(work.But) > 0) {
							t.Errorf("event %d of %d at target %d: there %t", i, n, k, there)
						}
						if !there {
							continue
						}
						keyed := what != hookglass.DeliveryKey{}
						want := hookglass.Duplicate{}
						if keyed && first[what] != "" {
							want = hookglass.Duplicate{Of: first[what], State: hookglass.ForwardPending}
						} else if keyed {
							first[what] = ev.ID
						}
						if got := d[f.Num]; got.Of != want.Of || got.State != want.State {
							t.Errorf("event %d of %d, taken %t, at target %d: %+v, want %+v", i, n, taken, k, d[f.Num], want)
						}
						hand := taken && n < 8 && ev.Type == hookglass.EventWebhook
						if state := f.State; keyed && state != hookglass.ForwardPending || !keyed && (state == hookglass.ForwardSending) != hand {
							t.Errorf("event %d of %d, taken %t, at target %d: keyed %t and %s", i, n, taken, k, keyed, state)
						}
						if !hand {
							continue
						}
						told := false
						for _, h := range desk.of(t, ev.ID) {
							told = told || h.Queue.TargetID == target.ID && (h.Claim == 0) == keyed
						}
						if !told {
							t.Errorf("event %d of %d: its delivery to target %d was not told of", i, n, k)
						}
					}
				}
				db.HandForwards(nil)
				for _, ev := range events { // keys go with their events
					writing(t, db, func(tx *store.Tx) error { return tx.DeleteEvent(string(ev.EndpointID), string(ev.ID)) })
				}
				reading(t, db, func(v *store.View) error {
					left, err := v.Ints("SELECT event FROM forward_keys")
					if len(left) > 0 {
						t.Errorf("keys of the events %v are left", left)
					}
					return err
				})
			}
		}
	})
}

// What is skipped because its target is disabled is the first of nothing: look-ups do not read its key, however many
// such deliveries have the same.
func TestSkippedDeliveriesLoseTheirKeys(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		target := hookglass.ForwardingTarget{
			EndpointNum: e.Num, Name: "there", URL: "http://127.0.0.1:1/", Enabled: true, Timeout: time.Second,
			Dedupe: hookglass.Dedupe{By: hookglass.DedupeBody, Window: time.Hour},
		}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		work := store.Work{Forward: true, Keys: []store.TargetKey{{TargetID: target.ID, Key: hookglass.DedupeBody.Key([]byte("a"))}}}
		for _, err := range db.CaptureGroup(t.Context(), assortment(3, e, e), work, work, work) {
			if err != nil {
				t.Fatal(err)
			}
		}
		writing(t, db, func(tx *store.Tx) error {
			if n, err := tx.SkipForwards(target.ID, tx.Now, 2); err != nil || n != 2 {
				t.Errorf("%d deliveries were skipped: %v", n, err)
			}
			return nil
		})
		reading(t, db, func(v *store.View) error {
			keys, err := v.Ints("SELECT f.num FROM forward_keys k JOIN forwards f ON f.num = k.forward WHERE k.key IS NOT NULL")
			waiting, err2 := v.Ints("SELECT num FROM forwards WHERE state = 'pending'")
			if len(keys) != 1 || !slices.Equal(keys, waiting) {
				t.Errorf("keys of the deliveries %v are left, and %v wait", keys, waiting)
			}
			return cmp.Or(err, err2)
		})
	})
}

// Several targets may get a webhook only once, by the same id of it. Each is asked by itself, for as long as its own
// window, and what was deleted is the first of nothing.
func TestADuplicateIsOneOfItsTarget(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		newEndpoint(t, db)
		e := newEndpoint(t, db)
		target := func(window time.Duration) (target hookglass.ForwardingTarget) {
			target = hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "there", URL: "http://127.0.0.1:1/", Enabled: true, Timeout: time.Second, Dedupe: hookglass.Dedupe{By: hookglass.DedupeID, Window: window}}
			writing(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
			return target
		}
		brief, long := target(time.Minute), target(time.Hour)
		key := hookglass.DedupeID.Key([]byte("msg_1"))
		now := time.Now()
		arrive := func(at time.Duration, to ...hookglass.ForwardingTarget) *hookglass.Event {
			t.Helper()
			ev, work := newEvent(e, "x"), store.Work{Forward: true}
			ev.ReceivedAt = now.Add(at)
			for _, target := range []hookglass.ForwardingTarget{brief, long} {
				if slices.ContainsFunc(to, func(t hookglass.ForwardingTarget) bool { return t.ID == target.ID }) {
					work.Keys = append(work.Keys, store.TargetKey{TargetID: target.ID, Key: key})
				} else {
					work.But = append(work.But, target.ID)
				}
			}
			if err := db.CaptureWith(t.Context(), 0, ev, work); err != nil {
				t.Fatal(err)
			}
			return ev
		}
		delivery := func(ev *hookglass.Event, to hookglass.ForwardingTarget) (num int64) {
			t.Helper()
			reading(t, db, func(v *store.View) error {
				f, _, err := v.Forward(string(e.ID), to.ID, ev.ID)
				num = f.Num
				return err
			})
			return num
		}
		is := func(what string, ev *hookglass.Event, to hookglass.ForwardingTarget, first hookglass.EventID) {
			t.Helper()
			num := delivery(ev, to)
			reading(t, db, func(v *store.View) error {
				found, err := v.Duplicates([]int64{num})
				if found[num].Of != first {
					t.Errorf("%s is the same as %q, want %q", what, found[num].Of, first)
				}
				return err
			})
		}
		one := arrive(-10*time.Minute, brief)
		two := arrive(-10*time.Minute+10*time.Second, brief, long)
		three := arrive(0, brief, long)
		four := arrive(time.Second, long)
		is("the second", two, brief, one.ID)
		is("what another target got", two, long, "")
		is("what came after the window", three, brief, "")
		is("what came within the other's", three, long, two.ID)
		is("what the first target never got", four, long, two.ID)

		// The duplicates wait for the first, which arrives.
		settle := func(to hookglass.ForwardingTarget, delivered ...*hookglass.Event) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error {
				claimed, err := tx.ClaimForwards(to.ID, now.Add(time.Hour), 10, time.Hour)
				if err != nil {
					return err
				}
				for i := range claimed {
					c := &claimed[i]
					if c.State, c.NextAt = hookglass.ForwardPending, now.Add(2*time.Hour); slices.ContainsFunc(delivered, func(ev *hookglass.Event) bool { return ev.Seq == c.EventSeq }) {
						c.State, c.NextAt, c.FinishedAt = hookglass.ForwardDelivered, time.Time{}, now
					} else {
						c.Duplicate = &hookglass.Duplicate{Of: two.ID, State: hookglass.ForwardSending}
					}
				}
				if _, err := tx.SettleForwards(claimed); err != nil {
					return err
				}
				return tx.MarkDuplicates(claimed)
			})
		}
		settle(brief, one, two, three)
		settle(long, two)
		reading(t, db, func(v *store.View) error {
			first, waits := delivery(two, long), delivery(three, long)
			underway, err := v.Underway([]int64{first, waits})
			if !slices.Equal(underway, []int64{waits}) {
				t.Errorf("%v are under way of %d, which has arrived, and %d", underway, first, waits)
			}
			return err
		})
		woken := func(what string, by int64, want ...int64) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error {
				n, err := tx.WakeDuplicates([]int64{by}, tx.Now)
				due, err2 := tx.Ints("SELECT num FROM forwards WHERE state = 'pending' AND due_at = " + fmt.Sprint(tx.Now.UnixMicro()))
				if n != int64(len(want)) || !slices.Equal(due, want) {
					t.Errorf("%s wakes %d: %v, want %v", what, n, due, want)
				}
				return cmp.Or(err, err2)
			})
		}
		woken("the end at another target", delivery(three, brief))
		woken("the end of the first", delivery(two, long), delivery(three, long))

		writing(t, db, func(tx *store.Tx) error {
			_, err := tx.DeleteAllEvents(string(e.ID))
			return err
		})
		is("what came after the others were deleted", arrive(2*time.Second, long), long, "")
	})
}
