package hookglass

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of tags. Longer names can not be told apart in a list, and more tags than that are data, not marks.
const (
	MaxTagLength = 64 // characters
	MaxEventTags = 50 // on one event
)

// ValidTag reports whether s may name a tag: 1 to MaxTagLength printable characters, none of the outer ones a space.
func ValidTag(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= MaxTagLength && strings.TrimSpace(s) == s &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
