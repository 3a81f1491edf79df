package schema

import (
	"fmt"
	"maps"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

var (
	wordPattern = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z][A-Za-z_.:/-]{0,%d}$`, MaxWord-1))
	uuidPattern = regexp.MustCompile(`^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$`)
	datePattern = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}`)
	timePattern = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)
	mailPattern = regexp.MustCompile(`^[^\x00-\x20"@\x7f-\x{10ffff}]+@([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)
	hexPattern  = regexp.MustCompile(`^[0-9A-Fa-f]{12,}$`)
)

// isData reports whether a member's name is data rather than a part of the schema: an id, a date, an address, a number.
func isData(name string) bool {
	switch {
	case name == "" || len(name) > maxName || strings.Contains(name, "@"):
		return true
	case strings.Trim(name, "0123456789") == "", uuidPattern.MatchString(name), datePattern.MatchString(name), hexPattern.MatchString(name) && strings.ContainsAny(name, "0123456789"):
		return true
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }) {
		return true
	}
	// ids such as cus_NffrFeUfNV2Hib: the last part is long and mixes letters and digits
	last := name[strings.LastIndexAny(name, "_-")+1:]
	digits := len(last) - len(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, last))
	return len(name) >= 14 && len(last) >= 10 && (digits >= 2 || digits == 1 && len(last) < len(name)) && plain(last)
}

// plain reports whether a text has only ASCII letters and digits.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 || !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// word records the format and value of a string.
func (n *Node) word(s, event string) {
	if n.Formats == nil {
		n.Formats = make(map[string]int64, 1)
	}
	format := formatOf(s)
	n.Formats[format]++
	if n.Many {
		return
	}
	if format != "" || !wordPattern.MatchString(s) {
		n.Words, n.Many = nil, true
		return
	}
	if n.Words[s] == nil {
		if len(n.Words) == MaxValues {
			n.Words, n.Many = nil, true
			return
		}
		if n.Words == nil {
			n.Words = make(map[string]*Seen, 1)
		}
		n.Words[s] = &Seen{}
	}
	n.Words[s].see(event)
}

// formatOf returns a string's JSON Schema format, or "" if it is not certain. Checkers of formats go by the letter: a
// template such as https://api.example.com/users{/id} is no uri, nor an address without a dot in its domain an email.
func formatOf(s string) string {
	switch {
	case len(s) < 5 || len(s) > 2048:
		return ""
	case uuidPattern.MatchString(s):
		return "uuid"
	case datePattern.MatchString(s):
		if _, err := time.Parse(time.RFC3339Nano, s); err == nil && timePattern.MatchString(s) {
			return "date-time"
		}
		if _, err := time.Parse(time.DateOnly, s); err == nil {
			return "date"
		}
	case strings.Contains(s, "://"):
		if isURI(s) {
			return "uri"
		}
	case strings.Contains(s, "@") && len(s) <= 254:
		if a, err := mail.ParseAddress(s); err == nil && a.Name == "" && a.Address == s && mailPattern.MatchString(s) {
			return "email"
		}
	}
	return ""
}

// isURI reports whether a text is a URI with a host. url.Parse takes more characters than RFC 3986 has.
func isURI(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return false
	}
	brackets, fragments := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~:/?@!$&'()*+,;=", c) >= 0:
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return false
			}
		case c == '#':
			fragments++
		case c == '[' || c == ']':
			brackets++
		default:
			return false
		}
	}
	return fragments <= 1 && (brackets == 0 || brackets == 2 && strings.HasPrefix(u.Host, "["))
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// format returns the common format of all strings here, or "".
func (n *Node) format() string {
	if len(n.Formats) == 1 {
		for f := range n.Formats {
			return f
		}
	}
	return ""
}

// How many strings it takes until a set of words counts as complete, and how often each must have occurred on average.
const (
	closedAfter = 20
	closedEach  = 4
)

// closed returns the words of a set that seems complete, or nil. A single word does not count: it may be a name.
func (n *Node) closed() []string {
	s := n.Types[String]
	if s == nil || n.Many || len(n.Words) < 2 || s.N < closedAfter || int64(len(n.Words))*closedEach > s.N {
		return nil
	}
	return sortedNames(n.Words)
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
