package action

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/jsondoc"
)

// Context is the document that JSON Pointers, transforms and templates of a run see (spec: decisions, section 8). Its
// parts are read when first asked for. It serves one goroutine.
type Context struct {
	event    *readings
	steps    []jsondoc.Member
	made     map[string]bool // the steps that made an output, which may be null
	patterns budget

	// For previews. unsent holds the steps whose output is known only once a request is sent; true: their status, too.
	// missed reports that one of them was read.
	unsent map[string]bool
	missed bool
}

// Mail is what was parsed of a captured mail; the rest is in its event.
type Mail struct{ Text, HTML string }

// NewContext is the context of an event before any step. mail is nil for a webhook.
func NewContext(ev *hookglass.Event, endpoint *hookglass.Endpoint, mail *Mail) *Context {
	return &Context{event: &readings{ev: ev, endpoint: endpoint, mail: mail}}
}

// Fresh returns a context of the same event without steps, for the next action.
func (c *Context) Fresh() *Context { return &Context{event: c.event} }

// SetStep makes the outcome of a step visible to later steps. A step without output (nil) shows null.
func (c *Context) SetStep(referenceKey string, status hookglass.StepStatus, output *jsondoc.Value) {
	var shown jsondoc.Value
	if output != nil {
		if c.made == nil {
			c.made = make(map[string]bool)
		}
		shown, c.made[referenceKey] = *output, true
	}
	c.steps = append(c.steps, named(referenceKey, jsondoc.Members(
		named("status", jsondoc.Text(string(status))),
		named("output", shown),
	)))
}

// setUnsent marks a step whose output, and with all its status, is known only once a request is sent.
func (c *Context) setUnsent(referenceKey string, all bool) {
	if c.unsent == nil {
		c.unsent = make(map[string]bool)
	}
	c.unsent[referenceKey] = all
}

// Why a value cannot be found. The texts are shown to users and hold nothing of the event.
var (
	errNoMail    = errors.New("the event is no mail")
	errNoStep    = errors.New("no such step ran before")
	errUnsent    = errors.New("it is known only when the request is sent")
	errLargeBody = errors.New("the body is larger than 1 MiB")
	errNoValue   = errors.New("there is no such value")
)

// Source finds request, provider, email, endpoint or steps.<reference_key>. It fails where the event or the run has
// none.
func (c *Context) Source(name string) (jsondoc.Value, error) {
	root, ref, named := strings.Cut(name, ".")
	switch {
	case root == "steps" && named:
		return c.step(ref, nil)
	case !named && root != "steps":
		return c.root(root)
	}
	return jsondoc.Value{}, errNoValue
}

// lookUp finds a value in a source. A missing source is an error; a missing value is not. A null that means "not known"
// is found, but counts as absent.
func (c *Context) lookUp(source string, p jsondoc.Pointer) (v jsondoc.Value, found, absent bool, err error) {
	tokens := p.Tokens()
	if ref, ok := strings.CutPrefix(source, "steps."); ok {
		source, tokens = "steps", append([]string{ref}, tokens...)
	}
	v, err = c.find(source, tokens)
	if errors.Is(err, errNoValue) {
		return v, false, true, nil
	}
	return v, err == nil, v.Kind() == jsondoc.Null && !c.mayBeNull(source, tokens), err
}

// find finds a value by the names on the way to it. It fails where there is none; null is a value.
func (c *Context) find(root string, tokens []string) (jsondoc.Value, error) {
	var v jsondoc.Value
	var err error
	switch {
	case root == "steps" && len(tokens) > 0:
		v, err = c.step(tokens[0], tokens[1:])
		tokens = tokens[1:]
	case root == "request" && len(tokens) > 0 && tokens[0] != "body":
		v = c.event.line() // a body that is not asked for is not read
	case root == "request" && len(tokens) > 0:
		v, err = c.event.body()
		tokens = tokens[1:]
	default:
		v, err = c.root(root)
	}
	if err != nil {
		return jsondoc.Value{}, err
	}
	v, ok := v.At(jsondoc.PointerTo(tokens...))
	if !ok {
		return v, errNoValue
	}
	return v, nil
}

