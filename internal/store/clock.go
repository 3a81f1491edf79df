package store

import (
	"context"
	"sync/atomic"
	"time"
)

// Nodes that share a database compare times: leases, due times, timeouts. Their own clocks may be an hour apart, so
// they use the database's clock, with which each node compares its own regularly.

const (
	// clockEvery is how often a node reads the database's clock.
	clockEvery = 2 * time.Second
	// clockAgrees is the difference up to which two clocks count as equal. Part of it is the round trip to the
	// database, and all comparisons tolerate more.
	clockAgrees = time.Second
)

// clock is the database's time as this process knows it: the time last read, plus what has passed since by the
// monotonic clock, which does not change when somebody sets the clock. On some machines the monotonic clock stops
// during sleep, so if it disagrees with the wall clock, the database is asked at once.
type clock struct {
	own   func() time.Time // of this machine
	seen  atomic.Pointer[sight]
	doubt chan struct{} // signals that own has jumped
}

// sight is what the two clocks showed at one moment. An embedded database has none.
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

// jumped reports whether the wall clock and the monotonic clock have moved apart since s.
func (s *sight) jumped(own time.Time) bool {
	return (own.Round(0).Sub(s.own.Round(0)) - own.Sub(s.own)).Abs() >= clockAgrees // Round: wall clock only
}

func (c *clock) stamp(t time.Time) time.Time {
	s := c.seen.Load()
	if s == nil {
		return t
	}
	return s.database.Add(t.Sub(s.own))
}

// set records what the database's clock showed at some moment since it was asked. On a busy machine the answer can be
// seconds old when it is read; what is known already stays, as far as the answer allows it.
func (c *clock) set(asked, at time.Time) {
	own := c.own()
	took := own.Sub(asked)
	possible := func(now time.Time) bool { return now.Sub(at) > -clockAgrees && now.Sub(at) < took+clockAgrees }
	database := at.Add(took / 2)
	if known := c.stamp(own); took >= clockAgrees && possible(known) {
		database = known
	} else if possible(own) {
		database = own
	}
	c.seen.Store(&sight{own: own, database: database.Round(0)})
}

// Now returns the database's time, which is the same on all nodes. It does not wait for the database.
func (db *DB) Now() time.Time { return db.clock.now() }

// Stamp returns the database's time at which this machine's clock showed t.
func (db *DB) Stamp(t time.Time) time.Time { return db.clock.stamp(t) }

// look reads the database's clock.
func (e *postgresEngine) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*clockEvery)
	defer cancel()
	var us int64
	asked := e.db.clock.own()
	if err := e.pool.QueryRow(ctx, "SELECT "+postgresClock).Scan(&us); err != nil {
		return err
	}
	e.db.clock.set(asked, time.UnixMicro(us))
	return nil
}

// runClock reads the database's clock until ctx ends. While the database does not answer, the last reading counts.
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
		if err := e.look(ctx); err != nil { // reported elsewhere: other queries fail too
			doubt = nil // wait for the tick: the doubt would be raised again at once
		}
	}
}
