package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// statement is a statement that is prepared under a name on each connection.
type statement struct{ name, text string }

// The statements of a group of captures. The bump of an endpoint that is gone divides by zero, which aborts the group.
var (
	captureBump = statement{"capture_bump", "WITH bumped AS (" + bumpStats + " RETURNING endpoint) SELECT 1 / count(*) FROM bumped"}
	captureTurn = statement{"capture_turn", "SELECT pg_advisory_xact_lock($1)"}

	// With other nodes a group holds a second lock, which it releases halfway. It is a session lock, because a
	// transaction lock cannot be released before the end.
	captureTurnAmong = statement{"capture_turn_among", "SELECT CASE WHEN pg_advisory_xact_lock($1) IS NOT NULL THEN pg_advisory_lock($2) END"}
	captureHalf      = statement{"capture_half", "SELECT pg_advisory_unlock($1)"}

	// A few events, or large ones, are inserted one by one.
	captureEvent   = statement{"capture_event", "INSERT INTO events (" + capturedEvent + ") VALUES (" + placeholders(capturedEvent) + ") RETURNING seq"}
	capturePayload = statement{"capture_payload", "INSERT INTO payloads (seq, " + capturedPayload + ") VALUES (currval('events_seq_seq'), " + placeholders(capturedPayload) + ")"}

	// More are copied, which takes half the processor time (docs/decisions/0030). COPY evaluates only defaults, so
	// events get their seqs from the identity column, and payloads theirs from a second sequence. captureNumber sets
	// that to the seq of the first of the $1 events, and returns it. captureTable locks the table before seqs are
	// taken, on which [tending.drop] relies.
	captureTable    = statement{"capture_table", "SELECT FROM payloads WHERE false"}
	captureEvents   = statement{"capture_events", "COPY events (" + capturedEvent + ") FROM STDIN BINARY"}
	captureNumber   = statement{"capture_number", "SELECT setval('payloads_seq_seq', currval('events_seq_seq') - cast($1 AS bigint) + 1, false)"}
	capturePayloads = statement{"capture_payloads", "COPY payloads (" + capturedPayload + ") FROM STDIN BINARY"}

	// The work for some of the events: $1 are their positions among all $3 and $2 their endpoints. Work is claimed
	// until $5, unless that is 0, and then returned. A delivery that waits for its target's turn is returned unclaimed.
	captureForwards = statement{"capture_forwards", forwardsWhere("", false)}
	// The same, but the event at position $6 is not delivered to target $7.
	captureForwardsBut = statement{"capture_forwards_but", forwardsWhere(exceptFor, false)}
	// The same, and the event at position $8, received at $11, has the key $10 at target $9.
	captureForwardsKeys = statement{"capture_forwards_keys", forwardsWhere(exceptFor, true)}
	captureTasks        = statement{"capture_tasks", `INSERT INTO event_tasks (kind, endpoint, event, due_at, leased, claim, lost)
		SELECT kind, endpoint, currval('events_seq_seq') - cast($3 AS bigint) + place, CASE WHEN until > 0 THEN until ELSE ` + postgresClock + ` END, taken, taken, 0
		FROM unnest(cast($1 AS bigint[]), cast($2 AS bigint[]), cast($4 AS text[]), cast($5 AS bigint[])) AS u (place, endpoint, kind, until)
			CROSS JOIN LATERAL (SELECT CASE WHEN until > 0 THEN 1 ELSE 0 END AS taken) AS l
		RETURNING num, event, claim, endpoint, kind`}

	captureAll = []statement{captureBump, captureTurn, captureTurnAmong, captureHalf, captureEvent, capturePayload, captureTable, captureEvents, captureNumber, capturePayloads, captureForwards, captureForwardsBut, captureForwardsKeys, captureTasks}
)

const (
	// copiedFrom is the number of events from which copying is cheaper than inserting.
	copiedFrom = 4
	// copiedBytes bounds what is copied. Copied rows travel while the lock is held, but arguments before it is
	// requested: all nodes would wait while a large group crosses one node's network.
	copiedBytes = 512 << 10
)

// The columns that captureMessage.event and captureMessage.payload write.
const (
	capturedEvent = `id, endpoint, type, received_at, method, path, raw_query, content_type, ip, size,
		provider, event_type, event_ref, delivery_id, signature_status, signature_reason, status, mail_from, mail_to, subject`
	capturedPayload = "url, proto, headers, trailers, body, reply_status, reply_source, reply_delay, reply_headers, reply_body, reply_rule, envelope"
)

