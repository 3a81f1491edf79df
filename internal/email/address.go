package email

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxAddresses are read of one field.
const maxAddresses = 1000

// Address is a mailbox of a header field. Both parts are decoded and valid UTF-8.
type Address struct {
	Name    string // display name, may be empty
	Address string // local@domain as written
}

// String is the address as a person writes it: bare, or Name <local@domain>, the name in quotes where it could be
// misread.
func (a Address) String() string {
	switch {
	case a.Name == "":
		return a.Address
	case strings.ContainsAny(a.Name, `"(),.:;<>@[\]`):
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a.Name) + `" <` + a.Address + ">"
	}
	return a.Name + " <" + a.Address + ">"
}

// domain is what follows the last @ in lower case, or "".
func (a Address) domain() string {
	if at := strings.LastIndexByte(a.Address, '@'); at >= 0 {
		return strings.ToLower(strings.TrimSuffix(a.Address[at+1:], "."))
	}
	return ""
}

// parseAddresses reads an address list (RFC 5322, section 3.4, with groups and comments) as forgivingly as can be.
// Structure is read before RFC 2047 words are decoded, so that a decoded name can not pose as an address.
func parseAddresses(s string, fault func(Fault)) (list []Address) {
	var name, addr, comment strings.Builder
	angled, afterAngle := false, false
	addressed := false // the name has what the name of a group has not
	end := func() {
		a := Address{Address: printable(guessUTF8(obsolete(addr.String())))}
		text := strings.Trim(name.String(), " \t")
		if text == "" && !afterAngle { // nobody, or a comment about nobody
			comment.Reset()
		}
		if !angled && !afterAngle {
			if strings.Contains(text, "=?") {
				a.Name = decodeText(text, fault)
			} else {
				a.Address = printable(guessUTF8(obsolete(text)))
			}
			text = strings.Trim(comment.String(), " \t") // ada@example.com (Ada), of old
		}
		if a.Name == "" {
			a.Name = withoutQuotes(decodeText(text, fault))
		}
		if a.Name == a.Address {
			a.Name = ""
		}
		if (a.Address != "" || a.Name != "") && len(list) < maxAddresses {
			if a.Address == "" {
				a.Name, a.Address = "", a.Name
			}
			list = append(list, a)
		}
		name.Reset()
		addr.Reset()
		comment.Reset()
		angled, afterAngle, addressed = false, false, false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"':
			text, n := quotedString(s[i:])
			if angled || followedByAt(s[i+n:]) { // "a b"@example.com keeps its quotes
				text = s[i : i+n]
			}
			if angled {
				addr.WriteString(text)
			} else {
				name.WriteString(text)
				addressed = addressed || strings.ContainsAny(text, "@[")
			}
			i += n - 1
		case c == '(':
			text, n, _ := commentText(s[i:])
			comment.WriteString(text)
			i += n - 1
		case c == '<': // also within another one, which some programs write around the whole address
			angled = true
			addr.Reset()
		case c == '>' && angled:
			angled, afterAngle = false, true
		case c == ',' && !angled, c == ';' && !angled:
			end()
		case c == ':' && !angled && !afterAngle && !addressed: // the name of a group
			name.Reset()
			comment.Reset()
		case angled:
			addr.WriteByte(c)
		case !afterAngle:
			name.WriteByte(c)
			addressed = addressed || c == '@' || c == '['
		}
	}
	if angled { // never closed
		angled, afterAngle = false, true
	}
	end()
	return list
}

// obsolete reads an address as it was once allowed to be written (RFC 5322, section 4.4): without the route before it,
// and without the space around the dots and the at sign.
func obsolete(s string) string {
	s = strings.Trim(s, " \t")
	if strings.HasPrefix(s, "@") {
		if _, address, ok := strings.Cut(s, ":"); ok {
			s = strings.TrimLeft(address, " \t")
		}
	}
	if !strings.ContainsAny(s, " \t") || strings.ContainsAny(s, "\"[") || !strings.ContainsRune(s, '@') {
		return s // space in quotes and brackets counts
	}
	return spacedDots.ReplaceAllString(s, "$1")
}

var spacedDots = regexp.MustCompile(`[ \t]*([.@])[ \t]*`)

// withoutQuotes takes off a pair of quotes around a decoded name.
func withoutQuotes(s string) string {
	if n := len(s); n >= 2 && s[0] == s[n-1] && (s[0] == '"' || s[0] == '\'') {
		return strings.Trim(s[1:n-1], " ")
	}
	return s
}

// quotedString reads the quoted string that s begins with; n is its length with the quotes.
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

// commentText reads the comment that s begins with, with those inside it. One that is never closed goes on to the end.
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

func followedByAt(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '@'
}

// joinAddresses is the one string of a list (decisions, section 14).
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
