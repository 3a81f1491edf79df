package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestManyEventsAreMarkedAsOneByOne(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		home := newTenant(t, db, "marks@example.com")
		e, other := endpointIn(t, db, home.first), endpointIn(t, db, home.first)
		events := append(several(t, db, e, 6), several(t, db, other, 1)...)
		mark := func(i int, had string, ignore string, tags ...string) store.EventMark {
			m := store.EventMark{Endpoint: e, Seq: events[i].Seq, Had: strings.Fields(had), Tags: tags, Ignore: ignore}
			if i == 6 {
				m.Endpoint = other
			}
			return m
		}
		full := make([]string, hookglass.MaxEventTags)
		for i := range full {
			full[i] = fmt.Sprintf("full%02d", i)
		}
		writing(t, db, func(tx *store.Tx) error {
			if _, err := tx.TagEvent(string(e.ID), string(events[1].ID), "mine"); err != nil { // after the event was read
				return err
			}
			return tx.SetIgnored(string(e.ID), string(events[2].ID), "noise")
		})
		writing(t, db, func(tx *store.Tx) error {
			return tx.MarkEvents([]store.EventMark{
				mark(6, "", "", "b"), mark(0, "", "", "b", "a"), mark(1, "", "", "b"), mark(2, "", "test", "a"), mark(3, "", "test"), mark(3, "", "", "c"), mark(3, "", "", "a"),
				mark(4, "a", "", "a"), mark(5, "", "", append(full, "over")...),
			})
		})
		for i, want := range []string{"a b", "b mine", "a ignored:test", "a c ignored:test", "", strings.Join(full, " "), "b"} {
			reading(t, db, func(v *store.View) error {
				got, err := v.EventsBySeq([]int64{events[i].Seq}, 0)
				if err != nil {
					return err
				}
				text := strings.Join(got[events[i].Seq].Tags, " ")
				if reason := got[events[i].Seq].Ignored; reason != "" {
					text = strings.TrimSpace(text + " ignored:" + reason)
				}
				if text != want {
					t.Errorf("event %d is %q, want %q", i, text, want)
				}
				return nil
			})
		}
		reading(t, db, func(v *store.View) error {
			counted, err := v.Ints("SELECT ignored_count FROM endpoint_stats WHERE endpoint = $1", e.Num)
			made, err2 := v.Ints("SELECT count(*) FROM tags WHERE workspace_id = $1 AND name IN ('a', 'b', 'c', 'mine', 'over')", home.first.ID)
			if !slices.Equal(counted, []int64{2}) || !slices.Equal(made, []int64{4}) {
				t.Errorf("%d ignored, %d tags", counted, made)
			}
			return errors.Join(err, err2)
		})
		gone := mark(0, "", "", "z")
		gone.Seq = events[6].Seq + 1
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.MarkEvents([]store.EventMark{mark(1, "", "", "z"), gone}) })
		if !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("an event that is not there: %v", err)
		}
	})
}

// An event is deleted while a run that goes on is stored with a tag on it: one waits for the other, and not each for the
// other, which only a server ends, after a second in which all that is stored with the run waits too.
func TestARunIsStoredBesideTheDeletionOfItsEvent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		ev := several(t, db, e, 1)[0]
		h := &store.HeldRun{ActionRun: hookglass.ActionRun{
			ID: hookglass.NewSortableID(hookglass.PrefixActionRun, time.Now()), EndpointNum: e.Num, ActionNum: 1, ActionID: "act_1",
			EventSeq: ev.Seq, EventID: ev.ID, Status: hookglass.ActionRunRunning, StartedAt: time.Now(),
		}}
		h.Checkpoint = []byte("x")
		run := &store.RunSave{HeldRun: h, New: true, Lease: time.Minute}
		writing(t, db, func(tx *store.Tx) error { return tx.SaveActionRuns([]*store.RunSave{run}) })

		deleted := make(chan error, 1)
		saves, deletions := 0, 0
		run.New, run.Mark = false, store.EventMark{Endpoint: e, Seq: ev.Seq, Tags: []string{"seen"}}
		run.Effects = []func(*store.Tx) error{func(tx *store.Tx) error {
			if saves++; saves > 1 {
				return nil
			}
			go func() {
				deleted <- db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
					deletions++
					return tx.DeleteEvent(string(e.ID), string(ev.ID))
				})
			}()
			for waits := !db.Postgres(); !waits; { // an embedded database has one writer
				behind, err := tx.Ints(`SELECT count(*) FROM pg_locks w JOIN pg_locks l ON l.transactionid = w.transactionid
					WHERE NOT w.granted AND l.granted AND l.pid = pg_backend_pid()`)
				if err != nil {
					return err
				}
				waits = behind[0] > 0
			}
			return nil
		}}
		writing(t, db, func(tx *store.Tx) error { return tx.SaveActionRuns([]*store.RunSave{run}) })
		if err := <-deleted; err != nil {
			t.Fatal(err)
		}
		if saves != 1 || deletions != 1 {
			t.Errorf("the run was stored %d times, and the event deleted %d times", saves, deletions)
		}
		reading(t, db, func(v *store.View) error {
			if left, err := v.Ints("SELECT count(*) FROM action_runs"); err != nil || left[0] != 0 {
				t.Errorf("%d runs of an event that is gone, %v", left[0], err)
			}
			return nil
		})
	})
}

