package listen

import (
	"errors"
	"slices"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/query"
)

// Filter is which events are wanted, as a search. A nil Filter wants all.
type Filter struct{ when query.Condition }

// untold are the fields that an event has at the server alone.
var untold = []query.Field{query.Signature, query.From, query.To, query.Subject}

// ParseFilter reads a search of what a listener is told of an event, which is less than a server knows. Errors are for
// people.
func ParseFilter(text string) (*Filter, error) {
	when, err := query.ParseCondition(text)
	if err != nil {
		var coded *hookglass.Error
		if errors.As(err, &coded) && len(coded.Details) > 0 {
			return nil, errors.New(coded.Details[0].Message)
		}
		return nil, err
	}
	if !when.AtArrival() || slices.ContainsFunc(when.Terms(), func(t query.Term) bool { return slices.Contains(untold, t.Field) }) {
		return nil, errors.New("a listener is not told status, tag, note, ignored, delivery, the time, signature, from, to and subject of an event")
	}
	return &Filter{when}, nil
}

// means reports whether an event is wanted.
func (f *Filter) means(r *api.TunnelRequest) bool {
	if f == nil {
		return true
	}
	path, rawQuery, list := r.Received()
	body, _ := r.Bytes() // one that can not be read fails when it is to be sent
	e := &hookglass.Event{
		ID: hookglass.EventID(r.ID), Type: hookglass.EventWebhook, Method: r.Method, Path: path, RawQuery: rawQuery, Size: r.BodySize, Provider: r.DetectedProvider,
		Payload: &hookglass.Payload{Headers: fieldsOf(list, r.Headers), Body: body},
	}
	if r.Method == "EMAIL" {
		e.Type = hookglass.EventEmail
	}
	if r.ContentType != nil {
		e.ContentType = *r.ContentType
	}
	if r.IPAddress != nil {
		e.IP = *r.IPAddress
	}
	if d := r.ProviderEventData; d != nil && d.EventType != nil {
		e.EventType = *d.EventType
	}
	return f.when.Means(e)
}
