package coding

import (
	"bytes"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"strings"
)

// Part is a part of a multipart body. Its content is as it was sent.
type Part struct {
	Name, Filename string // "" where it has none; the last element of a path
	ContentType    string
	Content        []byte
}

// MaxParts is how many parts of a body are read.
const MaxParts = 100

// Parts are the parts of a multipart body (RFC 2046, section 5.1; for forms RFC 7578) with their index. They end before
// the first part that is broken, and after MaxParts. A body that is not multipart has no parts. A control character in
// the head of a part is read as a blank: RFC 822, which these heads follow, has them in fields.
func Parts(body []byte, contentType string) iter.Seq2[int, Part] {
	return func(yield func(int, Part) bool) {
		media, params, err := mime.ParseMediaType(contentType)
		if err != nil || !strings.HasPrefix(media, "multipart/") || params["boundary"] == "" {
			return
		}
		r := multipart.NewReader(&withoutControls{body: body, heads: heads(body, "--"+params["boundary"])}, params["boundary"])
		for i := range MaxParts {
			part, err := r.NextRawPart()
			if err != nil {
				return
			}
			content, err := io.ReadAll(part)
			if err != nil || !yield(i, Part{part.FormName(), lastElement(part.FileName()), part.Header.Get("Content-Type"), content}) {
				return
			}
		}
	}
}

// Bounds of where control characters are looked for: in the head of a part, behind a line that is a delimiter with so
// many bytes of blanks.
const (
	maxPartHead = 64 << 10
	maxPadding  = 256
)

// heads finds where the heads of parts are, each from its beginning to its end. What is no line of a delimiter to
// [multipart.Reader] is none here, for what it takes for content stays as it is.
func heads(body []byte, delimiter string) (all [][2]int) {
	newline := ""
	for at := 0; len(all) < MaxParts; {
		i := bytes.Index(body[at:], []byte(delimiter))
		if i < 0 {
			return all
		}
		before := body[:at+i]
		at += i + len(delimiter)
		rest := body[at:min(at+maxPadding, len(body))]
		rest = rest[:bytes.IndexByte(rest, '\n')+1]
		ending := strings.TrimLeft(string(rest), " \t")
		first := newline == ""
		if first && (len(before) == 0 || before[len(before)-1] == '\n') && (ending == "\n" || ending == "\r\n") {
			newline = ending // of all delimiters
		} else if first || ending != newline || !bytes.HasSuffix(before, []byte(newline)) {
			continue
		}
		at += len(rest) - 1 // at the end of its line
		head := body[at:min(at+maxPartHead, len(body))]
		for _, blankLine := range []string{"\n\n", "\n\r\n"} {
			if i := bytes.Index(head, []byte(blankLine)); i >= 0 {
				head = head[:i]
			}
		}
		all = append(all, [2]int{at, at + len(head)})
		at += len(head)
	}
	return all
}

// withoutControls reads a body with blanks in the place of control characters in its heads.
type withoutControls struct {
	body  []byte
	heads [][2]int
	at    int
}

func (r *withoutControls) Read(p []byte) (int, error) {
	if r.at == len(r.body) {
		return 0, io.EOF
	}
	n := copy(p, r.body[r.at:])
	for _, h := range r.heads {
		for i := max(h[0], r.at); i < min(h[1], r.at+n); i++ {
			endsLine := r.body[i] == '\n' || r.body[i] == '\r' && i+1 < len(r.body) && r.body[i+1] == '\n'
			if c := r.body[i]; c < ' ' && c != '\t' && !endsLine || c == 0x7f {
				p[i-r.at] = ' '
			}
		}
	}
	r.at += n
	return n, nil
}

// lastElement is the name of a file without its folders, of a path as any system writes it.
func lastElement(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if name == "." || name == ".." {
		return ""
	}
	return name
}