func TestOfARunThatIsSomebodyElsesNothingIsStored(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		events := several(t, db, e, 3)
		effects := map[int]int{}
		now := time.Now().UTC().Truncate(time.Microsecond)
		save := func(event int, action int64, status hookglass.RunStatus) *store.RunSave {
			h := &store.HeldRun{ActionRun: hookglass.ActionRun{
				ID: hookglass.NewSortableID(hookglass.PrefixActionRun, now), EndpointNum: e.Num, ActionNum: action, ActionID: fmt.Sprint("act_", action),
				EventSeq: events[event].Seq, EventID: events[event].ID, Status: status, StartedAt: now,
			}}
			h.Steps = []hookglass.StepResult{{ReferenceKey: "é", Status: hookglass.StepCompleted}}
			if status.Final() {
				h.FinishedAt = now
			} else {
				h.Checkpoint = []byte{0, 0xff}
			}
			return &store.RunSave{
				HeldRun: h, New: true, Lease: time.Minute, Mark: store.EventMark{Endpoint: e, Seq: h.EventSeq, Tags: []string{fmt.Sprint("by", action)}},
				Effects: []func(*store.Tx) error{func(*store.Tx) error { effects[event]++; return nil }},
			}
		}
		together := func(saves ...*store.RunSave) (ours []bool) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error { return tx.SaveActionRuns(saves) })
			for _, s := range saves {
				ours = append(ours, s.Ours)
			}
			return ours
		}
		first, held := save(0, 1, hookglass.ActionRunCompleted), save(1, 1, hookglass.ActionRunRunning)
		if ours := together(held, first); !slices.Equal(ours, []bool{true, true}) || first.Num == 0 || held.Claim != 1 {
			t.Fatal(ours, first.Num, held.Claim)
		}
		// The same action on the same event again, in one transaction with others, one of which takes what is held.
		if ours := together(save(0, 1, hookglass.ActionRunFailed), save(0, 2, hookglass.ActionRunCompleted), save(1, 1, hookglass.ActionRunFailed), save(2, 1, hookglass.ActionRunCompleted)); !slices.Equal(ours, []bool{false, true, false, true}) {
			t.Error(ours)
		}
		stale := *held
		held.New, stale.New = false, false
		writing(t, db, func(tx *store.Tx) error { _, err := tx.TakeActionRun(held.HeldRun, time.Minute, true); return err })
		other := *held.HeldRun
		other.Claim = 1
		stale.HeldRun = &other
		held.Status, held.FinishedAt = hookglass.ActionRunCompleted, now
		if ours := together(&stale, held); !slices.Equal(ours, []bool{false, true}) {
			t.Error(ours)
		}
		if fmt.Sprint(effects) != "map[0:2 1:2 2:1]" {
			t.Error("effects:", effects)
		}
		reading(t, db, func(v *store.View) error {
			for i, want := range []string{"[completed completed] [by1 by2]", "[completed] [by1]", "[completed] [by1]"} {
				runs, err := v.FirstActionRuns(events[i].Seq)
				if err != nil {
					return err
				}
				var statuses []hookglass.RunStatus
				for _, r := range runs {
					statuses = append(statuses, r.Status)
					if len(r.Steps) != 1 || r.Steps[0].ReferenceKey != "é" || !r.StartedAt.Equal(now) || !r.FinishedAt.Equal(now) || r.Checkpoint != nil {
						t.Errorf("event %d: %+v", i, r)
					}
				}
				found, err := v.EventsBySeq([]int64{events[i].Seq}, 0)
				if err != nil {
					return err
				}
				if got := fmt.Sprint(statuses, found[events[i].Seq].Tags); got != want {
					t.Errorf("event %d: %s, want %s", i, got, want)
				}
			}
			return nil
		})
	})
}

