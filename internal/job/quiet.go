package job

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	faultEvery = time.Minute // how often the same fault of the queue's loops is logged at most
	maxFaults  = 100         // faults that are remembered, by their text
)

// quiet adapts the queue's log. The queue logs as errors what it cancelled itself when asked to stop, and reports its
// state every few seconds, which would be all that an idle server logs. While the database is away, its loops log the
// same error several times a second although each retries: these become warnings, as elsewhere, and are logged rarely.
type quiet struct {
	slog.Handler
	stopping *atomic.Bool
	said     *faults
}

// faults remembers the recent faults of the queue's loops by their text.
type faults struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// again reports whether the same fault was logged less than faultEvery before now.
func (f *faults) again(said string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, ok := f.last[said]; ok && now.Sub(before) < faultEvery && !now.Before(before) {
		return true
	}
	if f.last == nil || len(f.last) >= maxFaults {
		f.last = map[string]time.Time{}
	}
	f.last[said] = now
	return false
}

// Handle implements [slog.Handler].
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if q.stopping.Load() && cutOff(r) {
		return nil
	}
	switch {
	case r.Level > slog.LevelInfo && strings.HasPrefix(r.Message, "jobexecutor."): // a fault of a single job
		return q.Handler.Handle(ctx, r)
	case r.Level > slog.LevelInfo:
		r.Level = slog.LevelWarn
	case r.Level == slog.LevelInfo:
		r.Level = slog.LevelDebug
	}
	if !q.Enabled(ctx, r.Level) || r.Level == slog.LevelWarn && q.said.again(saying(r), r.Time) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.stopping, q.said}
}

// WithGroup implements [slog.Handler].
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.stopping, q.said}
}

// cutOff reports whether a record mentions a cancelled context, as an error or in text.
func cutOff(r slog.Record) (cut bool) {
	r.Attrs(func(a slog.Attr) bool {
		cut = strings.Contains(a.Value.String(), context.Canceled.Error())
		return !cut
	})
	return cut
}

// saying returns a record's message and its error.
func saying(r slog.Record) string {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" || a.Key == "error" {
			text += " " + a.Value.String()
		}
		return true
	})
	return text
}
