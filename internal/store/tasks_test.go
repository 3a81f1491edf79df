package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// captureFor captures an event with tasks of some kinds.
func captureFor(t *testing.T, db *store.DB, e hookglass.Endpoint, kinds ...store.TaskKind) *hookglass.Event {
	t.Helper()
	ev := newEvent(e, "body")
	if err := db.CaptureWith(t.Context(), 0, ev, store.Work{Tasks: kinds}); err != nil {
		t.Fatal(err)
	}
	return ev
}

func claimTasks(t *testing.T, db *store.DB, kind store.TaskKind, e hookglass.Endpoint, limit int, lease time.Duration) (claimed []store.Task) {
	t.Helper()
	writing(t, db, func(tx *store.Tx) (err error) {
		claimed, err = tx.ClaimTasks(kind, e.Num, limit, lease)
		return err
	})
	return claimed
}

func eventsOf(tasks []store.Task) (seqs []int64) {
	for _, task := range tasks {
		seqs = append(seqs, task.EventSeq)
	}
	slices.Sort(seqs) // a claim is of some tasks together, in no order
	return seqs
}

// dueIn is how long it is until each task of a kind at an endpoint is due, by event.
func dueIn(t *testing.T, db *store.DB) map[int64]time.Duration {
	t.Helper()
	due := make(map[int64]time.Duration)
	reading(t, db, func(v *store.View) error {
		events, err := v.Ints("SELECT event FROM event_tasks ORDER BY num")
		if err != nil {
			return err
		}
		times, err := v.Ints("SELECT due_at FROM event_tasks ORDER BY num")
		for i := range events {
			due[events[i]] = time.Until(time.UnixMicro(times[i])).Round(time.Minute)
		}
		return err
	})
	return due
}

func TestTasksAreClaimedByKindAndEndpointTheFirstDueFirst(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		third := captureFor(t, db, e, store.TaskActions, store.TaskSchema)
		first := captureFor(t, db, e, store.TaskActions)
		second := captureFor(t, db, e, store.TaskActions)
		later := captureFor(t, db, e, store.TaskActions)
		captureFor(t, db, other, store.TaskActions)
		for i, ev := range []*hookglass.Event{first, second, third} {
			writing(t, db, func(tx *store.Tx) error {
				return tx.Exec("UPDATE event_tasks SET due_at = $1 WHERE event = $2", i+1, ev.Seq)
			})
		}
		writing(t, db, func(tx *store.Tx) error {
			return tx.Exec("UPDATE event_tasks SET due_at = due_at + 3600000000 WHERE event = $1", later.Seq)
		})
		for _, want := range [][]int64{{first.Seq, second.Seq}, {third.Seq}, nil} {
			if want != nil {
				slices.Sort(want)
			}
			if got := eventsOf(claimTasks(t, db, store.TaskActions, e, 2, time.Hour)); !slices.Equal(got, want) {
				t.Errorf("claimed those of %v, want %v", got, want)
			}
		}
		if got := eventsOf(claimTasks(t, db, store.TaskSchema, e, 9, time.Hour)); !slices.Equal(got, []int64{third.Seq}) {
			t.Errorf("claimed those of %v of another kind, want that of %d", got, third.Seq)
		}
		if n := len(claimTasks(t, db, store.TaskActions, other, 9, time.Hour)); n != 1 {
			t.Errorf("claimed %d of another endpoint, want 1", n)
		}
	})
}

func TestATaskIsAgainDueWhenItsLeaseEnds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		captureFor(t, db, e, store.TaskActions)
		last := store.Task{}
		for lost := range 3 {
			claimed := claimTasks(t, db, store.TaskActions, e, 9, 0)
			if len(claimed) != 1 || claimed[0].Lost != lost || claimed[0].Claim <= last.Claim {
				t.Fatalf("claimed %+v; want one that was lost %d times, and a claim of its own", claimed, lost)
			}
			last = claimed[0]
		}
		writing(t, db, func(tx *store.Tx) error { return tx.DeferTask(last, 0) })
		claimed := claimTasks(t, db, store.TaskActions, e, 9, time.Hour)
		if len(claimed) != 1 || claimed[0].Lost != 2 {
			t.Fatalf("claimed %+v; want one that was lost no more often for being given back", claimed)
		}
		if again := claimTasks(t, db, store.TaskActions, e, 9, time.Hour); len(again) > 0 {
			t.Errorf("%+v is claimed while its lease lasts", again)
		}
	})
}

