package schema

import "encoding/json"

// dialect is the dialect of [Schema.JSONSchema].
const dialect = "https://json-schema.org/draft/2020-12/schema"

// document is a part of a JSON Schema, with its keywords in the usual reading order.
type document struct {
	Schema     string               `json:"$schema,omitempty"`
	Title      string               `json:"title,omitempty"`
	Comment    string               `json:"$comment,omitempty"`
	Type       any                  `json:"type,omitempty"` // a string or several
	Format     string               `json:"format,omitempty"`
	Enum       []string             `json:"enum,omitempty"`
	Properties map[string]*document `json:"properties,omitempty"`
	Required   []string             `json:"required,omitempty"`
	Additional *document            `json:"additionalProperties,omitempty"`
	Items      *document            `json:"items,omitempty"`
}

// JSONSchema returns the schema as JSON Schema 2020-12. The bodies it was inferred from are valid, as are bodies with
// additional members.
func (s *Schema) JSONSchema(title string) json.RawMessage {
	d := s.Root.document()
	d.Schema, d.Title = dialect, title
	if s.Truncated {
		d.Comment = "Some bodies were too large or too deep to be described."
	}
	text, _ := json.Marshal(d) // all of it can be marshalled
	return text
}

func (n *Node) document() *document {
	d := &document{}
	if n == nil || n.N == 0 {
		return d
	}
	all := n.types()
	switch len(all) {
	case 0:
		return d
	case 1:
		d.Type = all[0]
	default:
		d.Type = all
	}
	if n.Types[String] != nil {
		d.Format = n.format()
	}
	if words := n.closed(); words != nil && len(all) == 1 {
		d.Enum = words
	}
	for _, name := range sortedNames(n.Members) {
		m := n.Members[name]
		if m.N == 0 {
			continue
		}
		if d.Properties == nil {
			d.Properties = make(map[string]*document, len(n.Members))
		}
		d.Properties[name] = m.document()
		if n.always(m) {
			d.Required = append(d.Required, name)
		}
	}
	if n.Rest != nil && n.Rest.N > 0 {
		d.Additional = n.Rest.document()
	}
	if n.Items != nil && n.Items.N > 0 {
		d.Items = n.Items.document()
	}
	return d
}

// Field is a place and what is known about it.
type Field struct {
	Pointer  string
	Types    map[string]int64 // how often each was seen
	Present  int64            // how often the place had a value
	Of       int64            // objects that could have had it
	Required bool
	Format   string
	Enum     []string
	First    string // the event in which it was first seen
}

// Fields lists all places except the body itself, in the order of their pointers.
func (s *Schema) Fields() []Field {
	var all []Field
	s.Root.fields(nil, func(f Field) { all = append(all, f) })
	return all
}

func (n *Node) fields(path []string, add func(Field)) {
	child := func(name string, m *Node, of int64, required bool) {
		if m == nil || m.N == 0 {
			return
		}
		at := append(path[:len(path):len(path)], name)
		counts := make(map[string]int64, len(m.Types))
		for t, seen := range m.Types {
			counts[t] = seen.N
		}
		add(Field{
			Pointer: pointer(at), Types: counts, Present: m.N, Of: of, Required: required, Format: m.format(), Enum: m.closed(), First: m.First,
		})
		m.fields(at, add)
	}
	for _, name := range sortedNames(n.Members) {
		m := n.Members[name]
		child(name, m, n.objects(), n.always(m))
	}
	child("*", n.Rest, n.objects(), false)
	if n.Items != nil {
		child("*", n.Items, n.Items.N, false)
	}
}
