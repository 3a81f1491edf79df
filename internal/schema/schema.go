// Package schema infers the structure of JSON bodies: the types at each place, which members are always present, what
// strings look like. A schema grows body by body, can be merged, compared with an accepted one, and written as JSON
// Schema or as types of a language. It hides how places are bounded: names that are data (ids, dates) share one place,
// written "*", as array items do.
//
// It keeps no values except short words of small sets, and is not safe for concurrent use.
package schema

import (
	"encoding/json"
	"strings"

	"hookglass/internal/jsondoc"
)

// Bounds, so that no sender makes a schema large: it is read and written for each event.
const (
	MaxNodes  = 1000 // places
	MaxDepth  = 24
	MaxNames  = 64     // members of one object; with more, their names count as data
	maxName   = 100    // bytes; a longer name counts as data
	MaxItems  = 200    // of one array that are read
	maxVisits = 20_000 // values of one body
	MaxValues = 12     // words of a set
	MaxWord   = 40     // characters of a word
)

// The types of JSON Schema. A number without a fraction is an integer.
const (
	Null    = "null"
	Boolean = "boolean"
	Integer = "integer"
	Number  = "number"
	String  = "string"
	Object  = "object"
	Array   = "array"
)

// types in display order.
var types = []string{Object, Array, String, Number, Integer, Boolean, Null}

// Schema is the structure of bodies.
type Schema struct {
	Events    int64 `json:"n"`           // bodies it was inferred from
	Truncated bool  `json:"t,omitempty"` // a bound was reached and something left out
	Nodes     int   `json:"c"`           // places it has
	Root      *Node `json:"r"`
}

// Seen is how often something was seen, and the first event with it: the one with the smallest id, because ids sort by
// time and events may be processed in any order.
type Seen struct {
	N     int64  `json:"n,omitempty"`
	First string `json:"f,omitempty"`
}

func (s *Seen) see(event string) {
	s.N++
	s.since(event)
}

func (s *Seen) add(o Seen) {
	s.N += o.N
	s.since(o.First)
}

func (s *Seen) since(event string) {
	if event != "" && (s.First == "" || event < s.First) {
		s.First = event
	}
}

// Node is a place in the bodies.
type Node struct {
	Seen
	Types     map[string]*Seen `json:"t,omitempty"`
	Members   map[string]*Node `json:"m,omitempty"` // of objects, by name
	Collapsed bool             `json:"x,omitempty"` // there were too many names, so all count as data
	Rest      *Node            `json:"*,omitempty"` // members whose names are data
	Items     *Node            `json:"i,omitempty"`
	Absent    Seen             `json:"a,omitzero"` // objects without this member, since it was first seen
	Formats   map[string]int64 `json:"s,omitempty"`
	Words     map[string]*Seen `json:"w,omitempty"` // the strings, while they are a small set of words
	Many      bool             `json:"v,omitempty"` // the strings are not a small set of words
}

// New returns an empty schema.
func New() *Schema { return &Schema{Nodes: 1, Root: &Node{}} }

// Observe adds a body. event is its id; observing the same event twice counts twice. A body with too many values adds
// nothing.
func (s *Schema) Observe(body jsondoc.Value, event string) {
	s.Events++
	if left := maxVisits; !affordable(body, 0, &left) {
		s.Truncated = true
		return
	}
	o := &observer{s: s, event: event}
	o.value(s.Root, body, 0)
}

// affordable reports whether a body has at most left values. Such a body is not observed in part, because its missing
// members would seem optional.
func affordable(v jsondoc.Value, depth int, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	if depth == MaxDepth {
		return true
	}
	i := 0
	for _, child := range v.All() {
		if i++; v.Kind() == jsondoc.Array && i > MaxItems {
			break
		}
		if !affordable(child, depth+1, left) {
			return false
		}
	}
	return true
}

type observer struct {
	s     *Schema
	event string
}

