package capture_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"hookglass"
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
		if _, err := hold(t.Context(), large); !hookglass.Is(err, hookglass.CodeRateLimited) {
			t.Errorf("beside a reader who has all the room: %v", err)
		}
		if _, err := hold(t.Context(), small); err != nil {
			t.Errorf("a small one beside it: %v", err)
		}
		b.captures.SetReadTime(10 * time.Second)
		leaves()
		if e, err := hold(t.Context(), large); err != nil || len(e.Body) != 1<<20 {
			t.Errorf("when the reader is gone: %v", err)
		}
	})
}
