package store_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// PostgreSQL plans a statement once for many times, at first while its tables are empty, or have a few rows. What is
// planned then must do when they have grown.
func TestPlansOfAnEmptyDatabaseGoByIndexes(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	e := newEndpoint(t, db)
	target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "test", URL: "https://app.example.com/", Enabled: true, Timeout: time.Second}
	writing(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })

	looked := lookAtPlans(t, db, e, target.ID, "before anything is known of the tables")
	if err := db.Analyze(t.Context()); err != nil {
		t.Fatal(err)
	}
	looked += lookAtPlans(t, db, e, target.ID, "when the tables are known to be empty")
	for range 40 {
		work := store.Work{Forward: true, Tasks: []store.TaskKind{store.TaskActions}}
		if err := db.CaptureWith(t.Context(), 0, newEvent(e, "{}"), work); err != nil {
			t.Fatal(err)
		}
	}
	writing(t, db, func(tx *store.Tx) error {
		return tx.AddOutcomes(hookglass.Outcome{EndpointNum: e.Num, EventSeq: 1, Source: hookglass.OutcomeTarget, At: time.Now(), StatusCode: 200})
	})
	if err := db.Analyze(t.Context()); err != nil {
		t.Fatal(err)
	}
	looked += lookAtPlans(t, db, e, target.ID, "when the tables are known to have a few rows")
	if looked < 55 {
		t.Errorf("only %d scans were looked at", looked)
	}
}

// lookAtPlans has the busiest statements planned, and returns how many scans of large tables it looked at. Nothing that
// they do is kept.
func lookAtPlans(t *testing.T, db *store.DB, e hookglass.Endpoint, targetID int64, known string) (looked int) {
	t.Helper()
	var seen []statement
	err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		tx.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
		if err := runBusiest(tx, e, targetID); err != nil {
			return err
		}
		return errRollback
	})
	if !errors.Is(err, errRollback) {
		t.Fatal(err)
	}
	for _, s := range seen {
		plan, err := db.Plan(t.Context(), s.text, s.args...)
		if err != nil {
			t.Fatalf("%s: %v", s.text, err)
		}
		for i, line := range plan {
			if !largeScan.MatchString(line) || strings.Contains(line, "Bitmap Index Scan") {
				continue
			}
			looked++
			first := i > 0 && strings.Contains(plan[i-1], "Limit ") // only as far as it is wanted
			fresh := strings.Contains(strings.Join(plan[i:], "\n"), "outcomes_fresh")
			if strings.Contains(line, "Seq Scan") || !first && !fresh && (i+1 == len(plan) || !fewRows.MatchString(plan[i+1])) {
				t.Errorf("%s:\n%s\n%s", known, s.text, strings.Join(plan, "\n"))
			}
		}
	}
	return looked
}

var (
	largeScan = regexp.MustCompile(`Scan.* on (forwards|event_tasks|outcomes|events)\b`)
	// fewRows is a condition that has an index find single rows, or those that wait: an endpoint or a target may have
	// had any number.
	fewRows = regexp.MustCompile(`Cond: .*\b(seq|num|event|due_at|kind|at)\b`)
)

// runBusiest runs the statements that are run for all that is captured.
func runBusiest(tx *store.Tx, e hookglass.Endpoint, targetID int64) error {
	now := time.Now()
	for _, do := range []func() error{
		func() error { _, err := tx.ForwardQueues(); return err },
		func() error { _, err := tx.ClaimForwards(targetID, now, 7, time.Minute); return err },
		func() error {
			_, err := tx.SettleForwards([]store.ClaimedForward{{Forward: hookglass.Forward{Num: 1, State: hookglass.ForwardDelivered}, Claim: 1}})
			return err
		},
		func() error { return tx.ExtendForwards(map[int64]int64{1: 1}, now) },
		func() error { return tx.SpareForwards(now) },
		func() error { _, err := tx.SkipForwards(targetID, now, 7); return err },
		func() error { return resend(tx, e, targetID) },
		func() error {
			_, err := tx.ForwardBacklogs(string(e.ID), hookglass.ForwardingTarget{ID: targetID, Enabled: true})
			return err
		},
		func() error { _, err := tx.TaskQueues(store.TaskActions); return err },
		func() error { _, err := tx.ClaimTasks(store.TaskActions, e.Num, 7, time.Minute); return err },
		func() error { _, err := tx.LateTasks(store.TaskActions); return err },
		func() error { return tx.RecallTasks(store.TaskActions, e.Num) },
		func() error { return tx.EndTasks([]store.Task{{Num: 1, Claim: 1}}) },
		func() error { _, err := tx.EventsBySeq([]int64{1, 2}, 1000); return err },
		func() error { return tx.LoadFailed([]*hookglass.Event{{Seq: 1}, {Seq: 2}}) },
		func() error { return tx.MarkEvents([]store.EventMark{{Endpoint: e, Seq: 1, Tags: []string{"a"}}}) },
		func() error { _, err := tx.RollUp(200); return err },
		func() error { _, err := tx.PurgeFigures(); return err },
		func() error { _, err := tx.NewestOfAll(); return err },
	} {
		if err := do(); err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
			return err
		}
	}
	return nil
}

