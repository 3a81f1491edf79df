package hookglass

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNoteLength bounds a note, in characters. What is longer belongs where work is tracked.
const MaxNoteLength = 2000

// Note normalizes a note on an event as it is stored: lines end with a line feed, and white space around it is
// trimmed, so that a blank note is none. It answers validation_failed for what is not text or too long.
func Note(written string) (string, error) {
	note := strings.TrimSpace(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(written))
	switch {
	case !utf8.ValidString(note), strings.ContainsFunc(note, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return "", Invalid("note", "must be text, without control characters but tabs and the ends of lines")
	case utf8.RuneCountInString(note) > MaxNoteLength:
		return "", Invalid("note", "must have %d characters at most", MaxNoteLength)
	}
	return note, nil
}
