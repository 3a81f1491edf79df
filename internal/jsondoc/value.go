package jsondoc

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is what a value is.
type Kind uint8

// The kinds; that of the zero Value is Null.
const (
	Null Kind = iota
	False
	True
	Number
	String
	Array
	Object
)

// Value is a JSON value that never changes: an edit makes another one, which shares what it left alone. Numbers are
// kept as they are spelled, members in their order. The zero Value is null.
type Value struct {
	kind  Kind
	depth uint16
	size  int32  // bytes of the compact text
	text  string // of a string, unescaped; of a number, as spelled
	in    *inner // of an object and an array that are not empty; of a field of a form, the JSON that it holds
}

type inner struct {
	names  []string // of an object
	values []Value
}

// Bounds limit a text that is read and a value that is made.
type Bounds struct {
	Bytes int
	Depth int // of objects and arrays in one another: that of [] is 1
}

// Wide are the bounds of what is looked into, rather than transformed.
func Wide() Bounds { return Bounds{MaxBytes, MaxDepth} }

// Parse reads one JSON value, passing over a byte order mark before it, which some frameworks write (RFC 8259, section
// 8.1). It answers ErrNotJSON for anything else, for names that repeat in an object, for text that is not UTF-8, and
// beyond the bounds. An escape for half of a pair is U+FFFD.
func Parse(text []byte, b Bounds) (Value, error) {
	text = Unmarked(text)
	if len(text) > b.Bytes || b.Bytes > 1<<30 || b.Depth > 1<<14 || !utf8.Valid(text) {
		return Value{}, ErrNotJSON
	}
	p := parser{
		dec: jsontext.NewDecoder(bytes.NewBuffer(text), halves), text: string(text), depth: b.Depth,
		names: make([]string, 0, 32), values: make([]Value, 0, 32),
	}
	v, err := p.value()
	if err != nil {
		return Value{}, ErrNotJSON
	}
	return v, (&reader{dec: p.dec}).end()
}

// Unmarked is a text without the byte order mark that it may begin with.
func Unmarked[T string | []byte](text T) T {
	const mark = "\ufeff"
	if len(text) >= len(mark) && string(text[:len(mark)]) == mark {
		return text[len(mark):]
	}
	return text
}

// HasOneReading reports whether a text is one JSON value in which no object names a member twice: parsers differ in
// which of the two they take.
func HasOneReading(text []byte) bool {
	return jsontext.Value(Unmarked(text)).IsValid(halves)
}

// parser makes values out of tokens. Members wait on its stacks until their container ends, so that each is made with
// the room that it needs.
type parser struct {
	dec    *jsontext.Decoder
	text   string
	depth  int
	names  []string
	values []Value
}

func (p *parser) value() (Value, error) {
	switch kind := p.dec.PeekKind(); kind {
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		return p.container(kind == jsontext.KindBeginObject)
	case jsontext.KindString:
		text, size, err := p.string()
		return Value{kind: String, text: text, size: size}, err
	case jsontext.KindNumber:
		raw, err := p.dec.ReadValue()
		end := int(p.dec.InputOffset())
		return Value{kind: Number, text: p.text[end-len(raw) : end], size: int32(len(raw))}, err
	default:
		t, err := p.dec.ReadToken()
		if err != nil {
			return Value{}, err
		}
		switch t.Kind() {
		case jsontext.KindTrue:
			return Bool(true), nil
		case jsontext.KindFalse:
			return Bool(false), nil
		case jsontext.KindNull:
			return Value{}, nil
		}
		return Value{}, ErrNotJSON
	}
}

// string reads a string or a name. One without escapes is a part of the text.
func (p *parser) string() (text string, size int32, err error) {
	raw, err := p.dec.ReadValue()
	if err != nil {
		return "", 0, err
	}
	end := int(p.dec.InputOffset())
	if bytes.IndexByte(raw, '\\') < 0 {
		return p.text[end-len(raw)+1 : end-1], int32(len(raw)), nil
	}
	unquoted, _ := jsontext.AppendUnquote(nil, raw) // it fails for halves alone, which are U+FFFD then
	text = string(unquoted)
	return text, quotedSize(text), nil
}

func (p *parser) container(object bool) (Value, error) {
	if _, err := p.dec.ReadToken(); err != nil {
		return Value{}, err
	}
	if p.dec.StackDepth() > p.depth {
		return Value{}, ErrNotJSON
	}
	names, values := len(p.names), len(p.values)
	size := int32(2)
	for {
		if kind := p.dec.PeekKind(); kind == jsontext.KindEndObject || kind == jsontext.KindEndArray {
			break
		}
		if object {
			name, n, err := p.string()
			if err != nil {
				return Value{}, err
			}
			p.names = append(p.names, name)
			size += n + 1
		}
		v, err := p.value()
		if err != nil {
			return Value{}, err
		}
		p.values = append(p.values, v)
		size += v.bytes() + 1
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return Value{}, err
	}
	made := inner{values: slices.Clone(p.values[values:])}
	if object {
		made.names = slices.Clone(p.names[names:])
	}
	clear(p.values[values:])
	p.names, p.values = p.names[:names], p.values[:values]
	if len(made.values) > 0 {
		size--
	}
	return made.value(object, size), nil
}

func (in inner) value(object bool, size int32) Value {
	v := Value{kind: Array, depth: 1, size: size}
	if object {
		v.kind = Object
	}
	if len(in.values) == 0 {
		return v
	}
	v.in = &in
	for i := range in.values {
		v.depth = max(v.depth, in.values[i].depth+1)
	}
	return v
}

