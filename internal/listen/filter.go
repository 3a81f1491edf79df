package listen

import (
	"hookglass"
	"hookglass/api"
)

// told is an event as far as a listener is told of it, which is less than a server knows.
func told(r *api.TunnelRequest) *hookglass.Event {
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
	return e
}
