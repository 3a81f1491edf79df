package provider

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/jsondoc"
)

// Scanning of JSON in place. The scanner is lenient: it provides hints about arbitrary bodies and reports "absent"
// where it cannot continue. It does not recurse, so depth costs nothing. Where valid JSON is required (Regenerate), it
// is validated before.

// skipSpace returns the index of the first byte at or after i that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index after the string that starts at i, which holds a quotation mark; -1 if it does not end.
func skipString(b []byte, i int) int {
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escaped := 0
		for b[i-1-escaped] == '\\' { // stops at the opening mark at the latest
			escaped++
		}
		i++
		if escaped%2 == 0 {
			return i
		}
	}
}

// skipValue returns the index after the value that starts at i; -1 if it does not end.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				if i = skipString(b, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	}
	start := i
	for i < len(b) && strings.IndexByte(",]} \n\r\t", b[i]) < 0 {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// span is the position of an object's member in a text: its name with the quotation marks, and its value.
type span struct{ name, nameEnd, start, end int32 }

// members calls fn for each member of the object that starts at i. It stops when fn returns false or the text is
// invalid. Texts are far below 2 GiB (reception bounds them).
func members(b []byte, i int, fn func(m span) bool) {
	if i >= len(b) || b[i] != '{' {
		return
	}
	i = skipSpace(b, i+1)
	for i < len(b) && b[i] == '"' {
		nameEnd := skipString(b, i)
		if nameEnd < 0 {
			return
		}
		name := i
		i = skipSpace(b, nameEnd)
		if i >= len(b) || b[i] != ':' {
			return
		}
		start := skipSpace(b, i+1)
		end := skipValue(b, start)
		if end < 0 || !fn(span{int32(name), int32(nameEnd), int32(start), int32(end)}) {
			return
		}
		if i = skipSpace(b, end); i >= len(b) || b[i] != ',' {
			return
		}
		i = skipSpace(b, i+1)
	}
}

// elements calls fn for each element of the array that starts at i, like members.
func elements(b []byte, i int, fn func(n, start, end int) bool) {
	if i >= len(b) || b[i] != '[' {
		return
	}
	i = skipSpace(b, i+1)
	for n := 0; i < len(b) && b[i] != ']'; n++ {
		end := skipValue(b, i)
		if end < 0 || !fn(n, i, end) {
			return
		}
		if i = skipSpace(b, end); i >= len(b) || b[i] != ',' {
			return
		}
		i = skipSpace(b, i+1)
	}
}

// nameIs reports whether a quoted member name equals want.
func nameIs(quoted []byte, want string) bool {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == want
	}
	name, ok := unquote(quoted)
	return ok && name == want
}

// unquote returns the text of a quoted string.
func unquote(quoted []byte) (string, bool) {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return "", false
	}
	return s, true
}

// value is a JSON value in its text; nil when it is absent.
type value []byte

// child returns the member or element that a reference token of RFC 6901 names. The first of duplicates counts.
func (v value) child(token string) value {
	var found value
	switch {
	case len(v) == 0:
	case v[0] == '{':
		members(v, 0, func(m span) bool {
			if nameIs(v[m.name:m.nameEnd], token) {
				found = v[m.start:m.end]
			}
			return found == nil
		})
	case v[0] == '[':
		index, ok := arrayIndex(token)
		if !ok {
			return nil
		}
		elements(v, 0, func(n, start, end int) bool {
			if n == index {
				found = value(v[start:end])
			}
			return n < index
		})
	}
	return found
}

// arrayIndex reads an index as RFC 6901 section 4 spells it.
func arrayIndex(token string) (int, bool) {
	n, err := strconv.Atoi(token)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == token
}

// at returns the value that the tokens lead to.
func (v value) at(tokens []string) value {
	for _, t := range tokens {
		if v = v.child(t); v == nil {
			return nil
		}
	}
	return v
}

// text returns a scalar as text: a string without quotes, a number or boolean as written; "" for anything else.
func (v value) text() string {
	switch {
	case len(v) == 0 || v[0] == '{' || v[0] == '[' || v[0] == 'n':
		return ""
	case v[0] == '"':
		s, _ := unquote(v)
		return s
	}
	return string(v)
}

// present reports whether there is a value other than null.
func (v value) present() bool { return len(v) > 0 && v[0] != 'n' }

// isNumber reports whether the value is a number.
func (v value) isNumber() bool {
	return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9')
}

// isInteger reports whether the value is an integer spelled without fraction and exponent.
func (v value) isInteger() bool {
	digits := bytes.TrimPrefix(v, []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(digits) > 0
}

// parseJSON returns the JSON value that body seems to hold, also after a byte order mark; nil if it does not start like
// an object or array.
func parseJSON(body []byte) value {
	body = jsondoc.Unmarked(body)
	i := skipSpace(body, 0)
	if i >= len(body) || body[i] != '{' && body[i] != '[' {
		return nil
	}
	return value(body[i:])
}

// unescaped decodes a token of a pointer (RFC 6901, section 4).
var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// tokens splits a pointer of RFC 6901.
func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	parts := strings.Split(pointer[1:], "/")
	for i, p := range parts {
		parts[i] = unescaped.Replace(p)
	}
	return parts
}

// printable returns s with control characters and invalid UTF-8 replaced, cut to n bytes at a character, for values
// that end up in columns, filters and logs. Replacements are longer than the original, so it cuts last.
func printable(s string, n int) string {
	clean := true
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			clean = false
			break
		}
	}
	if !clean {
		s = s[:min(len(s), n+utf8.UTFMax)] // the rest is cut in any case
		s = strings.Map(func(r rune) rune {
			if r < 0x20 || r == 0x7f {
				return utf8.RuneError
			}
			return r
		}, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return hookglass.Beginning(s, n)
}
