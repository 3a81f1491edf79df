package store_test

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// desk takes what it is offered for as long as lease.
type desk[W any] struct {
	lease time.Duration

	mu      sync.Mutex
	offered int
	taken   map[hookglass.EventID][]W
	events  map[hookglass.EventID]*hookglass.Event
}

func newDesk[W any](lease time.Duration) *desk[W] {
	return &desk[W]{lease: lease, taken: make(map[hookglass.EventID][]W), events: make(map[hookglass.EventID]*hookglass.Event)}
}

func (d *desk[W]) Offer(int64, *hookglass.Event) (until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.offered++; d.lease > 0 {
		until = time.Now().Add(d.lease)
	}
	return until
}

func (d *desk[W]) Take(_ int64, ev *hookglass.Event, work []W) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken[ev.ID], d.events[ev.ID] = append(d.taken[ev.ID], work...), ev
}

// await waits for the end of so many offers.
func (d *desk[W]) await(t *testing.T, n int) map[hookglass.EventID][]W {
	t.Helper()
	d.until(t, func() bool { return len(d.events) >= n })
	return d.taken
}

// of waits for the end of an event's offer and returns what was handed over.
func (d *desk[W]) of(t *testing.T, id hookglass.EventID) []W {
	t.Helper()
	d.until(t, func() bool { return d.events[id] != nil })
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.taken[id]
}

func (d *desk[W]) until(t *testing.T, ended func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		d.mu.Lock()
		done := ended()
		d.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("an offer has no end within a minute")
		}
	}
}

// Whatever the size of a group, and whether what follows is handed over or waits, an event goes to no target that its
// capture leaves out.
func TestAnEventGoesToNoTargetThatIsLeftOut(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		targets, ids := make([]hookglass.ForwardingTarget, 5), make([]int64, 5)
		writing(t, db, func(tx *store.Tx) error {
			for i := range targets {
				targets[i] = hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "there", URL: "http://127.0.0.1:1/", Enabled: i != 3, Timeout: time.Second}
				if i == 4 {
					targets[i].EndpointNum = other.Num
				}
				if err := tx.CreateForwardingTarget(&targets[i]); err != nil {
					return err
				}
				ids[i] = targets[i].ID
			}
			return nil
		})
		works := []store.Work{
			{Forward: true}, {Forward: true, But: ids[:1]}, {Forward: true, But: ids[1:2]}, {Forward: true, But: []int64{ids[0], ids[2]}}, {Forward: true, But: ids}, {}, {Forward: true, But: ids[1:2]},
		}
		for _, taken := range []bool{false, true} {
			desk := newDesk[store.HandedForward](30 * time.Second)
			if taken {
				db.HandForwards(desk)
			}
			for _, n := range []int{1, 3, 7, 21} { // alone, inserted, handed over or copied
				events := assortment(n, e, other)
				for i, err := range db.CaptureGroup(t.Context(), events, works...) {
					if err != nil {
						t.Fatalf("event %d of %d: %v", i, n, err)
					}
				}
				for i, ev := range events {
					var want, got []int64
					for _, target := range targets {
						work := works[i%len(works)]
						if work.Forward && target.Enabled && target.EndpointNum == ev.EndpointNum && !slices.Contains(work.But, target.ID) {
							want = append(want, target.ID)
						}
						reading(t, db, func(v *store.View) error {
							_, _, err := v.Forward(string(ev.EndpointID), target.ID, ev.ID)
							if err == nil {
								got = append(got, target.ID)
							} else if !hookglass.Is(err, hookglass.CodeNotFound) {
								return err
							}
							return nil
						})
					}
					if !slices.Equal(got, want) {
						t.Errorf("event %d of %d, taken %t: goes to %v of %v, want %v", i, n, taken, got, ids, want)
					}
					if taken && n < 8 && ev.Type == hookglass.EventWebhook && works[i%len(works)].Forward {
						var handed []int64
						for _, h := range desk.of(t, ev.ID) {
							handed = append(handed, h.TargetID)
						}
						if !slices.Equal(handed, want) {
							t.Errorf("event %d of %d: handed over to %v, want %v", i, n, handed, want)
						}
					}
				}
			}
			db.HandForwards(nil)
		}
	})
}

