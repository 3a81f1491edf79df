package capture

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
)

// customReply fills in the endpoint's own answer. Templates are {{request.method}}, {{request.path}},
// {{request.header.<name>}}, {{request.query.<name>}}, {{request.body}}, {{request.body</pointer>}}, {{event.id}},
// {{event.type}} and {{now}} (decisions, section 4). What is not known or not there is empty; what is filled in is
// never read as a template again. In a JSON answer a value inside a string is escaped for it.
func customReply(c *hookglass.Response, ev *hookglass.Event) *hookglass.Reply {
	r := &hookglass.Reply{Status: c.Status, Source: hookglass.SourceCustom, Delay: c.Delay}
	f := &filler{ev: ev}
	for _, name := range sortedKeys(c.Headers) {
		r.Headers = append(r.Headers, hookglass.Header{Name: name, Value: f.fill(c.Headers[name], oneLine)})
	}
	escape := verbatim
	if strings.Contains(strings.ToLower(r.Headers.Get("Content-Type")), "json") {
		escape = inJSONString
	}
	r.Body = []byte(f.fill(c.Body, escape))
	if len(r.Body) > 0 && !r.Headers.Has("Content-Type") {
		kind := "text/plain; charset=utf-8"
		if json.Valid(r.Body) {
			kind = "application/json"
		}
		r.Headers = append(r.Headers, hookglass.Header{Name: "Content-Type", Value: kind})
	}
	return r
}

// maxFilled bounds an answer: a template may name a large body many times.
const maxFilled = 4 << 20

// filler knows the values that templates may name.
type filler struct {
	ev     *hookglass.Event
	query  url.Values
	body   any
	parsed bool
}

// escaper makes a value fit for its place; quoted says that it stands between the quotes of a JSON string.
type escaper func(value string, quoted bool) string

func verbatim(v string, _ bool) string { return v }

// oneLine keeps a sender's line breaks and other control characters out of a header.
func oneLine(v string, _ bool) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return ' '
		}
		return r
	}, v)
}

func inJSONString(v string, quoted bool) string {
	if !quoted {
		return v
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return ""
	}
	s := strings.TrimSuffix(b.String(), "\n")
	return s[1 : len(s)-1]
}

func (f *filler) fill(text string, escape escaper) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	var b strings.Builder
	quoted := false
	for text != "" && b.Len() < maxFilled {
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
		quoted = insideQuotes(text[:open], quoted)
		b.WriteString(text[:open])
		b.WriteString(escape(f.value(strings.TrimSpace(text[open+2:open+end])), quoted))
		text = text[open+end+2:]
	}
	return b.String()
}

// insideQuotes reports whether a JSON text is inside a string at its end, given whether it began inside one.
func insideQuotes(text string, quoted bool) bool {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == '\\' && quoted:
			i++
		}
	}
	return quoted
}

func (f *filler) value(name string) string {
	switch name {
	case "request.method":
		return f.ev.Method
	case "request.path":
		return f.ev.Path
	case "request.body":
		return string(f.ev.Body)
	case "event.id":
		return string(f.ev.ID)
	case "event.type":
		return f.ev.EventType
	case "now":
		return time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	}
	if h, ok := strings.CutPrefix(name, "request.header."); ok {
		return f.ev.Headers.Get(h)
	}
	if q, ok := strings.CutPrefix(name, "request.query."); ok {
		if f.query == nil {
			f.query, _ = url.ParseQuery(f.ev.RawQuery) // what can be read of it
		}
		return f.query.Get(q)
	}
	if pointer, ok := strings.CutPrefix(name, "request.body"); ok && strings.HasPrefix(pointer, "/") {
		return f.member(pointer)
	}
	return ""
}

// member returns what a JSON Pointer (RFC 6901) finds in the body: strings as they are, the rest as JSON.
// The body of a form answers to the names of its fields.
func (f *filler) member(pointer string) string {
	if !f.parsed {
		f.parsed = true
		dec := json.NewDecoder(bytes.NewReader(f.ev.Body))
		dec.UseNumber()
		if err := dec.Decode(&f.body); err != nil || dec.Decode(new(any)) != io.EOF {
			f.body = form(f.ev.ContentType, f.ev.Body)
		}
	}
	at := f.body
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch v := at.(type) {
		case map[string]any:
			at = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) || strconv.Itoa(i) != token {
				return ""
			}
			at = v[i]
		default:
			return ""
		}
	}
	switch v := at.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(at); err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func form(contentType string, body []byte) any {
	if !strings.HasPrefix(strings.ToLower(contentType), "application/x-www-form-urlencoded") {
		return nil
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil
	}
	fields := make(map[string]any, len(values))
	for name := range values {
		fields[name] = values.Get(name)
	}
	return fields
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
