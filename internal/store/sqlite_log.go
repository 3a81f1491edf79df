package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// The embedded database commits by appending to its log. With synchronous=NORMAL a commit does not wait for the disk,
// so the writer continues with the next group while this one is synced. Each op is answered once a sync of the log that
// began after its commit has succeeded, which is what synchronous=FULL would have waited for inside the commit. With
// either setting SQLite itself syncs the log before it copies from it, and the copy before it restarts the log.

// sealQueue is how many groups may be committed and wait for the disk. One sync covers all that wait.
const sealQueue = 8

// written is a group that is committed but not yet on disk.
type written struct {
	ops     []*op
	began   time.Time
	patient bool // it can wait a while for the sync of another group
	whole   bool // the log was mended before it was written
}

// seal syncs the committed groups in order and answers them. It ends when groups is closed.
//
// After a failed sync it is unknown what of the log is on disk, and a later successful one does not change that: the
// system has dropped the pages that it could not write. What follows a hole is lost with it. So nothing counts as
// stored from then on until the writer has mended the log (see [sqliteEngine.mend]).
func (e *sqliteEngine) seal() {
	defer close(e.sealed)
	var failed error
	for first := range e.groups {
		groups := e.committed(first)
		for len(groups) > 0 {
			if groups[0].whole {
				failed = nil
			}
			together := 1
			for together < len(groups) && !groups[together].whole {
				together++
			}
			if failed == nil {
				if failed = e.sync(); failed != nil {
					e.holed.Store(true)
					e.reserve.yield(failed)
				}
			}
			for _, g := range groups[:together] {
				e.answer(g, failed)
			}
			groups = groups[together:]
		}
	}
}

// sync syncs the log and signals the writer.
func (e *sqliteEngine) sync() error {
	e.syncing.Store(true)
	err := e.log.seal()
	e.syncing.Store(false)
	select {
	case e.synced <- struct{}{}:
	default:
	}
	return err
}

// fewOps is the size below which a group keeps growing while a sync is in progress.
const fewOps = 8

// gather adds to a small group what arrives until the sync in progress ends. The group's own sync cannot begin earlier,
// and one larger commit is less work: a commit of one op is mostly overhead.
func (e *sqliteEngine) gather(ops []*op) []*op {
	select {
	case <-e.synced: // a leftover signal
	default:
	}
	for len(ops) > 0 && len(ops) < fewOps && e.syncing.Load() {
		select {
		case o := <-e.ops:
			ops = append(ops, take(e.ops, o, room{ops: groupOps, bytes: groupBytes})...)
		case <-e.synced:
			return append(ops, e.waiting(e.ops)...)
		}
	}
	return ops
}

// committed returns the group and those committed after it. If all are patient, it waits a moment for one that is not.
func (e *sqliteEngine) committed(first written) []written {
	groups, patient := []written{first}, first.patient
	var late <-chan time.Time
	for len(groups) < sealQueue {
		var more written
		var open bool
		select {
		case more, open = <-e.groups:
		default:
			if !patient {
				return groups
			}
			if late == nil {
				late = time.After(alongFor)
			}
			select {
			case more, open = <-e.groups:
			case <-late:
				return groups
			}
		}
		if !open {
			return groups
		}
		groups, patient = append(groups, more), patient && more.patient
	}
	return groups
}

// answer answers the ops of a group, with err unless they have an error of their own.
func (e *sqliteEngine) answer(g written, err error) {
	if err != nil {
		for _, o := range g.ops {
			if o.err == nil {
				o.err = unavailable("sync", err)
			}
		}
	}
	settle(e.db, g.ops, g.began)
}

// mend closes the hole that a failed sync may have left, by rewriting the whole log in place and syncing it. Unlike
// copying the log into the database, this is safe with readers and with a power cut in the middle. Only the writer may
// call it; it holds the write lock, so other processes cannot write meanwhile.
func (e *sqliteEngine) mend() error {
	tx, err := e.db.write.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := e.log.rewrite(); err != nil {
		return err
	}
	e.holed.Store(false)
	return nil
}

// logFile is the log of an embedded database. Except for rewrite it is for one goroutine.
type logFile struct {
	path string
	of   string               // the database's path
	is   os.FileInfo          // identifies the database file that was opened
	sync func(*os.File) error // syncs a file
	file *os.File
	info os.FileInfo
}

// left reports whether a log remains from a crash: the last process to close the database removes it.
func (l *logFile) left() bool {
	info, err := os.Stat(l.path)
	return err == nil && info.Size() > 0
}

// seal syncs everything written to the log so far. SQLite creates the log with the first commit and removes it only
// when the last connection closes.
func (l *logFile) seal() error {
	if err := l.inPlace(); err != nil {
		return err
	}
	info, err := os.Stat(l.path)
	if err != nil {
		return err
	}
	if l.file == nil || !os.SameFile(info, l.info) {
		if err := l.open(); err != nil {
			return err
		}
	}
	return l.sync(l.file)
}

// errReplaced says that another file, or none, is at the database's path. Writes still go to the opened file, which
// nobody will read again, and the log next to the path belongs to the other one.
var errReplaced = errors.New("the database was moved away or replaced under the running service: put it back, or restart the service")

// inPlace fails unless the file at the path is still the one that was opened.
func (l *logFile) inPlace() error {
	info, err := os.Stat(l.of)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, l.is) {
		return errReplaced
	}
	return err
}

func (l *logFile) open() error {
	if err := l.close(); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if l.info, err = f.Stat(); err != nil {
		f.Close()
		return err
	}
	l.file = f
	return nil
}

// rewrite reads the whole log and writes it to the same place, and returns when it is on disk.
func (l *logFile) rewrite() error {
	if err := l.inPlace(); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for at := int64(0); ; {
		n, end := f.ReadAt(block, at)
		if _, err := f.WriteAt(block[:n], at); err != nil {
			return err
		}
		if at += int64(n); end == io.EOF {
			return l.sync(f)
		} else if end != nil {
			return end
		}
	}
}

func (l *logFile) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// keepsLog fails unless the database is in WAL mode, on which all of this rests and which some file systems do not
// support.
func keepsLog(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file system does not support a write-ahead log: the journal mode is %s instead of wal", mode)
	}
	return nil
}

// seenAhead exceeds the number of events that can be committed but not synced.
const seenAhead = (sealQueue + 2) * 2 * groupOps

// skipSeen skips the seqs that the next events would get. Readers see what is committed before it is on disk. If a
// power cut undoes that, its seqs must not be assigned again, or a reader that continues after them would miss an
// event. It is done with the first capture, because a log also exists while another process has the database open, and
// a process that only reads must not write.
func skipSeen(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) SELECT 'events', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'events')"); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "UPDATE sqlite_sequence SET seq = seq + $1 WHERE name = 'events'", seenAhead)
	return err
}
