package store

import (
	"context"
	"database/sql"
	"log/slog"
	"sync/atomic"

	"modernc.org/sqlite"
)

// What is committed into the log of the embedded database is copied from there into its file once there is some of it.
// The database would do so inside the commit that passes a limit, and those behind it would wait for the copy and for
// two syncs. Here a goroutine does it beside the writer. What is committed meanwhile stays in the log, which begins
// anew only when all of it is copied: so when it has grown long, the writer copies the little that the goroutine has
// not.
const (
	copyPages = 1000          // 8 MB: how much is committed before the copying begins
	logPages  = 4 * copyPages // how long the log grows before the writer lends a hand
)

// copier copies the log beside the writer.
type copier struct {
	db    *sql.DB // of one connection
	log   *slog.Logger
	due   chan struct{}
	done  chan struct{}
	pages int          // committed since the last copy was asked for; of the writer
	long  atomic.Bool  // the log is
	holed *atomic.Bool // then nothing is copied: a power cut in the midst would leave pages whose log is lost

	reserve *reserve
}

func newCopier(db *sql.DB, log *slog.Logger, holed *atomic.Bool, kept *reserve) *copier {
	return &copier{db: db, log: log, holed: holed, reserve: kept, due: make(chan struct{}, 1), done: make(chan struct{})}
}

// run copies whenever it is asked to, until due is closed.
func (c *copier) run() {
	defer close(c.done)
	failed := false
	for range c.due {
		if c.holed.Load() {
			continue
		}
		pages, err := copyLog(c.db)
		for c.reserve.yield(err) {
			pages, err = copyLog(c.db)
		}
		if err != nil && !failed {
			c.log.Warn("the log of the database can not be copied into it", "error", err)
		}
		failed = err != nil
		c.long.Store(pages > logPages)
	}
}

// after is told by the writer of each group that it has committed, and now and then of what others have, and asks for a
// copy when there is enough.
func (c *copier) after(write *sql.DB) {
	if !c.holed.Load() && c.long.CompareAndSwap(true, false) {
		_, _ = copyLog(write) // an error is met, and told, by the next copy
	}
	conn, err := write.Conn(context.Background())
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.Raw(func(driver any) error {
		pages, _, err := driver.(sqlite.DBStatus).Status(sqlite.DBStatusCacheWrite, true)
		c.pages += pages
		return err
	})
	if c.pages < copyPages {
		return
	}
	select {
	case c.due <- struct{}{}:
		c.pages = 0
	default: // it is at it
	}
}

// truncate copies all of the log and gives its room back to the disk, unless somebody reads or writes.
func (c *copier) truncate() error {
	ctx := context.Background()
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil { // writers would wait with it; it never has to
		return err
	}
	var busy, pages, copied int
	return conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
}

// copyLog copies what no reader keeps from being copied, and returns how many pages the log has.
func copyLog(db *sql.DB) (pages int, err error) {
	var busy, copied int
	err = db.QueryRow("PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &copied)
	return pages, err
}
