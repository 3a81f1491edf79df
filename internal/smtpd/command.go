package smtpd

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxLine bounds a command line with its CR LF. RFC 5321, section 4.5.3.1.4, requires 512 bytes, and extensions add to
// that.
const maxLine = 2048

// maxPath bounds an address (RFC 5321, section 4.5.3.1.3), with room for the UTF-8 of RFC 6531.
const maxPath = 512

var (
	errPath  = errors.New("not an address")
	errParam = errors.New("not a parameter")
)

// splitCommand splits a line without its end into the verb, in upper case, and the rest.
func splitCommand(line string) (verb, rest string) {
	verb, rest, _ = strings.Cut(line, " ")
	return strings.ToUpper(verb), strings.Trim(rest, " ")
}

// path is a forward or reverse path with its parameters.
type path struct {
	address string // as written, without brackets, route and superfluous quotes; empty: the null sender
	local   string // without quotes
	domain  string
	params  map[string]string // names in upper case
}

// parsePath parses the arguments of MAIL or RCPT: the keyword, a path and parameters (RFC 5321, section 4.1.2). It
// tolerates missing brackets and blanks before the path, as people type them.
func parsePath(rest, keyword string) (p path, err error) {
	if len(rest) < len(keyword) || !strings.EqualFold(rest[:len(keyword)], keyword) {
		return p, errPath
	}
	rest = strings.TrimLeft(rest[len(keyword):], " ")
	bracketed := strings.HasPrefix(rest, "<")
	if bracketed {
		rest = rest[1:]
	}
	if bracketed && strings.HasPrefix(rest, "@") { // a source route, to be ignored (RFC 5321, appendix C)
		var ok bool
		if _, rest, ok = strings.Cut(rest, ":"); !ok {
			return p, errPath
		}
	}
	if bracketed && strings.HasPrefix(rest, ">") {
		rest = rest[1:]
	} else if rest, err = p.mailbox(rest, bracketed); err != nil {
		return p, err
	}
	if rest != "" && rest[0] != ' ' {
		return p, errPath
	}
	p.params, err = parseParams(rest)
	return p, err
}

// mailbox parses local part, at sign, domain and the closing bracket, and returns what follows.
func (p *path) mailbox(s string, bracketed bool) (rest string, err error) {
	quoted := strings.HasPrefix(s, `"`)
	if p.local, s, err = localPart(s); err != nil {
		return "", err
	}
	if p.address = p.local; quoted && !isDotString(p.local) {
		p.address = `"` + quotedPairs.Replace(p.local) + `"`
	}
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		end := strings.IndexAny(rest, "> ")
		if end < 0 {
			end = len(rest)
		}
		p.domain, s = rest[:end], rest[end:]
		if p.domain == "" || strings.ContainsAny(p.domain, "<@,;()\"\\") {
			return "", errPath
		}
		p.address += "@" + p.domain
	}
	if bracketed {
		var ok bool
		if s, ok = strings.CutPrefix(s, ">"); !ok {
			return "", errPath
		}
	}
	if p.local == "" || len(p.address) > maxPath || !utf8.ValidString(p.address) {
		return "", errPath
	}
	return s, nil
}

// localPart parses a dot-string or a quoted string, and returns it without quoting.
func localPart(s string) (local, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, "@<>()[]:;\\,\" ")
		if end < 0 {
			end = len(s)
		}
		if end < len(s) && s[end] != '@' && s[end] != '>' && s[end] != ' ' {
			return "", "", errPath
		}
		return s[:end], s[end:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], nil
		case '\\':
			if i++; i == len(s) {
				return "", "", errPath
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", errPath
}

// isDotString reports whether a local part needs no quotes (RFC 5321, section 4.1.2, with the UTF-8 of RFC 6531).
func isDotString(local string) bool {
	for atom := range strings.SplitSeq(local, ".") {
		if atom == "" || strings.ContainsFunc(atom, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(specials, r) }) {
			return false
		}
	}
	return true
}

// specials are the printable characters that no atom has (RFC 5322, section 3.2.3).
const specials = `()<>[]:;@\,."`

// quotedPairs escapes the content of a quoted string.
var quotedPairs = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// sameDomain reports whether a domain as the client writes it, in ASCII or in Unicode, is the given one in ASCII (RFC
// 6531, section 3.2).
func sameDomain(written, ascii string) bool {
	if strings.EqualFold(written, ascii) {
		return true
	}
	converted, err := idna.Lookup.ToASCII(written)
	return err == nil && strings.EqualFold(converted, ascii)
}

// parseParams reads ESMTP parameters (RFC 5321, section 4.1.2). One may be repeated as it is: Python's smtplib adds
// SMTPUTF8 beside the one that its caller asked for.
func parseParams(s string) (map[string]string, error) {
	params := map[string]string{}
	for field := range strings.FieldsSeq(s) {
		name, value, _ := strings.Cut(field, "=")
		name = strings.ToUpper(name)
		if before, repeated := params[name]; repeated && before != value || name == "" {
			return nil, errParam
		}
		params[name] = value
	}
	return params, nil
}

// parseSize parses the size of a message or a chunk: at most 20 digits (RFC 1870, section 3). A size beyond int64
// becomes the largest one.
func parseSize(s string) (int64, bool) {
	if s == "" || len(s) > 20 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		n = 1<<63 - 1
	}
	return n, true
}

// mailbox returns the local part under which an endpoint is looked up: in lower case, and without a plus sign and what
// follows. Only ASCII letters are folded: the lower case of some others is ASCII, which would make it another mailbox's
// address.
func mailbox(local string) string {
	local, _, _ = strings.Cut(local, "+")
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, local)
}
