package capture_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/query"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestLargeEventsAreReadAsRoomAllows(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		newest := func(body string) string {
			b.post("POST", "/", body)
			var id string
			err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
				page, err := v.Events(string(b.ep.ID), store.EventList{Limit: 1})
				if err == nil {
					id = string(page.Events[0].ID)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		small, large := newest("{}"), newest(strings.Repeat("x", 1<<20))
		const most = 200 // times a MiB: two are more than there is
		hold := func(ctx context.Context, id string) (*hookglass.Event, error) {
			return b.captures.Hold(ctx, hookglass.System, most, func(v *store.View) (*hookglass.Event, error) { return v.Event(string(b.ep.ID), id) })
		}
		b.captures.SetReadTime(20 * time.Millisecond)
		reader, leaves := context.WithCancel(t.Context())
		if e, err := hold(reader, large); err != nil || len(e.Body) != 1<<20 {
			t.Fatalf("the first: %v", err)
		}
		if _, err := hold(t.Context(), large); !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("beside a reader who has all the room: %v", err)
		}
		if _, err := hold(t.Context(), small); err != nil {
			t.Errorf("a small one beside it: %v", err)
		}
		b.captures.SetReadTime(time.Minute)
		leaves()
		if e, err := hold(t.Context(), large); err != nil || len(e.Body) != 1<<20 {
			t.Errorf("when the reader is gone: %v", err)
		}
	})
}

func TestAnExportReadsLargeEventsAsRoomAllows(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		for range 3 {
			b.post("POST", "/", strings.Repeat("x", 1<<20))
		}
		first := func(ctx context.Context, times int64) {
			t.Helper()
			_, err := b.captures.Hold(ctx, hookglass.System, times, func(v *store.View) (*hookglass.Event, error) {
				page, err := v.Events(string(b.ep.ID), store.EventList{Limit: 1})
				if err != nil {
					return nil, err
				}
				return v.Event(string(b.ep.ID), string(page.Events[0].ID))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		b.captures.SetReadTime(20 * time.Millisecond)
		if err := b.captures.MayExport(t.Context(), hookglass.System); err != nil {
			t.Fatalf("where nobody reads: %v", err)
		}
		reader, leaves := context.WithCancel(t.Context())
		first(reader, 256)
		if err := b.captures.MayExport(t.Context(), hookglass.System); !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Errorf("a file is begun beside a reader who has all the room: %v", err)
		}
		leaves()
		b.captures.SetReadTime(time.Minute)
		if err := b.captures.MayExport(t.Context(), hookglass.System); err != nil {
			t.Errorf("when the reader is gone: %v", err)
		}
		// While a large event is written nobody has its room; that of those before it is free again.
		n := 0
		err := b.captures.Each(t.Context(), hookglass.System, string(b.ep.ID), query.Query{}, func(e *hookglass.Event) error {
			n++
			if len(e.Body) != 1<<20 {
				t.Errorf("event %d has %d bytes", n, len(e.Body))
			}
			b.captures.SetReadTime(20 * time.Millisecond)
			if err := b.captures.RoomFor(t.Context(), hookglass.System, 253<<20); !hookglass.Is(err, hookglass.CodeUnavailable) {
				t.Errorf("event %d is written and takes no room: %v", n, err)
			}
			b.captures.SetReadTime(time.Minute)
			beside, leaves := context.WithCancel(t.Context())
			if err := b.captures.RoomFor(beside, hookglass.System, 120<<20); err != nil {
				t.Errorf("beside event %d: %v", n, err)
			}
			leaves()
			return nil
		})
		if err != nil || n != 3 {
			t.Errorf("%d events, %v", n, err)
		}
	})
}

// What a stream is asked for may be a state of deliveries, which an event in the list form does not have.
func TestAnEventIsMeantByItsDeliveries(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		means := func(text string, want bool) {
			t.Helper()
			q, err := query.Parse(text, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			var newest *hookglass.Event
			err = db.View(t.Context(), hookglass.System, func(v *store.View) error {
				page, err := v.Events(string(b.ep.ID), store.EventList{Limit: 1})
				if err == nil {
					newest = page.Events[0]
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := b.captures.Means(t.Context(), hookglass.System, string(b.ep.ID), q, newest); err != nil || got != want {
				t.Errorf("%s: %v, %v", text, got, err)
			}
		}
		b.post("POST", "/", "{}")
		means("delivery:none", true)
		means("tunnel:none", true)
		means("tunnel:failed", false)
		means("delivery:pending", false)
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			return tx.CreateForwardingTarget(&hookglass.ForwardingTarget{EndpointNum: b.ep.Num, Name: "n", URL: "https://a.example.com", Enabled: true, Timeout: time.Second})
		})
		if err != nil {
			t.Fatal(err)
		}
		b.set(func(*hookglass.Endpoint) {}) // so that the next arrival sees it
		b.post("POST", "/", "{}")
		means("delivery:none", false)
		means("delivery:pending", true)
		means("delivery:pending {}", true)
		means("delivery:pending nothing", false)
		means("tunnel:none delivery:pending {}", true)
		means("-tunnel:none", false)
	})
}
