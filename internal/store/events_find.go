package store

import (
	"math"
	"strings"

	"hookglass"
	"hookglass/internal/query"
)

// recentEvents is how many of an endpoint's newest events are searched for a sender's id, which has no index.
const recentEvents = 10_000

// FindEvent returns the id of the newest event that a word denotes: an event's own id; "latest", optionally followed by
// an event type; or the sender's id of the event or the delivery, among the newest 10,000 events. As in lists, "latest"
// skips ignored events. It answers not_found.
func (v *View) FindEvent(ref, word string) (hookglass.EventID, error) {
	word = strings.TrimSpace(word)
	if id, err := hookglass.ParseEventID(word); err == nil {
		return id, nil
	}
	if rest, ok := strings.CutPrefix(word, "latest"); ok && (rest == "" || rest[0] == ' ') {
		q, err := query.Filter{EventType: strings.TrimSpace(rest)}.Parse(v.Now)
		if err != nil {
			return "", err
		}
		page, err := v.Events(ref, EventList{Query: q, Limit: 1})
		if err != nil {
			return "", err
		}
		if len(page.Events) == 0 {
			return "", hookglass.NotFound("request")
		}
		return page.Events[0].ID, nil
	}
	log, err := v.eventLog(ref)
	if err != nil {
		return "", err
	}
	a := &args{}
	recent := "SELECT id, event_ref, delivery_id, seq FROM events WHERE " + v.dialect.within(a, log.endpoint.Num, log.floor, math.MaxInt64) + newestFirst + " LIMIT " + a.add(recentEvents)
	stored := a.add(encodeText(word))
	var id string
	err = v.queryRow("request", "SELECT id FROM ("+recent+") AS recent WHERE event_ref = "+stored+" OR delivery_id = "+stored+" ORDER BY seq DESC LIMIT 1", a.all(), &id)
	return hookglass.EventID(id), err
}

// EndpointOfEvent returns the endpoint of an event. It answers not_found, also if the principal may not see it.
func (v *View) EndpointOfEvent(eventID string) (hookglass.Endpoint, error) {
	id, err := hookglass.ParseEventID(eventID)
	if err != nil {
		return hookglass.Endpoint{}, err
	}
	var num int64
	if err := v.queryRow("request", "SELECT endpoint FROM events WHERE id = $1", []any{string(id)}, &num); err != nil {
		return hookglass.Endpoint{}, err
	}
	e, err := v.EndpointByNum(num)
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return e, hookglass.NotFound("request")
	}
	return e, err
}
