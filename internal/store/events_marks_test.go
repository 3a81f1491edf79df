package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// A search for what few events have looks at those alone, wherever they lie among the others and whatever else is asked
// of them: events with a tag, with a note, that are ignored, and the one of an id.
func TestASearchForAMarkLooksAtMarkedEventsAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		flood(t, db, e, time.Now().Add(-4*time.Hour), 11_000)
		oldest := list(t, db, e, store.EventList{Limit: 3, Offset: 10_997}).Events
		if len(oldest) != 3 {
			t.Fatalf("%d events at the end", len(oldest))
		}
		tagged, noted, hidden := string(oldest[0].ID), string(oldest[1].ID), string(oldest[2].ID)
		writing(t, db, func(tx *store.Tx) error {
			if _, err := tx.TagEvent(string(e.ID), tagged, "vip"); err != nil {
				return err
			}
			if err := tx.SetNote(string(e.ID), noted, "Refund them"); err != nil {
				return err
			}
			return tx.SetIgnored(string(e.ID), hidden, "noise")
		})
		look := func(when string) {
			t.Helper()
			for _, c := range []struct{ q, index, finds string }{
				{"tag:vip", "events_tagged", tagged}, {"tag:v* method:POST", "events_tagged", tagged}, {"tag:vip nowhere", "events_tagged", ""},
				{"note:refund", "events_noted", noted}, {"note:*", "events_noted", noted}, {"note:refund -nowhere", "events_noted", noted}, {"note:none", "events_noted", ""},
				{"is:ignored -nowhere", "events_ignored", hidden}, {"is:ignored status:404", "events_ignored", ""},
				{"id:" + noted, "", noted}, {"id:" + noted + " nowhere", "", ""}, {"id:req_01jd4w6q2g000000000000000a", "", ""},
			} {
				var seen []statement
				var page store.EventPage
				reading(t, db, func(v *store.View) (err error) {
					v.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
					page, err = v.Events(string(e.ID), store.EventList{Query: parse(t, c.q), Limit: 25, Total: true})
					return err
				})
				var found []string
				for _, event := range page.Events {
					found = append(found, string(event.ID))
				}
				if strings.Join(found, " ") != c.finds || page.Total != int64(len(found)) || !page.Exact {
					t.Errorf("%s, %s: %q, total %d, exact %t", when, c.q, found, page.Total, page.Exact)
				}
				var events int
				for _, s := range seen {
					if !strings.Contains(s.text, "FROM events") {
						continue
					}
					events++
					plan, err := db.Plan(t.Context(), s.text, s.args...)
					if err != nil {
						t.Fatal(err)
					}
					if all := strings.Join(plan, "\n"); c.index != "" && !strings.Contains(all, c.index) {
						t.Errorf("%s, %s:\n%s\n%s", when, c.q, s.text, all)
					}
				}
				if events == 0 || events > 6 {
					t.Errorf("%s, %s: %d statements on events", when, c.q, events)
				}
				if c.finds == "" {
					continue
				}
				var exported []string
				err := db.EachEvent(t.Context(), hookglass.System, string(e.ID), parse(t, c.q), func(int64, int64) (func(), error) { return func() {}, nil }, func(event *hookglass.Event) error {
					exported = append(exported, string(event.ID))
					return nil
				})
				if err != nil || strings.Join(exported, " ") != c.finds {
					t.Errorf("%s, %s: %v, exported %q", when, c.q, err, exported)
				}
			}
		}
		look("before anything is known")
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		look("when all is known")
	})
}

// An export of a time begins where it does, and does not read what came before.
func TestAnExportOfATimeBeginsAtIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		floodWith(t, db, 10_500, func(i int) *hookglass.Event {
			event := newEvent(e, fmt.Sprint(i))
			event.ReceivedAt = time.Now().Add(-time.Duration(10_500-i) * 5 * time.Minute)
			return event
		})
		reading(t, db, func(v *store.View) error {
			all, newest, err := v.Span(string(e.ID), parse(t, ""))
			if err != nil || all != 0 {
				t.Errorf("everything begins above %d, %v", all, err)
			}
			above, last, err := v.Span(string(e.ID), parse(t, "after:1h"))
			if above < newest-400 || above > newest-10 || last != newest {
				t.Errorf("the last hour is from %d to %d of %d", above, last, newest)
			}
			above, last, err2 := v.Span(string(e.ID), parse(t, "before:20d after:21d"))
			if last-above > 1_000 || last > newest-5_000 {
				t.Errorf("a day is from %d to %d of %d", above, last, newest)
			}
			return errors.Join(err, err2)
		})
		exported := 0
		err := db.EachEvent(t.Context(), hookglass.System, string(e.ID), parse(t, "after:1h"), func(int64, int64) (func(), error) { return func() {}, nil }, func(*hookglass.Event) error {
			exported++
			return nil
		})
		if err != nil || exported < 10 || exported > 13 {
			t.Errorf("%d were exported, %v", exported, err)
		}
	})
}
