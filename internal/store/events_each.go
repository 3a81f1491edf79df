package store

import (
	"context"
	"slices"

	"hookglass"
	"hookglass/internal/query"
)

// EachBytes bounds the payloads that EachEvent reads at a time, in bytes. One larger payload is read alone.
const EachBytes = 1 << 20

// Holding waits for room to load payloads of the given total size, the largest of which has the given size. The caller
// calls give when it no longer holds them.
type Holding func(bytes, largest int64) (give func(), err error)

// EachEvent calls fn with each event of an endpoint that matches the query, in detail form, oldest first, up to the
// newest at the time of the call. It loads a few at a time, once hold permits, and has no transaction open while hold
// or fn runs. It ends with the first error of either, or with not_found if the endpoint is deleted meanwhile.
func (db *DB) EachEvent(ctx context.Context, who hookglass.Principal, ref string, q query.Query, hold Holding, fn func(*hookglass.Event) error) error {
	return eventWalk{db: db, who: who, ref: ref, query: q, hold: hold}.each(ctx, fn)
}

// EachReportedEvent is EachEvent with the delivery reports of each event. It loads the reports of one event at a time,
// because their bodies can take megabytes, and includes the largest in what it asks of hold.
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

// eventWalk visits the events of an endpoint that match a query, oldest first.
type eventWalk struct {
	db    *DB
	who   hookglass.Principal
	ref   string
	query query.Query
	hold  Holding
	found func(*View, []*hookglass.Event) error // called with each batch, in the view that found it; may be nil
}

// each implements EachEvent.
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

// span returns bounds of the events that can match the query: above one seq, up to another, which is at most the
// newest.
func (v *View) span(log eventLog, q query.Query) (above, last int64, err error) {
	newest, err := v.newestSeq(log)
	if err != nil {
		return 0, 0, err
	}
	below := next(newest)
	err = v.bracket(&log, &below, q)
	return log.floor, max(below-1, log.floor), err
}

// held loads the payloads of a batch once hold permits, and calls fn with each event.
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
		events[i] = nil                            // lets go of those that are done
		if e.Payload == nil || !w.query.Match(e) { // deleted meanwhile, or SQL selected too much
			continue
		}
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// next returns a batch of the events that SQL selects above a seq and up to another, oldest first and without payloads,
// and the seq up to which it has read.
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
	if events, err = queryAll(v, log.scan, query, a.all()...); err != nil || len(events) == 0 {
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
