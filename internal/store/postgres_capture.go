package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hookglass"
)

func (e *postgresEngine) capture(ctx context.Context, c *captureOp) error {
	if len(e.ops) >= sharedOps {
		select {
		case e.crowded <- struct{}{}:
		default:
		}
	}
	return submit(&e.mu, &e.closed, e.ops, &op{ctx: ctx, capture: c, done: make(chan struct{})})
}

func (e *postgresEngine) runCaptures() {
	for first := range e.ops {
		ops := take(e.ops, first, sharedOps)
		if len(ops) > 0 {
			e.group(ops)
		}
	}
	close(e.done)
}

// runCrowd is a second writer, for when more waits than the group on its way can be followed by: its group travels, and
// waits for the lock, while the first commits. With fewer senders it would only make two small groups out of one.
func (e *postgresEngine) runCrowd() {
	for {
		select {
		case <-e.crowded:
		case <-e.done:
			return
		}
		for len(e.ops) >= sharedOps {
			first, open := <-e.ops
			if !open {
				return
			}
			if ops := take(e.ops, first, sharedOps); len(ops) > 0 {
				e.group(ops)
			}
		}
	}
}

func (e *postgresEngine) group(ops []*op) {
	began := time.Now()
	groups := byEndpoint(ops)
	err := e.insert(groups)
	if err != nil && len(ops) > 1 {
		retrySingly(ops, err, func(o *op) error { return e.insert(byEndpoint([]*op{o})) })
	} else if err != nil {
		ops[0].err = err
	}
	settle(e.db, ops, began)
}

// insert commits all captures of the groups in one transaction and one round trip.
func (e *postgresEngine) insert(groups []*endpointGroup) error {
	// Not the context of any one op: the group commits for all of them. The server ends what hangs.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := e.captures.Acquire(ctx)
	if err != nil {
		return unavailable("connect", err)
	}
	defer conn.Release()

	var events []*hookglass.Event
	for _, g := range groups {
		for _, o := range g.ops {
			o.err = nil
			events = append(events, o.capture.event)
		}
	}
	// pgx sends a batch outside a transaction as one implicit transaction: all or nothing.
	return e.sendBatch(ctx, conn.Conn(), groups, events)
}

