package redact

import (
	"iter"
	"slices"
	"strings"
)

// looseValues finds values under sensitive names in text that resembles JSON without being it: literals of JavaScript,
// Python, Ruby and PHP, attributes of XML and HTML, headers listed as pairs, and parameters of URLs. Those in JSON are
// found by namedValues.
//
// It looks at each character that may separate a name from a value, and never twice at what it has passed: a value is
// read only when its name is sensitive, and an unclosed quotation mark is the last of its kind.
func looseValues(s string) iter.Seq[namedValue] {
	return func(yield func(namedValue) bool) {
		for at := strings.IndexAny(s, ":=,"); at >= 0; {
			v, found := looseValue(s, at)
			if found && !yield(v) {
				return
			}
			next := at + 1
			if found {
				next = v.stop
			}
			if at = strings.IndexAny(s[next:], ":=,"); at >= 0 {
				at += next
			}
		}
	}
}

// looseValue returns the value behind a separator, if the name before it makes it a credential.
func looseValue(s string, at int) (v namedValue, found bool) {
	name, quote := nameBefore(s, at)
	if name == "" {
		return v, false
	}
	start := at + 1
	switch s[at] {
	case ',':
		return pairedValue(s, at, name, quote)
	case '=':
		if strings.HasPrefix(s[start:], ">") { // as Ruby and PHP write it
			start++
		} else if quote != 0 {
			return v, false
		} else if strings.EqualFold(name, "name") || strings.EqualFold(name, "key") {
			return attributeBeside(s, start)
		}
	case ':':
		if quote == '"' {
			return v, false // of JSON
		}
	}
	if !Sensitive(name) {
		return v, false
	}
	v, found = valueUnder(s, afterSpace(s, start), name, quote != 0)
	if found || s[at] != '=' || quote != 0 || start > at+1 || strings.HasPrefix(s[start:], "=") {
		return v, found
	}
	v = namedValue{start: start, stop: start + parameterEnd(s[start:])} // as of a URL, a program's argument or a log
	v.text = s[v.start:v.stop]
	return v, isCredential(name, v.text)
}

// afterParameter are the characters that end the value of a parameter.
const afterParameter = "&;#<>\"'`\\ \t\r\n"

// parameterEnd returns where the value of a parameter ends that a text begins with. A mark at the end of a sentence is
// no part of it.
func parameterEnd(s string) int {
	if end := strings.IndexAny(s, afterParameter); end >= 0 {
		s = s[:end]
	}
	return len(strings.TrimRight(s, ".,;:!?)"))
}

