package email

import (
	"bytes"
	"strings"
)

// The transfer encodings (RFC 2045, section 6) are read as mail programs read them: what is not of the encoding is
// passed over or kept, and told. Each decoder appends to dst; the size of what it would append is counted without
// making it.

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

// foldable reports what may stand anywhere between the characters of base64.
func foldable(c byte) bool { return c == '\r' || c == '\n' || c == ' ' || c == '\t' }

// withoutFooter cuts what somebody added behind base64 that had ended, as gateways do their footers. Behind padding
// that is text with foreign bytes, with words that blanks part, or under a signature's delimiter: base64 has ended with
// that padding. What looks like base64 may be another piece.
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
		var word, blank bool // whether characters were met in this line, and blanks behind them
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

// decodeBase64 reads base64. Line ends and foreign bytes are passed over, padding may be missing or stand between
// pieces that were encoded one by one. It is clean unless foreign bytes or a lone character were met.
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

// appendRest appends what the last two or three characters of a piece stand for.
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

// sizeBase64 is the length of what decodeBase64 appends.
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

// decodeQuoted reads quoted-printable. What is no escape is kept as it stands; space at the end of a line is dropped
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

// lineEnd is the line end of a line, none of the last.
func lineEnd(l []byte) []byte {
	switch {
	case bytes.HasSuffix(l, []byte("\r\n")):
		return l[len(l)-2:]
	case bytes.HasSuffix(l, []byte("\n")):
		return l[len(l)-1:]
	}
	return nil
}

// decodeUU reads the lines between begin and end of uuencoding.
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

// appendUU appends what a line of uuencoding holds: how many bytes, and then four characters for each three of them. A
// line that is too short goes on with zeros up to the end of its last four.
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

// sizeTransfer is the length of what decodeTransfer appends.
func sizeTransfer(src []byte, encoding string) int64 {
	switch encoding {
	case "base64":
		return sizeBase64(src)
	case "quoted-printable", "uuencode", "x-uuencode", "x-uue":
		return int64(len(decodeTransfer(nil, src, encoding, func(Fault) {})))
	}
	return int64(len(src))
}

// transferName is the word of a Content-Transfer-Encoding field, which some senders quote, comment or end with a
// semicolon.
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
