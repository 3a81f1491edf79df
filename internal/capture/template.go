package capture

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/coding"
	"hookglass/internal/jsondoc"
)

// customReply renders a custom answer. Templates are {{request.method}}, {{request.path}}, {{request.header.<name>}},
// {{request.query.<name>}}, {{request.body}}, {{request.body</pointer>}}, {{event.id}}, {{event.type}} and {{now}}
// (spec: decisions, section 4). Unknown and missing values are empty, and values are never expanded again. In a JSON
// answer, a value within a string is escaped and any other is inserted as JSON, with null for a missing one (spec:
// decisions, section 13, Templates). Without a Content-Type, an answer whose template is an object or an array is JSON.
func customReply(c *hookglass.Response, ev *hookglass.Event) *hookglass.Reply {
	r := &hookglass.Reply{Status: c.Status, Source: hookglass.SourceCustom, Delay: c.Delay}
	f := &filler{ev: ev}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		if value, whole := f.fill(c.Headers[name], maxHeaderFilled, oneLine); whole && len(value) <= maxHeaderFilled {
			r.Headers = append(r.Headers, hookglass.Header{Name: name, Value: value})
		}
	}
	escape, kind := verbatim, r.Headers.Get("Content-Type")
	if strings.Contains(strings.ToLower(kind), "json") || kind == "" && makesJSON(c.Body) {
		escape = inJSON
	}
	body, _ := f.fill(c.Body, maxFilled+2*len(ev.Body), escape)
	r.Body = []byte(body)
	if len(r.Body) > 0 && !r.Headers.Has("Content-Type") {
		kind = "text/plain; charset=utf-8"
		if json.Valid(r.Body) {
			kind = "application/json"
		}
		r.Headers = append(r.Headers, hookglass.Header{Name: "Content-Type", Value: kind})
	}
	return r
}

var placeholder = regexp.MustCompile(`(?s)\{\{.*?\}\}`)

// makesJSON reports whether a template is a JSON object or array with placeholders.
func makesJSON(template string) bool {
	if !strings.Contains(template, "{{") {
		return false
	}
	filled := strings.TrimLeft(placeholder.ReplaceAllString(template, "0"), " \t\r\n")
	return (strings.HasPrefix(filled, "{") || strings.HasPrefix(filled, "[")) && json.Valid([]byte(filled))
}

// Bounds of rendering.
const (
	maxFilled       = 4 << 20   // of an answer, plus twice the body for its escapes: a template may name it many times
	maxHeaderFilled = 8 << 10   // of a header, as for endpoints: clients reject longer lines, so it is left out
	maxDecompressed = 1 << 20   // of a body, as in searches
	maxRead         = 128 << 20 // of a body, by all values together: each is parsed to its end, with its parents
	maxFields       = 10_000    // of a query, a form, an object or an array, as in net/url: 25 MiB could hold millions
)

// filler provides the values that templates name.
type filler struct {
	ev    *hookglass.Event
	query map[string]string // parsed on first use: a template may name many parameters of a long query
	whole *filling          // on first use, like body: each is read once, however often it is named
	body  *branch
	read  int // bytes of the body parsed so far
}

// filling is the value of a placeholder.
type filling struct {
	text  string
	json  bool // text is JSON rather than a string
	there bool // the value exists; otherwise text is ""
	head  bool // it comes from the request's head, which is short
}

func word(text string, there bool) filling { return filling{text: text, there: there} }

func inHead(text string, there bool) filling { return filling{text: text, there: there, head: true} }

// escaper escapes a value for its place, unless the result exceeds the room. quoted says that the place is within a
// JSON string.
type escaper func(value filling, quoted bool, room int) (string, bool)

func verbatim(v filling, _ bool, room int) (string, bool) { return v.text, len(v.text) <= room }

// oneLine replaces line breaks and other control characters from a sender in a header value.
func oneLine(v filling, _ bool, room int) (string, bool) {
	if len(v.text) > room {
		return "", false
	}
	line := []byte(v.text)
	for i, c := range line { // by bytes: a header may hold invalid UTF-8
		if c < ' ' && c != '\t' || c == 0x7f {
			line[i] = ' '
		}
	}
	return string(line), true
}

func inJSON(v filling, quoted bool, room int) (string, bool) {
	if v.head {
		v.text = hookglass.Readable(v.text) // JSON cannot hold invalid UTF-8
	}
	switch {
	case !quoted && !v.there:
		return "null", true
	case !quoted && v.json:
		text := jsondoc.Unmarked(v.text)
		return text, len(text) <= room
	case quotedSize(v.text) > room:
		return "", false
	}
	text := quote(v.text)
	if quoted {
		text = text[1 : len(text)-1]
	}
	return text, true
}

// quotedSize returns the maximum length of a text as a JSON string: invalid bytes and control characters take six each.
func quotedSize(text string) int {
	size := len(`""`)
	for _, r := range text {
		switch {
		case r < ' ' || r == utf8.RuneError || r == '\u2028' || r == '\u2029':
			size += len(`\u0000`)
		case r == '"' || r == '\\':
			size += 2
		default:
			size += utf8.RuneLen(r)
		}
	}
	return size
}

// quote encodes a JSON string.
func quote(text string) string {
	quoted, _ := api.JSON(text) // of a string it never fails
	return string(quoted)
}