// mayBeNull reports whether null at a place can be a value that was captured or made there. Elsewhere null means that
// there is no value.
func (c *Context) mayBeNull(root string, tokens []string) bool {
	switch {
	case root == "steps":
		return len(tokens) > 1 && tokens[1] == "output" && c.made[tokens[0]]
	case root != "request" || len(tokens) == 0 || tokens[0] != "body":
		return false
	}
	return len(tokens) > 1 || c.event.ev.Type != hookglass.EventEmail && c.event.ev.Payload != nil && len(c.event.ev.Body) > 0
}

// At finds a value by a pointer into the whole context.
func (c *Context) At(p jsondoc.Pointer) (jsondoc.Value, bool) {
	if tokens := p.Tokens(); len(tokens) > 0 {
		v, err := c.find(tokens[0], tokens[1:])
		return v, err == nil
	}
	var all []jsondoc.Member
	for _, name := range roots {
		if v, err := c.root(name); err == nil {
			all = append(all, named(name, v))
		}
	}
	return jsondoc.Members(all...), true
}

// step finds a step by its reference key. tokens say which part of it the caller wants.
func (c *Context) step(ref string, tokens []string) (jsondoc.Value, error) {
	if all, unsent := c.unsent[ref]; unsent && (all || len(tokens) == 0 || tokens[0] == "output") {
		c.missed = true
		return jsondoc.Value{}, errUnsent
	}
	i := slices.IndexFunc(c.steps, func(m jsondoc.Member) bool { return m.Name == ref })
	if i < 0 {
		return jsondoc.Value{}, errNoStep
	}
	return c.steps[i].Value, nil
}

func (c *Context) root(name string) (jsondoc.Value, error) {
	switch name {
	case "request":
		return c.event.request()
	case "provider":
		return c.event.provider(), nil
	case "email":
		return c.event.email()
	case "endpoint":
		e := c.event.endpoint
		return jsondoc.Members(
			named("id", jsondoc.Text(string(e.ID))),
			named("name", jsondoc.Text(e.Name)),
		), nil
	case "steps":
		if len(c.unsent) > 0 {
			c.missed = true
			return jsondoc.Value{}, errUnsent
		}
		return jsondoc.Members(c.steps...), nil
	}
	return jsondoc.Value{}, fmt.Errorf("%q is not known", name)
}

// readings holds the parts of the context that come from the event, each parsed when first needed. The runs on one
// event share it.
type readings struct {
	ev       *hookglass.Event
	endpoint *hookglass.Endpoint
	mail     *Mail

	lineRead, wholeRead, bodyRead bool
	lineValue, whole              jsondoc.Value
	bodyValue                     jsondoc.Value
	bodyErr                       error
}

// line is the request without its body.
func (r *readings) line() jsondoc.Value {
	if !r.lineRead {
		r.lineRead, r.lineValue = true, jsondoc.Members(r.members()...)
	}
	return r.lineValue
}

func (r *readings) request() (jsondoc.Value, error) {
	body, err := r.body()
	if err != nil {
		return jsondoc.Value{}, err
	}
	if !r.wholeRead {
		members := make([]jsondoc.Member, 0, 7)
		for name, v := range r.line().All() {
			members = append(members, named(name, v))
		}
		r.wholeRead, r.whole = true, jsondoc.Members(append(members, named("body", body))...)
	}
	return r.whole, nil
}

func (r *readings) members() []jsondoc.Member {
	return []jsondoc.Member{
		named("id", jsondoc.Text(string(r.ev.ID))),
		named("method", jsondoc.Text(r.ev.Method)),
		named("path", asShown(r.ev.Path)),
		named("query", jsondoc.Form(r.ev.RawQuery)),
		named("headers", r.headers()),
		named("content_type", jsondoc.TextOrNull(hookglass.Readable(r.ev.ContentType))),
	}
}

func (r *readings) provider() jsondoc.Value {
	return jsondoc.Members(
		named("name", jsondoc.TextOrNull(r.ev.Provider)),
		named("event_type", jsondoc.TextOrNull(r.ev.EventType)),
		named("event_id", jsondoc.TextOrNull(r.ev.EventRef)),
		named("delivery_id", jsondoc.TextOrNull(r.ev.DeliveryID)),
		named("signature_status", jsondoc.TextOrNull(string(r.ev.SignatureStatus))),
	)
}

