package store

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"hookglass"
)

const maxSeq = math.MaxInt64

// keptReports bounds the reports kept of one event; the oldest are deleted. The event's delivery state is kept
// elsewhere.
const keptReports = 100

// RecordReport stores a report about an event and sets its Num and EventSeq. If the event already has a report with the
// same attempt id, it returns that one and changes nothing. It answers not_found, and conflict if the attempt id
// belongs to another event.
func (tx *Tx) RecordReport(ref, eventID string, r *hookglass.DeliveryReport) (*hookglass.DeliveryReport, error) {
	// The event is locked, so that a concurrent deletion either removes the report too or prevents it.
	log, e, err := tx.eventIn(ref, eventID, tx.dialect.forUpdate())
	if err != nil {
		return nil, err
	}
	r.EndpointNum, r.EventSeq, r.EventID, r.At = log.endpoint.Num, e.Seq, e.ID, tx.Now
	stored := *r
	stored.Evidence = evidence(r.Evidence, encodeText)
	record, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	err = tx.queryRow("report", `INSERT INTO tunnel_reports (endpoint, event, attempt_id, version, status, reported_at, record) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (endpoint, attempt_id) DO NOTHING RETURNING num`,
		[]any{r.EndpointNum, r.EventSeq, nullString(r.AttemptID), r.Version, r.StatusCode, tx.Now.UnixMicro(), record}, &r.Num)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		before, err := one(&tx.View, "report", scanReport, "SELECT num, record FROM tunnel_reports WHERE endpoint = $1 AND attempt_id = $2", &args{[]any{r.EndpointNum, r.AttemptID}})
		if err == nil && before.EventSeq != r.EventSeq {
			return nil, hookglass.Errorf(hookglass.CodeConflict, "This delivery_attempt_id belongs to a report about another request.")
		}
		return before, err
	}
	if err != nil {
		return nil, err
	}
	tx.Announce(TopicTunnel(r.EndpointNum))
	return r, tx.countReport(r)
}

// countReport records what a stored report says of its event, and deletes the oldest report of too many.
func (tx *Tx) countReport(r *hookglass.DeliveryReport) error {
	outcome := hookglass.Outcome{
		EndpointNum: r.EndpointNum, EventSeq: r.EventSeq, Source: hookglass.OutcomeTunnel, At: tx.Now, Took: r.ResponseTime, StatusCode: r.StatusCode, Final: hookglass.OutcomeFailed,
	}
	var delivered any
	if r.Delivered() {
		outcome.Final, delivered = hookglass.OutcomeDelivered, tx.Now.UnixMicro()
	}
	var reports int64
	err := tx.queryRow("report", `INSERT INTO tunnel_events (event, endpoint, reported_at, delivered_at, reports) VALUES ($1, $2, $3, $4, 1)
		ON CONFLICT (event) DO UPDATE SET delivered_at = coalesce(tunnel_events.delivered_at, excluded.delivered_at), reports = tunnel_events.reports + 1 RETURNING reports`,
		[]any{r.EventSeq, r.EndpointNum, tx.Now.UnixMicro(), delivered}, &reports)
	if err != nil {
		return err
	}
	if err := tx.AddOutcomes(outcome); err != nil {
		return err
	}
	if reports > keptReports {
		_, err = tx.exec("DELETE FROM tunnel_reports WHERE num = (SELECT min(num) FROM tunnel_reports WHERE event = $1)", r.EventSeq)
	}
	if reports > 1 || !r.Delivered() { // lists show whether the newest failed
		tx.Announce(TopicEvents(r.EndpointNum))
	}
	return err
}

// evidence returns a copy with header values passed through change: the record is JSON, which cannot hold arbitrary
// bytes.
func evidence(e *hookglass.DeliveryEvidence, change func(string) string) *hookglass.DeliveryEvidence {
	if e == nil {
		return nil
	}
	changed := *e
	changed.Headers = values(e.Headers, change)
	return &changed
}

