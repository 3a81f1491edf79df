package store_test

import (
	"fmt"
	"slices"
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// beside does one update while another that has done its part is not committed: on PostgreSQL until the one is done or
// waits for the other, when the first may go on. An embedded database has one writer, so there the one comes after the
// other.
func beside(t *testing.T, db *store.DB, first, second func(*store.Tx) error, goOn ...func(*store.Tx) error) {
	t.Helper()
	done := make(chan error, 1)
	begun := false
	writing(t, db, func(tx *store.Tx) error {
		if err := first(tx); err != nil || begun {
			return err
		}
		begun = true
		go func() { done <- db.Update(t.Context(), hookglass.System, second) }()
		for over := !db.Postgres(); !over; {
			select {
			case err := <-done:
				done <- err
				over = true
			default:
				behind, err := tx.Ints(`SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))`)
				if err != nil {
					return err
				}
				over = behind[0] > 0
			}
		}
		for _, rest := range goOn {
			if err := rest(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Neither a message nor a place in an alert is left of a channel that is deleted meanwhile, whoever comes first.
func TestNothingIsLeftOfAChannelDeletedBesideItsUse(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		home := newTenant(t, db, "left@example.com")
		e := endpointIn(t, db, home.first)
		uses := map[string]func(tx *store.Tx, c hookglass.Channel) error{
			"message": func(tx *store.Tx, c hookglass.Channel) error {
				return tx.Notify(c.Num, "key", hookglass.Message{ID: hookglass.NewSortableID(hookglass.PrefixMessage, tx.Now), Type: hookglass.MessageTest, At: tx.Now})
			},
			"alert": func(tx *store.Tx, c hookglass.Channel) error {
				a := hookglass.Alert{ID: hookglass.NewSortableID(hookglass.PrefixAlert, tx.Now), EndpointNum: e.Num, Name: "x", Kind: hookglass.AlertKeywordMatch}
				return tx.CreateAlert(&a, []int64{c.Num})
			},
		}
		for name, use := range uses {
			for _, deletedFirst := range []bool{false, true} {
				c := newChannel(t, db, home.first, name)
				used := func(tx *store.Tx) error { return use(tx, c) }
				deleted := func(tx *store.Tx) error { _, err := tx.DeleteChannel(c.ID); return err }
				if deletedFirst {
					beside(t, db, deleted, used)
				} else {
					beside(t, db, used, deleted)
				}
				reading(t, db, func(v *store.View) error {
					left, err := v.Ints("SELECT channel FROM notifications UNION ALL SELECT channel FROM alert_channels")
					if len(left) > 0 {
						t.Errorf("%s, deleted first: %t: rows of the channels %d are left", name, deletedFirst, left)
					}
					return err
				})
			}
		}
	})
}

// An event that is given a tag while the tag is deleted or renamed has none that the workspace does not have.
func TestNoEventHasATagDeletedBesideItsUse(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		home := newTenant(t, db, "tagged@example.com")
		e := endpointIn(t, db, home.first)
		for i, ev := range several(t, db, e, 4) {
			tag := hookglass.Tag{WorkspaceID: home.first.ID, Name: fmt.Sprint("tag", i)}
			writing(t, db, func(tx *store.Tx) error { return tx.CreateTag(&tag) })
			used := func(tx *store.Tx) error { _, err := tx.TagEvent(string(e.ID), string(ev.ID), tag.Name); return err }
			renamed := tag
			renamed.Name += "new"
			gone, now := func(tx *store.Tx) error { return tx.DeleteTag(tag.ID) }, ""
			if i%2 == 1 {
				gone, now = func(tx *store.Tx) error { return tx.SaveTag(renamed) }, renamed.Name
			}
			removed := func(tx *store.Tx) error {
				if err := gone(tx); err != nil {
					return err
				}
				_, err := tx.Retag(home.first.ID, 0, tag.Name, now)
				return err
			}
			if i < 2 {
				beside(t, db, used, removed)
			} else {
				beside(t, db, removed, used)
			}
			reading(t, db, func(v *store.View) error {
				all, err := v.Tags(home.first.ID, 0, 0)
				if err != nil {
					return err
				}
				found, err := v.ListedEvent(string(e.ID), string(ev.ID))
				if err != nil {
					return err
				}
				for _, name := range found.Tags {
					if !slices.ContainsFunc(all, func(t hookglass.Tag) bool { return t.Name == name }) {
						t.Errorf("%d: the event has the tag %s, which is gone", i, name)
					}
				}
				return nil
			})
		}
	})
}

// What a transaction stores of an endpoint that it has seen, and that is deleted before it commits, is erased: by a job
// that waits until no such transaction runs any more. An embedded database has one writer, so there it need not wait.
func TestNothingIsLeftOfAnEndpointDeletedBesideItsUse(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		uses := 0
		use := func(tx *store.Tx) error {
			if _, err := tx.EndpointByNum(e.Num); hookglass.Is(err, hookglass.CodeNotFound) {
				return nil
			} else if err != nil {
				return err
			}
			uses++
			run := &hookglass.ActionRun{EndpointNum: e.Num, Status: hookglass.ActionRunCompleted, FinishedAt: tx.Now}
			if err := tx.CountActionRuns(run); err != nil {
				return err
			}
			return tx.CreateReplayCase(&hookglass.ReplayCase{ID: "case_x", EndpointNum: e.Num, Sealed: []byte{1}}, []byte{1})
		}
		beside(t, db, use, func(tx *store.Tx) error { return tx.DeleteEndpoint(&e) })
		if uses != 1 {
			t.Fatalf("it was used %d times", uses)
		}
		late := "scheduled_at <= datetime('now', '+1 seconds')"
		if db.Postgres() {
			late = "scheduled_at BETWEEN now() + interval '50 seconds' AND now() + interval '70 seconds'"
		}
		reading(t, db, func(v *store.View) error {
			jobs, err := v.Ints("SELECT count(*) FROM river_job WHERE kind = 'erase' AND state IN ('available', 'scheduled') AND " + late)
			if err != nil || jobs[0] != 1 {
				t.Errorf("%d jobs erase it in time, %v", jobs, err)
			}
			return nil
		})
		for done := false; !done; {
			writing(t, db, func(tx *store.Tx) (err error) {
				done, err = tx.EraseEvents(e.Num)
				return err
			})
		}
		// Attempts are counted before an event is stored, by what was known of the endpoint.
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			_, err := tx.NextAttempt(e.Num, hookglass.DeliveryKey{1}, "500")
			return err
		})
		if !hookglass.Is(err, hookglass.CodeNotFound) {
			t.Errorf("an attempt at an erased endpoint: %v", err)
		}
		reading(t, db, func(v *store.View) error {
			for _, table := range []string{"action_totals", "replay_cases", "script_positions", "endpoints"} {
				if left, err := v.Ints("SELECT count(*) FROM " + table); err != nil || left[0] > 0 {
					t.Errorf("%s has %d rows, %v", table, left, err)
				}
			}
			return nil
		})
	})
}

