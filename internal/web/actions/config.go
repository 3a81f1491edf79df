package actions

import (
	"strconv"
	"strings"

	"hookglass"
	"hookglass/internal/jsondoc"
)

// configFields are the fields of a configuration, in their order, except for operations.
var configFields = map[hookglass.StepType][]string{
	hookglass.StepForward:   {"url", "timeout_seconds", "retry_count", "append_path", "append_query"},
	hookglass.StepNotify:    {"channel", "message"},
	hookglass.StepTag:       {"tag"},
	hookglass.StepIgnore:    {"reason"},
	hookglass.StepTransform: {"source"},
	hookglass.StepRequest:   {"method", "url", "headers", "body", "timeout_seconds"},
}

func (s *Step) read(config jsondoc.Value) {
	for name, v := range config.All() {
		switch {
		case name == "headers" && v.Kind() == jsondoc.Object:
			s.Config[name] = pairs(v)
		case name == "operations" && v.Kind() == jsondoc.Array:
			for _, o := range v.All() {
				s.Operations = append(s.Operations, operationOf(o))
			}
		case v.Kind() == jsondoc.String:
			s.Config[name] = v.Text()
		default:
			s.Config[name] = string(v.Bytes())
		}
	}
}

// pairs writes an object of strings as lines.
func pairs(v jsondoc.Value) string {
	var b strings.Builder
	for name, value := range v.All() {
		b.WriteString(name + ": " + value.Text() + "\n")
	}
	return b.String()
}

func operationOf(v jsondoc.Value) (o Operation) {
	text := func(name string) string {
		m, _ := v.Member(name)
		return m.Text()
	}
	o.Op, o.Path, o.To, o.Key = text("op"), text("path"), text("to"), text("key")
	if o.Op == "rename" {
		o.From = text("from")
	}
	if m, ok := v.Member("fields"); ok && m.Kind() == jsondoc.Object {
		o.Fields = pairs(m)
	}
	if o.Op == "set" {
		for _, kind := range []string{"value", "from", "template"} {
			if m, ok := v.Member(kind); ok {
				if o.Kind, o.Value = kind, m.Text(); kind == "value" {
					o.Value = typed(m.Bytes())
				}
			}
		}
	}
	return o
}

// typed formats a JSON value for typing: a string without quotes, unless it would be read as something else.
func typed(text []byte) string {
	v, err := jsondoc.Parse(text, jsondoc.Wide())
	if err != nil || v.Kind() != jsondoc.String {
		return string(text)
	}
	plain := v.Text()
	if plain == "" || strings.TrimSpace(plain) != plain || strings.ContainsAny(plain, "\r\n") || jsondoc.Check([]byte(plain)) == nil {
		return string(text)
	}
	return plain
}

// literal parses what the user typed: JSON, or else a string.
func literal(text string) []byte {
	trimmed := strings.TrimSpace(text)
	if jsondoc.Check([]byte(trimmed)) == nil {
		return []byte(trimmed)
	}
	return jsondoc.Text(text).Bytes()
}

// lines returns a text with LF line ends.
func lines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func valueless(operator string) bool {
	return operator == hookglass.OperatorExists || operator == hookglass.OperatorNotExists
}

// config returns the configuration as JSON. Empty fields with a default are left out.
func (s Step) config() []byte {
	var members []jsondoc.Member
	put := func(name string, v jsondoc.Value) { members = append(members, jsondoc.Member{Name: name, Value: v}) }
	for _, name := range configFields[hookglass.StepType(s.Type)] {
		value := s.Config[name]
		switch name {
		case "timeout_seconds", "retry_count":
			if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
				put(name, jsondoc.Int(n))
			} else if value != "" {
				put(name, jsondoc.Text(value)) // let the service refuse it
			}
		case "append_path", "append_query":
			put(name, jsondoc.Bool(value == "true"))
		case "headers":
			put(name, object(value, cutHeader))
		case "url":
			if value = strings.TrimSpace(value); value != "" {
				put(name, jsondoc.Text(value))
			}
		default:
			if value != "" {
				put(name, jsondoc.Text(value))
			}
		}
	}
	if s.Type == string(hookglass.StepTransform) {
		operations := make([]jsondoc.Value, len(s.Operations))
		for i, o := range s.Operations {
			operations[i] = o.value()
		}
		put("operations", jsondoc.List(operations...))
	}
	return jsondoc.Members(members...).Bytes()
}

// object parses lines of names and texts.
func object(lines string, cut func(line string) (name, text string)) jsondoc.Value {
	var members []jsondoc.Member
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value := cut(line)
		members = append(members, jsondoc.Member{Name: strings.TrimSpace(name), Value: jsondoc.Text(strings.TrimSpace(value))})
	}
	return jsondoc.Members(members...)
}

func cutHeader(line string) (name, value string) {
	name, value, _ = strings.Cut(line, ":")
	return name, value
}

// cutField splits a line where its pointer begins: a name may contain colons, as XML names do.
func cutField(line string) (name, pointer string) {
	if name, found := strings.CutSuffix(line, ":"); found {
		return name, "" // the pointer to the whole
	}
	for _, mark := range []string{": /", ":/"} {
		if i := strings.Index(line, mark); i >= 0 {
			return line[:i], line[i+1:]
		}
	}
	return cutHeader(line)
}

func (o Operation) value() jsondoc.Value {
	members := []jsondoc.Member{{Name: "op", Value: jsondoc.Text(o.Op)}}
	text := func(name, value string) {
		members = append(members, jsondoc.Member{Name: name, Value: jsondoc.Text(value)})
	}
	switch o.Op {
	case "select", "remove":
		text("path", o.Path)
	case "set":
		text("path", o.Path)
		switch o.Kind {
		case "from", "template":
			text(o.Kind, o.Value)
		default:
			v, err := jsondoc.Parse(literal(o.Value), jsondoc.Wide())
			if err != nil {
				v = jsondoc.Text(o.Value)
			}
			members = append(members, jsondoc.Member{Name: "value", Value: v})
		}
	case "rename":
		text("from", o.From)
		text("to", o.To)
	case "pick":
		members = append(members, jsondoc.Member{Name: "fields", Value: object(o.Fields, cutField)})
	case "wrap":
		text("key", o.Key)
	}
	return jsondoc.Members(members...)
}
