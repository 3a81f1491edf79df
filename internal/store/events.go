package store

import (
	"database/sql"
	"fmt"
	"math"
	"time"

	"hookglass"
	"hookglass/internal/query"
)

const listColumns = `seq, id, type, received_at, method, path, raw_query, content_type, ip, size, provider, event_type, event_ref, delivery_id,
	signature_status, signature_reason, status, ignored, tags, note, mail_from, mail_to, subject, spf, dkim, dmarc`

// eventLog locates the events of one endpoint: those with its number and a seq above the floor.
type eventLog struct {
	endpoint       hookglass.Endpoint
	ignored, floor int64
}

// eventLog returns the log of an endpoint that the principal may see. It answers not_found.
func (v *View) eventLog(ref string) (eventLog, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return eventLog{}, err
	}
	return v.eventLogOf(e)
}

func (v *View) eventLogOfNum(endpointNum int64) (eventLog, error) {
	e, err := v.EndpointByNum(endpointNum)
	if err != nil {
		return eventLog{}, err
	}
	return v.eventLogOf(e)
}

func (v *View) eventLogOf(e hookglass.Endpoint) (eventLog, error) {
	log := eventLog{endpoint: e}
	err := v.queryRow("endpoint", "SELECT event_count, ignored_count, floor_seq FROM endpoint_stats WHERE endpoint = $1", []any{e.Num},
		&log.endpoint.EventCount, &log.ignored, &log.floor)
	return log, err
}

// within returns the condition that selects the events of an endpoint with above < seq < below.
func (d dialect) within(a *args, endpointNum, above, below int64) string {
	return d.between(a.add(endpointNum), a.add(above), a.add(below))
}

// between is within for SQL expressions. Use it with oldestFirst, newestFirst or a count.
func (d dialect) between(endpoint, above, below string) string {
	return d.rowsOf("endpoint", "seq", endpoint, above, below)
}

// bounded is within for counting everything between two bounds. PostgreSQL's row comparison would read on to the last
// event of the endpoint instead of stopping at the bound. Without an order and a limit the plain conditions are safe:
// the index on seq is no better for them.
func (d dialect) bounded(a *args, endpointNum, above, below int64) string {
	if below >= maxSeq {
		return d.within(a, endpointNum, above, below)
	}
	return "endpoint = " + a.add(endpointNum) + " AND seq > " + a.add(above) + " AND seq < " + a.add(below)
}

const (
	oldestFirst = " ORDER BY endpoint, seq"
	newestFirst = " ORDER BY endpoint DESC, seq DESC"
)

func (log eventLog) scan(scan func(...any) error) (*hookglass.Event, error) {
	e := &hookglass.Event{EndpointNum: log.endpoint.Num, EndpointID: log.endpoint.ID}
	var received int64
	var contentType, ip, eventType, ref, delivery, reason, ignored, tags, note, from, to, subject, spf, dkim, dmarc sql.NullString
	var status sql.NullInt64
	err := scan(&e.Seq, &e.ID, &e.Type, &received, &e.Method, &e.Path, &e.RawQuery, &contentType, &ip, &e.Size, &e.Provider, &eventType, &ref, &delivery,
		&e.SignatureStatus, &reason, &status, &ignored, &tags, &note, &from, &to, &subject, &spf, &dkim, &dmarc)
	if err != nil {
		return nil, err
	}
	e.ReceivedAt = time.UnixMicro(received).UTC()
	e.Path, e.RawQuery, e.ContentType = decodeText(e.Path), decodeText(e.RawQuery), decodeText(contentType.String)
	e.IP, e.Status = ip.String, int(status.Int64)
	e.EventType, e.EventRef, e.DeliveryID = decodeText(eventType.String), decodeText(ref.String), decodeText(delivery.String)
	e.SignatureReason, e.Ignored, e.Note = reason.String, ignored.String, decodeText(note.String)
	if e.Type == hookglass.EventEmail {
		e.Authentication = hookglass.Authentication{SPF: resultOf(spf), DKIM: resultOf(dkim), DMARC: resultOf(dmarc)}
	}
	e.From, e.To, e.Subject = decodeText(from.String), decodeText(to.String), decodeText(subject.String)
	if e.Tags, err = decodeTags(tags.String); err != nil {
		return nil, fmt.Errorf("tags of %s: %w", e.ID, err)
	}
	return e, nil
}

