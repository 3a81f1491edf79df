package store

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hookglass"
)

// Activity returns what happened since a time at the endpoints that the principal may see, newest first, limit at most.
// kind selects one type; empty is all. Captures are read from the events, so a deleted event leaves the feed.
func (v *View) Activity(kind hookglass.ActivityType, since time.Time, limit int) ([]hookglass.Activity, error) {
	feed := []hookglass.Activity{}
	var err error
	switch kind {
	case hookglass.ActivityWebhookReceived:
		feed, err = v.received(hookglass.KindWebhook, since, limit)
	case hookglass.ActivityEmailReceived:
		feed, err = v.received(hookglass.KindEmail, since, limit)
	case "":
		feed, err = v.received("", since, limit)
	}
	if err != nil {
		return nil, err
	}
	if kind != hookglass.ActivityWebhookReceived && kind != hookglass.ActivityEmailReceived {
		recorded, err := v.recorded(kind, since, limit)
		if err != nil {
			return nil, err
		}
		feed = append(feed, recorded...)
	}
	return newest(feed, limit), nil
}

// received reads the newest captures. It visits endpoints by their last event, newest first, and stops at the first
// that was quiet for longer than the feed reaches back. That is one of the first limit+1, unless last events were
// deleted.
func (v *View) received(kind hookglass.EndpointKind, since time.Time, limit int) ([]hookglass.Activity, error) {
	feed := []hookglass.Activity{}
	for skip := 0; ; skip += limit + 1 {
		sources, err := v.sources(kind, since, skip, limit+1)
		if err != nil {
			return nil, err
		}
		for _, s := range sources {
			if len(feed) == limit && s.last <= feed[limit-1].OccurredAt.UnixMicro() {
				return feed, nil
			}
			if len(feed) == limit {
				since = feed[limit-1].OccurredAt
			}
			events, err := v.newestSince(s.log, since, limit)
			if err != nil {
				return nil, err
			}
			for _, e := range events {
				feed = append(feed, capture(e))
			}
			feed = newest(feed, limit)
		}
		if len(sources) <= limit {
			return feed, nil
		}
	}
}

// newestSince returns those of the newest events of a log, limit at most, that were received since a time. The database
// leaves out the others: of most of many busy endpoints, a feed shows few events or none.
func (v *View) newestSince(log eventLog, since time.Time, limit int) ([]*hookglass.Event, error) {
	a := &args{}
	query := "SELECT " + listColumns + " FROM (SELECT * FROM events WHERE " +
		v.dialect.within(a, log.endpoint.Num, log.floor, math.MaxInt64) + newestFirst + " LIMIT " + a.add(limit) +
		") AS newest WHERE received_at >= " + a.add(since.UnixMicro())
	events, err := queryAll(v, log.scan, query, a.all()...)
	slices.SortFunc(events, func(a, b *hookglass.Event) int { return cmp.Compare(b.Seq, a.Seq) }) // the query promises no order
	return events, err
}

// source is an endpoint that captured something, and when it last did, in microseconds.
type source struct {
	log  eventLog
	last int64
}

// sources lists endpoints by their last event, newest first.
func (v *View) sources(kind hookglass.EndpointKind, since time.Time, skip, limit int) ([]source, error) {
	a := &args{}
	text := "SELECT e.num, s.floor_seq, s.last_event_at, e.id" + endpointTables +
		" WHERE s.event_count > 0 AND s.last_event_at >= " + a.add(since.UnixMicro())
	if kind != "" {
		text += " AND e.kind = " + a.add(string(kind))
	}
	text += " AND" + v.endpointScope(a) + " ORDER BY s.last_event_at DESC, e.num LIMIT " + a.add(limit) +
		" OFFSET " + a.add(skip)
	return queryAll(v, func(scan func(...any) error) (s source, err error) {
		err = scan(&s.log.endpoint.Num, &s.log.floor, &s.last, &s.log.endpoint.ID)
		return s, err
	}, text, a.all()...)
}

// capture returns the feed's line for a captured event (spec, "Events").
func capture(e *hookglass.Event) hookglass.Activity {
	line := hookglass.Activity{Type: hookglass.ActivityWebhookReceived, OccurredAt: e.ReceivedAt, EndpointID: e.EndpointID, EventID: e.ID, Captured: e}
	if e.Type == hookglass.EventEmail {
		line.Type = hookglass.ActivityEmailReceived
		line.Data = map[string]any{"from": e.From, "to": e.To, "subject": e.Subject, "size": e.Size}
		return line
	}
	line.Data = map[string]any{"method": e.Method, "path": e.Path, "content_type": nil, "size": e.Size}
	if e.ContentType != "" {
		line.Data["content_type"] = e.ContentType
	}
	return line
}

// linesOf returns the condition that selects the lines of an account above an id. Use it with ORDER BY account_id, id.
func (d dialect) linesOf(account, above string) string {
	return d.rowsOf("account_id", "id", account, above, newestNum)
}

