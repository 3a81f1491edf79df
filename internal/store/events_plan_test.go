package store_test

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Every statement on events and payloads goes by an index, to the rows of its endpoint alone: none reads a table from
// end to end, and none sorts what it reads.
func TestNoStatementReadsATable(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var endpoints []hookglass.Endpoint
		start := time.Now().Add(-time.Hour)
		for range 20 {
			e := newEndpoint(t, db)
			flood(t, db, e, start, 150)
			endpoints = append(endpoints, e)
		}
		busy := newEndpoint(t, db)
		flood(t, db, busy, start, 11_000)
		endpoints = append(endpoints[10:11], busy)
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		q := func(f query.Filter) query.Query {
			parsed, err := f.Parse(time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return parsed
		}
		seen := make(map[string]statement)
		for _, e := range endpoints {
			ref := string(e.ID)
			var some []*hookglass.Event
			page := func(l store.EventList) func(v *store.View) error {
				return func(v *store.View) error {
					got, err := v.Events(ref, l)
					some = got.Events
					return err
				}
			}
			for name, read := range map[string]func(v *store.View) error{
				"newest":          page(store.EventList{Query: q(query.Filter{}), Limit: 25, Total: true}),
				"cursor":          page(store.EventList{Query: q(query.Filter{}), Limit: 25, Before: math.MaxInt64 - 1, Total: true}),
				"offset":          page(store.EventList{Query: q(query.Filter{}), Limit: 25, Offset: 100}),
				"offset from end": page(store.EventList{Query: q(query.Filter{}), Limit: 25, Offset: 10_990}),
				"ignored":         page(store.EventList{Query: q(query.Filter{Ignored: "true", Method: "POST"}), Limit: 25, Total: true}),
				"filter":          page(store.EventList{Query: q(query.Filter{Q: "provider:stripe event:a.* path:/x tag:t"}), Limit: 25, Total: true}),
				"filter, plenty":  page(store.EventList{Query: q(query.Filter{Q: "provider:unknown"}), Limit: 25, Total: true}),
				"filter, offset":  page(store.EventList{Query: q(query.Filter{Q: "status:2xx"}), Limit: 25, Offset: 60}),
				"id":              page(store.EventList{Query: q(query.Filter{Q: "id:req_01jd4w6q2g000000000000000a"}), Limit: 25}),
				"time":            page(store.EventList{Query: q(query.Filter{After: "3d", Before: "2d"}), Limit: 25, Total: true}),
				"tag":             page(store.EventList{Query: q(query.Filter{Tag: "none"}), Limit: 25, Total: true}),
				"text":            page(store.EventList{Query: q(query.Filter{Q: "nowhere -body./a:b"}), Limit: 25, Total: true}),
				"header":          page(store.EventList{Query: q(query.Filter{Q: "header.x-test:nothing"}), Limit: 25}),
				"stream":          func(v *store.View) error { _, err := v.EventsAfter(ref, 5, 100); return err },
				"far behind":      func(v *store.View) error { _, err := v.MoreAfter(ref, 5, 1000); return err },
				"newest seq":      func(v *store.View) error { _, err := v.NewestSeq(ref); return err },
				"activity":        func(v *store.View) error { _, err := v.Activity("", start, 50); return err },
				"failures": func(v *store.View) error {
					return v.NameFailures([]hookglass.Activity{{Type: hookglass.ActivityForwardingFailed, EventID: some[0].ID}})
				},
				"purges due": func(v *store.View) error { _, err := v.PurgesDue(start, time.Hour); return err },
				"detail":     func(v *store.View) error { _, err := v.Event(ref, string(some[0].ID)); return err },
			} {
				reading(t, db, func(v *store.View) error {
					if err := page(store.EventList{Limit: 1})(v); err != nil {
						return err
					}
					v.Record(func(text string, args []any) { seen[name+": "+text] = statement{text, args} })
					return read(v)
				})
			}
			for name, write := range map[string]func(tx *store.Tx) error{
				"delete": func(tx *store.Tx) error { return tx.DeleteEvent(ref, string(some[0].ID)) },
				"range": func(tx *store.Tx) error {
					_, err := tx.DeleteEvents(ref, store.EventRange{Before: start.Add(10 * time.Second)})
					return err
				},
				"all":   func(tx *store.Tx) error { _, err := tx.DeleteAllEvents(ref); return err },
				"erase": func(tx *store.Tx) error { _, err := tx.EraseEvents(e.Num); return err },
				"purge": func(tx *store.Tx) error {
					_, _, err := tx.PurgeEvents(store.PurgeDue{EndpointNum: e.Num, Cutoff: start})
					return err
				},
				"ignore": func(tx *store.Tx) error { return tx.SetIgnored(ref, string(some[0].ID), "noise") },
				"note":   func(tx *store.Tx) error { return tx.SetNote(ref, string(some[0].ID), "x") },
				"tag":    func(tx *store.Tx) error { _, err := tx.TagEvent(ref, string(some[0].ID), "x"); return err },
			} {
				err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
					page, err := tx.Events(ref, store.EventList{Limit: 1})
					if err != nil {
						return err
					}
					some = page.Events
					tx.Record(func(text string, args []any) { seen[name+": "+text] = statement{text, args} })
					if err := write(tx); err != nil {
						return err
					}
					return errRollback
				})
				if !errors.Is(err, errRollback) {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		looked := 0
		for name, s := range seen {
			if !strings.Contains(s.text, "events") && !strings.Contains(s.text, "payloads") {
				continue
			}
			looked++
			if between := piece.FindStringSubmatch(s.text); between != nil && !strings.Contains(s.text, " IS NOT NULL AND ") && !strings.HasPrefix(name, "purge: ") {
				// A limit tells how many there are, but not where it is for the first of what may be none.
				told := between[3] != "" && !strings.HasPrefix(s.text, "SELECT received_at")
				if above, below := bound(s, between[1]), bound(s, between[2]); above > 0 && below < math.MaxInt64 && !told {
					t.Errorf("%s is not told how many there are, and reads on behind its range", name)
				}
			}
			plan, err := db.Plan(t.Context(), s.text, s.args...)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, step := range plan {
				switch {
				case strings.Contains(step, "Seq Scan on events"), strings.Contains(step, "Seq Scan on payloads"),
					strings.HasPrefix(step, "SCAN events"), strings.HasPrefix(step, "SCAN payloads"):
					t.Errorf("%s reads a whole table:\n%s", name, strings.Join(plan, "\n"))
				case strings.Contains(step, " events_pkey") && !strings.Contains(s.text, "seq = "), strings.Contains(step, "SEARCH events USING INTEGER PRIMARY KEY (rowid>"):
					t.Errorf("%s reads the events of other endpoints:\n%s", name, strings.Join(plan, "\n"))
				case strings.Contains(step, "events_endpoint (endpoint") && !strings.Contains(step, "(endpoint=? AND seq"):
					t.Errorf("%s reads all events of its endpoint:\n%s", name, strings.Join(plan, "\n"))
				case strings.HasPrefix(name, "tag: ") && strings.Contains(s.text, " LIKE ") && strings.Contains(step, "events_endpoint"):
					t.Errorf("%s reads events without tags:\n%s", name, strings.Join(plan, "\n"))
				case strings.Contains(step, "Sort Key: seq"), strings.Contains(step, "TEMP B-TREE FOR ORDER BY") && !strings.Contains(s.text, "last_event_at"):
					t.Errorf("%s sorts:\n%s", name, strings.Join(plan, "\n"))
				}
			}
		}
		if looked < 20 {
			t.Errorf("only %d statements were looked at", looked)
		}
	})
}

// piece finds what PostgreSQL reads between two seqs of an endpoint, and whether it is told how many these are.
var piece = regexp.MustCompile(`\(endpoint, seq\) > \(\$\d+, \$(\d+)\) AND \(endpoint, seq\) < \(\$\d+, \$(\d+)\)(?:( ORDER BY \S+(?: DESC)?, seq(?: DESC)? LIMIT)|$| )`)

func bound(s statement, number string) int64 {
	n, _ := strconv.Atoi(number)
	seq, _ := s.args[n-1].(int64)
	return seq
}

// errRollback undoes a write that was only to be seen.
var errRollback = errors.New("rolled back")
