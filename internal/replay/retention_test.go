package replay_test

import (
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
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
				tx.Now = tx.Now.Add(later)
				more, err := tx.PurgeReplays(30 * 24 * time.Hour)
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
