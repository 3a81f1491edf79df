package email

import (
	"bytes"
	"strings"
)

// Bounds of the MIME tree. A message beyond them is stored whole and marked.
const (
	maxDepth = 20
	maxParts = 200
)

// node is a part of the MIME tree. Its body is a slice of the raw message, encoded as sent.
type node struct {
	header      block
	media       string // type/subtype in lower case
	params      map[string]string
	disposition string // inline, attachment, another word, or empty
	disposed    map[string]string
	encoding    string
	body        []byte
	children    []*node
}

// tree builds the MIME tree of a message. A boundary of an outer multipart also ends inner ones, so every byte is read
// at most maxDepth times, however deep the nesting.
type tree struct {
	parts int
	fault func(Fault)
}

// describe parses the headers of a part.
func (t *tree) describe(n *node, fallback string) {
	n.media, n.params = parseParameters(n.header.get("Content-Type"), t.fault)
	n.disposition, n.disposed = parseParameters(n.header.get("Content-Disposition"), t.fault)
	if kind, subtype, ok := strings.Cut(n.media, "/"); !ok || !isToken(kind) || !isToken(subtype) {
		switch { // as old mailers write it
		case n.media == "html":
			n.media = "text/html"
		case n.media == "text", n.media == "", n.filename() == "" && n.disposition != "attachment": // RFC 2045, section 5.2
			n.media = fallback
		default:
			n.media = "application/octet-stream"
		}
	}
	n.encoding = transferName(n.header.get("Content-Transfer-Encoding"))
}

// isToken reports whether s is a token of RFC 2045, section 5.1, of a plausible length.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?=`, c) >= 0 {
			return false
		}
	}
	return s != "" && len(s) <= 127 // RFC 6838, section 4.2
}

// grow finds the parts of a multipart, recursively.
func (t *tree) grow(n *node, depth int) {
	if !strings.HasPrefix(n.media, "multipart/") {
		return
	}
	switch {
	case depth == maxDepth:
		t.fault(TooDeep)
		return
	case t.parts == maxParts:
		t.fault(TooManyParts)
		return
	}
	fallback := "text/plain"
	if n.media == "multipart/digest" {
		fallback = "message/rfc822" // RFC 2046, section 5.1.5
	}
	boundary := strings.TrimRight(n.params["boundary"], " \t")
	if boundary == "" {
		boundary = soughtBoundary(n.body)
	}
	for _, content := range t.split(n.body, boundary) {
		child := &node{}
		var at int
		child.header, at = scanHeader(content, maxPartHeader, t.fault)
		child.body = content[at:]
		t.describe(child, fallback)
		n.children = append(n.children, child)
	}
	if len(n.children) == 0 {
		t.fault(MissingBoundary)
		n.media = "text/plain"
		return
	}
	for _, child := range n.children {
		t.grow(child, depth+1)
	}
}

// soughtBoundary guesses the boundary of a multipart that names none: its first line that looks like one.
func soughtBoundary(body []byte) string {
	head := body[:min(len(body), 4<<10)]
	for len(head) > 0 {
		l := line(head)
		head = head[len(l):]
		if text := bytes.TrimRight(l, " \t\r\n"); len(text) > 6 && len(text) < 73 && bytes.HasPrefix(text, []byte("--")) && bytes.IndexByte(text, ' ') < 0 {
			return string(text[2:])
		}
	}
	return ""
}

// split returns the contents between the delimiters of a multipart (RFC 2046, section 5.1.1). Without a close delimiter
// the last part extends to the end.
func (t *tree) split(body []byte, boundary string) (contents [][]byte) {
	if boundary == "" || len(boundary) > 200 { // RFC 2046 allows 70
		return nil
	}
	delimiter := []byte("--" + boundary)
	start := -1 // of the part being read
	for pos := 0; ; {
		at := nextDelimiter(body, pos, delimiter)
		if at < 0 {
			break
		}
		if start >= 0 {
			contents = append(contents, body[start:max(start, beforeLineEnd(body, at))])
		}
		l := line(body[at:])
		if bytes.HasPrefix(l[len(delimiter):], []byte("--")) {
			return contents
		}
		start, pos = at+len(l), at+len(l)
		if t.parts == maxParts {
			t.fault(TooManyParts)
			return contents
		}
		t.parts++
	}
	if start >= 0 {
		t.fault(Unterminated)
		contents = append(contents, body[start:])
	}
	return contents
}

// nextDelimiter finds a delimiter line at or after pos, which must be the start of a line.
func nextDelimiter(body []byte, pos int, delimiter []byte) int {
	for pos < len(body) {
		if bytes.HasPrefix(body[pos:], delimiter) {
			rest := bytes.TrimRight(line(body[pos:])[len(delimiter):], " \t\r\n")
			if len(rest) == 0 || string(rest) == "--" {
				return pos
			}
		}
		i := bytes.Index(body[pos:], []byte("\n--"))
		if i < 0 {
			return -1
		}
		pos += i + 1
	}
	return -1
}

// beforeLineEnd returns the offset of the line end before at, which belongs to the delimiter there.
func beforeLineEnd(body []byte, at int) int {
	if at > 0 && body[at-1] == '\n' {
		at--
		if at > 0 && body[at-1] == '\r' {
			at--
		}
	}
	return at
}
