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

// On PostgreSQL the payloads, nine tenths of what is stored, are partitioned by ranges of sequence numbers
// (docs/decisions/0026). Numbers are in the order of commit, so a range is a time, and retention drops tables instead
// of deleting rows. What no range takes goes to the default one, which costs nothing but that: no capture ever fails
// for want of a range.

const (
	// payloadRest is the default range.
	payloadRest = "payloads_rest"
	// rangesKept is about how many ranges there are while events of the longest retention are kept, and rangesAhead how
	// many there are above the newest event.
	rangesKept  = 8
	rangesAhead = 2
	// rangeTries is how often a change of the ranges is tried in a row. It waits for readers no longer than rangeWait,
	// for captures wait behind it.
	rangeTries = 5
	rangeWait  = 200 * time.Millisecond
	rangePause = time.Second
	// rangeLeast is the least number of payloads of a range: fewer are deleted in no time.
	rangeLeast = 1_000_000
)

// payloadRange is a table of the payloads with sequence numbers from one to below another. It is known by its name.
type payloadRange struct{ from, below int64 }

func (r payloadRange) String() string { return fmt.Sprintf("payloads_%d_%d", r.from, r.below) }

func (r payloadRange) holds(seq int64) bool { return r.from <= seq && seq < r.below }

// payloadRanges lists the ranges except for the default one, by their numbers.
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

// withoutRange returns those of the sequence numbers whose payloads are in no range below the newest event: what is in
// one goes with it.
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

// TendPayloads makes ranges of payloads for the events to come and drops those that no event has payloads in. retention
// is the installation's, for accounts that have none of their own. On SQLite there is nothing to do, and where another
// node is at it as well. What could not be done for those who read is done the next time, in a minute.
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
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rangePause)
		defer cancel()
		if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", rangesLock); err != nil {
			conn.Conn().Close(ctx) // and with it the lock
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

// tending is one look after the ranges.
type tending struct {
	db      *DB
	conn    *pgxpool.Conn
	ranges  []payloadRange
	newest  int64 // the last sequence number that was given away
	span    int64 // how many numbers a new range is to have
	rest    int64 // the smallest number in the default range, or -1
	pending int64 // the bound that the default range has been promised to be below, or 0
	least   int64 // rangeLeast; a test has smaller ranges
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

// longestRetention is how long the events of that account are kept that keeps them longest, in microseconds, given that
// of the installation, which endpoints without an account have too.
func longestRetention(installation string) string {
	installation = "cast(" + installation + " AS bigint)"
	return "(SELECT coalesce(max(kept), " + installation + ") FROM (SELECT CASE WHEN retention > 0 THEN retention ELSE " + installation + ` END AS kept FROM accounts
		UNION ALL SELECT ` + installation + ` FROM endpoints WHERE account_id IS NULL AND deleted_at IS NULL) AS every)`
}

// top is where the ranges end.
func (t *tending) top() int64 {
	if len(t.ranges) == 0 {
		return 0
	}
	return t.ranges[len(t.ranges)-1].below
}

// extend makes ranges until there are enough above the newest event.
func (t *tending) extend(ctx context.Context) error {
	switch {
	case t.rest >= t.top():
		if err := t.adopt(ctx); err != nil {
			return err
		}
	case t.rest >= 0:
		// Between the ranges or below them, from whichever hand: these go one by one, and no promise can be made of
		// them.
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

// adopt makes a range of what is in the default one: all that was there before there were ranges, or came where none
// was made in time. That it lies between two numbers is promised first and verified while captures go on, so that
// nobody waits for that. The promise binds what comes as well, so it leaves as much room as there is in the default
// range; when the newest number comes near it, it is taken back.
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
	t.db.log.Info("payload range made of what had none", "from", r.from, "below", r.below)
	return nil
}

func promise(below int64) string { return fmt.Sprintf("payloads_rest_below_%d", below) }

// noRanges makes one table of the payloads again, which a database is that is filled again: its numbers need not be
// those of the ranges. Earlier schemas, which dumps of them are loaded into, have no ranges.
const noRanges = `DO $$ DECLARE r record; BEGIN
	FOR r IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'payloads'::regclass AND c.relname <> '` + payloadRest + `' LOOP
		EXECUTE format('DROP TABLE %I', r.relname);
	END LOOP;
	FOR r IN SELECT conname FROM pg_constraint WHERE conrelid = to_regclass('` + payloadRest + `') AND conname LIKE 'payloads\_rest\_below\_%' LOOP
		EXECUTE format('ALTER TABLE ` + payloadRest + ` DROP CONSTRAINT %I', r.conname);
	END LOOP;
END $$`

// drop drops the ranges below the newest event that no event has its payload in.
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
		// A capture that was given a number of the range and is not committed holds a lock on the table: behind it,
		// none is missed.
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

// change runs statements in one transaction that waits for nobody for long. It reports whether it came to its turn.
func (t *tending) change(ctx context.Context, statements ...string) (done bool, err error) {
	text := fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = %d; %s; COMMIT", rangeWait.Milliseconds(), strings.Join(statements, "; "))
	for try := range rangeTries {
		if try > 0 {
			select {
			case <-time.After(rangePause):
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
		// It had to wait; or a capture came in between: into the default range, or one that was to be dropped.
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || !slices.Contains([]string{lockTimeout, deadlocked, "23514", "55006"}, pg.Code) {
			return false, err
		}
	}
	t.db.log.Debug("payload ranges left as they are", "error", err)
	return false, nil
}
