package jsondoc

import (
	"errors"
	"strconv"
	"strings"
)

// Pointer is a JSON Pointer (RFC 6901) that was checked. The zero Pointer means the whole value.
type Pointer struct{ tokens []string }

// ParsePointer reads a pointer: empty, or names each after a slash, in which ~0 means ~ and ~1 means a slash. Its error
// is a sentence for a person.
func ParsePointer(s string) (Pointer, error) {
	if s == "" {
		return Pointer{}, nil
	}
	if s[0] != '/' {
		return Pointer{}, errors.New("must be empty or begin with a slash")
	}
	tokens := strings.Split(s[1:], "/")
	for i, token := range tokens {
		if strings.IndexByte(token, '~') < 0 {
			continue
		}
		for at := 0; at < len(token); at++ {
			if token[at] != '~' {
				continue
			}
			if at++; at == len(token) || token[at] != '0' && token[at] != '1' {
				return Pointer{}, errors.New("must have 0 or 1 after each ~")
			}
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return Pointer{tokens}, nil
}

// PointerTo is the pointer made of these names and indexes.
func PointerTo(tokens ...string) Pointer { return Pointer{tokens} }

// Tokens are the names and indexes of the pointer; they are not to be changed.
func (p Pointer) Tokens() []string { return p.tokens }

// String is the pointer as it is written.
func (p Pointer) String() string {
	var b strings.Builder
	for _, token := range p.tokens {
		b.WriteByte('/')
		b.WriteString(escape(token))
	}
	return b.String()
}

func escape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// At finds what a pointer means. In an array a name is an index without leading zeros; "-" means the element after the
// last, which is never there. It goes on in the JSON that a field of a form holds.
func (v Value) At(p Pointer) (Value, bool) {
	for _, token := range p.tokens {
		if v.kind == String && v.in != nil {
			v = v.in.values[0]
		}
		i := v.find(token)
		if i < 0 {
			return Value{}, false
		}
		v = v.in.values[i]
	}
	return v, true
}

// find is the place of a member or element, or -1.
func (v Value) find(token string) int {
	if v.kind == Array {
		i, ok := arrayIndex(token)
		if !ok || i >= v.Len() {
			return -1
		}
		return i
	}
	return v.index(token)
}

// arrayIndex reads an index as RFC 6901, section 4, has it.
func arrayIndex(token string) (int, bool) {
	if token == "" || len(token) > 9 || token[0] == '0' && token != "0" {
		return 0, false
	}
	n, err := strconv.ParseUint(token, 10, 32) // unlike Atoi it takes no sign
	return int(n), err == nil
}
