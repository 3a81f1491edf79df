package provider

import (
	"fmt"
	"slices"
	"strings"
)

// A condition is one word of the table's "match" language; a conjunction is several joined with " + ".
//
//	X-Name              the header is present          /a/b          the body's JSON has a value there
//	!X-Name             the header is absent           /a[]  /a#     ... which is an array, a number
//	X-Name=a|b          its value is a or b            /a=x|y        ... whose text is x or y
//	X-Name^a|b          its value starts with a or b   /a^x|y        ... whose text starts with x or y
//	X-Name~hex          its value is hex (~base64)     form:n  form:n/p  the form has a field n (JSON with p); = and ^ as above
type condition struct {
	header  string
	absent  bool
	form    string
	pointer []string
	op      byte // 0 presence, '=', '^', '~', '[', '#'
	values  []string
}

type conjunction []condition

func parseConjunction(s string) (conjunction, error) {
	var c conjunction
	for word := range strings.SplitSeq(s, " + ") {
		one, err := parseCondition(word)
		if err != nil {
			return nil, err
		}
		c = append(c, one)
	}
	return c, nil
}

func parseCondition(s string) (condition, error) {
	var c condition
	subject := s
	if i := strings.IndexAny(s, "=^~[#"); i >= 0 {
		subject, c.op = s[:i], s[i]
		c.values = strings.Split(s[i+1:], "|")
	}
	switch {
	case strings.HasPrefix(subject, "/"):
		c.pointer = tokens(subject)
	case strings.HasPrefix(subject, "form:"):
		name, pointer, inner := strings.Cut(strings.TrimPrefix(subject, "form:"), "/")
		if c.form = name; inner {
			c.pointer = tokens("/" + pointer)
		}
	default:
		c.header, c.absent = strings.CutPrefix(subject, "!")
	}
	valid := c.header != "" || c.form != "" || len(c.pointer) > 0
	if c.op == '~' && c.values[0] != "hex" && c.values[0] != "base64" || c.op == '[' && s[len(subject):] != "[]" {
		valid = false
	}
	if !valid || strings.ContainsAny(subject, " ") {
		return c, fmt.Errorf("bad condition %q", s)
	}
	return c, nil
}

func (c conjunction) holds(in *input) bool {
	for i := range c {
		if !c[i].holds(in) {
			return false
		}
	}
	return true
}

func (c *condition) holds(in *input) bool {
	switch {
	case c.absent:
		return !in.Headers.Has(c.header)
	case c.header != "":
		if c.op == 0 {
			return in.Headers.Has(c.header)
		}
		return c.matches(in.Headers.Get(c.header))
	case c.form != "":
		text, ok := formValue(in.formFields(), c.form)
		if c.pointer == nil {
			return ok && (c.op == 0 || c.matches(text))
		}
		return c.accepts(parseJSON([]byte(text)).at(c.pointer))
	}
	return c.accepts(in.at(c.pointer))
}

func (c *condition) accepts(v value) bool {
	switch c.op {
	case 0:
		return v.present()
	case '[':
		return len(v) > 0 && v[0] == '['
	case '#':
		return v.isNumber()
	}
	return v.present() && c.matches(v.text())
}

func (c *condition) matches(text string) bool {
	switch c.op {
	case '=':
		return slices.Contains(c.values, text)
	case '^':
		return slices.ContainsFunc(c.values, func(p string) bool { return strings.HasPrefix(text, p) })
	case '~':
		_, ok := decodeDigest(nil, text, c.values[0])
		return ok
	}
	return false
}

// A template is text with sources in braces, the table's language for event types and ids:
//
//	{header:Name}   {/pointer}   {form:name}   {form:name/pointer}   {key:!name} (the first member but name)
//
// It yields nothing when one of its sources is absent.
type template []part

type part struct {
	literal string
	header  string
	form    string
	pointer []string
	but     string // {key:!but}
}

func parseTemplate(s string) (template, error) {
	var t template
	for s != "" {
		literal, rest, found := strings.Cut(s, "{")
		if literal != "" {
			t = append(t, part{literal: literal})
		}
		if !found {
			break
		}
		source, after, closed := strings.Cut(rest, "}")
		kind, arg, _ := strings.Cut(source, ":")
		var p part
		switch {
		case strings.HasPrefix(source, "/"):
			p.pointer = tokens(source)
		case kind == "header" && arg != "":
			p.header = arg
		case kind == "form" && arg != "":
			name, pointer, inner := strings.Cut(arg, "/")
			if p.form = name; inner {
				p.pointer = tokens("/" + pointer)
			}
		case kind == "key" && len(arg) > 1 && arg[0] == '!':
			p.but = arg[1:]
		default:
			closed = false
		}
		if !closed {
			return nil, fmt.Errorf("bad template near %q", rest)
		}
		t = append(t, p)
		s = after
	}
	return t, nil
}

func (t template) render(in *input) string {
	if len(t) == 1 {
		return t[0].text(in)
	}
	var b strings.Builder
	for i := range t {
		text := t[i].text(in)
		if text == "" {
			return ""
		}
		b.WriteString(text)
	}
	return b.String()
}

func (p *part) text(in *input) string {
	switch {
	case p.literal != "":
		return p.literal
	case p.header != "":
		return in.Headers.Get(p.header)
	case p.form != "":
		text, _ := formValue(in.formFields(), p.form)
		if p.pointer == nil {
			return text
		}
		return parseJSON([]byte(text)).at(p.pointer).text()
	case p.but != "":
		doc := in.doc()
		for _, m := range in.top.members[:in.top.known] {
			if name, ok := unquote(doc[m.name:m.nameEnd]); ok && name != p.but {
				return name
			}
		}
		return ""
	}
	return in.at(p.pointer).text()
}

// first renders the first template that yields something.
func first(templates []template, in *input) string {
	for _, t := range templates {
		if s := t.render(in); s != "" {
			return printable(s, fieldBytes)
		}
	}
	return ""
}
