package store

import (
	"strings"
	"unicode/utf8"
)

// Senders put any bytes into paths, queries and content types, but a text column takes valid UTF-8
// without NUL alone. Such bytes are kept as code points of the last 256 of plane 16, which is reversible:
// those code points themselves are kept as their four bytes.
const escapeBase = 0x10FF00

// encodeText makes any bytes storable as text. What is valid stays as it is.
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
