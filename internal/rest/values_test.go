package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// values makes JSON out of the description's schemas: what fits them, and what is wrong with it in one place.
type values struct {
	*rand.Rand
	schemas map[string]any
	whole   bool // an object has all of its members
}

// hostile are JSON texts that some part of the service could trip over, whatever it expects.
var hostile = []string{
	`null`, `true`, `0`, `-1`, `1.5`, `1e400`, `-1e-400`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775809`, `1e18`, `""`, `" "`, `[]`, `{}`, `[null]`, `{"":""}`,
	`"\u0000"`, `"a\u0000b"`, `"\ud83d\ude00"`, `"\u202e\u2028\ufeff"`, `"\r\nX-A: 1"`, `"'; DROP TABLE events; --"`, `"%_\\"`, `"{{ secrets.A }}"`, `"{{"`, `"../../etc"`, `"("`, `"(a+)+$"`,
	`"*"`, `"tunnel"`, `"2026-02-30T00:00:00Z"`, `"0000-01-01T00:00:00Z"`, `"294277-01-01T00:00:00Z"`, `"-999999999h"`, `"9999999999999999999h"`, `"http://"`, `"http://[::1%25lo]/"`, `"https://a.example.com:99999/"`, `"/~2"`, `"/-"`,
	`"req_"`, `"ep_"`, `"1"`, `"-1"`, `{"a":{"a":{"a":[[[]]]}}}`,
}

// text writes a value for the schema; wrong says that one of its parts shall not fit it.
func (v *values) text(schema map[string]any, wrong bool) string {
	if !wrong {
		return v.write(schema, 0, nil)
	}
	places := 0
	v.write(schema, 0, func() bool { places++; return false })
	at, seen := v.IntN(max(places, 1)), 0
	// What is written at random differs from the first time, so the place is one of about as many.
	return v.write(schema, 0, func() bool { seen++; return seen-1 == at })
}

func (v *values) write(schema map[string]any, depth int, spoil func() bool) string {
	if ref, ok := schema["$ref"].(string); ok {
		schema = v.schemas[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
	}
	if spoil != nil && spoil() {
		return v.hostile()
	}
	if options, ok := schema["anyOf"].([]any); ok {
		return v.write(options[v.IntN(len(options))].(map[string]any), depth, spoil)
	}
	if examples, ok := schema["examples"].([]any); ok && v.IntN(3) > 0 {
		return marshal(examples[v.IntN(len(examples))])
	}
	if enum, ok := schema["enum"].([]any); ok {
		return marshal(enum[v.IntN(len(enum))])
	}
	switch v.kind(schema) {
	case "object":
		return v.object(schema, depth, spoil)
	case "array":
		items, _ := schema["items"].(map[string]any)
		elements := make([]string, bound(schema, "minItems", 0)+v.IntN(3))
		if depth > 8 || items == nil {
			elements = nil
		}
		for i := range elements {
			elements[i] = v.write(items, depth+1, spoil)
		}
		return "[" + strings.Join(elements, ",") + "]"
	case "integer", "number":
		low := bound(schema, "minimum", 0)
		return fmt.Sprint(low + v.IntN(max(bound(schema, "maximum", low+1000)-low, 0)+1))
	case "boolean":
		return fmt.Sprint(v.IntN(2) == 0)
	case "null":
		return "null"
	case "string":
		return marshal(v.word(bound(schema, "minLength", 0), bound(schema, "maxLength", 40)))
	}
	return []string{`{"a":1}`, `"text"`, `[1,2]`, `7`, `null`}[v.IntN(5)] // any value fits
}

func (v *values) object(schema map[string]any, depth int, spoil func() bool) string {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	var members []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || depth < 8 && (v.whole || v.IntN(2) == 0) {
			members = append(members, marshal(name)+":"+v.write(properties[name].(map[string]any), depth+1, spoil))
		}
	}
	if more, ok := schema["additionalProperties"].(map[string]any); ok {
		for range v.IntN(3) {
			members = append(members, marshal("k"+v.word(1, 8))+":"+v.write(more, depth+1, spoil))
		}
	}
	if spoil != nil && spoil() {
		members = append(members, marshal(v.word(1, 12))+":"+v.hostile())
	}
	return "{" + strings.Join(members, ",") + "}"
}

// kind is one of the types that the schema allows.
func (v *values) kind(schema map[string]any) string {
	switch kind := schema["type"].(type) {
	case string:
		return kind
	case []any:
		return kind[v.IntN(len(kind))].(string)
	}
	return ""
}

func (v *values) hostile() string {
	switch v.IntN(len(hostile) + 3) {
	case 0:
		return marshal(strings.Repeat("\u00e9", 5_000))
	case 1:
		return strings.Repeat("[", 60) + strings.Repeat("]", 60)
	case 2:
		return "[" + strings.Repeat("0,", 2_000) + "0]"
	}
	return hostile[v.IntN(len(hostile))]
}

// word is text of a length between the bounds, in characters.
func (v *values) word(low, high int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-_./:*\" {}\u00e9\u4e16"
	all := []rune(letters)
	text := make([]rune, low+v.IntN(max(min(high, low+40)-low, 0)+1))
	for i := range text {
		text[i] = all[v.IntN(len(all))]
	}
	return string(text)
}

// spoiled is what is no JSON, or none that the service takes, made of what is.
func (v *values) spoiled(text string) string {
	switch v.IntN(6) {
	case 0:
		return text[:v.IntN(len(text))]
	case 1:
		return text + "x"
	case 2:
		return "\ufeff" + text
	case 3:
		return strings.Replace(text, `"`, "\"\xff", 1)
	case 4:
		return strings.Replace(text, "{", `{"a":1,"a":2,`, 1)
	}
	at := v.IntN(len(text))
	return text[:at] + string(rune(1+v.IntN(120))) + text[at:]
}

func bound(schema map[string]any, name string, otherwise int) int {
	if n, ok := schema[name].(float64); ok {
		return int(n)
	}
	return otherwise
}

func marshal(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return string(text)
}