// Of two who had a task, the one whose lease ended says nothing of it any more.
func TestOnlyWhoHasATaskSaysWhatBecameOfIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		for range 3 {
			captureFor(t, db, e, store.TaskActions)
		}
		lost := claimTasks(t, db, store.TaskActions, e, 9, 0)
		held := claimTasks(t, db, store.TaskActions, e, 9, time.Hour)
		if len(lost) != 3 || len(held) != 3 {
			t.Fatalf("%d and %d were claimed of 3", len(lost), len(held))
		}
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.EndTasks(lost); err != nil {
				return err
			}
			for _, task := range lost {
				if err := tx.DeferTask(task, 0); err != nil {
					return err
				}
			}
			return nil
		})
		for seq, wait := range dueIn(t, db) {
			if wait != time.Hour {
				t.Errorf("the task of event %d is due in %v, want its lease's hour", seq, wait)
			}
		}
		byNum := func(a, b store.Task) int { return int(a.Num - b.Num) }
		slices.SortFunc(held, byNum)
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.DeferTask(held[1], 2*time.Hour); err != nil {
				return err
			}
			return tx.EndTasks(held[:1])
		})
		due := dueIn(t, db)
		if len(due) != 2 || due[held[1].EventSeq] != 2*time.Hour || due[held[2].EventSeq] != time.Hour {
			t.Errorf("due are %v; want the second in 2 hours and the third in one", due)
		}
		// The two have one event and one number of claims, but they are two tasks.
		writing(t, db, func(tx *store.Tx) error {
			return tx.EndTasks([]store.Task{{Num: held[2].Num, Claim: held[2].Claim + 1}})
		})
		if due := dueIn(t, db); len(due) != 2 {
			t.Errorf("a claim that nobody has ended a task: %v are left", due)
		}
		writing(t, db, func(tx *store.Tx) error {
			for claim, want := range map[int64]bool{held[2].Claim - 1: false, held[2].Claim: true} {
				if ended, err := tx.EndTask(store.Task{Num: held[2].Num, Claim: claim}); err != nil || ended != want {
					t.Errorf("by claim %d of %d it is ended: %t, %v", claim, held[2].Claim, ended, err)
				}
			}
			return nil
		})
		if due := dueIn(t, db); len(due) != 1 || due[held[1].EventSeq] != 2*time.Hour {
			t.Errorf("due are %v; want the second alone", due)
		}
	})
}

func TestTheLeasesThatAreRenewedAreThoseOfWhoHasThem(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		var events []*hookglass.Event
		for range 3 {
			events = append(events, captureFor(t, db, e, store.TaskActions))
		}
		claimed := claimTasks(t, db, store.TaskActions, e, 9, time.Hour)
		task := func(i int) store.Task {
			return claimed[slices.IndexFunc(claimed, func(task store.Task) bool { return task.EventSeq == events[i].Seq })]
		}
		// The second is another's, and the third was given back meanwhile.
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.DeferTask(task(2), 10*time.Minute); err != nil {
				return err
			}
			return tx.ExtendTasks([]int64{task(0).Num, task(2).Num}, 3*time.Hour)
		})
		due := dueIn(t, db)
		for i, want := range []time.Duration{3 * time.Hour, time.Hour, 10 * time.Minute} {
			if got := due[events[i].Seq]; got != want {
				t.Errorf("task %d is due in %v, want %v", i, got, want)
			}
		}
	})
}

// Of the tasks that wait at an endpoint the first that is due says when there is something to do.
func TestAQueueIsDueWithItsFirstTask(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		e, temporary := endpointIn(t, db, n.first), newEndpoint(t, db)
		for range 2 {
			captureFor(t, db, e, store.TaskActions)
		}
		captureFor(t, db, temporary, store.TaskActions)
		captureFor(t, db, temporary, store.TaskSchema)
		claimTasks(t, db, store.TaskActions, e, 1, time.Hour)
		queues := func(kind store.TaskKind) (all []store.TaskQueue) {
			reading(t, db, func(v *store.View) (err error) { all, err = v.TaskQueues(kind); return err })
			return all
		}
		all := queues(store.TaskActions)
		if len(all) != 2 || all[0].EndpointNum != e.Num || all[0].AccountID != n.account.ID || all[0].Wait > 0 ||
			all[1].EndpointNum != temporary.Num || all[1].AccountID != 0 || all[1].Wait > 0 {
			t.Errorf("queues %+v; want that of the account and that of the temporary endpoint, both due", all)
		}
		claimTasks(t, db, store.TaskActions, e, 1, 2*time.Hour)
		if all := queues(store.TaskActions); len(all) != 2 || all[0].Wait.Round(time.Minute) != time.Hour {
			t.Errorf("queues %+v; want the first due when the lease that ends first does", all)
		}
		if all := queues(store.TaskSchema); len(all) != 1 || all[0].EndpointNum != temporary.Num {
			t.Errorf("queues of another kind: %+v", all)
		}
	})
}

