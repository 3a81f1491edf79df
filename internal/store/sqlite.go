package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"hookglass/internal/memory"
)

// sqliteEngine does all writing in one goroutine, which commits in groups: what queued up during one commit is the next
// group. A second goroutine syncs what is committed to the disk and answers (see [sqliteEngine.seal]). So a single
// write waits for nothing else, and many share one commit and one sync.
type sqliteEngine struct {
	db      *DB
	ops     chan *op
	along   chan *op // work that gives way to ops
	groups  chan written
	stop    chan struct{}
	sealed  chan struct{} // closed when everything is answered
	mu      sync.RWMutex  // guards closed against a send on ops
	closed  bool
	insert  *captureStatements
	passed  time.Time // since when something in along has given way; owned by the writer
	version int64     // the data_version last seen, which changes when other processes write; owned by the writer
	log     logFile
	copier  *copier
	reserve *reserve      // nil: none is kept
	syncing atomic.Bool   // a sync is in progress
	synced  chan struct{} // signals the end of a sync
	holed   atomic.Bool   // a sync has failed, so data that it covered may be missing on disk
	skip    bool          // skip seqs before the next capture, see skipSeen; owned by the writer
}

func (db *DB) openSQLite(ctx context.Context, path string, keepReserve bool) error {
	unlock, err := lockDirectory(ctx, filepath.Dir(path)) // until the file exists with its permanent settings
	if err != nil {
		return fmt.Errorf("store: open %s: %w", path, err)
	}
	defer unlock()
	if err := createSQLite(ctx, path); err != nil {
		return fmt.Errorf("store: create %s: %w", path, err)
	}
	file, err := filepath.EvalSymlinks(path) // the log is next to the actual file
	if err != nil {
		return fmt.Errorf("store: open %s: %w", path, err)
	}
	var kept *reserve
	if keepReserve {
		kept = newReserve(file, db.log)
	}
	for err = db.openFile(ctx, file, kept); kept.yield(err); err = db.openFile(ctx, file, kept) {
	}
	return err
}

// openFile opens the existing file.
func (db *DB) openFile(ctx context.Context, path string, kept *reserve) (err error) {
	is, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("store: open %s: %w", path, err)
	}
	log := logFile{path: path + "-wal", of: path, is: is, sync: syncData}
	crashed := log.left()
	p, err := openPools(ctx, path)
	if err != nil {
		return err
	}
	if db.queue, err = sqliteQueue(p.write, db.hub); err != nil {
		return errors.Join(err, p.close())
	}
	db.dialect, db.read, db.write, db.ahead = sqliteDialect, p.read, p.write, p.ahead
	e := &sqliteEngine{
		db: db, ops: make(chan *op, queueLen), along: make(chan *op, queueLen), groups: make(chan written, sealQueue),
		synced: make(chan struct{}, 1), stop: make(chan struct{}), sealed: make(chan struct{}), insert: &captureStatements{db: p.write}, log: log, skip: crashed, reserve: kept,
	}
	e.copier = newCopier(p.copies, db.log, &e.holed, kept)
	db.engine = e
	go e.run()
	go e.seal()
	go e.copier.run()
	if kept != nil {
		go e.keepReserve()
	}
	return nil
}

// sqlitePools are the connections to one file, by what they are for.
type sqlitePools struct{ write, read, ahead, copies *sql.DB }

func openPools(ctx context.Context, path string) (p sqlitePools, err error) {
	dsn := func(cache int64, pragmas ...string) string {
		v := url.Values{"_pragma": append(pragmas, fmt.Sprintf("cache_size(-%d)", memory.Room(cache)>>10), "busy_timeout(5000)", "foreign_keys(1)", "temp_store(memory)")}
		return sqliteName(path) + "?" + v.Encode()
	}
	reads := dsn(16<<20, "query_only(1)")
	// The log is synced by seal and checkpointed by copier. Before the log restarts, the copy must be on the disk: on
	// macOS fsync alone may leave it in the disk's cache. The sync by seal is a full one (package os).
	writes := []string{"journal_mode(WAL)", "synchronous(NORMAL)", "checkpoint_fullfsync(1)", "wal_autocheckpoint(0)", "journal_size_limit(67108864)"}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	open := func(dsn, begin string, most int) (*sql.DB, error) {
		pool, err := openKeeping(dsn, begin)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		pool.SetMaxOpenConns(most)
		return pool, nil
	}
	if p.write, err = open(dsn(32<<20, writes...), "begin immediate", 1); err != nil {
		return p, err
	}
	if err := p.write.PingContext(ctx); err != nil {
		return p, fmt.Errorf("store: open %s: %w", path, err)
	}
	if err := keepsLog(ctx, p.write); err != nil {
		return p, fmt.Errorf("store: open %s: %w", path, err)
	}
	if p.read, err = open(reads, "begin", max(4, runtime.NumCPU())); err != nil {
		return p, err
	}
	p.read.SetMaxIdleConns(4)
	if p.ahead, err = open(reads, "begin", aheadConns); err != nil {
		return p, err
	}
	p.copies, err = open(dsn(256<<10, writes...), "begin", 1) // checkpoints need no cache
	return p, err
}

