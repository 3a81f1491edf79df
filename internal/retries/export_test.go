package retries

import (
	"time"

	"hookglass"
)

// Group groups events that were captured with their payloads, oldest first, as a profile does.
func Group(events []*hookglass.Event, now time.Time) ([]hookglass.AttemptGroup, hookglass.RetrySummary) {
	var arrivals []arrival
	for _, e := range events {
		arrivals = append(arrivals, arrivalOf(e))
	}
	deliveries := group(arrivals, now)
	groups := make([]hookglass.AttemptGroup, len(deliveries))
	for i, d := range deliveries {
		groups[i] = d.AttemptGroup
	}
	return groups, summarize(deliveries)
}

// Changes is how an attempt differs from the one before.
var Changes = changes

// Within bounds the time in which a profile is made.
func (s *Service) Within(d time.Duration) { s.readFor, s.compareFor = d, d }
