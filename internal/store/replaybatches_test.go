package store_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// bulkReplay starts a bulk replay of events.
func bulkReplay(t *testing.T, db *store.DB, id string, e hookglass.Endpoint, events ...*hookglass.Event) hookglass.ReplayBatch {
	t.Helper()
	b := hookglass.ReplayBatch{ID: id, EndpointNum: e.Num, State: hookglass.BatchRunning, Rate: 10}
	var seqs []int64
	for _, ev := range events {
		seqs = append(seqs, ev.Seq)
	}
	writing(t, db, func(tx *store.Tx) error { return tx.CreateReplayBatch(&b, seqs) })
	return b
}

// readBulk reads a bulk replay with its events.
func readBulk(t *testing.T, db *store.DB, e hookglass.Endpoint, id string) (b hookglass.ReplayBatch, items []hookglass.BatchItem) {
	t.Helper()
	reading(t, db, func(v *store.View) (err error) {
		if b, err = v.ReplayBatch(string(e.ID), id); err != nil {
			return err
		}
		items, err = v.BatchItems(string(e.ID), id, 0, 100)
		return err
	})
	return b, items
}

// writingAt is writing at another time.
func writingAt(t *testing.T, db *store.DB, now time.Time, fn func(tx *store.Tx) error) {
	t.Helper()
	writing(t, db, func(tx *store.Tx) error {
		tx.Now = now
		return fn(tx)
	})
}

func replayJobs(t *testing.T, db *store.DB) (n int64) {
	t.Helper()
	reading(t, db, func(v *store.View) error {
		ns, err := v.Ints("SELECT count(*) FROM river_job WHERE kind = '" + hookglass.ReplayBatchJob{}.Kind() + "'")
		n = ns[0]
		return err
	})
	return n
}