func TestWhatFollowsACaptureIsHandedOverToWhoTakesIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a, b := newEndpoint(t, db), newEndpoint(t, db)
		targets := make([]hookglass.ForwardingTarget, 4)
		writing(t, db, func(tx *store.Tx) error {
			for i := range targets {
				targets[i] = hookglass.ForwardingTarget{EndpointNum: a.Num, Name: "there", URL: "http://127.0.0.1:1/", Enabled: i != 3, Timeout: 7 * time.Second, RetryCount: 2}
				if err := tx.CreateForwardingTarget(&targets[i]); err != nil {
					return err
				}
			}
			return tx.PauseForwardingTarget(targets[2].ID, time.Now(), hookglass.PauseFailing)
		})
		const slack = 30 * time.Second
		for _, n := range []int{1, 3, 7} {
			forwards, tasks := newDesk[store.HandedForward](slack), newDesk[store.Task](time.Minute)
			db.HandForwards(forwards)
			db.HandTasks(store.TaskActions, tasks)
			events := assortment(n, a, b)
			var webhooks []*hookglass.Event
			for _, ev := range events {
				ev.ReceivedAt = ev.ReceivedAt.UTC().Truncate(time.Microsecond)
				if ev.Type == hookglass.EventWebhook {
					webhooks = append(webhooks, ev)
				}
			}
			for i, err := range db.CaptureGroup(t.Context(), events, store.Work{Forward: true, Tasks: []store.TaskKind{store.TaskSchema, store.TaskActions}}) {
				if err != nil {
					t.Fatalf("event %d of %d: %v", i, n, err)
				}
			}
			handed, begun := forwards.await(t, len(webhooks)), tasks.await(t, len(webhooks))
			if len(forwards.events) != len(webhooks) || forwards.offered != len(webhooks) || len(tasks.events) != len(webhooks) {
				t.Errorf("%d of %d events are webhooks, and %d and %d were handed over", len(webhooks), n, len(forwards.events), len(tasks.events))
			}
			now := time.Now()
			writing(t, db, func(tx *store.Tx) error {
				for _, ev := range webhooks {
					read, err := tx.EventsBySeq([]int64{ev.Seq}, 1<<20)
					if err != nil {
						return err
					}
					if got := forwards.events[ev.ID]; !reflect.DeepEqual(plain(got), plain(read[ev.Seq])) {
						t.Errorf("handed over as\n%+v\n%+v, and read as\n%+v\n%+v", *got, *got.Payload, *read[ev.Seq], *read[ev.Seq].Payload)
					}
					if len(begun[ev.ID]) != 1 || begun[ev.ID][0].EventSeq != ev.Seq || begun[ev.ID][0].Kind != store.TaskActions || begun[ev.ID][0].EndpointNum != ev.EndpointNum {
						t.Errorf("tasks %+v", begun[ev.ID])
					}
					if err := tx.EndTasks(begun[ev.ID]); err != nil {
						return err
					}
					if ev.EndpointNum == b.Num {
						if len(handed[ev.ID]) != 0 {
							t.Errorf("deliveries of an endpoint without targets: %+v", handed[ev.ID])
						}
						continue
					}
					var ended []store.ClaimedForward
					for i, h := range handed[ev.ID] {
						q := h.Queue
						if h.EventSeq != ev.Seq || h.TargetID != targets[i].ID || h.EndpointNum != a.Num || q.TargetID != h.TargetID || q.Target.EndpointID != a.ID || q.Target.URL != targets[i].URL ||
							q.Target.Timeout != 7*time.Second || q.Target.RetryCount != 2 || q.AccountID != 0 || h.CreatedAt.Sub(now).Abs() > time.Minute {
							t.Errorf("handed over: %+v", h)
						}
						h.State, h.FinishedAt = hookglass.ForwardDelivered, now
						ended = append(ended, h.ClaimedForward)
					}
					if stored, err := tx.SettleForwards(ended); err != nil || len(stored) != 2 || !stored[0] || !stored[1] {
						t.Errorf("%t of two deliveries, %v", stored, err)
					}
				}
				return nil
			})
		}
		// What was not handed over waits: mails, tasks of a kind that nobody takes, and what is for a target that is
		// paused.
		writing(t, db, func(tx *store.Tx) error {
			mails, err := tx.ClaimTasks(store.TaskActions, b.Num, 100, time.Minute)
			schemas, e := tx.ClaimTasks(store.TaskSchema, a.Num, 100, time.Minute)
			if err != nil || e != nil || len(mails) == 0 || len(schemas) == 0 {
				t.Errorf("%d tasks of mails, %d of schemas, %v %v", len(mails), len(schemas), err, e)
			}
			queues, err := tx.ForwardQueues()
			if err != nil || len(queues) != 1 || queues[0].TargetID != targets[2].ID {
				t.Errorf("deliveries wait: %+v, %v", queues, err)
			}
			return err
		})
	})
}

