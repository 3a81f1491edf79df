package ingest

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"hookglass"
)

// head is a request line with its header lines (RFC 9112, sections 2, 3, 5 and 6). All text is cut from one string, so
// that a head takes two allocations, however many lines it has.
type head struct {
	method    string
	target    string // as received
	proto     string
	minor     int    // of HTTP/1.x
	authority string // of a target in absolute form
	path      string
	query     string
	headers   hookglass.Headers // as received, in order
	host      string

	length  int64 // Content-Length; -1 without one
	chunked bool
	expect  string
	close   bool // the sender asked for it, or uses HTTP/1.0 without keep-alive
	tooBig  bool // the Content-Length overflows
}

// endOfHead returns the length of the head at the start of b, including its empty line, or 0 if the empty line is not
// there yet. It searches from an offset, which must be the start of a line, and returns the offset for the next call.
// Lines may end in LF alone (RFC 9112, section 2.2).
func endOfHead(b []byte, from int) (end, next int) {
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0, from
		}
		if i == 0 || i == 1 && b[from] == '\r' {
			return from + i + 1, from + i + 1
		}
		from += i + 1
	}
}

// parse parses a complete head. A refusal holds for all paths: net/http refuses nearly the same, but in plain text,
// and callers of the API read JSON.
func (h *head) parse(text string, maxHeaders int) *refusal {
	*h = head{length: -1}
	line, rest := cutLine(text)
	if r := h.parseRequestLine(line); r != nil {
		return r
	}
	lines := strings.Count(rest, "\n") - 1
	if lines > maxHeaders {
		return errHeadersTooLarge
	}
	var r *refusal
	if h.headers, r = parseFields(rest, lines); r != nil {
		return r
	}
	return h.interpret()
}

func cutLine(text string) (line, rest string) {
	i := strings.IndexByte(text, '\n')
	if i < 0 {
		return text, ""
	}
	line, rest = text[:i], text[i+1:]
	if i > 0 && line[i-1] == '\r' {
		line = line[:i-1]
	}
	return line, rest
}

func (h *head) parseRequestLine(line string) *refusal {
	i := strings.IndexByte(line, ' ')
	j := strings.LastIndexByte(line, ' ')
	if i <= 0 || j <= i+1 {
		return malformed("The request line is malformed.")
	}
	h.method, h.target, h.proto = line[:i], line[i+1:j], line[j+1:]
	for k := range len(h.method) {
		if !token[h.method[k]] {
			return malformed("The request method is malformed.")
		}
	}
	for k := range len(h.target) {
		if b := h.target[k]; b <= ' ' || b == 0x7f {
			return malformed("The request target is malformed.")
		}
	}
	switch h.proto {
	case "HTTP/1.1":
		h.minor = 1
	case "HTTP/1.0":
		h.close = true
	default:
		if strings.HasPrefix(h.proto, "HTTP/") {
			return &refusal{status: http.StatusHTTPVersionNotSupported, code: codeBadRequest, message: "Only HTTP/1.1 and HTTP/1.0 are spoken here.", close: true}
		}
		return malformed("The request line is malformed.")
	}
	h.authority, h.path, h.query = splitTarget(h.target)
	return nil
}

// parseFields parses header lines up to the empty line, expecting about n. A folded line (RFC 9112, section 5.2) is
// joined by a space.
func parseFields(text string, n int) (hookglass.Headers, *refusal) {
	var fields hookglass.Headers
	if n > 0 {
		fields = make(hookglass.Headers, 0, n)
	}
	for text != "" {
		var line string
		line, text = cutLine(text)
		if line == "" {
			break
		}
		folded := line[0] == ' ' || line[0] == '\t'
		var name string
		if !folded {
			i := 0
			for i < len(line) && token[line[i]] {
				i++
			}
			if i == 0 || i == len(line) || line[i] != ':' {
				return nil, malformed("A header line is malformed.")
			}
			name, line = line[:i], line[i+1:]
		} else if len(fields) == 0 {
			return nil, malformed("The first header line is folded.")
		}
		value := trimBlank(line)
		for i := range len(value) {
			if b := value[i]; b < ' ' && b != '\t' || b == 0x7f {
				return nil, malformed("A header value holds a control character.")
			}
		}
		if !folded {
			fields = append(fields, hookglass.Header{Name: name, Value: value})
			continue
		}
		last := &fields[len(fields)-1]
		last.Value = trimBlank(last.Value + " " + value)
	}
	return fields, nil
}

