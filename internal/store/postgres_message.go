package store

import (
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"hookglass"
)

// captureMessage is all that a group of captures sends to the server: statements, their arguments and rows in the
// extended protocol, with a single Sync at the end, which makes it one transaction. pgx cannot do this: it starts a
// copy only after a round trip.
type captureMessage struct {
	b      []byte
	begun  int // where the protocol message in progress begins
	row    int // where the row in progress begins
	fields uint16

	among bool // there may be other nodes, which prepare their groups once this one's events are stored

	statements      int // executed
	forwards, tasks int // indexes of the statements that return handed over work; 0: none
}

// keptMessage bounds the buffer that is kept for the next message.
const keptMessage = 1 << 20

var captureMessages = sync.Pool{New: func() any { return new(captureMessage) }}

func (m *captureMessage) keep() {
	if cap(m.b) <= keptMessage {
		captureMessages.Put(m)
	}
}

// write builds the message and returns the captures in the order in which their events get seqs.
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
	// Lock the counters before the turn, in the order of their endpoints: a group that waits for a counter must not
	// hold up all nodes.
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

// letMake lets other nodes prepare their next groups, which travel while the rest of this one is stored and committed.
func (m *captureMessage) letMake() {
	if m.among {
		m.execute(captureHalf, integer(eventsLock))
	}
}

// follow adds the statements that store the events' work.
func (m *captureMessage) follow(groups []*endpointGroup, count []byte, at time.Time) {
	var forwards, tasks followers
	var butPlaces, butTargets []int64
	var keys eventKeys
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
				keys.add(place, o.capture)
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
		switch {
		case len(keys.keys) > 0:
			m.execute(captureForwardsKeys, append(args, integers(butPlaces), integers(butTargets),
				integers(keys.places), integers(keys.targets), byteStrings(keys.keys), integers(keys.at))...)
		case len(butPlaces) > 0:
			m.execute(captureForwardsBut, append(args, integers(butPlaces), integers(butTargets))...)
		default:
			m.execute(captureForwards, args...)
		}
	}
	if len(tasks.places) > 0 {
		m.tasks = m.statements
		m.execute(captureTasks, integers(tasks.places), integers(tasks.endpoints), count, texts(kinds), integers(tasks.untils))
	}
}

// followers lists events with work to do, and until when it is claimed.
type followers struct{ places, endpoints, untils []int64 }

func (f *followers) add(place, endpoint int64, until time.Time) {
	f.places, f.endpoints, f.untils = append(f.places, place), append(f.endpoints, endpoint), append(f.untils, claimedUntil(until))
}

// eventKeys lists keys of events at targets, and when the events were received.
type eventKeys struct {
	places, targets, at []int64
	keys                [][]byte
}

func (k *eventKeys) add(place int64, c *captureOp) {
	for i := range c.work.Keys {
		of := &c.work.Keys[i]
		k.places, k.targets, k.at = append(k.places, place), append(k.targets, of.TargetID), append(k.at, c.event.ReceivedAt.UnixMicro())
		k.keys = append(k.keys, of.Key[:])
	}
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

// portal returns the name of a portal that is bound now and executed later.
func portal(table byte, row int) string { return string(table) + strconv.Itoa(row) }

// bindRow binds a row's fields as a statement's arguments, which have the same encoding.
func (m *captureMessage) bindRow(s statement, portal string, row func(*hookglass.Event), ev *hookglass.Event) {
	m.begin('B')
	m.b = append(append(m.b, portal...), 0)
	m.b = append(append(m.b, s.name...), 0)
	m.b = append(m.b, 0, 1, 0, 1) // all arguments are binary
	row(ev)
	m.b = append(m.b, 0, 1, 0, 1) // and so are results
	m.end()
}

// copyRows executes a COPY of rows in its binary format.
func (m *captureMessage) copyRows(s statement, row func(*hookglass.Event), captures []*captureOp) {
	m.b = encode(m.b, &pgproto3.Bind{PreparedStatement: s.name})
	m.executePortal("")
	m.begin('d')
	m.b = append(m.b, copyHead...)
	for _, c := range captures {
		row(c.event)
	}
	m.b = append(m.b, copyTail...)
	m.end()
	m.b = encode(m.b, &pgproto3.CopyDone{})
}

// begin starts a protocol message; end fills in its length.
func (m *captureMessage) begin(kind byte) {
	m.begun = len(m.b)
	m.b = append(m.b, kind, 0, 0, 0, 0)
}

func (m *captureMessage) end() {
	binary.BigEndian.PutUint32(m.b[m.begun+1:], uint32(len(m.b)-m.begun-1)) // groups are far smaller than 1 GiB
}

func (m *captureMessage) beginRow() {
	m.row, m.fields = len(m.b), 0
	m.b = append(m.b, 0, 0)
}

func (m *captureMessage) endRow() { binary.BigEndian.PutUint16(m.b[m.row:], m.fields) }

// event writes a row of capturedEvent.
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
	if answeredStatus(e) {
		m.integer(int64(e.Reply.Status))
	} else {
		m.null()
	}
	m.textOrNull(encodeText(e.From))
	m.textOrNull(encodeText(e.To))
	m.textOrNull(encodeText(e.Subject))
	m.endRow()
}

// payload writes a row of capturedPayload.
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
	} else {
		for range 6 {
			m.null()
		}
	}
	m.textOrNull(encodeEnvelope(e.Envelope))
	m.endRow()
}

// The following write one field of a row.

func (m *captureMessage) null() {
	m.fields++
	m.b = appendNull(m.b)
}

func (m *captureMessage) integer(n int64) {
	m.fields++
	m.b = appendInteger(m.b, n)
}

func (m *captureMessage) text(s string) {
	m.fields++
	m.b = appendElement(m.b, s)
}

func (m *captureMessage) textOrNull(s string) {
	if s == "" {
		m.null()
		return
	}
	m.text(s)
}

// bytes writes NULL for nil.
func (m *captureMessage) bytes(b []byte) {
	m.fields++
	m.b = appendBytes(m.b, b)
}

// encode appends a message. It fails only for messages longer than the protocol allows, which groups never reach.
func encode(b []byte, message pgproto3.FrontendMessage) []byte {
	longer, err := message.Encode(b)
	if err != nil {
		panic("store: " + err.Error())
	}
	return longer
}
