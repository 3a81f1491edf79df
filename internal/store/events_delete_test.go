package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// floodWith stores n events quickly, nearly in order.
func floodWith(t testing.TB, db *store.DB, n int, event func(i int) *hookglass.Event) {
	t.Helper()
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 64 {
		wg.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				if err := db.Capture(t.Context(), 0, event(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// flood stores n small events; the i-th was received i seconds after start.
func flood(t testing.TB, db *store.DB, e hookglass.Endpoint, start time.Time, n int) {
	t.Helper()
	floodWith(t, db, n, func(i int) *hookglass.Event {
		event := newEvent(e, fmt.Sprintf(`{"n":%d}`, i))
		event.ReceivedAt = start.Add(time.Duration(i) * time.Second)
		return event
	})
}

func counted(t testing.TB, db *store.DB, e hookglass.Endpoint) (counter, rows int64) {
	t.Helper()
	reading(t, db, func(v *store.View) error {
		n, err := v.Ints(`SELECT event_count FROM endpoint_stats WHERE endpoint = $1`, e.Num)
		if err != nil {
			return err
		}
		r, err := v.Ints(`SELECT count(*) FROM events WHERE endpoint = $1 AND seq > (SELECT floor_seq FROM endpoint_stats WHERE endpoint = $1)`, e.Num)
		counter, rows = n[0], r[0]
		return err
	})
	return counter, rows
}

func TestARangeIsDeletedPieceByPiece(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		start := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
		const n = 1300
		flood(t, db, e, start, n)
		several(t, db, other, 2)
		r := store.EventRange{After: start.Add(99 * time.Second), Before: start.Add(1250 * time.Second)}
		const want = 1250 - 100
		pieces := 0
		for !r.Done {
			writing(t, db, func(tx *store.Tx) error {
				next, err := tx.DeleteEvents(string(e.ID), r)
				if err == nil && next.Deleted-r.Deleted > 500 {
					t.Errorf("one transaction deleted %d", next.Deleted-r.Deleted)
				}
				r = next
				return err
			})
			if pieces++; pieces == 1 {
				// What comes now was received within the range, and is not deleted: the deletion began before.
				late := newEvent(e, "late")
				late.ReceivedAt = start.Add(500 * time.Second)
				capture(t, db, late)
			}
		}
		if pieces < 3 || r.Deleted != want {
			t.Errorf("%d deleted in %d pieces, want %d", r.Deleted, pieces, want)
		}
		if counter, rows := counted(t, db, e); counter != n-want+1 || rows != counter {
			t.Errorf("the counter says %d, there are %d, want %d", counter, rows, n-want+1)
		}
		if counter, rows := counted(t, db, other); counter != 2 || rows != 2 {
			t.Errorf("another endpoint has %d and %d of 2", counter, rows)
		}
		page := list(t, db, e, store.EventList{Query: parse(t, `-late after:"`+start.Add(98*time.Second).Format(time.RFC3339)+`"`), Limit: 100})
		if got := len(page.Events); got != 1+50 { // the bounds themselves stay
			t.Errorf("%d are left behind the lower bound", got)
		}
	})
}

// What was deleted at once is unseen at once, and what a crash cuts off is done by the next job: doing it again
// converges.
func TestAllEventsAreDeletedAtOnceAndErasedLater(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		flood(t, db, e, time.Now(), 1100)
		jobs := db.Listen(store.TopicJobs)
		defer jobs.Close()
		changed := db.Listen(store.TopicEvents(e.Num))
		defer changed.Close()
		drain(jobs)
		drain(changed)
		var n int64
		deleteAll := func(want int64) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) (err error) {
				n, err = tx.DeleteAllEvents(string(e.ID))
				return err
			})
			if n != want {
				t.Errorf("%d deleted, want %d", n, want)
			}
		}
		deleteAll(1100)
		for what, sub := range map[string]*store.Subscription{"jobs": jobs, "events": changed} {
			select {
			case <-sub.C:
			case <-time.After(time.Minute):
				t.Errorf("nobody was told of %s", what)
			}
		}
		deleteAll(0)
		later := several(t, db, e, 3)
		page := list(t, db, e, store.EventList{Limit: 10, Total: true})
		sameEvents(t, "what came later", ids(page.Events), newestFirst(later))
		rows := func() int64 {
			var n []int64
			reading(t, db, func(v *store.View) (err error) {
				n, err = v.Ints("SELECT count(*) FROM events e JOIN payloads p ON p.seq = e.seq WHERE endpoint = $1", e.Num)
				return err
			})
			return n[0]
		}
		if n := rows(); n != 1103 {
			t.Errorf("before erasing there are %d rows", n)
		}
		steps := 0
		for done := false; !done; steps++ {
			writing(t, db, func(tx *store.Tx) (err error) {
				done, err = tx.EraseEvents(e.Num)
				return err
			})
		}
		if n := rows(); n != 3 || steps < 3 {
			t.Errorf("after %d steps there are %d rows", steps, n)
		}
		deleteAll(3)
		if counter, left := counted(t, db, e); counter != 0 || left != 0 {
			t.Errorf("the counter says %d, there are %d", counter, left)
		}
	})
}

