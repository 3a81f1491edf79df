package rest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"hookglass"
)

// nulls finds nulls and empty strings in a body that decode like missing values although the schema requires a value.
// An optional member may be null, as many clients send what they do not set; an item of a list and a value under a name
// of the sender's own may not. An empty string is not a word of an enum.
type nulls struct {
	schemas huma.Registry
	dec     *jsontext.Decoder
	faults  []hookglass.FieldError
}

// refuseNulls answers validation_failed naming each member that may not be null or empty but is. The text must already
// have been parsed by the same schema. A body that is null as a whole is left to the check for missing members.
func refuseNulls(text []byte, schema *huma.Schema, schemas huma.Registry) error {
	if !bytes.Contains(text, []byte("null")) && !bytes.Contains(text, []byte(`""`)) {
		return nil
	}
	n := &nulls{schemas: schemas, dec: jsontext.NewDecoder(bytes.NewReader(text))}
	if n.dec.PeekKind() == 'n' {
		return nil
	}
	n.value(schema, "", false)
	return hookglass.Refusal(n.faults, nil)
}

// value checks one value, at a dotted name. Without a schema it may be anything.
func (n *nulls) value(s *huma.Schema, at string, nullable bool) {
	nullable = nullable || s == nil
	for s != nil && (s.Ref != "" || len(s.AnyOf) > 0) {
		if s.Ref == "" { // with null, or text with a second type of an optional member
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
	case '"':
		token, _ := n.dec.ReadToken()
		if token.String() == "" && len(s.Enum) > 0 && !slices.Contains(s.Enum, any("")) {
			n.faults = append(n.faults, hookglass.FieldError{Field: at, Message: "must be " + words(s.Enum)})
		}
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

// words lists the values of an enum.
func words(enum []any) string {
	all := spelled(enum)
	if len(all) == 1 {
		return all[0]
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// spelled returns the values of an enum as people write them.
func spelled(enum []any) []string {
	all := make([]string, len(enum))
	for i, v := range enum {
		if all[i] = fmt.Sprint(v); v == nil {
			all[i] = "null"
		}
	}
	return all
}