// A bulk replay goes its way beside others of the same events and of other endpoints, which are as they were.
func TestBulkReplaysDoNotTouchOneAnother(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		events, elsewhere := several(t, db, e, 4), several(t, db, other, 2)
		now := db.Now().Truncate(time.Microsecond)
		begun := func(b hookglass.ReplayBatch) (i hookglass.BatchItem) {
			t.Helper()
			writingAt(t, db, now, func(tx *store.Tx) (err error) {
				var wait time.Duration
				if i, wait, err = tx.BeginBatchItem(&b); err == nil && wait > 0 {
					t.Errorf("%s waits for %v", b.ID, wait)
				}
				return err
			})
			return i
		}
		second, third := bulkReplay(t, db, "rbatch_2", e, events[1], events[3]), bulkReplay(t, db, "rbatch_3", other, elsewhere...)
		b := bulkReplay(t, db, "rbatch_1", e, append(slices.Clone(elsewhere), events[0], events[2], events[3])...)
		if b.Total != 3 || b.CreatedAt.IsZero() || !b.UpdatedAt.Equal(b.CreatedAt) || replayJobs(t, db) != 3 {
			t.Errorf("%+v with %d jobs; want the events of its own endpoint, and a job for each of three", b, replayJobs(t, db))
		}
		begun(second) // one is under way, and another has been sent
		done := begun(third)
		done.State, done.StatusCode = hookglass.ItemPassed, 200
		writingAt(t, db, now, func(tx *store.Tx) error { return tx.FinishBatchItem(third.Num, done) })
		type bulk struct {
			hookglass.ReplayBatch
			items []hookglass.BatchItem
			left  int64
		}
		others := func() (all [2]bulk) {
			for i, of := range []hookglass.Endpoint{e, other} {
				all[i].ReplayBatch, all[i].items = readBulk(t, db, of, []string{"rbatch_2", "rbatch_3"}[i])
				reading(t, db, func(v *store.View) (err error) { all[i].left, err = v.BatchItemsLeft(all[i].Num); return err })
			}
			return all
		}
		before := others()
		if before[0].Total != 2 || before[0].left != 2 || before[1].Total != 2 || before[1].left != 1 || before[1].Passed != 1 {
			t.Errorf("%+v", before)
		}

		first := begun(b)
		writingAt(t, db, now, func(tx *store.Tx) error { return tx.ReturnBatchItem(first.Num, now) })
		if again := begun(b); again.Num != first.Num {
			t.Errorf("after it was given back another is sent: %+v", again)
		}
		first.State, first.Failure = hookglass.ItemFailed, &hookglass.Failure{Code: "timeout", Message: "It took too long."}
		now = now.Add(time.Second)
		writingAt(t, db, now, func(tx *store.Tx) error { return tx.FinishBatchItem(b.Num, first) })
		next := begun(b)
		now = now.Add(time.Second)
		writingAt(t, db, now, func(tx *store.Tx) error {
			orphans, err := tx.OrphanedBatchItems(now.Add(-time.Millisecond), 100)
			if err != nil {
				return err
			}
			var found []string
			for _, o := range orphans {
				found = append(found, o.Batch.ID+" "+string(o.Item.EventID))
			}
			if want := []string{"rbatch_2 " + string(events[1].ID), "rbatch_1 " + string(events[2].ID)}; !slices.Equal(found, want) {
				t.Errorf("under way are %v, want %v", found, want)
			}
			next.State, next.StatusCode = hookglass.ItemPassed, 204
			return tx.FinishBatchItem(b.Num, next)
		})
		if got, _ := readBulk(t, db, e, b.ID); got.State != hookglass.BatchRunning || !got.UpdatedAt.Equal(now) {
			t.Errorf("after its second event: %+v", got)
		}
		writingAt(t, db, now, func(tx *store.Tx) error {
			_, paused := tx.MoveReplayBatch(&b, hookglass.BatchRunning, hookglass.BatchPaused)
			_, canceled := tx.MoveReplayBatch(&b, hookglass.BatchPaused, hookglass.BatchCanceled)
			return errors.Join(paused, canceled, tx.PostponeReplayBatch(b.Num))
		})

		got, items := readBulk(t, db, e, b.ID)
		if got.State != hookglass.BatchCanceled || got.Passed != 1 || got.Failed != 1 || !got.UpdatedAt.Equal(now) || !got.FinishedAt.Equal(now) {
			t.Errorf("%+v", got)
		}
		if len(items) != 3 || items[0].State != hookglass.ItemFailed || !reflect.DeepEqual(items[0].Failure, first.Failure) || items[0].StatusCode != 0 ||
			items[1].State != hookglass.ItemPassed || items[1].Failure != nil || items[1].StatusCode != 204 || items[2].State != hookglass.ItemPending {
			t.Errorf("%+v", items)
		}
		if after := others(); !reflect.DeepEqual(after, before) {
			t.Errorf("the others are\n%+v, and were\n%+v", after, before)
		}
		reading(t, db, func(v *store.View) error {
			for _, want := range []struct {
				of  hookglass.Endpoint
				ids []string
			}{{e, []string{"rbatch_1", "rbatch_2"}}, {other, []string{"rbatch_3"}}} {
				list, err := v.ReplayBatches(string(want.of.ID), 0, 100)
				if err != nil {
					return err
				}
				var ids []string
				for _, b := range list {
					ids = append(ids, b.ID)
				}
				if !slices.Equal(ids, want.ids) {
					t.Errorf("listed are %v, want %v", ids, want.ids)
				}
			}
			if _, err := v.ReplayBatch(string(other.ID), b.ID); !hookglass.Is(err, hookglass.CodeNotFound) {
				t.Errorf("at another endpoint: %v", err)
			}
			rest, err := v.BatchItems(string(e.ID), b.ID, items[0].Num, 1)
			if len(rest) != 1 || rest[0].Num != items[1].Num {
				t.Errorf("after the first event is %+v", rest)
			}
			return err
		})
	})
}

