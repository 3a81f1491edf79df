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
// the first part that is broken, and after MaxParts. A body that is not multipart has no parts.
func Parts(body []byte, contentType string) iter.Seq2[int, Part] {
	return func(yield func(int, Part) bool) {
		media, params, err := mime.ParseMediaType(contentType)
		if err != nil || !strings.HasPrefix(media, "multipart/") || params["boundary"] == "" {
			return
		}
		r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
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

// lastElement is the name of a file without its folders, of a path as any system writes it.
func lastElement(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if name == "." || name == ".." {
		return ""
	}
	return name
}