// grow returns a new place, or nil when there are too many.
func (s *Schema) grow() *Node {
	if s.Nodes >= MaxNodes {
		s.Truncated = true
		return nil
	}
	s.Nodes++
	return &Node{}
}

func (o *observer) value(n *Node, v jsondoc.Value, depth int) {
	n.see(o.event)
	kind := typeOf(v)
	if n.Types == nil {
		n.Types = make(map[string]*Seen, 1)
	}
	if n.Types[kind] == nil {
		n.Types[kind] = &Seen{}
	}
	n.Types[kind].see(o.event)
	switch kind {
	case String:
		n.word(v.Text(), o.event)
	case Object:
		o.object(n, v, depth)
	case Array:
		if depth == MaxDepth && v.Len() > 0 {
			o.s.Truncated = true
			return
		}
		i := 0
		for _, item := range v.All() {
			if i++; i > MaxItems {
				o.s.Truncated = true
				return
			}
			if n.Items == nil {
				if n.Items = o.s.grow(); n.Items == nil {
					return
				}
			}
			o.value(n.Items, item, depth+1)
		}
	}
}

func (o *observer) object(n *Node, v jsondoc.Value, depth int) {
	if depth == MaxDepth {
		o.s.Truncated = o.s.Truncated || v.Len() > 0
		return
	}
	met := make(map[string]struct{}, v.Len())
	for name, member := range v.All() {
		if !n.Collapsed && n.Members[name] == nil && !isData(name) && len(n.Members) == MaxNames {
			o.s.collapse(n)
		}
		if n.Collapsed || isData(name) {
			if n.Rest == nil {
				if n.Rest = o.s.grow(); n.Rest == nil {
					continue
				}
			}
			o.value(n.Rest, member, depth+1)
			continue
		}
		if n.Members[name] == nil {
			child := o.s.grow()
			if child == nil {
				continue
			}
			if n.Members == nil {
				n.Members = make(map[string]*Node, v.Len())
			}
			n.Members[name] = child
		}
		met[name] = struct{}{}
		o.value(n.Members[name], member, depth+1)
	}
	if len(met) < len(n.Members) {
		for name, child := range n.Members {
			if _, ok := met[name]; !ok {
				child.Absent.see(o.event)
			}
		}
	}
}

// collapse merges all members of an object into one place.
func (s *Schema) collapse(n *Node) {
	n.Collapsed = true
	rest := n.Rest
	for _, name := range sortedNames(n.Members) {
		if rest == nil {
			rest = &Node{}
		}
		rest.merge(n.Members[name])
	}
	n.Members, n.Rest = nil, rest
	if rest != nil {
		rest.Absent = Seen{}
	}
	s.Nodes = s.Root.size()
}

func (n *Node) size() int {
	if n == nil {
		return 0
	}
	size := 1 + n.Rest.size() + n.Items.size()
	for _, m := range n.Members {
		size += m.size()
	}
	return size
}

// objects returns how many objects were seen here.
func (n *Node) objects() int64 {
	if s := n.Types[Object]; s != nil {
		return s.N
	}
	return 0
}

// always reports whether a member was in every object.
func (n *Node) always(m *Node) bool { return m.N > 0 && m.N >= n.objects() }

func typeOf(v jsondoc.Value) string {
	switch v.Kind() {
	case jsondoc.Null:
		return Null
	case jsondoc.False, jsondoc.True:
		return Boolean
	case jsondoc.Number:
		if strings.ContainsAny(v.Text(), ".eE") {
			return Number
		}
		return Integer
	case jsondoc.String:
		return String
	case jsondoc.Array:
		return Array
	}
	return Object
}

// Encode writes a schema for [Decode].
func (s *Schema) Encode() ([]byte, error) { return json.Marshal(s) }

// Decode reads what Encode wrote.
func Decode(text []byte) (*Schema, error) {
	s := New()
	if err := json.Unmarshal(text, s); err != nil {
		return nil, err
	}
	if s.Root == nil {
		s.Root = &Node{}
	}
	return s, nil
}
