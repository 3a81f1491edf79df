package store_test

import (
	"fmt"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestAJobThatNobodyIsAtAnyMoreIsTakenBackOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		do := func(fn func(tx *store.Tx) error) {
			t.Helper()
			if err := db.Update(t.Context(), hookglass.System, fn); err != nil {
				t.Fatal(err)
			}
		}
		ago := "datetime('now', 'subsec', '-2 hours')"
		if db.Postgres() {
			ago = "now() - interval '2 hours'"
		}
		do(func(tx *store.Tx) error { tx.Enqueue(hookglass.EraseJob{EndpointNum: 1}); return nil })
		rescue := func(after time.Duration, longer map[string]time.Duration, want int64) {
			t.Helper()
			if n, err := db.RescueJobs(t.Context(), after, longer); err != nil || n != want {
				t.Errorf("after %v, longer %v: %d %v, want %d", after, longer, n, err, want)
			}
		}
		// A deletion outlives more failures than the 25 of the queue itself: nothing enqueues it again.
		do(func(tx *store.Tx) error {
			most, err := tx.Ints("SELECT max_attempts FROM river_job")
			if err == nil && (len(most) != 1 || most[0] != 10_000) {
				err = fmt.Errorf("attempts at most: %v", most)
			}
			return err
		})
		rescue(0, nil, 0) // it was not begun
		do(func(tx *store.Tx) error {
			return tx.Exec("UPDATE river_job SET state = 'running', attempt = 1, attempted_at = " + ago)
		})
		rescue(3*time.Hour, nil, 0)
		rescue(time.Hour, map[string]time.Duration{hookglass.EraseJob{}.Kind(): 3 * time.Hour}, 0)
		rescue(time.Hour, map[string]time.Duration{"other": 3 * time.Hour}, 1)
		rescue(time.Hour, nil, 0) // it is somebody's turn
		do(func(tx *store.Tx) error {
			return tx.Exec("UPDATE river_job SET state = 'running', attempt = max_attempts, attempted_at = " + ago)
		})
		rescue(time.Hour, nil, 1)
		err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
			given, err := v.Ints("SELECT count(*) FROM river_job WHERE state = 'discarded' AND finalized_at IS NOT NULL")
			if err == nil && given[0] != 1 {
				err = fmt.Errorf("a job without attempts left was not given up")
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