func TestEndedTasksAreThoseOfTheClaim(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		for i := range 3 {
			if err := db.CaptureWith(t.Context(), 0, newEvent(e, fmt.Sprint(i)), store.Work{Tasks: []store.TaskKind{store.TaskActions}}); err != nil {
				t.Fatal(err)
			}
		}
		var tasks []store.Task
		writing(t, db, func(tx *store.Tx) (err error) {
			tasks, err = tx.ClaimTasks(store.TaskActions, e.Num, 10, time.Minute)
			return err
		})
		if len(tasks) != 3 {
			t.Fatal(tasks)
		}
		tasks[1].Claim--
		writing(t, db, func(tx *store.Tx) error { return tx.EndTasks(tasks) })
		reading(t, db, func(v *store.View) error {
			left, err := v.Ints("SELECT num FROM event_tasks")
			if !slices.Equal(left, []int64{tasks[1].Num}) {
				t.Errorf("left: %v", left)
			}
			return err
		})
	})
}

// A run that is under way when its event is deleted goes with it, whether it has ended or not: nothing would delete it
// later. What is hidden and not erased yet counts as deleted.
func TestARunOfADeletedEventIsNotStored(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		events := several(t, db, e, 4)
		seqs := []int64{events[0].Seq, events[1].Seq, events[2].Seq, events[3].Seq}
		save := func(i int, num int64, status hookglass.RunStatus, rerun bool) bool {
			t.Helper()
			now := time.Now().UTC()
			run := &store.RunSave{HeldRun: &store.HeldRun{ActionRun: hookglass.ActionRun{
				ID: fmt.Sprintf("arun_%d_%d", i, num), EndpointNum: e.Num, ActionNum: num, ActionID: "act_1", EventSeq: seqs[i], EventID: events[i].ID,
				Rerun: rerun, Status: status, StartedAt: now,
			}}, New: true, Lease: time.Minute}
			if status.Final() {
				run.FinishedAt = now
			}
			writing(t, db, func(tx *store.Tx) error { return tx.SaveActionRuns([]*store.RunSave{run}) })
			return run.Ours
		}
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), string(events[0].ID)) })
		hidden := 0
		for _, deleted := range []bool{false, true} {
			if deleted { // all, and nothing of it is erased yet
				writing(t, db, func(tx *store.Tx) error {
					_, err := tx.DeleteAllEvents(string(e.ID))
					return err
				})
				hidden = 10
			}
			for i := range events {
				num := int64(100*i + hidden)
				ended := save(i, num+1, hookglass.ActionRunCompleted, false)
				goesOn := save(i, num+2, hookglass.ActionRunRunning, false)
				again := save(i, num+3, hookglass.ActionRunQueued, true)
				if want := i > 0 && !deleted; ended != want || goesOn != want || again != want {
					t.Errorf("event %d, all deleted %v: stored are %v, %v, %v, want %v", i, deleted, ended, goesOn, again, want)
				}
			}
		}
		reading(t, db, func(v *store.View) error {
			due, err := v.Ints("SELECT count(*) FROM action_runs WHERE due_at IS NOT NULL AND finished_at IS NULL")
			all, err2 := v.Ints("SELECT count(*) FROM action_runs")
			if !slices.Equal(due, []int64{6}) || !slices.Equal(all, []int64{9}) {
				t.Errorf("%d are held, of %d", due, all)
			}
			return errors.Join(err, err2)
		})
	})
}

