package hookglass

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNoteLength bounds a note, in characters. Longer text belongs in an issue tracker.
const MaxNoteLength = 2000

// Note normalizes a note on an event as it is stored: lines end with a line feed, and white space around it is
// trimmed, so a blank note becomes empty. It answers validation_failed for a note that is not text or is too long.
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
