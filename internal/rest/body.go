package rest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"hookglass"
	"hookglass/internal/httpd"
	"hookglass/internal/jsondoc"
)

// maxDepth bounds nested objects and arrays; the contract's own are far flatter.
const maxDepth = 64

// readBody parses a request's JSON into v, strictly: UTF-8, one value, no duplicate names (RFC 8259 permits them, and
// two readers could see two requests), exact names, no unknown members unless loose.
//
// It answers unsupported_media_type, payload_too_large, invalid_json if the text is not JSON, and validation_failed,
// naming the field, if its shape is wrong. No message repeats a value. It also returns the text.
func readBody(w http.ResponseWriter, r *http.Request, v any, op operation) (text []byte, err error) {
	if op.bare && r.ContentLength == 0 {
		text = []byte("{}")
		return text, decode(text, v, op.loose)
	}
	if ct := r.Header.Get("Content-Type"); ct != "" {
		media, params, err := mime.ParseMediaType(ct)
		charset, given := params["charset"]
		if err != nil || media != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
			return nil, hookglass.Errorf(hookglass.CodeUnsupportedMediaType, "The body must be application/json.")
		}
	}
	if text, err = httpd.ReadBody(w, r, "body"); err != nil {
		return nil, err
	}
	if op.bare && len(text) == 0 { // a chunked body without content
		text = []byte("{}")
	}
	return text, decode(text, v, op.loose)
}

// refuseBody refuses a body with content where none is expected. {} and null, which some clients always send, count as
// none.
func refuseBody(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	text, err := httpd.ReadBody(w, r, "body")
	if err != nil {
		return err
	}
	switch strings.TrimSpace(string(text)) {
	case "", "{}", "null":
		return nil
	}
	return hookglass.Invalid("body", "is not looked at here; what narrows the call are parameters of its query")
}

func decode(text []byte, v any, loose bool) error {
	if err := checkSyntax(text); err != nil {
		return err
	}
	err := json.Unmarshal(text, v, json.RejectUnknownMembers(!loose), wholeNumbers)
	if err == nil {
		return nil
	}
	var shape *json.SemanticError
	if !errors.As(err, &shape) {
		return fmt.Errorf("a body that is JSON could not be read: %w", err)
	}
	field := cmp.Or(strings.ReplaceAll(strings.TrimPrefix(string(shape.JSONPointer), "/"), "/", "."), "body")
	if errors.Is(shape.Err, json.ErrUnknownName) {
		if within := holder(v, field); within != "" {
			return hookglass.Invalid(field, "is not a known field here: it goes into %q", within)
		}
		return hookglass.Invalid(field, "is not a known field")
	}
	return hookglass.Invalid(field, "must be %s", httpd.Form(shape.GoType))
}

// holder returns the member of a body whose own members include a name, to help callers who leave out the wrapper.
func holder(v any, name string) string {
	body := reflect.TypeOf(v).Elem()
	if body.Kind() != reflect.Struct {
		return ""
	}
	for _, member := range reflect.VisibleFields(body) {
		within := member.Type
		if within.Kind() == reflect.Pointer {
			within = within.Elem()
		}
		if within.Kind() != reflect.Struct {
			continue
		}
		for _, f := range reflect.VisibleFields(within) {
			if jsonName(f) == name {
				return jsonName(member)
			}
		}
	}
	return ""
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// wholeNumbers accepts 30.0 as an integer, as the schemas of the description do.
var wholeNumbers = json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(whole[int]), json.UnmarshalFromFunc(whole[int64])))

func whole[T int | int64](dec *jsontext.Decoder, v *T) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported // fall back to the default
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	n, ok := jsondoc.Whole(token.String())
	if !ok {
		return errors.New("no whole number")
	}
	*v = T(n)
	return nil
}

// checkSyntax checks all of the text before any of it is interpreted, so that invalid JSON is reported as such whatever
// else is wrong.
func checkSyntax(text []byte) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return hookglass.Errorf(hookglass.CodeInvalidJSON, "The body is empty; it must be JSON.")
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	for begun := false; !begun || dec.StackDepth() > 0; begun = true {
		_, err := dec.ReadToken()
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			return hookglass.Errorf(hookglass.CodeInvalidJSON, "The body names a field twice, near byte %d.", dec.InputOffset())
		case err != nil:
			return hookglass.Errorf(hookglass.CodeInvalidJSON, "The body is not JSON; the fault is near byte %d.", dec.InputOffset())
		case dec.StackDepth() > maxDepth:
			return hookglass.Errorf(hookglass.CodeInvalidJSON, "The body is nested more than %d deep.", maxDepth)
		}
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return hookglass.Errorf(hookglass.CodeInvalidJSON, "Something follows the JSON value, near byte %d.", dec.InputOffset())
	}
	return nil
}
