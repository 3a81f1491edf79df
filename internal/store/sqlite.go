package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// sqliteEngine gives all writing to one goroutine, which commits in groups: whatever queued up while
// the last commit was on its way to the disk is the next group. So a lone write waits for nothing, and
// many share one fsync.
type sqliteEngine struct {
	db     *DB
	ops    chan *op
	along  chan *op // what goes with the next group, whatever that is
	stop   chan struct{}
	done   chan struct{}
	mu     sync.RWMutex // guards closed against a send on ops
	closed bool
	insert *captureStatements
}

func (db *DB) openSQLite(ctx context.Context, path string) error {
	if strings.ContainsAny(path, "?#") {
		return fmt.Errorf("store: the path of the database may not contain ? or #")
	}
	pragmas := func(readOnly bool) string {
		v := url.Values{}
		if readOnly {
			v.Add("_pragma", "query_only(1)")
			v.Add("_pragma", "cache_size(-16384)")
		} else {
			v.Add("_pragma", "journal_mode(WAL)")
			v.Add("_pragma", "synchronous(FULL)")
			v.Add("_pragma", "wal_autocheckpoint(1000)") // 8 MB: more would hold up those behind it for longer
			v.Add("_pragma", "journal_size_limit(67108864)")
			v.Add("_pragma", "cache_size(-32768)")
		}
		v.Add("_pragma", "busy_timeout(5000)")
		v.Add("_pragma", "foreign_keys(1)")
		v.Add("_pragma", "temp_store(memory)")
		return "file:" + path + "?" + v.Encode()
	}
	if err := createSQLite(ctx, path); err != nil {
		return fmt.Errorf("store: create %s: %w", path, err)
	}
	write, err := openKeeping(pragmas(false), "begin immediate")
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	write.SetMaxOpenConns(1)
	if err := write.PingContext(ctx); err != nil {
		write.Close()
		return fmt.Errorf("store: open %s: %w", path, err)
	}
	read, err := openKeeping(pragmas(true), "begin")
	if err != nil {
		write.Close()
		return fmt.Errorf("store: %w", err)
	}
	read.SetMaxOpenConns(max(4, runtime.NumCPU()))
	read.SetMaxIdleConns(4)
	ahead, err := openKeeping(pragmas(true), "begin")
	if err != nil {
		return errors.Join(fmt.Errorf("store: %w", err), read.Close(), write.Close())
	}
	ahead.SetMaxOpenConns(aheadConns)
	db.dialect, db.read, db.write, db.ahead = sqliteDialect, read, write, ahead
	if db.queue, err = sqliteQueue(write); err != nil {
		return errors.Join(err, ahead.Close(), read.Close(), write.Close())
	}
	e := &sqliteEngine{
		db: db, ops: make(chan *op, queueLen), along: make(chan *op, groupOps), stop: make(chan struct{}), done: make(chan struct{}),
		insert: &captureStatements{db: write},
	}
	db.engine = e
	go e.run()
	return nil
}

// pageSize fits several events in a page: most are 1 to 3 KB, and a page with room for one and a half wastes a
// third of what is written.
const pageSize = 8192

// createSQLite makes the file when there is none or it is empty. The page size must be on disk before the journal
// mode is set, or it is forgotten.
func createSQLite(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err := errors.Join(err, f.Close()); err != nil || info.Size() > 0 {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+path)
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

func (e *sqliteEngine) update(ctx context.Context, fn func(*sql.Tx) error) error {
	return submit(&e.mu, &e.closed, e.ops, &op{ctx: ctx, update: fn, done: make(chan struct{})})
}

// alongFor is how long a write waits for others to go with. A few captures in that time make it the usual case, and nobody sees it in a delivery.
const alongFor = 3 * time.Millisecond

// updateAlong lets the op be taken by any group, and begins one when none came. An op that is in both queues is taken once.
func (e *sqliteEngine) updateAlong(ctx context.Context, fn func(*sql.Tx) error) error {
	o := &op{ctx: ctx, update: fn, done: make(chan struct{})}
	select {
	case e.along <- o:
		alone := time.NewTimer(alongFor)
		defer alone.Stop()
		select {
		case <-o.done:
			return o.err
		case <-alone.C:
		}
	default:
	}
	err := submit(&e.mu, &e.closed, e.ops, o)
	if err != nil && !o.state.CompareAndSwap(opWaiting, opGivenUp) && o.state.Load() == opTaken {
		<-o.done
		return o.err
	}
	return err
}

func (e *sqliteEngine) capture(ctx context.Context, c *captureOp) error {
	return submit(&e.mu, &e.closed, e.ops, &op{ctx: ctx, capture: c, done: make(chan struct{})})
}

func (e *sqliteEngine) run() {
	defer close(e.done)
	foreign := time.NewTicker(500 * time.Millisecond)
	defer foreign.Stop()
	var version int64
	for {
		select {
		case first := <-e.ops:
			e.group(first)
		case <-foreign.C:
			// Administration writes from processes of its own, which can not announce to this one.
			var v int64
			if err := e.db.write.QueryRow("PRAGMA data_version").Scan(&v); err == nil && v != version {
				if version != 0 {
					e.db.hub.resync()
				}
				version = v
			}
		case <-e.stop:
			for {
				select {
				case first := <-e.ops:
					e.group(first)
				default:
					return
				}
			}
		}
	}
}

// group takes what waits, runs it in one transaction and answers each op.
func (e *sqliteEngine) group(first *op) {
	ops := take(e.ops, first, groupOps)
	for more := true; more && len(ops) < 2*groupOps; {
		select {
		case o := <-e.along:
			if o.state.CompareAndSwap(opWaiting, opTaken) {
				ops = append(ops, o)
			}
		default:
			more = false
		}
	}
	if len(ops) == 0 {
		return
	}
	began := time.Now()
	err := e.transact(ops)
	if err != nil && len(ops) > 1 {
		retrySingly(ops, err, func(o *op) error { return e.transact([]*op{o}) })
	} else if err != nil {
		ops[0].err = err
	}
	settle(e.db, ops, began)
}

func (e *sqliteEngine) transact(ops []*op) error {
	// Not the context of any one op: the group commits for all of them.
	ctx := context.Background()
	if hasCaptures(ops) {
		if err := e.insert.prepare(ctx); err != nil { // before the transaction takes the one connection
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
	if err := e.insert.run(ctx, tx, ops); err != nil {
		return err
	}
	for _, o := range ops {
		if o.update == nil {
			continue
		}
		if _, err := tx.ExecContext(ctx, "SAVEPOINT op"); err != nil {
			return err
		}
		o.err = o.run(tx)
		if o.err != nil {
			if _, err := tx.ExecContext(ctx, "ROLLBACK TO op"); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, "RELEASE op"); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (e *sqliteEngine) announce([]string) {}

func (e *sqliteEngine) lockSchema(context.Context) (func(), error) { return func() {}, nil }

// health proves that a write reaches the disk.
func (e *sqliteEngine) health(ctx context.Context) (map[string]string, error) {
	facts := map[string]string{"database": "sqlite", "synchronous": "FULL", "journal_mode": "WAL"}
	err := e.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO rate_limits (bucket, tat) VALUES ('health', $1) ON CONFLICT (bucket) DO UPDATE SET tat = excluded.tat", now().UnixMicro())
		return err
	})
	return facts, classify(err)
}

func (e *sqliteEngine) close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	close(e.stop)
	select {
	case <-e.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	e.insert.close()
	// The writer closes last: it leaves no log behind.
	return errors.Join(e.db.ahead.Close(), e.db.read.Close(), e.db.write.Close())
}