// activityBefore returns an id that is below those of all lines of an account since a time. Times have no index, but
// lines are nearly in their order, so a binary search finds the place, within clockError.
func (v *View) activityBefore(account int64, since time.Time) (int64, error) {
	newest, err := v.first(0, "SELECT id FROM activities WHERE "+v.dialect.linesOf("$1", "0")+" ORDER BY account_id DESC, id DESC LIMIT 1", account)
	if err != nil || newest == 0 {
		return 0, err
	}
	return placeOf(since.Add(-clockError).UnixMicro(), 0, newest, func(above int64) ([]int64, error) {
		return queryAll(v, scanNum, "SELECT occurred_at FROM activities WHERE "+v.dialect.linesOf("$1", "$2")+" ORDER BY account_id, id LIMIT 1", account, above)
	})
}

// recorded reads what AddActivity wrote.
func (v *View) recorded(kind hookglass.ActivityType, since time.Time, limit int) ([]hookglass.Activity, error) {
	a := &args{}
	text := "SELECT a.type, a.occurred_at, e.id, a.event_id, a.data FROM activities a JOIN endpoints e ON e.num = a.endpoint + 0 WHERE a.occurred_at >= " + a.add(since.UnixMicro())
	if kind != "" {
		text += " AND a.type = " + a.add(string(kind))
	}
	text += " AND" + v.endpointScope(a)
	switch {
	case v.who.System:
		text += " ORDER BY a.id DESC"
	case v.who.Endpoint != "":
		of := "(SELECT o.num FROM endpoints o WHERE o.id = " + a.add(string(v.who.Endpoint)) + ")"
		text += " AND " + v.dialect.rowsOf("a.endpoint", "a.id", of, "0", newestNum) + " ORDER BY a.endpoint DESC, a.id DESC"
	default:
		above, err := v.activityBefore(v.who.Account, since)
		if err != nil {
			return nil, err
		}
		text += " AND " + v.dialect.rowsOf("a.account_id", "a.id", a.add(v.who.Account), a.add(above), newestNum) + " ORDER BY a.account_id DESC, a.id DESC"
	}
	text += " LIMIT " + a.add(limit)
	return queryAll(v, func(scan func(...any) error) (line hookglass.Activity, err error) {
		var at int64
		var event sql.NullString
		var data string
		if err := scan(&line.Type, &at, &line.EndpointID, &event, &data); err != nil {
			return line, err
		}
		line.OccurredAt, line.EventID = time.UnixMicro(at).UTC(), hookglass.EventID(event.String)
		if err := json.Unmarshal([]byte(data), &line.Data); err != nil {
			return line, fmt.Errorf("data of activity: %w", err)
		}
		return line, nil
	}, text, a.all()...)
}

// NameFailures adds the requests to the lines about failed deliveries, as Captured, except those that were deleted.
func (v *View) NameFailures(feed []hookglass.Activity) error {
	a := &args{}
	var ids []string
	failed := map[hookglass.EventID][]int{}
	for i, line := range feed {
		if line.Type != hookglass.ActivityForwardingFailed || line.EventID == "" {
			continue
		}
		if failed[line.EventID] == nil {
			ids = append(ids, a.add(string(line.EventID)))
		}
		failed[line.EventID] = append(failed[line.EventID], i)
	}
	if len(ids) == 0 {
		return nil
	}
	events, err := queryAll(v, eventLog{}.scan, "SELECT "+listColumns+" FROM events WHERE id IN ("+strings.Join(ids, ", ")+`)
		AND seq > (SELECT floor_seq FROM endpoint_stats WHERE endpoint_stats.endpoint = events.endpoint)`, a.all()...)
	for _, e := range events {
		for _, i := range failed[e.ID] {
			feed[i].Captured = e
		}
	}
	return err
}

// AddActivity adds a line to the feed of the endpoint's account and pushes it to the channels that follow its type.
// Captures need no line: the feed reads the events.
func (tx *Tx) AddActivity(line hookglass.Activity) error {
	e, err := tx.Endpoint(string(line.EndpointID))
	if err != nil {
		return err
	}
	data, err := json.Marshal(line.Data)
	if err != nil {
		return err
	}
	if e.AccountID != 0 {
		tx.Announce(TopicAccount(e.AccountID))
	}
	_, err = tx.exec("INSERT INTO activities (account_id, endpoint, type, occurred_at, event_id, data) VALUES ($1, $2, $3, $4, $5, $6)",
		e.AccountID, e.Num, string(line.Type), line.OccurredAt.UnixMicro(), nullString(string(line.EventID)), string(data))
	if err != nil {
		return err
	}
	return tx.notifyFollowers(e, line)
}

// newest sorts a feed and cuts it. Lines of the same time keep the order in which they were read.
func newest(feed []hookglass.Activity, limit int) []hookglass.Activity {
	slices.SortStableFunc(feed, func(a, b hookglass.Activity) int { return b.OccurredAt.Compare(a.OccurredAt) })
	return feed[:min(len(feed), limit)]
}
