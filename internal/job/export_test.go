package job

import (
	"log/slog"
	"sync/atomic"
	"time"

	"hookglass/internal/store"
)

// NewFetching is New of workers that look into queues without an announcement as often as that.
func NewFetching(db *store.DB, do Capabilities, log *slog.Logger, every time.Duration) (*Workers, error) {
	return build(db, do, log, every)
}

// Quiet is the log of the queue, and what says that it stops.
func Quiet(h slog.Handler) (slog.Handler, func()) {
	stopping := new(atomic.Bool)
	return quiet{h, stopping, new(faults)}, func() { stopping.Store(true) }
}