func TestErasedEventsGiveTheirSpaceBack(t *testing.T) {
	db := storetest.SQLite(t)
	e := newEndpoint(t, db)
	body := strings.Repeat("x", 60_000)
	floodWith(t, db, 600, func(int) *hookglass.Event { return newEvent(e, body) })
	pages := func(pragma string) (n int64) {
		reading(t, db, func(v *store.View) error {
			found, err := v.Ints("PRAGMA " + pragma)
			n = found[0]
			return err
		})
		return n
	}
	full := pages("page_count")
	writing(t, db, func(tx *store.Tx) error { _, err := tx.DeleteAllEvents(string(e.ID)); return err })
	steps := 0
	for done := false; !done; steps++ {
		writing(t, db, func(tx *store.Tx) (err error) {
			done, err = tx.EraseEvents(e.Num)
			return err
		})
		if steps > 100 {
			t.Fatal("it does not end")
		}
	}
	if after, free := pages("page_count"), pages("freelist_count"); after > full/4 || free > after/2 {
		t.Errorf("of %d pages %d are left, %d of them free, after %d steps", full, after, free, steps)
	}
}

// Captures stand behind each transaction: what a deleted endpoint leaves is erased in pieces, of whatever it has much.
func TestADeletedEndpointIsErasedPieceByPiece(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		writing(t, db, func(tx *store.Tx) error {
			b := hookglass.ReplayBatch{ID: "rbat_x", EndpointNum: e.Num, State: hookglass.BatchPaused, Rate: 1}
			if err := tx.CreateReplayBatch(&b, nil); err != nil {
				return err
			}
			const numbers = "WITH RECURSIVE n (i) AS (SELECT cast(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < cast($2 AS bigint)) "
			return tx.Exec(numbers+"INSERT INTO replay_batch_items (batch, event, event_id, state) SELECT cast($1 AS bigint), i, 'req_x', 'pending' FROM n", b.Num, 20_100)
		})
		for first := 0; first < 1_100; first += 100 { // a transaction has its time
			writing(t, db, func(tx *store.Tx) error {
				for i := first; i < first+100; i++ {
					if _, err := tx.NextAttempt(e.Num, hookglass.DeliveryKey{byte(i), byte(i >> 8)}, "500"); err != nil {
						return err
					}
					run := hookglass.ReplayCaseRun{ID: fmt.Sprint("rrun_", i), EndpointNum: e.Num, CaseNum: 1, IdempotencyKey: fmt.Sprint(i), State: hookglass.RunQueued, Sealed: []byte("x")}
					if _, err := tx.QueueReplayRun(&run); err != nil {
						return err
					}
					if err := tx.AddActivity(hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: tx.Now, EndpointID: e.ID}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteEndpoint(&e) })
		tables := []string{"script_positions", "replay_batch_items", "replay_case_runs", "activities"}
		left := func() (rows [4]int64) {
			reading(t, db, func(v *store.View) error {
				for i, table := range tables {
					n, err := v.Ints("SELECT count(*) FROM " + table)
					if err != nil {
						return err
					}
					rows[i] = n[0]
				}
				return nil
			})
			return rows
		}
		before := left()
		if before != [4]int64{1_100, 20_100, 1_100, 1_100} {
			t.Fatalf("there are %d rows", before)
		}
		for done := false; !done; {
			writing(t, db, func(tx *store.Tx) (err error) {
				done, err = tx.EraseEvents(e.Num)
				return err
			})
			after := left()
			for i, most := range [4]int64{500, 10_000, 500, 500} {
				if n := before[i] - after[i]; n > most {
					t.Errorf("%d rows of %s were erased at once", n, tables[i])
				}
			}
			before = after
		}
		if before != [4]int64{} {
			t.Errorf("%d rows are left", before)
		}
	})
}

