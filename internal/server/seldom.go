package server

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"
)

const (
	sameEvery = 10 * time.Second // how often the same warning is logged at most, as that of refused webhooks
	maxSame   = 256              // warnings that are remembered, by their text; further ones are always logged
)

// seldom leaves out a warning or an error that was logged word for word, with all attributes, within sameEvery: while
// the database is away, each loop of the service says so each time it tries again. The next one that is logged says how
// many were left out.
type seldom struct {
	slog.Handler
	with string // attributes and groups of the logger
	mu   *sync.Mutex
	last map[string]*sameLine
}

type sameLine struct {
	at      time.Time // when it was logged last
	leftOut int       // since then
}

func newSeldom(h slog.Handler) slog.Handler {
	return seldom{h, "", new(sync.Mutex), make(map[string]*sameLine)}
}

// Handle implements [slog.Handler].
func (s seldom) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		text := fmt.Sprint(r.Level, s.with, r.Message)
		r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
		leftOut, again := s.again(text, r.Time)
		if again {
			return nil
		}
		if leftOut > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("not_logged", leftOut))
		}
	}
	return s.Handler.Handle(ctx, r)
}

// again reports whether a line was logged within sameEvery before now or, if not, how often it was left out since.
func (s seldom) again(text string, now time.Time) (leftOut int, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.last[text]
	if line != nil && now.Sub(line.at) < sameEvery {
		line.leftOut++
		return 0, true
	}
	if len(s.last) >= maxSame {
		maps.DeleteFunc(s.last, func(_ string, l *sameLine) bool { return now.Sub(l.at) >= sameEvery })
	}
	if len(s.last) < maxSame {
		s.last[text] = &sameLine{at: now}
	}
	if line != nil {
		leftOut = line.leftOut
	}
	return leftOut, false
}

// WithAttrs implements [slog.Handler].
func (s seldom) WithAttrs(attrs []slog.Attr) slog.Handler {
	return seldom{s.Handler.WithAttrs(attrs), s.with + fmt.Sprint(attrs), s.mu, s.last}
}

// WithGroup implements [slog.Handler].
func (s seldom) WithGroup(name string) slog.Handler {
	return seldom{s.Handler.WithGroup(name), s.with + name + ".", s.mu, s.last}
}
