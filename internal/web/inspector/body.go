package inspector

import (
	"encoding/hex"
	"net/http"
	"strings"
	"unicode/utf8"

	"hookglass/internal/coding"
	"hookglass/internal/jsondoc"
	"hookglass/internal/web/show"
)

// Bounds of what a page shows of a body. They keep the page of a 25 MiB body small enough for a phone; the rest can be
// downloaded.
const (
	maxText    = 256 << 10
	maxHex     = 16 << 10
	maxTextHex = 2 << 10 // of a body that is also shown as text
	maxDecoded = 4 << 20
)

// Body is a body as it is shown.
type Body struct {
	Total    int64  // bytes, as received
	Encoding string // decoded for display; empty: none
	Charset  string // from which Text was converted, as the sender named it; empty: UTF-8
	Marked   bool   // JSON after a byte order mark
	Broken   bool   // Text has escapes for bytes that are not UTF-8
	Tree     *Node  // of JSON, or of a form in which a field holds JSON
	Partial  bool   // the tree holds only the beginning
	XML      string // indented; empty: not XML
	Form     []Pair // of a form
	Parts    []Part // of a multipart body
	Picture  bool   // the body as received is an image that browsers show
	Text     string // of text
	Hex      string // a dump; the only view of a body that is not text
	Cut      bool   // Text, or else Hex, holds only the beginning
	Exact    bool   // Text equals the body
	Fault    string // why a body that claims to be JSON is not
}

// NewBody prepares a body for display. encoding is the result of coding.Of.
func NewBody(body []byte, contentType, encoding string) Body {
	b := Body{Total: int64(len(body))}
	if len(body) == 0 {
		return b
	}
	if plain, ok := coding.Beginning(body, encoding, maxDecoded); ok {
		body, b.Encoding = plain, encoding
	}
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	b.Parts = multiparts(body, contentType)
	sent := body
	if !isText(body) {
		b.Picture = b.Encoding == "" && PictureType(body) != ""
		text, name := coding.Text(body, contentType, maxDecoded)
		switch {
		case !b.Picture && name != "":
			body, b.Charset = text, name
		case !b.Picture && isBrokenText(body, media):
			b.Broken = true
		default:
			shown := body[:min(len(body), maxHex)]
			b.Hex, b.Cut = hex.Dump(shown), len(shown) < len(body)
			return b
		}
	}
	claimsJSON := media == "application/json" || strings.HasSuffix(media, "+json")
	document := jsondoc.Unmarked(body)
	if claimsJSON || jsondoc.Bracketed(document) {
		tree, partial, err := parseTree(document)
		switch {
		case err == nil:
			b.Tree, b.Partial, b.Marked = tree, partial, len(document) < len(body)
		case claimsJSON:
			b.Fault = err.Error()
		}
	}
	text, cut := beginningOf(body, maxText)
	if media == "application/x-www-form-urlencoded" {
		b.Form = pairs(text)
		if b.Tree == nil {
			b.Tree, b.Partial = formTree(string(body))
		}
		if name := recode(b.Form, contentType); name != "" {
			b.Charset = name
		}
	}
	b.Text, b.Cut = show.Text(text), cut
	b.Hex = hex.Dump(sent[:min(len(sent), maxTextHex)])
	if strings.HasSuffix(media, "/xml") || strings.HasSuffix(media, "+xml") {
		b.XML = indentXML(body)
	}
	b.Exact = !cut && b.Text == text && !strings.HasPrefix(text, "\n") && !strings.Contains(text, "\r") // HTML drops these
	return b
}

// beginningOf returns the first n bytes of a text, at a character boundary, and reports whether there are more.
func beginningOf(b []byte, n int) (string, bool) {
	return show.Cut(string(b[:min(len(b), n+utf8.UTFMax)]), n)
}

// PictureType returns the media type of an image that all browsers show, judged by its first bytes only, or "". SVG is
// not one, because it is markup.
func PictureType(body []byte) string {
	switch media := http.DetectContentType(body); media {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return media
	}
	return ""
}

// isText reports whether the shown beginning of a body is text. A few NUL bytes are taken for mistakes of the sender
// and are shown as symbols. A body with many control characters is not text.
func isText(body []byte) bool {
	text := string(body[:min(len(body), maxText)])
	if len(body) > maxText {
		for i := 0; i < utf8.UTFMax && len(text) > 0; i++ { // the bound may split a character
			if r, size := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || size > 1 {
				break
			}
			text = text[:len(text)-1]
		}
	}
	return utf8.ValidString(text) && (strings.IndexByte(text, 0) < 0 || coding.Unread(text) <= 1+len(text)/maxControls)
}

// maxControls is how many bytes of a text with NUL bytes there must be for each control character.
const maxControls = 16

// isBrokenText reports whether a body is text by its type and by most of its bytes, although some are neither UTF-8 nor
// in a declared charset. A split character, or a name in another charset, is no reason to show everything as bytes.
func isBrokenText(body []byte, media string) bool {
	textual := strings.HasPrefix(media, "text/") || media == "application/json" || media == "application/xml" || media == "application/x-www-form-urlencoded" ||
		strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml")
	text := string(body[:min(len(body), maxText)])
	return textual && coding.Unread(text)*4 <= len(text)
}

// readable returns a decoded value as it is shown. JSON, which GitHub and Slack send as the payload of a form, has its
// values on lines of their own, unless it becomes very much longer: hundreds of fields may hold nested brackets.
func readable(value string) string {
	if jsondoc.Bracketed(value) {
		if text, ok := jsondoc.Indent([]byte(value), "  ", 4<<10+16*len(value)); ok {
			value = string(text)
		}
	}
	return show.Text(value)
}

// recode converts pairs whose escapes are in the charset that a content type names. It returns that charset, or "" if
// no pair needed it.
func recode(all []Pair, contentType string) (charset string) {
	for i := range all {
		for _, s := range []*string{&all[i].Name, &all[i].Value} {
			if text, name := coding.Text([]byte(*s), contentType, maxText); name != "" {
				*s, charset = string(text), name
			}
		}
	}
	return charset
}
