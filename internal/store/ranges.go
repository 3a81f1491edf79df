package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// On PostgreSQL the payloads, nine tenths of all data, are partitioned by ranges of seqs (docs/decisions/0026). Seqs
// are in the order of commit, so a range is a period, and retention drops tables instead of deleting rows. Payloads
// outside all ranges go to the default partition; the only cost is that they are deleted by row. No capture fails for
// lack of a range.

const (
	// payloadRest is the default partition.
	payloadRest = "payloads_rest"
	// rangesKept is about how many ranges hold the events of the longest retention; rangesAhead is how many are kept
	// ready above the newest event.
	rangesKept  = 8
	rangesAhead = 2
	// rangeTries is how often a change of the ranges is tried.
	rangeTries = 5
	// lockWait is how long a change of a table waits for readers at most, because captures wait behind it, and
	// lockPause how long it lets them go on before it is tried again.
	lockWait  = 200 * time.Millisecond
	lockPause = time.Second
	// rangeLeast is the minimum number of payloads per range: fewer are quick to delete.
	rangeLeast = 1_000_000
)

// payloadRange is a partition for the payloads with from <= seq < below. Its name says which.
type payloadRange struct{ from, below int64 }

func (r payloadRange) String() string { return fmt.Sprintf("payloads_%d_%d", r.from, r.below) }

func (r payloadRange) holds(seq int64) bool { return r.from <= seq && seq < r.below }

// payloadRanges lists the ranges except the default partition.
const payloadRanges = `SELECT c.relname, '' FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
	WHERE i.inhparent = to_regclass('payloads') AND c.relname <> '` + payloadRest + `'`

func readRanges(ctx context.Context, q querier) (ranges []payloadRange, err error) {
	err = eachTriple(ctx, q, payloadRanges, func(name, _, _ string) error {
		var r payloadRange
		if _, err := fmt.Sscanf(name, "payloads_%d_%d", &r.from, &r.below); err != nil {
			return fmt.Errorf("store: table %s is no range of payloads", name)
		}
		ranges = append(ranges, r)
		return nil
	})
	slices.SortFunc(ranges, func(a, b payloadRange) int { return cmp.Compare(a.from, b.from) })
	return ranges, err
}

// withoutRange returns those of the seqs whose payloads are not in a range below the newest event. A payload in such a
// range is dropped with it.
func (tx *Tx) withoutRange(seqs []int64) ([]int64, error) {
	if tx.dialect != postgres || len(seqs) == 0 {
		return seqs, nil
	}
	ranges, err := readRanges(tx.ctx, tx.q)
	if err != nil {
		return nil, err
	}
	newest, err := tx.NewestOfAll()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(seqs), func(seq int64) bool {
		return slices.ContainsFunc(ranges, func(r payloadRange) bool { return r.holds(seq) && r.below <= newest })
	}), nil
}

// TendPayloads creates ranges for future events and drops those in which no event has its payload. retention is the
// installation's, for accounts without one of their own. It does nothing on SQLite, or while another node does it. What
// readers prevent is left for the next call, a minute later.
func (db *DB) TendPayloads(ctx context.Context, retention time.Duration) error {
	e, ok := db.engine.(*postgresEngine)
	if !ok {
		return nil
	}
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return unavailable("connect", err)
	}
	defer conn.Release()
	var alone bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", rangesLock).Scan(&alone); err != nil || !alone {
		return classify(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockPause)
		defer cancel()
		if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", rangesLock); err != nil {
			conn.Conn().Close(ctx) // which releases the lock
		}
	}()
	t := tending{db: db, conn: conn, least: e.rangeLeast}
	if err := t.read(ctx, retention); err != nil {
		return classify(err)
	}
	if err := t.extend(ctx); err != nil {
		return classify(err)
	}
	return classify(t.drop(ctx))
}

// tending is one run of TendPayloads.
type tending struct {
	db      *DB
	conn    *pgxpool.Conn
	ranges  []payloadRange
	newest  int64 // the last seq that was assigned
	span    int64 // how many seqs a new range is to have
	rest    int64 // the smallest seq in the default partition, or -1
	pending int64 // the upper bound of the default partition's CHECK constraint, or 0
	least   int64 // rangeLeast; tests use less
}

