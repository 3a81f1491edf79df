package store

import (
	"database/sql"
	"math"
	"time"

	"hookglass"
	"hookglass/internal/query"
)

// Rows examined per statement: few at first, because the newest events usually suffice, then more. What Go must judge
// is read in smaller chunks, because the deadline is checked between them.
const (
	firstChunk = 2_000
	lastChunk  = 50_000
	deepChunk  = 500
)

// walk reads the events of one endpoint that match a query, newest first, chunk by chunk, and keeps its position.
type walk struct {
	v     *View
	log   eventLog
	q     query.Query
	all   bool   // the query matches every event of the log
	deep  bool   // SQL alone cannot decide the query
	mark  string // a condition that few events meet and that the query implies; "": none
	below int64  // events with smaller seqs are still to be read
	seen  int64  // events that matched so far, skipped or taken
	ended bool   // nothing is left to read
	chunk int64
}

// walk returns a walk that begins below the given seq.
func (v *View) walk(log eventLog, q query.Query, below int64) *walk {
	w := &walk{v: v, log: log, q: q, mark: marked(q), below: below, chunk: firstChunk, all: true}
	for _, t := range q.Terms() {
		if t.Field != query.Ignored || !t.Not || log.ignored > 0 {
			w.all = false
		}
	}
	if _, whole := v.dialect.where(q, &args{}); !whole {
		w.deep, w.chunk = true, deepChunk
	}
	return w
}

// counted returns how many events match the query if the endpoint's counters tell.
func (w *walk) counted() (total int64, known bool) {
	if w.all {
		return w.log.endpoint.EventCount, true
	}
	if terms := w.q.Terms(); len(terms) == 1 && terms[0].Field == query.Ignored {
		if terms[0].Not {
			return w.log.endpoint.EventCount - w.log.ignored, true
		}
		return w.log.ignored, true
	}
	return 0, false
}

// take skips the first matching events and returns the next, limit at most. If the deadline passes it returns what it
// has, and the walk can continue.
func (w *walk) take(skip int64, limit int, deadline time.Time) ([]*hookglass.Event, error) {
	if total, known := w.counted(); known && skip >= total {
		w.ended = true
		return []*hookglass.Event{}, nil
	}
	if w.all {
		if err := w.pass(skip); err != nil {
			return nil, err
		}
		events, err := w.rows(w.log.floor, 0, limit)
		w.ended = len(events) < limit
		return events, err
	}
	events := []*hookglass.Event{}
	for len(events) < limit && !w.ended {
		low, more, err := w.v.nthBelow(w.log, w.below, w.chunk, w.mark)
		if err != nil {
			return nil, err
		}
		if w.deep {
			err = w.judge(low, &skip, limit, &events, deadline)
		} else {
			err = w.filter(low, &skip, limit, &events)
		}
		if err != nil {
			return nil, err
		}
		w.ended = w.below == low && !more
		w.grow()
		if !time.Now().Before(deadline) {
			break
		}
	}
	return events, nil
}

// pass skips the newest events, counting from the nearer end of the log.
func (w *walk) pass(skip int64) (err error) {
	if skip <= 0 {
		return nil
	}
	left := w.log.endpoint.EventCount - skip
	if w.below == math.MaxInt64 && left < skip {
		// The oldest of those to be passed has "left" older ones.
		w.below, err = w.v.nthAbove(w.log, w.log.floor, left+1, "")
		return err
	}
	low, more, err := w.v.nthBelow(w.log, w.below, skip, "")
	w.below = low
	if !more {
		w.below = w.log.floor
	}
	return err
}

// filter takes the events from low on that SQL selects.
func (w *walk) filter(low int64, skip *int64, limit int, events *[]*hookglass.Event) error {
	if *skip > 0 {
		n, err := w.countFrom(low)
		if err != nil {
			return err
		}
		if n <= *skip {
			*skip -= n
			w.seen += n
			w.below = low
			return nil
		}
	}
	found, err := w.rows(low-1, *skip, limit-len(*events))
	if err != nil {
		return err
	}
	w.seen += *skip + int64(len(found))
	*skip = 0
	*events = append(*events, found...)
	w.below = low
	if len(*events) == limit {
		w.below = (*events)[limit-1].Seq
	}
	return nil
}

