package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"hookglass"
)

// statement is a prepared statement and the name that it has on each connection.
type statement struct{ name, text string }

// The statements of a group of captures. A bump of an endpoint that is gone fails, and with it the group: it divides by zero.
var (
	captureBump = statement{"capture_bump", "WITH bumped AS (" + bumpStats + " RETURNING endpoint) SELECT 1 / count(*) FROM bumped"}
	captureTurn = statement{"capture_turn", "SELECT pg_advisory_xact_lock($1)"}

	// Few events are inserted one by one, and large ones too.
	captureEvent   = statement{"capture_event", "INSERT INTO events (" + capturedEvent + ") VALUES (" + placeholders(capturedEvent) + ") RETURNING seq"}
	capturePayload = statement{"capture_payload", "INSERT INTO payloads (seq, " + capturedPayload + ") VALUES (currval('events_seq_seq'), " + placeholders(capturedPayload) + ")"}

	// More are copied, which takes half the processor time of it (docs/decisions/0030). A copy evaluates nothing but defaults, so the events' numbers come from
	// their identity, and those of their payloads from another sequence, which captureNumber sets to the first of the $1 and returns.
	// The table is locked before numbers are taken, which [tending.drop] relies on.
	captureTable    = statement{"capture_table", "SELECT FROM payloads WHERE false"}
	captureEvents   = statement{"capture_events", "COPY events (" + capturedEvent + ") FROM STDIN BINARY"}
	captureNumber   = statement{"capture_number", "SELECT setval('payloads_seq_seq', currval('events_seq_seq') - cast($1 AS bigint) + 1, false)"}
	capturePayloads = statement{"capture_payloads", "COPY payloads (" + capturedPayload + ") FROM STDIN BINARY"}

	// What follows is of some of the events: of those at the places $1, of all $3, and of the endpoints $2. It is claimed until $5,
	// where that is not 0, and returned then.
	captureForwards = statement{"capture_forwards", `WITH w AS (
			SELECT endpoint, currval('events_seq_seq') - cast($3 AS bigint) + place AS event, until, ` + postgresClock + ` AS at
			FROM unnest(cast($1 AS bigint[]), cast($2 AS bigint[]), cast($5 AS bigint[])) AS u (place, endpoint, until)
		), stored AS (
			INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, created_at)
			SELECT t.id, t.endpoint, w.event, CASE WHEN taken THEN 'sending' ELSE 'pending' END, CASE WHEN taken THEN due ELSE w.at END,
				CASE WHEN taken THEN due ELSE 0 END, 0, cast($4 AS bigint)
			FROM w JOIN forwarding_targets t ON t.endpoint = w.endpoint AND t.enabled = 1
				CROSS JOIN LATERAL (SELECT w.until > 0 AND t.paused_at IS NULL AS taken, w.until + t.timeout_seconds * 1000000 AS due) AS l
			ORDER BY w.event, t.id
			RETURNING num, target, event, claim, created_at
		)
		SELECT ` + handedForward + ` FROM stored s JOIN forwarding_targets t ON t.id = s.target
			JOIN endpoints e ON e.num = t.endpoint LEFT JOIN accounts a ON a.id = e.account_id
		WHERE s.claim > 0 ORDER BY s.num`}
	captureTasks = statement{"capture_tasks", `INSERT INTO event_tasks (kind, endpoint, event, due_at, leased, claim, lost)
		SELECT kind, endpoint, currval('events_seq_seq') - cast($3 AS bigint) + place, CASE WHEN until > 0 THEN until ELSE ` + postgresClock + ` END, taken, taken, 0
		FROM unnest(cast($1 AS bigint[]), cast($2 AS bigint[]), cast($4 AS text[]), cast($5 AS bigint[])) AS u (place, endpoint, kind, until)
			CROSS JOIN LATERAL (SELECT CASE WHEN until > 0 THEN 1 ELSE 0 END AS taken) AS l
		RETURNING num, event, claim, endpoint, kind`}

	captureAll = []statement{captureBump, captureTurn, captureEvent, capturePayload, captureTable, captureEvents, captureNumber, capturePayloads, captureForwards, captureTasks}
)

const (
	// copiedFrom is the number of events in a group from which copying takes less than inserting.
	copiedFrom = 4
	// copiedBytes bounds what is copied. Rows that are copied travel while the lock is held, and arguments before it is asked for: what is large
	// must not have everybody wait for one node's network.
	copiedBytes = 512 << 10
)

