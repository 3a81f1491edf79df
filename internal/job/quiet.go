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
	faultEvery = time.Minute // a fault of the queue's loops is said again after it at the earliest
	maxFaults  = 100         // that are remembered; they differ by what they say
)

// quiet is the log of the queue, which calls an error what it cut off itself when it was asked to stop, and tells every
// few seconds how it goes: that is for who looks into it, and an idle server's log would hold nothing else. While the
// database is away its loops all fail several times a second, and say the same each time, as an error, though each
// tries again: that is a warning, as others say of the same.
type quiet struct {
	slog.Handler
	stopping *atomic.Bool
	said     *faults
}

// faults are those that the queue's loops told of lately, by what they said.
type faults struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// again reports whether the same was said less than faultEvery before now.
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
	case r.Level > slog.LevelInfo && strings.HasPrefix(r.Message, "jobexecutor."): // what is wrong with a job is its own
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

// cutOff reports whether a record says that a context was canceled, as an error or in the words of one.
func cutOff(r slog.Record) (cut bool) {
	r.Attrs(func(a slog.Attr) bool {
		cut = strings.Contains(a.Value.String(), context.Canceled.Error())
		return !cut
	})
	return cut
}

// saying is a record's message with the error that it names.
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
