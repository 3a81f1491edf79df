package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A search for states of deliveries finds the events that have them, wherever it is judged: by the database, and beside
// what is read of each event.
func TestASearchFindsEventsByTheirDeliveries(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		for i, states := range []string{"", "pending", "sending", "delivered", "failed", "skipped", "delivered failed"} {
			ev := newEvent(e, "{}")
			ev.Path = "/" + strings.ReplaceAll(states, " ", "-")
			if err := db.Capture(t.Context(), 0, ev); err != nil {
				t.Fatal(err)
			}
			for target, state := range strings.Fields(states) {
				deliver(t, db, e, int64(target+1), ev.Seq, state, i)
			}
		}
		for q, want := range map[string][]string{
			"delivery:failed":                   {"/delivered-failed", "/failed"},
			"delivery:FAILED":                   {"/delivered-failed", "/failed"},
			"delivery:delivered":                {"/delivered-failed", "/delivered"},
			"delivery:pending":                  {"/sending", "/pending"},
			"delivery:skipped":                  {"/skipped"},
			"delivery:none":                     {"/"},
			"-delivery:none -delivery:failed":   {"/skipped", "/delivered", "/sending", "/pending"},
			"delivery:failed -delivery:pending": {"/delivered-failed", "/failed"},
			"delivery:failed delivery:skipped":  {},
		} {
			for _, also := range []string{"", " {} -header.x-none:1", " nothing"} { // with the last two each event is read
				text := q + also
				parsed, err := query.Parse(text, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				listed := []string{}
				reading(t, db, func(v *store.View) error {
					page, err := v.Events(string(e.ID), store.EventList{Query: parsed, Limit: 10, Total: true})
					for _, found := range page.Events {
						listed = append(listed, found.Path)
					}
					if err == nil && page.Total != int64(len(listed)) {
						t.Errorf("%s: %d are counted, and %d listed", text, page.Total, len(listed))
					}
					return err
				})
				expected := want
				if also == " nothing" {
					expected = []string{}
				}
				if !slices.Equal(listed, expected) {
					t.Errorf("%s: %q, want %q", text, listed, expected)
				}
				exported := []string{}
				err = db.EachEvent(t.Context(), hookglass.System, string(e.ID), parsed, func(int64, int64) (func(), error) { return func() {}, nil }, func(found *hookglass.Event) error {
					exported = append(exported, found.Path)
					return nil
				})
				slices.Reverse(exported)
				if err != nil || !slices.Equal(exported, listed) {
					t.Errorf("%s: exported %q, %v; listed %q", text, exported, err, listed)
				}
			}
		}
	})
}

func deliver(t *testing.T, db *store.DB, e hookglass.Endpoint, target, event int64, state string, at int) {
	t.Helper()
	due := "NULL"
	if state == "pending" || state == "sending" {
		due = "1"
	}
	err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		return tx.Exec("INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, created_at) VALUES ($1, $2, $3, $4, "+due+", 0, 0, $5)", target, e.Num, event, state, at)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever the server believes of deliveries, those of an event are found by the event.
func TestDeliveriesAreFoundByTheirEvent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		flood(t, db, e, time.Now().Add(-time.Hour), 3_000)
		look := func(when string) {
			t.Helper()
			for _, state := range []string{"failed", "delivered", "pending", "skipped", "none"} {
				for _, text := range []string{"delivery:" + state, "-delivery:" + state} {
					parsed, err := query.Parse(text, time.Now())
					if err != nil {
						t.Fatal(err)
					}
					var seen []statement
					reading(t, db, func(v *store.View) error {
						v.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
						_, err := v.Events(string(e.ID), store.EventList{Query: parsed, Limit: 25, Total: true})
						return err
					})
					byEvent := 0
					for _, s := range seen {
						if !strings.Contains(s.text, "forwards") {
							continue
						}
						plan, err := db.Plan(t.Context(), s.text, s.args...)
						if err != nil {
							t.Fatal(err)
						}
						all := strings.Join(plan, "\n")
						if strings.Contains(all, "Seq Scan") || strings.Contains(all, "SCAN f") || strings.Contains(all, "SCAN events") || strings.Contains(all, "Hash") ||
							strings.Contains(all, "forwards_due") || strings.Contains(all, "forwards_failed") || strings.Contains(all, "forwards_target") {
							t.Errorf("%s, %s:\n%s", when, text, all)
						}
						if strings.Contains(all, "forwards_event") || strings.Contains(all, "forwards_undelivered") {
							byEvent++
						}
					}
					if byEvent == 0 {
						t.Errorf("%s, %s: no statement looks deliveries up by their event", when, text)
					}
				}
			}
		}
		look("before anything is known")
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		look("when there are none")
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			return tx.Exec(fmt.Sprintf(`INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, created_at)
				SELECT 1, endpoint, seq, CASE WHEN seq %% 50 = 0 THEN 'failed' WHEN seq %% 3 = 0 THEN 'pending' ELSE 'delivered' END,
					CASE WHEN seq %% 3 = 0 AND seq %% 50 <> 0 THEN 1 ELSE NULL END, 0, 0, 0 FROM events WHERE endpoint = %d`, e.Num))
		})
		if err != nil {
			t.Fatal(err)
		}
		look("while few were known")
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		look("when all are known")
	})
}