// The columns that captureMessage.event and captureMessage.payload fill.
const (
	capturedEvent = `id, endpoint, type, received_at, method, path, raw_query, content_type, ip, size,
		provider, event_type, event_ref, delivery_id, signature_status, signature_reason, status, mail_from, mail_to, subject`
	capturedPayload = "url, proto, headers, trailers, body, reply_status, reply_source, reply_delay, reply_headers, reply_body, envelope"
)

// placeholders are $1, $2 and so on for a list of columns.
func placeholders(columns string) string {
	names := strings.Split(columns, ",")
	for i := range names {
		names[i] = "$" + strconv.Itoa(i+1)
	}
	return strings.Join(names, ", ")
}

// Errors of the server, by their SQLSTATE.
const (
	divisionByZero = "22012"
	noSuchPrepared = "26000" // whoever stands between us and the server gave us another connection
	lockTimeout    = "55P03"
	queryCanceled  = "57014" // by the statement timeout too
)

// errTurn says that a group's turn did not come: the group before it, of whichever node, does not end.
var errTurn = errors.New("store: the turn of a group of captures did not come")

// sendGroup commits the events of the groups in one transaction and one round trip, and gives them their numbers. When the endpoint of one of the
// groups is gone it returns that group, and nothing was stored.
func sendGroup(ctx context.Context, conn *pgx.Conn, groups []*endpointGroup, at time.Time) (gone *endpointGroup, err error) {
	for _, s := range captureAll {
		if _, err := conn.Prepare(ctx, s.name, s.text); err != nil { // asks the server once for a connection
			return nil, err
		}
	}
	m := captureMessages.Get().(*captureMessage)
	defer m.keep()
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
		return groups[answer.executed], nil // whose bump failed
	case answer.executed == len(groups) && (answer.failed.Code == lockTimeout || answer.failed.Code == queryCanceled):
		return nil, errors.Join(errTurn, answer.failed)
	}
	return nil, answer.failed
}

// captureMessage is what a group of captures says to the server, all at once: statements, their arguments and rows in the extended protocol, and
// one synchronisation at the end, which makes one transaction of them. pgx copies rows only where it has waited for the answer before.
type captureMessage struct {
	b      []byte
	begun  int // where the message begins that holds rows
	row    int // where the row begins
	fields uint16

	statements      int // executed
	forwards, tasks int // which of them answer with work that is handed over; 0: none
}

// keptMessage bounds the memory that a message keeps for the next.
const keptMessage = 1 << 20

var captureMessages = sync.Pool{New: func() any { return new(captureMessage) }}

func (m *captureMessage) keep() {
	if cap(m.b) <= keptMessage {
		captureMessages.Put(m)
	}
}

// write makes the message and returns the captures in the order in which their events will be numbered.
func (m *captureMessage) write(groups []*endpointGroup, at time.Time) (captures []*captureOp) {
	m.b, m.statements, m.forwards, m.tasks = m.b[:0], 0, 0, 0
	size := int64(0)
	for _, g := range groups {
		for _, o := range g.ops {
			captures = append(captures, o.capture)
			size += weight(o.capture.event)
		}
	}
	copied := len(captures) >= copiedFrom && size <= copiedBytes
	if !copied {
		for i, c := range captures {
			m.bindRow(captureEvent, portal('e', i), m.event, c.event)
			m.bindRow(capturePayload, portal('p', i), m.payload, c.event)
		}
	}
	// Rows of counters, in the order of their endpoints, before the lock: who waits for one must not have all nodes wait.
	for _, g := range groups {
		m.execute(captureBump, integer(g.endpoint), integer(int64(len(g.ops))), integer(g.last.UnixMicro()))
	}
	m.execute(captureTurn, integer(captureLock))
	count := integer(int64(len(captures)))
	if !copied {
		for i := range captures {
			m.executePortal(portal('e', i))
			m.executePortal(portal('p', i))
		}
	} else {
		m.execute(captureTable)
		m.copyRows(captureEvents, m.event, captures)
		m.execute(captureNumber, count)
		m.copyRows(capturePayloads, m.payload, captures)
	}
	m.follow(groups, count, at)
	m.b = encode(m.b, &pgproto3.Sync{})
	return captures
}

