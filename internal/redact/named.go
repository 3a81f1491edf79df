package redact

import (
	"encoding/json"
	"iter"
	"regexp"
	"strings"
	"unicode/utf8"

	"hookglass"
)

// hideNamed redacts values under sensitive names in a text that is not JSON as a whole: members of partial JSON (the
// beginning of a long answer, lines of documents) and of JSON-like literals, XML elements and attributes, fields of
// multipart forms, and headers as lines or pairs.
func hideNamed(s string) string {
	s = hideValues(s, namedValues(s))
	s = hideValues(s, lineValues(s))
	return hideParts(hideElements(hideValues(s, looseValues(s))))
}

// mayName reports whether a text has a character that separates a name from a value, or a user from a password, or may
// escape one. Most strings of a body have none and need no further search.
func mayName(s string) bool {
	return strings.ContainsAny(s, ":=,<%")
}

// splice is a text with other words in the place of some of its parts, from the first to the last.
type splice struct {
	s    string
	b    strings.Builder
	from int // what is behind is not written yet
}

func (p *splice) put(start, stop int, shown string) {
	p.b.WriteString(p.s[p.from:start])
	p.b.WriteString(shown)
	p.from = stop
}

func (p *splice) text() string {
	if p.from == 0 { // as of most texts
		return p.s
	}
	p.b.WriteString(p.s[p.from:])
	return p.b.String()
}

// hideValues redacts the values that were found.
func hideValues(s string, values iter.Seq[namedValue]) string {
	p := splice{s: s}
	for v := range values {
		p.put(v.start, v.stop, v.mark+hookglass.Redacted+v.mark)
	}
	return p.text()
}

// namedValue is a value of JSON in a text, with its quotation marks.
type namedValue struct {
	start, stop int
	mark        string // as written, with the backslashes before it
	text        string // between the marks
}

