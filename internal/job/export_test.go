package job

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"
)

// FetchEvery changes for a test how often queues are looked into without an announcement.
func FetchEvery(t *testing.T, every time.Duration) {
	before := fetchEvery
	t.Cleanup(func() { fetchEvery = before })
	fetchEvery = every
}

// Quiet is the log of the queue, and what says that it stops.
func Quiet(h slog.Handler) (slog.Handler, func()) {
	stopping := new(atomic.Bool)
	return quiet{h, stopping, new(faults)}, func() { stopping.Store(true) }
}