// One event of a bulk replay is under way at a time, and the next begins when the rate allows it: measured from the
// beginning of the one before, and not from one that a clock recorded which was hours ahead.
func TestTheEventsOfABulkReplayBeginOneAfterAnother(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		b := bulkReplay(t, db, "rbatch_1", e, several(t, db, e, 4)...)
		now := db.Now().Truncate(time.Microsecond)
		begin := func() (i hookglass.BatchItem, wait time.Duration, err error) {
			writing(t, db, func(tx *store.Tx) error {
				tx.Now = now
				i, wait, err = tx.BeginBatchItem(&b)
				return nil
			})
			return i, wait, err
		}
		finish := func(i hookglass.BatchItem, state hookglass.ItemState) {
			t.Helper()
			i.State = state
			writingAt(t, db, now, func(tx *store.Tx) error { return tx.FinishBatchItem(b.Num, i) })
		}
		var last hookglass.BatchItem
		for n := range 3 {
			i, wait, err := begin()
			if err != nil || wait != 0 || i.EventSeq <= last.EventSeq {
				t.Fatalf("event %d: %+v after %+v, %v, %v", n, i, last, wait, err)
			}
			now = now.Add(30 * time.Millisecond)
			if _, _, err := begin(); !hookglass.Is(err, hookglass.CodeConflict) {
				t.Errorf("while event %d is under way: %v", n, err)
			}
			finish(i, hookglass.ItemPassed)
			if none, wait, err := begin(); err != nil || none.Num != 0 || wait != 70*time.Millisecond {
				t.Errorf("30 ms after event %d began: %+v, %v, %v", n, none, wait, err)
			}
			now, last = now.Add(70*time.Millisecond), i
		}
		now = now.Add(-2 * time.Hour) // the clock was set back
		i, wait, err := begin()
		if err != nil || i.Num == 0 || wait != 0 {
			t.Errorf("after the clock was set back: %+v, %v, %v", i, wait, err)
		}
		// It ends the bulk replay, and does so once it has its outcome.
		if _, _, err := begin(); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("none is left: %v", err)
		}
		left := func() (n int64) {
			reading(t, db, func(v *store.View) (err error) { n, err = v.BatchItemsLeft(b.Num); return err })
			return n
		}
		if n := left(); n != 1 {
			t.Errorf("while the last is under way %d are left", n)
		}
		finish(i, hookglass.ItemUnknown)
		finish(i, hookglass.ItemPassed) // comes too late
		got, items := readBulk(t, db, e, b.ID)
		if got.Passed != 3 || got.Failed != 1 || items[3].State != hookglass.ItemUnknown || left() != 0 {
			t.Errorf("%+v, %+v", got, items[3])
		}
	})
}

// What an event was begun for and did not leave is given back by whoever began it, and by nobody else.
func TestAnEventIsGivenBackByWhoBeganIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		b := bulkReplay(t, db, "rbatch_1", e, several(t, db, e, 1)...)
		now := db.Now().Truncate(time.Microsecond)
		later := now.Add(time.Second)
		var i hookglass.BatchItem
		state := func(when time.Time, step func(tx *store.Tx) error) hookglass.ItemState {
			t.Helper()
			writingAt(t, db, when, step)
			_, items := readBulk(t, db, e, b.ID)
			return items[0].State
		}
		begin := func(tx *store.Tx) (err error) { i, _, err = tx.BeginBatchItem(&b); return err }
		giveBack := func(tx *store.Tx) error { return tx.ReturnBatchItem(i.Num, now) }
		for _, step := range []struct {
			doing string
			when  time.Time
			do    func(tx *store.Tx) error
			want  hookglass.ItemState
		}{
			{"begun", now, begin, hookglass.ItemSending},
			{"given back", now, giveBack, hookglass.ItemPending},
			{"begun by another", later, begin, hookglass.ItemSending},
			{"given back again by the first", later, giveBack, hookglass.ItemSending},
			{"answered", later, func(tx *store.Tx) error { i.State = hookglass.ItemPassed; return tx.FinishBatchItem(b.Num, i) }, hookglass.ItemPassed},
			{"given back after the answer", later, func(tx *store.Tx) error { return tx.ReturnBatchItem(i.Num, later) }, hookglass.ItemPassed},
		} {
			if got := state(step.when, step.do); got != step.want {
				t.Errorf("%s: it is %s, want %s", step.doing, got, step.want)
			}
		}
	})
}

