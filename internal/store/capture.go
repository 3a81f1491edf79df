package store

import (
	"context"
	"strconv"
	"strings"

	"hookglass"
)

// Work is what is to be done about a captured event. It is stored in the transaction of the event.
type Work struct {
	Forward bool    // to each enabled target of the endpoint,
	But     []int64 // except for these: ids, sorted
	Keys    []TargetKey
	Tasks   []TaskKind // one of each
}

// TargetKey is the key of an event at a forwarding target that gets a webhook only once, see [hookglass.Dedupe].
type TargetKey struct {
	TargetID int64
	Key      hookglass.DeliveryKey
}

// keyAt returns the key at a target, or nil.
func (w *Work) keyAt(target int64) []byte {
	for i := range w.Keys {
		if w.Keys[i].TargetID == target {
			return w.Keys[i].Key[:]
		}
	}
	return nil
}

// captureOp is one event on its way into the database.
type captureOp struct {
	event   *hookglass.Event
	account int64
	work    Work

	forwards offered[HandedForward]
	tasks    []offered[Task] // for each of work.Tasks; nil: none
}

// Capture stores the event with its payload, durably, and sets its Seq. The order of Seqs is the order of capture on
// one node, and a reader never sees an event before one with a smaller Seq.
//
// It answers not_found if the endpoint was deleted meanwhile, and unavailable if the storage cannot take the event now.
// If the context ends first, the answer is unavailable too, but the event may, rarely, be stored all the same: the
// sender will retry, and a duplicate is better than a loss.
func (db *DB) Capture(ctx context.Context, account int64, event *hookglass.Event) error {
	return db.CaptureWith(ctx, account, event, Work{})
}

// CaptureWith is Capture that also stores the work that follows from the event.
func (db *DB) CaptureWith(ctx context.Context, account int64, event *hookglass.Event, work Work) error {
	return classify(db.engine.capture(ctx, &captureOp{event: event, account: account, work: work}))
}

// The statements of the hot path. bumpStats also tells whether the endpoint still exists: deleting an endpoint deletes
// this row first.
const (
	bumpStats = `UPDATE endpoint_stats SET event_count = event_count + cast($2 AS bigint),
		last_event_at = CASE WHEN last_event_at > cast($3 AS bigint) THEN last_event_at ELSE cast($3 AS bigint) END
		WHERE endpoint = $1`

	insertEvent = `INSERT INTO events (seq, id, endpoint, type, received_at, method, path, raw_query, content_type, ip, size,
		provider, event_type, event_ref, delivery_id, signature_status, signature_reason, status, mail_from, mail_to, subject) VALUES`
	eventCols = 21

	insertPayload = `INSERT INTO payloads (seq, url, proto, headers, trailers, body, reply_status, reply_source, reply_delay, reply_headers, reply_body, reply_rule, envelope) VALUES`
	payloadCols   = 13
)

// appendEventArgs appends the columns of insertEvent.
func appendEventArgs(values []any, e *hookglass.Event) []any {
	var status any
	if answeredStatus(e) {
		status = e.Reply.Status
	}
	return append(values,
		e.Seq, string(e.ID), e.EndpointNum, string(e.Type), e.ReceivedAt.UnixMicro(), e.Method, encodeText(e.Path), encodeText(e.RawQuery),
		nullString(encodeText(e.ContentType)), nullString(e.IP), e.Size,
		e.Provider, nullString(encodeText(e.EventType)), nullString(encodeText(e.EventRef)), nullString(encodeText(e.DeliveryID)),
		string(e.SignatureStatus), nullString(e.SignatureReason), status,
		nullString(encodeText(e.From)), nullString(encodeText(e.To)), nullString(encodeText(e.Subject)))
}

// answeredStatus reports whether the status of the answer is stored with an event. It is not for a mail that no script
// answered. A mail whose sender got no answer has status 0, so that the ledger can tell the two apart.
func answeredStatus(e *hookglass.Event) bool {
	return e.Payload != nil && e.Reply != nil && (e.Type == hookglass.EventEmail || !e.Reply.Unanswered())
}

// appendPayloadArgs appends the columns of insertPayload.
func appendPayloadArgs(values []any, e *hookglass.Event) []any {
	p := e.Payload
	values = append(values, e.Seq, encodeText(e.URL), e.Proto, wire(p.Headers))
	if len(p.Trailers) > 0 {
		values = append(values, wire(p.Trailers))
	} else {
		values = append(values, nil)
	}
	values = append(values, p.Body)
	if r := p.Reply; r != nil {
		values = append(values, r.Status, string(r.Source), r.Delay.Milliseconds(), wire(r.Headers), r.Body, nullString(encodeReplyRule(r.Rule)))
	} else {
		values = append(values, nil, nil, nil, nil, nil, nil)
	}
	return append(values, nullString(encodeEnvelope(p.Envelope)))
}

// encodeReplyRule encodes a rule as a column: its index, a space and its condition.
func encodeReplyRule(r *hookglass.ReplyRule) string {
	if r == nil {
		return ""
	}
	return strconv.Itoa(r.Index) + " " + encodeText(r.When)
}

func decodeReplyRule(column string) (*hookglass.ReplyRule, error) {
	if column == "" {
		return nil, nil
	}
	index, when, _ := strings.Cut(column, " ")
	n, err := strconv.Atoi(index)
	return &hookglass.ReplyRule{Index: n, When: decodeText(when)}, err
}

// wire encodes headers as a column. It is never NULL.
func wire(h hookglass.Headers) []byte {
	size := 0
	for i := range h {
		size += len(h[i].Name) + len(h[i].Value) + len(": \r\n")
	}
	return h.AppendWire(make([]byte, 0, size))
}
