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
	// tellEvery is how often it is logged that connections or bodies are not taken. While descriptors are short, each
	// that is given back lets one in, and the next fails at once.
	tellEvery = 10 * time.Second
)

// Telling is the log of what may happen very often: a line when it begins, and then some that say how often it went
// unsaid. The zero value has told of nothing. It is for many goroutines at a time.
type Telling struct {
	mu     sync.Mutex
	told   time.Time
	silent int
}

// Tell logs a line of it, by the method of a log, unless one was logged a moment ago.
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

// Accepting is what one loop that accepts connections keeps of its failures. The zero value has had none.
type Accepting struct {
	pause   time.Duration
	failure Telling
}

// Went tells that a connection was accepted.
func (a *Accepting) Went() { a.pause = 0 }

// Failed says how long to wait after a failure: the process may be short of descriptors, and those in use will be given
// back. It reports false where the listener is at its end.
func (a *Accepting) Failed(err error, log *slog.Logger) (pause time.Duration, again bool) {
	var ne net.Error
	if !errors.As(err, &ne) || errors.Is(err, net.ErrClosed) {
		return 0, false
	}
	a.pause = min(max(2*a.pause, firstPause), longPause)
	a.failure.Tell(log.Error, "accept failed", "error", err, "retry_in", a.pause)
	return a.pause, true
}
