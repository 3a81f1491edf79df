package intake

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	firstPause = 5 * time.Millisecond
	longPause  = time.Second
	// tellEvery is how often it is logged that connections or bodies are refused. While descriptors are scarce, each
	// one that is released admits a connection, and the next accept fails at once.
	tellEvery = 10 * time.Second
)

// Telling logs a message that may recur very often: the first occurrence, and then at intervals with the number of
// occurrences in between. The zero value is ready to use. Safe for concurrent use.
type Telling struct {
	mu     sync.Mutex
	told   time.Time
	silent int
}

// Tell logs a message with line, a method of a logger, unless one was logged recently.
func (t *Telling) Tell(line func(msg string, args ...any), msg string, details ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if !t.told.IsZero() && now.Sub(t.told) < tellEvery {
		t.silent++
		return
	}
	if t.silent > 0 {
		details = append(details, "not_logged", t.silent)
	}
	line(msg, details...)
	t.told, t.silent = now, 0
}

// Accepting tracks the failures of one accept loop. The zero value is ready to use.
type Accepting struct {
	pause   time.Duration
	failure Telling
}

// Went records that a connection was accepted.
func (a *Accepting) Went() { a.pause = 0 }

// Failed returns how long to pause after a failure: the process may be short of descriptors, which will be released. It
// reports false if the listener is closed.
func (a *Accepting) Failed(err error, log *slog.Logger) (pause time.Duration, again bool) {
	var ne net.Error
	if !errors.As(err, &ne) || errors.Is(err, net.ErrClosed) {
		return 0, false
	}
	a.pause = min(max(2*a.pause, firstPause), longPause)
	a.failure.Tell(log.Error, "accept failed", "error", err, "retry_in", a.pause)
	return a.pause, true
}
