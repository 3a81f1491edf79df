package alert

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/email"
	"hookglass/internal/jsondoc"
	"hookglass/internal/query"
)

// validField reports whether keyword_match can search a field: a part of the event, or an RFC 6901 pointer into its
// body.
func validField(field string) bool {
	if slices.Contains(hookglass.KeywordFields, field) {
		return true
	}
	_, err := jsondoc.ParsePointer(field)
	return err == nil && field != "" && utf8.RuneCountInString(field) <= hookglass.MaxKeywordField
}

// matcher searches for a keyword. ASCII letters match in either case, as in a search.
type matcher struct {
	field     string
	contained func(text []byte) bool // reports whether a text contains the keyword
	verbatim  bool                   // a value in JSON has the keyword only where the text has it, or an escape of ASCII
}

func newMatcher(c hookglass.AlertConfig) matcher {
	verbatim := isASCII([]byte(c.Keyword)) && !strings.ContainsAny(c.Keyword, "\"\\/,:[]{}\b\f\n\r\t")
	return matcher{c.Field, query.Containing(c.Keyword), verbatim}
}

// in returns the field of an event, with its payload, that contains the keyword, or "".
func (m matcher) in(e *hookglass.Event) (where string) {
	if strings.HasPrefix(m.field, "/") {
		body, form := plain(e), hookglass.IsForm(e.ContentType)
		if m.verbatim && !form && !m.contained(body) && !bytes.Contains(body, []byte(`\u00`)) {
			return "" // most bodies, in a small part of the time that parsing them takes
		}
		if value, found := valueAt(body, form, m.field); found && m.contained(value) {
			return m.field
		}
		return ""
	}
	for _, field := range hookglass.KeywordFields[1:] {
		if m.field != field && m.field != hookglass.KeywordAny {
			continue
		}
		if slices.ContainsFunc(part(e, field), m.contained) {
			return field
		}
	}
	return ""
}

// part returns the values of one of KeywordFields, as displayed.
func part(e *hookglass.Event, field string) [][]byte {
	switch field {
	case hookglass.KeywordBody:
		return bodies(e)
	case hookglass.KeywordHeaders:
		return [][]byte{e.Headers.Readable().AppendWire(nil)}
	case hookglass.KeywordPath:
		return [][]byte{[]byte(hookglass.Readable(e.Path))}
	case hookglass.KeywordQuery:
		return [][]byte{[]byte(hookglass.Readable(e.RawQuery))}
	case hookglass.KeywordEventType:
		return [][]byte{[]byte(hookglass.Readable(e.EventType))}
	case hookglass.KeywordSubject:
		return [][]byte{[]byte(e.Subject)}
	case hookglass.KeywordFrom:
		return [][]byte{[]byte(e.From)}
	case hookglass.KeywordTo:
		return [][]byte{[]byte(e.To)}
	}
	return nil
}

// bodies returns the texts of a body: as received and, when it is compressed, decoded; of a mail, its readable parts.
func bodies(e *hookglass.Event) [][]byte {
	if e.Type == hookglass.EventEmail {
		m := email.Parse(e.Body)
		return [][]byte{[]byte(m.Text), []byte(m.HTML), []byte(m.Shown())}
	}
	if coding.Of(e.Headers) == "" {
		return [][]byte{e.Body}
	}
	return [][]byte{e.Body, plain(e)}
}

// maxPlain is how much of a compressed body is searched, as in a search by query.
const maxPlain = 1 << 20

func plain(e *hookglass.Event) []byte { return coding.Plain(e.Body, e.Headers, maxPlain) }

// valueAt returns the value of a JSON body, or of a form, at a pointer: a string's text, anything else as JSON.
func valueAt(body []byte, form bool, pointer string) ([]byte, bool) {
	p, err := jsondoc.ParsePointer(pointer)
	if err != nil {
		return nil, false
	}
	doc, err := jsondoc.ParseBody(body, form, jsondoc.Wide())
	if err != nil {
		return nil, false
	}
	value, found := doc.At(p)
	if !found {
		return nil, false
	}
	return []byte(value.Text()), true
}
