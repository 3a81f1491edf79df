package email

import (
	"bytes"
	"strings"
)

// Bounds of a header block. Real mail stays far below them; anything beyond is in the raw message.
const (
	maxHeaderBytes = 256 << 10 // of the message; many DKIM and ARC sets take some 30 KiB
	maxPartHeader  = 32 << 10  // of one MIME part
	maxFields      = 1000
	maxValue       = 64 << 10 // of one field, decoded
)

// field is a header field, unfolded, its bytes as sent.
type field struct{ name, value string }

// block is a header block in order.
type block []field

// get returns the first value of a field, without surrounding space.
func (h block) get(name string) string {
	for i := range h {
		if strings.EqualFold(h[i].name, name) {
			return strings.Trim(h[i].value, " \t")
		}
	}
	return ""
}

// scanHeader parses the header block that b begins with, at most limit bytes of it, and returns where the body begins.
// A line that is not a field ends the header and is the first line of the body, as in mail servers: it is more often a
// missing empty line than a damaged field.
func scanHeader(b []byte, limit int, fault func(Fault)) (h block, body int) {
	start, colon := -1, 0 // of the field being read
	finish := func(end int) {
		if end > limit {
			end = limit
			fault(HeaderTruncated)
		}
		if start >= 0 && colon < end { // else its name alone is beyond the limit
			h = append(h, field{strings.TrimRight(string(b[start:colon]), " \t"), unfold(b[colon+1 : end])})
		}
		start = -1
	}
	for pos := 0; pos < len(b); {
		if pos > limit {
			finish(pos)
			return h, pos + afterBlankLine(b[pos:])
		}
		next := pos + len(line(b[pos:]))
		text := bytes.TrimRight(b[pos:next], "\r\n")
		switch {
		case len(text) == 0:
			finish(pos)
			return h, next
		case (text[0] == ' ' || text[0] == '\t') && start >= 0: // folded
		default:
			at := bytes.IndexByte(text, ':')
			if !isFieldName(bytes.TrimRight(text[:max(at, 0)], " \t")) {
				if pos == 0 && bytes.HasPrefix(bytes.TrimLeft(text, ">"), []byte("From ")) { // of an mbox
					break
				}
				finish(pos)
				if len(h) > 0 {
					fault(MalformedHeader)
				}
				return h, pos
			}
			finish(pos)
			if len(h) == maxFields {
				fault(HeaderTruncated)
				return h, pos + afterBlankLine(b[pos:])
			}
			start, colon = pos, pos+at
		}
		pos = next
	}
	finish(len(b))
	return h, len(b)
}

// line is the first line of b with its end.
func line(b []byte) []byte {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i+1]
	}
	return b
}

// afterBlankLine returns the offset after the first empty line of b, which must start at a line.
func afterBlankLine(b []byte) int {
	for pos := 0; ; {
		switch rest := b[pos:]; {
		case len(rest) == 0:
			return len(b)
		case rest[0] == '\n':
			return pos + 1
		case rest[0] == '\r' && len(rest) > 1 && rest[1] == '\n':
			return pos + 2
		default:
			pos += len(line(rest))
		}
	}
}

func isFieldName(name []byte) bool {
	for _, c := range name {
		if c <= ' ' || c >= 0x7f || c == ':' {
			return false
		}
	}
	return len(name) > 0
}

// unfold removes the line ends from a field's value (RFC 5322, section 2.2.3).
func unfold(value []byte) string {
	value = bytes.Trim(value, " \t\r\n")
	if bytes.IndexByte(value, '\n') < 0 {
		return string(value)
	}
	var b strings.Builder
	b.Grow(len(value))
	for i, c := range value {
		if c == '\n' || c == '\r' && i+1 < len(value) && value[i+1] == '\n' {
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
