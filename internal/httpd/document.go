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

// Document is public content that changes only with the program: a file of the web app, the description of the API. It
// is compressed once, and answered with 304 if the client has it already.
type Document struct {
	media  string
	tag    string // weak, since it stands for both the plain and the compressed form
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

// ServeHTTP serves the document. The caller sets Cache-Control.
func (d Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", d.tag)
	h.Set("Vary", "Accept-Encoding")
	if d.isHeld(r.Header.Get("If-None-Match")) {
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
	_, _ = w.Write(content) // an error means that the client is gone
}

// isHeld reports whether a client has the document already, according to its If-None-Match (RFC 9110, section 13.1.2).
func (d Document) isHeld(tags string) bool {
	for tag := range strings.SplitSeq(tags, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(d.tag, "W/") { // the weak comparison
			return true
		}
	}
	return false
}