// Each task goes to whoever takes its kind, and a delivery comes with what its account is entitled to.
func TestWhatIsHandedOverComesToWhoTakesItsKind(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		e := endpointIn(t, db, n.first)
		target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "there", URL: "http://127.0.0.1:1/", Enabled: true, Timeout: time.Second}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		kinds := []store.TaskKind{store.TaskActions, store.TaskSchema}
		for _, many := range []int{1, 3} {
			forwards, desks := newDesk[store.HandedForward](time.Minute), make(map[store.TaskKind]*desk[store.Task])
			db.HandForwards(forwards)
			for _, kind := range kinds {
				desks[kind] = newDesk[store.Task](time.Minute)
				db.HandTasks(kind, desks[kind])
			}
			var events []*hookglass.Event
			for range many {
				events = append(events, newEvent(e, "x"))
			}
			for i, err := range db.CaptureGroup(t.Context(), events, store.Work{Forward: true, Tasks: kinds}) {
				if err != nil {
					t.Fatalf("event %d of %d: %v", i, many, err)
				}
			}
			for i, ev := range events {
				for _, kind := range kinds {
					if tasks := desks[kind].of(t, ev.ID); len(tasks) != 1 || tasks[0].Kind != kind || tasks[0].EventSeq != ev.Seq {
						t.Errorf("event %d of %d: who takes %s has %+v", i, many, kind, tasks)
					}
				}
				handed := forwards.of(t, ev.ID)
				if len(handed) != 1 || handed[0].Queue.AccountID != n.account.ID || handed[0].Queue.Entitlements != n.account.Entitlements() {
					t.Errorf("event %d of %d: deliveries %+v, want one of the account %+v", i, many, handed, n.account)
				}
			}
		}
	})
}

// Where many senders wait, what follows their webhooks waits in the tables. The embedded database makes its groups by
// itself.
func TestACrowdOfCapturesHandsNothingOver(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	e := newEndpoint(t, db)
	tasks := newDesk[store.Task](time.Minute)
	db.HandTasks(store.TaskActions, tasks)
	heard := db.Listen(store.TopicTasks(store.TaskActions))
	defer heard.Close()
	for _, err := range db.CaptureGroup(t.Context(), assortment(8, e), store.Work{Tasks: []store.TaskKind{store.TaskActions}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-heard.C:
	case <-time.After(time.Minute):
		t.Error("nobody was told of the tasks")
	}
	writing(t, db, func(tx *store.Tx) error {
		waiting, err := tx.ClaimTasks(store.TaskActions, e.Num, 100, time.Minute)
		if len(waiting) != 8 || tasks.offered != 0 {
			t.Errorf("%d wait, %d were offered", len(waiting), tasks.offered)
		}
		return err
	})
}

// plain makes events comparable: what is empty may be nil.
func plain(ev *hookglass.Event) hookglass.Event {
	e, p := *ev, *ev.Payload
	if len(p.Body) == 0 {
		p.Body = nil
	}
	if r := p.Reply; r != nil {
		reply := *r
		if len(reply.Body) == 0 {
			reply.Body = nil
		}
		if len(reply.Headers) == 0 {
			reply.Headers = nil
		}
		p.Reply = &reply
	}
	e.Payload = &p
	return e
}

// A node that dies, or is too slow, loses what it was handed as it loses what it claimed, whatever the target's timeout.
func TestWhatWasHandedOverFallsDueWithItsLease(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "there", URL: "http://127.0.0.1:1/", Enabled: true, Timeout: time.Minute}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		forwards, tasks := newDesk[store.HandedForward](40*time.Second), newDesk[store.Task](time.Millisecond)
		db.HandForwards(forwards)
		db.HandTasks(store.TaskActions, tasks)
		ev := newEvent(e, "x")
		if err := db.CaptureWith(t.Context(), 0, ev, store.Work{Forward: true, Tasks: []store.TaskKind{store.TaskActions}}); err != nil {
			t.Fatal(err)
		}
		handed, begun := forwards.await(t, 1)[ev.ID], tasks.await(t, 1)[ev.ID]
		time.Sleep(5 * time.Millisecond)
		writing(t, db, func(tx *store.Tx) error {
			early, err := tx.ClaimForwards(target.ID, time.Now().Add(30*time.Second), 9, time.Minute)
			if err != nil || len(early) != 0 {
				t.Errorf("claimed within the lease: %+v, %v", early, err)
			}
			late, err := tx.ClaimForwards(target.ID, time.Now().Add(41*time.Second), 9, time.Minute)
			if err != nil || len(late) != 1 || late[0].Lost != 1 || late[0].Claim <= handed[0].Claim {
				t.Fatalf("claimed after the lease: %+v, %v", late, err)
			}
			again, err := tx.ClaimTasks(store.TaskActions, e.Num, 9, time.Minute)
			if err != nil || len(again) != 1 || again[0].Lost != 1 || again[0].Claim <= begun[0].Claim {
				t.Fatalf("tasks claimed after the lease: %+v, %v", again, err)
			}
			handed[0].State = hookglass.ForwardDelivered
			if stored, err := tx.SettleForwards([]store.ClaimedForward{handed[0].ClaimedForward}); err != nil || stored[0] {
				t.Errorf("who lost it said what became of it: %t, %v", stored, err)
			}
			return tx.EndTasks(begun)
		})
		reading(t, db, func(v *store.View) error {
			queues, err := v.TaskQueues(store.TaskActions)
			if len(queues) != 1 {
				t.Errorf("who lost a task ended it: %+v", queues)
			}
			return err
		})
	})
}

