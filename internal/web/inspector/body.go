package inspector

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"strings"
	"unicode/utf8"

	"hookglass/internal/coding"
	"hookglass/internal/jsondoc"
	"hookglass/internal/web/show"
)

// Bounds of what one page shows of a body; the rest is a download away. They keep a page of a 25 MiB body
// small enough to be read on a phone.
const (
	maxText    = 256 << 10
	maxHex     = 16 << 10
	maxTextHex = 2 << 10 // of what can be read as text
	maxDecoded = 4 << 20
)

// Body is a body as it is shown.
type Body struct {
	Total    int64  // bytes, as received
	Encoding string // that was undone for display; empty: none
	Charset  string // that Text was written in, as the sender named it; empty: UTF-8
	Marked   bool   // it is JSON behind a byte order mark
	Broken   bool   // Text shows bytes that are no UTF-8 as what they are
	Tree     *Node  // of JSON
	Partial  bool   // the tree holds the beginning alone
	XML      string // indented; empty: it is none
	Form     []Pair // of a form
	Parts    []Part // of a multipart body
	Picture  bool   // the bytes as received are a picture that browsers show
	Text     string // of text
	Hex      string // the bytes; all there is of what is no text
	Cut      bool   // Text, or Hex where there is no Text, holds the beginning alone
	Exact    bool   // Text is the body and nothing else
	Fault    string // why a body that claims to be JSON is none
}

// NewBody reads a body for display; encoding is what coding.Of returned.
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
	if first := bytes.TrimLeft(document, " \t\r\n"); claimsJSON || len(first) > 0 && (first[0] == '{' || first[0] == '[') {
		tree, partial, err := parseTree(document)
		switch {
		case err == nil:
			b.Tree, b.Partial, b.Marked = tree, partial, len(document) < len(body)
		case claimsJSON:
			b.Fault = err.Error()
		}
	}
	if media == "application/x-www-form-urlencoded" {
		text, _ := show.Cut(string(body[:min(len(body), maxText+utf8.UTFMax)]), maxText)
		b.Form = pairs(text)
		if name := recode(b.Form, contentType); name != "" {
			b.Charset = name
		}
	}
	text, cut := show.Cut(string(body[:min(len(body), maxText+utf8.UTFMax)]), maxText)
	b.Text, b.Cut = show.Text(text), cut
	b.Hex = hex.Dump(sent[:min(len(sent), maxTextHex)])
	if strings.HasSuffix(media, "/xml") || strings.HasSuffix(media, "+xml") {
		b.XML = indentXML(body)
	}
	b.Exact = !cut && b.Text == text && !strings.HasPrefix(text, "\n") && !strings.Contains(text, "\r") // which HTML takes away
	return b
}

// PictureType is the media type of a picture that all browsers show, by its first bytes alone; empty: it is none.
// SVG is none: it is markup.
func PictureType(body []byte) string {
	switch media := http.DetectContentType(body); media {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return media
	}
	return ""
}

// isText reports whether the beginning of a body, as much as is shown of it, reads as text. A zero here and there is a
// slip of who sent it, and is shown as a picture of itself; where control characters are many, it is no text.
func isText(body []byte) bool {
	text, cut := show.Cut(string(body[:min(len(body), maxText)]), maxText)
	if len(body) > maxText || cut {
		for i := 0; i < utf8.UTFMax && len(text) > 0; i++ { // the bound may fall into a character
			if r, size := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || size > 1 {
				break
			}
			text = text[:len(text)-1]
		}
	}
	return utf8.ValidString(text) && (strings.IndexByte(text, 0) < 0 || coding.Unread(text) <= 1+len(text)/maxControls)
}

// maxControls is among how many bytes of a text with zeros one may be a control character.
const maxControls = 16

// isBrokenText reports whether a body is text by its type and by most of its bytes, with some that are no UTF-8 and of
// which nothing says what they are. A character that was cut in two, or a name in a charset that was not declared, is
// no reason to show all else as bytes.
func isBrokenText(body []byte, media string) bool {
	textual := strings.HasPrefix(media, "text/") || media == "application/json" || media == "application/xml" || media == "application/x-www-form-urlencoded" ||
		strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml")
	text, _ := show.Cut(string(body[:min(len(body), maxText)]), maxText)
	return textual && coding.Unread(text)*4 <= len(text)
}

// recode is for pairs whose escapes were written in the charset that a content type names. It is told; empty: there
// were none.
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