// Only what runs has a job, and gets one again where it has none and has not moved for a while.
func TestOnlyBulkReplaysThatRunHaveJobs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		events := several(t, db, e, 1)
		running, paused, canceled := bulkReplay(t, db, "rbatch_1", e, events...), bulkReplay(t, db, "rbatch_2", e, events...), bulkReplay(t, db, "rbatch_3", e, events...)
		if n := replayJobs(t, db); n != 3 {
			t.Errorf("%d jobs of three", n)
		}
		forget := func() {
			writing(t, db, func(tx *store.Tx) error { return tx.Exec("DELETE FROM river_job") })
		}
		forget()
		move := func(b *hookglass.ReplayBatch, from, to hookglass.BatchState) (moved bool) {
			writing(t, db, func(tx *store.Tx) (err error) { moved, err = tx.MoveReplayBatch(b, from, to); return err })
			return moved
		}
		if !move(&paused, hookglass.BatchRunning, hookglass.BatchPaused) || !move(&canceled, hookglass.BatchRunning, hookglass.BatchCanceled) {
			t.Error("they run, and are not stopped")
		}
		if late := canceled; move(&late, hookglass.BatchPaused, hookglass.BatchRunning) || move(&late, hookglass.BatchRunning, hookglass.BatchCompleted) {
			t.Error("it was canceled, and moves again")
		}
		if n := replayJobs(t, db); n != 0 {
			t.Errorf("%d jobs of what does not run", n)
		}
		requeue := func(before time.Time) int64 {
			forget()
			writing(t, db, func(tx *store.Tx) error { return tx.RequeueReplayBatches(before, 10) })
			return replayJobs(t, db)
		}
		if n := requeue(running.UpdatedAt); n != 0 {
			t.Errorf("%d jobs of what has just moved", n)
		}
		if n := requeue(db.Now().Add(time.Minute)); n != 1 {
			t.Errorf("%d jobs, want one of what runs", n)
		}
		forget()
		if !move(&paused, hookglass.BatchPaused, hookglass.BatchRunning) || replayJobs(t, db) != 1 {
			t.Errorf("%d jobs of what goes on", replayJobs(t, db))
		}
	})
}

// What is paused is canceled, and what has ended is purged, by the retention of its own account, from when it was paused
// or ended.
func TestBulkReplaysEndByTheRetentionOfTheirAccount(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		short, long := newTenant(t, db, "short@example.com"), newTenant(t, db, "long@example.com")
		long.account.Retention = 10 * time.Hour
		writing(t, db, func(tx *store.Tx) error { return tx.UpdateAccount(long.account) })
		now := db.Now().Truncate(time.Microsecond)
		stopped := now.Add(5 * time.Hour) // long after they began
		state := func(e hookglass.Endpoint, id string) hookglass.BatchState {
			var b hookglass.ReplayBatch
			reading(t, db, func(v *store.View) (err error) {
				if b, err = v.ReplayBatch(string(e.ID), id); hookglass.Is(err, hookglass.CodeNotFound) {
					return nil
				}
				return err
			})
			return b.State
		}
		tenants := []struct {
			tenant
			e hookglass.Endpoint
		}{{short, endpointIn(t, db, short.first)}, {long, endpointIn(t, db, long.first)}}
		for _, n := range tenants {
			events := several(t, db, n.e, 1)
			for id, to := range map[string]hookglass.BatchState{"paused": hookglass.BatchPaused, "ended": hookglass.BatchCompleted} {
				b := bulkReplay(t, db, id+n.account.Name, n.e, events...)
				writingAt(t, db, stopped, func(tx *store.Tx) error { _, err := tx.MoveReplayBatch(&b, hookglass.BatchRunning, to); return err })
			}
			bulkReplay(t, db, "running"+n.account.Name, n.e, events...)
		}
		for _, step := range []struct {
			after  time.Duration
			paused [2]hookglass.BatchState
			ended  [2]hookglass.BatchState
		}{
			{89 * time.Second, [2]hookglass.BatchState{"paused", "paused"}, [2]hookglass.BatchState{"completed", "completed"}},
			{91 * time.Second, [2]hookglass.BatchState{"canceled", "paused"}, [2]hookglass.BatchState{"", "completed"}},
			{10*time.Hour - time.Second, [2]hookglass.BatchState{"", "paused"}, [2]hookglass.BatchState{"", "completed"}},
			{10*time.Hour + time.Second, [2]hookglass.BatchState{"", "canceled"}, [2]hookglass.BatchState{"", ""}},
		} {
			writingAt(t, db, stopped.Add(step.after), func(tx *store.Tx) error {
				due, err := tx.ReplaysDue(tx.Now, time.Hour)
				_, purged := tx.PurgeReplays(due)
				_, canceled := tx.CancelReplayBatches(time.Hour)
				return errors.Join(err, purged, canceled)
			})
			for i, n := range tenants {
				paused, ended, running := state(n.e, "paused"+n.account.Name), state(n.e, "ended"+n.account.Name), state(n.e, "running"+n.account.Name)
				if paused != step.paused[i] || ended != step.ended[i] || running != hookglass.BatchRunning {
					t.Errorf("%v later those of %s are %q, %q and %q", step.after, n.account.Name, paused, ended, running)
				}
			}
		}
	})
}
