package action

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/jsondoc"
)

// Bounds of what templates make (spec: decisions, section 8).
const (
	maxURL      = 2_048     // characters
	maxHeaders  = 50        // of one request
	MaxRendered = 256 << 10 // bytes of a body, and of any other text
	maxTemplate = 256 << 10 // bytes of a template
	maxNames    = 1_000     // placeholders in one template
)

// Place is where a rendered text goes: it decides how values are escaped.
type Place int

// The places (spec: decisions, section 13, "Templates").
const (
	InText   Place = iota // as it is; objects and arrays as compact JSON
	InJSON                // escaped inside a string literal; elsewhere as JSON, where null is a value, too
	InForm                // percent-encoded, unless the template is nothing but the value
	InURL                 // likewise
	InHeader              // as it is; control characters fail
)

// inLine reports whether the text is part of a line, where control characters fail.
func (p Place) inLine() bool { return p == InHeader || p == InURL }

// Template is a text with placeholders, {{ name.path }} and {{ secrets.NAME }}, and nothing else: no logic, no code. A
// value that is inserted is never parsed as a template again. It is safe for concurrent use.
type Template struct {
	place Place
	parts []part
	tail  string
}

// part is a literal text with the placeholder behind it.
type part struct {
	literal string
	name    string   // as it was written, without spaces
	root    string   // of a placeholder of the context; empty for secrets and variables
	tokens  []string // below the root; of a secret its name
	unknown string   // what is wrong with the name; empty: nothing
	at      int      // where its braces open, counted in characters from 1
	quoted  bool     // inside a string literal of JSON
	escaped bool     // inside an escape sequence of it, which the value would end
}

// TemplateError says what is wrong with a template, or why it cannot be rendered. It never holds a value.
type TemplateError struct {
	At      int // the character at which the placeholder begins, counted from 1; 0: the whole
	Message string
}

func (e *TemplateError) Error() string {
	if e.At == 0 {
		return e.Message
	}
	return fmt.Sprintf("at character %d: %s", e.At, e.Message)
}

// roots are the names that placeholders and sources begin with.
var roots = []string{"request", "provider", "email", "endpoint", "steps"}

// ParseTemplate parses a template. Its error is a *TemplateError: braces that do not close, or that hold something
// other than a dotted name. An unknown name is an error of Render (spec: decisions, section 8).
func ParseTemplate(text string, place Place) (*Template, error) {
	t, err := scan(text, place)
	if err != nil {
		return nil, err
	}
	for i := range t.parts {
		p := &t.parts[i]
		names := strings.Split(p.name, ".")
		switch {
		case names[0] == "secrets":
			if len(names) != 2 || !hookglass.ValidSecretName(names[1]) {
				p.unknown = "a secret is named as secrets.NAME"
			}
		case !slices.Contains(roots, names[0]):
			p.unknown = fmt.Sprintf("%q is not known; a name begins with request, provider, email, endpoint, steps or secrets", names[0])
		case names[0] == "steps" && len(names) < 2:
			p.unknown = "a step is named as steps.reference_key"
		default:
			p.root = names[0]
		}
		p.tokens = names[1:]
	}
	return t, nil
}

// ParseMessage reads the message of a notify step, whose placeholders are the variables of the specification. It fails
// as ParseTemplate does.
func ParseMessage(text string) (*Template, error) {
	t, err := scan(text, InText)
	if err != nil {
		return nil, err
	}
	for i := range t.parts {
		p := &t.parts[i]
		p.unknown = fmt.Sprintf("%q is not known; a message may name %s", p.name, strings.Join(messageVariables, ", "))
	}
	return t, nil
}

var messageVariables = []string{"endpoint_name", "endpoint_id", "request_id", "event_type", "provider"}

// scan finds the placeholders. Closing braces without opening ones are text: JSON is full of them.
func scan(text string, place Place) (*Template, error) {
	switch {
	case len(text) > maxTemplate:
		return nil, &TemplateError{0, "the template is larger than 256 KiB"}
	case !utf8.ValidString(text):
		return nil, &TemplateError{0, "the template is not UTF-8"}
	}
	t := &Template{place: place}
	rest, quoted := text, false
	before := 0 // characters before rest, kept because counting anew for each of many placeholders takes a second
	for {
		open := strings.Index(rest, "{{")
		if open < 0 {
			break
		}
		before += utf8.RuneCountInString(rest[:open])
		at := before + 1
		if fault := checkLiteral(rest[:open], place); fault != nil {
			return nil, fault
		}
		quoted = jsondoc.EndsInString(rest[:open], quoted)
		inside, after, closed := strings.Cut(rest[open+2:], "}}")
		name := strings.Trim(inside, " \t\r\n")
		switch {
		case !closed:
			return nil, &TemplateError{at, "the braces that open here are not closed"}
		case name == "":
			return nil, &TemplateError{at, "the braces hold no name"}
		case !validName(name):
			return nil, &TemplateError{at, "the braces hold more than a dotted name"}
		case len(t.parts) == maxNames:
			return nil, &TemplateError{at, "there are more than 1,000 placeholders"}
		}
		t.parts = append(t.parts, part{
			literal: rest[:open], name: name, at: at, quoted: quoted,
			escaped: place == InJSON && quoted && jsondoc.EndsInEscape(rest[:open]),
		})
		before += utf8.RuneCountInString(rest[open : len(rest)-len(after)])
		rest = after
	}
	if fault := checkLiteral(rest, place); fault != nil {
		return nil, fault
	}
	t.tail = rest
	return t, nil
}