// An embedded database has one process at a time: what the one before had in hand is due when the next begins.
func TestLeasesOfADeadProcessEndWithTheNext(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "there", URL: "http://127.0.0.1:1/", Enabled: true, Timeout: 5 * time.Second}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		forwards, tasks := newDesk[store.HandedForward](time.Minute), newDesk[store.Task](time.Minute)
		db.HandForwards(forwards)
		db.HandTasks(store.TaskActions, tasks)
		if err := db.CaptureWith(t.Context(), 0, newEvent(e, "x"), store.Work{Forward: true, Tasks: []store.TaskKind{store.TaskActions, store.TaskSchema}}); err != nil {
			t.Fatal(err)
		}
		if err := db.EndLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := 1
		if db.Postgres() { // where others may be at work
			want = 0
		}
		writing(t, db, func(tx *store.Tx) error {
			deliveries, err := tx.ClaimForwards(target.ID, time.Now(), 9, time.Minute)
			again, e := tx.ClaimTasks(store.TaskActions, e.Num, 9, time.Minute)
			if err != nil || e != nil || len(deliveries) != want || len(again) != want || want == 1 && (deliveries[0].Lost != 1 || again[0].Lost != 1) {
				t.Errorf("%+v and %+v are due, %v, %v", deliveries, again, err, e)
			}
			return nil
		})
	})
}

