package store

import (
	"context"
	"sync/atomic"
	"time"
)

// Nodes that share a database compare times with one another: leases, what is due, what began too long ago. Their own
// clocks may be an hour apart, so they go by the database's, which each compares with its own now and then.

const (
	// clockEvery is how often a node looks at the database's clock.
	clockEvery = 2 * time.Second
	// clockAgrees is up to where two clocks are taken to show the same: the way to the database takes some of it, and
	// all that is compared has more patience.
	clockAgrees = time.Second
)

// clock is the time of the database as this process knows it: what was seen of it, and how long ago. That is told by
// the monotonic reading of own, so that a clock which somebody puts right, or wrong, moves nothing. It stands still
// while some machines sleep, which cannot be told from that: where the two disagree the database is asked at once.
type clock struct {
	own   func() time.Time // of this machine
	seen  atomic.Pointer[sight]
	doubt chan struct{} // a hint that own has jumped
}

// sight is what two clocks showed at one moment. A database of this machine alone has none.
type sight struct{ own, database time.Time }

func (c *clock) now() time.Time {
	own := c.own()
	if s := c.seen.Load(); s != nil && s.jumped(own) {
		select {
		case c.doubt <- struct{}{}:
		default:
		}
	}
	return c.stamp(own).UTC().Truncate(time.Microsecond)
}

// jumped reports whether the clock that shows own now went otherwise than time did.
func (s *sight) jumped(own time.Time) bool {
	return (own.Round(0).Sub(s.own.Round(0)) - own.Sub(s.own)).Abs() >= clockAgrees // Round takes the monotonic reading off
}

func (c *clock) stamp(t time.Time) time.Time {
	s := c.seen.Load()
	if s == nil {
		return t
	}
	return s.database.Add(t.Sub(s.own))
}

// set notes what the database's clock shows.
func (c *clock) set(at time.Time) {
	own := c.own()
	if at.Sub(own).Abs() < clockAgrees {
		at = own.Round(0)
	}
	c.seen.Store(&sight{own: own, database: at})
}

// Now is the time by the database, which is the same on all nodes. It does not wait for it.
func (db *DB) Now() time.Time { return db.clock.now() }

// Stamp is the time by the database when this machine's clock showed t.
func (db *DB) Stamp(t time.Time) time.Time { return db.clock.stamp(t) }

// look reads the database's clock.
func (e *postgresEngine) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*clockEvery)
	defer cancel()
	var us int64
	if err := e.pool.QueryRow(ctx, "SELECT "+postgresClock).Scan(&us); err != nil {
		return err
	}
	e.db.clock.set(time.UnixMicro(us))
	return nil
}

// runClock looks until ctx ends. While the database does not answer, what was seen last counts.
func (e *postgresEngine) runClock(ctx context.Context) {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	doubt := e.db.clock.doubt
	for {
		select {
		case <-tick.C:
		case <-doubt:
		case <-ctx.Done():
			return
		}
		doubt = e.db.clock.doubt
		if err := e.look(ctx); err != nil { // its failures are those of all else, and told there
			doubt = nil // which lasts
		}
	}
}
