package bundle

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/provider"
	"hookglass/internal/redact"
)

// draft is an event that is being edited for a bundle.
type draft struct {
	method, path, query string
	hasQuery            bool
	headers             hookglass.Headers
	body                []byte
	packed              bool // the body's compression is not supported
	own                 func(name string) bool
}

// host replaces the receiver's host: with an endpoint's address anybody could send to it.
const host = "bundle.example"

// leftOut are fields that describe the connection, or the original body.
var leftOut = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Upgrade",
	"Content-MD5", "Digest", "Content-Digest", "Repr-Digest", "X-Amz-Content-Sha256"}

// open splits a request into a draft.
func open(s Source) draft {
	d := draft{method: s.Request.Method, body: s.Request.Body, headers: slices.Clone(s.Request.Headers)}
	d.path, d.query, d.hasQuery = strings.Cut(s.Request.URL, "?")
	if !strings.HasPrefix(d.path, "/") {
		d.path = "/" + d.path
	}
	d.path, d.query = inText(d.path), inText(d.query)
	kept := provider.Strip(provider.Detection{Provider: s.Provider}, d.headers, s.Configs...)
	d.own = func(name string) bool { return !kept.Has(name) } // signature headers: their places are for the new signature
	if plain, err := coding.Decoded(d.body, coding.Of(d.headers), MaxBytes+1); err == nil || errors.Is(err, coding.ErrLonger) {
		d.body = plain
	} else {
		d.packed = true
	}
	return d
}

// inText percent-encodes the bytes of a path or a query that are not text, which JSON could not hold.
func inText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, "%%%02X", s[i])
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// draft applies the replacements to a request.
func (m *Maker) draft(d draft) draft {
	var segments []string
	for segment := range strings.SplitSeq(d.path, "/") {
		segments = append(segments, m.text(segment, spot{source: "path", shown: "path"}, 0))
	}
	d.path = strings.Join(segments, "/")
	d.query = m.form(d.query, "query")
	headers := make(hookglass.Headers, 0, len(d.headers))
	for _, h := range d.headers {
		switch own := d.own(h.Name); {
		case slices.ContainsFunc(leftOut, func(name string) bool { return strings.EqualFold(name, h.Name) }):
			continue
		case strings.EqualFold(h.Name, "Content-Encoding") && !d.packed:
			continue
		case own:
		case redact.SensitiveHeader(h.Name) && !covered(m.keep, spot{source: "header", path: []string{h.Name}}):
			if m.collect {
				m.credential(h)
			}
			m.note("header:"+h.Name, Removed)
			continue
		default:
			h.Value = m.text(hookglass.Readable(h.Value), spot{source: "header", path: []string{h.Name}, name: h.Name, shown: "header:" + h.Name}, 1)
		}
		headers = append(headers, h)
	}
	d.body = m.body(d)
	d.headers = headers
	return d
}

// credential collects the credentials of a header, so that they are replaced everywhere.
func (m *Maker) credential(h hookglass.Header) {
	value := h.Value
	if scheme, rest, found := strings.Cut(value, " "); found && len(scheme) <= 10 {
		value = rest
	}
	for part := range strings.SplitSeq(value, ";") {
		if name, v, found := strings.Cut(part, "="); found && strings.Contains(strings.ToLower(h.Name), "cookie") && len(name) < 60 {
			part = v
		}
		if len(part) >= 8 {
			m.known.add(part, Token, true)
		}
	}
}

// body applies the replacements to a body, according to its format.
func (m *Maker) body(d draft) []byte {
	switch {
	case len(d.body) == 0:
		return d.body
	case d.packed:
		return m.binary(d.body, "body")
	}
	// Try JSON whatever the header says: curl labels everything it posts as a form.
	if out, ok := m.json(d.body, spot{}, 0); ok {
		return out
	}
	media, params, _ := mime.ParseMediaType(d.headers.Get("Content-Type"))
	switch {
	case media == "multipart/form-data" && params["boundary"] != "":
		return m.parts(d.body, params["boundary"])
	case !isText(d.body):
		return m.binary(d.body, "body")
	case media == "application/x-www-form-urlencoded":
		return []byte(m.form(string(d.body), ""))
	}
	return []byte(m.text(string(d.body), spot{shown: "body"}, 0))
}

// binary replaces content that cannot be examined.
func (m *Maker) binary(b []byte, shown string) []byte {
	if m.keepKinds[Binary] {
		return b
	}
	m.note(shown, Binary)
	return nil
}

