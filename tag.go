package hookglass

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of tags. Longer names cannot be told apart in a list, and more tags than that are data, not marks.
const (
	MaxTagLength = 64 // characters
	MaxEventTags = 50 // on one event
)

// ValidTag reports whether s may name a tag: 1 to MaxTagLength printable characters, none of the outer ones a space.
func ValidTag(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= MaxTagLength && strings.TrimSpace(s) == s &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Tag is a mark of a workspace that its events may have. Events carry its name.
type Tag struct {
	ID          int64
	WorkspaceID int64
	Name        string
	Color       string // #rgb, #rrggbb or a word; empty: none
	CreatedAt   time.Time
}

var tagColor = regexp.MustCompile(`^(#[0-9a-fA-F]{3}|#[0-9a-fA-F]{6}|[a-zA-Z]{3,32})$`)

// ValidTagColor reports whether s may be the colour of a tag.
func ValidTagColor(s string) bool { return tagColor.MatchString(s) }
