package store

import (
	"database/sql"
	"time"

	"hookglass"
)

const schemaColumns = `num, endpoint, provider, event_type, version, observed, events, baseline, accepted_at, drifts, drift_event, summary, first_at, last_at`

func scanSchema(scan func(...any) error) (s hookglass.EventSchema, err error) {
	var baseline, drift sql.NullString
	var accepted sql.NullInt64
	var observed string
	var first, last int64
	err = scan(&s.Num, &s.EndpointNum, &s.Provider, &s.EventType, &s.Version, &observed, &s.Events, &baseline, &accepted, &s.Drifts, &drift, &s.Summary, &first, &last)
	s.EventType, s.Observed, s.DriftEvent, s.AcceptedAt = decodeText(s.EventType), []byte(observed), hookglass.EventID(drift.String), fromMicros(accepted)
	if baseline.Valid {
		s.Baseline = []byte(baseline.String)
	}
	s.FirstAt, s.LastAt = time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC()
	return s, err
}

// EventSchemas lists the schemas of an endpoint by provider and event type. It answers not_found for the endpoint.
func (v *View) EventSchemas(ref string) ([]hookglass.EventSchema, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	return queryAll(v, scanSchema, "SELECT "+schemaColumns+" FROM event_schemas WHERE endpoint = $1 ORDER BY "+v.dialect.byBytes("provider")+", "+v.dialect.byBytes("event_type"), e.Num)
}

// EventSchema returns the schema of an event type, or a zero one if there is none.
func (v *View) EventSchema(endpointNum int64, provider, eventType string) (s hookglass.EventSchema, err error) {
	found, err := queryAll(v, scanSchema, "SELECT "+schemaColumns+" FROM event_schemas WHERE endpoint = $1 AND provider = $2 AND event_type = $3",
		endpointNum, provider, encodeText(eventType))
	if err != nil || len(found) == 0 {
		return hookglass.EventSchema{EndpointNum: endpointNum, Provider: provider, EventType: eventType}, err
	}
	return found[0], nil
}

// SaveEventSchema stores a schema and increments its version. It reports false, and stores nothing, if the schema was
// changed meanwhile or would be one too many for the endpoint.
func (tx *Tx) SaveEventSchema(s *hookglass.EventSchema) (saved bool, err error) {
	baseline := nullString(string(s.Baseline))
	var n int64
	if s.Num == 0 {
		n, err = tx.exec(`INSERT INTO event_schemas (endpoint, provider, event_type, version, observed, events, baseline, accepted_at, drifts, drift_event, summary, first_at, last_at)
			SELECT cast($1 AS bigint), cast($2 AS text), cast($3 AS text), 1, cast($4 AS text), cast($5 AS bigint), cast($6 AS text), cast($7 AS bigint), cast($8 AS bigint), cast($9 AS text), cast($10 AS text), cast($11 AS bigint), cast($12 AS bigint)
			WHERE EXISTS (SELECT 1 FROM endpoint_stats WHERE endpoint = $1) AND (SELECT count(*) FROM event_schemas WHERE endpoint = $1) < cast($13 AS bigint)
			ON CONFLICT (endpoint, provider, event_type) DO NOTHING`,
			s.EndpointNum, s.Provider, encodeText(s.EventType), string(s.Observed), s.Events, baseline, micros(s.AcceptedAt), s.Drifts, nullString(string(s.DriftEvent)), s.Summary,
			s.FirstAt.UnixMicro(), s.LastAt.UnixMicro(), hookglass.MaxEventSchemas)
		return n > 0, err
	}
	n, err = tx.exec(`UPDATE event_schemas SET version = version + 1, observed = $3, events = $4, baseline = $5, accepted_at = $6, drifts = $7, drift_event = $8, summary = $9, first_at = $10, last_at = $11
		WHERE num = $1 AND version = $2`,
		s.Num, s.Version, string(s.Observed), s.Events, baseline, micros(s.AcceptedAt), s.Drifts, nullString(string(s.DriftEvent)), s.Summary, s.FirstAt.UnixMicro(), s.LastAt.UnixMicro())
	return n > 0, err
}

// SchemaDrift describes how an event type departs from its baseline.
type SchemaDrift struct {
	EventType string
	Provider  string
	Drifts    int
	Summary   string
	EventID   hookglass.EventID
}

// SchemaDrifts lists the event types of an endpoint that depart from their baseline, or only the given one.
func (v *View) SchemaDrifts(endpointNum int64, eventType string) ([]SchemaDrift, error) {
	return queryAll(v, func(scan func(...any) error) (d SchemaDrift, err error) {
		var event sql.NullString
		err = scan(&d.Provider, &d.EventType, &d.Drifts, &d.Summary, &event)
		d.EventType, d.EventID = decodeText(d.EventType), hookglass.EventID(event.String)
		return d, err
	}, `SELECT provider, event_type, drifts, summary, drift_event FROM event_schemas
		WHERE endpoint = $1 AND drifts > 0 AND (cast($2 AS text) = '' OR event_type = $2) ORDER BY `+v.dialect.byBytes("provider")+", "+v.dialect.byBytes("event_type"), endpointNum, encodeText(eventType))
}

// DeleteEventSchema deletes a schema with its baseline. It answers not_found.
func (tx *Tx) DeleteEventSchema(num int64) error {
	return tx.change("schema", "DELETE FROM event_schemas WHERE num = $1", num)
}