// As below: the events of one endpoint are many as well.
func TestEventsAreTaggedByTheirNumbersAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		events := several(t, db, e, 2)
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		var seen []statement
		writing(t, db, func(tx *store.Tx) error {
			tx.Record(func(text string, args []any) {
				if strings.HasPrefix(text, "UPDATE events SET tags") {
					seen = append(seen, statement{text, args})
				}
			})
			return tx.MarkEvents([]store.EventMark{{Endpoint: e, Seq: events[0].Seq, Tags: []string{"a"}}, {Endpoint: e, Seq: events[1].Seq, Tags: []string{"a"}}})
		})
		if len(seen) != 1 {
			t.Fatalf("%d statements, want 1", len(seen))
		}
		plan, err := db.Plan(t.Context(), seen[0].text, seen[0].args...)
		if err != nil {
			t.Fatal(err)
		}
		by := "SEARCH events USING INTEGER PRIMARY KEY (rowid=?)"
		if db.Postgres() {
			by = "Index Cond: (seq = ANY ("
		}
		if !strings.Contains(strings.Join(plan, "\n"), by) {
			t.Errorf("it goes through the endpoint's events:\n%s", strings.Join(plan, "\n"))
		}
	})
}

// A plan that PostgreSQL makes while there are few events is kept while they become many: it must not go through all.
func TestARunIsStoredByItsEventAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		events := several(t, db, e, 1)
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		var seen []statement
		writing(t, db, func(tx *store.Tx) error {
			tx.Record(func(text string, args []any) {
				if strings.HasPrefix(text, "INSERT INTO action_runs") {
					seen = append(seen, statement{text, args})
				}
			})
			now := time.Now().UTC()
			var runs []*store.RunSave
			for i, status := range []hookglass.RunStatus{hookglass.ActionRunCompleted, hookglass.ActionRunRunning} {
				runs = append(runs, &store.RunSave{HeldRun: &store.HeldRun{ActionRun: hookglass.ActionRun{
					ID: fmt.Sprintf("arun_%d", i), EndpointNum: e.Num, ActionNum: int64(i), ActionID: "act_1", EventSeq: events[0].Seq, EventID: events[0].ID,
					Status: status, StartedAt: now, FinishedAt: now,
				}}, New: true, Lease: time.Minute})
			}
			return tx.SaveActionRuns(runs)
		})
		if len(seen) != 2 {
			t.Fatalf("%d statements, want 2", len(seen))
		}
		for _, s := range seen {
			plan, err := db.Plan(t.Context(), s.text, s.args...)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for i, line := range plan {
				if !strings.Contains(line, " events v") && !strings.Contains(line, "SEARCH v ") && !strings.Contains(line, "SCAN v") {
					continue
				}
				found = true
				if strings.Contains(line, "SCAN v") || db.Postgres() && (i+1 == len(plan) || !strings.Contains(plan[i+1], "Index Cond: ") || !strings.Contains(plan[i+1], "seq = i.event")) {
					t.Errorf("it goes through the events:\n%s", strings.Join(plan, "\n"))
				}
			}
			if !found {
				t.Errorf("the plan has no events:\n%s", strings.Join(plan, "\n"))
			}
		}
	})
}

// Each node looks for what nobody holds, and another may have gone on with a run since it was found.
func TestARunThatSomebodyHoldsIsNotQueuedAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		event := several(t, db, e, 1)[0]
		h := store.HeldRun{ActionRun: hookglass.ActionRun{
			ID: hookglass.NewSortableID(hookglass.PrefixActionRun, time.Now()), EndpointNum: e.Num, ActionNum: 1, ActionID: "act_1", EventSeq: event.Seq, EventID: event.ID,
			Rerun: true, Status: hookglass.ActionRunRunning,
		}, Checkpoint: []byte("checkpoint")}
		const since = time.Second
		take := func() (ours bool) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) (err error) { ours, err = tx.TakeActionRun(&h, time.Minute, false); return err })
			return ours
		}
		requeue := func() {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error { return tx.RequeueActionRun(h.Num, h.ID, since) })
		}
		writing(t, db, func(tx *store.Tx) error { _, err := tx.InsertActionRun(&h, -time.Minute); return err })
		reading(t, db, func(v *store.View) error {
			lost, err := v.LostActionRuns(since, 10)
			if err == nil && (len(lost) != 1 || lost[0].ID != h.ID) {
				t.Errorf("lost: %+v", lost)
			}
			return err
		})
		if !take() {
			t.Fatal("it was nobody's")
		}
		requeue()
		if take() {
			t.Error("it was taken from who goes on with it")
		}
	})
}