// follow stores the work that follows the events.
func (m *captureMessage) follow(groups []*endpointGroup, count []byte, at time.Time) {
	var forwards, tasks followers
	var kinds []string
	place := int64(0)
	for _, g := range groups {
		for _, o := range g.ops {
			place++
			if o.capture.work.Forward {
				forwards.add(place, g.endpoint, o.capture.forwards.until)
			}
			for i, kind := range o.capture.work.Tasks {
				tasks.add(place, g.endpoint, o.capture.taskUntil(i))
				kinds = append(kinds, string(kind))
			}
		}
	}
	if len(forwards.places) > 0 {
		m.forwards = m.statements
		m.execute(captureForwards, integers(forwards.places), integers(forwards.endpoints), count, integer(at.UnixMicro()), integers(forwards.untils))
	}
	if len(tasks.places) > 0 {
		m.tasks = m.statements
		m.execute(captureTasks, integers(tasks.places), integers(tasks.endpoints), count, texts(kinds), integers(tasks.untils))
	}
}

// followers are of which events work follows, and until when it is claimed.
type followers struct{ places, endpoints, untils []int64 }

func (f *followers) add(place, endpoint int64, until time.Time) {
	f.places, f.endpoints, f.untils = append(f.places, place), append(f.endpoints, endpoint), append(f.untils, claimedUntil(until))
}

// execute executes a statement with arguments in the binary format.
func (m *captureMessage) execute(s statement, args ...[]byte) {
	m.b = encode(m.b, &pgproto3.Bind{PreparedStatement: s.name, ParameterFormatCodes: []int16{1}, Parameters: args, ResultFormatCodes: []int16{1}})
	m.executePortal("")
}

func (m *captureMessage) executePortal(name string) {
	m.b = encode(m.b, &pgproto3.Execute{Portal: name})
	m.statements++
}

// portal names what is bound to be executed later.
func portal(table byte, row int) string { return string(table) + strconv.Itoa(row) }

// bindRow binds the fields of a row to a statement as its arguments: they are written alike.
func (m *captureMessage) bindRow(s statement, portal string, row func(*hookglass.Event), ev *hookglass.Event) {
	m.begin('B')
	m.b = append(append(m.b, portal...), 0)
	m.b = append(append(m.b, s.name...), 0)
	m.b = append(m.b, 0, 1, 0, 1) // all arguments are binary
	row(ev)
	m.b = append(m.b, 0, 1, 0, 1) // and so are results
	m.end()
}

// copyRows executes a copy of rows, which are in PostgreSQL's binary format of COPY.
func (m *captureMessage) copyRows(s statement, row func(*hookglass.Event), captures []*captureOp) {
	m.b = encode(m.b, &pgproto3.Bind{PreparedStatement: s.name})
	m.executePortal("")
	m.begin('d')
	m.b = append(m.b, "PGCOPY\n\xff\r\n\x00"+"\x00\x00\x00\x00"+"\x00\x00\x00\x00"...) // no flags, no extension
	for _, c := range captures {
		row(c.event)
	}
	m.b = append(m.b, 0xff, 0xff)
	m.end()
	m.b = encode(m.b, &pgproto3.CopyDone{})
}

// begin begins a message of a kind, whose length is written by end.
func (m *captureMessage) begin(kind byte) {
	m.begun = len(m.b)
	m.b = append(m.b, kind, 0, 0, 0, 0)
}

func (m *captureMessage) end() {
	binary.BigEndian.PutUint32(m.b[m.begun+1:], uint32(len(m.b)-m.begun-1)) // a group is bounded far below 1 GiB
}

func (m *captureMessage) beginRow() {
	m.row, m.fields = len(m.b), 0
	m.b = append(m.b, 0, 0)
}

func (m *captureMessage) endRow() { binary.BigEndian.PutUint16(m.b[m.row:], m.fields) }

// event is a row of capturedEvent.
func (m *captureMessage) event(e *hookglass.Event) {
	m.beginRow()
	m.text(string(e.ID))
	m.integer(e.EndpointNum)
	m.text(string(e.Type))
	m.integer(e.ReceivedAt.UnixMicro())
	m.text(e.Method)
	m.text(encodeText(e.Path))
	m.text(encodeText(e.RawQuery))
	m.textOrNull(encodeText(e.ContentType))
	m.textOrNull(e.IP)
	m.integer(e.Size)
	m.text(e.Provider)
	m.textOrNull(encodeText(e.EventType))
	m.textOrNull(encodeText(e.EventRef))
	m.textOrNull(encodeText(e.DeliveryID))
	m.text(string(e.SignatureStatus))
	m.textOrNull(e.SignatureReason)
	if e.Reply == nil || e.Reply.Status == 0 {
		m.null()
	} else {
		m.integer(int64(e.Reply.Status))
	}
	m.textOrNull(encodeText(e.From))
	m.textOrNull(encodeText(e.To))
	m.textOrNull(encodeText(e.Subject))
	m.endRow()
}

