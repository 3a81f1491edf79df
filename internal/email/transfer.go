package email

import (
	"bytes"
	"strings"
)

// The transfer encodings (RFC 2045, section 6) are decoded as leniently as mail programs do: invalid bytes are skipped
// or kept, and reported. Each decoder appends to dst; the size functions compute the length of the result without
// building it.

// base64Value maps a byte to its six bits; 64 stands for what is passed over, 65 for padding.
var base64Value = func() (t [256]byte) {
	for i := range t {
		t[i] = 64
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = byte(i)
	}
	t['-'], t['_'] = 62, 63 // of the URL alphabet
	t['='] = 65
	return t
}()

// foldable reports whether a byte may occur anywhere within base64.
func foldable(c byte) bool { return c == '\r' || c == '\n' || c == ' ' || c == '\t' }

// withoutFooter cuts off text that was added after base64, such as a gateway's footer. It must follow padding and
// contain foreign bytes, words separated by blanks, or a signature delimiter; then the base64 ends with that padding.
// Anything that looks like base64 may be another piece.
func withoutFooter(src []byte) (_ []byte, cut bool) {
	end := bytes.IndexByte(src, '=') + 1
	if end == 0 {
		return src, false
	}
	for rest := src[end:]; len(rest) > 0; {
		l := line(rest)
		if bytes.Equal(bytes.TrimRight(l, " \t\r\n"), []byte("--")) {
			return src[:end], true
		}
		var word, blank bool // whether this line has characters, and blanks after them
		for i, c := range l {
			switch v := base64Value[c]; {
			case v < 64 && blank, v == 64 && !foldable(c):
				return src[:end], true
			case v < 64:
				word = true
			case v == 65:
				end, word, blank = len(src)-len(rest)+i+1, false, false
			default:
				blank = word
			}
		}
		rest = rest[len(l):]
	}
	return src, false
}

// decodeBase64 decodes base64. It skips line ends and foreign bytes; padding may be missing, or stand between pieces
// that were encoded separately. clean is false if there were foreign bytes or a lone character.
func decodeBase64(dst, src []byte) (_ []byte, clean bool) {
	var bits uint32
	src, cut := withoutFooter(src)
	n, clean := 0, !cut
	for _, c := range src {
		switch v := base64Value[c]; {
		case v < 64:
			bits = bits<<6 | uint32(v)
			if n++; n == 4 {
				dst = append(dst, byte(bits>>16), byte(bits>>8), byte(bits))
				n = 0
			}
		case v == 65:
			dst, clean = appendRest(dst, bits, n, clean)
			n = 0
		case !foldable(c):
			clean = false
		}
	}
	return appendRest(dst, bits, n, clean)
}

// appendRest appends the bytes of the last two or three characters of a piece.
func appendRest(dst []byte, bits uint32, n int, clean bool) ([]byte, bool) {
	switch n {
	case 1:
		return dst, false
	case 2:
		return append(dst, byte(bits>>4)), clean
	case 3:
		return append(dst, byte(bits>>10), byte(bits>>2)), clean
	}
	return dst, clean
}

// sizeBase64 returns the length of what decodeBase64 appends.
func sizeBase64(src []byte) int64 {
	var size int64
	src, _ = withoutFooter(src)
	n := 0
	for _, c := range src {
		switch v := base64Value[c]; {
		case v < 64:
			n++
		case v == 65:
			size += int64(n/4*3 + max(n%4-1, 0))
			n = 0
		}
	}
	return size + int64(n/4*3+max(n%4-1, 0))
}