// form edits the values of a form or a query in place.
func (m *Maker) form(s, source string) string {
	if s == "" {
		return s
	}
	pairs := strings.Split(s, "&")
	for i, pair := range pairs {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, writeName := unescaped(rawName)
		value, writeValue := unescaped(rawValue)
		at := spot{source: source, path: []string{name}, name: name, shown: "query:" + name}
		if source == "" {
			at.shown = pointer([]string{name}, nil)
		}
		if newName := m.text(name, spot{source: "path", shown: at.shown}, maxNested); newName != name {
			rawName, at.shown = writeName(newName), cmp.Or(source, "body")
		}
		if put := m.text(value, at, 0); put != value {
			rawValue = writeValue(put)
		}
		if strings.Contains(pair, "=") {
			rawName += "=" + rawValue
		}
		pairs[i] = rawName
	}
	return strings.Join(pairs, "&")
}

// unescaped decodes a part of a form, and returns how to encode its replacement. A part with invalid escapes is taken
// as it is.
func unescaped(raw string) (s string, write func(string) string) {
	if s, err := url.QueryUnescape(raw); err == nil && utf8.ValidString(s) {
		return s, url.QueryEscape
	}
	return raw, func(s string) string { return s }
}

// parts edits the parts of a multipart form in place: fields are text; files are edited if they are text, and left out
// otherwise.
func (m *Maker) parts(body []byte, boundary string) []byte {
	mark := []byte("--" + boundary)
	pieces := bytes.Split(body, mark)
	for i, piece := range pieces {
		end := "\r\n"
		head, content, found := bytes.Cut(piece, []byte(end+end))
		if at := bytes.Index(head, []byte("\n\n")); at >= 0 { // some senders omit the CR
			end, found = "\n", true
			head, content = piece[:at], piece[at+2:]
		}
		switch {
		case found:
			pieces[i] = m.part(head, content, end)
		case isText(piece):
			pieces[i] = []byte(m.text(string(piece), spot{shown: "body"}, 0))
		default:
			pieces[i] = m.binary(piece, "body")
		}
	}
	return bytes.Join(pieces, mark)
}

// part edits one part; end is its line end.
func (m *Maker) part(head, content []byte, end string) []byte {
	content, tail := bytes.CutSuffix(content, []byte(end))
	name := ""
	var lines []string
	for line := range strings.SplitSeq(strings.ToValidUTF8(string(head), "?"), end) {
		if field, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(field, "Content-Disposition") {
			if _, params, err := mime.ParseMediaType(strings.TrimSpace(value)); err == nil {
				name = params["name"]
			}
		}
		lines = append(lines, m.text(line, spot{source: "path", shown: "body"}, maxNested))
	}
	at := spot{path: []string{name}, name: name, shown: pointer([]string{name}, nil)}
	if isText(content) {
		content = []byte(m.text(string(content), at, 0))
	} else {
		content = m.binary(content, at.shown)
	}
	out := slices.Concat([]byte(strings.Join(lines, end)), []byte(end+end), content)
	if tail {
		out = append(out, end...)
	}
	return out
}

// isText reports whether bytes can be examined as text. No encoding of text but UTF-16 and UTF-32 contains zeros.
func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// seal signs a request again and returns it as an event of the bundle.
func (d draft) seal(s Source, number int) Event {
	target := d.path
	if d.hasQuery {
		target += "?" + d.query
	}
	out := provider.Outgoing{Method: d.method, URL: "https://" + host + target, Headers: d.headers, Body: d.body}
	found := provider.Detection{Provider: s.Provider}
	e := Event{Number: number, Type: string(s.Type), Provider: s.Provider, ReceivedAt: s.ReceivedAt.UTC()}
	config, ok := provider.Published(found, s.Verifier, s.Configs)
	var err error
	switch {
	case s.Type == hookglass.EventEmail:
		e.Unsigned = "mail carries no signature of a webhook"
	case ok:
		if out, err = provider.SignAlone(out, found, s.Configs, config, e.ReceivedAt); err == nil {
			e.Signature = newSignature(config)
		} else {
			e.Unsigned = "the body has no place for the sender's signature"
		}
	default:
		out.Headers = provider.Strip(found, out.Headers, s.Configs...)
		if e.Unsigned = "deliveries of this sender cannot be signed with a shared secret"; s.Provider == hookglass.UnknownProvider {
			e.Unsigned = "its sender is not known, no signature config verified it, and the endpoint has no generic_hmac config"
		}
	}
	headers := append(hookglass.Headers{{Name: "Host", Value: host}}, out.Headers...)
	if len(out.Body) > 0 || d.method != "GET" && d.method != "HEAD" {
		headers = append(headers, hookglass.Header{Name: "Content-Length", Value: strconv.Itoa(len(out.Body))})
	}
	e.write(d.method, Target(out), headers, out.Body)
	if s.Type == hookglass.EventWebhook {
		e.describe(s.Provider)
	}
	return e
}