func (t *tending) read(ctx context.Context, retention time.Duration) (err error) {
	if t.ranges, err = readRanges(ctx, t.db.read); err != nil {
		return err
	}
	var rows, micros, longest int64
	err = t.conn.QueryRow(ctx, `SELECT (SELECT last_value FROM events_seq_seq), (SELECT coalesce(min(seq), -1) FROM payloads_rest),
			coalesce(b.seq - a.seq, 0), coalesce(b.received_at - a.received_at, 0), `+longestRetention("$1")+`,
			coalesce((SELECT max(substr(conname, 21)::bigint) FROM pg_constraint WHERE conrelid = 'payloads_rest'::regclass AND conname LIKE 'payloads\_rest\_below\_%'), 0)
		FROM (SELECT 1) AS one LEFT JOIN (SELECT seq, received_at FROM events ORDER BY seq LIMIT 1) AS a ON true
			LEFT JOIN (SELECT seq, received_at FROM events ORDER BY seq DESC LIMIT 1) AS b ON true`, retention.Microseconds()).
		Scan(&t.newest, &t.rest, &rows, &micros, &longest, &t.pending)
	pace := float64(rows) / float64(max(micros, (24*time.Hour).Microseconds()))
	t.span = max(t.least, int64(pace*float64(longest)/rangesKept))
	return err
}

// longestRetention returns the expression for the longest retention of any account, in microseconds, given that of the
// installation, which also applies to endpoints without an account.
func longestRetention(installation string) string {
	installation = "cast(" + installation + " AS bigint)"
	return "(SELECT coalesce(max(kept), " + installation + ") FROM (SELECT CASE WHEN retention > 0 THEN retention ELSE " + installation + ` END AS kept FROM accounts
		UNION ALL SELECT ` + installation + ` FROM endpoints WHERE account_id IS NULL AND deleted_at IS NULL) AS every)`
}

// top returns where the ranges end.
func (t *tending) top() int64 {
	if len(t.ranges) == 0 {
		return 0
	}
	return t.ranges[len(t.ranges)-1].below
}

// extend creates ranges until there are enough above the newest event.
func (t *tending) extend(ctx context.Context) error {
	switch {
	case t.rest >= t.top():
		if err := t.adopt(ctx); err != nil {
			return err
		}
	case t.rest >= 0:
		// Between or below the ranges, wherever they came from: these are deleted by row, and cannot become a range.
		t.db.log.Debug("payloads below their ranges are left where they are", "from", t.rest)
	}
	for {
		ahead := 0
		for _, r := range t.ranges {
			if r.from > t.newest {
				ahead++
			}
		}
		if ahead >= rangesAhead {
			return nil
		}
		r := payloadRange{t.top(), max(t.top(), t.newest) + t.span}
		done, err := t.change(ctx, "CREATE TABLE "+r.String()+" (LIKE payloads INCLUDING ALL)", attach(r.String(), r))
		if err != nil || !done {
			return err
		}
		t.ranges = append(t.ranges, r)
		t.db.log.Info("payload range made", "from", r.from, "below", r.below)
	}
}

func attach(table string, r payloadRange) string {
	return fmt.Sprintf("ALTER TABLE payloads ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)", table, r.from, r.below)
}

