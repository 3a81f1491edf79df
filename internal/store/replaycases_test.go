package store_test

import (
	"bytes"
	"testing"

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
			return update(func(tx *store.Tx) error { return tx.SaveReplayCase(c, nil) })
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