// Event returns an event in the detail form. It answers not_found.
func (v *View) Event(ref, id string) (*hookglass.Event, error) {
	eventID, err := hookglass.ParseEventID(id)
	if err != nil {
		return nil, v.orEndpoint(ref, err)
	}
	a := &args{}
	named, ok := v.endpointNamed(a, ref)
	if !ok {
		return nil, hookglass.NotFound("endpoint")
	}
	most := int64(math.MaxInt64)
	if v.sparing != nil {
		most = v.sparing.most - v.sparing.bytes
	}
	// One statement, whose plan the server caches. A second one for the payload, with its seq as a literal, would be
	// planned anew each time. "+ 0" keeps the index on the endpoint out, which may have any number of events.
	found, err := queryAll(v, func(scan func(...any) error) (*hookglass.Event, error) {
		var of hookglass.Endpoint
		var p payloadRow
		e, err := eventLog{}.scan(func(dest ...any) error {
			return scan(append(append(dest, &of.Num, &of.ID), p.dest()...)...)
		})
		if err != nil {
			return nil, err
		}
		e.EndpointNum, e.EndpointID = of.Num, of.ID
		return e, p.fill(e)
	}, "SELECT "+listColumns+", o.num, o.endpoint_id, "+payloadColumns+" FROM (SELECT e.num, e.id AS endpoint_id, s.floor_seq"+endpointTables+" WHERE "+named+`) o
		JOIN events ON endpoint + 0 = o.num JOIN payloads USING (seq)
		WHERE id = `+a.add(string(eventID))+" AND seq + 0 > o.floor_seq AND size <= "+a.add(most), a.all()...)
	if err != nil {
		return nil, err
	}
	switch {
	case len(found) == 1:
		v.spare(found[0].Size)
		return found[0], nil
	case v.sparing == nil:
		return nil, v.orEndpoint(ref, hookglass.NotFound("request"))
	}
	e, err := v.ListedEvent(ref, id) // it may be too large
	if err == nil {
		v.spare(e.Size)
	}
	return e, err
}

// orEndpoint returns the error for a missing event, or not_found if already its endpoint is missing.
func (v *View) orEndpoint(ref string, missing error) error {
	if _, err := v.Endpoint(ref); err != nil {
		return err
	}
	return missing
}

// ListedEvent is Event in the list form. It answers not_found.
func (v *View) ListedEvent(ref, id string) (*hookglass.Event, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	eventID, err := hookglass.ParseEventID(id)
	if err != nil {
		return nil, err
	}
	return v.listedEventOf(e, eventID)
}

func (v *View) listedEventOf(endpoint hookglass.Endpoint, id hookglass.EventID) (*hookglass.Event, error) {
	return one(v, "request", eventLog{endpoint: endpoint}.scan, "SELECT "+listColumns+` FROM events
		WHERE id = $1 AND endpoint + 0 = $2 AND seq + 0 > (SELECT floor_seq FROM endpoint_stats WHERE endpoint = $2)`, &args{[]any{string(id), endpoint.Num}})
}

// EventSize returns the size of an event in bytes, for a caller that is about to load it, or 0 if it does not exist. It
// does not check the principal, so the result must not be shown.
func (v *View) EventSize(id string) (size int64, err error) {
	eventID, err := hookglass.ParseEventID(id)
	if err != nil {
		return 0, err
	}
	if err = v.queryRow("request", "SELECT size FROM events WHERE id = $1", []any{string(eventID)}, &size); hookglass.Is(err, hookglass.CodeNotFound) {
		err = nil
	}
	return size, err
}

// EventHeaders returns the headers of an event alone. It answers not_found.
func (v *View) EventHeaders(id hookglass.EventID) (hookglass.Headers, error) {
	var headers []byte
	err := v.queryRow("request", "SELECT headers FROM events JOIN payloads USING (seq) WHERE id = $1", []any{string(id)}, &headers)
	return hookglass.ParseWire(headers), err
}

// eventIn returns an event of an endpoint in list form, with the endpoint's log; lock is as for event. It answers
// not_found.
func (v *View) eventIn(ref, id, lock string) (log eventLog, e *hookglass.Event, err error) {
	if log, err = v.eventLog(ref); err != nil {
		return log, nil, err
	}
	e, err = v.event(log, id, lock)
	return log, e, err
}

