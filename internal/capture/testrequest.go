package capture

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/provider"
)

// TestRequest is a sample event of a provider, or a request given in full.
type TestRequest struct {
	Provider  string // selects a sample, with EventType
	EventType string
	Set       []byte // a JSON object of values for the sample, by their JSON Pointers
	Method    string // if Provider is empty; default POST
	Path      string // default /
	Headers   hookglass.Headers
	Body      []byte
}

// ReadTestRequest parses a test request, which is either a sample or given in full. It answers validation_failed.
func ReadTestRequest(b api.SendTestRequest) (r TestRequest, err error) {
	spelled := b.Method != "" || b.Path != "" || b.Body != "" || len(b.Headers) > 0
	switch {
	case b.Provider != "" && spelled:
		return r, hookglass.Invalid("provider", "names a sample; leave out method, path, headers and body")
	case b.Provider == "" && b.EventType != "":
		return r, hookglass.Invalid("event_type", "names a sample of a provider; say which")
	case b.Provider == "" && len(b.Set) > 0:
		return r, hookglass.Invalid("set", "changes a sample of a provider; say which")
	case b.Method != "" && !slices.Contains(hookglass.Methods, b.Method):
		return r, hookglass.Invalid("method", "must be one of GET, POST, PUT, PATCH, DELETE, HEAD and OPTIONS")
	case b.Path != "" && b.Path[0] != '/' && b.Path[0] != '?':
		return r, hookglass.Invalid("path", "must begin with a slash")
	}
	if len(b.Path) > MaxHeaderBytes {
		return r, hookglass.Invalid("path", "may have %d bytes at most", MaxHeaderBytes)
	}
	r = TestRequest{Provider: b.Provider, EventType: b.EventType, Set: b.Set, Method: cmp.Or(b.Method, "POST"), Path: b.Path, Body: []byte(b.Body)}
	if len(b.Headers) > MaxHeaders {
		return r, hookglass.Invalid("headers", "may be %d at most", MaxHeaders)
	}
	size := len(r.Method) + len(r.Path)
	for _, name := range slices.Sorted(maps.Keys(b.Headers)) {
		value := b.Headers[name]
		if size += len(name) + len(value) + len(": \r\n"); size > MaxHeaderBytes {
			return r, hookglass.Invalid("headers", "may have %d bytes at most, with the path", MaxHeaderBytes)
		}
		h := hookglass.Header{Name: name, Value: value}
		switch {
		case !hookglass.IsToken(name):
			return r, hookglass.Invalid("headers", "has the invalid name %q", name)
		case !hookglass.IsFieldValue(value):
			return r, hookglass.Invalid("headers", "has an invalid value for %s", name)
		case !Sendable(h):
			return r, hookglass.Invalid("headers", "may not set %s", name)
		case strings.EqualFold(name, "Host") && (r.Headers.Has("Host") || !isHost(value)): // as at reception
			return r, hookglass.Invalid("headers", "must have one Host, of a name or an address and a port")
		}
		r.Headers = append(r.Headers, h)
	}
	return r, nil
}

// SendTest captures a request as if it had come from outside, and returns the event. A sample gets fresh ids and is
// signed with the endpoint's config, if it has one. It answers validation_failed for an unknown sample, conflict for a
// disabled endpoint, and payload_too_large for a body that reception would refuse.
func (s *Service) SendTest(ctx context.Context, who hookglass.Principal, ref, origin string, r TestRequest) (hookglass.EventID, error) {
	e, configs, err := s.configured(ctx, who, ref)
	if err != nil {
		return "", err
	}
	if e.Kind != hookglass.KindWebhook {
		return "", hookglass.Invalid("endpoint_id", "is an email endpoint; test requests are webhooks")
	}
	now := time.Now()
	hook := origin + "/hooks/" + string(e.ID)
	out := provider.Outgoing{Method: r.Method, URL: hook + r.Path, Headers: r.Headers, Body: r.Body}
	if r.Provider != "" {
		if out, err = sample(r, hook, configs, s.db.Stamp(now)); err != nil { // by the clock used for the check
			return "", err
		}
	}
	u, err := url.Parse(out.URL)
	if err != nil {
		return "", hookglass.Invalid("path", "is no path of a URL")
	}
	t, err := s.Admit(ctx, string(e.ID))
	if hookglass.Is(err, hookglass.CodeGone) { // a code for senders only
		err = hookglass.Errorf(hookglass.CodeConflict, "This endpoint is disabled, so it takes no test request. Enable it first.")
	}
	if err != nil {
		return "", err
	}
	if s.cfg.MaxBody > 0 && int64(len(out.Body)) > s.cfg.MaxBody {
		return "", hookglass.Errorf(hookglass.CodePayloadTooLarge, "The body is larger than this service accepts.")
	}
	target := u.EscapedPath()
	path := strings.TrimPrefix(target, "/hooks/"+string(e.ID))
	if at := strings.Index(target, "/hooks/"); at > 0 { // the service may be below a path of its host
		path = strings.TrimPrefix(target[at:], "/hooks/"+string(e.ID))
	}
	if u.RawQuery != "" {
		target += "?" + u.RawQuery
	}
	if path == "" {
		path = "/"
	}
	if !out.Headers.Has("Host") {
		out.Headers = append(hookglass.Headers{{Name: "Host", Value: u.Host}}, out.Headers...)
	}
	a := &Arrival{
		Method: out.Method, Path: path, RawQuery: u.RawQuery, Target: target, Proto: "HTTP/1.1",
		Host: out.Headers.Get("Host"), Scheme: u.Scheme, Client: loopback, Body: out.Body, At: now, Headers: out.Headers,
	}
	ev, err := s.capture(ctx, t, a)
	if err != nil {
		return "", err
	}
	return ev.ID, nil
}

// isHost reports whether the URL of a request can be built of a Host header.
func isHost(value string) bool {
	u, err := url.Parse("//" + value)
	return err == nil && value != "" && u.Host == value
}

func sample(r TestRequest, hook string, configs []provider.Config, now time.Time) (provider.Outgoing, error) {
	out, err := provider.Sample(r.Provider, r.EventType, hook)
	if err != nil {
		return out, err
	}
	d := provider.Detect(&provider.Request{Method: out.Method, URL: out.URL, Headers: out.Headers, Body: out.Body, ReceivedAt: now})
	if fresh, _, err := provider.Regenerate(out, d, configs, provider.NewIdentity()); err == nil {
		out = fresh // an error means a form, which keeps the sample's ids
	}
	if out, err = out.Set(r.Set); err != nil {
		return out, err
	}
	for _, c := range configs {
		if c.Provider == r.Provider {
			return provider.Sign(out, c, now)
		}
	}
	return out, nil
}
