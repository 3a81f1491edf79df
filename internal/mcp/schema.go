package mcp

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"hookglass/api"
)

// schema is a JSON Schema (2020-12) with its keywords in the usual reading order.
type schema struct {
	members []member
}

type member struct {
	name  string
	value any
}

func (s *schema) set(name string, value any) { s.members = append(s.members, member{name, value}) }

// MarshalJSON implements json.Marshaler.
func (s *schema) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range s.members {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// describer derives schemas from Go types by the tags of package api: json, doc, enum, minimum, maximum, default,
// required, null, also. Inputs are described in full and closed. Outputs are open, because answers may gain members,
// and without descriptions, because every agent that lists the tools pays for them.
type describer struct{ input bool }

func (d describer) object(t reflect.Type) *schema {
	s := new(schema)
	s.set("type", "object")
	properties := new(schema)
	required := []string{}
	for _, f := range fieldsOf(t) {
		properties.set(f.name, d.field(f))
		if d.input && f.tag.Get("required") == "true" || !d.input && !f.omitted {
			required = append(required, f.name)
		}
	}
	s.set("properties", properties)
	if len(required) > 0 {
		s.set("required", required)
	}
	if d.input {
		s.set("additionalProperties", false)
	}
	return s
}

func (d describer) field(f field) *schema {
	s := d.of(f.typ, f.tag, !d.input && f.typ.Kind() == reflect.Pointer && !f.omitted || d.input && f.tag.Get("null") == "true")
	if doc := f.tag.Get("doc"); d.input && doc != "" {
		s.set("description", doc)
	}
	return s
}

// of describes a type; nullable reports whether it may be null.
func (d describer) of(t reflect.Type, tag reflect.StructTag, nullable bool) *schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if inner, ok := optional(t); ok {
		return d.of(inner, tag, nullable)
	}
	s := new(schema)
	kind := func(name string) {
		names := []string{name}
		if second := tag.Get("also"); second != "" {
			names = append(names, second)
		}
		if nullable {
			names = append(names, "null")
		}
		if len(names) == 1 {
			s.set("type", name)
		} else {
			s.set("type", names)
		}
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return s // anything
	case t == reflect.TypeFor[api.JSONObject]():
		kind("object")
		return s
	case t == reflect.TypeFor[api.Time]():
		kind("string")
		s.set("format", "date-time")
		return s
	}
	switch t.Kind() {
	case reflect.String:
		kind("string")
		s.oneOf(tag.Get("enum"), nullable)
		s.bound(tag, "minLength", "maxLength")
		if v := tag.Get("default"); v != "" {
			s.set("default", v)
		}
	case reflect.Bool: // a const is left to the description: Gemini refuses all tools for one with a const
		kind("boolean")
	case reflect.Int, reflect.Int64:
		kind("integer")
		s.bound(tag, "minimum", "maximum", "default")
	case reflect.Float64:
		kind("number")
		s.bound(tag, "minimum", "maximum", "default")
	case reflect.Slice, reflect.Array:
		kind("array")
		s.set("items", d.of(t.Elem(), "", false))
		if t.Kind() == reflect.Array {
			s.set("minItems", t.Len())
			s.set("maxItems", t.Len())
		}
		s.bound(tag, "maxItems")
	case reflect.Map:
		kind("object")
		s.set("additionalProperties", d.of(t.Elem(), "", t.Elem().Kind() == reflect.Pointer))
	case reflect.Struct:
		s = d.object(t)
		if nullable {
			s.members[0].value = []string{"object", "null"}
		}
	}
	return s
}

// bound sets the keywords of a field's tag, whose values are JSON.
func (s *schema) bound(tag reflect.StructTag, keywords ...string) {
	for _, keyword := range keywords {
		if v := tag.Get(keyword); v != "" {
			s.set(keyword, json.RawMessage(v))
		}
	}
}

// oneOf sets the allowed words from a comma-separated list; an empty list allows any.
func (s *schema) oneOf(words string, nullable bool) {
	if words == "" {
		return
	}
	enum := []any{}
	for word := range strings.SplitSeq(words, ",") {
		enum = append(enum, word)
	}
	if nullable {
		enum = append(enum, nil)
	}
	s.set("enum", enum)
}

// optional returns the type inside an api.Optional.
func optional(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() == reflect.Struct && strings.HasPrefix(t.Name(), "Optional[") {
		f, _ := t.FieldByName("Value")
		return f.Type, true
	}
	return nil, false
}

// field is a member of a JSON object as a Go type writes it.
type field struct {
	name    string
	typ     reflect.Type
	tag     reflect.StructTag
	index   []int
	omitted bool // omitempty or omitzero
}

// fieldsOf lists the members that encoding/json writes: those of embedded structs in their place, and of several with
// one name the outermost. Without those that are hidden, which existing clients of the REST API send alone.
func fieldsOf(t reflect.Type) (fields []field) {
	depth := map[string]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" || !f.IsExported() || name == "-" || name == "" || f.Tag.Get("hidden") != "" {
			continue
		}
		if d, known := depth[name]; !known || len(f.Index) < d {
			depth[name] = len(f.Index)
		}
		fields = append(fields, field{name, f.Type, f.Tag, f.Index, strings.Contains(options, "omit")})
	}
	kept := fields[:0]
	for _, f := range fields {
		if len(f.index) == depth[f.name] {
			kept = append(kept, f)
		}
	}
	return kept
}

// number parses a bound of a tag; ok is false if there is none.
func number(tag reflect.StructTag, name string) (n float64, ok bool) {
	v := tag.Get(name)
	if v == "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(v, 64)
	return n, err == nil
}
