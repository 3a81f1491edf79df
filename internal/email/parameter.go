package email

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// parseParameters parses a field of the form "value; name=value; ..." (RFC 2045, section 5.1) with the extensions of
// RFC 2231 (continuations, charsets) and the habits of senders: RFC 2047 words in quotes, spaces in bare values,
// missing quotes, a missing value or first semicolon, repeated names (the first counts). The value and the names are in
// lower case.
func parseParameters(s string, fault func(Fault)) (value string, params map[string]string) {
	s = withSemicolon(withoutComments(s))
	value, rest, _ := cutParameter(s, true)
	value = strings.ToLower(strings.Trim(stripComment(value), " \t"))
	if name, _, ok := strings.Cut(value, "="); ok && isToken(strings.TrimRight(name, " \t")) { // the value itself is missing
		value, rest = "", s
	}
	extended := map[string][]segment{}
	params = map[string]string{}
	for lost := 0; rest != ""; {
		var p string
		var unclosed bool
		if p, rest, unclosed = cutParameter(rest, lost < maxUnclosed); unclosed {
			lost++
		}
		name, v, ok := strings.Cut(p, "=")
		if !ok {
			continue
		}
		name = strings.ToLower(strings.Trim(name, " \t"))
		v = unquote(strings.Trim(v, " \t"))
		base, mark, star := strings.Cut(name, "*")
		if star {
			if seg, ok := readSegment(mark, v); ok {
				extended[base] = append(extended[base], seg)
			}
		} else if _, repeated := params[name]; !repeated && name != "" {
			params[name] = decodeText(v, fault)
		}
	}
	for base, segments := range extended {
		params[base] = join(segments, fault)
	}
	return value, params
}

// segment is a piece of a value (RFC 2231, section 3).
type segment struct {
	index   int
	whole   bool // the value in one piece
	encoded bool // percent-encoded; the first segment names the charset
	text    string
}

// readSegment parses what follows the asterisk of a name: the segment's number, and an asterisk if it is encoded.
// name*=charset'language'text is a value in one piece.
func readSegment(mark, text string) (seg segment, ok bool) {
	seg.text = text
	mark, seg.encoded = strings.CutSuffix(mark, "*")
	if mark == "" {
		seg.whole, seg.encoded = true, true
		return seg, true
	}
	var err error
	seg.index, err = strconv.Atoi(mark)
	return seg, err == nil && seg.index >= 0
}

// join joins the segments of a value. Charset and language precede the text of the first. A value that is also present
// in one piece is that one; of segments with the same number the first counts.
func join(segments []segment, fault func(Fault)) string {
	if i := slices.IndexFunc(segments, func(s segment) bool { return s.whole }); i >= 0 {
		segments = segments[i : i+1]
	}
	slices.SortStableFunc(segments, func(a, b segment) int { return cmp.Compare(a.index, b.index) })
	segments = slices.CompactFunc(segments, func(a, b segment) bool { return a.index == b.index })
	var text []byte
	var charset string
	encoded := false
	for i, seg := range segments {
		if !seg.encoded {
			text = append(text, seg.text...)
			continue
		}
		encoded = true
		v := seg.text
		if parts := strings.SplitN(v, "'", 3); i == 0 && len(parts) == 3 {
			charset, v = parts[0], parts[2]
		}
		text = append(text, unescape(v)...)
	}
	if !encoded {
		return decodeText(string(text), fault) // RFC 2047 words cut in pieces
	}
	decoded, ok := toUTF8(text, charset)
	if !ok {
		fault(UnknownCharset)
	}
	return printable(decoded)
}

// withoutComments removes the comments of a field (RFC 2045, section 5.1). In a bare value a comment must follow a
// blank, and a file name has no comments: senders forget the quotes around both.
func withoutComments(s string) string {
	if strings.IndexByte(s, '(') < 0 {
		return s
	}
	var b strings.Builder
	parameter, inValue, inName := 0, false, false // where the parameter begins in b, and which part of it was reached
	for i, n := 0, 0; i < len(s); i += n {
		n = 1
		switch c := s[i]; {
		case c == '"':
			_, n = quotedString(s[i:])
		case c == ';':
			parameter, inValue, inName = b.Len(), false, false
		case c == '=' && !inValue:
			inValue, inName = true, strings.Contains(strings.ToLower(b.String()[parameter:]), "name")
		case c == '(' && !inName && (!inValue || s[i-1] == ' ' || s[i-1] == '\t'):
			_, length, closed := commentText(s[i:])
			if !closed {
				return b.String() + s[i:]
			}
			n = length
			continue
		}
		b.WriteString(s[i : i+n])
	}
	return b.String()
}

// withSemicolon inserts the missing semicolon between a value and its first parameter: text/html charset=utf-8.
func withSemicolon(s string) string {
	s = strings.TrimLeft(s, " \t")
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s
	}
	value, rest := strings.TrimSuffix(s[:i], ","), s[i:]
	name, _, ok := strings.Cut(rest, "=")
	if !ok || strings.ContainsAny(value, `;="(`) || !isToken(strings.Trim(name, " \t")) {
		return s
	}
	return value + ";" + rest
}

// maxUnclosed bounds the quotes in one field for which a closing quote is searched in vain, each time to the end of the
// field. Later quotes count as ordinary characters.
const maxUnclosed = 8

// cutParameter cuts at the first semicolon outside quotes, if quotes count, and reports whether one was never closed.
func cutParameter(s string, quotes bool) (first, rest string, unclosed bool) {
	if !quotes {
		first, rest, _ = strings.Cut(s, ";")
		return first, rest, false
	}
	quoted := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if quoted {
				i++
			}
		case '"':
			quoted = !quoted
		case ';':
			if !quoted {
				return s[:i], s[i+1:], false
			}
		}
	}
	if quoted { // an unclosed quote is an ordinary character
		first, rest, _ = strings.Cut(s, ";")
		return first, rest, true
	}
	return s, "", false
}

// unquote returns the text of a quoted string. It keeps backslashes except before a quote or a backslash: senders write
// Windows paths in quotes.
func unquote(s string) string {
	s, quoted := strings.CutPrefix(s, `"`)
	if !quoted {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String()
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unescape decodes percent escapes and keeps invalid ones.
func unescape(s string) string {
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			b.WriteByte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// stripComment removes what is in parentheses.
func stripComment(s string) string {
	if i := strings.IndexByte(s, '('); i >= 0 {
		return s[:i]
	}
	return s
}