const exceptFor = `
			WHERE NOT EXISTS (SELECT FROM unnest(cast($6 AS bigint[]), cast($7 AS bigint[])) AS but (place, target) WHERE but.place = w.place AND but.target = t.id)`

// forwardsWhere returns the statement that stores deliveries of the events w to the enabled targets t of their
// endpoints, under a condition, and the keys of events. A delivery with a key is not claimed: it may be a duplicate.
func forwardsWhere(condition string, keys bool) string {
	var given, join, unkeyed, stored, keyed string
	if keys {
		given = `, given AS MATERIALIZED (
			SELECT place, target, key, received_at
			FROM unnest(cast($8 AS bigint[]), cast($9 AS bigint[]), cast($10 AS bytea[]), cast($11 AS bigint[])) AS g (place, target, key, received_at)
		)`
		join = " LEFT JOIN given g ON g.place = w.place AND g.target = t.id"
		unkeyed = " AND g.key IS NULL"
		stored = `, keyed AS (
			INSERT INTO forward_keys (forward, target, event, received_at, key)
			SELECT s.num, s.target, s.event, g.received_at, g.key FROM stored s JOIN w ON w.event = s.event JOIN given g ON g.place = w.place AND g.target = s.target
			RETURNING forward
		)`
		keyed = " OR t.paused_at IS NULL AND s.num IN (SELECT forward FROM keyed)"
	}
	return `WITH w AS (
			SELECT place, endpoint, currval('events_seq_seq') - cast($3 AS bigint) + place AS event, until, ` + postgresClock + ` AS at
			FROM unnest(cast($1 AS bigint[]), cast($2 AS bigint[]), cast($5 AS bigint[])) AS u (place, endpoint, until)
		)` + given + `, stored AS (
			INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, created_at)
			SELECT t.id, t.endpoint, w.event, CASE WHEN taken THEN 'sending' ELSE 'pending' END, CASE WHEN taken THEN w.until ELSE w.at END,
				CASE WHEN taken THEN w.until ELSE 0 END, 0, cast($4 AS bigint)
			FROM w` + lookUp("forwarding_targets", "endpoint = w.endpoint AND enabled = 1", "t") + join + `
				CROSS JOIN LATERAL (SELECT w.until > 0 AND t.paused_at IS NULL AND t.rate_limit IS NULL` + unkeyed + ` AS taken) AS l` + condition + `
			ORDER BY w.event, t.id
			RETURNING num, target, event, claim, created_at
		)` + stored + `
		SELECT ` + handedForward + ` FROM stored s` + lookUp("forwarding_targets", "id = s.target", "t") +
		lookUp("endpoints", "num = t.endpoint", "e") + " LEFT" + lookUp("accounts", "id = e.account_id", "a") + `
		WHERE s.claim > 0 OR t.rate_limit IS NOT NULL AND t.paused_at IS NULL` + keyed + ` ORDER BY s.num`
}

// Errors of the server, by their SQLSTATE.
const (
	divisionByZero = "22012"
	noSuchPrepared = "26000" // a pooler gave us another server connection
	lockTimeout    = "55P03"
	deadlocked     = "40P01"
	queryCanceled  = "57014" // also by the statement timeout
	checkViolation = "23514"

	// Sessions opened while a server or database was read-only stay so, and a replaced primary may live on as a
	// replica. Such a connection is closed; a new one finds the server that takes writes.
	readOnlySession = "25006"
)

// stale reports whether the server's error means that the connection is of no use any more.
func stale(failed *pgconn.PgError) bool {
	return failed != nil && (failed.Code == noSuchPrepared || failed.Code == readOnlySession)
}

// errTurn says that a group did not get the lock: the group before it, of whichever node, does not end.
var errTurn = errors.New("store: the turn of a group of captures did not come")

// noTurn reports whether waiting for the lock timed out.
func noTurn(err error) bool {
	failed, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (failed.Code == lockTimeout || failed.Code == queryCanceled)
}

// overtaken reports whether a group was on its way to the default partition when a range for its payloads was attached.
// Nothing of it was stored, and the next try finds the range.
func overtaken(err error) bool {
	failed, ok := errors.AsType[*pgconn.PgError](err)
	return ok && failed.Code == checkViolation && failed.TableName == payloadRest
}

// inDeadlock reports whether the server aborted a transaction because of a deadlock.
func inDeadlock(err error) bool {
	failed, ok := errors.AsType[*pgconn.PgError](err)
	return ok && failed.Code == deadlocked
}