func TestErasingWhatWasNeverThereIsDone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		writing(t, db, func(tx *store.Tx) error {
			done, err := tx.EraseEvents(12345)
			if !done {
				t.Error("not done")
			}
			return err
		})
	})
}

// Captures, deletions and marks at the same time: at the end the counters say what is there.
func TestDeletingWhileCapturing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		stop := make(chan struct{})
		var captured, deleted atomic.Int64
		var senders, deleters sync.WaitGroup
		for range 8 {
			senders.Go(func() {
				for range 60 {
					event := newEvent(e, "x")
					if err := db.Capture(t.Context(), 0, event); err != nil {
						t.Error(err)
						return
					}
					captured.Add(1)
				}
			})
		}
		work := func(fn func() error) {
			deleters.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := fn(); err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
						t.Error(err)
						return
					}
				}
			})
		}
		some := func() (id string) {
			_ = db.View(t.Context(), hookglass.System, func(v *store.View) error {
				page, err := v.Events(string(e.ID), store.EventList{Limit: 1, Offset: 3})
				if err == nil && len(page.Events) > 0 {
					id = string(page.Events[0].ID)
				}
				return err
			})
			return id
		}
		for range 2 {
			work(func() error {
				err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), some()) })
				if err == nil {
					deleted.Add(1)
				}
				return err
			})
			work(func() error {
				id := some()
				err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.SetIgnored(string(e.ID), id, "noise") })
				return err
			})
			work(func() error {
				var n int64
				err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
					n, err = tx.DeleteAllEvents(string(e.ID))
					return err
				})
				deleted.Add(n)
				return err
			})
			work(func() error {
				var r store.EventRange
				err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
					r, err = tx.DeleteEvents(string(e.ID), store.EventRange{Before: time.Now().Add(-20 * time.Millisecond)})
					return err
				})
				if err == nil {
					deleted.Add(r.Deleted)
				}
				return err
			})
			work(func() error {
				return db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { _, err := tx.EraseEvents(e.Num); return err })
			})
		}
		senders.Wait()
		close(stop)
		deleters.Wait()
		counter, rows := counted(t, db, e)
		if counter != rows || captured.Load()-deleted.Load() != rows {
			t.Errorf("captured %d, deleted %d; the counter says %d, there are %d", captured.Load(), deleted.Load(), counter, rows)
		}
		reading(t, db, func(v *store.View) error {
			n, err := v.Ints(`SELECT ignored_count FROM endpoint_stats WHERE endpoint = $1 UNION ALL
				SELECT count(*) FROM events WHERE endpoint = $1 AND ignored IS NOT NULL AND seq > (SELECT floor_seq FROM endpoint_stats WHERE endpoint = $1)`, e.Num)
			if err == nil && n[0] != n[1] {
				t.Errorf("%d are counted as ignored, %d are", n[0], n[1])
			}
			return err
		})
	})
}

