package store_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// The result of a run is sealed. It was not once: those of before are read, and who knows no other form reads none of
// the sealed ones instead of failing.
func TestResultsOfRunsAreReadInBothForms(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		run := hookglass.ReplayCaseRun{ID: "rrun_1", CaseID: "rcase_1", EndpointNum: e.Num, State: hookglass.RunQueued, Sealed: []byte("s")}
		read := func() (r hookglass.ReplayCaseRun) {
			t.Helper()
			err := db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
				r, err = v.ReplayRun(string(e.ID), run.ID)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		update := func(fn func(*store.Tx) error) {
			t.Helper()
			if err := db.Update(t.Context(), hookglass.System, fn); err != nil {
				t.Fatal(err)
			}
		}
		update(func(tx *store.Tx) error {
			c := hookglass.ReplayCase{ID: run.CaseID, EndpointNum: e.Num, SourceID: "req_1", Sealed: []byte("s")}
			if err := tx.CreateReplayCase(&c, []byte("s")); err != nil {
				return err
			}
			run.CaseNum = c.Num
			_, err := tx.QueueReplayRun(&run)
			return err
		})
		if r := read(); r.SealedResult != nil {
			t.Errorf("before it began it has %q", r.SealedResult)
		}
		run.SealedResult = []byte("\x01sealed")
		update(func(tx *store.Tx) error { _, err := tx.BeginReplayRun(&run); return err })
		if r := read(); !bytes.Equal(r.SealedResult, run.SealedResult) {
			t.Errorf("sealed: %q", r.SealedResult)
		}
		plain := `{"Duration":5000000,"Request":{"Method":"PUT","URL":"https://app.example.com/"},"Response":{"Status":204}}`
		update(func(tx *store.Tx) error {
			return tx.Exec("UPDATE replay_case_runs SET result = $1 WHERE num = $2", []byte(plain), run.Num)
		})
		if r := read(); r.SealedResult != nil || r.Request.Method != "PUT" || r.Response.Status != 204 || r.Duration == 0 {
			t.Errorf("in the clear: %+v", r)
		}
	})
}

// Who saves a case that was deleted since it was read is told so, and not to read it again.
func TestADeletedCaseIsNotSaved(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		c := hookglass.ReplayCase{ID: "rcase_1", EndpointNum: e.Num, SourceID: "req_1", Sealed: []byte("s")}
		update := func(fn func(*store.Tx) error) error { return db.Update(t.Context(), hookglass.System, fn) }
		if err := update(func(tx *store.Tx) error { return tx.CreateReplayCase(&c, []byte("s")) }); err != nil {
			t.Fatal(err)
		}
		first, second := c, c
		save := func(c *hookglass.ReplayCase) error {
			return update(func(tx *store.Tx) (err error) { *c, err = tx.SaveReplayCase(*c, nil); return err })
		}
		if err := save(&first); err != nil {
			t.Error(err)
		}
		if err := save(&second); !hookglass.Is(err, hookglass.CodeStaleLockVersion) {
			t.Errorf("changed meanwhile: %v", err)
		}
		if err := update(func(tx *store.Tx) error { return tx.DeleteReplayCase(c.Num) }); err != nil {
			t.Fatal(err)
		}
		if err := save(&first); !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("deleted meanwhile: %v", err)
		}
	})
}

// An update may be done twice, as when the disk was full for the first: a case that is saved by it is not stale then.
func TestACaseIsSavedByAnUpdateThatIsDoneAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hookglass.db")
	db := storetest.Open(t, store.Config{Path: path, Reserve: true})
	holds(t, path, -1)
	e := newEndpoint(t, db)
	c := hookglass.ReplayCase{ID: "rcase_1", EndpointNum: e.Num, SourceID: "req_1", Sealed: []byte("s")}
	writing(t, db, func(tx *store.Tx) error { return tx.CreateReplayCase(&c, []byte("s")) })
	calls := 0
	var saved hookglass.ReplayCase
	err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
		calls++
		if saved, err = tx.SaveReplayCase(c, nil); err == nil && calls == 1 {
			return syscall.ENOSPC
		}
		return err
	})
	if err != nil || calls != 2 || saved.LockVersion != c.LockVersion+1 {
		t.Errorf("in %d calls it is at version %d: %v", calls, saved.LockVersion, err)
	}
}

// Runs and bulk replays may wait for their turn for as long as the targets of others take: they are given another job
// only where they have none.
func TestAReplayThatHasAJobIsNotGivenAnother(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		event := several(t, db, e, 1)[0]
		run := hookglass.ReplayCaseRun{ID: "rrun_1", CaseID: "rcase_1", EndpointNum: e.Num, State: hookglass.RunQueued, Sealed: []byte("s")}
		batch := hookglass.ReplayBatch{ID: "rbatch_1", EndpointNum: e.Num, State: hookglass.BatchRunning}
		writing(t, db, func(tx *store.Tx) error {
			c := hookglass.ReplayCase{ID: run.CaseID, EndpointNum: e.Num, SourceID: "req_1", Sealed: []byte("s")}
			if err := tx.CreateReplayCase(&c, []byte("s")); err != nil {
				return err
			}
			run.CaseNum = c.Num
			if _, err := tx.QueueReplayRun(&run); err != nil {
				return err
			}
			return tx.CreateReplayBatch(&batch, []int64{event.Seq})
		})
		requeue := func() (jobs int64) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) error {
				later := tx.Now.Add(time.Minute)
				return errors.Join(tx.RequeueReplayRuns(later, 10), tx.RequeueReplayBatches(later, 10))
			})
			reading(t, db, func(v *store.View) error {
				n, err := v.Ints("SELECT count(*) FROM river_job")
				jobs = n[0]
				return err
			})
			return jobs
		}
		if n := requeue(); n != 2 {
			t.Errorf("with a job each there are %d of them", n)
		}
		writing(t, db, func(tx *store.Tx) error { return tx.Exec("DELETE FROM river_job") })
		for range 2 {
			if n := requeue(); n != 2 {
				t.Errorf("without one %d are given, want one each", n)
			}
		}
	})
}