// payload is a row of capturedPayload.
func (m *captureMessage) payload(e *hookglass.Event) {
	m.beginRow()
	m.text(encodeText(e.URL))
	m.text(e.Proto)
	m.bytes(wire(e.Headers))
	if len(e.Trailers) > 0 {
		m.bytes(wire(e.Trailers))
	} else {
		m.null()
	}
	m.bytes(e.Body)
	if r := e.Reply; r != nil {
		if r.Status == 0 {
			m.null()
		} else {
			m.integer(int64(r.Status))
		}
		m.text(string(r.Source))
		m.integer(r.Delay.Milliseconds())
		m.bytes(wire(r.Headers))
		m.bytes(r.Body)
		m.null()
	} else {
		for range 5 {
			m.null()
		}
		m.textOrNull(encodeEnvelope(e.Envelope))
	}
	m.endRow()
}

// The fields of a row.

func (m *captureMessage) field(size int) {
	m.fields++
	m.b = binary.BigEndian.AppendUint32(m.b, uint32(size))
}

func (m *captureMessage) null() {
	m.fields++
	m.b = append(m.b, 0xff, 0xff, 0xff, 0xff)
}

func (m *captureMessage) integer(n int64) {
	m.field(8)
	m.b = binary.BigEndian.AppendUint64(m.b, uint64(n))
}

func (m *captureMessage) text(s string) {
	m.field(len(s))
	m.b = append(m.b, s...)
}

func (m *captureMessage) textOrNull(s string) {
	if s == "" {
		m.null()
		return
	}
	m.text(s)
}

// bytes is NULL for nil.
func (m *captureMessage) bytes(b []byte) {
	if b == nil {
		m.null()
		return
	}
	m.field(len(b))
	m.b = append(m.b, b...)
}

// captureAnswer is what the server said to a message.
type captureAnswer struct {
	executed int   // statements, to the end or the error
	first    int64 // the number of the first event
	forwards []HandedForward
	tasks    []Task
	failed   *pgconn.PgError
}

// exchange sends the message and reads to the end of the answer. A connection that failed, or is not as it was left, is closed. What the server
// is at for it is canceled: what comes too late must not be stored beside what its sender sends again.
func (m *captureMessage) exchange(ctx context.Context, c *pgx.Conn, endpoints int) (answer captureAnswer, err error) {
	conn := c.PgConn()
	defer func() {
		if err != nil || answer.failed != nil && answer.failed.Code == noSuchPrepared {
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

// read reads until the server is ready for the next. An error ends what it executes, and it skips the rest of the message.
func (m *captureMessage) read(from *pgproto3.Frontend, types *pgtype.Map, endpoints int, a *captureAnswer) error {
	for {
		message, err := from.Receive()
		if err != nil {
			if a.failed != nil { // the last word before the server hung up
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

// wireRow scans a row of bigint and text in the binary format.
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

// encode appends a message. Only one that is longer than the protocol admits fails, and a group is bounded far below.
func encode(b []byte, message pgproto3.FrontendMessage) []byte {
	longer, err := message.Encode(b)
	if err != nil {
		panic("store: " + err.Error())
	}
	return longer
}

// The arguments of a statement, in PostgreSQL's binary format.

func integer(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func integers(ns []int64) []byte {
	b := arrayOf(pgtype.Int8OID, len(ns), 12*len(ns))
	for _, n := range ns {
		b = binary.BigEndian.AppendUint32(b, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func texts(all []string) []byte {
	b := arrayOf(pgtype.TextOID, len(all), 16*len(all))
	for _, s := range all {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return b
}

// arrayOf is the head of an array that is not empty and without NULL.
func arrayOf(element uint32, count, room int) []byte {
	b := make([]byte, 0, 20+room)
	for _, n := range []uint32{1, 0, element, uint32(count), 1} { // dimensions, flags, type, length, first index
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}