// decodeQuoted decodes quoted-printable. Invalid escapes are kept as they are; space at the end of a line is dropped
// (RFC 2045, section 6.7, rule 3).
func decodeQuoted(dst, src []byte) (_ []byte, clean bool) {
	clean = true
	for len(src) > 0 {
		l := line(src)
		src = src[len(l):]
		text := bytes.TrimRight(l, " \t\r\n")
		end := lineEnd(l)
		soft := len(text) > 0 && text[len(text)-1] == '='
		if soft {
			text = text[:len(text)-1]
		} else if len(end) == 0 {
			text = bytes.TrimRight(l, "\r\n")
		}
		for {
			i := bytes.IndexByte(text, '=')
			if i < 0 {
				dst = append(dst, text...)
				break
			}
			dst = append(dst, text[:i]...)
			if i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]) {
				dst = append(dst, unhex(text[i+1])<<4|unhex(text[i+2]))
				text = text[i+3:]
				continue
			}
			clean = false
			dst = append(dst, '=')
			text = text[i+1:]
		}
		if !soft {
			dst = append(dst, end...)
		}
	}
	return dst, clean
}

// lineEnd returns the line end of a line; the last one may have none.
func lineEnd(l []byte) []byte {
	switch {
	case bytes.HasSuffix(l, []byte("\r\n")):
		return l[len(l)-2:]
	case bytes.HasSuffix(l, []byte("\n")):
		return l[len(l)-1:]
	}
	return nil
}

// decodeUU decodes the lines between begin and end of uuencoding.
func decodeUU(dst, src []byte) (_ []byte, clean bool) {
	inside := false
	for len(src) > 0 {
		l := line(src)
		src = src[len(l):]
		text := bytes.TrimRight(l, "\r\n")
		switch {
		case !inside:
			inside = bytes.HasPrefix(text, []byte("begin "))
		case bytes.HasPrefix(text, []byte("end")):
			return dst, true
		case len(text) > 0:
			dst = appendUU(dst, text)
		}
	}
	return dst, false
}

// appendUU appends the content of a line of uuencoding: a byte count, and then four characters for each three bytes. A
// line that is too short is padded with zeros to a multiple of four characters.
func appendUU(dst, text []byte) []byte {
	want := int(text[0]-' ') & 63
	for i := 1; i < len(text) && want > 0; i += 4 {
		var four [4]byte
		for j := range min(len(text)-i, len(four)) {
			four[j] = (text[i+j] - ' ') & 63
		}
		three := []byte{four[0]<<2 | four[1]>>4, four[1]<<4 | four[2]>>2, four[2]<<6 | four[3]}
		dst = append(dst, three[:min(want, 3)]...)
		want -= 3
	}
	return dst
}

// decodeTransfer appends the content of src, sent in an encoding. An unknown encoding yields the bytes as they are.
func decodeTransfer(dst, src []byte, encoding string, fault func(Fault)) []byte {
	clean := true
	switch encoding {
	case "base64":
		dst, clean = decodeBase64(dst, src)
	case "quoted-printable":
		dst, clean = decodeQuoted(dst, src)
	case "uuencode", "x-uuencode", "x-uue":
		dst, clean = decodeUU(dst, src)
	case "", "7bit", "8bit", "binary":
		dst = append(dst, src...)
	default:
		fault(UnknownEncoding)
		dst = append(dst, src...)
	}
	if !clean {
		fault(BadEncoding)
	}
	return dst
}

// sizeTransfer returns the length of what decodeTransfer appends.
func sizeTransfer(src []byte, encoding string) int64 {
	switch encoding {
	case "base64":
		return sizeBase64(src)
	case "quoted-printable", "uuencode", "x-uuencode", "x-uue":
		return int64(len(decodeTransfer(nil, src, encoding, func(Fault) {})))
	}
	return int64(len(src))
}

// transferName returns the encoding's name in a Content-Transfer-Encoding field, which some senders quote, comment or
// end with a semicolon.
func transferName(value string) string {
	value = strings.Trim(strings.ToLower(withoutComments(value)), " \t\"'")
	if i := strings.IndexAny(value, " \t;("); i >= 0 {
		value = value[:i]
	}
	switch value {
	case "7-bit", "8-bit", "none":
		return "8bit"
	case "quoted_printable", "quotedprintable":
		return "quoted-printable"
	}
	return value
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}
