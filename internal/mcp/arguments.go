package mcp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hookglass"
	"hookglass/internal/httpd"
	"hookglass/internal/jsondoc"
)

// decode parses a tool's arguments into a struct, strictly: exact names, no duplicates, nothing unknown. Missing
// arguments get their defaults. It answers validation_failed with messages that say how to correct the call; none
// repeats a value.
func decode(text []byte, into any) error {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || string(text) == "null" {
		text = []byte("{}")
	}
	v := reflect.ValueOf(into).Elem()
	fields := fieldsOf(v.Type())
	numbers := json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFunc(whole[int]), json.UnmarshalFunc(whole[int64])))
	if err := json.Unmarshal(text, into, json.RejectUnknownMembers(true), numbers); err != nil {
		return refused(err, fields)
	}
	if err := refuseNulls(text, v.Type()); err != nil {
		return err
	}
	var given map[string]jsontext.Value
	if err := json.Unmarshal(text, &given); err != nil {
		return refused(err, fields)
	}
	var faults []hookglass.FieldError
	for _, f := range fields {
		value := given[f.name]
		if message := f.check(v.FieldByIndex(f.index), len(value) > 0 && value.Kind() != 'n'); message != "" {
			faults = append(faults, hookglass.FieldError{Field: f.name, Message: message})
		}
	}
	return hookglass.Refusal(faults, nil)
}

// whole parses an integer as JSON Schema defines it: 15.0 is one.
func whole[T int | int64](text []byte, v *T) error {
	if string(text) == "null" {
		return nil
	}
	n, ok := jsondoc.Whole(string(text))
	if !ok {
		return errors.New("no whole number")
	}
	*v = T(n)
	return nil
}

// check sets the default of a missing field, and returns what is wrong with a given one.
func (f field) check(v reflect.Value, given bool) string {
	if given && v.Kind() == reflect.Bool && f.tag.Get("const") == "true" && !v.Bool() {
		return "must be true"
	}
	if v.IsZero() && (!given || !v.CanInt()) {
		if f.tag.Get("required") == "true" {
			return "is required"
		}
		if def, ok := number(f.tag, "default"); ok && v.CanInt() {
			v.SetInt(int64(def))
		}
		return ""
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case v.CanInt() || v.CanFloat():
		n := 0.0
		if v.CanInt() {
			n = float64(v.Int())
		} else {
			n = v.Float()
		}
		least, bounded := number(f.tag, "minimum")
		most, _ := number(f.tag, "maximum")
		if bounded && (n < least || n > most) {
			return fmt.Sprintf("must be from %v to %v", least, most)
		}
	case v.Kind() == reflect.String:
		if words := f.tag.Get("enum"); words != "" && v.String() != "" && !strings.Contains(","+words+",", ","+v.String()+",") {
			return "must be one of " + strings.ReplaceAll(words, ",", ", ")
		}
	case v.Kind() == reflect.Slice:
		if most, ok := number(f.tag, "maxItems"); ok && float64(v.Len()) > most {
			return fmt.Sprintf("may have %v items at most", most)
		}
	}
	return ""
}

// refused converts the decoder's error to ours.
func refused(err error, fields []field) error {
	var shape *json.SemanticError
	if !errors.As(err, &shape) {
		return hookglass.Invalid("arguments", "must be an object that names each argument once")
	}
	path := cmp.Or(strings.ReplaceAll(strings.TrimPrefix(string(shape.JSONPointer), "/"), "/", "."), "arguments")
	if errors.Is(shape.Err, json.ErrUnknownName) {
		if strings.Contains(path, ".") {
			return hookglass.Invalid(path, "is not a known field")
		}
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.name
		}
		return hookglass.Invalid(path, "is not an argument of this tool; its arguments are %s", strings.Join(names, ", "))
	}
	return hookglass.Invalid(path, "must be %s", httpd.Form(shape.GoType))
}
