package fair

import (
	"context"
	"time"
)

// Background work that takes rows, or writes down what became of them, rests for so many times as long as it took, at
// least and at most for so long: what came meanwhile goes together the next time, and the storage belongs to captures
// for most of the time.
const (
	restTimes = 3
	restLeast = 5 * time.Millisecond
	restMost  = 10 * time.Millisecond
)

// Rest waits in proportion to what was done since a time, or until ctx ends.
func Rest(ctx context.Context, began time.Time) {
	pause := time.NewTimer(max(restLeast, min(restTimes*time.Since(began), restMost)))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
}
