package cli

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"unicode/utf8"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/coding"
)

// bodyPart is one part of a multipart body.
type bodyPart struct {
	name, filename, contentType string
	content                     []byte
}

// Bounds of the parts that are listed.
const (
	maxParts    = 100
	maxPartText = 2 << 10
)

// partsOf are the parts of a multipart body as far as they can be read. Any other body has none.
func partsOf(e api.EventDetail) (all []bodyPart) {
	kind, params, err := mime.ParseMediaType(deref(e.ContentType))
	if err != nil || !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		return nil
	}
	r := multipart.NewReader(bytes.NewReader(bodyOf(e)), params["boundary"])
	for len(all) < maxParts {
		part, err := r.NextRawPart()
		if err != nil {
			break
		}
		content, err := io.ReadAll(part)
		if err != nil {
			break
		}
		all = append(all, bodyPart{part.FormName(), part.FileName(), part.Header.Get("Content-Type"), content})
	}
	return all
}

// bodyOf are the bytes of a body, decompressed where that can be done.
func bodyOf(e api.EventDetail) []byte {
	body := []byte(deref(e.Body))
	if e.BodyEncoding == "base64" {
		raw, err := base64.StdEncoding.DecodeString(string(body))
		if err != nil {
			return nil
		}
		body = raw
	}
	if of := codingOf(e); of != "" {
		if plain, err := coding.Decoded(body, of, maxUnpacked); err == nil {
			return plain
		}
	}
	return body
}

// codingOf is how a body was compressed, as far as that is known.
func codingOf(e api.EventDetail) string {
	var headers hookglass.Headers
	for _, h := range e.HeaderList {
		headers = append(headers, hookglass.Header{Name: h[0], Value: h[1]})
	}
	return coding.Of(headers)
}

// listed tells of the parts of a body, with the beginning of what is text.
func listed(parts []bodyPart) string {
	var b strings.Builder
	fmt.Fprint(&b, "\nParts\n")
	for i, p := range parts {
		fmt.Fprintf(&b, "  %d  %s", i, visible(p.name))
		for _, what := range []string{p.filename, p.contentType} {
			if what != "" {
				fmt.Fprintf(&b, "  %s", visible(what))
			}
		}
		fmt.Fprintf(&b, "  %s\n", plural(int64(len(p.content)), "byte", "bytes"))
		if len(p.content) > 0 && len(p.content) <= maxPartText && utf8.Valid(p.content) {
			for line := range strings.SplitSeq(visibleLines(string(p.content)), "\n") {
				fmt.Fprintf(&b, "     %s\n", line)
			}
		}
	}
	return b.String()
}
