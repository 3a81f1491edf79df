package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// writeJSON writes an object as one line of JSON that is safe for a terminal.
func writeJSON(w io.Writer, object any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(object); err != nil {
		return err
	}
	return copyJSON(w, text.Bytes())
}

// copyJSON writes JSON through plainJSON.
func copyJSON(w io.Writer, text []byte) error {
	plain, _, err := transform.Bytes(escaping{}, text)
	if err != nil {
		return err
	}
	_, err = w.Write(plain)
	return err
}

// plainJSON returns a writer that makes JSON safe for a terminal, and for anything else: control characters that
// encoding/json leaves in strings (DEL, C1, and those that change the direction of text) are written as escapes such as
// \u009b, which is equivalent JSON. Close writes the rest of an incomplete character.
func plainJSON(w io.Writer) io.WriteCloser { return transform.NewWriter(w, escaping{}) }

// escaping is the transformer of plainJSON. Invalid UTF-8 stays as it is.
type escaping struct{ transform.NopResetter }

// Transform implements transform.Transformer.
func (escaping) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		r, size := rune(src[nSrc]), 1
		if r >= utf8.RuneSelf {
			if !atEOF && !utf8.FullRune(src[nSrc:]) {
				return nDst, nSrc, transform.ErrShortSrc
			}
			r, size = utf8.DecodeRune(src[nSrc:])
		}
		written := src[nSrc : nSrc+size]
		if r >= 0x7f && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			written = fmt.Appendf(nil, `\u%04x`, r)
		}
		if nDst+len(written) > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += copy(dst[nDst:], written)
		nSrc += size
	}
	return nDst, nSrc, nil
}
