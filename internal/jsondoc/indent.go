package jsondoc

import (
	"bytes"
	"encoding/json"
)

// Indent puts each value of a JSON text on a line of its own, as encoding/json does. ok is false, and nothing is made,
// for what is not JSON, and if the result could be longer than most bytes: the blanks before n brackets within one
// another are n².
func Indent(text []byte, by string, most int) (indented []byte, ok bool) {
	size, depth, quoted := len(text), 0, false
	for i := 0; i < len(text) && size <= most; i++ {
		switch c := text[i]; {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
			continue
		case c == '"':
			quoted = true
			continue
		case c == '[', c == '{':
			depth++
		case c == ']', c == '}':
			depth--
		case c == ':':
			size++
			continue
		case c != ',':
			continue
		}
		size += 1 + depth*len(by)
	}
	var b bytes.Buffer
	if size > most || json.Indent(&b, text, "", by) != nil {
		return nil, false
	}
	return b.Bytes(), true
}