func scanReport(scan func(...any) error) (*hookglass.DeliveryReport, error) {
	var num int64
	var record []byte
	if err := scan(&num, &record); err != nil {
		return nil, err
	}
	r := new(hookglass.DeliveryReport)
	if err := json.Unmarshal(record, r); err != nil {
		return nil, fmt.Errorf("delivery report %d: %w", num, err)
	}
	r.Num, r.Evidence = num, evidence(r.Evidence, decodeText)
	return r, nil
}

// Reports lists the reports of an event, newest first.
func (v *View) Reports(eventSeq int64, limit int) ([]*hookglass.DeliveryReport, error) {
	a := &args{}
	query := "SELECT num, record FROM tunnel_reports WHERE " + v.dialect.newestOf(a, "event", eventSeq, "num", 0, limit)
	return queryAll(v, scanReport, query, a.all()...)
}

// ReportsSize estimates how many bytes must be loaded to show the reports of an event.
func (v *View) ReportsSize(eventSeq int64) (int64, error) {
	weights, err := v.reported([]*hookglass.Event{{Seq: eventSeq}})
	return weights[eventSeq], err
}

// shownReports bounds the reports that are shown with an event.
const shownReports = 50

// ReportedEvent is Event with its reports.
func (v *View) ReportedEvent(ref, id string) (*hookglass.Event, error) {
	e, err := v.Event(ref, id)
	if err != nil {
		return nil, err
	}
	weights, err := v.reported([]*hookglass.Event{e})
	if err != nil || weights[e.Seq] == 0 {
		return e, err
	}
	if v.spare(weights[e.Seq]) {
		e.Payload = nil
		return e, nil
	}
	e.Reports, err = v.Reports(e.Seq, shownReports)
	return e, err
}

// reported returns the events that have reports, and about how many bytes must be loaded to show these.
func (v *View) reported(events []*hookglass.Event) (map[int64]int64, error) {
	_, seqs := bySeq(events)
	type reports struct{ event, count, bytes int64 }
	found, err := queryAll(v, func(scan func(...any) error) (r reports, err error) {
		err = scan(&r.event, &r.count, &r.bytes)
		return r, err
	}, "SELECT event, COUNT(*), CAST(SUM(LENGTH(record)) AS bigint) FROM tunnel_reports WHERE "+v.dialect.among("event", "$1")+" GROUP BY event", v.dialect.list(seqs))
	weights := make(map[int64]int64, len(found))
	for _, r := range found {
		weights[r.event] = max(1, r.bytes*min(r.count, shownReports)/r.count)
	}
	return weights, err
}

// FirstAnswer returns the first report of version 2 about an event. It answers not_found.
func (v *View) FirstAnswer(eventSeq int64) (*hookglass.DeliveryReport, error) {
	a := &args{}
	return one(v, "report", scanReport, "SELECT num, record FROM tunnel_reports WHERE version = 2 AND "+v.dialect.oldestOf(a, "event", eventSeq, "num", 0, 1), a)
}

// HasTunnel reports whether a session is subscribed to an endpoint.
func (v *View) HasTunnel(endpointNum int64) (bool, error) {
	return v.finds("SELECT num FROM tunnel_subscriptions WHERE endpoint = $1 LIMIT 1", endpointNum)
}

// Keeps reports whether a stored event still exists.
func (v *View) Keeps(e *hookglass.Event) (bool, error) {
	return v.finds("SELECT seq FROM events WHERE seq = $1 AND seq > (SELECT s.floor_seq FROM endpoint_stats s WHERE s.endpoint = events.endpoint)", e.Seq)
}

// SetReply records what the sender of an event was really answered. It is no error if the event was deleted meanwhile.
func (tx *Tx) SetReply(e *hookglass.Event, r *hookglass.Reply) error {
	before, err := queryAll(&tx.View, scanFigured, "SELECT "+figureColumns+" FROM events WHERE seq = $1"+tx.dialect.forUpdate(), e.Seq)
	if err != nil || len(before) == 0 {
		return err
	}
	if _, err := tx.exec("UPDATE events SET status = $2 WHERE seq = $1", e.Seq, r.Status); err != nil {
		return err
	}
	tx.Announce(TopicEvents(e.EndpointNum))
	after := *before[0]
	if after.Status = r.Status; after.Status != before[0].Status {
		if err := tx.recount(changed{before[0], &after}); err != nil {
			return err
		}
	}
	_, err = tx.exec("UPDATE payloads SET reply_status = $2, reply_source = $3, reply_delay = $4, reply_headers = $5, reply_body = $6, reply_rule = $7 WHERE seq = $1",
		e.Seq, r.Status, string(r.Source), r.Delay.Milliseconds(), wire(r.Headers), r.Body, nullString(encodeReplyRule(r.Rule)))
	return err
}