func TestOnlyWhatIsPastItsRetentionIsPurged(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Now().UTC().Truncate(time.Microsecond)
		home := newTenant(t, db, "purge@example.com") // its account keeps events for 90 s
		quick, temporary, quiet := endpointIn(t, db, home.first), newEndpoint(t, db), newEndpoint(t, db)
		at := func(e hookglass.Endpoint, age time.Duration) *hookglass.Event {
			event := newEvent(e, "x")
			event.ReceivedAt = now.Add(-age)
			return event
		}
		old := capture(t, db, at(quick, time.Hour), at(quick, 2*time.Minute))
		capture(t, db, at(quick, time.Minute), at(quick, 0), at(temporary, 25*time.Hour), at(temporary, time.Hour), at(quiet, time.Hour))
		var due []store.PurgeDue
		look := func() {
			reading(t, db, func(v *store.View) (err error) { due, err = v.PurgesDue(now, 24*time.Hour); return err })
		}
		look()
		// The oldest event of the temporary one is an hour past its retention, that of the quick one less.
		want := []store.PurgeDue{{EndpointNum: temporary.Num, Cutoff: now.Add(-24 * time.Hour), Longest: true}, {EndpointNum: quick.Num, Cutoff: now.Add(-90 * time.Second)}}
		if !slices.Equal(due, want) {
			t.Fatalf("due are %v, want %v", due, want)
		}
		for _, d := range due {
			for more := true; more; {
				writing(t, db, func(tx *store.Tx) (err error) {
					_, more, err = tx.PurgeEvents(d)
					return err
				})
			}
		}
		look()
		if len(due) != 0 {
			t.Errorf("afterwards due are %v", due)
		}
		for e, n := range map[string]int64{string(quick.ID): 2, string(temporary.ID): 1, string(quiet.ID): 1} {
			reading(t, db, func(v *store.View) error {
				page, err := v.Events(e, store.EventList{Limit: 10, Total: true})
				if int64(len(page.Events)) != n || page.Total != n {
					t.Errorf("%d of %d are left, want %d", len(page.Events), page.Total, n)
				}
				return err
			})
		}
		reading(t, db, func(v *store.View) error {
			if _, err := v.Event(string(quick.ID), string(old[0].ID)); !hookglass.Is(err, hookglass.CodeNotFound) {
				t.Errorf("a purged event: %v", err)
			}
			return nil
		})
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			_, _, err := tx.PurgeEvents(store.PurgeDue{EndpointNum: 987, Cutoff: now})
			return err
		})
		if !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("purging an unknown endpoint: %v", err)
		}
	})
}

// Times narrow a large log without reading it, and clocks may have been out of step meanwhile.
func TestTimesAreFoundInALargeLog(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		now := time.Now().UTC().Truncate(time.Second)
		const n = 10_500
		step := time.Minute // a week of events
		floodWith(t, db, n, func(i int) *hookglass.Event {
			event := newEvent(e, "x")
			event.ReceivedAt = now.Add(time.Duration(i-n) * step)
			if i%97 == 0 {
				event.ReceivedAt = event.ReceivedAt.Add(11 * time.Hour)
			}
			if i%89 == 0 {
				event.ReceivedAt = event.ReceivedAt.Add(-11 * time.Hour)
			}
			return event
		})
		reading(t, db, func(v *store.View) error {
			for _, bounds := range [][2]time.Duration{{-80 * time.Hour, -70 * time.Hour}, {-time.Hour, 0}, {-10_000 * time.Hour, -9_000 * time.Hour}, {-10_000 * time.Hour, -170 * time.Hour}, {time.Hour, 20 * time.Hour}} {
				after, before := now.Add(bounds[0]), now.Add(bounds[1])
				want, err := v.Ints("SELECT count(*) FROM events WHERE endpoint = $1 AND received_at > $2 AND received_at < $3", e.Num, after.UnixMicro(), before.UnixMicro())
				if err != nil {
					return err
				}
				page, err := v.Events(string(e.ID), store.EventList{Query: query.Between(after, before), Limit: 1, Total: true})
				if err != nil {
					return err
				}
				if page.Total != want[0] || !page.Exact {
					t.Errorf("between %v and %v: %d, want %d", bounds[0], bounds[1], page.Total, want[0])
				}
			}
			return nil
		})
		r := store.EventRange{After: now.Add(-80 * time.Hour), Before: now.Add(-70 * time.Hour)}
		var want int64
		reading(t, db, func(v *store.View) error {
			n, err := v.Ints("SELECT count(*) FROM events WHERE endpoint = $1 AND received_at > $2 AND received_at < $3", e.Num, r.After.UnixMicro(), r.Before.UnixMicro())
			want = n[0]
			return err
		})
		for !r.Done {
			writing(t, db, func(tx *store.Tx) (err error) {
				next, err := tx.DeleteEvents(string(e.ID), r)
				r = next
				return err
			})
		}
		if r.Deleted != want || want < 400 {
			t.Errorf("%d deleted, want %d", r.Deleted, want)
		}
	})
}

