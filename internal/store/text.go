package store

import (
	"strings"
	"unicode/utf8"
)

// Paths, queries and content types can hold any bytes, but a text column only valid UTF-8 without NUL. Other bytes are
// stored as the last 256 code points of plane 16. To keep this reversible, those code points themselves are stored as
// their four bytes.
const escapeBase = 0x10FF00

// encodeText makes arbitrary bytes storable as text. Valid text is unchanged.
func encodeText(s string) string {
	if storable(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if (r == utf8.RuneError && size <= 1) || r == 0 || r >= escapeBase {
			for _, c := range []byte(s[i : i+size]) {
				b.WriteRune(escapeBase + rune(c))
			}
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// decodeText is the inverse of encodeText.
func decodeText(s string) string {
	if !strings.Contains(s, "\xf4\x8f\xbc") && !strings.Contains(s, "\xf4\x8f\xbd") &&
		!strings.Contains(s, "\xf4\x8f\xbe") && !strings.Contains(s, "\xf4\x8f\xbf") {
		return s
	}
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r >= escapeBase {
			b = append(b, byte(r-escapeBase))
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}

func storable(s string) bool {
	ascii := true
	for i := range len(s) {
		if s[i] == 0 {
			return false
		}
		if s[i] >= utf8.RuneSelf {
			ascii = false
		}
	}
	if ascii {
		return true
	}
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r >= escapeBase {
			return false
		}
	}
	return true
}
