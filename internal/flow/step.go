package flow

import (
	"fmt"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/email"
	"hookglass/internal/jsondoc"
	"hookglass/internal/query"
)

// maxRead bounds the text that patterns search.
const maxRead = 1 << 20

// step is one step, compiled.
type step struct {
	conditions []condition // those that need no payload first
	wheres     []where
	extracts   []extract
	refers     []int // the steps whose values it uses
	marked     bool  // it depends on what actions do to an event
}

type condition struct {
	name, expected string
	q              query.Query
	actual         func(*hookglass.Event) string // nil: it compares no single value
	deep           bool                          // it needs the payload
}

type where struct {
	hookglass.FlowWhere
	parts []piece
}

// piece is a literal or, with a key, a reference.
type piece struct{ text, key, name string }

type extract struct {
	hookglass.FlowExtract
	pattern *pattern // nil: the source is a part
}

// compile compiles a step of a plan. Errors are validation_failed.
func compile(plan *hookglass.FlowPlan, i int, now time.Time) (*step, error) {
	in, field := &plan.Steps[i], fmt.Sprintf("flow.steps.%d", i)
	s := &step{}
	if err := s.compileConditions(in, field, now); err != nil {
		return nil, err
	}
	for _, w := range in.Where {
		at := field + ".where"
		if !validPart(w.Part) {
			return nil, hookglass.Invalid(at, "has a name that is no JSON Pointer, header.<name>, query.<name>, subject, from, to, path or text")
		}
		parts, err := pieces(w.Value)
		if err != nil {
			return nil, hookglass.Invalid(at, "%s", err.Error())
		}
		for _, p := range parts {
			if p.key == "" {
				continue
			}
			k := earlier(plan, i, p.key, p.name)
			if k < 0 {
				return nil, hookglass.Invalid(at, "refers to {{steps.%s.%s}}, which no step before it extracts", p.key, p.name)
			}
			s.refers = append(s.refers, k)
		}
		s.wheres = append(s.wheres, where{w, parts})
	}
	for _, x := range in.Extract {
		e := extract{FlowExtract: x}
		if err := e.compile(); err != nil {
			return nil, hookglass.Invalid(field+".extract", "%s", err.Error())
		}
		s.extracts = append(s.extracts, e)
	}
	return s, nil
}

// earlier returns the earlier step with a key that extracts a name, or -1.
func earlier(plan *hookglass.FlowPlan, before int, key, name string) int {
	for k, s := range plan.Steps[:before] {
		if s.Key != key || s.Never {
			continue
		}
		for _, x := range s.Extract {
			if x.Name == name {
				return k
			}
		}
	}
	return -1
}

func (s *step) compileConditions(in *hookglass.FlowStep, field string, now time.Time) error {
	type given struct {
		name, value string
		filter      query.Filter
		actual      func(*hookglass.Event) string
	}
	all := []given{
		{"provider", in.Provider, query.Filter{Provider: in.Provider}, func(e *hookglass.Event) string { return e.Provider }},
		{"event_type", in.EventType, query.Filter{EventType: in.EventType}, func(e *hookglass.Event) string { return e.EventType }},
		{"subject", in.Subject, query.Filter{Q: "subject:" + quoted(in.Subject)}, func(e *hookglass.Event) string { return e.Subject }},
		{"from", in.From, query.Filter{Q: "from:" + quoted(in.From)}, func(e *hookglass.Event) string { return e.From }},
	}
	terms, err := query.Split(in.Query, now) // so that each term is reported by itself
	if err != nil {
		terms = []string{in.Query} // reported below
	}
	for _, term := range terms {
		all = append(all, given{"q", term, query.Filter{Q: term}, nil})
	}
	var deep []condition
	for _, g := range all {
		if g.value == "" {
			continue
		}
		g.filter.Ignored = "any"
		q, err := g.filter.Parse(now)
		if err != nil {
			if e, ok := err.(*hookglass.Error); ok && len(e.Details) > 0 {
				named := hookglass.Invalid(field+"."+g.name, "%s", e.Details[0].Message)
				if g.name == "q" { // a position within a query built here would mean nothing to the caller
					named.Extra = e.Extra
				}
				return named
			}
			return err
		}
		if q.ReadsDeliveries() { // deliveries change later, without an announcement
			return hookglass.Invalid(field+"."+g.name, "may not ask for deliveries: a step takes events as they come")
		}
		c := condition{name: g.name, expected: g.value, q: q, actual: g.actual}
		s.marked = s.marked || q.Marked()
		if headers, body := q.Reads(); headers || body {
			c.deep = true
			deep = append(deep, c)
			continue
		}
		s.conditions = append(s.conditions, c)
	}
	s.conditions = append(s.conditions, deep...)
	return nil
}