func trimBlank(s string) string { return strings.Trim(s, " \t") }

// interpret extracts the fields that determine framing and the connection.
func (h *head) interpret() *refusal {
	var hosts, codings int
	length := "" // the value of the first Content-Length
	for i := range h.headers {
		name, value := h.headers[i].Name, h.headers[i].Value
		switch {
		case is(name, "Host"):
			hosts++
			h.host = value
		case is(name, "Expect"):
			h.expect = value
		case is(name, "Connection"):
			h.connection(value)
		case is(name, "Content-Length"):
			if again := h.length >= 0 || h.tooBig; again && value != length {
				return malformed("The Content-Length headers differ.")
			} else if !again && !h.parseLength(value) {
				return malformed("The Content-Length is not a number.")
			}
			length = value
		case is(name, "Transfer-Encoding"):
			codings++
			if h.chunked = strings.EqualFold(value, "chunked"); !h.chunked || codings > 1 {
				return &refusal{status: http.StatusNotImplemented, code: codeBadRequest, message: "The only transfer coding understood is chunked.", close: true}
			}
		}
	}
	switch {
	case hosts > 1:
		return malformed("There is more than one Host header.")
	case hosts == 0 && h.minor == 1:
		return malformed("The Host header is missing.")
	case h.chunked && (h.length >= 0 || h.tooBig):
		return malformed("There is both a Content-Length and a Transfer-Encoding.")
	case h.chunked && h.minor == 0:
		return malformed("HTTP/1.0 has no Transfer-Encoding.")
	}
	for _, host := range [...]string{h.host, h.authority} {
		for i := range len(host) {
			if !hostByte[host[i]] {
				return malformed("The Host is malformed.")
			}
		}
	}
	if h.authority != "" {
		h.host = h.authority // RFC 9112, section 3.2.2
	}
	return nil
}

// unpassable refuses what is well-formed, but net/http would refuse without JSON.
func (h *head) unpassable() *refusal {
	if _, err := url.ParseRequestURI(h.target); err != nil {
		return malformed("The request target is malformed.")
	}
	if h.expect != "" && !strings.EqualFold(h.expect, "100-continue") {
		return errExpectation
	}
	if h.tooBig {
		return errTooLarge
	}
	return nil
}

// is compares field names. It is called for every field, and most names differ in length.
func is(name, other string) bool { return len(name) == len(other) && strings.EqualFold(name, other) }

func (h *head) parseLength(value string) bool {
	if value == "" {
		return false
	}
	var n int64
	for i := range len(value) {
		d := value[i] - '0'
		if d > 9 {
			return false
		}
		if n > (1<<62)/10 {
			h.tooBig = true
		}
		if !h.tooBig {
			n = 10*n + int64(d)
		}
	}
	if !h.tooBig {
		h.length = n
	}
	return true
}

// connection parses the options of a Connection header (RFC 9112, section 9.3).
func (h *head) connection(value string) {
	for value != "" {
		var option string
		option, value, _ = strings.Cut(value, ",")
		switch option = trimBlank(option); {
		case strings.EqualFold(option, "close"):
			h.close = true
			return
		case h.minor == 0 && strings.EqualFold(option, "keep-alive"):
			h.close = false
		}
	}
}

// token and hostByte are the bytes allowed in a token (RFC 9110, section 5.6.2) and in a Host.
var (
	token    = bytesOf("!#$%&'*+-.^_`|~", alphanumeric)
	hostByte = bytesOf("!$%&'()*+,-.:;=[]_~", alphanumeric)
)

const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func bytesOf(sets ...string) (table [256]bool) {
	for _, set := range sets {
		for i := range len(set) {
			table[set[i]] = true
		}
	}
	return table
}
