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

// A list shows at each event what failed of its deliveries and action runs, and readers of the list hear of it.
func TestWhatFailedOfAnEventIsCountedAndAnnounced(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		heard := db.Listen(store.TopicEvents(e.Num))
		defer heard.Close()
		// PostgreSQL tells its own node again, at some time: there, news may be older than do.
		announced := func(do func(tx *store.Tx) error) bool {
			t.Helper()
			before := heard.Heard()
			writing(t, db, do)
			return heard.Heard() > before
		}
		var targets [2]hookglass.ForwardingTarget
		var events []*hookglass.Event
		for i := range targets {
			targets[i] = hookglass.ForwardingTarget{EndpointNum: e.Num, EndpointID: e.ID, Name: fmt.Sprint(i), URL: "https://a.example.com", Enabled: true, Timeout: time.Second}
			writing(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&targets[i]) })
		}
		for range 5 {
			events = append(events, newEvent(e, "body"))
			if err := db.CaptureWith(t.Context(), 0, events[len(events)-1], store.Work{Forward: true}); err != nil {
				t.Fatal(err)
			}
		}
		counts := func(want ...int) {
			t.Helper()
			reading(t, db, func(v *store.View) error {
				page, err := v.Events(string(e.ID), store.EventList{Limit: 10})
				if err == nil {
					err = v.LoadFailed(page.Events)
				}
				var got []int
				for _, ev := range slices.Backward(page.Events) {
					got = append(got, ev.Failed)
				}
				if !slices.Equal(got, want) {
					t.Errorf("failed: %v, want %v", got, want)
				}
				return err
			})
		}
		counts(0, 0, 0, 0, 0)

		settle := func(target int64, state hookglass.ForwardState) func(tx *store.Tx) error {
			return func(tx *store.Tx) error {
				claimed, err := tx.ClaimForwards(target, tx.Now.Add(time.Hour), 3, time.Minute)
				for i := range claimed {
					c := &claimed[i]
					c.State, c.FinishedAt, c.Attempts = state, tx.Now, []hookglass.ForwardAttempt{{At: tx.Now, StatusCode: 500}}
				}
				if err == nil {
					_, err = tx.SettleForwards(claimed)
				}
				return err
			}
		}
		if announced(settle(targets[0].ID, hookglass.ForwardDelivered)) && !db.Postgres() {
			t.Error("deliveries that arrived are announced")
		}
		if !announced(settle(targets[1].ID, hookglass.ForwardFailed)) {
			t.Error("deliveries that failed are not announced")
		}
		counts(1, 1, 1, 0, 0)
		if !announced(func(tx *store.Tx) error {
			f, err := tx.LockForward(targets[1], events[0].ID)
			if err == nil {
				err = tx.ResendForwards([]hookglass.Forward{f})
			}
			return err
		}) {
			t.Error("a delivery that is sent again is not announced")
		}
		counts(0, 1, 1, 0, 0)

		run := func(event int, action int64, status hookglass.RunStatus) *store.RunSave {
			h := &store.HeldRun{ActionRun: hookglass.ActionRun{
				ID: hookglass.NewSortableID(hookglass.PrefixActionRun, time.Now()), EndpointNum: e.Num, ActionNum: action, ActionID: fmt.Sprint("act_", action),
				EventSeq: events[event].Seq, EventID: events[event].ID, Status: status, StartedAt: time.Now(),
			}}
			if status.Final() {
				h.FinishedAt = h.StartedAt
			}
			return &store.RunSave{HeldRun: h, New: true, Lease: time.Minute}
		}
		save := func(saves ...*store.RunSave) func(tx *store.Tx) error {
			return func(tx *store.Tx) error { return tx.SaveActionRuns(saves) }
		}
		long := run(4, 1, hookglass.ActionRunRunning)
		if announced(save(run(3, 1, hookglass.ActionRunCompleted), long)) && !db.Postgres() {
			t.Error("runs are announced that did not end badly")
		}
		if !announced(save(run(1, 1, hookglass.ActionRunFailed), run(3, 2, hookglass.ActionRunStopped))) {
			t.Error("runs that failed at once are not announced")
		}
		counts(0, 2, 1, 1, 0)
		long.New, long.Status, long.FinishedAt = false, hookglass.ActionRunFailed, time.Now()
		if !announced(save(long)) {
			t.Error("a run that failed later is not announced")
		}
		counts(0, 2, 1, 1, 1)

		report := func(event, status int, news bool) {
			t.Helper()
			told := announced(func(tx *store.Tx) error {
				_, err := tx.RecordReport(string(e.ID), string(events[event].ID), &hookglass.DeliveryReport{Version: 1, AttemptID: fmt.Sprint(event, status), StatusCode: status})
				return err
			})
			if told != news && !db.Postgres() {
				t.Errorf("a report of %d is announced: %t", status, told)
			}
		}
		report(0, 200, false)
		report(0, 502, true)
		report(4, 502, true)
		report(4, 204, true)
		counts(1, 2, 1, 1, 1) // the newest report tells
	})
}
