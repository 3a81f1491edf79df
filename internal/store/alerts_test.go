package store_test

import (
	"fmt"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Whatever becomes of an alert, another stays as it is: what it is, what it found, and whom it tells.
func TestWhatBecomesOfAnAlertLeavesTheOthers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		workspace := newTenant(t, db, "ada@example.com").first
		type watched struct {
			e       hookglass.Endpoint
			channel hookglass.Channel
			alert   hookglass.Alert
		}
		made := func(name string) (w watched) {
			t.Helper()
			w = watched{e: newEndpoint(t, db), channel: newChannel(t, db, workspace, name)}
			w.alert = hookglass.Alert{ID: "alrt_" + name, EndpointNum: w.e.Num, Name: name, Kind: hookglass.AlertKeywordMatch, Enabled: true}
			writing(t, db, func(tx *store.Tx) error { return tx.CreateAlert(&w.alert, []int64{w.channel.Num}) })
			return w
		}
		mine, others := made("mine"), made("others")
		// The alert as it is now, with what it found.
		type state struct {
			Alert     hookglass.Alert
			Incidents []hookglass.Incident
		}
		read := func(w watched) (s state) {
			t.Helper()
			reading(t, db, func(v *store.View) (err error) {
				if s.Alert, err = v.Alert(string(w.e.ID), w.alert.ID); err != nil {
					return err
				}
				s.Incidents, err = v.Incidents(string(w.e.ID), w.alert.ID, 0, 10)
				return err
			})
			return s
		}
		turn := func(a hookglass.Alert, incident string) (turned bool, told []hookglass.Channel) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) (err error) {
				turned, told, err = tx.TurnAlert(a, hookglass.Incident{ID: incident, Summary: "It came.", Resolution: "It is over."})
				return err
			})
			return turned, told
		}
		move := func(a hookglass.Alert, cursor int64) (moved bool) {
			t.Helper()
			writing(t, db, func(tx *store.Tx) (err error) {
				moved, err = tx.MoveAlert(a, cursor, time.Time{})
				return err
			})
			return moved
		}
		for i, w := range []watched{mine, others} {
			incident := []string{"inc_mine", "inc_others"}[i]
			if turned, told := turn(w.alert, incident); !turned || len(told) != 1 || told[0].ID != w.channel.ID {
				t.Errorf("%s turned: %t, and tells %+v; want %s alone", w.alert.Name, turned, told, w.channel.Name)
			}
			s := read(w)
			if s.Alert.State != hookglass.AlertTriggered || len(s.Alert.ChannelIDs) != 1 || s.Alert.ChannelIDs[0] != w.channel.ID ||
				len(s.Incidents) != 1 || s.Incidents[0].ID != incident || !s.Incidents[0].ResolvedAt.IsZero() {
				t.Errorf("%s: %+v", w.alert.Name, s)
			}
		}
		before := read(others)
		stay := func(what string) {
			t.Helper()
			same(t, what+", the other", read(others), nil, before)
		}

		// The next round sees that it is over, and then that it came again.
		for _, incident := range []string{"", "inc_again"} {
			if turned, _ := turn(read(mine).Alert, incident); !turned {
				t.Error("it was not turned")
			}
		}
		stay("it is over, and came again")
		found := read(mine).Incidents
		if len(found) != 2 || found[0].ID != "inc_again" || !found[0].ResolvedAt.IsZero() || found[1].Resolution != "It is over." {
			t.Fatalf("found %+v", found)
		}
		reading(t, db, func(v *store.View) error {
			older, err := v.Incidents(string(mine.e.ID), mine.alert.ID, found[0].Num, 10)
			same(t, "what it found before the last", older, err, found[1:])
			return nil
		})

		was := read(mine).Alert
		writing(t, db, func(tx *store.Tx) error {
			_, err := tx.ChangeAlert(mine.e.Num, mine.alert.ID, func(a *hookglass.Alert) ([]int64, string, error) {
				a.Name, a.Config.WindowMinutes = "changed", 7
				return []int64{}, "It was changed.", nil
			})
			return err
		})
		stay("it was changed")
		s := read(mine)
		if s.Alert.Name != "changed" || s.Alert.Config.WindowMinutes != 7 || s.Alert.State != hookglass.AlertOK || len(s.Alert.ChannelIDs) != 0 {
			t.Errorf("changed: %+v", s.Alert)
		}
		if s.Incidents[0].Resolution != "It was changed." || s.Incidents[1] != found[1] {
			t.Errorf("changed: %+v", s.Incidents)
		}
		// Who has read it before knows what it was, and does nothing.
		was.State, was.Cursor = s.Alert.State, s.Alert.Cursor
		if turned, _ := turn(was, "inc_stale"); turned {
			t.Error("it is turned by who has not seen the change")
		}
		if move(was, 4711) {
			t.Error("it is moved by who has not seen the change")
		}
		was = s.Alert
		if !move(was, 10) || move(was, 20) || read(mine).Alert.Cursor != 10 {
			t.Errorf("it is at %d, want 10: two have read on from the same place", read(mine).Alert.Cursor)
		}
		stay("it has read on")

		reading(t, db, func(v *store.View) error {
			all, err := v.Alerts(string(mine.e.ID), 0, 10)
			same(t, "those of its endpoint", all, err, []hookglass.Alert{read(mine).Alert})
			all, err = v.Alerts(string(mine.e.ID), mine.alert.Num, 10)
			same(t, "those behind it", all, err, []hookglass.Alert{})
			n, err := v.CountAlerts(mine.e.Num)
			same(t, "their number", n, err, 1)
			one, err := v.Alert(string(mine.e.ID), others.alert.ID)
			missing(t, "another's", one, err)
			enabled, err := v.AlertsEnabled(mine.alert.Num, 10)
			if err != nil || len(enabled) != 1 || enabled[0].ID != others.alert.ID {
				t.Errorf("enabled behind it: %+v, %v", enabled, err)
			}
			return nil
		})

		writing(t, db, func(tx *store.Tx) error {
			_, err := tx.ChangeAlert(mine.e.Num, mine.alert.ID, func(a *hookglass.Alert) ([]int64, string, error) {
				a.Enabled = false
				return nil, "", nil
			})
			return err
		})
		if turned, _ := turn(read(mine).Alert, "inc_disabled"); turned {
			t.Error("it is turned though it is disabled")
		}
		reading(t, db, func(v *store.View) error {
			enabled, err := v.AlertsEnabled(0, 10)
			if err != nil || len(enabled) != 1 || enabled[0].ID != others.alert.ID {
				t.Errorf("enabled: %+v, %v", enabled, err)
			}
			return nil
		})
		writing(t, db, func(tx *store.Tx) error { return tx.DeleteAlert(mine.e.Num, mine.alert.ID) })
		stay("it was deleted")
	})
}

