package intake

import (
	"errors"
	"log/slog"
	"net"
	"time"
)

const (
	firstPause = 5 * time.Millisecond
	longPause  = time.Second
	// failedEvery is how often it is logged that no connection can be accepted. While descriptors are short, each that
	// is given back lets one in, and the next fails at once.
	failedEvery = 10 * time.Second
)

// Accepting is what one loop that accepts connections keeps of its failures. The zero value has had none.
type Accepting struct {
	pause  time.Duration
	told   time.Time
	silent int
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
	if now := time.Now(); !a.told.IsZero() && now.Sub(a.told) < failedEvery {
		a.silent++
	} else {
		details := []any{"error", err, "retry_in", a.pause}
		if a.silent > 0 {
			details = append(details, "not_logged", a.silent)
		}
		log.Error("accept failed", details...)
		a.told, a.silent = now, 0
	}
	return a.pause, true
}
