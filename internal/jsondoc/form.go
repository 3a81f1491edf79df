package jsondoc

import "hookglass"

// ParseBody is [Parse] for a body that may be a form, of which it makes what [Form] does. JSON goes first, because curl
// calls everything that it posts a form. A form of more than MaxBytes is ErrNotJSON: its fields take many times that.
func ParseBody(body []byte, form bool, b Bounds) (Value, error) {
	v, err := Parse(body, b)
	if err == nil || !form || len(body) > min(b.Bytes, MaxBytes) {
		return v, err
	}
	return Form(string(body)), nil
}

// MaxParsed bounds how many fields of a form are parsed: many small ones take far longer than one of their length.
const MaxParsed = 1000

// Form is a form, or a query string, as an object of its fields in order of their first appearance; a name that repeats
// holds an array. What is not UTF-8 is read as Latin-1. A field is its text. Slack, Mandrill and others send JSON in
// one: where that is an object or an array, [Value.At] goes on in it. It does in the first MaxParsed of those.
func Form(raw string) Value {
	var names []string
	values := map[string][]Value{}
	parsed := 0
	for name, text := range hookglass.Pairs(raw) {
		name, text = hookglass.Readable(name), hookglass.Readable(text)
		if values[name] == nil {
			names = append(names, name)
		}
		v := Text(text)
		if parsed < MaxParsed && Bracketed(text) {
			parsed++
			if held, err := Parse([]byte(text), Wide()); err == nil {
				v.in = &inner{values: []Value{held}}
			}
		}
		values[name] = append(values[name], v)
	}
	members := make([]Member, len(names))
	for i, name := range names {
		members[i] = Member{name, values[name][0]}
		if len(values[name]) > 1 {
			members[i].Value = List(values[name]...)
		}
	}
	return Members(members...)
}

// Bracketed reports whether a text begins as an object or an array does, maybe behind a byte order mark.
func Bracketed[T string | []byte](text T) bool {
	text = Unmarked(text)
	for i := range len(text) {
		switch text[i] {
		case ' ', '\t', '\r', '\n':
		default:
			return text[i] == '{' || text[i] == '['
		}
	}
	return false
}
