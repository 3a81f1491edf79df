package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// BenchmarkEvents reads pages of 25 from an endpoint that holds 100,000 webhooks of 1.5 KB, a minute apart, among as
// many of others.
func BenchmarkEvents(b *testing.B) {
	const n = 100_000
	for name, open := range map[string]func(testing.TB) *store.DB{
		"sqlite":   storetest.SQLite,
		"postgres": func(tb testing.TB) *store.DB { return storetest.Open(tb, store.Config{URL: storetest.Migrated(tb)}) },
	} {
		b.Run(name, func(b *testing.B) {
			db := open(b)
			e, other := newEndpoint(b, db), newEndpoint(b, db)
			now := time.Now()
			filler := strings.Repeat("Lorem ipsum dolor sit amet. ", 50)
			floodWith(b, db, 2*n, func(i int) *hookglass.Event {
				if i%2 == 1 {
					return newEvent(other, "x")
				}
				i /= 2
				event := newEvent(e, fmt.Sprintf(`{"n":%d,"filler":%q}`, i, filler))
				event.ReceivedAt = now.Add(time.Duration(i-n) * time.Minute)
				event.Provider, event.EventType = "stripe", fmt.Sprintf("type.%d", i%1000)
				return event
			})
			if err := db.Analyze(b.Context()); err != nil {
				b.Fatal(err)
			}
			var middle int64
			page := list(b, db, e, store.EventList{Limit: 1, Offset: n / 2})
			middle = page.Events[0].Seq
			q := func(text string) query.Query { return parse(b, text) }
			for _, c := range []struct {
				name string
				list store.EventList
			}{
				{"newest", store.EventList{Query: q(""), Total: true}},
				{"cursor, middle", store.EventList{Query: q(""), Before: middle, Total: true}},
				{"offset 1000", store.EventList{Query: q(""), Offset: 1000, Total: true}},
				{"offset middle", store.EventList{Query: q(""), Offset: n / 2, Total: true}},
				{"offset end", store.EventList{Query: q(""), Offset: n - 25, Total: true}},
				{"filter, all match", store.EventList{Query: q("provider:stripe")}},
				{"filter, all match, total", store.EventList{Query: q("provider:stripe"), Total: true}},
				{"filter, 1 of 1000, total", store.EventList{Query: q("event:type.7"), Total: true}},
				{"filter, none, total", store.EventList{Query: q("event:nothing"), Total: true}},
				{"last day, total", store.EventList{Query: q("after:1d"), Total: true}},
				{"a day long ago, total", store.EventList{Query: q("after:31d before:30d"), Total: true}},
				{"text, all match", store.EventList{Query: q("lorem")}},
				{"text, one, 1000 deep", store.EventList{Query: q(fmt.Sprintf(`"\"n\":%d,"`, n-1000))}},
				{"text, none", store.EventList{Query: q("nowhere")}},
				{"header, none", store.EventList{Query: q("header.x-test:nothing")}},
				{"pointer, none", store.EventList{Query: q("body./n:-1")}},
			} {
				b.Run(c.name, func(b *testing.B) {
					c.list.Limit = 25
					var got store.EventPage
					for b.Loop() {
						got = list(b, db, e, c.list)
					}
					b.ReportMetric(float64(len(got.Events)), "events")
					if got.Next != 0 && len(got.Events) < 25 {
						b.ReportMetric(1, "cut-off")
					}
				})
			}
			b.Run("delete all", func(b *testing.B) {
				for b.Loop() {
					err := db.Update(b.Context(), hookglass.System, func(tx *store.Tx) error { _, err := tx.DeleteAllEvents(string(e.ID)); return err })
					if err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("erase 500", func(b *testing.B) {
				for b.Loop() {
					err := db.Update(b.Context(), hookglass.System, func(tx *store.Tx) error { _, err := tx.EraseEvents(e.Num); return err })
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
