package capture

import (
	"strings"

	"hookglass"
	"hookglass/internal/provider"
)

// reply chooses the answer to the sender: a handshake's, the endpoint's own, or the default
// (decisions, section 4).
func reply(t Target, a *Arrival, ev *hookglass.Event) *hookglass.Reply {
	r := answer(t, a, ev)
	kept := r.Headers[:0]
	for _, h := range r.Headers {
		if Sendable(h) {
			kept = append(kept, h)
		}
	}
	r.Headers = kept
	if renders(r.Headers.Get("Content-Type")) {
		// The web app may share the host: nothing that an endpoint answers may run as part of it.
		r.Headers = append(r.Headers, hookglass.Header{Name: "Content-Security-Policy", Value: "sandbox"})
	}
	if a.Method == "HEAD" || r.Status == 204 || r.Status == 304 {
		r.Body = nil
	}
	return r
}

func answer(t Target, a *Arrival, ev *hookglass.Event) *hookglass.Reply {
	if t.Endpoint.ProviderConfig.Handshakes() {
		d := provider.Detection{Provider: ev.Provider, EventType: ev.EventType, EventID: ev.EventRef, DeliveryID: ev.DeliveryID}
		if shake, ok := provider.Handshake(request(t, a, ev), d, t.known.configs); ok {
			return &hookglass.Reply{Status: shake.Status, Headers: shake.Headers, Body: shake.Body, Source: hookglass.SourceHandshake}
		}
	}
	if t.Endpoint.Response != nil {
		return customReply(t.Endpoint.Response, a, ev)
	}
	if ev.Provider == "twilio" {
		return &hookglass.Reply{
			Status: 200, Headers: hookglass.Headers{{Name: "Content-Type", Value: "text/xml"}},
			Body: []byte("<Response/>"), Source: hookglass.SourceDefault,
		}
	}
	body := make([]byte, 0, 64)
	body = append(body, `{"received":true,"id":"`...)
	body = append(body, ev.ID...)
	body = append(body, `"}`...)
	return &hookglass.Reply{
		Status: 200, Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}},
		Body: body, Source: hookglass.SourceDefault,
	}
}

// renders reports whether a browser would build a page of the media type. None counts: it would guess.
func renders(contentType string) bool {
	t, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	t = strings.TrimSpace(t)
	return t == "" || strings.Contains(t, "html") || strings.Contains(t, "xml") || strings.Contains(t, "svg")
}