// A rerun may wait for its turn behind others for as long as their targets take, and was given a job more every few
// seconds meanwhile.
func TestARerunThatHasAJobIsNotGivenAnother(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		event := several(t, db, e, 1)[0]
		h := store.HeldRun{ActionRun: hookglass.ActionRun{
			ID: hookglass.NewSortableID(hookglass.PrefixActionRun, time.Now()), EndpointNum: e.Num, ActionNum: 1, ActionID: "act_1", EventSeq: event.Seq, EventID: event.ID,
			Rerun: true, Status: hookglass.ActionRunQueued,
		}}
		writing(t, db, func(tx *store.Tx) error {
			_, err := tx.InsertActionRun(&h, -time.Minute)
			tx.Enqueue(hookglass.ActionRunJob{RunID: "arun_other"}, hookglass.ActionRunJob{RunID: h.ID})
			return err
		})
		begun := func(ago string) string {
			if db.Postgres() {
				return "UPDATE river_job SET state = 'running', attempted_at = clock_timestamp() - interval '" + ago + "'"
			}
			return "UPDATE river_job SET state = 'running', attempted_at = datetime('now', 'subsec', '-" + ago + "')"
		}
		for _, c := range []struct {
			name, change string
			lost         int
		}{
			{"its job waits", "UPDATE river_job SET state = 'available'", 0},
			{"its job was put off", "UPDATE river_job SET state = 'scheduled'", 0},
			{"its job has just begun", begun("0 seconds"), 0},
			{"its job began long ago, and does not hold it", begun("60 seconds"), 1},
			{"its job is over", "DELETE FROM river_job WHERE id > (SELECT min(id) FROM river_job)", 1},
		} {
			writing(t, db, func(tx *store.Tx) error { return tx.Exec(c.change) })
			reading(t, db, func(v *store.View) error {
				lost, err := v.LostActionRuns(time.Second, 10)
				if len(lost) != c.lost {
					t.Errorf("%s: %d runs are lost, want %d", c.name, len(lost), c.lost)
				}
				return err
			})
		}
		other := h
		other.ID = hookglass.NewSortableID(hookglass.PrefixActionRun, time.Now())
		writing(t, db, func(tx *store.Tx) error { _, err := tx.InsertActionRun(&other, -time.Minute); return err })
		for range 2 { // as two nodes do that found it at the same time
			writing(t, db, func(tx *store.Tx) error { return tx.RequeueActionRun(h.Num, h.ID, -time.Second) })
		}
		reading(t, db, func(v *store.View) error {
			jobs, err := v.Ints("SELECT count(*) FROM river_job")
			if err == nil && jobs[0] != 2 {
				t.Errorf("there are %d jobs, one of them another's, want 2", jobs[0])
			}
			if err != nil {
				return err
			}
			lost, err := v.LostActionRuns(time.Second, 10)
			if len(lost) != 1 || lost[0].ID != other.ID {
				t.Errorf("lost: %+v, want the other", lost)
			}
			return err
		})
	})
}

// Ids are in the order of creation by their bytes: in Czech, "ch" comes behind "h".
func TestRunsAreListedInTheOrderOfTheirCreationInAnyLocale(t *testing.T) {
	dsn := storetest.Migrated(t)
	exec(t, dsn, `ALTER TABLE action_runs ALTER COLUMN id TYPE text COLLATE "cs-x-icu"`) // not every version has databases of such locales
	db := asItIs(t, store.Config{URL: dsn})
	e := newEndpoint(t, db)
	event := several(t, db, e, 1)[0]
	created := []string{"run_0ch0", "run_0cz0", "run_0h00"}
	for _, id := range created {
		writing(t, db, func(tx *store.Tx) error {
			_, err := tx.InsertActionRun(&store.HeldRun{ActionRun: hookglass.ActionRun{
				ID: id, EndpointNum: e.Num, ActionNum: 1, ActionID: "act_1", EventSeq: event.Seq, EventID: event.ID, Rerun: true, Status: hookglass.ActionRunQueued,
			}}, -time.Minute)
			return err
		})
	}
	var listed []string
	for before := ""; len(listed) < len(created); {
		reading(t, db, func(v *store.View) error {
			page, err := v.EndpointActionRuns(string(e.ID), before, 1)
			if len(page) != 1 {
				t.Fatalf("behind %q are %d runs: %v", before, len(page), err)
			}
			before = page[0].ID
			listed = append([]string{before}, listed...)
			return err
		})
	}
	if !slices.Equal(listed, created) {
		t.Errorf("%q, want %q", listed, created)
	}
}