func (e *postgresEngine) sendBatch(ctx context.Context, conn *pgx.Conn, groups []*endpointGroup, events []*hookglass.Event) (err error) {
	batch := &pgx.Batch{}
	batch.Queue("SELECT pg_advisory_xact_lock($1)", int64(captureLock))
	for _, g := range groups {
		batch.Queue(bumpStats, g.endpoint, int64(len(g.ops)), g.last.UnixMicro())
	}
	statement, args := insertion(events, groups, e.db.Now())
	batch.Queue(statement, args...)
	results := conn.SendBatch(ctx, batch)
	defer func() { err = errors.Join(err, results.Close()) }()
	if _, err := results.Exec(); err != nil {
		return err
	}
	for _, g := range groups {
		tag, err := results.Exec()
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			for _, o := range g.ops {
				o.err = hookglass.NotFound("endpoint")
			}
		}
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	seqs := make(map[string]int64, len(events))
	for rows.Next() {
		var seq int64
		var id string
		if err := rows.Scan(&seq, &id); err != nil {
			return err
		}
		seqs[id] = seq
	}
	for _, ev := range events {
		ev.Seq = seqs[string(ev.ID)]
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return nil
}

// insertion is the statement that stores the events and the work that follows them, and its arguments.
func insertion(events []*hookglass.Event, groups []*endpointGroup, at time.Time) (statement string, args []any) {
	var forwarded, tasked, kinds []string
	for _, g := range groups {
		for _, o := range g.ops {
			id := string(o.capture.event.ID)
			if o.capture.work.Forward {
				forwarded = append(forwarded, id)
			}
			for _, kind := range o.capture.work.Tasks {
				tasked, kinds = append(tasked, id), append(kinds, string(kind))
			}
		}
	}
	statement, args = insertEvents, captureColumns(events)
	if len(forwarded) > 0 {
		statement += fmt.Sprintf(insertForwards, len(args)+1, len(args)+2)
		args = append(args, forwarded, at.UnixMicro())
	}
	if len(tasked) > 0 {
		statement += fmt.Sprintf(insertTasks, len(args)+1, len(args)+2)
		args = append(args, tasked, kinds)
	}
	return statement + " SELECT seq, id FROM stored", args
}

// insertForwards stores a delivery of each event of the ids to each enabled target of its endpoint.
const insertForwards = `, forwarded AS (
		INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, created_at)
		SELECT t.id, t.endpoint, s.seq, 'pending', ` + postgresClock + `, 0, 0, $%[2]d::bigint
		FROM unnest($%[1]d::text[]) AS w (id) JOIN stored s ON s.id = w.id JOIN input i ON i.id = w.id
		JOIN forwarding_targets t ON t.endpoint = i.endpoint AND t.enabled = 1 ORDER BY s.seq, t.id
	)`

// insertTasks stores tasks, each of an event by its id and of a kind.
const insertTasks = `, tasked AS (
		INSERT INTO event_tasks (kind, endpoint, event, due_at, leased, claim, lost)
		SELECT w.kind, i.endpoint, s.seq, ` + postgresClock + `, 0, 0, 0
		FROM unnest($%[1]d::text[], $%[2]d::text[]) AS w (id, kind) JOIN stored s ON s.id = w.id JOIN input i ON i.id = w.id
		ORDER BY s.seq, w.kind
	)`

// insertEvents stores whole columns of events and of their payloads, except those whose endpoint is gone. What follows the
// events is stored by further parts of the same statement.
const insertEvents = `WITH input AS (
		SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[],
			$11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::bigint[], $18::text[], $19::text[], $20::text[],
			$21::text[], $22::text[], $23::bytea[], $24::bytea[], $25::bytea[], $26::text[], $27::bigint[], $28::bytea[], $29::bytea[], $30::text[])
		WITH ORDINALITY AS i (id, endpoint, type, received_at, method, path, raw_query, content_type, ip, size,
			provider, event_type, event_ref, delivery_id, signature_status, signature_reason, status, mail_from, mail_to, subject,
			url, proto, headers, trailers, body, reply_source, reply_delay, reply_headers, reply_body, envelope, n)
		WHERE EXISTS (SELECT FROM endpoint_stats s WHERE s.endpoint = i.endpoint)
	), stored AS (
		INSERT INTO events (id, endpoint, type, received_at, method, path, raw_query, content_type, ip, size,
			provider, event_type, event_ref, delivery_id, signature_status, signature_reason, status, mail_from, mail_to, subject)
		SELECT id, endpoint, type, received_at, method, path, raw_query, nullif(content_type, ''), nullif(ip, ''), size,
			provider, nullif(event_type, ''), nullif(event_ref, ''), nullif(delivery_id, ''), signature_status, nullif(signature_reason, ''),
			nullif(status, 0), nullif(mail_from, ''), nullif(mail_to, ''), nullif(subject, '')
		FROM input ORDER BY n RETURNING seq, id
	), filled AS (
		INSERT INTO payloads (seq, url, proto, headers, trailers, body, reply_status, reply_source, reply_delay, reply_headers, reply_body, envelope)
		SELECT s.seq, i.url, i.proto, i.headers, i.trailers, i.body, nullif(i.status, 0), nullif(i.reply_source, ''),
			CASE WHEN i.reply_source <> '' THEN i.reply_delay END, i.reply_headers, i.reply_body, nullif(i.envelope, '')
		FROM stored s JOIN input i ON i.id = s.id
	)`

// captureColumns turns events into the arrays of insertEvents. They are of the types that the driver encodes without
// looking at each value; what is empty becomes NULL in the statement.
func captureColumns(events []*hookglass.Event) []any {
	type event = *hookglass.Event
	reply := func(e event) hookglass.Reply {
		if e.Reply == nil {
			return hookglass.Reply{}
		}
		return *e.Reply
	}
	return []any{
		column(events, func(e event) string { return string(e.ID) }),
		column(events, func(e event) int64 { return e.EndpointNum }),
		column(events, func(e event) string { return string(e.Type) }),
		column(events, func(e event) int64 { return e.ReceivedAt.UnixMicro() }),
		column(events, func(e event) string { return e.Method }),
		column(events, func(e event) string { return encodeText(e.Path) }),
		column(events, func(e event) string { return encodeText(e.RawQuery) }),
		column(events, func(e event) string { return encodeText(e.ContentType) }),
		column(events, func(e event) string { return e.IP }),
		column(events, func(e event) int64 { return e.Size }),
		column(events, func(e event) string { return e.Provider }),
		column(events, func(e event) string { return encodeText(e.EventType) }),
		column(events, func(e event) string { return encodeText(e.EventRef) }),
		column(events, func(e event) string { return encodeText(e.DeliveryID) }),
		column(events, func(e event) string { return string(e.SignatureStatus) }),
		column(events, func(e event) string { return e.SignatureReason }),
		column(events, func(e event) int64 { return int64(reply(e).Status) }),
		column(events, func(e event) string { return encodeText(e.From) }),
		column(events, func(e event) string { return encodeText(e.To) }),
		column(events, func(e event) string { return encodeText(e.Subject) }),
		column(events, func(e event) string { return encodeText(e.URL) }),
		column(events, func(e event) string { return e.Proto }),
		column(events, func(e event) []byte { return wire(e.Headers) }),
		column(events, func(e event) []byte {
			if len(e.Trailers) == 0 {
				return nil
			}
			return wire(e.Trailers)
		}),
		column(events, func(e event) []byte { return e.Body }),
		column(events, func(e event) string { return string(reply(e).Source) }),
		column(events, func(e event) int64 { return reply(e).Delay.Milliseconds() }),
		column(events, func(e event) []byte {
			if e.Reply == nil {
				return nil
			}
			return wire(e.Reply.Headers)
		}),
		column(events, func(e event) []byte { return reply(e).Body }),
		column(events, func(e event) string { return encodeEnvelope(e.Envelope) }),
	}
}

func column[T any](events []*hookglass.Event, value func(*hookglass.Event) T) []T {
	values := make([]T, len(events))
	for i, e := range events {
		values[i] = value(e)
	}
	return values
}
