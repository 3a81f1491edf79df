package job

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

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

// Retries is when a job that failed is tried again.
func Retries(db *store.DB) river.ClientRetryPolicy { return retries{db} }

// MaxLost is how many processes may die with a task in hand before it is given up.
const MaxLost = maxLost

// Renewing has leases renewed as often as that. It must be called before Run.
func (w *Tasks) Renewing(every time.Duration) { w.renewal = every }
