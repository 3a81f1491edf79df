package query

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/email"
)

// Match reports whether the event matches the query. Terms on parts that [Query.Reads] names need the event's payload;
// in list form those parts are empty.
func (q Query) Match(e *hookglass.Event) bool {
	body := reader{event: e}
	for _, t := range q.terms {
		if t.holds(e, &body) == t.Not {
			return false
		}
	}
	return true
}

// maxDecoded bounds how much of a compressed body is decoded: searches have a deadline, and few bytes can expand to
// many.
const maxDecoded = 1 << 20

// reader decodes an event's body on first use, once for all terms.
type reader struct {
	event *hookglass.Event
	plain []byte
	read  bool
	cut   bool // plain is only the beginning
	mail  *email.Message
	texts [][]byte // see shown
}

func (r *reader) message() *email.Message {
	if r.mail == nil {
		r.mail = email.Parse(r.event.Body)
	}
	return r.mail
}

// shown returns the texts of a mail, which may be encoded in the body.
func (r *reader) shown() [][]byte {
	if r.texts == nil {
		m := r.message()
		r.texts = [][]byte{[]byte(m.Text), []byte(m.HTML), []byte(m.Shown())}
	}
	return r.texts
}

// decoded returns the body without its content coding, or nil if it has none or cannot be decoded.
func (r *reader) decoded() []byte {
	if !r.read {
		r.read = true
		if of := coding.Of(r.event.Headers); of != "" {
			var err error
			r.plain, err = coding.Decoded(r.event.Body, of, maxDecoded)
			r.cut = err != nil // use what precedes an error
		}
	}
	return r.plain
}

// text returns the body without its content coding, or as it is if it cannot be decoded.
func (r *reader) text() []byte {
	if plain := r.decoded(); plain != nil {
		return plain
	}
	return r.event.Body
}

// maxFields bounds how many fields of one name are read in a form. Each costs far more than an element of an array.
const maxFields = 1000

// documents yields the JSON that a pointer leads into: the body, or each field of a form that its first token names, of
// which the first maxFields count. rest is the pointer from there.
func (r *reader) documents(pointer string) (documents iter.Seq[[]byte], rest string) {
	form, ok := r.form()
	if !ok {
		return func(yield func([]byte) bool) { yield(r.text()) }, pointer
	}
	name := pointer[1:]
	if i := strings.IndexByte(name, '/'); i >= 0 {
		name, rest = name[:i], name[i:]
	}
	for token := range jsontext.Pointer("/" + name).Tokens() {
		name = token
	}
	return func(yield func([]byte) bool) {
		left := maxFields
		for n, value := range hookglass.Pairs(form) {
			if hookglass.Readable(n) != name {
				continue
			}
			if left--; left < 0 {
				return
			}
			document := []byte(hookglass.Readable(value))
			if rest == "" {
				document, _ = jsontext.AppendQuote(nil, document) // it fails for what is not UTF-8
			}
			if !yield(document) {
				return
			}
		}
	}, rest
}

// form returns the fields of a form, and false for any other body, also for JSON: curl calls everything that it posts a
// form. A field at the end of a body that was cut counts as missing.
func (r *reader) form() (string, bool) {
	if !hookglass.IsForm(r.event.ContentType) {
		return "", false
	}
	text := r.text()
	if start := bytes.TrimLeft(text, "\ufeff \t\r\n"); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		return "", false
	}
	if r.cut || int64(len(r.event.Body)) < r.event.Size {
		text = text[:bytes.LastIndexByte(text, '&')+1]
	}
	return string(text), true
}

func (t *Term) holds(e *hookglass.Event, body *reader) bool {
	switch t.Field {
	case Text:
		return t.inText(e, body)
	case Kind:
		return t.Pattern.Match(string(e.Type))
	case Provider:
		return t.Pattern.Match(e.Provider)
	case EventType:
		return t.Pattern.Match(hookglass.Readable(e.EventType))
	case Signature:
		return t.Pattern.Match(string(e.SignatureStatus))
	case Method:
		return t.Pattern.Match(e.Method)
	case Status:
		return e.Status != 0 && t.includes(int64(e.Status))
	case Path:
		return t.Pattern.Match(hookglass.Readable(e.Path))
	case Header:
		return t.inHeaders(e)
	case Parameter:
		return t.inQuery(e.RawQuery)
	case Body:
		return t.inBody(e, body)
	case ContentType:
		return e.ContentType != "" && t.Pattern.Match(strings.ReplaceAll(hookglass.Readable(e.ContentType), " ;", ";")+";")
	case IP:
		return t.Pattern.Match(e.IP)
	case Tag:
		return slices.ContainsFunc(e.Tags, t.Pattern.Match)
	case Note:
		return t.Pattern.Match(e.Note)
	case From:
		return t.Pattern.Match(e.From)
	case To:
		return t.Pattern.Match(e.To)
	case Subject:
		return t.Pattern.Match(e.Subject)
	case Attachment:
		return e.Type == hookglass.EventEmail && e.Payload != nil && slices.ContainsFunc(body.message().Attachments, t.isAttachment)
	case Received:
		return t.includes(e.ReceivedAt.UnixMicro())
	case Size:
		return t.includes(e.Size)
	case Ignored:
		return e.Ignored != ""
	case Delivery:
		return t.inDeliveries(e)
	case Tunnel:
		return t.Pattern.Match(string(cmp.Or(e.Tunnel, NoDelivery)))
	case ID:
		return t.Pattern.Match(string(e.ID))
	}
	return false
}