// Jobs, the reruns that they work, flows, channels and the lead of the queue are held as well. A rerun that waits has a
// job that nobody works: its time stays.
func TestJobsOfADeadProcessAreDueWithTheNext(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		e := endpointIn(t, db, n.first)
		channel := newChannel(t, db, n.first, "n", hookglass.ActivityWebhookReceived)
		event := several(t, db, e, 1)[0]
		flow := hookglass.Flow{ID: "flow_1", AccountID: n.account.ID, WorkspaceID: n.first.ID, State: hookglass.FlowPending, DeadlineAt: time.Now().Add(time.Hour)}
		rerun := func(id string) (h store.HeldRun) {
			h.ActionRun = hookglass.ActionRun{
				ID: id, EndpointNum: e.Num, ActionNum: 1, ActionID: "act_1", EventSeq: event.Seq, EventID: event.ID, Rerun: true, Status: hookglass.ActionRunRunning,
			}
			writing(t, db, func(tx *store.Tx) error { _, err := tx.InsertActionRun(&h, time.Hour); return err })
			return h
		}
		worked, waiting := rerun("arun_worked"), rerun("arun_waiting")
		running := "UPDATE river_job SET state = 'running', attempt = 1, attempted_at = datetime('now', 'subsec', '+1 hour')" // the clock went back
		leads := "INSERT INTO river_leader (leader_id, elected_at, expires_at) VALUES ('gone', datetime('now', 'subsec', '+1 hour'), datetime('now', 'subsec', '+1 hour'))"
		if db.Postgres() {
			running = "UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now()"
			leads = "INSERT INTO river_leader (leader_id, elected_at, expires_at) VALUES ('gone', now(), now() + interval '1 hour')"
		}
		writing(t, db, func(tx *store.Tx) error {
			tx.Enqueue(hookglass.ReplayBatchJob{BatchID: "rbat_1"}, hookglass.ActionRunJob{RunID: worked.ID})
			return nil
		})
		writing(t, db, func(tx *store.Tx) error {
			if _, err := tx.HoldChannel(channel.Num, tx.Now, time.Hour); err != nil {
				return err
			}
			if err := tx.CreateFlow(&flow, "", []byte("fingerprint")); err != nil {
				return err
			}
			if _, err := tx.ClaimFlows(1, time.Hour); err != nil {
				return err
			}
			tx.Enqueue(hookglass.ActionRunJob{RunID: waiting.ID})
			return errors.Join(tx.Exec(running), tx.Exec(leads))
		})
		if err := db.EndLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := 1
		if db.Postgres() { // where others may be at work
			want = 0
		}
		writing(t, db, func(tx *store.Tx) error {
			jobs, err := tx.Ints("SELECT count(*) FROM river_job WHERE state = 'available' AND kind IN ('" + hookglass.ReplayBatchJob{}.Kind() + "', '" + hookglass.ActionRunJob{}.Kind() + "')")
			if err != nil || jobs[0] != int64(2*want+1) {
				t.Errorf("%d jobs wait for a worker, %v; want %d and the one that waited", jobs, err, 2*want)
			}
			if leaders, err := tx.Ints("SELECT count(*) FROM river_leader"); err != nil || leaders[0] != int64(1-want) {
				t.Errorf("%d lead the queue, %v", leaders, err)
			}
			if ours, err := tx.TakeActionRun(&worked, time.Minute, false); err != nil || ours != (want == 1) {
				t.Errorf("the rerun is nobody's: %t, %v", ours, err)
			}
			if ours, err := tx.TakeActionRun(&waiting, time.Minute, false); err != nil || ours {
				t.Errorf("the rerun that waits is due: %t, %v", ours, err)
			}
			if flows, err := tx.ClaimFlows(9, time.Minute); err != nil || len(flows) != want {
				t.Errorf("flows to be had: %+v, %v; want %d", flows, err, want)
			}
			if due, err := tx.ChannelsDue(tx.Now, event.Seq, 9); err != nil || len(due) != want {
				t.Errorf("channels to be had: %+v, %v; want %d", due, err, want)
			}
			return nil
		})
	})
}

func TestAnOfferEndsWhateverBecomesOfTheCapture(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		kept, gone := newEndpoint(t, db), newEndpoint(t, db)
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteEndpoint(&gone) })
		forwards, tasks := newDesk[store.HandedForward](time.Minute), newDesk[store.Task](time.Minute)
		db.HandForwards(forwards)
		db.HandTasks(store.TaskActions, tasks)
		twin := newEvent(kept, "x")
		events := []*hookglass.Event{newEvent(kept, "x"), twin, twin, newEvent(gone, "x"), newEvent(kept, "x")} // the same twice spoils the group
		failed := 0
		for _, err := range db.CaptureGroup(t.Context(), events, store.Work{Forward: true, Tasks: []store.TaskKind{store.TaskActions}}) {
			if err != nil {
				failed++
			}
		}
		begun := tasks.await(t, 4)
		n := 0
		for _, all := range begun {
			n += len(all)
		}
		if forwards.await(t, 4); failed != 2 || n != 3 || forwards.offered != 5 || tasks.offered != 5 {
			t.Errorf("%d failed, %d tasks were handed over, of %d and %d offers", failed, n, forwards.offered, tasks.offered)
		}
	})
}

func TestOnlyWhatIsNotTakenIsAnnounced(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		if db.Postgres() { // the first it hears wakes everybody
			listening(t, db)
		}
		heard := db.Listen(store.TopicForwards, store.TopicTasks(store.TaskActions))
		defer heard.Close()
		work := store.Work{Forward: true, Tasks: []store.TaskKind{store.TaskActions}}
		for _, c := range []struct {
			lease    time.Duration
			announce bool
		}{{time.Minute, false}, {0, true}} {
			wait := 100 * time.Millisecond
			if c.announce {
				wait = 20 * time.Second
			}
			forwards := newDesk[store.HandedForward](c.lease)
			db.HandForwards(forwards)
			db.HandTasks(store.TaskActions, newDesk[store.Task](c.lease))
			drain(heard)
			if err := db.CaptureWith(t.Context(), 0, newEvent(e, "x"), work); err != nil {
				t.Fatal(err)
			}
			if c.lease > 0 {
				forwards.await(t, 1)
			}
			select {
			case <-heard.C:
				if !c.announce {
					t.Error("what was taken was announced")
				}
			case <-time.After(wait):
				if c.announce {
					t.Error("what was not taken was not announced")
				}
			}
		}
	})
}