// sendGroup commits the events of the groups in one transaction and one round trip, and sets their Seqs. If the
// endpoint of a group is gone, it returns that group, and nothing was stored. among says whether there may be other
// nodes.
func sendGroup(ctx context.Context, conn *pgx.Conn, groups []*endpointGroup, at time.Time, among bool) (gone *endpointGroup, err error) {
	for _, s := range captureAll {
		if _, err := conn.Prepare(ctx, s.name, s.text); err != nil { // one round trip per statement and connection
			return nil, err
		}
	}
	m := captureMessages.Get().(*captureMessage)
	defer m.keep()
	m.among = among
	captures := m.write(groups, at)
	answer, err := m.exchange(ctx, conn, len(groups))
	switch {
	case err != nil:
		return nil, err
	case answer.failed == nil:
		for i, c := range captures {
			c.event.Seq = answer.first + int64(i)
		}
		hand(captures, answer.forwards, answer.tasks)
		return nil, nil
	case answer.failed.Code == divisionByZero && answer.executed < len(groups):
		return groups[answer.executed], nil // the bump that failed
	case answer.executed == len(groups) && noTurn(answer.failed):
		return nil, errors.Join(errTurn, answer.failed)
	}
	return nil, answer.failed
}

// captureAnswer is the server's answer to a message.
type captureAnswer struct {
	executed int   // statements completed, up to the end or the error
	first    int64 // the seq of the first event
	forwards []HandedForward
	tasks    []Task
	failed   *pgconn.PgError
}

// exchange sends the message and reads the whole answer. A connection that failed, or is in an unknown state, is
// closed, which also releases the session lock. What the server is executing for it is cancelled: the senders will
// retry, and a late commit would store their events twice.
func (m *captureMessage) exchange(ctx context.Context, c *pgx.Conn, endpoints int) (answer captureAnswer, err error) {
	conn := c.PgConn()
	defer func() {
		locked := m.among && answer.failed != nil && answer.executed > endpoints
		if err != nil || stale(answer.failed) || locked {
			brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if err != nil {
				err = errors.Join(err, conn.CancelRequest(brief))
			}
			conn.Close(brief)
		}
	}()
	deadline, _ := ctx.Deadline()
	if err := conn.Conn().SetDeadline(deadline); err != nil {
		return answer, err
	}
	if _, err := conn.Conn().Write(m.b); err != nil {
		return answer, err
	}
	if err := m.read(conn.Frontend(), c.TypeMap(), endpoints, &answer); err != nil {
		return answer, err
	}
	return answer, conn.Conn().SetDeadline(time.Time{})
}

// read reads until the server is ready for the next message. After an error the server skips the rest of the message.
func (m *captureMessage) read(from *pgproto3.Frontend, types *pgtype.Map, endpoints int, a *captureAnswer) error {
	for {
		message, err := from.Receive()
		if err != nil {
			if a.failed != nil { // the server's reason for hanging up
				return a.failed
			}
			return err
		}
		switch message := message.(type) {
		case *pgproto3.CommandComplete:
			a.executed++
		case *pgproto3.DataRow:
			switch {
			case a.executed <= endpoints: // the bumps and the lock have a row as well
			case m.forwards > 0 && a.executed == m.forwards:
				h, err := scanHandedForward(wireRow(types, message.Values))
				if err != nil {
					return err
				}
				a.forwards = append(a.forwards, h)
			case m.tasks > 0 && a.executed == m.tasks:
				t, err := scanHandedTask(wireRow(types, message.Values))
				if err != nil {
					return err
				}
				a.tasks = append(a.tasks, t)
			case a.first == 0 && len(message.Values) == 1 && len(message.Values[0]) == 8:
				a.first = int64(binary.BigEndian.Uint64(message.Values[0]))
			}
		case *pgproto3.ErrorResponse:
			a.failed = pgconn.ErrorResponseToPgError(message)
		case *pgproto3.ReadyForQuery:
			if a.failed == nil && a.first == 0 {
				return fmt.Errorf("the server numbered no event in %d statements", a.executed)
			}
			return nil
		}
	}
}

// wireRow returns a scan function for a row of bigints and texts in the binary format.
func wireRow(types *pgtype.Map, values [][]byte) func(...any) error {
	return func(dest ...any) error {
		if len(dest) != len(values) {
			return fmt.Errorf("a row of %d columns instead of %d", len(values), len(dest))
		}
		for i := range dest {
			oid := uint32(pgtype.TextOID)
			switch dest[i].(type) {
			case *int, *int64:
				oid = pgtype.Int8OID
			}
			if err := types.Scan(oid, pgtype.BinaryFormatCode, values[i], dest[i]); err != nil {
				return err
			}
		}
		return nil
	}
}
