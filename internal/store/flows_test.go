package store_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A node that holds the flows of many accounts keeps all of their leases: a statement has only so many arguments.
func TestLeasesOfManyFlowsAreKept(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		held := make([]store.HeldFlow, 40_000)
		for i := range held {
			held[i] = store.HeldFlow{Flow: hookglass.Flow{Num: int64(i + 1000)}, Claim: 1}
		}
		writing(t, db, func(tx *store.Tx) error {
			still, err := tx.ExtendFlows(held, time.Minute)
			if len(still) > 0 {
				t.Errorf("%d flows are held that there are not", len(still))
			}
			return err
		})
		writing(t, db, func(tx *store.Tx) error { return tx.ReleaseFlows(held) })
	})
}

// Whoever repeats what cannot begin any more has nobody wait until all flows that there were are looked at.
func TestAFlowMadeBeforeIsFoundByItsKey(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		for _, who := range []hookglass.Principal{{Account: n.account.ID}, {Account: n.account.ID, Workspace: n.first.ID}} {
			var seen []statement
			err := db.Update(t.Context(), who, func(tx *store.Tx) error {
				tx.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
				_, err := tx.FlowMadeBefore("key", []byte("fingerprint"))
				return err
			})
			if !hookglass.Is(err, hookglass.CodeNotFound) || len(seen) != 1 {
				t.Fatalf("%v, %+v", err, seen)
			}
			plan, err := db.Plan(t.Context(), seen[0].text, seen[0].args...)
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(plan, "\n"); !strings.Contains(text, "flows_idempotency_key") || !byKeyAlone.MatchString(text) {
				t.Errorf("the plan:\n%s", text)
			}
		}
	})
}

// byKeyAlone is the index of keys, looked up by workspaces and the key.
var byKeyAlone = regexp.MustCompile(`Index Cond: \(?\(workspace_id = .*idempotency_key = |flows_idempotency_key \(workspace_id=\? AND idempotency_key=\?\)`)

// Flows that ended long ago are forgotten, a part at a time; others stay, however old they are.
func TestFlowsThatEndedAreForgottenAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n, end := newTenant(t, db, "ada@example.com"), time.Now().Truncate(time.Microsecond)
		flow := func(id string, finished time.Time) hookglass.Flow {
			state := hookglass.FlowPending
			if !finished.IsZero() {
				state = hookglass.FlowPassed
			}
			return hookglass.Flow{ID: id, AccountID: n.account.ID, WorkspaceID: n.first.ID, State: state, StartedAt: time.Unix(1, 0), DeadlineAt: time.Unix(2, 0), FinishedAt: finished}
		}
		writing(t, db, func(tx *store.Tx) error {
			for _, f := range []hookglass.Flow{
				flow("flow_1", end.Add(-time.Hour)), flow("flow_2", end.Add(-time.Microsecond)), flow("flow_3", end), flow("flow_4", time.Time{}),
			} {
				if err := tx.CreateFlow(&f, "", []byte("fingerprint")); err != nil {
					return err
				}
			}
			return nil
		})
		// What has ended takes no place of those that an account may have pending, and nothing is left to do for it.
		other := newTenant(t, db, "eve@example.com")
		theirs := hookglass.Flow{ID: "flow_theirs", AccountID: other.account.ID, WorkspaceID: other.first.ID, State: hookglass.FlowPending, StartedAt: time.Unix(1, 0), DeadlineAt: time.Unix(2, 0)}
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.CreateFlow(&theirs, "key", []byte("fingerprint")); err != nil {
				return err
			}
			live, err := tx.LockLiveFlows(n.account.ID)
			same(t, "pending flows of the account", live, err, 1)
			found, _, err := tx.FlowByKey(other.first.ID, "key")
			same(t, "by its key", found.ID, err, theirs.ID)
			found, _, err = tx.FlowByKey(n.first.ID, "key")
			missing(t, "by the key of another workspace", found.ID, err)
			claimed, err := tx.ClaimFlows(10, time.Minute)
			if len(claimed) != 2 {
				t.Errorf("%d flows are taken, want the two that have not ended: %+v", len(claimed), claimed)
			}
			if err != nil {
				return err
			}
			return tx.DeleteFlow(theirs.ID)
		})
		reading(t, db, func(v *store.View) error {
			passed, err := v.Flows(hookglass.FlowPassed, 0, 10)
			if len(passed) != 3 || passed[0].ID != "flow_3" || passed[2].ID != "flow_1" {
				t.Errorf("have passed: %+v", passed)
			}
			free, e := v.HasFreeFlows()
			if free {
				t.Error("of those that have ended or are held, some are nobody's")
			}
			return errors.Join(err, e)
		})
		for _, want := range []struct {
			more bool
			left int
		}{{true, 3}, {true, 2}, {false, 2}} {
			writing(t, db, func(tx *store.Tx) error {
				more, err := tx.PurgeFlows(end, 1)
				if err != nil {
					return err
				}
				left, err := tx.Flows("", 0, 10)
				if more != want.more || len(left) != want.left || left[0].ID != "flow_4" || left[1].ID != "flow_3" {
					t.Errorf("%d are left, more %t; want %+v", len(left), more, want)
				}
				if next, err := tx.Flows("", left[0].Num, 1); err != nil || len(next) != 1 || next[0].ID != "flow_3" {
					t.Errorf("behind the newest: %+v, %v", next, err)
				}
				return err
			})
		}
	})
}

// A list of an account's flows has those of all its workspaces, page by page.
func TestFlowsOfAllWorkspacesAreListedByAge(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ada, bob := newTenant(t, db, "ada@example.com"), newTenant(t, db, "bob@example.com")
		var want []string
		writing(t, db, func(tx *store.Tx) error {
			for i, w := range []hookglass.Workspace{ada.first, ada.second, bob.first, ada.first, ada.first, ada.second} {
				f := hookglass.Flow{ID: fmt.Sprintf("flow_%d", i), AccountID: w.AccountID, WorkspaceID: w.ID, State: hookglass.FlowPending}
				if err := tx.CreateFlow(&f, "", []byte{1}); err != nil {
					return err
				}
				if w.AccountID == ada.account.ID {
					want = append([]string{f.ID}, want...)
				}
			}
			return nil
		})
		var got []string
		view(t, db, ada.everywhere, func(v *store.View) {
			for before, page := int64(0), []hookglass.Flow{{}}; len(page) > 0; {
				var err error
				if page, err = v.Flows("", before, 2); err != nil || len(page) > 2 {
					t.Fatal(len(page), err)
				}
				for _, f := range page {
					got, before = append(got, f.ID), f.Num
				}
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("listed %v, want %v", got, want)
		}
	})
}
