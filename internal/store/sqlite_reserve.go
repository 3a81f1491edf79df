package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Deleting needs room: in the log, and in the file, which grows while the log is copied into it. On a completely full
// disk neither people nor retention could free any. So a reserve file is kept next to the database. When the disk is
// full it is shrunk step by step, and captures stop: the freed room is for deletions, settings and work in progress.
// Once there is enough room again, the reserve is restored and captures resume.
const (
	// reserveSize is the length of the log from which the writer helps to copy it; see logPages.
	reserveSize = logPages * pageSize
	// reserveShare is the fraction of a small disk that is reserved.
	reserveShare = 8
	// reserveParts is in how many parts the reserve is given up: other programs may take freed room at once.
	reserveParts = 4
	// reserveLeast is the room below which a reserve is not begun.
	reserveLeast = 1 << 20

	reserveSuffix = "-reserve"
	reserveLook   = time.Second
	vacuumPages   = 250 // pages per vacuum while the disk is full: it may have to write as many
)

// errOnReserve is the reason that nothing is captured.
var errOnReserve = errors.New("the disk is full, and what was held in reserve is for deleting")

// reserve is the reserve file. A nil reserve holds nothing.
type reserve struct {
	path string
	log  *slog.Logger
	size func() (int64, error) // its full size
	poke chan struct{}         // signals that a part of it was given up
	done chan struct{}         // closed when keepReserve has ended

	mu     sync.Mutex // the file
	gone   atomic.Bool
	failed bool // the last attempt to restore it failed, other than for lack of room
}

func newReserve(database string, log *slog.Logger) *reserve {
	r := &reserve{path: database + reserveSuffix, log: log, poke: make(chan struct{}, 1), done: make(chan struct{})}
	r.size = func() (int64, error) { return wholeReserve(database) }
	// It was given up before the process ended, and still is until it is restored.
	if info, err := os.Stat(r.path); err == nil && info.Size() == 0 {
		r.gone.Store(true)
	}
	return r
}

// wholeReserve returns the full size of a database's reserve.
func wholeReserve(database string) (int64, error) {
	total, _, err := DiskSpace(database)
	return min(reserveSize, total/reserveShare/pageSize*pageSize), err
}

// Reserve returns the current and the full size of the reserve of the embedded database at a path.
func Reserve(database string) (held, whole int64, err error) {
	info, err := os.Stat(database + reserveSuffix)
	if err != nil {
		return 0, 0, err
	}
	whole, err = wholeReserve(database)
	return info.Size(), whole, err
}

// given reports whether the reserve, or a part of it, was given up and is not restored yet.
func (r *reserve) given() bool { return r != nil && r.gone.Load() }

// yield gives up a part of the reserve if err means a full disk. It reports whether there is more room now, so that the
// caller should retry.
func (r *reserve) yield(err error) bool {
	if r == nil || !mayBeFull(err) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f, opened := os.OpenFile(r.path, os.O_RDWR, 0)
	if opened != nil {
		if isFull(err) {
			r.spent()
		}
		return false
	}
	defer f.Close()
	info, failed := f.Stat()
	if failed != nil || !isFull(err) && !tight(f, info.Size()) {
		return false
	}
	if info.Size() == 0 {
		r.spent()
		return false
	}
	part := info.Size()
	if whole, err := r.size(); err == nil {
		part = min(part, max(whole/reserveParts, reserveLeast))
	}
	// On some file systems the room is free only after a sync.
	if errors.Join(f.Truncate(info.Size()-part), f.Sync()) != nil {
		return false
	}
	if !r.gone.Swap(true) {
		r.log.Warn("the disk is full: nothing is captured until there is room; what was held in reserve is given up for deleting", "file", r.path)
	}
	select {
	case r.poke <- struct{}{}:
	default:
	}
	return true
}

// spent records that the disk is full and there is nothing left to give up.
func (r *reserve) spent() {
	if !r.gone.Swap(true) {
		r.log.Warn("the disk is full, and nothing is held in reserve: nothing is captured until there is room", "file", r.path)
	}
}

// missing returns how many bytes the reserve lacks, and how many must be free to restore it and leave some for
// captures. A reserve that is created for the first time takes at most half of the free room.
func (r *reserve) missing(free int64) (lacks, needs int64, err error) {
	whole, err := r.size()
	if err != nil {
		return 0, 0, err
	}
	info, err := os.Stat(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !r.gone.Load():
		lacks = min(whole, free/2)
		return lacks, max(lacks, reserveLeast), nil
	case errors.Is(err, fs.ErrNotExist):
		return whole, whole + whole/8, nil
	case err != nil:
		return 0, 0, err
	}
	lacks = max(whole-info.Size(), 0)
	return lacks, lacks + whole/8, nil
}

