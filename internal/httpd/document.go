package httpd

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Document is what changes with the program alone and is no secret: a file of the web app, the description of the API.
// It is compressed once, for those who read that, and who has it already is told so.
type Document struct {
	media  string
	tag    string // weak, since it names both of the forms
	plain  []byte
	zipped func() []byte
}

// NewDocument returns a document of a media type.
func NewDocument(media string, content []byte) Document {
	sum := sha256.Sum256(content)
	return Document{
		media: media, tag: `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, plain: content,
		zipped: sync.OnceValue(func() []byte { return zipped(content) }),
	}
}

func zipped(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level exists
	_, _ = w.Write(content)                               // to memory: it never fails
	_ = w.Close()
	return b.Bytes()
}

// ServeHTTP answers with the document. For how long it may be kept is the caller's to say, in Cache-Control.
func (d Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", d.tag)
	h.Set("Vary", "Accept-Encoding")
	if lists(r.Header.Get("If-None-Match"), d.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", d.media)
	content := d.plain
	if acceptsGzip(r) {
		content = d.zipped()
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // nobody is left to tell
}

// lists reports whether a header's list has a word.
func lists(header, word string) bool {
	for item := range strings.SplitSeq(header, ",") {
		if strings.EqualFold(strings.TrimSpace(item), word) {
			return true
		}
	}
	return false
}