// judge takes the events from low on that match the query, loading only the parts that the query reads.
func (w *walk) judge(low int64, skip *int64, limit int, events *[]*hookglass.Event, deadline time.Time) error {
	candidates, err := w.rows(low-1, 0, int(w.chunk))
	if err != nil {
		return err
	}
	for len(candidates) > 0 {
		n := batch(candidates, payloadBytes)
		if err := w.v.loadParts(candidates[:n], w.q); err != nil {
			return err
		}
		for _, e := range candidates[:n] {
			w.below = e.Seq
			matches := w.q.Match(e)
			e.Payload = nil
			if !matches {
				continue
			}
			w.seen++
			if *skip > 0 {
				*skip--
				continue
			}
			if *events = append(*events, e); len(*events) == limit {
				return nil
			}
		}
		candidates = candidates[n:]
		if len(candidates) > 0 && !time.Now().Before(deadline) {
			return nil
		}
	}
	w.below = low
	return nil
}

// count counts the matching events from here on, until the deadline.
func (w *walk) count(deadline time.Time) (int64, error) {
	for !w.ended {
		low, more, err := w.v.nthBelow(w.log, w.below, w.chunk, w.mark)
		if err != nil {
			return 0, err
		}
		if w.deep {
			skip := int64(math.MaxInt64)
			var none []*hookglass.Event
			err = w.judge(low, &skip, 1, &none, deadline)
		} else {
			var n int64
			n, err = w.countFrom(low)
			w.seen += n
			w.below = low
		}
		if err != nil {
			return 0, err
		}
		w.ended = w.below == low && !more
		w.grow()
		if !time.Now().Before(deadline) {
			break
		}
	}
	return w.seen, nil
}

func (w *walk) grow() {
	if !w.deep {
		w.chunk = min(w.chunk*4, lastChunk)
	}
}

// rows selects by SQL, newest first, the events above a seq and below the position of the walk.
func (w *walk) rows(above, skip int64, limit int) ([]*hookglass.Event, error) {
	a := &args{}
	query := "SELECT " + listColumns + " FROM " + w.piece(a, max(above, w.log.floor))
	if !w.all {
		conditions, _ := w.v.dialect.where(w.q, a)
		query += conditions
	}
	query += newestFirst + " LIMIT " + a.add(limit)
	if skip > 0 {
		query += " OFFSET " + a.add(skip)
	}
	return queryAll(w.v, w.log.scan, query, a.all()...)
}

// piece returns the FROM clause for the events above a seq and below the position of the walk: one chunk at most,
// unless the query matches all events.
func (w *walk) piece(a *args, above int64) string {
	within := w.v.dialect.within(a, w.log.endpoint.Num, above, w.below)
	if w.all {
		return "events WHERE " + within
	}
	return w.v.dialect.piece(a, within, newestFirst, w.chunk, w.mark)
}

// piece returns the FROM clause for the events selected by within: most at most, in the given order. The query's
// conditions are to be appended.
//
// PostgreSQL's row comparison does not stop at the far bound but at the endpoint's first or last event, so each chunk
// would read the index through to there. The LIMIT stops it. It leaves nothing out, because a View reads one snapshot,
// in which the number of events was counted.
func (d dialect) piece(a *args, within, order string, most int64, mark string) string {
	if d != postgres {
		return "events WHERE " + within
	}
	return "(SELECT * FROM events WHERE " + within + mark + order + " LIMIT " + a.add(most) + ") AS piece WHERE TRUE"
}

// marked returns a condition, with a leading AND, that few events meet and that the query implies: that they have some
// mark. Such events have a partial index, so that a walk can go from one to the next.
func marked(q query.Query) string {
	for _, t := range q.Terms() {
		switch {
		case t.Not:
		case t.Field == query.Tag:
			return " AND tags IS NOT NULL"
		case t.Field == query.Note:
			return " AND note IS NOT NULL"
		case t.Field == query.Ignored:
			return " AND ignored IS NOT NULL"
		}
	}
	return ""
}