// inDeliveries examines the states that [Query.ReadsDeliveries] asks for. A delivery being sent counts as pending.
func (t *Term) inDeliveries(e *hookglass.Event) bool {
	if t.Pattern.Match(NoDelivery) {
		return len(e.Deliveries) == 0
	}
	return slices.ContainsFunc(e.Deliveries, func(s hookglass.ForwardState) bool {
		if s == hookglass.ForwardSending {
			s = hookglass.ForwardPending
		}
		return t.Pattern.Match(string(s))
	})
}

// isAttachment reports whether a file of a mail has the name, or, for has:attachment, is not one that its HTML shows.
func (t *Term) isAttachment(f email.File) bool {
	if len(t.Pattern.parts) == 0 {
		return !f.Inline
	}
	return t.Pattern.Match(f.Filename)
}

func (t *Term) includes(n int64) bool { return t.Min <= n && n <= t.Max }

func (t *Term) inText(e *hookglass.Event, body *reader) bool {
	said := []string{e.Path, e.RawQuery, e.Subject, e.From, e.To}
	if e.Payload != nil && e.Envelope != nil { // blind copies are nowhere else
		said = append(append(said, e.Envelope.From), e.Envelope.To...)
	}
	for _, s := range said {
		if t.Pattern.contained([]byte(hookglass.Readable(s))) {
			return true
		}
	}
	if e.Payload == nil {
		return false
	}
	if t.Pattern.contained(e.Headers.Readable().AppendWire(nil)) || t.Pattern.contained(e.Body) {
		return true
	}
	if e.Type != hookglass.EventEmail {
		return t.Pattern.contained(body.decoded())
	}
	return slices.ContainsFunc(body.shown(), t.Pattern.contained)
}

func (t *Term) inHeaders(e *hookglass.Event) bool {
	if e.Payload == nil {
		return false
	}
	for _, h := range e.Headers {
		if len(h.Name) == len(t.Name) && foldString(h.Name) == t.Name && t.present(hookglass.Readable(strings.Trim(h.Value, " \t"))) {
			return true
		}
	}
	return false
}

func (t *Term) inQuery(raw string) bool {
	for name, value := range hookglass.Pairs(raw) {
		if hookglass.Readable(name) == t.Name && t.present(hookglass.Readable(value)) {
			return true
		}
	}
	return false
}

// present is Match for a value that exists even if it is empty: a lone wildcard matches it.
func (t *Term) present(value string) bool { return t.Pattern.matchFolded(foldString(value)) }

func (t *Term) inBody(e *hookglass.Event, body *reader) bool {
	if e.Payload == nil {
		return false
	}
	documents, rest := body.documents(t.Name)
	for document := range documents {
		if value, ok := valueAt(document, rest); ok && t.present(value) {
			return true
		}
	}
	return false
}

// valueAt returns the value at an RFC 6901 pointer: the text of a string, anything else as written. It parses only up
// to that value, so the rest need not be JSON. A number at the end of the body may be a part of one that was cut, and
// counts as missing.
func valueAt(body []byte, pointer string) (string, bool) {
	d, ok := enter(body, pointer)
	if !ok {
		return "", false
	}
	kind := d.PeekKind()
	if kind == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return "", false
		}
		return token.String(), true
	}
	value, err := d.ReadValue()
	return string(value), err == nil && (kind != '0' || len(d.UnreadBuffer()) > 0)
}

// enter returns a decoder that stands before the value at a pointer.
func enter(body []byte, pointer string) (*jsontext.Decoder, bool) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")) // as elsewhere
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for token := range jsontext.Pointer(pointer).Tokens() {
		switch d.PeekKind() {
		case '{':
			if !enterMember(d, token) {
				return nil, false
			}
		case '[':
			if !enterElement(d, token) {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return d, true
}

func enterMember(d *jsontext.Decoder, name string) bool {
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return false
		}
		if token.String() == name {
			return true
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}

func enterElement(d *jsontext.Decoder, index string) bool {
	n, err := strconv.Atoi(index)
	if err != nil || strconv.Itoa(n) != index || n < 0 { // RFC 6901, section 4: no sign, no leading zero
		return false
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for ; n > 0; n-- {
		if d.PeekKind() == ']' || d.SkipValue() != nil {
			return false
		}
	}
	return d.PeekKind() != ']' && d.PeekKind() != 0
}
