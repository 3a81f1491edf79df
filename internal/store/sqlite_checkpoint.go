package store

import (
	"context"
	"database/sql"
	"time"
)

// The log (WAL) is copied into the database file by a connection of its own, while the writer goes on: done by the
// writer itself, as SQLite does by default, each copy would hold up every sender behind it.
//
// The log begins anew only when it is copied to its end, and under load the writer is always ahead. So, when it has
// grown long, the writer copies the last bit itself between two groups.
const (
	checkpointEvery = 50 * time.Millisecond
	checkpointPages = 8 << 20 / pageSize   // new pages worth a copy
	longLog         = 128 << 20 / pageSize // pages of a log that should begin anew
)

// checkpointer copies the log until stop is closed.
type checkpointer struct {
	db   *sql.DB
	stop chan struct{}
	done chan struct{}
	long chan struct{} // holds a value when the writer should copy the rest
}

func newCheckpointer(db *sql.DB) *checkpointer {
	c := &checkpointer{db: db, stop: make(chan struct{}), done: make(chan struct{}), long: make(chan struct{}, 1)}
	db.SetMaxOpenConns(1)
	go c.run()
	return c
}

func (c *checkpointer) run() {
	defer close(c.done)
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.stop:
			return
		}
		if waiting, err := c.waiting(); err != nil || waiting < checkpointPages {
			continue
		}
		if pages, err := checkpoint(context.Background(), c.db); err == nil && pages > longLog {
			select {
			case c.long <- struct{}{}:
			default: // it knows
			}
		}
	}
}

func (c *checkpointer) close() error {
	close(c.stop)
	<-c.done
	return c.db.Close()
}

// waiting returns how many pages of the log are not copied yet.
func (c *checkpointer) waiting() (int64, error) {
	var busy, log, copied int64
	err := c.db.QueryRow("PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &log, &copied)
	return log - copied, err
}

// checkpoint copies what it can of the log without holding anybody up, and returns how long the log is, in pages.
func checkpoint(ctx context.Context, db *sql.DB) (pages int64, err error) {
	var busy, copied int64
	err = db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &copied)
	return pages, err
}
