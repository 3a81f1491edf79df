package capture

import (
	"cmp"
	"slices"

	"hookglass"
	"hookglass/api"
)

// ReadTestRequest parses a test request, which is either a sample or given in full. It answers validation_failed.
func ReadTestRequest(b api.SendTestRequest) (r TestRequest, err error) {
	spelled := b.Method != "" || b.Path != "" || b.Body != "" || len(b.Headers) > 0
	switch {
	case b.Provider != "" && spelled:
		return r, hookglass.Invalid("provider", "names a sample; leave out method, path, headers and body")
	case b.Provider == "" && b.EventType != "":
		return r, hookglass.Invalid("event_type", "names a sample of a provider; say which")
	case b.Method != "" && !slices.Contains(hookglass.Methods, b.Method):
		return r, hookglass.Invalid("method", "must be one of GET, POST, PUT, PATCH, DELETE, HEAD and OPTIONS")
	case b.Path != "" && b.Path[0] != '/' && b.Path[0] != '?':
		return r, hookglass.Invalid("path", "must begin with a slash")
	}
	if len(b.Path) > MaxHeaderBytes {
		return r, hookglass.Invalid("path", "may have %d bytes at most", MaxHeaderBytes)
	}
	r = TestRequest{Provider: b.Provider, EventType: b.EventType, Method: b.Method, Path: b.Path, Body: []byte(b.Body)}
	if r.Method == "" {
		r.Method = "POST"
	}
	if len(b.Headers) > MaxHeaders {
		return r, hookglass.Invalid("headers", "may be %d at most", MaxHeaders)
	}
	size := len(r.Method) + len(r.Path)
	for name, value := range b.Headers {
		if size += len(name) + len(value) + len(": \r\n"); size > MaxHeaderBytes {
			return r, hookglass.Invalid("headers", "may have %d bytes at most, with the path", MaxHeaderBytes)
		}
		h := hookglass.Header{Name: name, Value: value}
		if !Sendable(h) {
			return r, hookglass.Invalid("headers", "holds one that can not be sent")
		}
		r.Headers = append(r.Headers, h)
	}
	slices.SortFunc(r.Headers, func(a, b hookglass.Header) int { return cmp.Compare(a.Name, b.Name) })
	return r, nil
}
