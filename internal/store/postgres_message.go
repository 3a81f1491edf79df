package store

import (
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"hookglass"
)

// captureMessage is what a group of captures says to the server, all at once: statements, their arguments and rows in
// the extended protocol, and one synchronisation at the end, which makes one transaction of them. pgx copies rows only
// where it has waited for the answer before.
type captureMessage struct {
	b      []byte
	begun  int // where the message begins that holds rows
	row    int // where the row begins
	fields uint16

	among bool // other nodes, which make their groups once the events of this one are stored

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
	// Rows of counters, in the order of their endpoints, before the lock: who waits for one must not have all nodes
	// wait.
	for _, g := range groups {
		m.execute(captureBump, integer(g.endpoint), integer(int64(len(g.ops))), integer(g.last.UnixMicro()))
	}
	m.takeTurn()
	count := integer(int64(len(captures)))
	if !copied {
		for i := range captures {
			m.executePortal(portal('e', i))
			m.executePortal(portal('p', i))
		}
		m.letMake()
	} else {
		m.execute(captureTable)
		m.copyRows(captureEvents, m.event, captures)
		m.execute(captureNumber, count)
		m.letMake()
		m.copyRows(capturePayloads, m.payload, captures)
	}
	m.follow(groups, count, at)
	m.b = encode(m.b, &pgproto3.Sync{})
	return captures
}

func (m *captureMessage) takeTurn() {
	if m.among {
		m.execute(captureTurnAmong, integer(captureLock), integer(eventsLock))
	} else {
		m.execute(captureTurn, integer(captureLock))
	}
}

// letMake lets other nodes make their next groups, which travel while the rest of this one is stored and committed.
func (m *captureMessage) letMake() {
	if m.among {
		m.execute(captureHalf, integer(eventsLock))
	}
}

// follow stores the work that follows the events.
func (m *captureMessage) follow(groups []*endpointGroup, count []byte, at time.Time) {
	var forwards, tasks followers
	var butPlaces, butTargets []int64
	var kinds []string
	place := int64(0)
	for _, g := range groups {
		for _, o := range g.ops {
			place++
			if o.capture.work.Forward {
				forwards.add(place, g.endpoint, o.capture.forwards.until)
				for _, target := range o.capture.work.But {
					butPlaces, butTargets = append(butPlaces, place), append(butTargets, target)
				}
			}
			for i, kind := range o.capture.work.Tasks {
				tasks.add(place, g.endpoint, o.capture.taskUntil(i))
				kinds = append(kinds, string(kind))
			}
		}
	}
	if len(forwards.places) > 0 {
		m.forwards = m.statements
		args := [][]byte{integers(forwards.places), integers(forwards.endpoints), count, integer(at.UnixMicro()), integers(forwards.untils)}
		if len(butPlaces) == 0 {
			m.execute(captureForwards, args...)
		} else {
			m.execute(captureForwardsBut, append(args, integers(butPlaces), integers(butTargets))...)
		}
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
		m.textOrNull(encodeReplyRule(r.Rule))
		m.null()
	} else {
		for range 6 {
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

// encode appends a message. Only one that is longer than the protocol admits fails, and a group is bounded far below.
func encode(b []byte, message pgproto3.FrontendMessage) []byte {
	longer, err := message.Encode(b)
	if err != nil {
		panic("store: " + err.Error())
	}
	return longer
}
