package email

import (
	"encoding/base64"
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/emersion/go-message/charset"
	"golang.org/x/text/encoding/charmap"

	"hookglass"
)

// decodeText returns a header value as people read it: RFC 2047 words decoded, valid UTF-8, no control characters, at
// most maxValue bytes. Broken words are decoded as they were meant (characters split between words, missing padding,
// spaces inside); a word in an unknown charset stays as it is.
func decodeText(s string, fault func(Fault)) string {
	if !strings.Contains(s, "=?") {
		return printable(guessUTF8(s))
	}
	var out strings.Builder
	var pending []byte // bytes of adjacent words in one charset
	var pendingCharset string
	flush := func() {
		if pendingCharset == "" {
			return
		}
		text, ok := toUTF8(pending, pendingCharset)
		if !ok {
			fault(UnknownCharset)
		}
		out.WriteString(text)
		pending, pendingCharset = nil, ""
	}
	last := strings.LastIndex(s, "?=") + len("?=") - len(s) // where the last word may end, counted from the end of s
	for s != "" {
		start := strings.Index(s, "=?")
		if start < 0 || start > len(s)+last {
			break
		}
		word, cs, content, ok := firstWord(s[start:])
		if !ok {
			flush()
			out.WriteString(guessUTF8(s[:start+2]))
			s = s[start+2:]
			continue
		}
		if gap := s[:start]; pendingCharset == "" || strings.Trim(gap, " \t") != "" { // space between words is not text
			flush()
			out.WriteString(guessUTF8(gap))
		}
		if !strings.EqualFold(cs, pendingCharset) {
			flush()
			pendingCharset = cs
		}
		pending = append(pending, content...)
		s = s[start+len(word):]
		if out.Len()+len(pending) > maxValue {
			break
		}
	}
	flush()
	out.WriteString(guessUTF8(s))
	return printable(out.String())
}

// firstWord parses the encoded word that s begins with: =?charset*language?Q or B?text?= (RFC 2047, RFC 2231 section
// 5).
func firstWord(s string) (word, charset string, content []byte, ok bool) {
	rest := s[2:]
	i := strings.IndexByte(rest, '?')
	if i < 1 || i > 64 || len(rest) < i+4 || rest[i+2] != '?' {
		return "", "", nil, false
	}
	charset, _, _ = strings.Cut(rest[:i], "*")
	encoding, text := rest[i+1], rest[i+3:]
	if charset == "" || strings.ContainsAny(charset, " \t\"<>") || !strings.ContainsRune("qQbB", rune(encoding)) {
		return "", "", nil, false
	}
	end := strings.Index(text, "?=") // searched last, so that no byte is searched repeatedly
	if end < 0 {
		return "", "", nil, false
	}
	if encoding == 'q' || encoding == 'Q' {
		content = decodeQ(text[:end])
	} else {
		content, _ = decodeBase64(nil, []byte(text[:end]))
	}
	return s[:len(s)-len(text)+end+2], charset, content, true
}

func decodeQ(s string) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '_':
			out = append(out, ' ')
		case c == '=' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			out = append(out, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			out = append(out, c)
		}
	}
	return out
}

