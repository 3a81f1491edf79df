package coding

import (
	"bytes"
	"mime"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// Text is a body in UTF-8 that was written in another charset, and the name of that as it was given: by a byte order
// mark, the content type or an XML declaration, in this order (RFC 7303, section 3; the WHATWG Encoding Standard says
// what the names mean). name is empty where the body is UTF-8 as it stands, where nothing says in which charset it is,
// and where it is no text in that one either. At most most bytes are read.
func Text(body []byte, contentType string, most int) (text []byte, name string) {
	body = body[:min(len(body), most)]
	valid := utf8.Valid(body)
	if valid && bytes.IndexByte(body, 0) < 0 {
		return nil, ""
	}
	switch {
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
		body, name = body[2:], "UTF-16LE"
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		body, name = body[2:], "UTF-16BE"
	default:
		if name = declared(contentType); name == "" {
			name = declaredXML(body)
		}
	}
	of := name
	if strings.EqualFold(of, "utf-16") && bytes.HasPrefix(body, []byte{0}) { // before ASCII, as JSON and XML begin
		of = "UTF-16BE"
	}
	encoding, canonical := charset.Lookup(of)
	if encoding == nil || canonical == "utf-8" || canonical == "replacement" || valid && !strings.HasPrefix(canonical, "utf-16") {
		return nil, ""
	}
	text, err := encoding.NewDecoder().Bytes(body)
	if err != nil || len(text) == 0 || Unread(string(text)) > 1+len(text)/16 {
		return nil, ""
	}
	return text, name
}

// Unread counts what cannot be read of a text: bytes that are no character, and control characters other than those
// that end lines and indent.
func Unread(text string) (n int) {
	for _, r := range text {
		if r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' {
			n++
		}
	}
	return n
}

// declared is the charset that a content type names; empty: none.
func declared(contentType string) string {
	_, params, _ := mime.ParseMediaType(contentType)
	return params["charset"]
}

var xmlEncoding = regexp.MustCompile(`^<\?xml\s[^>]{0,100}?\bencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']`)

func declaredXML(body []byte) string {
	if found := xmlEncoding.FindSubmatch(body[:min(len(body), 200)]); found != nil {
		return string(found[1])
	}
	return ""
}
