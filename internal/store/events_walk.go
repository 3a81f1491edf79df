package store

import (
	"context"
	"math"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/query"
)

// Rows that are looked at in one statement: few at first, because the newest events mostly answer, then more.
// What Go must judge is read in smaller pieces, because its time is looked at between them.
const (
	firstChunk = 2_000
	lastChunk  = 50_000
	deepChunk  = 500
)

// walk reads the events of one endpoint that a query means, from the newest on, piece by piece, and remembers where it
// is.
type walk struct {
	v     *View
	log   eventLog
	q     query.Query
	all   bool   // the query means every event of the log
	deep  bool   // SQL cannot judge it alone
	mark  string // a condition that few events meet, and all that the query means; "": there is none
	below int64  // events with smaller seqs are still to be looked at
	seen  int64  // events that it meant so far, passed over or taken
	ended bool   // nothing is left to be looked at
	chunk int64
}

// walk begins below the given seq.
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

// counted answers how many events the query means where the counters of the endpoint know it.
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

// take passes over the first events that the query means and returns the next, at most limit. Where the deadline
// passes before, it returns what it has, and the walk can go on from there.
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

// pass moves below the newest events, from whichever end is nearer.
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

// filter takes from the events from low on what SQL selects.
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

// judge takes from the events from low on what the query means, reading as much of each as it takes.
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

// count counts what the query means from here on, until the deadline.
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

// rows selects by SQL, newest first, below the place of the walk and above a seq.
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
	return queryAll(w.v, w.log.scan, query, a.values...)
}

// piece is what is selected from: the events above a seq up to the place of the walk. These are a chunk at most, unless
// the query means all events.
func (w *walk) piece(a *args, above int64) string {
	within := w.v.dialect.within(a, w.log.endpoint.Num, above, w.below)
	if w.all {
		return "events WHERE " + within
	}
	return w.v.dialect.piece(a, within, newestFirst, w.chunk, w.mark)
}

// piece is what is selected from: the events that the condition of within means, in their order, which are so many at
// most and of which the query is to be asked.
//
// A scan of PostgreSQL does not end at the far bound, a comparison of rows, but at the first or last event of the
// endpoint: each piece would read the index of all that lie behind it. So the server is told how many there are too,
// which holds because a View reads one state of the database.
func (d dialect) piece(a *args, within, order string, most int64, mark string) string {
	if d != postgres {
		return "events WHERE " + within
	}
	return "(SELECT * FROM events WHERE " + within + mark + order + " LIMIT " + a.add(most) + ") AS piece WHERE TRUE"
}

// marked is a condition, with AND before it, that few events meet and all that the query means: that they have a mark.
// These are in an index of their own, so that a walk goes from one to the next.
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

// countFrom counts by SQL what lies from low up to the place of the walk.
func (w *walk) countFrom(low int64) (n int64, err error) {
	a := &args{}
	query := "SELECT count(*) FROM " + w.piece(a, low-1)
	conditions, _ := w.v.dialect.where(w.q, a)
	err = w.v.queryRow("request", query+conditions, a.values, &n)
	return n, err
}

// nthBelow returns the seq of the n-th event below a seq that meets a condition, and whether older ones may follow it;
// where there are fewer, the first seq that the log can have. It reads the index alone.
func (v *View) nthBelow(log eventLog, below, n int64, mark string) (seq int64, more bool, err error) {
	a := &args{}
	query := "SELECT seq FROM events WHERE " + v.dialect.within(a, log.endpoint.Num, log.floor, below) + mark + newestFirst + " LIMIT 1 OFFSET " + a.add(n-1)
	found, err := queryAll(v, scanNum, query, a.values...)
	if err != nil || len(found) == 0 {
		return log.floor + 1, false, err
	}
	return found[0], true, nil
}