// quoted quotes a text as a value of a query. Stars in it remain wildcards.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// pieces splits a value at its references.
func pieces(value string) (parts []piece, err error) {
	for rest := value; rest != ""; {
		before, inner, opened := strings.Cut(rest, "{{")
		if before != "" {
			parts = append(parts, piece{text: before})
		}
		if !opened {
			break
		}
		inside, after, closed := strings.Cut(inner, "}}")
		path := strings.Split(strings.TrimSpace(inside), ".")
		if !closed || len(path) != 3 || path[0] != "steps" || path[1] == "" || path[2] == "" {
			return nil, fmt.Errorf("may hold {{steps.<id>.<name>}} alone between braces")
		}
		parts = append(parts, piece{key: path[1], name: path[2]})
		rest = after
	}
	return parts, nil
}

func validPart(part string) bool {
	switch part {
	case "subject", "from", "to", "path", "text":
		return true
	}
	for _, prefix := range []string{"header.", "query."} {
		if name, ok := strings.CutPrefix(part, prefix); ok {
			return name != ""
		}
	}
	_, err := jsondoc.ParsePointer(part)
	return err == nil && part != ""
}

func (x *extract) compile() (err error) {
	text, isPattern := strings.CutPrefix(x.Source, "regex:")
	switch {
	case isPattern:
		if x.pattern, err = newPattern(text); err != nil || text == "" {
			return fmt.Errorf("has a pattern that is not valid (RE2)")
		}
	case x.Source == "link", x.Source == "code":
	case strings.HasPrefix(x.Source, "link:") && x.Source != "link:":
	case validPart(x.Source):
	default:
		return fmt.Errorf("takes a JSON Pointer, header.<name>, query.<name>, subject, from, to, path, text, link, link:<text>, code or regex:<pattern>")
	}
	return nil
}

// verdict is how well an event meets a step.
type verdict struct {
	met, total int // conditions, including the endpoint
	faults     []hookglass.FlowFault
	values     map[string]string
}

func (v verdict) held() bool { return v.met == v.total }

// judge returns how well an event of the step's endpoint meets it. The payload is loaded only if the other conditions
// hold.
func (s *step) judge(r *reader, load func() error, value func(key, name string) string) (verdict, error) {
	e := r.event
	v := verdict{met: 1, total: 1 + len(s.conditions) + len(s.wheres) + len(s.extracts), values: map[string]string{}}
	read := func() error {
		if e.Payload != nil {
			return nil
		}
		return load()
	}
	for _, c := range s.conditions {
		if c.deep {
			if len(v.faults) > 0 {
				return v, nil
			}
			if err := read(); err != nil {
				return v, err
			}
		}
		if c.q.Match(e) {
			v.met++
			continue
		}
		f := hookglass.FlowFault{Condition: c.name, Expected: c.expected}
		if c.actual != nil {
			f.Actual = cut(c.actual(e), maxShown)
		}
		v.faults = append(v.faults, f)
	}
	if len(v.faults) > 0 || len(s.wheres)+len(s.extracts) == 0 {
		return v, nil
	}
	if err := read(); err != nil {
		return v, err
	}
	for _, w := range s.wheres {
		expected := w.expected(value)
		actual, found := r.part(w.Part)
		if found && (actual == expected || w.Contains && strings.Contains(actual, expected)) {
			v.met++
			continue
		}
		v.faults = append(v.faults, hookglass.FlowFault{Condition: w.Part, Expected: cut(expected, maxShown), Actual: cut(actual, maxShown)})
	}
	for _, x := range s.extracts {
		value, found := r.extract(x)
		if !found || value == "" {
			v.faults = append(v.faults, hookglass.FlowFault{Condition: extractPrefix + x.Name, Expected: x.Source, Actual: value})
			continue
		}
		v.met++
		v.values[x.Name] = cut(value, hookglass.MaxFlowValue)
	}
	return v, nil
}