// namedValues finds JSON values under sensitive names. It tries each quotation mark as the start of a name, so it finds
// members whatever is before them, also in JSON inside a JSON string, where backslashes precede the quotation marks.
func namedValues(s string) iter.Seq[namedValue] {
	return func(yield func(namedValue) bool) {
		for open := strings.IndexByte(s, '"'); open >= 0; {
			n := strings.IndexByte(s[open+1:], '"')
			if n < 0 {
				break
			}
			end := open + 1 + n
			name := strings.TrimRight(s[open+1:end], `\`)
			mark := s[open+1+len(name) : end+1]
			open = end // it may be the mark before the next name
			colon := afterSpace(s, end+1)
			if colon == len(s) || s[colon] != ':' || !Sensitive(name) {
				continue
			}
			start := afterSpace(s, colon+1)
			stop := valueEnd(s, start, mark)
			switch text := strings.TrimSuffix(strings.TrimPrefix(s[start:stop], mark), mark); {
			case text == "", text == "null", text == "true", text == "false", text == "{}", text == "[]", onlySecrets(name, text):
			case !yield(namedValue{start, stop, mark, text}):
				return
			}
			if open = strings.IndexByte(s[stop:], '"'); open >= 0 {
				open += stop
			}
		}
	}
}

// allValues yields what namedValues finds, then what lineValues and looseValues do.
func allValues(s string) iter.Seq[namedValue] {
	return func(yield func(namedValue) bool) {
		for _, found := range []iter.Seq[namedValue]{namedValues(s), lineValues(s), looseValues(s)} {
			for v := range found {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// namedTexts yields the values under sensitive names in a text that may be JSON or a form: as written, since the text
// may be sent on unchanged, and decoded.
func namedTexts(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		both := func(written, meant string) bool {
			return yield(written) && (meant == written || yield(meant))
		}
		for v := range allValues(s) {
			var meant string
			if json.Unmarshal([]byte(`"`+v.text+`"`), &meant) != nil {
				meant = v.text
			}
			if !both(v.text, meant) {
				return
			}
		}
		if strings.ContainsAny(s, " \r\n\t") {
			return
		}
		for pair := range strings.SplitSeq(s[strings.IndexByte(s, '?')+1:], "&") {
			name, value, _ := strings.Cut(pair, "=")
			if value != "" && Sensitive(unescaped(name)) && !both(value, unescaped(value)) {
				return
			}
		}
	}
}

// element matches the start tag of an XML element and captures its name without a prefix.
var element = regexp.MustCompile(`<(?:[A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)(?:\s(?:[^<>]*[^<>/])?)?>`)

// hideElements redacts the text at the beginning of elements with sensitive names.
func hideElements(s string) string {
	if !strings.Contains(s, "</") {
		return s
	}
	p := splice{s: s}
	for _, at := range element.FindAllStringSubmatchIndex(s, -1) {
		name := s[at[2]:at[3]]
		if at[0] < p.from || !Sensitive(name) {
			continue
		}
		start := afterSpace(s, at[1])
		text, _, _ := strings.Cut(s[start:], "<")
		if strings.HasPrefix(s[start:], "<![CDATA[") {
			if text = s[start:]; strings.Contains(text, "]]>") { // else it is cut off
				text = text[:strings.Index(text, "]]>")+len("]]>")]
			}
		}
		if text = strings.TrimRight(text, " \t\r\n"); text == "" || onlySecrets(name, text) {
			continue
		}
		p.put(start, start+len(text), hookglass.Redacted)
	}
	return p.text()
}

func afterSpace(s string, at int) int {
	return len(s) - len(strings.TrimLeft(s[at:], " \t\r\n"))
}

// valueEnd returns where a JSON value ends that has such quotation marks. A value that is cut off ends with the text.
func valueEnd(s string, at int, mark string) int {
	if end := quotedEnd(s, at, mark); end > at {
		return end
	}
	if end := quotedEnd(s, at, "'"); end > at+1 && s[end-1] == '\'' { // as JavaScript has it
		return end
	}
	depth := 0
	for at < len(s) {
		switch c := s[at]; {
		case c == '{', c == '[':
			depth++
		case depth == 0 && strings.IndexByte(",}] \t\r\n\\\"", c) >= 0:
			return at
		case c == '}', c == ']':
			if depth--; depth == 0 {
				return at + 1
			}
		case c == '"', c == '\\':
			marks := len(s) - len(strings.TrimLeft(s[at:], `\`))
			if open := marks + 1 - len(mark); open >= at { // only the last backslashes of a run can be those of a mark
				if end := quotedEnd(s, open, mark); end > open {
					at = end
					continue
				}
			}
			at = max(at, marks-1)
		}
		at++
	}
	return at
}

// quotedEnd returns where the string that begins with a mark at a place ends; at, when none begins there. A mark is a
// quotation mark with the backslashes before it. More backslashes may precede the closing mark: each 2*slashes+2 of
// them write one backslash of the string.
func quotedEnd(s string, at int, mark string) int {
	if !strings.HasPrefix(s[at:], mark) {
		return at
	}
	slashes, quote, run := len(mark)-1, mark[len(mark)-1], 0
	for i := at + len(mark); i < len(s); i++ {
		switch s[i] {
		case '\\':
			run++
			continue
		case quote:
			if run%(2*slashes+2) == slashes {
				return i + 1
			}
		}
		run = 0
	}
	return len(s)
}

// lineValues finds the values of headers on lines of their own, and those under other sensitive names if such a line
// has nothing else, as in settings: PASSWORD: x.
func lineValues(s string) iter.Seq[namedValue] {
	return func(yield func(namedValue) bool) {
		if !strings.ContainsAny(s, ":=") {
			return
		}
		at := 0
		for line := range strings.Lines(s) {
			if v, found := lineValue(line); found {
				v.start, v.stop = at+v.start, at+v.stop
				if !yield(v) {
					return
				}
			}
			at += len(line)
		}
	}
}

func lineValue(line string) (v namedValue, found bool) {
	sign := strings.IndexAny(line, ":=")
	if sign < 0 {
		return v, false
	}
	name := strings.TrimLeft(line[:sign], "<> \t") // as tools that show requests have it
	v.text = strings.TrimSpace(line[sign+1:])
	if line[sign] == '=' || !CredentialHeader(name) {
		name = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(name), "- "), "export ")
		v.text, _, _ = strings.Cut(v.text, " #") // a comment
		v.text = strings.TrimSpace(v.text)
		if !aloneUnder(name, v.text) {
			return v, false
		}
	}
	v.start = sign + 1 + strings.Index(line[sign+1:], v.text)
	v.stop = v.start + len(v.text)
	return v, isCredential(name, v.text)
}

// aloneUnder reports whether a text that is the rest of a line is the value of a sensitive name before it, and no part
// of a sentence. It is one word. Behind several words it has a digit: "Invalid token: mismatch" is a sentence.
func aloneUnder(name, text string) bool {
	if text == "" || strings.ContainsAny(text, " \t") || strings.IndexByte("\"'`{[(<>|&*=!\\", text[0]) >= 0 ||
		strings.Contains(text, hookglass.Redacted) || !Sensitive(name) {
		return false
	}
	between := strings.Count(name, " ")
	return (between == 0 || between < 4 && strings.ContainsAny(text, "0123456789")) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < utf8.RuneSelf && r != ' ' && !inName(byte(r)) })
}

// CredentialHeader reports whether a text can only be the name of a header that holds credentials, and no word: what
// stands beside it is the header's value.
func CredentialHeader(name string) bool {
	if strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return false
	}
	return SensitiveHeader(name) && (strings.Contains(name, "-") || isAuthorization(name) || strings.EqualFold(name, "cookie"))
}

// partForm finds the name of a part of a multipart form (RFC 7578, section 4.2).
var partForm = regexp.MustCompile(`(?i)\bcontent-disposition:[ \t]*form-data;[^\r\n]*?\bname="?([^"\r\n;]*)[^\r\n]*\r?\n`)

// hideParts redacts the content of sensitive parts of a multipart form: from the empty line behind the part's headers
// to the next boundary line.
func hideParts(s string) string {
	if !strings.Contains(s, "form-data") {
		return s
	}
	p, past := splice{s: s}, 0 // past: the search is done up to here
	boundary := "--"
	for _, at := range partForm.FindAllStringSubmatchIndex(s, -1) {
		if at[0] < past {
			continue
		}
		boundary = lastBoundary(s[past:at[0]], boundary)
		past = at[1]
		name := s[at[2]:at[3]]
		if !Sensitive(name) {
			continue
		}
		start := afterEmptyLine(s, at[1]-1)
		if start < 0 {
			break
		}
		past = len(s)
		if n := strings.Index(s[start:], "\n"+boundary); n >= 0 {
			past = start + len(strings.TrimSuffix(s[start:start+n], "\r"))
		}
		if value := s[start:past]; strings.TrimSpace(value) != "" && !onlySecrets(name, value) {
			p.put(start, past, hookglass.Redacted)
		}
	}
	return p.text()
}

// lastBoundary returns the last line that looks like a boundary (RFC 2046, section 5.1.1), or none.
func lastBoundary(s, none string) string {
	if i := strings.LastIndex(s, "\n--"); i >= 0 {
		s = s[i+1:]
	} else if !strings.HasPrefix(s, "--") {
		return none
	}
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimRight(line, " \t\r")
}

// afterEmptyLine returns where the next empty line ends, given the end of a line, or -1 when there is none.
func afterEmptyLine(s string, at int) int {
	for {
		n := strings.IndexByte(s[at:], '\n')
		if n < 0 {
			return -1
		}
		at += n + 1
		if rest := strings.TrimPrefix(s[at:], "\r"); strings.HasPrefix(rest, "\n") {
			return len(s) - len(rest) + 1
		}
	}
}
