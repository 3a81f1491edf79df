package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"hookglass/internal/jsondoc"
)

// unescapedMarks are the characters that URL encoders leave unescaped besides letters, digits and -._, by encoder: RFC
// 3986, encodeURIComponent, encodeURI, Python's quote (which leaves the slash, too), and HTML forms.
var unescapedMarks = []string{"~", "~!*'()", "~!*'();,/?:@&=+$#", "~/", "*"}

// formsOf returns the spellings of a value that are looked for. For most values, most of them are the same.
func formsOf(value string, coded *codings) []string {
	forms := make([]string, 0, 40)
	add := func(form string) {
		if len(form) >= shortSecret && !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	add(value)
	add(html.EscapeString(value))
	add(url.PathEscape(value))
	add(lowerEscapes(url.PathEscape(value)))
	for _, marks := range unescapedMarks {
		encoded := percentEncoded(value, marks)
		plus := strings.ReplaceAll(encoded, "%20", "+")
		add(encoded)
		add(lowerEscapes(encoded))
		add(plus)
		add(lowerEscapes(plus))
	}
	inner := inJSON(value)
	add(inner)
	add(strings.ReplaceAll(inner, "/", `\/`))
	if other, err := json.Marshal(value); err == nil { // with <, > and & escaped
		add(string(other[1 : len(other)-1]))
	}
	for _, escaper := range jsonEscapers {
		if strings.ContainsFunc(value, escaper.escapes) { // else it writes what inJSON does
			add(escaper.escape(value))
		}
	}
	if strings.ContainsAny(value, `"'`) {
		for _, quotes := range htmlQuotes {
			add(quotes.Replace(value))
		}
	}
	add(coded.hex)
	add(strings.ToUpper(coded.hex))
	for _, text := range coded.base64 {
		add(text)
	}
	for _, core := range coded.cores {
		if len(core) > shortSecret {
			add(core)
			add(inURL.Replace(core))
		}
	}
	return forms
}

// inJSON returns a value as written inside a JSON string.
func inJSON(value string) string {
	quoted := jsondoc.Text(value).Bytes()
	return string(quoted[1 : len(quoted)-1])
}

// jsonEscaper is a writer of JSON that escapes more than it must (RFC 8259, section 7).
type jsonEscaper struct {
	wide   bool   // what is not ASCII
	others string // of ASCII
	slash  bool   // a slash, by a backslash
	upper  bool   // hexadecimal digits in upper case
}

// jsonEscapers are the JSON writers whose spelling differs from the others': Python and Ruby, which escape what is not
// ASCII; PHP, which also escapes the slash; System.Text.Json of .NET, Gson, and serialize-javascript.
var jsonEscapers = []jsonEscaper{
	{wide: true},
	{wide: true, upper: true},
	{wide: true, slash: true},
	{wide: true, others: "\"&'+<>`\x7f", upper: true},
	{others: "&'<=>"},
	{others: "<>/", upper: true},
}

// htmlQuotes write text as HTML in those languages that escape quotes differently from Go: PHP, Python and Ruby.
var htmlQuotes = []*strings.Replacer{
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#039;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;"),
}

// escapes reports whether the writer escapes a character that JSON does not require to be escaped.
func (e jsonEscaper) escapes(r rune) bool {
	return r >= utf8.RuneSelf && e.wide || r == '/' && e.slash || r < utf8.RuneSelf && strings.IndexByte(e.others, byte(r)) >= 0
}

func (e jsonEscaper) escape(value string) string {
	digits := "0123456789abcdef"
	if e.upper {
		digits = strings.ToUpper(digits)
	}
	var b strings.Builder
	b.Grow(2 * len(value))
	unit := func(u uint16) {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(digits[u>>shift&15])
		}
	}
	for _, r := range value {
		switch {
		case r == '/' && e.slash:
			b.WriteString(`\/`)
		case e.escapes(r):
			for _, u := range utf16.AppendRune(nil, r) {
				unit(u)
			}
		case ' ' <= r && r < utf8.RuneSelf && r != '"' && r != '\\':
			b.WriteByte(byte(r))
		default:
			b.WriteString(inJSON(string(r)))
		}
	}
	return b.String()
}

// codings are encodings of a value in which none of its characters stay the same.
type codings struct {
	hex    string
	base64 []string  // alone, in both alphabets, with padding and without
	cores  [3]string // in base64 at any offset of what is encoded, as a password in Basic credentials
}

// inURL writes base64 in the alphabet of URLs (RFC 4648, section 5).
var inURL = strings.NewReplacer("+", "-", "/", "_")

func codingsOf(value string) *codings {
	c := &codings{hex: hex.EncodeToString([]byte(value))}
	padded := append(make([]byte, len(c.cores)-1, len(c.cores)-1+len(value)), value...)
	for before := range c.cores {
		text := base64.StdEncoding.EncodeToString(padded[len(c.cores)-1-before:])
		first := (before*8 + 5) / 6            // characters that the bytes before it reach into
		whole := (before + len(value)) * 8 / 6 // characters that nothing behind it reaches into
		c.cores[before] = text[first:whole]
		if before == 0 {
			plain := strings.TrimRight(text, "=")
			c.base64 = []string{text, plain, inURL.Replace(text), inURL.Replace(plain)}
		}
	}
	return c
}

// lowerEscapes spells percent-encoding in lower case.
func lowerEscapes(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// percentEncoded encodes all but letters, digits, -._ and the marks. With ~ these are the unreserved characters of RFC
// 3986, section 2.3.
func percentEncoded(s, marks string) string {
	const hex = "0123456789ABCDEF"
	unreserved := func(c byte) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || strings.IndexByte(marks, c) >= 0
	}
	plain := 0
	for plain < len(s) && unreserved(s[plain]) {
		plain++
	}
	if plain == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	b.WriteString(s[:plain])
	for i := plain; i < len(s); i++ {
		if c := s[i]; unreserved(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
