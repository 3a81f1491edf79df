package rest

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"hookglass"
)

// nulls finds the nulls of a body that stand for nothing by its schema. A member that may be left out may be null as well, as many clients
// write what they do not set; an item of a list and a value under a name of the sender's own may not.
type nulls struct {
	schemas huma.Registry
	dec     *jsontext.Decoder
	faults  []hookglass.FieldError
}

// refuseNulls answers validation_failed naming each member that is null and may not be. The text was read by the same schema before. A
// body that is null as a whole is judged by who misses its members.
func refuseNulls(text []byte, schema *huma.Schema, schemas huma.Registry) error {
	if !bytes.Contains(text, []byte("null")) {
		return nil
	}
	n := &nulls{schemas: schemas, dec: jsontext.NewDecoder(bytes.NewReader(text))}
	if n.dec.PeekKind() == 'n' {
		return nil
	}
	n.value(schema, "", false)
	if len(n.faults) > 0 {
		return hookglass.InvalidFields(n.faults)
	}
	return nil
}

// value reads one value, at a dotted name. Where no schema says what it is, it may be anything.
func (n *nulls) value(s *huma.Schema, at string, nullable bool) {
	nullable = nullable || s == nil
	for s != nil && (s.Ref != "" || len(s.AnyOf) > 0) {
		if s.Ref == "" { // something, or null
			nullable = true
			s = s.AnyOf[0]
			continue
		}
		s = n.schemas.SchemaFromRef(s.Ref)
	}
	nullable = nullable || s == nil || s.Nullable || s.Type == ""
	if s == nil {
		s = &huma.Schema{}
	}
	switch n.dec.PeekKind() {
	case 'n':
		if !nullable {
			n.faults = append(n.faults, hookglass.FieldError{Field: at, Message: "may not be null"})
		}
		_ = n.dec.SkipValue()
	case '{':
		_, _ = n.dec.ReadToken()
		for n.dec.PeekKind() == '"' {
			token, _ := n.dec.ReadToken()
			name := token.String()
			member, named := s.Properties[name]
			optional := named && !slices.Contains(s.Required, name)
			if !named {
				member, _ = s.AdditionalProperties.(*huma.Schema)
			}
			if at != "" {
				name = at + "." + name
			}
			n.value(member, name, optional)
		}
		_, _ = n.dec.ReadToken()
	case '[':
		_, _ = n.dec.ReadToken()
		for i := 0; n.dec.PeekKind() != ']' && n.dec.PeekKind() != 0; i++ {
			n.value(s.Items, at+"."+strconv.Itoa(i), false)
		}
		_, _ = n.dec.ReadToken()
	default:
		_ = n.dec.SkipValue()
	}
}