func (r *readings) email() (jsondoc.Value, error) {
	if r.ev.Type != hookglass.EventEmail {
		return jsondoc.Value{}, errNoMail
	}
	mail := r.mail
	if mail == nil {
		mail = &Mail{}
	}
	return jsondoc.Members(
		named("from", jsondoc.TextOrNull(r.ev.From)),
		named("to", jsondoc.TextOrNull(r.ev.To)),
		named("subject", jsondoc.TextOrNull(r.ev.Subject)),
		named("text", jsondoc.TextOrNull(mail.Text)),
		named("html", jsondoc.TextOrNull(mail.HTML)),
		named("headers", r.headers()),
	), nil
}

func (r *readings) headers() jsondoc.Value {
	if r.ev.Payload == nil {
		return jsondoc.Members()
	}
	return headerObject(r.ev.Headers)
}

// headerObject returns headers as an object: names in lower case, the values of a repeated name joined, as in the
// answers of the API.
func headerObject(fields hookglass.Headers) jsondoc.Value {
	places := make(map[string]int, len(fields))
	members := make([]jsondoc.Member, 0, len(fields))
	for _, h := range fields {
		name, value := strings.ToLower(hookglass.Readable(h.Name)), hookglass.Readable(h.Value)
		i, repeated := places[name]
		if repeated {
			members[i].Value = jsondoc.Text(members[i].Value.Text() + ", " + value)
			continue
		}
		places[name] = len(members)
		members = append(members, named(name, jsondoc.Text(value)))
	}
	return jsondoc.Members(members...)
}

// body is the parsed JSON of the body, the object of a form, or its text; null where there is none.
func (r *readings) body() (jsondoc.Value, error) {
	if !r.bodyRead {
		r.bodyRead = true
		r.bodyValue, r.bodyErr = r.readBody()
	}
	return r.bodyValue, r.bodyErr
}

func (r *readings) readBody() (jsondoc.Value, error) {
	if r.ev.Type == hookglass.EventEmail {
		if r.mail == nil {
			return jsondoc.Value{}, nil
		}
		return jsondoc.TextOrNull(r.mail.Text), nil
	}
	if r.ev.Payload == nil || len(r.ev.Body) == 0 {
		return jsondoc.Value{}, nil
	}
	if len(r.ev.Body) > jsondoc.MaxBytes {
		return jsondoc.Value{}, errLargeBody
	}
	body := decoded(r.ev.Body, r.ev.Headers)
	if len(body) > jsondoc.MaxBytes {
		return jsondoc.Value{}, errLargeBody
	}
	// Try JSON first: curl labels everything it posts as a form.
	if looksJSON(r.ev.ContentType, body) {
		if v, err := jsondoc.Parse(body, jsondoc.Wide()); err == nil {
			return v, nil
		}
	}
	if hookglass.IsForm(r.ev.ContentType) {
		return jsondoc.Form(string(body)), nil
	}
	return asShown(string(body)), nil
}

// asShown returns a captured string as text for display and search. Bytes that are not UTF-8 are read as Latin-1, so
// that a template that sends the text on loses none.
func asShown(s string) jsondoc.Value { return jsondoc.Text(hookglass.Readable(s)) }

func mediaType(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

func isJSON(contentType string) bool {
	kind := mediaType(contentType)
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

// looksJSON reports whether a body is worth parsing as JSON: many senders label JSON as text.
func looksJSON(contentType string, body []byte) bool {
	body = bytes.TrimLeft(jsondoc.Unmarked(body), " \t\r\n")
	return isJSON(contentType) || len(body) > 0 && (body[0] == '{' || body[0] == '[')
}

// decoded undoes the content coding, up to one byte beyond the limit: enough to see that a body is too large.
func decoded(body []byte, headers hookglass.Headers) []byte {
	return coding.Plain(body, headers, jsondoc.MaxBytes+1)
}
