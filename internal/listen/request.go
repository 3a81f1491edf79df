package listen

import (
	"fmt"
	"strconv"
	"strings"

	"hookglass"
	"hookglass/api"
)

// Names of the fields that forwarded requests gain (decisions, section 10).
const (
	forwardedFor  = "X-Forwarded-For"
	serviceTunnel = "X-Service-Tunnel"
	serviceID     = "X-Service-Request-Id"
)

// perConnection are the fields that belong to one connection and not to the message (RFC 9110, section 7.6.1; those
// that begin with Proxy- besides), and Expect, which is settled between two neighbours. Lower case.
var perConnection = map[string]bool{
	"connection": true, "keep-alive": true, "te": true, "trailer": true, "trailers": true, "transfer-encoding": true,
	"upgrade": true, "http2-settings": true, "expect": true,
}

// outgoing is a request ready to be written, or to be given to a command.
type outgoing struct {
	method string
	to     Target
	target string // path and query
	head   []byte
	body   []byte
	facts  []string          // for a command: NAME=value
	fields hookglass.Headers // and the header fields as they came
}

// url is the whole address that the request goes to, as text.
func (o outgoing) url() string {
	if o.to.Command != "" {
		return o.to.String()
	}
	return api.Text(o.to.Scheme + "://" + o.to.Host + o.target)
}

// compose makes the request for a captured event: its method, its header fields in their order and spelling, the bytes
// of its body. Host and Content-Length are the target's and the body's, at the places where they stood.
func compose(r *api.TunnelRequest, to Target, set hookglass.Headers) (outgoing, error) {
	body, err := r.Bytes()
	if err != nil {
		return outgoing{}, fmt.Errorf("the body of the event is no base64")
	}
	path, query, list := r.Received()
	fields := fieldsOf(list, r.Headers)
	if to.Command != "" {
		f := facts{request: r.ID, endpoint: r.EndpointID, method: r.Method, path: path, query: query, provider: r.DetectedProvider}
		if d := r.ProviderEventData; d != nil && d.EventType != nil {
			f.event = *d.EventType
		}
		if r.IPAddress != nil {
			f.ip = *r.IPAddress
		}
		return errand(to, f, fields, set, body), nil
	}
	added := hookglass.Headers{{Name: serviceTunnel, Value: "true"}, {Name: serviceID, Value: r.ID}}
	if r.IPAddress != nil && *r.IPAddress != "" {
		added = append(hookglass.Headers{{Name: forwardedFor, Value: *r.IPAddress}}, added...)
	}
	method := r.Method
	if method == "EMAIL" { // mail goes on as JSON (decisions, section 7)
		method = "POST"
		if !fields.Has("Content-Type") {
			fields = append(fields, hookglass.Header{Name: "Content-Type", Value: "application/json"})
		}
	}
	return write(method, to, to.requestTarget(path, query), fields, set, added, body)
}

// write lays a request out. Fields of set take the place of those of the same name; so do those added, except for
// X-Forwarded-For, which is a list.
func write(method string, to Target, target string, fields, set, added hookglass.Headers, body []byte) (outgoing, error) {
	if !hookglass.IsToken(method) || method == "CONNECT" {
		return outgoing{}, fmt.Errorf("the method %q can not be sent", method)
	}
	drop := replaced(fields, set)
	b := make([]byte, 0, 512+len(target))
	b = append(append(append(b, method...), ' '), target...)
	b = append(b, " HTTP/1.1\r\n"...)
	field := func(name, value string) {
		b = append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
	}
	hosted, sized := false, false
	if !fields.Has("Host") && !set.Has("Host") {
		field("Host", to.Host)
		hosted = true
	}
	length := strconv.Itoa(len(body))
	for _, h := range fields {
		if !hookglass.IsToken(h.Name) || !hookglass.IsFieldValue(h.Value) {
			continue // no server took it in like this; it would write a head of its own
		}
		switch name := strings.ToLower(h.Name); {
		case name == "host":
			if !hosted && !set.Has("Host") {
				field(h.Name, to.Host)
			}
			hosted = true
		case name == "content-length" || name == "transfer-encoding":
			if sized {
				continue
			}
			if sized = true; name == "content-length" {
				field(h.Name, length)
			} else {
				field("Content-Length", length)
			}
		case drop[name] || perConnection[name] || strings.HasPrefix(name, "proxy-"):
		default:
			field(h.Name, h.Value)
		}
	}
	for _, h := range set {
		field(h.Name, h.Value)
	}
	for _, h := range added {
		field(h.Name, h.Value)
	}
	if !sized && (len(body) > 0 || method == "POST" || method == "PUT" || method == "PATCH") { // RFC 9110, section 8.6
		field("Content-Length", length)
	}
	b = append(b, "\r\n"...)
	return outgoing{method: method, to: to, target: target, head: b, body: body}, nil
}

// replaced names the fields that do not go on as they came, in lower case: those that the sender said are for its
// connection alone, and those that others take the place of. What Host and Content-Length become is seen to by itself.
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

// fieldsOf takes the list, which is in order, or else the object.
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
