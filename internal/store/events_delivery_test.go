package store_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
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
		finds(t, db, e, map[string][]string{
			"delivery:failed":                   {"/delivered-failed", "/failed"},
			"delivery:FAILED":                   {"/delivered-failed", "/failed"},
			"delivery:delivered":                {"/delivered-failed", "/delivered"},
			"delivery:pending":                  {"/sending", "/pending"},
			"delivery:skipped":                  {"/skipped"},
			"delivery:none":                     {"/"},
			"-delivery:none -delivery:failed":   {"/skipped", "/delivered", "/sending", "/pending"},
			"delivery:failed -delivery:pending": {"/delivered-failed", "/failed"},
			"delivery:failed delivery:skipped":  {},
		})
	})
}

// A search for what local machines made of an event goes by their reports and by replays to them, one of which makes up
// for what failed; a replay to an address does not.
func TestASearchFindsEventsByWhatLocalMachinesMadeOfThem(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		for _, what := range []string{
			"", "url-200", "report-0", "report-500", "report-200", "report-500,report-204,report-503", "report-0,tunnel-500", "report-0,tunnel-500,tunnel-201,tunnel-500",
			"report-0,url-200", "tunnel-0", "tunnel-200",
		} {
			ev := newEvent(e, "{}")
			ev.Path = "/" + what
			capture(t, db, ev)
			for i, one := range strings.FieldsFunc(what, func(r rune) bool { return r == ',' }) {
				to, code, _ := strings.Cut(one, "-")
				status, _ := strconv.Atoi(code)
				writing(t, db, func(tx *store.Tx) error {
					if to == "report" {
						_, err := tx.RecordReport(string(e.ID), string(ev.ID), &hookglass.DeliveryReport{Version: 1, StatusCode: status})
						return err
					}
					r := hookglass.Replay{ID: fmt.Sprintf("rply_%s_%d", ev.ID, i), EndpointNum: e.Num, EventSeq: ev.Seq, EventID: ev.ID, TargetURL: hookglass.TunnelTarget, At: tx.Now}
					if to == "url" {
						r.TargetURL = "https://a.example.com/"
					}
					if status != 0 {
						r.Response = &hookglass.TargetResponse{Status: status}
					}
					return tx.RecordReplay(&r)
				})
			}
		}
		failed := []string{"/tunnel-0", "/report-0,url-200", "/report-0,tunnel-500", "/report-500", "/report-0"}
		delivered := []string{"/tunnel-200", "/report-0,tunnel-500,tunnel-201,tunnel-500", "/report-500,report-204,report-503", "/report-200"}
		finds(t, db, e, map[string][]string{
			"tunnel:failed":                    failed,
			"tunnel:Failed -delivery:failed":   failed,
			"tunnel:delivered":                 delivered,
			"tunnel:none":                      {"/url-200", "/"},
			"-tunnel:delivered -tunnel:failed": {"/url-200", "/"},
			"-tunnel:failed -tunnel:none":      delivered,
			"tunnel:failed delivery:pending":   {},
		})
	})
}

// finds checks which paths searches find, newest first, wherever they are judged: by the database, and beside what is
// read of each event; in lists, their counts, and exports.
func finds(t *testing.T, db *store.DB, e hookglass.Endpoint, searches map[string][]string) {
	t.Helper()
	for q, want := range searches {
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
			for _, term := range []string{"delivery:failed", "delivery:delivered", "delivery:pending", "delivery:skipped", "delivery:none", "tunnel:failed", "tunnel:delivered", "tunnel:none"} {
				for _, text := range []string{term, "-" + term, term + " nothing"} { // for the last, the states are loaded
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
					for _, table := range map[bool][]string{true: {"tunnel_events", "replays"}, false: {"forwards"}}[parsed.ReadsTunnel()] {
						byEvent := 0
						for _, s := range seen {
							if !strings.Contains(s.text, table) {
								continue
							}
							plan, err := db.Plan(t.Context(), s.text, s.args...)
							if err != nil {
								t.Fatal(err)
							}
							all := strings.Join(plan, "\n")
							if readsAll.MatchString(all) {
								t.Errorf("%s, %s:\n%s", when, text, all)
							}
							if foundByEvent[table].MatchString(all) {
								byEvent++
							}
						}
						if byEvent == 0 {
							t.Errorf("%s, %s: no statement looks %s up by their event", when, text, table)
						}
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
			empty := "x''"
			if db.Postgres() {
				empty = "CAST('' AS bytea)"
			}
			return errors.Join(
				tx.Exec(`INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, created_at)
					SELECT 1, endpoint, seq, CASE WHEN seq % 50 = 0 THEN 'failed' WHEN seq % 3 = 0 THEN 'pending' ELSE 'delivered' END,
						CASE WHEN seq % 3 = 0 AND seq % 50 <> 0 THEN 1 ELSE NULL END, 0, 0, 0 FROM events`),
				tx.Exec(`INSERT INTO tunnel_events (event, endpoint, reported_at, delivered_at, reports)
					SELECT seq, endpoint, 1, CASE WHEN seq % 50 = 0 THEN NULL ELSE 1 END, 1 FROM events`),
				tx.Exec(`INSERT INTO replays (id, endpoint, event, event_id, target_url, passed, replayed_at, record)
					SELECT id, endpoint, seq, id, 'tunnel', 0, 1, `+empty+` FROM events`))
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

// readsAll matches the plan of a statement that reads a table, or an index that does not begin with the event.
var readsAll = regexp.MustCompile(`Seq Scan|SCAN (f|t|r|events)\b|Hash|forwards_(due|failed|target)|(tunnel_events|replays)_endpoint`)

// foundByEvent matches plans that look rows of a table up by their event.
var foundByEvent = map[string]*regexp.Regexp{
	"forwards":      regexp.MustCompile(`forwards_event|forwards_undelivered`),
	"tunnel_events": regexp.MustCompile(`SEARCH t USING .*\(event=\?\)|SEARCH t USING INTEGER PRIMARY KEY|tunnel_events_pkey`),
	"replays":       regexp.MustCompile(`replays_event`),
}