// When the clock was wrong, an alert may have come and gone at times to come.
func TestIncidentsOfAFutureTimeKeepNoOlderOnes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		a := hookglass.Alert{ID: "alrt_x", EndpointNum: e.Num, Name: "x", Kind: hookglass.AlertKeywordMatch, Enabled: true}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateAlert(&a, nil) })
		now := time.Now()
		over := func(id int, at time.Time) {
			writing(t, db, func(tx *store.Tx) error {
				return tx.Exec("INSERT INTO alert_incidents (id, alert, summary, started_at, resolved_at) VALUES ($1, $2, '', $3, $3)", fmt.Sprint("inc_", id), a.Num, at.UnixMicro())
			})
		}
		const future = 25
		for i := range future {
			over(i, now.Add(time.Hour))
		}
		over(future, now.Add(-2*time.Hour))
		writing(t, db, func(tx *store.Tx) error { // more than one purge deletes
			return tx.Exec(`WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 600)
				INSERT INTO alert_incidents (id, alert, summary, started_at, resolved_at)
				SELECT 'x' || n, cast($1 AS bigint), '', 1, 1 FROM s`, a.Num)
		})
		var due []store.Overdue
		reading(t, db, func(v *store.View) (err error) { due, err = v.IncidentsDue(now, time.Hour); return err })
		pieces := 0
		for ; len(due) > 0; pieces++ {
			writing(t, db, func(tx *store.Tx) (err error) { due, err = tx.PurgeIncidents(due); return err })
		}
		if pieces != 2 {
			t.Errorf("they went in %d pieces", pieces)
		}
		reading(t, db, func(v *store.View) error {
			left, err := v.Incidents(string(e.ID), a.ID, 0, 100)
			if err == nil && (len(left) != future || left[0].ID == fmt.Sprint("inc_", future)) {
				t.Errorf("%d are left, the last is %s", len(left), left[0].ID)
			}
			return err
		})
	})
}
