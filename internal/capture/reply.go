package capture

import (
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/provider"
)

// reply chooses the answer to the sender: a handshake's, the endpoint's own (that of a rule before that for all), or
// the default (decisions, section 4).
func reply(t Target, ev *hookglass.Event, req *provider.Request, found provider.Detection) *hookglass.Reply {
	return given(ev.Method, answer(t, ev, req, found))
}

// given makes an answer one that may be given, without the fields that cannot be sent.
func given(method string, r *hookglass.Reply) *hookglass.Reply {
	kept := r.Headers[:0]
	for _, h := range r.Headers {
		if Sendable(h) {
			kept = append(kept, h)
		}
	}
	r.Headers = kept
	return finish(method, r)
}

// finish makes an answer one that may be given: harmless to who opens it in a browser, and without a body where there
// can be none.
func finish(method string, r *hookglass.Reply) *hookglass.Reply {
	if renders(r.Headers) {
		// The web app may share the host: nothing that an endpoint answers may run as part of it.
		r.Headers = append(r.Headers, hookglass.Header{Name: "Content-Security-Policy", Value: "sandbox"})
	}
	if method == "HEAD" || r.Status == 204 || r.Status == 205 || r.Status == 304 { // RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5
		r.Body = nil
	}
	return r
}

// dated gives an answer its Date. Reception would add one; with it here the answer on record is the one that is sent.
func dated(r *hookglass.Reply) *hookglass.Reply {
	r.Headers = append(r.Headers, hookglass.Header{Name: "Date", Value: time.Now().UTC().Format(httpDate)})
	return r
}

func answer(t Target, ev *hookglass.Event, req *provider.Request, found provider.Detection) *hookglass.Reply {
	own, rule := t.own(ev)
	if t.Endpoint.ProviderConfig.Handshakes() {
		shake, ok := provider.Handshake(req, found, t.known.configs)
		if ok && !(shake.Ordinary && own != nil) {
			r := &hookglass.Reply{Status: shake.Status, Headers: shake.Headers, Body: shake.Body, Source: hookglass.SourceHandshake}
			if shake.Ordinary && (t.known.script != nil || t.Endpoint.ProviderConfig.ResponseMode == hookglass.ResponseTunnel) {
				r.Source = hookglass.SourceDefault // what a script or a local machine answers goes before
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

// acknowledged is the default answer.
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

// renders reports whether a browser may build a page of an answer. It guesses where no media type is named, or several.
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

// isPage reports whether a media type is that of a page. A browser guesses what it is where the type is none, or says
// that it is not known, and of a list it takes the last (WHATWG MIME Sniffing, section 7; Fetch, section 2.2.2).
func isPage(contentType string) bool {
	t, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	kind, sub, _ := strings.Cut(strings.Trim(t, " \t"), "/")
	return !hookglass.IsToken(kind) || !hookglass.IsToken(sub) || strings.Contains(contentType, ",") || kind == "*" || kind == "multipart" || sub == "unknown" ||
		strings.Contains(sub, "html") || strings.Contains(sub, "xml") || strings.Contains(sub, "xsl") || strings.Contains(sub, "svg")
}
