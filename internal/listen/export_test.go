package listen

import (
	"context"
	"time"

	"hookglass"
	"hookglass/api"
)

// Compose is the head and the body of the request for an event.
func Compose(r *api.TunnelRequest, to Target, set hookglass.Headers) (head, body string, err error) {
	out, err := compose(r, to, set)
	return string(out.head), string(out.body), err
}

// Fate is what chaos does to the n-th event.
func (c Chaos) Fate(n uint64) any { return c.fate(n) }

// CatchUp delivers what was captured since a time.
func (l *Listener) CatchUp(ctx context.Context, since time.Time) { l.since(ctx, since, nil) }

// Away is how long a listener was without a connection.
func Away(lost time.Time, gaps []api.Gap) time.Duration { return away(lost, gaps) }