// fill renders a template and reports whether it is complete: a value that exceeds the room, and all values after it,
// count as missing.
func (f *filler) fill(text string, room int, escape escaper) (filled string, whole bool) {
	if !strings.Contains(text, "{{") {
		return text, true
	}
	var b strings.Builder
	quoted, whole := false, true
	for text != "" {
		open := strings.Index(text, "{{")
		if open < 0 {
			b.WriteString(text)
			break
		}
		end := strings.Index(text[open:], "}}")
		if end < 0 {
			b.WriteString(text)
			break
		}
		inner := strings.LastIndex(text[open:open+end], "{{") // braces before it are text
		open, end = open+inner, end-inner
		quoted = jsondoc.EndsInString(text[:open], quoted)
		b.WriteString(text[:open])
		var value filling
		if whole {
			value = f.value(strings.TrimSpace(text[open+2 : open+end]))
		}
		written, fits := escape(value, quoted, room)
		if !fits {
			whole = false
			written, _ = escape(filling{}, quoted, room)
		}
		b.WriteString(written)
		room -= len(written)
		text = text[open+end+2:]
	}
	return b.String(), whole
}

func (f *filler) value(name string) filling {
	switch name {
	case "request.method":
		return word(f.ev.Method, true)
	case "request.path":
		return inHead(f.ev.Path, true)
	case "request.body":
		if f.whole == nil {
			f.whole = &filling{text: string(f.ev.Body), json: json.Valid(jsondoc.Unmarked(f.ev.Body)), there: len(f.ev.Body) > 0}
		}
		return *f.whole
	case "event.id":
		return word(string(f.ev.ID), true)
	case "event.type":
		return word(f.ev.EventType, f.ev.EventType != "")
	case "now":
		return word(time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), true)
	}
	if h, ok := strings.CutPrefix(name, "request.header."); ok {
		return inHead(f.ev.Headers.Get(h), f.ev.Headers.Has(h))
	}
	if q, ok := strings.CutPrefix(name, "request.query."); ok {
		if f.query == nil {
			f.query = firsts(f.ev.RawQuery)
		}
		value, there := f.query[q]
		return inHead(value, there)
	}
	if pointer, ok := strings.CutPrefix(name, "request.body"); ok && strings.HasPrefix(pointer, "/") {
		return f.member(pointer)
	}
	return filling{}
}

// unescaped decodes a token of a pointer (RFC 6901, section 4).
var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// member returns the value at a JSON Pointer (RFC 6901) in the body: strings as they are, anything else as JSON with
// the order of its members kept. For a form, pointers name its fields, and go on in the JSON that one holds. A
// compressed body is decompressed.
func (f *filler) member(pointer string) filling {
	if f.body == nil {
		plain := coding.Plain(f.ev.Body, f.ev.Headers, maxDecompressed)
		f.body = &branch{text: jsondoc.Unmarked(plain)}
		if !json.Valid(f.body.text) {
			f.body = form(f.ev, plain)
		}
	}
	at := f.body
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if !at.opened && !f.may(at.text) {
			return filling{}
		}
		if at = at.member(unescaped.Replace(token)); at == nil {
			return filling{}
		}
	}
	if at.value == nil {
		if !f.may(at.text) {
			return filling{}
		}
		value := written(at.text)
		at.value = &value
	}
	return *at.value
}

// may counts text as parsed and reports whether the bound permits that.
func (f *filler) may(text []byte) bool {
	f.read += len(text)
	return f.read <= maxRead
}

// written converts a JSON value to a filling.
func written(raw json.RawMessage) filling {
	var text *string
	if err := json.Unmarshal(raw, &text); err == nil {
		if text == nil { // null
			return filling{}
		}
		return word(*text, true)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return filling{}
	}
	return filling{text: b.String(), json: true, there: true}
}

// branch is a JSON value that is parsed on first use, and then only once.
type branch struct {
	text    json.RawMessage
	value   *filling // nil until used
	opened  bool
	members map[string]*branch // by name, or by index
}

// member returns the value of a name or index, or nil if there is none.
func (b *branch) member(token string) *branch {
	if !b.opened {
		b.opened = true
		b.members = make(map[string]*branch)
		fields := 0
		for name, text := range jsondoc.Children(b.text) {
			if fields++; fields > maxFields {
				break
			}
			b.members[name] = &branch{text: text}
		}
	}
	return b.members[token]
}

// form returns the fields of a form as a branch. Each is a text, and what is within is that of the JSON in it.
func form(ev *hookglass.Event, body []byte) *branch {
	b := &branch{text: json.RawMessage("null"), opened: true}
	if !hookglass.IsForm(ev.ContentType) {
		return b
	}
	b.members = make(map[string]*branch)
	for name, value := range firsts(string(body)) {
		value = hookglass.Readable(value)
		asText := word(value, true)
		b.members[name] = &branch{text: json.RawMessage(value), value: &asText}
	}
	return b
}

// firsts returns the first value of each name of a query or a form, among the first maxFields.
func firsts(raw string) map[string]string {
	values := make(map[string]string)
	fields := 0
	for name, value := range hookglass.Pairs(raw) {
		if fields++; fields > maxFields {
			break
		}
		name = hookglass.Readable(name)
		if _, repeated := values[name]; !repeated {
			values[name] = value
		}
	}
	return values
}
