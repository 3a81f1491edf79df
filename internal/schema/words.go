package schema

import (
	"fmt"
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

// formatOf returns a string's JSON Schema format, or "" if it is not certain.
func formatOf(s string) string {
	switch {
	case len(s) < 5 || len(s) > 2048:
		return ""
	case uuidPattern.MatchString(s):
		return "uuid"
	case datePattern.MatchString(s):
		if _, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return "date-time"
		}
		if _, err := time.Parse(time.DateOnly, s); err == nil {
			return "date"
		}
	case strings.Contains(s, "://"):
		if u, err := url.Parse(s); err == nil && u.Scheme != "" && u.Host != "" && !strings.ContainsAny(s, " \t\n") {
			return "uri"
		}
	case strings.Contains(s, "@") && len(s) <= 254:
		if a, err := mail.ParseAddress(s); err == nil && a.Name == "" && a.Address == s {
			return "email"
		}
	}
	return ""
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

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
