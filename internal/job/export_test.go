package job

import (
	"log/slog"
	"sync/atomic"
)

// Quiet is the log of the queue, and what says that it stops.
func Quiet(h slog.Handler) (slog.Handler, func()) {
	stopping := new(atomic.Bool)
	return quiet{h, stopping, new(faults)}, func() { stopping.Store(true) }
}