// The job that erases the events of a live endpoint does not wait when it finds the endpoint deleted. What a transaction
// adds meanwhile to an alert or an action of it is erased all the same.
func TestNothingIsLeftOfWhatAnEndpointErasedAtOnceOwned(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		home := newTenant(t, db, "owner@example.com")
		uses := map[string]func(*store.Tx, hookglass.Alert, hookglass.Action) error{
			"incident": func(tx *store.Tx, a hookglass.Alert, _ hookglass.Action) error {
				turned, _, err := tx.TurnAlert(a, hookglass.Incident{ID: hookglass.NewSortableID(hookglass.PrefixIncident, tx.Now)})
				if err == nil && !turned {
					t.Error("the alert did not turn")
				}
				return err
			},
			"reference": func(tx *store.Tx, _ hookglass.Alert, a hookglass.Action) error {
				return tx.SaveAction(&a, []store.ActionRef{{Kind: store.RefTag, Target: 1, Step: "x"}})
			},
		}
		for name, use := range uses {
			e := endpointIn(t, db, home.first)
			alert := hookglass.Alert{ID: "alrt_" + name, EndpointNum: e.Num, Name: "x", Kind: hookglass.AlertKeywordMatch, Enabled: true, State: hookglass.AlertOK}
			action := hookglass.Action{ID: "act_" + name, EndpointNum: e.Num, Name: "x"}
			writing(t, db, func(tx *store.Tx) error {
				if err := tx.CreateAlert(&alert, nil); err != nil {
					return err
				}
				return tx.CreateAction(&action, nil)
			})
			beside(t, db, func(tx *store.Tx) error { return use(tx, alert, action) }, func(tx *store.Tx) error {
				if err := tx.DeleteEndpoint(&e); err != nil {
					return err
				}
				_, err := tx.EraseEvents(e.Num)
				return err
			})
			reading(t, db, func(v *store.View) error {
				left, err := v.Ints("SELECT alert FROM alert_incidents UNION ALL SELECT action FROM action_refs")
				if len(left) > 0 {
					t.Errorf("%s: rows of %d are left", name, left)
				}
				return err
			})
		}
	})
}

// A change of an alert and the deletion of its channel do not wait for each other: the server would end one of them
// after a second.
func TestAnAlertIsChangedBesideTheDeletionOfItsChannel(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		home := newTenant(t, db, "beside@example.com")
		e, c := endpointIn(t, db, home.first), newChannel(t, db, home.first, "on call")
		a := hookglass.Alert{ID: "alrt_x", EndpointNum: e.Num, Name: "x", Kind: hookglass.AlertKeywordMatch}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateAlert(&a, []int64{c.Num}) })
		calls := 0
		beside(t, db, func(tx *store.Tx) error {
			calls++
			_, err := tx.ChangeChannel(c.ID, func(*hookglass.Channel) (bool, error) { return false, nil }) // locks it
			return err
		}, func(tx *store.Tx) error {
			calls++
			_, err := tx.ChangeAlert(e.Num, a.ID, func(*hookglass.Alert) ([]int64, string, error) { return []int64{c.Num}, "", nil })
			return err
		}, func(tx *store.Tx) error {
			_, err := tx.DeleteChannel(c.ID)
			return err
		})
		if calls != 2 {
			t.Errorf("%d calls for two updates", calls)
		}
		reading(t, db, func(v *store.View) error {
			if left, err := v.Ints("SELECT channel FROM alert_channels"); err != nil || len(left) > 0 {
				t.Errorf("rows of the channels %d are left, %v", left, err)
			}
			return nil
		})
	})
}