// event returns an event of the log in list form; lock is appended to the statement.
func (v *View) event(log eventLog, id, lock string) (*hookglass.Event, error) {
	eventID, err := hookglass.ParseEventID(id)
	if err != nil {
		return nil, err
	}
	return log.scan(func(dest ...any) error {
		return v.queryRow("request", "SELECT "+listColumns+" FROM events WHERE id = $1 AND endpoint + 0 = $2 AND seq + 0 > $3"+lock,
			[]any{string(eventID), log.endpoint.Num, log.floor}, dest...)
	})
}

// NewestSeq returns the Seq of an endpoint's newest event, or 0. A stream begins after it.
func (v *View) NewestSeq(ref string) (int64, error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return 0, err
	}
	return v.newestSeq(log)
}

func (v *View) newestSeq(log eventLog) (int64, error) {
	a := &args{}
	return v.first(0, "SELECT seq FROM events WHERE "+v.dialect.within(a, log.endpoint.Num, log.floor, math.MaxInt64)+newestFirst+" LIMIT 1", a.all()...)
}

// EventsAfter returns events captured after the given Seq in list form, oldest first, limit at most, ignored ones
// included. No event ever appears before one that was returned, so a stream can continue after the last Seq on any
// node.
func (v *View) EventsAfter(ref string, seq int64, limit int) ([]*hookglass.Event, error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return nil, err
	}
	return v.eventsOf(log, seq, math.MaxInt64, oldestFirst, limit)
}

// eventsOf returns the events of a log with above < seq < below in list form, limit at most. order is oldestFirst or
// newestFirst.
func (v *View) eventsOf(log eventLog, above, below int64, order string, limit int) ([]*hookglass.Event, error) {
	a := &args{}
	query := "SELECT " + listColumns + " FROM events WHERE " + v.dialect.within(a, log.endpoint.Num, max(above, log.floor), below) + order + " LIMIT " + a.add(limit)
	return queryAll(v, log.scan, query, a.all()...)
}

// MoreAfter reports whether more than n events were captured after the given Seq.
func (v *View) MoreAfter(ref string, seq int64, n int) (bool, error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return false, err
	}
	a := &args{}
	query := "SELECT seq FROM events WHERE " + v.dialect.within(a, log.endpoint.Num, max(seq, log.floor), math.MaxInt64) + oldestFirst + " LIMIT 1 OFFSET " + a.add(n)
	return v.finds(query, a.all()...)
}

// How long one request may read when no index answers it.
const (
	searchBudget = 2 * time.Second        // for a page
	countBudget  = 500 * time.Millisecond // for its total, in addition
)

// EventList says which page of an endpoint's events is wanted.
type EventList struct {
	Query  query.Query
	Limit  int
	Offset int64 // how many of the newest to skip
	Before int64 // only events with a smaller Seq, from EventPage.Next; 0: from the newest
	Total  bool  // whether to count Total

	Patience time.Duration // how long a filter may read until the page is full; 0: two seconds
}

// EventPage is a page of events in the list form, newest first.
type EventPage struct {
	Events []*hookglass.Event
	// Next is the Before of the next page, or 0 at the end. A page that ran out of time is short but has a next one.
	Next int64
	// Total is how many events match the query, on all pages. If counting ran out of time, it is the number counted so
	// far.
	Total int64
	Exact bool // Total is complete
}

// Events returns a page of an endpoint's events. It answers not_found.
//
// Without a filter, pages by cursor all cost the same. With a filter it reads from the newest event until the page is
// full, for two seconds or list.Patience at most.
func (v *View) Events(ref string, list EventList) (EventPage, error) {
	patience := searchBudget
	if list.Patience > 0 {
		patience = list.Patience
	}
	return v.events(ref, list, patience, countBudget)
}

func (v *View) events(ref string, list EventList, searching, counting time.Duration) (EventPage, error) {
	log, err := v.eventLog(ref)
	if err != nil {
		return EventPage{}, err
	}
	below := int64(math.MaxInt64)
	if list.Before > 0 {
		below = list.Before
	}
	narrow, top := log, int64(math.MaxInt64)
	if err := v.bracket(&narrow, &top, list.Query); err != nil {
		return EventPage{}, err
	}
	w := v.walk(narrow, list.Query, min(below, top))
	events, err := w.take(list.Offset, list.Limit+1, time.Now().Add(searching))
	if err != nil {
		return EventPage{}, err
	}
	page := EventPage{Events: events}
	if len(events) > list.Limit {
		page.Events = events[:list.Limit]
		page.Next = page.Events[list.Limit-1].Seq
	} else if !w.ended {
		page.Next = w.below
	}
	if !list.Total {
		return page, nil
	}
	if total, known := w.counted(); known {
		page.Total, page.Exact = total, true
		return page, nil
	}
	if w.ended && list.Before <= 0 {
		page.Total, page.Exact = w.seen, true
		return page, nil
	}
	c := v.walk(narrow, list.Query, top)
	page.Total, err = c.count(time.Now().Add(counting))
	page.Total, page.Exact = max(page.Total, w.seen), c.ended
	return page, err
}

