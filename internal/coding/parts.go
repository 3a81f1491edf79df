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

// Parts are the parts of a multipart body (RFC 2046, section 5.1; of a form RFC 7578), up to one that is broken. Any
// other body has none.
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

// lastElement is what a file is called without the folders it was in, on whichever system.
func lastElement(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	if name == "." || name == ".." {
		return ""
	}
	return name
}
