package replay_test

import (
	"math"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/replay"
	"hookglass/internal/store"
)

// What has ended goes by the retention of its account: bulk replays with what is known of their events, case runs after
// a day at least. The last run of a case stays with it, and nothing that goes on is touched.
func TestWhatHasEndedIsPurged(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		hour := time.Hour
		_, err := b.accounts.SetAccount(t.Context(), b.owner.Account.ID, account.Change{Retention: &hour})
		must(t, err)
		ev := b.capture("POST", "", "x")
		c := b.newCase(ev, nil)
		var runs []string
		for _, key := range []string{"k1", "k2", "k3"} {
			r, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), c.ID, key)
			must(t, err)
			must(t, b.replays.ExecuteRun(t.Context(), r.ID))
			runs = append(runs, r.ID)
		}
		queued, err := b.replays.RunCase(t.Context(), b.who, string(b.ep.ID), b.newCase(ev, nil).ID, "k")
		must(t, err)
		done, open := b.newBatch(nil), b.newBatch(nil)
		b.work(done.ID)
		purge := func(later time.Duration) {
			t.Helper()
			must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				due, err := tx.ReplaysDue(tx.Now.Add(later), 30*24*time.Hour)
				must(t, err)
				more, err := tx.PurgeReplays(due)
				if more {
					t.Error("there is more")
				}
				return err
			}))
		}
		left := func() (ids []string) {
			t.Helper()
			must(t, b.db.View(t.Context(), hookglass.System, func(v *store.View) error {
				for _, id := range append(append([]string{}, runs...), queued.ID) {
					if _, err := v.ReplayRunByID(id); err == nil {
						ids = append(ids, id)
					}
				}
				batches, err := v.ReplayBatches(string(b.ep.ID), 0, 100)
				for _, batch := range batches {
					items, err := v.BatchItems(string(b.ep.ID), batch.ID, 0, 100)
					if err != nil || len(items) == 0 {
						t.Errorf("%s: %d items, %v", batch.ID, len(items), err)
					}
					ids = append(ids, batch.ID)
				}
				return err
			}))
			return ids
		}
		for _, step := range []struct {
			later time.Duration
			want  int
			why   string
		}{
			{59 * time.Minute, 6, "nothing is old enough"},
			{61 * time.Minute, 5, "the bulk replay that has ended"},
			{23 * time.Hour, 5, "a run is kept for a day"},
			{25 * time.Hour, 3, "all runs but the case's last and the one that is queued"},
			{1000 * time.Hour, 3, "these stay"},
		} {
			purge(step.later)
			if got := left(); len(got) != step.want {
				t.Errorf("after %v (%s): %d left, want %d", step.later, step.why, len(got), step.want)
			}
		}
		must(t, b.replays.DeleteCase(t.Context(), b.who, string(b.ep.ID), c.ID))
		purge(25 * time.Hour)
		if got := left(); len(got) != 2 || got[0] != queued.ID || got[1] != open.ID {
			t.Errorf("after the case was deleted: %v", got)
		}
	})
}

// A bulk replay that nobody resumes has an end: when its events are gone it is canceled, and then goes as all that has
// ended.
func TestABulkReplayIsNotPausedForEver(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		hour := time.Hour
		_, err := b.accounts.SetAccount(t.Context(), b.owner.Account.ID, account.Change{Retention: &hour})
		must(t, err)
		b.capture("POST", "", "x")
		paused, running, done := b.newBatch(nil), b.newBatch(nil), b.newBatch(nil)
		_, err = b.replays.Pause(t.Context(), b.who, string(b.ep.ID), paused.ID)
		must(t, err)
		b.work(done.ID)
		for _, step := range []struct {
			later time.Duration
			want  hookglass.BatchState
		}{{59 * time.Minute, hookglass.BatchPaused}, {61 * time.Minute, hookglass.BatchCanceled}} {
			at := b.db.Now().Add(step.later)
			must(t, b.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				tx.Now = at
				_, err := tx.CancelReplayBatches(30 * 24 * time.Hour)
				return err
			}))
			got, items := b.readBatch(paused.ID)
			if got.State != step.want || len(items) != 1 || items[0].State != hookglass.ItemPending {
				t.Errorf("after %v: %+v %+v", step.later, got, items)
			}
			if canceled := got.State == hookglass.BatchCanceled; canceled != (got.FinishedAt.Sub(at).Abs() < time.Second) {
				t.Errorf("%s at %v, ended at %v", got.State, at, got.FinishedAt)
			}
		}
		for id, want := range map[string]hookglass.BatchState{running.ID: hookglass.BatchRunning, done.ID: hookglass.BatchCompleted} {
			if got, _ := b.readBatch(id); got.State != want {
				t.Errorf("%s is %s, want %s", id, got.State, want)
			}
		}

		// Where the account says nothing the retention of the installation counts.
		again := b.newBatch(nil)
		_, err = b.replays.Pause(t.Context(), b.who, string(b.ep.ID), again.ID)
		must(t, err)
		_, err = b.accounts.SetAccount(t.Context(), b.owner.Account.ID, account.Change{Retention: new(time.Duration)})
		must(t, err)
		purge := func(retention time.Duration) {
			t.Helper()
			cfg := b.config()
			cfg.Retention = retention
			must(t, replay.New(b.db, cfg).Purge(t.Context()))
		}
		purge(math.MaxInt64)
		if got, _ := b.readBatch(again.ID); got.State != hookglass.BatchPaused {
			t.Errorf("where events are kept for ever it is %s", got.State)
		}
		purge(time.Microsecond)
		purge(time.Microsecond)
		must(t, b.db.View(t.Context(), b.who, func(v *store.View) error {
			left, err := v.ReplayBatches(string(b.ep.ID), 0, 100)
			for _, batch := range left {
				if batch.ID == again.ID || batch.ID == done.ID {
					t.Errorf("when its time is over it is left: %+v", batch)
				}
			}
			return err
		}))
	})
}
