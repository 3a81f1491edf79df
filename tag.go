package hookglass

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of tags. Longer names could not be told apart in a list; more tags per event would be data rather than
// marks.
const (
	MaxTagLength = 64 // characters
	MaxEventTags = 50 // on one event
)

// ValidTag reports whether s may name a tag: 1 to MaxTagLength printable characters, without spaces at either end.
func ValidTag(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= MaxTagLength && strings.TrimSpace(s) == s &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Tag is a mark that events of a workspace can carry. Events store its name.
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
