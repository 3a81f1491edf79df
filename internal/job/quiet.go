package job

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
)

// quiet is the log of the queue, which calls an error what it cut off itself when it was asked to stop, and tells every
// few seconds how it goes: that is for who looks into it, and an idle server's log would hold nothing else.
type quiet struct {
	slog.Handler
	stopping *atomic.Bool
}

// Handle implements [slog.Handler].
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if q.stopping.Load() && cutOff(r) {
		return nil
	}
	if r.Level == slog.LevelInfo {
		if !q.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.stopping}
}

// WithGroup implements [slog.Handler].
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.stopping}
}

// cutOff reports whether a record says that a context was canceled, as an error or in the words of one.
func cutOff(r slog.Record) (cut bool) {
	r.Attrs(func(a slog.Attr) bool {
		cut = strings.Contains(a.Value.String(), context.Canceled.Error())
		return !cut
	})
	return cut
}
