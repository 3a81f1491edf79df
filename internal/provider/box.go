package provider

import (
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// writeEscaped writes a body as Box signs some that hold names in other scripts, although it sends them in UTF-8: what
// is not ASCII as \u, and a solidus as \/ (box-node-sdk, src/internal/utilsNode.ts).
func writeEscaped(w io.Writer, body []byte) {
	const hexDigits = "0123456789abcdef"
	buf := make([]byte, 0, 4096)
	unit := func(u rune) {
		buf = append(buf, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
	}
	for i := 0; i < len(body); {
		if len(buf)+2*len(`\u0000`) > cap(buf) {
			w.Write(buf)
			buf = buf[:0]
		}
		r, size := rune(body[i]), 1
		switch {
		case r == '/' && (i == 0 || body[i-1] != '\\'):
			buf = append(buf, `\/`...)
		case r < 0x7f:
			buf = append(buf, body[i])
		default:
			r, size = utf8.DecodeRune(body[i:])
			if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
				unit(high)
				r = low
			}
			unit(r)
		}
		i += size
	}
	w.Write(buf)
}