// extractPrefix begins the condition that an event has what a name extracts.
const extractPrefix = "extract."

// maxShown bounds a value that a fault shows, in bytes.
const maxShown = 200

func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}

func (w where) expected(value func(key, name string) string) string {
	var b strings.Builder
	for _, p := range w.parts {
		if p.key == "" {
			b.WriteString(p.text)
		} else {
			b.WriteString(value(p.key, p.name))
		}
	}
	return b.String()
}

// reader reads the parts of one event, parsing each at most once for all steps.
type reader struct {
	event *hookglass.Event
	mail  *email.Message
	found *email.Extracted
	plain *string // the result of text
	doc   *document
	spent time.Duration // on patterns
}

// document is a body parsed as JSON, or as a form.
type document struct {
	value jsondoc.Value
	err   error
}

// part is the value of a part of the event as text.
func (r *reader) part(name string) (string, bool) {
	e := r.event
	switch name {
	case "subject":
		return e.Subject, e.Type == hookglass.EventEmail
	case "from":
		return e.From, e.Type == hookglass.EventEmail
	case "to":
		return e.To, e.Type == hookglass.EventEmail
	case "path":
		return e.Path, true
	case "text":
		return r.text(), true
	}
	if header, ok := strings.CutPrefix(name, "header."); ok {
		return strings.Trim(e.Headers.Get(header), " \t"), e.Headers.Has(header)
	}
	if parameter, ok := strings.CutPrefix(name, "query."); ok {
		for name, value := range hookglass.Pairs(e.RawQuery) {
			if name == parameter {
				return value, true
			}
		}
		return "", false
	}
	return r.at(name)
}

// text returns the readable text of the event: its body or, of a mail, the subject and the texts, HTML both as
// displayed and as source.
func (r *reader) text() string {
	if r.plain != nil {
		return *r.plain
	}
	var text string
	if r.event.Type != hookglass.EventEmail {
		text = string(coding.Plain(r.event.Body, r.event.Headers, maxRead))
	} else {
		m := r.message()
		text = r.event.Subject + "\n" + m.Text + "\n" + m.Shown() + "\n" + m.HTML
	}
	text = cut(text, maxRead)
	r.plain = &text
	return text
}

func (r *reader) message() *email.Message {
	if r.mail == nil {
		r.mail = email.Parse(r.event.Body)
	}
	return r.mail
}

func (r *reader) at(pointer string) (string, bool) {
	p, err := jsondoc.ParsePointer(pointer)
	if err != nil || r.event.Type == hookglass.EventEmail {
		return "", false
	}
	if r.doc == nil {
		value, err := jsondoc.ParseBody(coding.Plain(r.event.Body, r.event.Headers, jsondoc.MaxBytes), hookglass.IsForm(r.event.ContentType), jsondoc.Wide())
		r.doc = &document{value, err}
	}
	value, found := r.doc.value.At(p)
	if r.doc.err != nil || !found {
		return "", false
	}
	return value.Text(), true
}

// tooSlow is shown instead of a value whose pattern took too long.
const tooSlow = "not known: the pattern takes too long"

// find searches for a pattern, within the time that is left for all patterns.
func (r *reader) find(p *pattern) (value string, found bool) {
	if r.spent >= patternsFor {
		return tooSlow, false
	}
	text, began := r.text(), time.Now()
	value, found, late := p.find(text, min(patternFor, patternsFor-r.spent))
	if r.spent += time.Since(began); late {
		return tooSlow, false
	}
	return value, found
}

// extract returns a value of the event. If it is not found, value may say why.
func (r *reader) extract(x extract) (value string, found bool) {
	if x.pattern != nil {
		return r.find(x.pattern)
	}
	wanted, isLink := strings.CutPrefix(x.Source, "link")
	if !isLink && x.Source != "code" {
		return r.part(x.Source)
	}
	if r.event.Type != hookglass.EventEmail {
		return "", false
	}
	if r.found == nil {
		found := email.Extract(r.message())
		r.found = &found
	}
	if x.Source == "code" {
		if len(r.found.Codes) == 0 {
			return "", false
		}
		return r.found.Codes[0], true
	}
	for _, link := range r.found.Links {
		if strings.Contains(link, strings.TrimPrefix(wanted, ":")) {
			return link, true
		}
	}
	return "", false
}
