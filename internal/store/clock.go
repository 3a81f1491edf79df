package store

import (
	"context"
	"sync"
	"time"
)

// Nodes that share a database compare times with one another: leases, what is due, what began too long ago. Their own clocks may be an
// hour apart, so they go by the database's, which each looks at now and then and follows in between by its own monotonic clock.

// clockEvery is how often a node looks.
const clockEvery = 2 * time.Second

// clock is the time of the database as this process knows it.
type clock struct {
	own func() time.Time // of this machine

	mu   sync.Mutex
	seen time.Time // by this machine, monotonic
	at   time.Time // by the database; zero: never looked, and own counts
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return c.own().UTC().Truncate(time.Microsecond)
	}
	return c.at.Add(time.Since(c.seen)).Truncate(time.Microsecond)
}

// set notes what the database's clock shows.
func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen, c.at = time.Now(), at.UTC()
}

// Now is the time by the database, which is the same on all nodes. It does not wait for it.
func (db *DB) Now() time.Time { return db.clock.now() }

// Stamp is the time by the database at which this machine's clock showed a time of just now.
func (db *DB) Stamp(t time.Time) time.Time {
	c := &db.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return t
	}
	return c.at.Add(t.Sub(c.seen))
}

// look reads the database's clock.
func (e *postgresEngine) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clockEvery)
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