// payloadBytes bounds the payloads that are read at once, except that one payload may be larger.
const payloadBytes = 4 << 20

// payloadRows bounds how many payloads are read at once.
const payloadRows = 64

// batch returns how many of the first events to load payloads for at once: most bytes in total, but at least one event.
func batch(events []*hookglass.Event, most int64) int {
	var bytes int64
	for i, e := range events {
		if bytes += e.Size; i == payloadRows || i > 0 && bytes > most {
			return i
		}
	}
	return len(events)
}

// bySeq returns the events by their seqs, and these.
func bySeq(events []*hookglass.Event) (index map[int64]*hookglass.Event, seqs []int64) {
	index, seqs = make(map[int64]*hookglass.Event, len(events)), make([]int64, len(events))
	for i, e := range events {
		index[e.Seq], seqs[i] = e, e.Seq
	}
	return index, seqs
}

// loadPayloads fills the payloads of events in list form.
func (v *View) loadPayloads(events []*hookglass.Event) error {
	var bytes int64
	for _, e := range events {
		bytes += e.Size
	}
	if v.spare(bytes) {
		return nil
	}
	index, seqs := bySeq(events)
	return v.queryEach(func(scan func(...any) error) error {
		var seq int64
		var p payloadRow
		if err := scan(append([]any{&seq}, p.dest()...)...); err != nil {
			return err
		}
		return p.fill(index[seq])
	}, "SELECT seq, "+payloadColumns+" FROM payloads WHERE "+v.dialect.among("seq", "$1"), v.dialect.list(seqs))
}

// LoadPayloads fills the payloads of events in list form, in batches.
func (v *View) LoadPayloads(events []*hookglass.Event) error {
	for len(events) > 0 {
		n := batch(events, payloadBytes)
		if err := v.loadPayloads(events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

const payloadColumns = `url, proto, headers, trailers, body, reply_status, reply_source, reply_delay, reply_headers, reply_body, reply_rule, envelope,
	(SELECT verdict FROM mail_verdicts WHERE event = seq)`

// payloadRow receives a row of payloadColumns.
type payloadRow struct {
	url, proto                      string
	headers, trailers, replyHeaders sql.RawBytes
	payload                         hookglass.Payload
	reply                           hookglass.Reply
	status, delay                   sql.NullInt64
	source, rule, envelope          sql.NullString
}

func (r *payloadRow) dest() []any {
	return []any{&r.url, &r.proto, &r.headers, &r.trailers, &r.payload.Body, &r.status, &r.source, &r.delay, &r.replyHeaders, &r.reply.Body, &r.rule, &r.envelope, &r.payload.Verdict}
}

// fill copies the scanned row to the event. It must be called before the next row is scanned.
func (r *payloadRow) fill(e *hookglass.Event) (err error) {
	p, reply := r.payload, r.reply // copies: the driver reuses the RawBytes
	p.Headers = hookglass.ParseWire(r.headers)
	if len(r.trailers) > 0 {
		p.Trailers = hookglass.ParseWire(r.trailers)
	}
	if r.source.Valid { // the status is NULL if no answer was given
		reply.Status, reply.Source, reply.Delay = int(r.status.Int64), hookglass.ResponseSource(r.source.String), time.Duration(r.delay.Int64)*time.Millisecond
		reply.Headers = hookglass.ParseWire(r.replyHeaders)
		if reply.Rule, err = decodeReplyRule(r.rule.String); err != nil {
			return fmt.Errorf("reply_rule of %s: %w", e.ID, err)
		}
		p.Reply = &reply
	}
	if p.Envelope, err = decodeEnvelope(r.envelope.String); err != nil {
		return fmt.Errorf("envelope of %s: %w", e.ID, err)
	}
	e.URL, e.Proto, e.Payload = decodeText(r.url), r.proto, &p
	return nil
}
