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

// clock is the time of the database as this process knows it.
type clock struct {
	own    func() time.Time // of this machine
	behind atomic.Int64     // how far own is behind the database's, nanoseconds
}

func (c *clock) now() time.Time { return c.stamp(c.own()).UTC().Truncate(time.Microsecond) }

func (c *clock) stamp(t time.Time) time.Time { return t.Add(time.Duration(c.behind.Load())) }

// set notes what the database's clock shows.
func (c *clock) set(at time.Time) {
	behind := at.Sub(c.own())
	if behind.Abs() < clockAgrees {
		behind = 0
	}
	c.behind.Store(int64(behind))
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
	for {
		select {
		case <-tick.C:
			_ = e.look(ctx) // its failures are those of all else, and told there
		case <-ctx.Done():
			return
		}
	}
}