// On PostgreSQL another transaction may delete all between two statements. What it counted out is not counted out
// again.
func TestAllAreDeletedInTheMidstOfAnotherDeletion(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	for name, c := range map[string]struct {
		change func(tx *store.Tx, ref, id string) error
		code   hookglass.Code
	}{
		"a range": {func(tx *store.Tx, ref, _ string) error {
			r, err := tx.DeleteEvents(ref, store.EventRange{Before: time.Now().Add(time.Hour)})
			if r.Deleted != 0 {
				t.Errorf("the range deleted %d", r.Deleted)
			}
			return err
		}, ""},
		"one":     {func(tx *store.Tx, ref, id string) error { return tx.DeleteEvent(ref, id) }, hookglass.CodeNotFound},
		"ignored": {func(tx *store.Tx, ref, id string) error { return tx.SetIgnored(ref, id, "noise") }, hookglass.CodeNotFound},
	} {
		e := newEndpoint(t, db)
		events := several(t, db, e, 3)
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			between := 0
			tx.Record(func(text string, _ []any) {
				if !strings.Contains(text, "event_count, floor_seq") {
					return
				}
				between++
				var n int64
				writing(t, db, func(tx *store.Tx) (err error) { n, err = tx.DeleteAllEvents(string(e.ID)); return err })
				if n != 3 {
					t.Errorf("%s: all were %d", name, n)
				}
			})
			err := c.change(tx, string(e.ID), string(events[1].ID))
			if between != 1 {
				t.Errorf("%s: the other came %d times", name, between)
			}
			return err
		})
		if c.code == "" && err != nil || c.code != "" && !hookglass.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
		if counter, rows := counted(t, db, e); counter != 0 || rows != 0 {
			t.Errorf("%s: the counter says %d, there are %d", name, counter, rows)
		}
		reading(t, db, func(v *store.View) error {
			n, err := v.Ints("SELECT ignored_count FROM endpoint_stats WHERE endpoint = $1", e.Num)
			if n[0] != 0 {
				t.Errorf("%s: %d are counted as ignored", name, n[0])
			}
			return err
		})
	}
}

// A machine's clock may have been years ahead for a while. What it stamped then stays until that time; all else goes.
func TestRetentionPassesOverWhatAWrongClockReceived(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		now := time.Now().UTC().Truncate(time.Microsecond)
		at := func(age time.Duration) *hookglass.Event {
			event := newEvent(e, "x")
			event.ReceivedAt = now.Add(-age)
			return event
		}
		const year = 365 * 24 * time.Hour
		var ahead, kept []hookglass.EventID
		for range 600 { // more than one transaction looks at
			event := at(-year)
			capture(t, db, event)
			ahead = append(ahead, event.ID)
		}
		for i := range 700 {
			event := at(2 * time.Hour)
			if i%100 == 99 {
				event = at(time.Minute)
				kept = append(kept, event.ID)
			}
			capture(t, db, event)
		}
		purge := func(now time.Time) (deleted int64) {
			t.Helper()
			var due []store.PurgeDue
			reading(t, db, func(v *store.View) (err error) {
				due, err = v.PurgesDue(now, time.Hour)
				return err
			})
			for _, d := range due {
				for more := true; more; {
					writing(t, db, func(tx *store.Tx) (err error) {
						var n int64
						n, more, err = tx.PurgeEvents(d)
						deleted += n
						return err
					})
				}
			}
			return deleted
		}
		if n := purge(now); n != 693 {
			t.Errorf("%d of 693 were deleted", n)
		}
		if counter, rows := counted(t, db, e); counter != 607 || rows != 607 {
			t.Errorf("%d and %d are left, want %d", counter, rows, len(ahead)+len(kept))
		}
		if n := purge(now.Add(2 * year)); n != 607 {
			t.Errorf("%d of 607 were deleted when their time had come", n)
		}
	})
}