// close closes the connections that were opened, the writer last.
func (p sqlitePools) close() (err error) {
	for _, pool := range []*sql.DB{p.copies, p.ahead, p.read, p.write} {
		if pool != nil {
			err = errors.Join(err, pool.Close())
		}
	}
	return err
}

// pageSize fits several events: most take 1 to 3 KB, and a page with room for one and a half would waste a third of
// what is written.
const pageSize = 8192

// sqliteName returns a path as a URI for SQLite, with the characters escaped that would end the path.
func sqliteName(path string) string { return "file:" + inURI.Replace(path) }

var inURI = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")

// createSQLite creates the file if it does not exist or is empty. The page size must be on disk before the journal mode
// is set; otherwise it is lost.
func createSQLite(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil || info.Size() > 0 {
		return err
	}
	db, err := sql.Open("sqlite", sqliteName(path))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{fmt.Sprintf("PRAGMA page_size = %d", pageSize), "PRAGMA auto_vacuum = INCREMENTAL", "CREATE TABLE page (size)", "DROP TABLE page"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (e *sqliteEngine) update(ctx context.Context, fn change) error {
	return submit(&e.mu, &e.closed, e.ops, &op{ctx: ctx, update: fn, done: make(chan struct{})})
}

// alongFor is how long a write gives way to others, and how long its commit waits for a sync on behalf of others. It is
// too short to be noticed in a delivery.
const alongFor = 3 * time.Millisecond

// updateAlong runs the update when nothing else waits to be written, or it has given way for alongFor.
func (e *sqliteEngine) updateAlong(ctx context.Context, fn change) error {
	return submit(&e.mu, &e.closed, e.along, &op{ctx: ctx, update: fn, done: make(chan struct{})})
}

func (e *sqliteEngine) capture(ctx context.Context, c *captureOp) error {
	if e.reserve.given() {
		return unavailable("capture", errOnReserve)
	}
	return submit(&e.mu, &e.closed, e.ops, &op{ctx: ctx, capture: c, done: make(chan struct{})})
}

func (e *sqliteEngine) run() {
	defer close(e.groups)
	defer close(e.copier.due)
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-look.C: // checked first, in case there is always something to write
			e.look()
		default:
		}
		if e.next() {
			continue
		}
		select {
		case first := <-e.ops:
			e.group(e.gather(take(e.ops, first, room{ops: groupOps, bytes: groupBytes})), false)
		case first := <-e.along:
			e.group(take(e.along, first, room{ops: groupOps, bytes: groupBytes}), true)
		case <-look.C:
			e.look()
		case <-e.stop:
			for e.next() {
			}
			return
		}
	}
}

// look detects writes of other processes.
func (e *sqliteEngine) look() {
	// Administration commands write from their own processes, which cannot announce to this one.
	var version int64
	if err := e.db.write.QueryRow("PRAGMA data_version").Scan(&version); err == nil && version != e.version {
		if e.version != 0 {
			e.db.hub.resync()
		}
		e.version = version
	}
	// The job queue writes too, and a hole in the log endangers what other processes have written as well.
	if e.holed.Load() && e.mend() == nil {
		e.groups <- written{whole: true}
	}
	e.copier.after(e.db.write)
}

// next writes a group of what waits and reports whether there was any. Work in along is written if there is no other,
// or together with it after giving way for long enough: then there is much to do, and one commit is the least work.
func (e *sqliteEngine) next() bool {
	if len(e.along) == 0 {
		e.passed = time.Time{}
	} else if e.passed.IsZero() {
		e.passed = time.Now()
	}
	ops := e.gather(e.waiting(e.ops))
	patient := len(ops) == 0
	if patient || !e.passed.IsZero() && time.Since(e.passed) > alongFor {
		ops = append(ops, e.waiting(e.along)...)
		e.passed = time.Time{}
	}
	e.group(ops, patient)
	return len(ops) > 0
}

// waiting takes what waits in a queue.
func (e *sqliteEngine) waiting(queue chan *op) []*op {
	select {
	case first := <-queue:
		return take(queue, first, room{ops: groupOps, bytes: groupBytes})
	default:
		return nil
	}
}

// group commits ops in one transaction, for seal to answer. A patient group waits for a sync on behalf of others.
func (e *sqliteEngine) group(ops []*op, patient bool) {
	if len(ops) == 0 {
		return
	}
	g := written{began: time.Now(), patient: patient, whole: e.holed.Load()}
	if g.whole {
		if err := e.mend(); err != nil {
			for _, o := range ops {
				o.err = unavailable("write the log again", err)
			}
			settle(e.db, ops, g.began)
			return
		}
	}
	e.db.offer(ops)
	e.write(e.admitted(ops))
	for again := e.spared(ops); len(again) > 0; again = e.spared(again) {
		e.write(again)
	}
	promised, rest := part(ops)
	settle(e.db, rest, g.began)
	if g.ops = promised; len(promised) > 0 || g.whole {
		e.groups <- g
	}
	e.copier.after(e.db.write)
}

