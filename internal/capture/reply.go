package capture

import (
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/provider"
)

// reply chooses the answer to the sender (spec: decisions, section 4): that of a handshake, of the first matching rule,
// the custom answer for all events, or the default.
func reply(t Target, ev *hookglass.Event, req *provider.Request, found provider.Detection) *hookglass.Reply {
	return given(ev.Method, answer(t, ev, req, found))
}

// given removes the fields that cannot be sent from an answer and finishes it.
func given(method string, r *hookglass.Reply) *hookglass.Reply {
	r.Headers = slices.DeleteFunc(r.Headers, func(h hookglass.Header) bool { return !Sendable(h) })
	return finish(method, r)
}

// finish makes an answer fit to be sent: safe for whoever opens it in a browser, and without a body where none is
// allowed.
func finish(method string, r *hookglass.Reply) *hookglass.Reply {
	if renders(r.Headers) {
		// The web app may share the host: an answer of an endpoint must not run as a part of it.
		r.Headers = append(r.Headers, hookglass.Header{Name: "Content-Security-Policy", Value: "sandbox"})
	}
	if bodiless(method, r.Status) {
		r.Body = nil
	}
	return r
}

// bodiless reports whether an answer has no body, whatever is to be sent (RFC 9110, sections 9.3.2, 15.3.5, 15.3.6 and
// 15.4.5).
func bodiless(method string, status int) bool {
	return method == "HEAD" || status == 204 || status == 205 || status == 304
}

// dated adds the Date. The HTTP server would add one anyway; this way the recorded answer is the one that is sent.
func dated(r *hookglass.Reply) *hookglass.Reply {
	r.Headers = append(r.Headers, hookglass.Header{Name: "Date", Value: time.Now().UTC().Format(hookglass.HTTPDate)})
	return r
}

func answer(t Target, ev *hookglass.Event, req *provider.Request, found provider.Detection) *hookglass.Reply {
	own, rule := t.own(ev)
	if t.Endpoint.ProviderConfig.Handshakes() {
		shake, ok := provider.Handshake(req, found, t.known.configs)
		if ok && !(shake.Ordinary && own != nil) {
			r := &hookglass.Reply{Status: shake.Status, Headers: shake.Headers, Body: shake.Body, Source: hookglass.SourceHandshake}
			if shake.Ordinary && (t.known.script != nil || t.Endpoint.ProviderConfig.ResponseMode == hookglass.ResponseTunnel) {
				r.Source = hookglass.SourceDefault // so that a script or a local machine answers instead
			}
			return r
		}
	}
	if own != nil {
		r := customReply(own, ev)
		r.Rule = rule
		return r
	}
	if ev.Provider == "twilio" {
		return &hookglass.Reply{
			Status: 200, Headers: hookglass.Headers{{Name: "Content-Type", Value: "text/xml"}},
			Body: []byte("<Response/>"), Source: hookglass.SourceDefault,
		}
	}
	return acknowledged(ev.ID)
}

// acknowledged returns the default answer.
func acknowledged(id hookglass.EventID) *hookglass.Reply {
	body := make([]byte, 0, 64)
	body = append(body, `{"received":true,"id":"`...)
	body = append(body, id...)
	body = append(body, `"}`...)
	return &hookglass.Reply{
		Status: 200, Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}},
		Body: body, Source: hookglass.SourceDefault,
	}
}

// renders reports whether a browser may render an answer as a page. Without exactly one media type, a browser guesses.
func renders(h hookglass.Headers) bool {
	named, page := 0, true
	for _, f := range h {
		if strings.EqualFold(f.Name, "Content-Type") {
			named++
			page = isPage(f.Value)
		}
	}
	return named != 1 || page
}

// isPage reports whether a media type is that of a page. Browsers guess if the type is invalid or says "unknown", and
// of a list they take the last one (WHATWG MIME Sniffing, section 7; Fetch, section 2.2.2).
func isPage(contentType string) bool {
	t, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	kind, sub, _ := strings.Cut(strings.Trim(t, " \t"), "/")
	return !hookglass.IsToken(kind) || !hookglass.IsToken(sub) || strings.Contains(contentType, ",") || kind == "*" || kind == "multipart" || sub == "unknown" ||
		strings.Contains(sub, "html") || strings.Contains(sub, "xml") || strings.Contains(sub, "xsl") || strings.Contains(sub, "svg")
}
