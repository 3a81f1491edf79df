package store

import (
	"context"
	"database/sql"
	"log/slog"
	"sync/atomic"

	"modernc.org/sqlite"
)

// Commits go to the log of the embedded database, and are copied (checkpointed) into its file when there are enough.
// SQLite would do that inside the commit that passes a limit, which would make later commits wait for the copy and two
// syncs. Instead a goroutine copies while the writer continues. But the log only restarts when all of it is copied, and
// the writer keeps appending; so once the log has grown long, the writer copies the small rest.
const (
	copyPages = 1000          // 8 MB: how much is committed before copying begins
	logPages  = 4 * copyPages // the log's length from which the writer helps
)

// copier copies the log while the writer continues.
type copier struct {
	db    *sql.DB // of one connection
	log   *slog.Logger
	due   chan struct{}
	done  chan struct{}
	pages int          // committed since the last copy was requested; owned by the writer
	long  atomic.Bool  // the log is long
	holed *atomic.Bool // nothing is copied then: after a power cut there could be pages whose log is lost

	reserve *reserve
}

func newCopier(db *sql.DB, log *slog.Logger, holed *atomic.Bool, kept *reserve) *copier {
	return &copier{db: db, log: log, holed: holed, reserve: kept, due: make(chan struct{}, 1), done: make(chan struct{})}
}

// run copies on request, until due is closed.
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
			c.log.Warn("the write-ahead log of the database cannot be copied into it", "error", err)
		}
		failed = err != nil
		c.long.Store(pages > logPages)
	}
}

// after is called by the writer after each of its commits, and regularly because of those of others. It requests a copy
// if there is enough to copy.
func (c *copier) after(write *sql.DB) {
	if !c.holed.Load() && c.long.CompareAndSwap(true, false) {
		_, _ = copyLog(write) // the next copy meets the error again and reports it
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
	default: // a copy is pending
	}
}

// truncate copies the whole log and truncates it, unless somebody reads or writes.
func (c *copier) truncate() error {
	ctx := context.Background()
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil { // writers would wait too; it must never
		return err
	}
	var busy, pages, copied int
	return conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
}

// copyLog copies what no reader still needs in the log, and returns the log's length in pages.
func copyLog(db *sql.DB) (pages int, err error) {
	var busy, copied int
	err = db.QueryRow("PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &copied)
	return pages, err
}
