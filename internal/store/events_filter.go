package store

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/query"
)

// where returns the query's conditions on the events table, each with a leading AND, and whether they cover the whole
// query. If not, they select a superset, and query.Match decides.
func (d dialect) where(q query.Query, a *args) (conditions string, whole bool) {
	var b strings.Builder
	whole = true
	for _, t := range q.Terms() {
		given := len(a.values)
		condition, exact := d.condition(t, a)
		whole = whole && exact
		if condition == "" || t.Not && !exact {
			a.values = a.values[:given] // PostgreSQL refuses values that no condition names
			continue
		}
		if t.Not {
			condition = "NOT coalesce(" + condition + ", FALSE)"
		}
		b.WriteString(" AND " + condition)
	}
	return b.String(), whole
}

// columns maps the fields that are text columns of the events table.
var columns = map[query.Field]string{
	query.Kind: "type", query.Provider: "provider", query.EventType: "event_type", query.Signature: "signature_status", query.Method: "method",
	query.Path: "path", query.IP: "ip", query.From: "mail_from", query.To: "mail_to", query.Subject: "subject", query.Note: "note", query.ID: "id",
	query.ContentType: "replace(content_type, ' ;', ';') || ';'",
}

// lowerCase lists the fields whose columns hold lower case only.
var lowerCase = []query.Field{query.Kind, query.Provider, query.Signature, query.IP, query.ID}

// senders lists the fields whose columns hold bytes of a sender, which may be invalid UTF-8. They are searched as they
// are shown ([hookglass.Readable]); only for ASCII is that what the column holds.
var senders = []query.Field{query.Path, query.EventType, query.ContentType}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// anyForeign replaces each non-ASCII character of a LIKE pattern with %.
func anyForeign(pattern string) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return '%'
		}
		return r
	}, pattern)
}

// condition returns what the events table can decide of a term, its negation aside, and whether that decides it.
func (d dialect) condition(t query.Term, a *args) (condition string, exact bool) {
	between := func(column string) string { return column + " BETWEEN " + a.add(t.Min) + " AND " + a.add(t.Max) }
	switch t.Field {
	case query.Status:
		return between("status"), true
	case query.Received:
		return between("received_at"), true
	case query.Size:
		return between("size"), true
	case query.Ignored:
		return "ignored IS NOT NULL", true
	case query.Delivery:
		return delivery(t), true
	case query.Tunnel:
		return tunneled(t), true
	case query.Attachment:
		return "type = 'email'", false // spares webhooks, of which there may be many, that their bodies are read
	case query.Tag:
		tag, ok := t.Pattern.Exact()
		if !ok {
			return "tags IS NOT NULL", false
		}
		condition, exact = like(d.lower("tags"), "%"+likeEscaper.Replace(encodeTag(tag))+"%", a)
		return "tags IS NOT NULL AND " + condition, exact // lets SQLite, too, use the index of tagged events
	}
	column, ok := columns[t.Field]
	if !ok {
		return "", false
	}
	if !slices.Contains(lowerCase, t.Field) {
		column = d.lower(column)
	}
	if pattern := t.Pattern.Like(); slices.Contains(senders, t.Field) && !ascii(pattern) {
		return column + " LIKE " + a.add(encodeText(anyForeign(pattern))) + ` ESCAPE '\'`, false
	}
	if t.Field == query.Note {
		condition, exact = like(column, encodeText(t.Pattern.Like()), a)
		return "note IS NOT NULL AND " + condition, exact // lets SQLite, too, use the index of events with a note
	}
	if text, ok := t.Pattern.Exact(); ok {
		return column + " = " + a.add(encodeText(text)), true
	}
	return like(column, encodeText(t.Pattern.Like()), a)
}

// delivery returns the condition that an event has a delivery in a state, or none. As a scalar subquery it is answered
// per event by the index of deliveries by event; a join would read all deliveries. The coalesce hides the other indexes
// from the planner, which may look as good while there are few deliveries (docs/decisions/0034).
func delivery(t query.Term) string {
	state, _ := t.Pattern.Exact()
	first := func(condition string) string {
		return "(SELECT 1 FROM forwards f WHERE f.event = seq" + condition + " LIMIT 1)"
	}
	switch state {
	case query.NoDelivery:
		return first("") + " IS NULL"
	case string(hookglass.ForwardPending):
		return first(" AND coalesce(f.state, '') IN ('pending', 'sending')") + " IS NOT NULL"
	case string(hookglass.ForwardDelivered):
		return first(" AND coalesce(f.state, '') = 'delivered'") + " IS NOT NULL"
	default: // rare states, which have a partial index
		return first(" AND f.due_at IS NULL AND f.state <> 'delivered' AND coalesce(f.state, '') = '"+state+"'") + " IS NOT NULL"
	}
}

// answered2xx says of the event seq of the surrounding query whether a local machine answered it with a 2xx, as it came
// or replayed to the tunnel: 1, 0, or NULL if neither was tried, which a replay that found no machine was. It is
// answered per event, like delivery.
const answered2xx = `(SELECT max(tried.ok) FROM (SELECT CASE WHEN t.delivered_at IS NULL THEN 0 ELSE 1 END AS ok FROM tunnel_events t WHERE t.event = seq
	UNION ALL SELECT r.passed FROM replays r WHERE r.event = seq AND r.target_url = '` + hookglass.TunnelTarget + `') AS tried)`

// tunneled returns the condition on what became of an event at local machines.
func tunneled(t query.Term) string {
	switch state, _ := t.Pattern.Exact(); state {
	case query.NoDelivery:
		return answered2xx + " IS NULL"
	case string(hookglass.ForwardDelivered):
		return answered2xx + " = 1"
	default:
		return answered2xx + " = 0"
	}
}

// like returns the condition that a column matches a pattern, and whether it is exact: SQLite's LIKE confuses U+FFFD,
// U+FFFE and U+FFFF.
func like(column, pattern string, a *args) (condition string, exact bool) {
	return column + " LIKE " + a.add(pattern) + ` ESCAPE '\'`, !strings.ContainsAny(pattern, "\ufffd\ufffe\uffff")
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// encodeTags encodes sorted tags as a column, NULL if there are none.
func encodeTags(tags []string) any {
	if len(tags) == 0 {
		return nil
	}
	var b strings.Builder
	for i, t := range tags {
		if i == 0 {
			b.WriteByte('[')
		} else {
			b.WriteByte(',')
		}
		b.WriteString(encodeTag(t))
	}
	b.WriteByte(']')
	return b.String()
}

var tagEscaper = strings.NewReplacer(`\"`, `\u0022`, `\\`, `\u005c`, `,`, `\u002c`)

// encodeTag encodes a tag as a JSON string in which quotes appear only at the ends and commas not at all, so that LIKE
// can find it in the column.
func encodeTag(tag string) string {
	text, _ := json.Marshal(tag) // of a string it never fails
	inner := tagEscaper.Replace(string(text[1 : len(text)-1]))
	return `"` + inner + `"`
}

func decodeTags(column string) (tags []string, err error) {
	if column == "" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(column), &tags)
	return tags, err
}