// adopt turns the default partition into a range: it holds everything from before there were ranges, or what came when
// none was ready. A CHECK constraint with the bounds is added first and validated while captures continue, so that
// attaching the range needs no scan. The constraint also binds new rows, so it leaves as much room as is in use; when
// the newest seq comes close to it, it is dropped.
func (t *tending) adopt(ctx context.Context) error {
	r := payloadRange{t.top(), t.pending}
	if t.pending != 0 && t.newest > t.pending-t.least/2 {
		if done, err := t.change(ctx, "ALTER TABLE payloads_rest DROP CONSTRAINT "+promise(t.pending)); err != nil || !done {
			return err
		}
		t.pending = 0
	}
	if t.pending == 0 {
		r.below = max(t.newest, r.from) + max(t.span, t.newest-r.from)
		check := fmt.Sprintf("ALTER TABLE payloads_rest ADD CONSTRAINT %s CHECK (seq >= %d AND seq < %d) NOT VALID", promise(r.below), r.from, r.below)
		if done, err := t.change(ctx, check); err != nil || !done {
			return err
		}
	}
	err := pgx.BeginFunc(ctx, t.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "ALTER TABLE payloads_rest VALIDATE CONSTRAINT "+promise(r.below))
		return err
	})
	if err != nil {
		return err
	}
	done, err := t.change(ctx,
		"LOCK TABLE payloads IN ACCESS EXCLUSIVE MODE",
		"ALTER TABLE payloads DETACH PARTITION payloads_rest",
		"ALTER TABLE payloads_rest RENAME TO "+r.String(),
		"ALTER INDEX payloads_rest_pkey RENAME TO "+r.String()+"_pkey",
		"CREATE TABLE payloads_rest PARTITION OF payloads DEFAULT",
		attach(r.String(), r),
		"ALTER TABLE "+r.String()+" DROP CONSTRAINT "+promise(r.below))
	if err != nil || !done {
		return err
	}
	t.ranges = append(t.ranges, r)
	t.db.log.Info("payload range made for payloads that had none", "from", r.from, "below", r.below)
	return nil
}

func promise(below int64) string { return fmt.Sprintf("payloads_rest_below_%d", below) }

// noRanges makes the payloads a single table again, for a database that is refilled, whose seqs need not fit the
// ranges. Earlier schemas, into which their dumps are loaded, have no ranges.
const noRanges = `DO $$ DECLARE r record; BEGIN
	FOR r IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'payloads'::regclass AND c.relname <> '` + payloadRest + `' LOOP
		EXECUTE format('DROP TABLE %I', r.relname);
	END LOOP;
	FOR r IN SELECT conname FROM pg_constraint WHERE conrelid = to_regclass('` + payloadRest + `') AND conname LIKE 'payloads\_rest\_below\_%' LOOP
		EXECUTE format('ALTER TABLE ` + payloadRest + ` DROP CONSTRAINT %I', r.conname);
	END LOOP;
END $$`

// drop drops the ranges below the newest event in which no event has its payload.
func (t *tending) drop(ctx context.Context) error {
	for _, r := range t.ranges {
		if r.below > t.newest {
			return nil
		}
		used := fmt.Sprintf("SELECT EXISTS (SELECT FROM events WHERE seq >= %d AND seq < %d)", r.from, r.below)
		var any bool
		if err := t.conn.QueryRow(ctx, used).Scan(&any); err != nil {
			return err
		}
		if any {
			continue
		}
		// An uncommitted capture with a seq of the range holds a lock on the table: once we have the lock, none is
		// missed.
		done, err := t.change(ctx, "LOCK TABLE payloads IN ACCESS EXCLUSIVE MODE",
			fmt.Sprintf("DO $$ BEGIN IF EXISTS (SELECT FROM events WHERE seq >= %d AND seq < %d) THEN RAISE object_in_use; END IF; END $$", r.from, r.below),
			"DROP TABLE "+r.String())
		if err != nil || !done {
			return err
		}
		t.db.log.Info("payload range dropped", "from", r.from, "below", r.below)
	}
	return nil
}

// change runs statements in one transaction that waits only briefly for locks. It reports whether they were run.
func (t *tending) change(ctx context.Context, statements ...string) (done bool, err error) {
	text := fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = %d; %s; COMMIT", lockWait.Milliseconds(), strings.Join(statements, "; "))
	for try := range rangeTries {
		if try > 0 {
			select {
			case <-time.After(lockPause):
			case <-ctx.Done():
				return false, ctx.Err()
			}
		}
		if _, err = t.conn.Conn().PgConn().Exec(ctx, text).ReadAll(); err == nil {
			return true, nil
		}
		if _, err := t.conn.Exec(ctx, "ROLLBACK"); err != nil {
			return false, err
		}
		// It timed out waiting, or a capture came in between: into the default partition, or into a range about to be
		// dropped.
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || !slices.Contains([]string{lockTimeout, deadlocked, checkViolation, "55006"}, pg.Code) {
			return false, err
		}
	}
	t.db.log.Debug("payload ranges left as they are", "error", err)
	return false, nil
}