// toUTF8 decodes text in a charset. For an unknown charset it guesses, and returns false.
func toUTF8(text []byte, name string) (string, bool) {
	name = strings.ToLower(strings.Trim(name, " \t\"'"))
	switch name {
	case "", "utf-8", "utf8", "utf-8-sig", "utf8mb4", "cp65001", "us-ascii", "ascii", "unknown-8bit", "x-unknown", "8bit", "binary", "default",
		"ansi_x3.4-1968", "ansi_x3.4-1986", "iso_646.irv:1991", "iso646-us", "us", "cp367", "ibm367", "csascii", "iso-ir-6": // all names of ASCII: the C library gives long ones, as cron does
		return guessUTF8(string(text)), true
	case "iso-8859-1", "latin1", "latin-1": // in practice the superset is meant (WHATWG Encoding)
		name = "windows-1252"
	case "iso-8859-9", "latin5": // likewise
		name = "windows-1254"
	case "iso-8859-11", "tis-620", "tis620", "cp874": // likewise
		name = "windows-874"
	case "latin9", "latin-9":
		name = "iso-8859-15"
	case "win-1251", "cp-1251":
		name = "windows-1251"
	case "koi8r":
		name = "koi8-r"
	case "cp858", "ibm858":
		name = "ibm00858"
	case "macroman", "mac-roman":
		name = "macintosh"
	case "mac-cyrillic":
		name = "x-mac-cyrillic"
	case "cp932", "ms932", "windows-31j":
		name = "shift_jis"
	case "iso-2022-jp-1", "iso-2022-jp-2", "iso-2022-jp-3", "iso-2022-jp-ms", "cp50220", "cp50221": // their additions are rare
		name = "iso-2022-jp"
	case "eucjp", "ujis":
		name = "euc-jp"
	case "gb2312", "x-gbk", "cp936", "euc-cn", "x-euc-cn", "eucgb2312_cn": // Python's email package labels it gb2312
		name = "gbk"
	case "hz":
		name = "hz-gb-2312"
	case "cp950", "ms950", "big5hkscs", "big5_tw": // and big5
		name = "big5"
	case "ks_c_5601-1987", "cp949", "ms949", "uhc", "x-windows-949":
		name = "euc-kr"
	case "iso-2022-kr", "csiso2022kr", "iso-2022-cn", "iso-2022-cn-ext", "replacement": // browsers display nothing
		return guessUTF8(string(text)), false
	case "utf-7", "utf7", "unicode-1-1-utf-7":
		return decodeUTF7(text), true
	}
	r, err := charset.Reader(name, strings.NewReader(string(text)))
	if err != nil {
		if hyphenated := strings.ReplaceAll(name, "_", "-"); hyphenated != name { // as programming languages spell it
			return toUTF8(text, hyphenated)
		}
		return guessUTF8(string(text)), false
	}
	converted, err := io.ReadAll(r)
	if err != nil {
		return guessUTF8(string(text)), false
	}
	return strings.ToValidUTF8(string(converted), "\uFFFD"), true
}

// guessUTF8 decodes text in an undeclared charset: UTF-8 if most of it is valid, otherwise windows-1252, as most old
// mailers used.
func guessUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var good, bad int
	for rest := s; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && n <= 1:
			bad++
		case n > 1:
			good++
		}
		rest = rest[n:]
	}
	if good < bad {
		if text, err := charmap.Windows1252.NewDecoder().String(s); err == nil {
			return text
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// decodeUTF7 decodes RFC 2152, which the encoding tables lack.
func decodeUTF7(text []byte) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '+' {
			out.WriteByte(text[i])
			continue
		}
		end := i + 1
		for end < len(text) && base64Value[text[end]] < 64 && text[end] != '-' && text[end] != '_' {
			end++
		}
		if end == i+1 {
			out.WriteByte('+')
		} else if b, err := base64.RawStdEncoding.DecodeString(string(text[i+1 : end])); err == nil || len(b) > 1 {
			units := make([]uint16, len(b)/2)
			for j := range units {
				units[j] = binary.BigEndian.Uint16(b[2*j:])
			}
			out.WriteString(string(utf16.Decode(units)))
		}
		if end == len(text) || text[end] != '-' {
			end--
		}
		i = end
	}
	return guessUTF8(out.String())
}

// printable turns a decoded value into one safe line, without anything that a terminal, a header or a database would
// interpret.
func printable(s string) string {
	s = strings.ToValidUTF8(hookglass.Beginning(strings.Trim(s, " \t\r\n"), maxValue), "\uFFFD")
	if !strings.ContainsFunc(s, isControl) {
		return s
	}
	return strings.Trim(strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, s), " ")
}

// isControl reports whether a character is a control character, C0 or C1, or a line separator.
func isControl(r rune) bool {
	return r < ' ' || 0x7f <= r && r < 0xa0 || r == '\u2028' || r == '\u2029'
}
