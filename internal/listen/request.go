package listen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/api"
)

// Names of the fields that are added to forwarded requests (spec: decisions, section 10).
const (
	forwardedFor  = "X-Forwarded-For"
	serviceTunnel = "X-Service-Tunnel"
	serviceID     = "X-Service-Request-Id"
)

// perConnection are the fields that belong to a connection and not to the message (RFC 9110, section 7.6.1), besides
// those that begin with Proxy-; and Expect, which concerns only two neighbours. Lower case.
var perConnection = map[string]bool{
	"connection": true, "keep-alive": true, "te": true, "trailer": true, "trailers": true, "transfer-encoding": true,
	"upgrade": true, "http2-settings": true, "expect": true,
}

// outgoing is a request ready to be written, or to be given to a command.
type outgoing struct {
	method string
	to     Target
	target string            // path and query
	fields hookglass.Headers // as received, until written into head
	head   []byte            // empty for a command
	body   []byte
	facts  []string // for a command: NAME=value
}

// url returns the complete URL of the request, as text.
func (o outgoing) url() string {
	if o.to.Command != "" {
		return o.to.String()
	}
	return api.Text(o.to.Scheme + "://" + o.to.Host + o.target)
}

// compose builds the request for a captured event: its method, its header fields in their order and spelling, and its
// exact body. Host and Content-Length become those of the target and the body, in their original places.
func compose(r *api.TunnelRequest, to Target, set hookglass.Headers) (outgoing, error) {
	body, err := r.Bytes()
	if err != nil {
		return outgoing{}, fmt.Errorf("the body of the event is no base64")
	}
	path, query, list := r.Received()
	fields := fieldsOf(list, r.Headers)
	if to.Command != "" {
		f := facts{request: r.ID, endpoint: r.EndpointID, method: r.Method, path: path, query: query, provider: r.DetectedProvider, event: eventType(r.ProviderEventData)}
		if r.IPAddress != nil {
			f.ip = *r.IPAddress
		}
		return errand(to, f, fields, set, body), nil
	}
	added := hookglass.Headers{{Name: serviceTunnel, Value: "true"}, {Name: serviceID, Value: r.ID}}
	if r.IPAddress != nil && *r.IPAddress != "" {
		added = append(hookglass.Headers{{Name: forwardedFor, Value: *r.IPAddress}}, added...)
	}
	o := outgoing{method: r.Method, to: to, target: to.requestTarget(path, query), fields: fields, body: body}
	if o.method == "EMAIL" { // mail goes on as JSON (spec: decisions, section 7)
		o.method = "POST"
		if !fields.Has("Content-Type") {
			o.fields = append(o.fields, hookglass.Header{Name: "Content-Type", Value: "application/json"})
		}
	}
	return o.write(set, added)
}

// write writes the request head from the received fields. Fields of set replace those of the same name; so do those of
// added, except for X-Forwarded-For, which is a list. Fields that HTTP does not allow are left out: the server chooses
// them, and could smuggle in another request.
func (o outgoing) write(set, added hookglass.Headers) (outgoing, error) {
	if !hookglass.IsToken(o.method) || o.method == "CONNECT" {
		return outgoing{}, fmt.Errorf("the method %q cannot be sent", o.method)
	}
	h := headWriter{outgoing: o, set: set, drop: replaced(o.fields, set)}
	h.head = append(append(append(append(make([]byte, 0, 512+len(o.target)), o.method...), ' '), o.target...), " HTTP/1.1\r\n"...)
	if !o.fields.Has("Host") {
		h.host("Host")
	}
	for _, f := range o.fields {
		if ValidField(f) {
			h.pass(f)
		}
	}
	h.host("Host") // if the captured one was not valid
	for _, f := range slices.Concat(set, added) {
		if ValidField(f) {
			h.field(f.Name, f.Value)
		}
	}
	if len(o.body) > 0 || o.method == "POST" || o.method == "PUT" || o.method == "PATCH" { // RFC 9110, section 8.6
		h.length("Content-Length")
	}
	h.head = append(h.head, "\r\n"...)
	h.fields = nil
	return h.outgoing, nil
}

// headWriter writes the head of a request field by field.
type headWriter struct {
	outgoing
	set           hookglass.Headers
	drop          map[string]bool // received fields to leave out, in lower case
	hosted, sized bool            // Host and Content-Length are written, which happens once each
}

func (h *headWriter) field(name, value string) {
	h.head = append(append(append(append(h.head, name...), ": "...), value...), "\r\n"...)
}

// pass writes a received field, or what replaces it.
func (h *headWriter) pass(f hookglass.Header) {
	switch name := strings.ToLower(f.Name); {
	case name == "host":
		h.host(f.Name)
	case name == "content-length":
		h.length(f.Name)
	case name == "transfer-encoding":
		h.length("Content-Length")
	case h.drop[name] || perConnection[name] || strings.HasPrefix(name, "proxy-"):
	default:
		h.field(f.Name, f.Value)
	}
}

// host writes the target's Host, unless set has one.
func (h *headWriter) host(name string) {
	if !h.hosted && !h.set.Has("Host") {
		h.field(name, h.to.Host)
	}
	h.hosted = true
}

// length writes the length of the body.
func (h *headWriter) length(name string) {
	if !h.sized {
		h.field(name, strconv.Itoa(len(h.body)))
	}
	h.sized = true
}

// replaced returns the received fields to leave out, in lower case: those that Connection names as belonging to the
// sender's connection, and those that are replaced. Host and Content-Length are handled elsewhere.
func replaced(fields, set hookglass.Headers) map[string]bool {
	drop := make(map[string]bool)
	for _, v := range fields.Values("Connection") {
		for option := range strings.SplitSeq(v, ",") {
			drop[strings.ToLower(strings.Trim(option, " \t"))] = true
		}
	}
	for _, h := range set {
		drop[strings.ToLower(h.Name)] = true
	}
	drop[strings.ToLower(serviceTunnel)], drop[strings.ToLower(serviceID)] = true, true
	delete(drop, "host")
	delete(drop, "content-length")
	return drop
}

// fieldsOf returns the fields of the list, which is ordered, or else of the object.
func fieldsOf(list [][2]string, object map[string]string) hookglass.Headers {
	var fields hookglass.Headers
	for _, h := range list {
		fields = append(fields, hookglass.Header{Name: h[0], Value: h[1]})
	}
	if len(list) == 0 {
		for name, value := range object {
			fields = append(fields, hookglass.Header{Name: name, Value: value})
		}
	}
	return fields
}

// ValidField reports whether a header field can be sent.
func ValidField(h hookglass.Header) bool {
	return hookglass.IsToken(h.Name) && hookglass.IsFieldValue(h.Value)
}
