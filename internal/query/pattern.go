package query

import (
	"bytes"
	"strings"
)

// Pattern is text with wildcards, each of which stands for any run of characters. ASCII letters match without regard to
// case.
type Pattern struct {
	parts []string // between the wildcards, lower case; one part is the whole text
}

// literal returns a pattern that matches exactly the text.
func literal(s string) Pattern { return Pattern{[]string{foldString(s)}} }

// glob returns a pattern of the parts with wildcards between them.
func glob(parts ...string) Pattern {
	folded := make([]string, len(parts))
	for i, p := range parts {
		folded[i] = foldString(p)
	}
	return Pattern{folded}
}

// Exact returns the text, in lower case, of a pattern without wildcards.
func (p Pattern) Exact() (string, bool) {
	if len(p.parts) == 1 {
		return p.parts[0], true
	}
	return "", false
}

// Like returns the pattern for SQL's LIKE, in lower case, escaped with backslashes.
func (p Pattern) Like() string {
	escape := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
	var b strings.Builder
	for i, part := range p.parts {
		if i > 0 {
			b.WriteByte('%')
		}
		escape.WriteString(&b, part)
	}
	return b.String()
}

// Match reports whether the pattern matches the whole of s. An empty s stands for a missing value, which nothing
// matches.
func (p Pattern) Match(s string) bool {
	if s == "" || len(p.parts) == 0 {
		return false
	}
	return p.matchFolded(foldString(s))
}

// matchFolded matches each part at its leftmost place, which finds a match if there is one, in linear time.
func (p Pattern) matchFolded(s string) bool {
	if len(p.parts) == 1 {
		return s == p.parts[0]
	}
	s, ok := strings.CutPrefix(s, p.parts[0])
	if !ok {
		return false
	}
	last := len(p.parts) - 1
	for _, part := range p.parts[1:last] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, p.parts[last])
}

// Containing returns a function that reports whether a text contains the given one, of MaxLength characters at most, as
// terms on text do.
func Containing(text string) func(s []byte) bool { return literal(text).contained }

// contained reports whether s contains the pattern, which has no wildcards.
func (p Pattern) contained(s []byte) bool { return containsFold(s, p.parts[0]) }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

func foldString(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				b[i] = lower(b[i])
			}
			return string(b)
		}
	}
	return s
}

// containsFold reports whether s contains the lower-case needle, ignoring case. It folds s in windows, so that a large
// body needs no copy, and takes linear time whatever a sender put there.
func containsFold(s []byte, needle string) bool {
	if len(needle) > len(s) {
		return false
	}
	var window [4*MaxLength + 4096]byte // longer than any needle: a character takes at most 4 bytes
	want := []byte(needle)
	for {
		n := min(len(s), len(window))
		for i, c := range s[:n] {
			window[i] = lower(c)
		}
		if bytes.Contains(window[:n], want) {
			return true
		}
		if n == len(s) {
			return false
		}
		s = s[n-len(want)+1:]
	}
}