// resend runs what people have run when they send again what failed.
func resend(tx *store.Tx, e hookglass.Endpoint, targetID int64) error {
	now := time.Now()
	target, err := tx.ForwardingTarget(string(e.ID), targetID)
	if err != nil {
		return err
	}
	if _, err := tx.CountFailedForwards(target, 100); err != nil {
		return err
	}
	if _, _, err := tx.FailedForwards(target, store.FailedRange{After: now.Add(-time.Hour), Before: now}); err != nil {
		return err
	}
	return tx.ResendForwards([]hookglass.Forward{{Num: 1}})
}

// A purge comes twice a minute, and a look for what dead processes left behind six times. What they find is a small
// part of what there is.
func TestAPurgeLooksAtWhatIsOldAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		newEndpoint(t, db)
		var seen []statement
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			tx.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
			_, attempts := tx.AttemptsDue(tx.Now, time.Hour)
			_, replays := tx.ReplaysDue(tx.Now, time.Hour)
			_, activity := tx.ActivityDue(tx.Now, time.Hour)
			_, orphans := tx.OrphanedBatchItems(tx.Now, 20)
			return errors.Join(attempts, replays, activity, orphans)
		})
		if err != nil || len(seen) != 5 {
			t.Fatal(len(seen), err)
		}
		byAge, all := regexp.MustCompile(`SEARCH x .*\((endpoint=\? AND (at>\? AND at|finished_at>\? AND finished_at)<\?|batch=\? AND state=\?)\)|SEARCH activities .*\(account_id=\? AND id>\? AND id<\?\)`), regexp.MustCompile(`SCAN (x|activities)\b`)
		if db.Postgres() {
			byAge = regexp.MustCompile(`Index Cond: .*(endpoint = e.num\) AND .*finished_at <|batch = b.num\) AND \(state = )|Index Cond: .*ROW\((x.endpoint, x.at|endpoint, at|account_id, id)\) < ROW\(`)
			all = regexp.MustCompile(`Seq Scan on (script_positions|replay_case|replay_batch_items|replay_batches x|activities)|(Merge|Hash) Join`)
		}
		for _, s := range seen {
			plan, err := db.Plan(t.Context(), s.text, s.args...)
			if text := strings.Join(plan, "\n"); err != nil || !byAge.MatchString(text) || all.MatchString(text) {
				t.Errorf("%v %s:\n%s", err, s.text, text)
			}
		}
	})
}

// A replay is compared with the one before it. Neither the other attempts at its event nor those at all others are read.
func TestTheAttemptBeforeIsFoundWithoutTheOthers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		var last hookglass.Replay
		attempt := func(n int, event *hookglass.Event, target string) {
			writing(t, db, func(tx *store.Tx) error {
				for range n {
					last = hookglass.Replay{ID: hookglass.NewSortableID(hookglass.PrefixReplay, time.Now()), EndpointNum: e.Num, EventSeq: event.Seq, EventID: event.ID, TargetURL: target, At: time.Now()}
					if err := tx.RecordReplay(&last); err != nil {
						return err
					}
				}
				return nil
			})
		}
		often, once := newEvent(e, "often"), newEvent(e, "once")
		for _, event := range []*hookglass.Event{often, once} {
			if err := db.Capture(t.Context(), 0, event); err != nil {
				t.Fatal(err)
			}
		}
		byEvent := regexp.MustCompile(`SEARCH replays USING INDEX replays_event \(event=\? AND num>\? AND num<\?\)`)
		if db.Postgres() {
			byEvent = regexp.MustCompile(`Limit .*\n *->  Index Scan Backward using replays_event on replays .*\n *Index Cond: \(\(ROW\(event, num\) > ROW\(e\.seq`)
		}
		look := func(known string) {
			t.Helper()
			var seen []statement
			writing(t, db, func(tx *store.Tx) error {
				tx.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
				return tx.RecordReplay(&last)
			})
			plan, err := db.Plan(t.Context(), seen[0].text, seen[0].args...)
			if text := strings.Join(plan, "\n"); err != nil || !byEvent.MatchString(text) || strings.Contains(text, "FOR ORDER BY") {
				t.Errorf("%s: %v\n%s", known, err, text)
			}
		}
		attempt(1, often, "http://one.example/")
		look("before anything is known of the attempts")
		attempt(1000, often, "http://one.example/")
		look("when there are more than is known")
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		look("when all are known to be of one event")
		attempt(1, once, "http://one.example/")
		if last.Verdict != "" {
			t.Error("the first attempt at an event was compared with that at another:", last.Verdict)
		}
		attempt(1, often, "http://two.example/")
		if last.Verdict != "" {
			t.Error("the first attempt at a target was compared with that at another:", last.Verdict)
		}
		attempt(1, often, "http://one.example/")
		if last.Verdict != hookglass.VerdictStillFailing {
			t.Error("the attempt before was not found:", last.Verdict)
		}
	})
}

