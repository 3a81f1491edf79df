package cli

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/coding"
)

// maxPartText bounds the text of a part that is shown.
const maxPartText = 2 << 10

// partsOf returns the parts of a multipart body, as far as they can be read.
func partsOf(e api.EventDetail) (all []coding.Part) {
	body, of := bodyOf(e)
	if plain, ok := coding.Beginning(body, of, maxUnpacked); ok {
		body = plain
	}
	for _, part := range coding.Parts(body, deref(e.ContentType)) {
		all = append(all, part)
	}
	return all
}

// bodyOf returns the bytes of a body and its compression, if known.
func bodyOf(e api.EventDetail) (body []byte, of string) {
	body = []byte(deref(e.Body))
	if e.BodyEncoding == "base64" {
		body, _ = base64.StdEncoding.DecodeString(deref(e.Body)) // the server's encoding is valid
	}
	return body, coding.Of(headersOf(e))
}

func headersOf(e api.EventDetail) hookglass.Headers {
	headers := make(hookglass.Headers, len(e.HeaderList))
	for i, h := range e.HeaderList {
		headers[i] = hookglass.Header{Name: h[0], Value: h[1]}
	}
	return headers
}

// unpacked returns the decompressed text of a body, and its compression.
func unpacked(e api.EventDetail) (text, of string, ok bool) {
	body, of := bodyOf(e)
	plain, err := coding.Decoded(body, of, maxUnpacked)
	return string(plain), of, of != "" && err == nil && utf8.Valid(plain)
}

// maxUnpacked bounds a decompressed body: a few bytes may expand to very many.
const maxUnpacked = 32 << 20

// listed describes the parts of a body, with the text of short ones.
func listed(parts []coding.Part) string {
	var b strings.Builder
	fmt.Fprint(&b, "\nParts\n")
	for i, p := range parts {
		fmt.Fprintf(&b, "  %d  %s", i, visible(p.Name))
		for _, what := range []string{p.Filename, p.ContentType} {
			if what != "" {
				fmt.Fprintf(&b, "  %s", visible(what))
			}
		}
		fmt.Fprintf(&b, "  %s\n", plural(int64(len(p.Content)), "byte", "bytes"))
		if len(p.Content) > 0 && len(p.Content) <= maxPartText && utf8.Valid(p.Content) {
			for line := range strings.SplitSeq(visibleLines(string(p.Content)), "\n") {
				fmt.Fprintf(&b, "     %s\n", line)
			}
		}
	}
	return b.String()
}