// What waits for its time is not sooner for that: the process that died had it not in hand. On PostgreSQL other nodes
// may have their tasks in hand.
func TestAProcessThatDiedLeavesWhatItHadToTheNextAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, now := newEndpoint(t, db), db.Now()
		target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "n", URL: "https://a.example.com", Enabled: true, Timeout: time.Second}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		kinds := []store.TaskKind{store.TaskActions, store.TaskSignature, store.TaskVerdict, store.TaskSchema}
		for range 2 {
			ev := newEvent(e, "body")
			if err := db.CaptureWith(t.Context(), 0, ev, store.Work{Forward: true, Tasks: kinds}); err != nil {
				t.Fatal(err)
			}
		}
		var waits []store.ClaimedForward
		writing(t, db, func(tx *store.Tx) (err error) {
			if waits, err = tx.ClaimForwards(target.ID, now.Add(time.Hour), 2, time.Hour); err != nil {
				return err
			}
			waits[0].State, waits[0].NextAt = hookglass.ForwardPending, now.Add(2*time.Hour)
			_, err = tx.SettleForwards(waits[:1])
			return err
		})
		for _, kind := range kinds {
			claimed := claimTasks(t, db, kind, e, 2, time.Hour)
			writing(t, db, func(tx *store.Tx) error { return tx.DeferTask(claimed[0], time.Hour) })
		}
		if err := db.EndLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := 1
		if db.Postgres() {
			want = 0
		}
		for _, kind := range kinds {
			if n := len(claimTasks(t, db, kind, e, 2, time.Hour)); n != want {
				t.Errorf("%d tasks of kind %s are due, want %d", n, kind, want)
			}
		}
		writing(t, db, func(tx *store.Tx) error {
			claimed, err := tx.ClaimForwards(target.ID, now.Add(time.Minute), 2, time.Hour)
			if len(claimed) != want || want == 1 && claimed[0].Num != waits[1].Num {
				t.Errorf("%d deliveries are due, want %d, the one that was being sent", len(claimed), want)
			}
			return err
		})
	})
}

// What was put off before the clock was set back by an hour does not wait for that hour. What was put off for as long
// as tasks are does.
func TestTasksThatAreDueTooLateAreRecalled(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		for _, e := range []hookglass.Endpoint{e, e, other} {
			captureFor(t, db, e, store.TaskActions)
		}
		here, there := claimTasks(t, db, store.TaskActions, e, 2, time.Minute), claimTasks(t, db, store.TaskActions, other, 1, time.Minute)
		writing(t, db, func(tx *store.Tx) error {
			return errors.Join(tx.DeferTask(here[0], time.Hour), tx.DeferTask(here[1], 10*time.Minute), tx.DeferTask(there[0], 10*time.Minute))
		})
		late := func() (endpoints []int64) {
			reading(t, db, func(v *store.View) (err error) { endpoints, err = v.LateTasks(store.TaskActions); return err })
			return endpoints
		}
		if found := late(); !slices.Equal(found, []int64{e.Num}) {
			t.Errorf("endpoints %v have late tasks, want %d", found, e.Num)
		}
		writing(t, db, func(tx *store.Tx) error {
			return errors.Join(tx.RecallTasks(store.TaskActions, e.Num), tx.RecallTasks(store.TaskActions, other.Num))
		})
		if due := claimTasks(t, db, store.TaskActions, e, 2, time.Minute); len(due) != 1 || due[0].Num != here[0].Num {
			t.Errorf("%+v are due, want %+v", due, here[0])
		}
		if due := claimTasks(t, db, store.TaskActions, other, 2, time.Minute); len(due) != 0 || len(late()) != 0 {
			t.Errorf("%+v are due, want none", due)
		}
	})
}