// countFrom counts by SQL the matching events from low up to the position of the walk.
func (w *walk) countFrom(low int64) (n int64, err error) {
	a := &args{}
	query := "SELECT count(*) FROM " + w.piece(a, low-1)
	conditions, _ := w.v.dialect.where(w.q, a)
	err = w.v.queryRow("request", query+conditions, a.all(), &n)
	return n, err
}

// nthBelow returns the seq of the n-th event below a seq that meets the mark, and whether older ones may follow. If
// there are fewer, it returns the first seq that the log can have. It reads only the index.
func (v *View) nthBelow(log eventLog, below, n int64, mark string) (seq int64, more bool, err error) {
	a := &args{}
	query := "SELECT seq FROM events WHERE " + v.dialect.within(a, log.endpoint.Num, log.floor, below) + mark + newestFirst + " LIMIT 1 OFFSET " + a.add(n-1)
	found, err := queryAll(v, scanNum, query, a.all()...)
	if err != nil || len(found) == 0 {
		return log.floor + 1, false, err
	}
	return found[0], true, nil
}

// nthAbove returns the seq of the n-th event above a seq that meets the mark, or math.MaxInt64 if there are fewer. It
// reads only the index.
func (v *View) nthAbove(log eventLog, above, n int64, mark string) (seq int64, err error) {
	a := &args{}
	query := "SELECT seq FROM events WHERE " + v.dialect.within(a, log.endpoint.Num, max(above, log.floor), math.MaxInt64) + mark + oldestFirst + " LIMIT 1 OFFSET " + a.add(n-1)
	return v.first(math.MaxInt64, query, a.all()...)
}

// LoadDeliveries fills the states of the events' deliveries to forwarding targets and to local machines, each if the
// query reads them.
func (v *View) LoadDeliveries(events []*hookglass.Event, q query.Query) error {
	if q.ReadsTunnel() {
		if err := v.loadTunneled(events); err != nil {
			return err
		}
	}
	if !q.ReadsForwards() {
		return nil
	}
	index, seqs := bySeq(events)
	for _, e := range events {
		e.Deliveries = nil
	}
	return v.queryEach(func(scan func(...any) error) error {
		var seq int64
		var state hookglass.ForwardState
		err := scan(&seq, &state)
		if err == nil {
			index[seq].Deliveries = append(index[seq].Deliveries, state)
		}
		return err
	}, "SELECT event, state FROM forwards WHERE "+v.dialect.among("event", "$1"), v.dialect.list(seqs))
}

func (v *View) loadTunneled(events []*hookglass.Event) error {
	index, seqs := bySeq(events)
	for _, e := range events {
		e.Tunnel = ""
	}
	return v.queryEach(func(scan func(...any) error) error {
		var seq int64
		var ok sql.NullInt64
		if err := scan(&seq, &ok); err != nil || !ok.Valid {
			return err
		}
		index[seq].Tunnel = hookglass.ForwardFailed
		if ok.Int64 == 1 {
			index[seq].Tunnel = hookglass.ForwardDelivered
		}
		return nil
	}, "SELECT seq, "+answered2xx+" FROM events WHERE "+v.dialect.among("seq", "$1"), v.dialect.list(seqs))
}

// loadParts fills the parts of the events that the query reads.
func (v *View) loadParts(events []*hookglass.Event, q query.Query) error {
	if err := v.LoadDeliveries(events, q); err != nil {
		return err
	}
	headers, body := q.Reads()
	if !headers && !body {
		return nil
	}
	columns := "seq, headers, body, envelope"
	if !body {
		columns = "seq, headers, NULL, NULL"
	}
	index, seqs := bySeq(events)
	for _, e := range events {
		e.Payload = &hookglass.Payload{}
	}
	return v.queryEach(func(scan func(...any) error) error {
		var seq int64
		var wire, body []byte
		var envelope sql.NullString
		err := scan(&seq, &wire, &body, &envelope)
		if err != nil {
			return err
		}
		e := index[seq]
		e.Headers, e.Body = hookglass.ParseWire(wire), body
		e.Envelope, err = decodeEnvelope(envelope.String)
		return err
	}, "SELECT "+columns+" FROM payloads WHERE "+v.dialect.among("seq", "$1"), v.dialect.list(seqs))
}
