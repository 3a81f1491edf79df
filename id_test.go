package hookglass_test

import (
	"slices"
	"testing"
	"time"

	"hookglass"
)

// Senders that are received side by side are named in another order than they are stamped.
func TestIDsOfEventsSortByTheTimeOfReception(t *testing.T) {
	at := time.Date(2026, 11, 27, 3, 4, 5, 999_998_000, time.UTC)
	received := []time.Time{at, at.Add(time.Microsecond), at.Add(2 * time.Microsecond), at.Add(time.Millisecond), at.Add(time.Hour)}
	ids := make([]hookglass.EventID, len(received))
	for i, at := range slices.Backward(received) {
		ids[i] = hookglass.NewEventID(hookglass.EventWebhook, at)
		if got := ids[i].Time(); !got.Equal(at.Truncate(time.Millisecond)) {
			t.Errorf("%s tells %v, received at %v", ids[i], got, at)
		}
	}
	if !slices.IsSorted(ids) {
		t.Errorf("received one after the other: %q", ids)
	}
}

func TestIDsOfEventsOfOneTimeSortAsTheyAreDrawn(t *testing.T) {
	at := time.Date(2026, 11, 27, 3, 4, 5, 6_007_000, time.UTC)
	var ids []hookglass.EventID
	for range 1000 {
		ids = append(ids, hookglass.NewEventID(hookglass.EventEmail, at))
	}
	if !slices.IsSorted(ids) {
		t.Error("received in one microsecond, and not sorted as they were drawn")
	}
}