func checkLiteral(s string, place Place) error {
	if place.inLine() && strings.ContainsFunc(s, unicode.IsControl) {
		return &TemplateError{0, "may not hold control characters"}
	}
	return nil
}

// validName reports whether s is a dotted name of letters, digits and the marks that names of fields and headers are
// made of.
func validName(s string) bool {
	for segment := range strings.SplitSeq(s, ".") {
		if segment == "" {
			return false
		}
		for _, r := range segment {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-$@:/#+*~!", r) {
				return false
			}
		}
	}
	return true
}

// jsonLines are the media types of several JSON values, one after another.
var jsonLines = []string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines", "application/json-seq"}

// BodyPlace is the place of a body with this Content-Type; lines of JSON are JSON, too. Without a Content-Type, or with
// one that is a template itself, a body is JSON when it begins like an object or an array.
func BodyPlace(contentType, body string) Place {
	body = strings.TrimLeft(body, " \t\r\n")
	switch {
	case contentType != "" && !strings.Contains(contentType, "{{"):
		switch {
		case isJSON(contentType) || slices.Contains(jsonLines, mediaType(contentType)):
			return InJSON
		case hookglass.IsForm(contentType):
			return InForm
		}
	case strings.HasPrefix(body, "["), strings.HasPrefix(body, "{") && !strings.HasPrefix(body, "{{"):
		return InJSON
	}
	return InText
}

// Secrets are the names of the secrets that the template names, each once.
func (t *Template) Secrets() []string {
	var names []string
	for _, p := range t.parts {
		if p.root == "" && p.unknown == "" && !slices.Contains(names, p.tokens[0]) {
			names = append(names, p.tokens[0])
		}
	}
	return names
}

// Steps are the reference keys of the steps that the template names, each once.
func (t *Template) Steps() []string {
	var keys []string
	for _, p := range t.parts {
		if p.root == "steps" && !slices.Contains(keys, p.tokens[0]) {
			keys = append(keys, p.tokens[0])
		}
	}
	return keys
}

// Values is where placeholders find their values.
type Values struct {
	Context *Context
	// Secret finds a secret by its name. In a preview these are stand-ins, see standIns.
	Secret func(name string) (value string, ok bool)
}

// Span is a part of a rendered text that came from a secret.
type Span struct {
	Start, End int // bytes
	Secret     string
}

// Rendered is the result of rendering a template.
type Rendered struct {
	Text  string
	Spans []Span // in order
}

// Masked is the text with {{secrets.NAME}} in place of each secret.
func (r Rendered) Masked() string {
	if len(r.Spans) == 0 {
		return r.Text
	}
	var b strings.Builder
	from := 0
	for _, s := range r.Spans {
		b.WriteString(r.Text[from:s.Start])
		b.WriteString(placeholder(s.Secret))
		from = s.End
	}
	b.WriteString(r.Text[from:])
	return b.String()
}

// placeholder is what is shown in place of a secret.
func placeholder(secret string) string { return "{{secrets." + secret + "}}" }

// Render renders the template. An unknown name, a value that is null or missing, a control character in a header, a
// value that would lead the path of a URL elsewhere, a place inside an escape sequence of JSON and a text beyond its
// bound are a *TemplateError, which holds no value.
func (t *Template) Render(v Values) (Rendered, error) {
	bound := MaxRendered
	if t.place == InURL {
		bound = maxURL * utf8.UTFMax
	}
	var b strings.Builder
	var out Rendered
	var ends []int // where the inserted values end
	for i := range t.parts {
		p := &t.parts[i]
		b.WriteString(p.literal)
		value, err := v.find(p, t.place == InJSON && !p.quoted)
		if err != nil {
			return Rendered{}, err
		}
		if sizeOf(value) > bound {
			return Rendered{}, &TemplateError{p.at, p.name + " is too large"}
		}
		text, err := t.escape(p, value)
		if err != nil {
			return Rendered{}, err
		}
		start := b.Len()
		b.WriteString(text)
		if t.place == InURL {
			ends = append(ends, b.Len())
		}
		if b.Len() > bound {
			return Rendered{}, t.tooLarge()
		}
		if p.root == "" {
			span := Span{start, b.Len(), p.tokens[0]}
			if t.place == InJSON && !p.quoted { // without the quotes
				span.Start, span.End = span.Start+1, span.End-1
			}
			out.Spans = append(out.Spans, span)
		}
	}
	b.WriteString(t.tail)
	if fault := t.climbs(b.String(), ends); fault != nil {
		return Rendered{}, fault
	}
	if out.Text = b.String(); len(out.Text) > bound || t.place == InURL && utf8.RuneCountInString(out.Text) > maxURL {
		return Rendered{}, t.tooLarge()
	}
	return out, nil
}