// admitted returns the ops to write. While the reserve is in use these exclude captures: the room is for deleting.
func (e *sqliteEngine) admitted(ops []*op) []*op {
	if !e.reserve.given() {
		return ops
	}
	var others []*op
	for _, o := range ops {
		if o.capture == nil {
			others = append(others, o)
		} else {
			o.err = unavailable("capture", errOnReserve)
		}
	}
	return others
}

// write runs ops in one transaction, or in one each if that fails.
func (e *sqliteEngine) write(ops []*op) {
	if len(ops) == 0 {
		return
	}
	err := e.transact(ops)
	if err != nil && len(ops) > 1 {
		retrySingly(ops, err, func(o *op) error { return e.transact([]*op{o}) })
	} else if err != nil {
		ops[0].err = err
	}
}

// spared returns the ops to retry after the disk was full, if giving up a part of the reserve has made room. Captures
// are not retried: the reserve is not for them.
func (e *sqliteEngine) spared(ops []*op) (again []*op) {
	for _, o := range ops {
		if o.capture == nil && mayBeFull(o.err) {
			again = append(again, o)
		}
	}
	full := slices.IndexFunc(ops, func(o *op) bool { return mayBeFull(o.err) })
	if full < 0 || !e.reserve.yield(ops[full].err) {
		return nil
	}
	return again
}

// part separates the ops that are answered once they are on disk from those that need not wait for it.
func part(ops []*op) (promised, rest []*op) {
	for _, o := range ops {
		if o.err != nil || o.lossy {
			rest = append(rest, o)
		} else {
			promised = append(promised, o)
		}
	}
	return promised, rest
}

func (e *sqliteEngine) transact(ops []*op) error {
	// Not the context of any single op: the group commits for all of them.
	ctx := context.Background()
	if hasCaptures(ops) {
		if err := e.insert.prepare(ctx); err != nil { // before the transaction takes the only connection
			return err
		}
	}
	tx, err := e.db.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, o := range ops {
		o.err = nil
	}
	skips := e.skip && hasCaptures(ops)
	if skips {
		if err := skipSeen(ctx, tx); err != nil {
			return err
		}
	}
	if err := e.insert.run(ctx, tx, ops); err != nil {
		return err
	}
	for _, o := range ops {
		if o.update == nil {
			continue
		}
		if err := runAlone(ctx, tx, o, len(ops) == 1); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if skips {
		e.skip = false
	}
	return nil
}

// runAlone runs an update such that it leaves nothing behind if it fails. The error it returns is of the whole
// transaction; the update's own is in the op.
func runAlone(ctx context.Context, tx *sql.Tx, o *op, onlyOne bool) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT op"); err != nil {
		return err
	}
	o.err = o.run(tx)
	if o.err != nil {
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO op"); err != nil {
			// With a full disk, and for a statement that was interrupted, SQLite has rolled back everything.
			// What an op alone was interrupted by is not for the others of its group.
			if onlyOne || o.ctx.Err() == nil && storageTrouble(o.err) {
				return o.err
			}
			return err
		}
	}
	_, err := tx.ExecContext(ctx, "RELEASE op")
	return err
}

func (e *sqliteEngine) announce([]string) {}

func (e *sqliteEngine) tell(context.Context, *sql.Tx, []string) (*told, error) {
	return nil, nil
}

func (e *sqliteEngine) lockSchema(ctx context.Context) (*sql.DB, func(), error) {
	unlock, err := lockDirectory(ctx, filepath.Dir(e.log.path))
	if err != nil {
		return nil, nil, unavailable("wait for the schema", err)
	}
	return e.db.write, unlock, nil
}

// health proves that a write reaches the disk.
func (e *sqliteEngine) health(ctx context.Context) (map[string]string, error) {
	facts := map[string]string{"database": "sqlite", "synchronous": "NORMAL", "journal_mode": "WAL", "answers": "after the log is synced"}
	err := e.update(ctx, func(tx *sql.Tx) (bool, error) {
		_, err := tx.ExecContext(ctx, healthWrite, now().UnixMicro())
		if err == nil {
			_, err = tx.ExecContext(ctx, healthErase)
		}
		return false, err
	})
	if e.reserve != nil {
		facts["reserve"] = "held"
	}
	if e.reserve.given() {
		facts["reserve"] = "given up: the disk is full"
		err = cmp.Or(err, errOnReserve)
	}
	return facts, classify(err)
}

func (e *sqliteEngine) makeRoom(err error) bool { return e.reserve.yield(err) }

func (e *sqliteEngine) onReserve() bool { return e.reserve.given() }

func (e *sqliteEngine) close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	close(e.stop)
	select {
	case <-e.sealed:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-e.copier.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.reserve != nil {
		select {
		case <-e.reserve.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	e.insert.close()
	// The writer is closed last, which removes the log.
	return errors.Join(e.log.close(), e.copier.db.Close(), e.db.ahead.Close(), e.db.read.Close(), e.db.write.Close())
}