// restore restores the reserve if there is room, and otherwise returns how many more bytes must be free. If it fails
// for another reason, captures do not wait for a reserve.
func (r *reserve) restore() (short int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		if err != nil {
			r.gone.Store(false)
		}
	}()
	_, free, err := DiskSpace(r.path[:len(r.path)-len(reserveSuffix)])
	if err != nil {
		return 0, err
	}
	lacks, needs, err := r.missing(free)
	if err != nil || lacks == 0 && !r.gone.Load() {
		return 0, err
	}
	if free < needs {
		return needs - free, nil
	}
	if err := r.extend(lacks); err != nil {
		if isFull(err) {
			return needs, nil
		}
		return 0, err
	}
	if r.gone.Swap(false) {
		r.log.Info("there is room on the disk: the reserve is made again, and webhooks are captured", "file", r.path)
	}
	return 0, nil
}

// extend enlarges the file by so many bytes, or leaves it unchanged.
func (r *reserve) extend(by int64) error {
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := errors.Join(allocate(f, info.Size(), by), f.Sync()); err != nil {
		return errors.Join(err, f.Truncate(info.Size()))
	}
	return nil
}

// fillUp reserves room by writing data that no file system can compress.
func fillUp(f *os.File, from, size int64) error {
	_, err := io.Copy(io.NewOffsetWriter(f, from), io.LimitReader(rand.NewChaCha8([32]byte{}), size))
	return err
}

// tight reports whether a file cannot be extended a little. It tells whether an ambiguous error means a lack of room,
// including an exhausted quota.
func tight(f *os.File, size int64) bool {
	err := fillUp(f, size, 64<<10)
	if err == nil {
		err = f.Sync()
	}
	_ = f.Truncate(size) // if this fails, the file stays a little larger
	return isFull(err)
}

// isFull reports whether an error means a full disk or an exhausted quota.
func isFull(err error) bool {
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code()&0xff == sqlite3.SQLITE_FULL
	}
	return noSpace(err) || errors.Is(err, errOnReserve)
}

// mayBeFull reports whether an error may mean a full disk: SQLite reports an exhausted quota as an I/O error.
func mayBeFull(err error) bool {
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code()&0xff == sqlite3.SQLITE_FULL || lite.Code()&0xff == sqlite3.SQLITE_IOERR
	}
	return isFull(err)
}

// keepReserve creates and maintains the reserve until the engine stops.
func (e *sqliteEngine) keepReserve() {
	r := e.reserve
	defer close(r.done)
	look := time.NewTicker(reserveLook)
	defer look.Stop()
	for {
		err := e.tendReserve()
		if err != nil && !r.failed {
			r.log.Warn("no room can be held in reserve on the disk", "file", r.path, "error", err)
		}
		r.failed = err != nil
		select {
		case <-look.C:
		case <-r.poke:
		case <-e.stop:
			return
		}
	}
}

// tendReserve restores the reserve. After it was given up, that needs room that the database holds but does not use:
// the log is copied, and if deletions have freed enough pages, these are returned to the disk.
func (e *sqliteEngine) tendReserve() error {
	r := e.reserve
	if r.given() && !e.holed.Load() {
		_, err := copyLog(e.copier.db)
		for r.yield(err) {
			_, err = copyLog(e.copier.db)
		}
	}
	short, err := r.restore()
	if err != nil || short == 0 || !r.given() || e.holed.Load() {
		return err
	}
	spare, err := e.spare()
	if err != nil || spare < short {
		return nil // writers meet the error and report it
	}
	for more := true; more && short > 0 && err == nil; {
		if more, err = e.giveBack(); err != nil || e.copier.truncate() != nil {
			return nil
		}
		short, err = r.restore()
	}
	return err
}

// spare returns how many bytes the database's files hold but do not need: free pages, and the fully copied log beyond
// the size to which it grows again.
func (e *sqliteEngine) spare() (int64, error) {
	var pages int64
	if err := e.db.read.QueryRow("PRAGMA freelist_count").Scan(&pages); err != nil {
		return 0, err
	}
	log, err := os.Stat(e.log.path)
	if err != nil {
		return 0, err
	}
	return pages*pageSize + max(log.Size()-copyPages*pageSize, 0), nil
}

// giveBack returns some free pages of the database to the disk and reports whether there were any.
func (e *sqliteEngine) giveBack() (more bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = e.update(ctx, func(tx *sql.Tx) (mayBeLost bool, err error) {
		var free int64
		if err := tx.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
			return false, err
		}
		if more = free > 0; more {
			_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumPages))
		}
		return false, err
	})
	return more, err
}
