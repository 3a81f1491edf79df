package mcp

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"hookglass"
)

// nulls finds nulls and empty strings in a tool's arguments that decode like missing values although a value is
// required: the same ones that the REST API refuses. An optional member may be null; an item of a list and a value
// under a name of the caller's own may not. An empty string is not a word of an enum, except for a filter (tagged
// empty), where it counts as missing, as in a query.
type nulls struct {
	dec    *jsontext.Decoder
	faults []hookglass.FieldError
}

// refuseNulls answers validation_failed naming each of them. The text must already have been parsed into the same type.
func refuseNulls(text []byte, t reflect.Type) error {
	n := &nulls{dec: jsontext.NewDecoder(bytes.NewReader(text))}
	n.value(t, "", "", true)
	return hookglass.Refusal(n.faults, nil)
}

// value checks one value of a type, at a dotted name.
func (n *nulls) value(t reflect.Type, tag reflect.StructTag, at string, nullable bool) {
	for t.Kind() == reflect.Pointer {
		t, nullable = t.Elem(), true
	}
	if inner, ok := optional(t); ok {
		n.value(inner, tag, at, true)
		return
	}
	switch kind := n.dec.PeekKind(); {
	case kind == 'n' && !nullable:
		n.refuse(at, "may not be null")
	case kind == '"' && tag.Get("enum") != "" && tag.Get("empty") != "true":
		if token, _ := n.dec.ReadToken(); token.String() == "" {
			n.refuse(at, "must be one of "+strings.ReplaceAll(tag.Get("enum"), ",", ", "))
		}
		return
	case kind == '{' && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		n.members(t, at)
		return
	case kind == '[' && t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8: // []byte is JSON of any kind
		_, _ = n.dec.ReadToken()
		for i := 0; n.dec.PeekKind() != ']' && n.dec.PeekKind() != 0; i++ {
			n.value(t.Elem(), "", at+"."+strconv.Itoa(i), false)
		}
		_, _ = n.dec.ReadToken()
		return
	}
	_ = n.dec.SkipValue()
}

// members checks the members of an object: a struct has known names, a map the caller's own.
func (n *nulls) members(t reflect.Type, at string) {
	known := map[string]field{}
	if t.Kind() == reflect.Struct {
		for _, f := range fieldsOf(t) {
			known[f.name] = f
		}
	}
	_, _ = n.dec.ReadToken()
	for n.dec.PeekKind() == '"' {
		token, _ := n.dec.ReadToken()
		name := token.String()
		inside := strings.TrimPrefix(at+"."+name, ".")
		if f, ok := known[name]; ok {
			n.value(f.typ, f.tag, inside, true)
			continue
		}
		n.value(t.Elem(), "", inside, false)
	}
	_, _ = n.dec.ReadToken()
}

func (n *nulls) refuse(at, message string) {
	n.faults = append(n.faults, hookglass.FieldError{Field: at, Message: message})
}
