package email

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxAddresses bounds the addresses that are read from one field.
const maxAddresses = 1000

// Address is a mailbox of a header field. Both parts are decoded and valid UTF-8.
type Address struct {
	Name    string // display name, may be empty
	Address string // local@domain as written
}

// String returns the address as people write it: bare, or Name <local@domain>, with the name in quotes where that is
// needed.
func (a Address) String() string {
	switch {
	case a.Name == "":
		return a.Address
	case strings.ContainsAny(a.Name, `"(),.:;<>@[\]`):
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a.Name) + `" <` + a.Address + ">"
	}
	return a.Name + " <" + a.Address + ">"
}

// domain returns the part after the last @ in lower case, or "".
func (a Address) domain() string {
	if at := strings.LastIndexByte(a.Address, '@'); at >= 0 {
		return strings.ToLower(strings.TrimSuffix(a.Address[at+1:], "."))
	}
	return ""
}

// Addresses returns the addresses in a Message's From, To, Cc or ReplyTo.
func Addresses(list string) []Address { return parseAddresses(list, func(Fault) {}) }

// parseAddresses parses an address list (RFC 5322, section 3.4, with groups and comments) as leniently as possible. It
// finds the structure before it decodes RFC 2047 words, so that a decoded name cannot pose as an address.
func parseAddresses(s string, fault func(Fault)) []Address {
	r := addressReader{fault: fault}
	for s != "" {
		s = s[r.take(s):]
	}
	if r.angled { // never closed
		r.angled, r.afterAngle = false, true
	}
	r.end()
	return r.list
}

// addressReader parses an address list. The parts of the current address are unfolded and not decoded yet.
type addressReader struct {
	list  []Address
	fault func(Fault)

	name, addr, comment strings.Builder

	angled     bool // within angle brackets
	afterAngle bool
	addressed  bool // the name has something that the name of a group cannot have
}

// take consumes the next element of a text, and returns its length.
func (r *addressReader) take(s string) (n int) {
	switch c := s[0]; {
	case c == '"':
		return r.quoted(s)
	case c == '(':
		text, n, _ := commentText(s)
		r.comment.WriteString(text)
		return n
	case c == '<': // may be nested: some programs add brackets around a whole address
		r.angled = true
		r.addr.Reset()
	case c == '>' && r.angled:
		r.angled, r.afterAngle = false, true
	case c == ',' && !r.angled, c == ';' && !r.angled:
		r.end()
	case c == '=' && (r.afterAngle || r.bare()) && commaWord(s) > 0:
		r.end()
		return commaWord(s)
	case c == ':' && !r.angled && !r.afterAngle && !r.addressed: // the name of a group
		r.name.Reset()
		r.comment.Reset()
	case r.angled:
		r.addr.WriteByte(c)
	case !r.afterAngle:
		r.name.WriteByte(c)
		r.addressed = r.addressed || c == '@' || c == '['
	}
	return 1
}

// bare reports whether an address without brackets has been read, followed by a space.
func (r *addressReader) bare() bool {
	if r.angled || !r.addressed || r.name.Len() > maxBare {
		return false
	}
	text := strings.TrimLeft(r.name.String(), " \t")
	return strings.Contains(text, "@") && strings.IndexAny(text, " \t") == len(strings.TrimRight(text, " \t"))
}

// maxBare exceeds the longest address (RFC 5321, section 4.5.3.1.3) with the space around it.
const maxBare = 300

// quoted reads a quoted string.
func (r *addressReader) quoted(s string) (n int) {
	text, n := quotedString(s)
	if r.angled || followedByAt(s[n:]) { // "a b"@example.com keeps its quotes
		text = s[:n]
	}
	if r.angled {
		r.addr.WriteString(text)
		return n
	}
	r.name.WriteString(text)
	r.addressed = r.addressed || strings.ContainsAny(text, "@[")
	return n
}

// end adds the address that has been read, if there is one.
func (r *addressReader) end() {
	if a := r.address(); (a.Address != "" || a.Name != "") && len(r.list) < maxAddresses {
		if a.Address == "" {
			a.Name, a.Address = "", a.Name
		}
		r.list = append(r.list, a)
	}
	r.name.Reset()
	r.addr.Reset()
	r.comment.Reset()
	r.angled, r.afterAngle, r.addressed = false, false, false
}

// address returns the current address.
func (r *addressReader) address() Address {
	a := Address{Address: printable(guessUTF8(obsolete(r.addr.String())))}
	text := strings.Trim(r.name.String(), " \t")
	if text == "" && !r.afterAngle { // empty, or only a comment
		r.comment.Reset()
	}
	if !r.angled && !r.afterAngle {
		if strings.Contains(text, "=?") {
			a.Name = decodeText(text, r.fault)
		} else {
			a.Address = printable(guessUTF8(obsolete(text)))
		}
		text = strings.Trim(r.comment.String(), " \t") // ada@example.com (Ada), of old
	}
	if a.Name == "" {
		a.Name = withoutQuotes(decodeText(text, r.fault))
	}
	if a.Name == a.Address {
		a.Name = ""
	}
	return a
}

// obsolete normalises the obsolete syntax of an address (RFC 5322, section 4.4): it removes a route before it, and
// space around the dots and the at sign.
func obsolete(s string) string {
	s = strings.Trim(s, " \t")
	if strings.HasPrefix(s, "@") {
		if _, address, ok := strings.Cut(s, ":"); ok {
			s = strings.TrimLeft(address, " \t")
		}
	}
	if !strings.ContainsAny(s, " \t") || strings.ContainsAny(s, "\"[") || !strings.ContainsRune(s, '@') {
		return s // space in quotes and brackets is significant
	}
	return spacedDots.ReplaceAllString(s, "$1")
}

var spacedDots = regexp.MustCompile(`[ \t]*([.@])[ \t]*`)

// withoutQuotes removes a pair of quotes around a decoded name.
func withoutQuotes(s string) string {
	if n := len(s); n >= 2 && s[0] == s[n-1] && (s[0] == '"' || s[0] == '\'') {
		return strings.Trim(s[1:n-1], " ")
	}
	return s
}

// quotedString parses the quoted string that s begins with; n is its length with the quotes.
func quotedString(s string) (text string, n int) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), i + 1
		case '\\':
			if i+1 < len(s) {
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), len(s)
}

// commentText parses the comment that s begins with, including nested ones. A comment that is never closed extends to
// the end.
func commentText(s string) (text string, n int, closed bool) {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			if depth++; depth == 1 {
				continue
			}
		case ')':
			if depth--; depth == 0 {
				return b.String(), i + 1, true
			}
		case '\\':
			if i+1 < len(s) {
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), len(s), false
}

// commaWord returns the length of the encoded word that s begins with if it encodes a single comma, or 0. When Python's
// email package folds a list, it encodes the comma after an address together with the names.
func commaWord(s string) int {
	s = s[:min(len(s), maxWord)]
	if !strings.HasPrefix(s, "=?") {
		return 0
	}
	word, _, content, ok := firstWord(s)
	if !ok || strings.Trim(string(content), " ") != "," {
		return 0
	}
	return len(word)
}

// maxWord is how long an encoded word may be (RFC 2047, section 2).
const maxWord = 75

func followedByAt(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '@'
}

// joinAddresses returns a list as one string (spec: decisions, section 14).
func joinAddresses(list []Address) string {
	var b strings.Builder
	for i, a := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
		if b.Len() > maxValue {
			break
		}
	}
	return b.String()
}