// Undelivered selects events that no report says were delivered.
type Undelivered struct {
	Since time.Time      // received at or after this; zero: no bound
	Gap   *hookglass.Gap // of this gap only; nil: any
	After int64          // with a greater Seq
	Limit int
}

// UndeliveredEvents lists them in list form, oldest first; more reports whether others follow. It answers not_found.
func (v *View) UndeliveredEvents(endpointNum int64, u Undelivered) (events []*hookglass.Event, more bool, err error) {
	log, err := v.eventLogOfNum(endpointNum)
	if err != nil {
		return nil, false, err
	}
	a := &args{}
	query, err := v.undelivered(a, log, u, listColumns)
	if err != nil {
		return nil, false, err
	}
	if events, err = queryAll(v, log.scan, query+oldestFirst+" LIMIT "+a.add(u.Limit+1), a.all()...); err != nil {
		return nil, false, err
	}
	n := min(len(events), u.Limit)
	return events[:n], n < len(events), nil
}

// CountUndelivered counts them, and all events in the same bounds. It answers not_found.
func (v *View) CountUndelivered(endpointNum int64, since time.Time) (undelivered, all int64, err error) {
	log, err := v.eventLogOfNum(endpointNum)
	if err != nil {
		return 0, 0, err
	}
	a := &args{}
	query, err := v.undelivered(a, log, Undelivered{Since: since}, "count(*)")
	if err != nil {
		return 0, 0, err
	}
	if err := v.queryRow("request", query, a.all(), &undelivered); err != nil {
		return 0, 0, err
	}
	above, err := v.seqBefore(log, since)
	if err != nil {
		return 0, 0, err
	}
	a = &args{}
	err = v.queryRow("request", "SELECT count(*) FROM events WHERE "+v.dialect.within(a, log.endpoint.Num, above, maxSeq)+" AND received_at >= "+a.add(since.UnixMicro()), a.all(), &all)
	return undelivered, all, err
}

// undelivered returns the query for columns of the undelivered events of a log.
func (v *View) undelivered(a *args, log eventLog, u Undelivered, columns string) (string, error) {
	above, below := max(log.floor, u.After), int64(maxSeq)
	if g := u.Gap; g != nil {
		above = max(above, g.From)
		if g.To > 0 {
			below = next(g.To)
		}
	}
	if !u.Since.IsZero() {
		from, err := v.seqBefore(log, u.Since)
		if err != nil {
			return "", err
		}
		above = max(above, from)
	}
	query := "SELECT " + columns + " FROM events WHERE " + v.dialect.within(a, log.endpoint.Num, above, below)
	missing := "t.delivered_at IS NOT NULL"
	if u.Gap != nil {
		missing = "(" + missing + " OR t.reported_at <= " + a.add(u.Gap.DetectedAt.UnixMicro()) + ")"
	}
	// A subquery that looks up the report of each event: for NOT EXISTS PostgreSQL may read all reports, even once per
	// event.
	query += " AND (SELECT 1 FROM tunnel_events t WHERE t.event = events.seq AND " + missing + " LIMIT 1) IS NULL"
	if !u.Since.IsZero() {
		query += " AND received_at >= " + a.add(u.Since.UnixMicro())
	}
	return query, nil
}

// seqBefore returns a seq after which all events of a log since a time are.
func (v *View) seqBefore(log eventLog, since time.Time) (int64, error) {
	if since.IsZero() || log.endpoint.EventCount < bracketFrom {
		return log.floor, nil
	}
	newest, err := v.newestSeq(log)
	if err != nil {
		return 0, err
	}
	return v.seqAt(log, since.Add(-clockError).UnixMicro(), newest)
}