// No index leads from an event to its tasks. While many wait nothing may look for those of each event.
func TestTheLedgerDoesNotLookForTheTasksOfEachEvent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		hook, box := newEndpoint(t, db), hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "box", Kind: hookglass.KindEmail, EmailLocalPart: "box", Enabled: true}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateEndpoint(&box, nil) })
		for range 20 {
			if err := db.CaptureWith(t.Context(), 0, newEvent(hook, "x"), store.Work{Tasks: []store.TaskKind{store.TaskActions}}); err != nil {
				t.Fatal(err)
			}
			if err := db.CaptureWith(t.Context(), 0, mailEvent(box), store.Work{Tasks: []store.TaskKind{store.TaskVerdict}}); err != nil {
				t.Fatal(err)
			}
		}
		run := store.HeldRun{ActionRun: hookglass.ActionRun{ID: "arun_1", EndpointNum: hook.Num, ActionNum: 1, ActionID: "act_1", EventSeq: 1, EventID: "req_1", Status: hookglass.ActionRunRunning}}
		writing(t, db, func(tx *store.Tx) error {
			stored, err := tx.InsertActionRun(&run, time.Minute)
			if !stored {
				t.Error("the run was not stored")
			}
			return err
		})
		var seen []statement
		reading(t, db, func(v *store.View) error {
			v.Record(func(text string, args []any) {
				if strings.Contains(text, "event_tasks") && strings.Contains(text, "FROM events") {
					seen = append(seen, statement{text, args})
				}
			})
			from, to := v.Now.Add(-time.Hour).Truncate(time.Minute), v.Now.Add(time.Hour).Truncate(time.Minute)
			for _, e := range []hookglass.Endpoint{hook, box} {
				l, err := v.Ledger(string(e.ID), from, to)
				if err != nil {
					return err
				}
				var pending int64
				for _, c := range l.Consumers {
					pending += c.Pending
				}
				if want := map[bool]int64{true: 20, false: 1}[e.Num == box.Num]; pending != want {
					t.Errorf("%d are pending, want %d: %+v", pending, want, l.Consumers)
				}
			}
			return nil
		})
		if len(seen) != 4 {
			t.Fatalf("%d statements on tasks and events", len(seen))
		}
		each := regexp.MustCompile(`CORRELATED|SEARCH k .*\n.*SEARCH events`)
		if db.Postgres() {
			each = regexp.MustCompile(`Filter: .*event = `)
		}
		for _, s := range seen {
			plan, err := db.Plan(t.Context(), s.text, s.args...)
			if text := strings.Join(plan, "\n"); err != nil || each.MatchString(text) {
				t.Errorf("%v %s:\n%s", err, s.text, text)
			}
		}
	})
}

// What is planned while the statistics know one endpoint looks up that of a new one, and the event of a new delivery. A
// merge in the order of the numbers would read all that came before.
func TestWhatIsNewIsLookedUpAmongAllThatCameBefore(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	e := endpointIn(t, db, newTenant(t, db, "ada@example.com").first)
	event := newEvent(e, "{}")
	capture(t, db, event)
	several(t, db, e, 1_000)
	fillLists(t, db, e, event, 1_000) // all of the first endpoint
	writing(t, db, func(tx *store.Tx) error {
		return tx.Exec("UPDATE tunnel_gaps SET state = 'open', to_seq = NULL WHERE num = (SELECT max(num) FROM tunnel_gaps)")
	})
	if err := db.Analyze(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, tables string
		do           func(v *store.View) error
	}{
		{"the action of a run", "actions|endpoints", func(v *store.View) error { _, err := v.ActionByNum(1); return err }},
		{"a bulk replay", "replay_batches|endpoints", func(v *store.View) error { _, err := v.ReplayBatchByID("id1"); return err }},
		{"a delivery", "forwards|events", func(v *store.View) error { _, _, err := v.Forward(string(e.ID), 1, event.ID); return err }},
		{"shares of events", "events", func(v *store.View) error {
			return found(v.Shares(string(e.ID), store.ShareList{Limit: 25}, v.Now))
		}},
		{"targets with deliveries", "forwarding_targets|endpoints|accounts", func(v *store.View) error { _, err := v.ForwardQueues(); return err }},
		{"events of gaps", "tunnel_events", func(v *store.View) error { return found(v.GapHistory(string(e.ID), 5)) }},
	} {
		var seen []statement
		reading(t, db, func(v *store.View) error {
			recorded := *v
			recorded.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
			return c.do(&recorded)
		})
		looksUp(t, db.PlanForAll, c.name, c.tables, seen...)
	}
}