// Captures stand behind a deletion, which takes fewer events at a time where they take long.
func TestADeletionIsPacedByItsTime(t *testing.T) {
	slow, quick := 80*time.Millisecond, 5*time.Millisecond
	for _, c := range []struct {
		took []time.Duration
		want []int64
	}{
		{[]time.Duration{quick, 30 * time.Millisecond}, []int64{500, 500}},
		{[]time.Duration{slow, slow, slow, slow, slow, slow}, []int64{250, 125, 62, 31, 25, 25}},
		{[]time.Duration{slow, slow, 30 * time.Millisecond, quick, quick, quick}, []int64{250, 125, 125, 250, 500, 500}},
	} {
		if got := store.Pace(c.took...); !slices.Equal(got, c.want) {
			t.Errorf("%v: %d, want %d", c.took, got, c.want)
		}
	}
}

// What a deleted endpoint had is erased from every table, and nothing that another has.
func TestADeletedEndpointIsErasedAlone(t *testing.T) {
	const owned = "SELECT endpoint FROM "
	of := func(parent, num string) string { // of a table whose rows belong to those of another
		return "SELECT coalesce(p.endpoint, 0) FROM %[1]s c LEFT JOIN " + parent + " p ON p.num = c." + num
	}
	tables := []struct{ name, row, endpoints string }{ // a row of endpoint %[1]d; $1 stands for bytes
		{"endpoints", "", "SELECT num FROM "},
		{"endpoint_stats", "", owned},
		{"outcomes", "(endpoint, event, source, at, bad, rolled) VALUES (%[1]d, 1, 'target', 1, 0, 0)", owned},
		{"replays", "(id, endpoint, event, event_id, target_url, passed, replayed_at, record) VALUES ('x%[1]d', %[1]d, 1, 'x', 'x', 1, 1, $1)", owned},
		{"releases", "(id, endpoint, event, event_id, recipients, status, created_at) VALUES ('x%[1]d', %[1]d, 1, 'x', 'x', 'sent', 1)", owned},
		{"replay_cases", "(id, endpoint, source_id, lock_version, snapshot_version, sealed, snapshot, created_at, updated_at) VALUES ('x%[1]d', %[1]d, 'x', 1, 1, $1, $1, 1, 1)", owned},
		{"replay_case_runs", "(id, endpoint, case_num, case_id, lock_version, snapshot_version, idempotency_key, state, sealed, created_at, enqueued_at) VALUES ('x%[1]d', %[1]d, %[1]d, 'x', 1, 1, 'x', 'passed', $1, 1, 1)", owned},
		{"replay_batches", "(id, endpoint, query, target_url, identity_mode, signature_mode, rate, stop_on_failure, state, total, passed, failed, created_at, updated_at) VALUES ('x%[1]d', %[1]d, '', 'x', 'original', 'preserve', 1, 0, 'paused', 1, 0, 0, 1, 1)", owned},
		{"replay_batch_items", "(batch, event, event_id, state) SELECT num, 1, 'x', 'pending' FROM replay_batches WHERE endpoint = %[1]d", of("replay_batches", "batch")},
		{"forwarding_targets", "(endpoint, name, url, enabled, timeout_seconds, retry_count, failures, created_at, updated_at) VALUES (%[1]d, 'x', 'x', 1, 1, 1, 0, 1, 1)", owned},
		{"tunnel_gaps", "(id, endpoint, state, from_seq, started_at, detected_at, target_url, hostname, recovered_gone, expired_gone) VALUES ('x%[1]d', %[1]d, 'open', 1, 1, 1, '', '', 0, 0)", owned},
		{"tunnel_commands", "(id, endpoint, session, hash, request, created_at, expires_at) VALUES ('x%[1]d', %[1]d, 1, $1, $1, 1, 1)", owned},
		{"tunnel_clients", "(id, hash, account_id, endpoint, created_at) VALUES ('x%[1]d', $1, 0, %[1]d, 1)", owned},
		{"actions", "(id, endpoint, name, enabled, failure_policy, position, conditions, steps, created_at, updated_at) VALUES ('x%[1]d', %[1]d, 'x', 1, 'continue', 1, '[]', '[]', 1, 1)", owned},
		{"action_refs", "(kind, target, action, step) SELECT 'tag', 1, num, 'x' FROM actions WHERE endpoint = %[1]d", of("actions", "action")},
		{"action_runs", "(id, endpoint, action, action_id, event, event_id, rerun, status, claim, created_at) VALUES ('x%[1]d', %[1]d, 1, 'x', %[1]d, 'x', 0, 'completed', 0, 1)", owned},
		{"action_totals", "(endpoint, hour, name, n) VALUES (%[1]d, 1, 'x', 1)", owned},
		{"alerts", "(id, endpoint, name, kind, enabled, config, state, changed_at, armed_at, version, cursor, created_at, updated_at) VALUES ('x%[1]d', %[1]d, 'x', 'keyword_match', 1, '{}', 'ok', 1, 1, 1, 1, 1, 1)", owned},
		{"alert_incidents", "(id, alert, summary, started_at) SELECT 'x%[1]d', num, 'x', 1 FROM alerts WHERE endpoint = %[1]d", of("alerts", "alert")},
		{"alert_channels", "(alert, channel) SELECT num, 1 FROM alerts WHERE endpoint = %[1]d", of("alerts", "alert")},
		{"rollups", "(endpoint, span, start, figures) VALUES (%[1]d, 60, 1, '{}')", owned},
		{"shares", "(endpoint, event, event_id, hash, created_at, expires_at) VALUES (%[1]d, 1, 'x', $1, 1, 1)", owned},
		{"saved_searches", "(endpoint, name, query, created_at) VALUES (%[1]d, 'x', 'x', 1)", owned},
		{"signature_configs", "(endpoint, provider, enabled, options, sealed, created_at, updated_at) VALUES (%[1]d, 'github', 1, '{}', $1, 1, 1)", owned},
		{"event_schemas", "(endpoint, provider, event_type, version, observed, events, drifts, summary, first_at, last_at) VALUES (%[1]d, 'x', 'x', 1, '{}', 1, 0, '', 1, 1)", owned},
		{"script_positions", "(endpoint, identity, script, position, at) VALUES (%[1]d, $1, 'x', 1, 1)", owned},
		{"declared", "(workspace_id, file_set, kind, endpoint, ref, name, made, declared_at) SELECT id, 'x', 'x', %[1]d, '', 'x', 1, 1 FROM workspaces WHERE name = 'first'", owned},
		{"activities", "(account_id, endpoint, type, occurred_at, data) VALUES (0, %[1]d, 'webhook.received', 1, '{}')", owned},
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		gone, kept := newEndpoint(t, db), newEndpoint(t, db)
		newTenant(t, db, "home@example.com")
		writing(t, db, func(tx *store.Tx) error {
			for _, table := range tables {
				for _, e := range []hookglass.Endpoint{gone, kept} {
					if table.row == "" {
						continue
					}
					query, args := fmt.Sprintf("INSERT INTO "+table.name+" "+table.row, e.Num), []any{}
					if strings.Contains(query, "$1") {
						args = append(args, fmt.Append(nil, e.Num))
					}
					if err := tx.Exec(query, args...); err != nil {
						return fmt.Errorf("%s: %w", table.name, err)
					}
				}
			}
			return tx.DeleteEndpoint(&gone)
		})
		for done := false; !done; {
			writing(t, db, func(tx *store.Tx) (err error) {
				done, err = tx.EraseEvents(gone.Num)
				return err
			})
		}
		reading(t, db, func(v *store.View) error {
			for _, table := range tables {
				query := table.endpoints + table.name
				if strings.Contains(query, "%") {
					query = fmt.Sprintf(table.endpoints, table.name)
				}
				left, err := v.Ints(query)
				if err != nil || !slices.Equal(left, []int64{kept.Num}) {
					t.Errorf("%s has rows of the endpoints %d, %v; want %d", table.name, left, err, kept.Num)
				}
			}
			return nil
		})
	})
}
