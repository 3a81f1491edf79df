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
	"syscall"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The embedded database needs room to delete: in its log, and for copying the log into the file, which grows by what
// the log holds. On a disk that is full to the last byte neither a person nor retention would make any. So a file is
// beside the database that is there to be given up. When the disk is full it is made smaller, bit by bit, and from then
// on nothing is captured: what it leaves is for deletions, for settings, and for what was begun. It is made whole again
// from the room that there is then, and captures go on.
const (
	// reserveSize is as much as the log holds when the writer lends a hand with copying it, see logPages.
	reserveSize = logPages * pageSize
	// reserveShare is the part of a small disk that is reserved.
	reserveShare = 8
	// reserveParts are what the reserve is given up in: whoever else fills the disk takes what is free at once.
	reserveParts = 4
	// reserveLeast is less room than which a reserve is not begun in.
	reserveLeast = 1 << 20

	reserveSuffix = "-reserve"
	reserveLook   = time.Second
	vacuumPages   = 250 // that one transaction gives back where there is no room: it may write as many
)

// errOnReserve is why nothing is captured.
var errOnReserve = errors.New("the disk is full, and what was held in reserve is for deleting")

// reserve is the file. A nil one is none.
type reserve struct {
	path string
	log  *slog.Logger
	size func() (int64, error) // that it should have
	poke chan struct{}         // it was given up, or a part of it
	done chan struct{}         // nobody looks after it any more

	mu     sync.Mutex // the file
	gone   atomic.Bool
	failed bool // making it did, for another reason than room
}

func newReserve(database string, log *slog.Logger) *reserve {
	r := &reserve{path: database + reserveSuffix, log: log, poke: make(chan struct{}, 1), done: make(chan struct{})}
	r.size = func() (int64, error) { return wholeReserve(database) }
	// It was given up before the process ended: until it is made again, all is as it was.
	if info, err := os.Stat(r.path); err == nil && info.Size() == 0 {
		r.gone.Store(true)
	}
	return r
}

// wholeReserve is how large the reserve of a database should be.
func wholeReserve(database string) (int64, error) {
	total, _, err := DiskSpace(database)
	if errors.Is(err, errors.ErrUnsupported) {
		return reserveSize, nil
	}
	return min(reserveSize, total/reserveShare/pageSize*pageSize), err
}

// Reserve is how many bytes are held in reserve for the embedded database of a path, and how many should be.
func Reserve(database string) (held, whole int64, err error) {
	info, err := os.Stat(database + reserveSuffix)
	if err != nil {
		return 0, 0, err
	}
	whole, err = wholeReserve(database)
	return info.Size(), whole, err
}

// given reports whether the reserve was given up, or a part of it, and is not whole yet.
func (r *reserve) given() bool { return r != nil && r.gone.Load() }

// yield gives a part of the reserve up when an error is of a full disk, and reports whether there is more room now, so
// that what met the error is worth another try.
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
	// Some file systems have what a file leaves when that is on disk, no sooner.
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

// spent notes that the disk is full and nothing is left to give up.
func (r *reserve) spent() {
	if !r.gone.Swap(true) {
		r.log.Warn("the disk is full, and nothing is held in reserve: nothing is captured until there is room", "file", r.path)
	}
}

// missing is how many bytes the reserve lacks, and how many must be free to make it whole and have some left for what
// is captured then. A reserve that is made for the first time takes no more than half of what there is.
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

// restore makes the reserve whole where there is room for it, and reports how many bytes more would have to be free.
// Where none can be made, for another reason than room, nothing waits for one.
func (r *reserve) restore() (short int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() {
		if err != nil {
			r.gone.Store(false)
		}
	}()
	_, free, err := DiskSpace(r.path[:len(r.path)-len(reserveSuffix)])
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return 0, err
	}
	known := err == nil
	lacks, needs, err := r.missing(free)
	if err != nil || lacks == 0 && !r.gone.Load() {
		return 0, err
	}
	if known && free < needs {
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

// extend makes the file so much larger, or leaves it as it is.
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

// fillUp takes room by writing what no file system makes smaller.
func fillUp(f *os.File, from, size int64) error {
	_, err := io.Copy(io.NewOffsetWriter(f, from), io.LimitReader(rand.NewChaCha8([32]byte{}), size))
	return err
}

// tight reports whether a file cannot be made a little larger: of an error that may mean anything, this tells whether
// room is the trouble, also where a quota is what is used up.
func tight(f *os.File, size int64) bool {
	err := fillUp(f, size, 64<<10)
	if err == nil {
		err = f.Sync()
	}
	_ = f.Truncate(size) // where it cannot be, it is larger by a little
	return isFull(err)
}

// isFull reports whether an error says that a disk, or somebody's part of it, is full.
func isFull(err error) bool {
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code()&0xff == sqlite3.SQLITE_FULL
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, errOnReserve)
}

// mayBeFull reports whether an error may be of a full disk: the database tells a quota that is used up as a failure to
// write.
func mayBeFull(err error) bool {
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code()&0xff == sqlite3.SQLITE_FULL || lite.Code()&0xff == sqlite3.SQLITE_IOERR
	}
	return isFull(err)
}

// keepReserve makes the reserve and looks after it, until the engine stops.
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

// tendReserve makes the reserve whole. Where it was given up, that takes room which the database has and does not use:
// the log is copied, and when what deletions have left is enough, it is given back to the disk.
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
		return nil // an error is met, and told, by who writes
	}
	for more := true; more && short > 0 && err == nil; {
		if more, err = e.giveBack(); err != nil || e.copier.truncate() != nil {
			return nil
		}
		short, err = r.restore()
	}
	return err
}

// spare is how many bytes the files of the database have and do not need: what is free in the one, and what the log,
// all of which is copied, has above what it grows to again.
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

// giveBack cuts some of what is free off the database, and reports whether there was any.
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
