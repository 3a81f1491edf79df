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

// The embedded database commits into its log, a file that a commit only appends to. With synchronous=NORMAL a commit
// does not wait for the disk, so the writer goes on with the next group while this one is brought there; each op is
// answered when a sync of the log that began after its commit has succeeded, which is what synchronous=FULL would have
// waited for inside the commit. The database itself syncs the log before it copies from it, and the copy before it
// begins the log anew, in either setting.

// sealQueue is how many groups may be written and wait for the disk. What waits goes there with one sync.
const sealQueue = 8

// written is a group that is committed and not yet on disk.
type written struct {
	ops     []*op
	began   time.Time
	patient bool // it needs no sync of its own for a while
	whole   bool // the log was mended before it
}

// seal brings what is committed to the disk, in its order, and answers. It ends when groups does.
//
// A sync that fails says nothing about what of the log is on disk, and one that succeeds after it does not either: the
// system has dropped what it could not write. So nothing counts as stored from then on until the writer has mended the
// log (see [sqliteEngine.mend]), because what is behind a hole is lost with it.
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

// sync brings the log to the disk, and tells the writer when it has ended.
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

// fewOps are gathered while a sync is on its way.
const fewOps = 8

// gather adds to a few ops what comes until the sync that is on its way has ended. Theirs cannot begin before, and one
// commit for all of them is less work, of which a commit of one op mostly consists.
func (e *sqliteEngine) gather(ops []*op) []*op {
	select {
	case <-e.synced: // one that has ended long ago
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

// committed returns the group and those that are committed behind it. When all of them are patient it waits a moment
// for one that is not.
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

// answer ends the ops of a group, unless an error of their own has.
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

// mend closes the hole that a sync which failed may have left: all of the log is written once more, and synced. Neither
// readers nor a power cut in its midst matter to that, as they would if the log were copied into the database and begun
// anew. It is for the writer, and other processes write nothing meanwhile.
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

// logFile is the log of an embedded database. It is for one goroutine, except for rewrite.
type logFile struct {
	path string
	of   string               // the database
	is   os.FileInfo          // what that was when it was opened
	sync func(*os.File) error // brings a file to the disk
	file *os.File
	info os.FileInfo
}

// left reports whether there is a log though nobody has the database open: who closes it last removes the log.
func (l *logFile) left() bool {
	info, err := os.Stat(l.path)
	return err == nil && info.Size() > 0
}

// seal returns when all that was written to the log before is on disk. The database makes its log with the first
// commit, and removes it only when its last connection closes.
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

// errReplaced is told where the database's place is taken. What is written goes on to the file that was opened, which
// nobody looks into any more, and the log beside the other is another.
var errReplaced = errors.New("the database was moved away or replaced under the running service: put it back, or restart the service")

// inPlace fails unless the database is where it was opened.
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

// rewrite writes the whole log as it is read to its place, and returns when that is on disk.
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

// keepsLog fails unless the database is in the mode that all of this rests on, which some file systems do not allow.
func keepsLog(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file system does not let the database keep a log: its journal mode is %s instead of wal", mode)
	}
	return nil
}

// seenAhead is more events than are ever committed and not synced.
const seenAhead = (sealQueue + 2) * 2 * groupOps

// skipSeen leaves out the numbers that the next events would have. A reader can see what is committed before it is on
// disk; when a power cut takes that, its number must not be given again, or whoever reads on from it would miss an
// event. It goes with the first capture: a log is also there when another process has the database open, and who only
// looks at it writes nothing.
func skipSeen(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) SELECT 'events', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'events')"); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "UPDATE sqlite_sequence SET seq = seq + $1 WHERE name = 'events'", seenAhead)
	return err
}