// nameBefore returns the name that ends before a separator, and its quotation mark or 0. The name is empty when there
// is none, or when it is too long to be a sensitive one.
func nameBefore(s string, at int) (name string, quote byte) {
	end := len(strings.TrimRight(s[:at], " \t\r\n"))
	if end == 0 {
		return "", 0
	}
	if quote = s[end-1]; quote == '"' || quote == '\'' {
		inside := strings.TrimRight(s[max(0, end-1-maxSlashes):end-1], `\`)
		stop := max(0, end-1-maxSlashes) + len(inside)
		from := max(0, stop-maxSensitive-1)
		open := strings.LastIndexByte(s[from:stop], quote)
		if open < 0 {
			return "", 0
		}
		return s[from+open+1 : stop], quote
	}
	from := end
	for from > 0 && end-from <= maxSensitive && inName(s[from-1]) {
		from--
	}
	return s[from:end], 0
}

func inName(c byte) bool {
	return c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// maxSlashes bounds the backslashes before a quotation mark: strings in strings in strings have seven.
const maxSlashes = 7

// quotedAt is the string that begins at a place, in quotation marks of either kind.
func quotedAt(s string, at int) (v namedValue, found bool) {
	slashes := 0
	for slashes <= maxSlashes && at+slashes < len(s) && s[at+slashes] == '\\' {
		slashes++
	}
	if slashes > maxSlashes || at+slashes == len(s) || s[at+slashes] != '"' && s[at+slashes] != '\'' {
		return v, false
	}
	v.mark = s[at : at+slashes+1]
	v.start, v.stop = at, quotedEnd(s, at, v.mark)
	v.text = strings.TrimSuffix(s[at+len(v.mark):v.stop], v.mark)
	return v, true
}

// valueUnder returns the value at a place under a sensitive name. bare allows it to be unquoted. That is right only
// behind a quoted name: what follows any other may be a sentence.
func valueUnder(s string, at int, name string, bare bool) (v namedValue, found bool) {
	if v, found = quotedAt(s, at); !found {
		if !bare {
			return v, false
		}
		v = namedValue{start: at, stop: at, mark: "'"}
		if v.stop = literalEnd(s, at); v.stop == at {
			return v, false
		}
		v.text = s[at:v.stop]
	}
	return v, isCredential(name, v.text)
}

// isCredential reports whether a text under a sensitive name is to be hidden.
func isCredential(name, text string) bool {
	switch text {
	case "", "null", "true", "false", "None", "True", "False", "nil", "undefined", "{}", "[]":
		return false
	}
	return !onlySecrets(name, text)
}

// literalEnd returns where an unquoted value ends, including all that is in its brackets. A value that is cut off ends
// with the text.
func literalEnd(s string, at int) int {
	for depth := 0; at < len(s); {
		switch c := s[at]; {
		case c == '{', c == '[', c == '(':
			depth++
		case depth == 0 && strings.IndexByte(",}])>; \t\r\n\\\"'", c) >= 0:
			return at
		case c == '}', c == ']', c == ')':
			if depth--; depth == 0 {
				return at + 1
			}
		case c == '"', c == '\'':
			at = quotedEnd(s, at, s[at:at+1])
			continue
		}
		at++
	}
	return at
}

// pairedValue returns what follows the name of a header in a list of names and values, as in ["Cookie", "a=b"], or in
// the member beside it, as in {"name": "Cookie", "value": "a=b"}.
func pairedValue(s string, at int, name string, quote byte) (v namedValue, found bool) {
	if quote == 0 || !Sensitive(name) {
		return v, false
	}
	v, found = quotedAt(s, afterSpace(s, at+1))
	if !found {
		start := afterSpace(s, at+1) // {name: 'Cookie', value: 'a=b'}
		end := start
		for end < len(s) && end-start < maxSensitive && inName(s[end]) {
			end++
		}
		if !valueBeside(s[start:end]) || end == len(s) || s[end] != ':' {
			return v, false
		}
		return valueUnder(s, afterSpace(s, end+1), name, false)
	}
	behind := afterSpace(s, v.stop)
	if behind < len(s) && (s[behind] == ':' || s[behind] == '=' && strings.HasPrefix(s[behind+1:], ">")) {
		if !valueBeside(v.text) {
			return v, false
		}
		if s[behind] == '=' {
			behind++
		}
		return valueUnder(s, afterSpace(s, behind+1), name, true)
	}
	return v, CredentialHeader(name) && isCredential(name, v.text)
}

// valueBeside reports whether a member of this name holds the value of what the member beside it names.
func valueBeside(name string) bool {
	return slices.ContainsFunc([]string{"value", "values", "val"}, func(known string) bool { return strings.EqualFold(known, name) })
}

// besideMost bounds how far behind an attribute name="…" its value="…" is looked for.
const besideMost = 300

// attributeBeside returns the value="…" of a tag whose name="…", which begins at a place, is a sensitive name.
func attributeBeside(s string, at int) (v namedValue, found bool) {
	name, found := quotedAt(s, at)
	if !found || len(name.text) > maxSensitive || !Sensitive(name.text) {
		return v, false
	}
	tag := s[name.stop:min(len(s), name.stop+besideMost)]
	if end := strings.IndexAny(tag, "<>"); end >= 0 {
		tag = tag[:end]
	}
	for i := 0; ; {
		n := strings.IndexByte(tag[i:], '=')
		if n < 0 {
			return v, false
		}
		i += n + 1
		if beside, quote := nameBefore(s, name.stop+i-1); quote == 0 && valueBeside(beside) {
			return valueUnder(s, name.stop+i, name.text, false)
		}
	}
}

// CredentialsIn yields the start and the end of each text under a sensitive name, without quotation marks, in a text
// that is not JSON as a whole.
func CredentialsIn(s string) iter.Seq2[int, int] {
	return func(yield func(from, upTo int) bool) {
		for v := range allValues(s) {
			from := v.start
			if strings.HasPrefix(s[from:], v.mark) {
				from += len(v.mark)
			}
			if strings.IndexByte("{[(", v.text[0]) < 0 && !yield(from, from+len(v.text)) {
				return
			}
		}
	}
}