// climbs faults a value that turns a segment of a URL's path into . or .., which would lead elsewhere and cannot be
// encoded. ends is where the values end.
func (t *Template) climbs(url string, ends []int) error {
	if t.place != InURL || t.whole() {
		return nil
	}
	path := len(url)
	if i := strings.IndexAny(url, "?#"); i >= 0 {
		path = i
	}
	for i, end := range ends {
		if end > path {
			break
		}
		from, to := strings.LastIndexByte(url[:end], '/')+1, path
		if n := strings.IndexByte(url[end:path], '/'); n >= 0 {
			to = end + n
		}
		if dotSegment(url[from:to]) {
			p := &t.parts[i]
			return &TemplateError{p.at, p.name + " makes a segment of the path . or .., which would lead elsewhere"}
		}
	}
	return nil
}

// dotSegment reports whether a path segment is . or .. in any spelling (RFC 3986, section 3.3), also before a
// parameter, which some servers strip.
func dotSegment(segment string) bool {
	segment, _, _ = strings.Cut(segment, ";")
	switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
	case ".", "..":
		return true
	}
	return false
}

// whole reports whether the template is a single placeholder.
func (t *Template) whole() bool { return len(t.parts) == 1 && t.parts[0].literal+t.tail == "" }

func (t *Template) tooLarge() error {
	if t.place == InURL {
		return &TemplateError{0, "the URL is longer than 2,048 characters"}
	}
	return &TemplateError{0, "the text is larger than 256 KiB"}
}

// find returns the value of a placeholder. With null, a captured null counts as a value.
func (v Values) find(p *part, null bool) (jsondoc.Value, error) {
	switch {
	case p.unknown != "":
		return jsondoc.Value{}, &TemplateError{p.at, p.unknown}
	case p.escaped:
		return jsondoc.Value{}, &TemplateError{p.at, p.name + ` stands within an escape sequence; a backslash itself is written \\`}
	}
	if p.root == "" {
		if v.Secret != nil {
			if s, ok := v.Secret(p.tokens[0]); ok {
				return jsondoc.Text(s), nil
			}
		}
		return jsondoc.Value{}, &TemplateError{p.at, fmt.Sprintf("there is no secret %q", p.tokens[0])}
	}
	value, err := v.Context.find(p.root, p.tokens)
	switch {
	case err != nil:
		return value, &TemplateError{p.at, p.name + ": " + err.Error()}
	case value.Kind() == jsondoc.Null && !(null && v.Context.mayBeNull(p.root, p.tokens)):
		return value, &TemplateError{p.at, p.name + " has no value"}
	}
	return value, nil
}

// escape escapes a value for its place.
func (t *Template) escape(p *part, value jsondoc.Value) (string, error) {
	switch {
	case t.place == InJSON && !p.quoted:
		return string(value.Bytes()), nil
	case t.place == InJSON:
		quoted := jsondoc.Text(value.Text()).Bytes()
		return string(quoted[1 : len(quoted)-1]), nil
	}
	text := value.Text()
	switch {
	case (t.place == InForm || t.place == InURL) && !t.whole():
		return percentEncoded(text), nil
	case t.place.inLine() && strings.ContainsFunc(text, unicode.IsControl):
		return "", &TemplateError{p.at, p.name + " holds a control character"}
	}
	return text, nil
}

func percentEncoded(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// sizeOf returns a lower bound of the bytes that a value takes in any place: not all places add quotes or escapes to a
// string.
func sizeOf(v jsondoc.Value) int {
	if v.Kind() == jsondoc.String {
		return len(v.Text())
	}
	return v.Size()
}

// RenderMessage renders the message of a notify step. An unknown variable is a *TemplateError; a variable without a
// value is empty, so that events of unknown type are notified, too.
func (t *Template) RenderMessage(ev *hookglass.Event, endpoint *hookglass.Endpoint) (string, error) {
	values := map[string]string{
		"endpoint_name": endpoint.Name, "endpoint_id": string(endpoint.ID), "request_id": string(ev.ID),
		"event_type": ev.EventType, "provider": ev.Provider,
	}
	var b strings.Builder
	for _, p := range t.parts {
		value, known := values[p.name]
		if !known {
			return "", &TemplateError{p.at, p.unknown}
		}
		b.WriteString(p.literal)
		b.WriteString(hookglass.Readable(value))
	}
	b.WriteString(t.tail)
	return b.String(), nil
}
