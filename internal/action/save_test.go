package action_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

// Runs that end at the same time are stored together, each with the end of its own task. One whose event was deleted
// spoils none of the others, and its task finds out when it is looked at again.
func TestRunsThatEndTogetherAreStoredEachForItself(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.create(draft("One", step("tag", "Mark", `{"tag":"one"}`)))
		b.create(draft("Two", step("tag", "Mark", `{"tag":"two"}`), step("ignore", "Hide", `{"reason":"noise"}`)))
		const many = 40
		var events []*hookglass.Event
		for i := range many {
			events = append(events, b.capture(fmt.Sprintf(`{"n":%d}`, i)))
		}
		var tasks []store.Task
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
			tasks, err = tx.ClaimTasks(store.TaskActions, b.ep.Num, many, time.Minute)
			return err
		}))
		gone := events[7]
		must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEvent(string(b.ep.ID), string(gone.ID)) }))
		var mu sync.Mutex
		ended := make(map[int64]int)
		var working sync.WaitGroup
		for _, task := range tasks {
			for _, e := range events {
				if e.Seq == task.EventSeq {
					task.Event = e
				}
			}
			task.Ended = func() { mu.Lock(); defer mu.Unlock(); ended[task.EventSeq]++ }
			working.Go(func() {
				err := b.actions.Work(t.Context(), task)
				want := task.EventSeq == gone.Seq
				if want && hookglass.Is(err, hookglass.CodeRateLimited) {
					task.Claim++
					err = b.actions.Work(t.Context(), task)
				}
				if hookglass.Is(err, hookglass.CodeNotFound) != want || err != nil && !want {
					t.Errorf("event %d: %v", task.EventSeq, err)
				}
			})
		}
		working.Wait()
		if len(ended) != many-1 {
			t.Errorf("%d tasks ended themselves", len(ended))
		}
		for _, e := range events {
			if e == gone {
				continue
			}
			now := b.event(e)
			if fmt.Sprint(now.Tags) != "[one two]" || now.Ignored != "noise" {
				t.Errorf("event %d: %v %q", e.Seq, now.Tags, now.Ignored)
			}
		}
		must(t, b.db.View(t.Context(), hookglass.System, func(v *store.View) error {
			queues, err := v.TaskQueues(store.TaskActions)
			if len(queues) != 1 {
				t.Errorf("the task of the event that is gone is for who gave it to end: %+v", queues)
			}
			return err
		}))
	})
}

// What ended before a request goes out is stored before it does: the answer may take minutes.
func TestWhatEndedIsNotHeldUpByARequest(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		local := b.create(draft("Local", step("tag", "Mark", `{"tag":"t"}`)))
		for _, kind := range []string{"forward", "http_request"} {
			b.create(draft(kind, step(kind, "Out", `{"url":"https://app.example.com/in"}`)))
		}
		e := b.capture(body)
		stored := 0
		b.net.respond = func(n int, _ outbound.Request) (*outbound.Response, error) {
			for _, r := range b.runs(local) {
				if r.Status == hookglass.ActionRunCompleted {
					stored++
				}
			}
			return answer(200, `{}`), nil
		}
		b.work(e)
		if stored != 2 {
			t.Errorf("stored at %d of 2 requests", stored)
		}
	})
}

// Neither the run nor the deletion of its event waits for the other.
func TestARunThatIsStoredWhileItsEventIsDeletedGoesToo(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		gone, stays := b.capture(body), b.capture(body)
		save := func(e *hookglass.Event, meanwhile func() error) {
			t.Helper()
			now := time.Now().UTC()
			run := &store.RunSave{New: true, HeldRun: &store.HeldRun{ActionRun: hookglass.ActionRun{
				ID: hookglass.NewSortableID(hookglass.PrefixActionRun, now), EndpointNum: b.ep.Num, ActionNum: 1, ActionID: "act_1", EventSeq: e.Seq, EventID: e.ID,
				Status: hookglass.ActionRunCompleted, StartedAt: now, FinishedAt: now,
			}}}
			must(t, b.db.Update(context.Background(), hookglass.System, func(tx *store.Tx) error {
				if err := tx.SaveActionRuns([]*store.RunSave{run}); err != nil {
					return err
				}
				return meanwhile()
			}))
			if !run.Ours {
				t.Fatal("the run was not stored")
			}
		}
		nothing := func() error { return nil }
		remove := func() error {
			return b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEvent(string(b.ep.ID), string(gone.ID)) })
		}
		stored := 2
		if b.db.Postgres() {
			save(gone, remove)
		} else { // whose one writer does one after the other
			save(gone, nothing)
			must(t, remove())
			stored = 1
		}
		save(stays, nothing)
		count := func() (n int) {
			must(t, b.db.View(t.Context(), hookglass.System, func(v *store.View) error {
				runs, err := v.ActionRuns(string(b.ep.ID), "act_1", "", 10)
				n = len(runs)
				return err
			}))
			return n
		}
		if n := count(); n != stored {
			t.Fatalf("%d runs are stored, want %d", n, stored)
		}
		must(t, b.actions.Sweep(t.Context()))
		if n := count(); n != 1 {
			t.Errorf("%d runs are left, want that of the event that is left", n)
		}
	})
}

// A worker that was not seated in time has nothing to give back: the next one waits as long as all others.
func TestWhoLeavesWithoutASeatFreesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enter, leave := action.Seats(1)
		waits := func() time.Duration {
			began := time.Now()
			enter()
			return time.Since(began)
		}
		if d := waits(); d != 0 {
			t.Errorf("the first waited for %s", d)
		}
		for range 3 {
			if d := waits(); d == 0 {
				t.Error("there was a seat for two")
			}
			leave()
		}
		leave()
		if d := waits(); d != 0 {
			t.Errorf("nobody has the seat, and one waited for %s", d)
		}
	})
}