// bytes is the size of the compact text; that of the zero Value is not written into it.
func (v Value) bytes() int32 {
	if v.kind == Null {
		return 4
	}
	return v.size
}

// quotedSize is the size of s as a JSON string.
func quotedSize(s string) int32 {
	size := int32(len(s)) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c >= ' ' && c != '"' && c != '\\':
		case c == '"', c == '\\', c == '\b', c == '\f', c == '\n', c == '\r', c == '\t':
			size++
		default:
			size += 5
		}
	}
	return size
}

// Bool is true or false.
func Bool(b bool) Value {
	if b {
		return Value{kind: True, size: 4}
	}
	return Value{kind: False, size: 5}
}

// Int is a number.
func Int(n int64) Value {
	s := strconv.FormatInt(n, 10)
	return Value{kind: Number, text: s, size: int32(len(s))}
}

// Text is a string. Bytes that are not UTF-8 become U+FFFD.
func Text(s string) Value {
	s = strings.ToValidUTF8(s, "�")
	return Value{kind: String, text: s, size: quotedSize(s)}
}

// TextOrNull is null for the empty string: what is not known.
func TextOrNull(s string) Value {
	if s == "" {
		return Value{}
	}
	return Text(s)
}

// List is an array.
func List(values ...Value) Value {
	size := int32(2)
	for _, v := range values {
		size += v.bytes() + 1
	}
	if len(values) > 0 {
		size--
	}
	return inner{values: values}.value(false, size)
}

// Member is a name with its value.
type Member struct {
	Name  string
	Value Value
}

// Members is an object. Of members by one name the first stays.
func Members(members ...Member) Value {
	in := inner{names: make([]string, 0, len(members)), values: make([]Value, 0, len(members))}
	size := int32(2)
	known := map[string]bool{}
	for _, m := range members {
		name := strings.ToValidUTF8(m.Name, "�")
		if len(members) > 1 {
			if known[name] {
				continue
			}
			known[name] = true
		}
		in.names, in.values = append(in.names, name), append(in.values, m.Value)
		size += quotedSize(name) + 1 + m.Value.bytes() + 1
	}
	if len(in.values) > 0 {
		size--
	}
	return in.value(true, size)
}

// Kind is what the value is.
func (v Value) Kind() Kind { return v.kind }

// Scalar reports whether the value is neither an object nor an array.
func (v Value) Scalar() bool { return v.kind < Array }

// Text is a string unescaped, and any other value as compact JSON.
func (v Value) Text() string {
	switch v.kind {
	case String, Number:
		return v.text
	}
	return string(v.Bytes())
}

// Size is the number of bytes of the compact text.
func (v Value) Size() int { return int(v.bytes()) }

// Depth is the number of objects and arrays in one another: 0 for a scalar.
func (v Value) Depth() int { return int(v.depth) }

// Len is the number of members or elements.
func (v Value) Len() int {
	if v.in == nil || v.Scalar() {
		return 0
	}
	return len(v.in.values)
}

// Member is an object's member by its name.
func (v Value) Member(name string) (Value, bool) {
	if i := v.index(name); i >= 0 {
		return v.in.values[i], true
	}
	return Value{}, false
}

func (v Value) index(name string) int {
	if v.kind != Object || v.in == nil {
		return -1
	}
	return slices.Index(v.in.names, name)
}

// All are the members of an object in their order, or the elements of an array with empty names.
func (v Value) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Len() == 0 {
			return
		}
		for i := range v.in.values {
			name := ""
			if v.in.names != nil {
				name = v.in.names[i]
			}
			if !yield(name, v.in.values[i]) {
				return
			}
		}
	}
}

// Bytes is the value as compact JSON.
func (v Value) Bytes() []byte { return v.append(make([]byte, 0, v.Size())) }

// append appends the value as compact JSON.
func (v Value) append(dst []byte) []byte {
	switch v.kind {
	case Null:
		return append(dst, "null"...)
	case False:
		return append(dst, "false"...)
	case True:
		return append(dst, "true"...)
	case Number:
		return append(dst, v.text...)
	case String:
		return appendQuoted(dst, v.text)
	}
	open, shut := byte('['), byte(']')
	if v.kind == Object {
		open, shut = '{', '}'
	}
	dst = append(dst, open)
	first := true
	for name, child := range v.All() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if v.kind == Object {
			dst = append(appendQuoted(dst, name), ':')
		}
		dst = child.append(dst)
	}
	return append(dst, shut)
}

func appendQuoted(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // it fails for what is not UTF-8 alone, and no such text is in a Value
	return dst
}

// Same reports whether two values are one: objects whatever the order of their members, numbers by value.
func Same(a, b Value) bool {
	if a.kind != b.kind || a.Len() != b.Len() {
		return false
	}
	switch a.kind {
	case String:
		return a.text == b.text
	case Number:
		return sameNumber(a.text, b.text)
	case Array:
		for i := range a.Len() {
			if !Same(a.in.values[i], b.in.values[i]) {
				return false
			}
		}
	case Object:
		var places map[string]int
		for i := range a.Len() {
			name, j := a.in.names[i], i
			if b.in.names[i] != name { // most often members stand where they do in the other
				if places == nil {
					places = b.places()
				}
				var ok bool
				if j, ok = places[name]; !ok {
					return false
				}
			}
			if !Same(a.in.values[i], b.in.values[j]) {
				return false
			}
		}
	}
	return true
}
