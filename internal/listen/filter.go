package listen

import (
	"hookglass"
	"hookglass/api"
)

// told returns an event with the fields that a listener is sent, which are fewer than the server has.
func told(r *api.TunnelRequest) *hookglass.Event {
	path, rawQuery, list := r.Received()
	body, _ := r.Bytes() // an unreadable body fails later, when it is sent
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
	return e
}