// nthAbove returns the seq of the n-th event above a seq that meets a condition; where there are fewer, a seq above
// all. It reads the index alone.
func (v *View) nthAbove(log eventLog, above, n int64, mark string) (seq int64, err error) {
	a := &args{}
	query := "SELECT seq FROM events WHERE " + v.dialect.within(a, log.endpoint.Num, max(above, log.floor), math.MaxInt64) + mark + oldestFirst + " LIMIT 1 OFFSET " + a.add(n-1)
	found, err := queryAll(v, scanNum, query, a.values...)
	if err != nil || len(found) == 0 {
		return math.MaxInt64, err
	}
	return found[0], nil
}

// LoadDeliveries gives events the states of their deliveries to forwarding targets, where the query judges them.
func (v *View) LoadDeliveries(events []*hookglass.Event, q query.Query) error {
	if !q.ReadsDeliveries() {
		return nil
	}
	index := make(map[int64]*hookglass.Event, len(events))
	seqs := make([]int64, len(events))
	for i, e := range events {
		index[e.Seq], seqs[i], e.Deliveries = e, e.Seq, nil
	}
	_, err := queryAll(v, func(scan func(...any) error) (state hookglass.ForwardState, err error) {
		var seq int64
		if err = scan(&seq, &state); err == nil {
			index[seq].Deliveries = append(index[seq].Deliveries, state)
		}
		return state, err
	}, "SELECT event, state FROM forwards WHERE "+v.dialect.among("event", "$1"), v.dialect.list(seqs))
	return err
}

// loadParts gives events the parts of their payloads that the query judges, and what else it does.
func (v *View) loadParts(events []*hookglass.Event, q query.Query) error {
	if err := v.LoadDeliveries(events, q); err != nil {
		return err
	}
	headers, body := q.Reads()
	if !headers && !body {
		return nil
	}
	columns := "seq, headers, body"
	if !body {
		columns = "seq, headers, NULL"
	}
	index := make(map[int64]*hookglass.Event, len(events))
	seqs := make([]int64, len(events))
	for i, e := range events {
		index[e.Seq], seqs[i] = e, e.Seq
		e.Payload = &hookglass.Payload{}
	}
	rows, err := v.q.QueryContext(v.ctx, "SELECT "+columns+" FROM payloads WHERE "+v.dialect.among("seq", "$1"), v.dialect.list(seqs))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var wire, body []byte
		if err := rows.Scan(&seq, &wire, &body); err != nil {
			return err
		}
		e := index[seq]
		e.Headers, e.Body = hookglass.ParseWire(wire), body
	}
	return rows.Err()
}

// EachBytes bounds the payloads that EachEvent reads at a time, in bytes. One larger payload is read alone.
const EachBytes = 1 << 20

// Holding waits for room to read payloads: bytes of them together, and largest for the largest of them. The caller
// calls give when it no longer holds the payloads.
type Holding func(bytes, largest int64) (give func(), err error)

// EachEvent calls fn with each event of an endpoint that the query means, in the detail form, oldest first, up to the
// newest at the time of the call. It reads a few at a time when hold lets it, and has no transaction open while hold or
// fn runs. It ends with the first error of either, and with not_found when the endpoint is deleted meanwhile.
func (db *DB) EachEvent(ctx context.Context, who hookglass.Principal, ref string, q query.Query, hold Holding, fn func(*hookglass.Event) error) error {
	return eventWalk{db: db, who: who, ref: ref, query: q, hold: hold}.each(ctx, fn)
}

// EachReportedEvent is EachEvent with the delivery reports of each event. It holds the reports of one event at a time,
// because they may have megabytes with the bodies in them. It asks hold for the largest, too.
func (db *DB) EachReportedEvent(ctx context.Context, who hookglass.Principal, ref string, q query.Query, hold Holding, fn func(*hookglass.Event) error) error {
	var reported map[int64]int64
	w := eventWalk{db: db, who: who, ref: ref, query: q}
	w.found = func(v *View, events []*hookglass.Event) (err error) {
		reported, err = v.reported(events)
		return err
	}
	w.hold = func(bytes, largest int64) (give func(), err error) {
		var most int64
		for _, weight := range reported {
			most = max(most, weight)
		}
		return hold(bytes+most, largest+most)
	}
	return w.each(ctx, func(e *hookglass.Event) error {
		if reported[e.Seq] == 0 {
			return fn(e)
		}
		err := db.View(ctx, who, func(v *View) (err error) {
			e.Reports, err = v.Reports(e.Seq, shownReports)
			return err
		})
		if err != nil {
			return err
		}
		err = fn(e)
		e.Reports = nil
		return err
	})
}

