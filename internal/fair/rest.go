package fair

import (
	"context"
	"time"
)

// Background work that claims rows or stores outcomes rests in proportion to the time it took, within bounds. So what
// arrives meanwhile is batched, and the storage is mostly free for captures.
const (
	restTimes = 3
	restLeast = 5 * time.Millisecond
	restMost  = 10 * time.Millisecond
)

// Rest waits in proportion to the time since began, or until ctx ends.
func Rest(ctx context.Context, began time.Time) {
	pause := time.NewTimer(max(restLeast, min(restTimes*time.Since(began), restMost)))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
}