// A dump may be of many gigabytes of payloads. It reads them in their order, and keeps none of them to sort them.
func TestADumpSortsNoPayloads(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		look := func(known string) {
			t.Helper()
			plan, err := db.Plan(t.Context(), store.DumpOf(store.Table{Name: "payloads", Columns: []store.Column{{Name: "seq"}, {Name: "body"}}}))
			if text := strings.Join(plan, "\n"); err != nil || regexp.MustCompile(`Sort  |(Hash|Merge) |Seq Scan|TEMP B-TREE`).MatchString(text) {
				t.Errorf("%s: %v\n%s", known, err, text)
			}
		}
		look("before anything is known of the tables")
		several(t, db, e, 1_000)
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		look("when there are many events")
	})
}

// Many processes for the rows of one endpoint take longer to start than to read them. PostgreSQL does not know how few
// these are, and means to start some from a million events on; here it is told that they cost nothing.
func TestNoQueryIsDividedAmongProcesses(t *testing.T) {
	dsn := storetest.Migrated(t)
	for _, setting := range []string{
		"parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size", "min_parallel_index_scan_size",
	} {
		exec(t, dsn, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET `+setting+` = 0', current_database()); END $$`)
	}
	db := storetest.Open(t, store.Config{URL: dsn})
	e := newEndpoint(t, db)
	several(t, db, e, 1_000)
	if err := db.Analyze(t.Context()); err != nil {
		t.Fatal(err)
	}
	var seen []statement
	reading(t, db, func(v *store.View) error {
		v.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
		_, _, err := v.CountUndelivered(e.Num, v.Now.Add(-time.Hour))
		return err
	})
	if len(seen) < 2 {
		t.Fatalf("%d statements", len(seen))
	}
	for _, s := range seen {
		plan, err := db.PlanForAll(t.Context(), s.text, s.args...)
		if text := strings.Join(plan, "\n"); err != nil || strings.Contains(text, "Workers") {
			t.Errorf("%v %s:\n%s", err, s.text, text)
		}
	}
}

// Each node looks for channels every second, and whenever a message is queued. Most channels have nothing to send.
func TestChannelsWithNothingToSendAreNotRead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ada := newTenant(t, db, "ada@example.com")
		for i := range 40 {
			newChannel(t, db, ada.first, fmt.Sprint(i))
		}
		follower := newChannel(t, db, ada.first, "follows", hookglass.ActivityWebhookReceived)
		several(t, db, newEndpoint(t, db), 40)
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		var seen []statement
		reading(t, db, func(v *store.View) error {
			v.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
			_, upTo, passed := v.ChannelsPassed()
			_, due := v.ChannelsDue(v.Now, upTo, 20)
			_, _, waiting := v.Waiting(store.HeldChannel{Channel: follower}, 20)
			return errors.Join(passed, due, waiting)
		})
		if len(seen) != 7 {
			t.Fatalf("%d statements", len(seen))
		}
		follows, byNum := `USING INDEX notification_channels_follows`, `SEARCH c USING INTEGER PRIMARY KEY \(rowid=\?\)`
		captured := `SEARCH (endpoints|e) .*rowid=(.*\n)*SEARCH events .*rowid>\? AND rowid<\?`
		if db.Postgres() {
			follows, byNum = `notification_channels_follows on`, `channels_pkey .*\n *Index Cond: \(num = ANY`
			captured = `events_pkey on events(.*\n)*.*endpoints_pkey`
		}
		for i, want := range map[int]string{1: follows, 2: captured, 3: byNum, 6: captured} {
			s := seen[i]
			plan, err := db.Plan(t.Context(), s.text, s.args...)
			text := strings.Join(plan, "\n")
			if err != nil || !regexp.MustCompile(want).MatchString(text) || strings.Contains(text, "SCAN w") {
				t.Errorf("%v %s\n%s", err, s.text, text)
			}
		}
	})
}