// eventWalk goes over the events of an endpoint that a query means, oldest first.
type eventWalk struct {
	db    *DB
	who   hookglass.Principal
	ref   string
	query query.Query
	hold  Holding
	found func(*View, []*hookglass.Event) error // is told of each batch, in the view that found it; nil: nobody is
}

// each is EachEvent.
func (w eventWalk) each(ctx context.Context, fn func(*hookglass.Event) error) error {
	var last int64 // 0: not known yet
	for above, more := int64(0), true; more; {
		var events []*hookglass.Event
		err := w.db.View(ctx, w.who, func(v *View) error {
			log, err := v.eventLog(w.ref)
			if err != nil {
				return err
			}
			if last == 0 {
				if above, last, err = v.span(log, w.query); err != nil {
					return err
				}
			}
			events, above, err = v.next(log, w.query, max(above, log.floor), last)
			more = above < last
			if err != nil || len(events) == 0 || w.found == nil {
				return err
			}
			return w.found(v, events)
		})
		if err == nil && len(events) > 0 {
			err = w.held(ctx, events, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// span is where the events that a query means can be: above one seq, and up to another, or to the newest of now.
func (v *View) span(log eventLog, q query.Query) (above, last int64, err error) {
	newest, err := v.newestSeq(log)
	if err != nil {
		return 0, 0, err
	}
	below := next(newest)
	err = v.bracket(&log, &below, q)
	return log.floor, max(below-1, log.floor), err
}

// held gives events their payloads when hold lets it.
func (w eventWalk) held(ctx context.Context, events []*hookglass.Event, fn func(*hookglass.Event) error) error {
	var bytes, largest int64
	for _, e := range events {
		bytes, largest = bytes+e.Size, max(largest, e.Size)
	}
	give, err := w.hold(bytes, largest)
	if err != nil {
		return err
	}
	defer give()
	err = w.db.View(ctx, w.who, func(v *View) error {
		if err := v.LoadDeliveries(events, w.query); err != nil {
			return err
		}
		return v.loadPayloads(events)
	})
	if err != nil {
		return err
	}
	for i, e := range events {
		events[i] = nil                            // so that what is done with is not held
		if e.Payload == nil || !w.query.Match(e) { // it was deleted meanwhile
			continue
		}
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// next returns a few of the events that SQL selects above a seq and up to another, oldest first and without their
// payloads, and the seq that it came to.
func (v *View) next(log eventLog, q query.Query, above, upTo int64) (events []*hookglass.Event, reached int64, err error) {
	mark := marked(q)
	high, err := v.nthAbove(log, above, firstChunk, mark)
	if err != nil {
		return nil, 0, err
	}
	high = min(high, upTo)
	a := &args{}
	query := "SELECT " + listColumns + " FROM " + v.dialect.piece(a, v.dialect.within(a, log.endpoint.Num, above, high+1), oldestFirst, firstChunk, mark)
	conditions, _ := v.dialect.where(q, a)
	query += conditions + oldestFirst + " LIMIT " + a.add(payloadRows)
	if events, err = queryAll(v, log.scan, query, a.values...); err != nil || len(events) == 0 {
		return nil, high, err
	}
	n := batch(events, EachBytes)
	if n == len(events) && n < payloadRows {
		reached = high
	} else {
		reached = events[n-1].Seq
	}
	return slices.Clip(events[:n]), reached, nil
}
