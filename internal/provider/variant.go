package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"hookglass/internal/coding"
	"hookglass/internal/jsondoc"
)

// reencodeBytes bounds the bodies whose re-encodings are tried: each costs a copy and a hash.
const reencodeBytes = 1 << 20

// variant is a change that may have happened to a request between signing and reception, undone.
type variant struct {
	code    string
	message string
	body    []byte
}

// bodyVariants yields bodies that the sender may have signed instead of the received one, likely ones first and one at
// a time, because there are many and each may be large.
func bodyVariants(in *input) iter.Seq[variant] {
	return func(yield func(variant) bool) {
		taken := true
		eachBody(in, func(code, message string, body []byte) bool {
			taken = taken && (body == nil || bytes.Equal(body, in.Body) || yield(variant{code, message, body}))
			return taken
		})
	}
}

func eachBody(in *input, add func(code, message string, body []byte) bool) {
	b := in.Body
	const lineEndAdded = "A line end was added at the end of the body on its way: the signature covers the body without it."
	add("body_newline_added", lineEndAdded, bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r")))
	add("body_newline_added", lineEndAdded, bytes.TrimRight(b, "\r\n"))
	add("body_newline_removed", "The line end of the body was lost on its way: the signature covers the body with a final newline.", join(b, "\n"))
	add("body_newline_removed", "The line end of the body was lost on its way: the signature covers the body with a final CR LF.", join(b, "\r\n"))
	if enc := coding.Of(in.Headers); enc != "" {
		add("body_compressed", "The signature covers the body before it was compressed: something on its way, or the sender's client, compressed it after signing.", decode(b, enc))
	}
	add("body_empty", "The signature was made over an empty body: the sender signs before it writes the body, or something on the way lost or replaced it.", []byte{})
	if len(b) > reencodeBytes {
		return
	}
	lf := bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	add("body_line_ends", "Line ends were changed on the way: the signature covers the body with LF instead of CR LF.", lf)
	add("body_line_ends", "Line ends were changed on the way: the signature covers the body with CR LF instead of LF.", bytes.ReplaceAll(lf, []byte("\n"), []byte("\r\n")))
	if rest, ok := bytes.CutPrefix(b, []byte("\xef\xbb\xbf")); ok {
		add("body_charset", "A byte order mark was put before the body on its way.", rest)
	}
	add("body_charset", "The character set of the body was changed on its way, from ISO 8859-1 to UTF-8.", toLatin1(b))
	add("body_charset", "The character set of the body was changed on its way, from UTF-8 to ISO 8859-1.", fromLatin1(b))
	if in.isForm() {
		add("body_form_reencoded", "The form was encoded anew on its way: the signature covers it with + for blanks.", bytes.ReplaceAll(b, []byte("%20"), []byte("+")))
		add("body_form_reencoded", "The form was encoded anew on its way: the signature covers it with %20 for blanks.", bytes.ReplaceAll(b, []byte("+"), []byte("%20")))
		if payload, ok := formValue(in.params(), "payload"); ok {
			add("body_form_payload", "The signature was made over the JSON inside the form field payload. It has to cover the form as sent.", []byte(payload))
		}
		return
	}
	if json.Valid(b) {
		text := bytes.TrimSpace(b)
		for _, layout := range layouts {
			laidOut := layout.apply(text)
			for _, spelling := range spellings {
				how := enumerated(layout.name, spelling.name)
				if how == "" || laidOut == nil {
					continue
				}
				rewritten := spelling.apply(laidOut)
				if !add("body_reencoded", rewrittenJSON(how), rewritten) ||
					!add("body_reencoded", rewrittenJSON(enumerated(how, "with a final newline")), join(rewritten, "\n")) {
					return
				}
			}
		}
	}
}

func rewrittenJSON(how string) string {
	return "The JSON was parsed and written anew on its way: the signature covers it " + how + ". Sign and verify the bytes as they are sent."
}

// enumerated joins what is not empty.
func enumerated(names ...string) string {
	return strings.Join(slices.DeleteFunc(names, func(s string) bool { return s == "" }), " and ")
}

func join(b []byte, tail string) []byte { return append(bytes.Clone(b), tail...) }

// The usual layouts of JSON, and the usual escapings of its strings.
var (
	layouts = []struct {
		name  string
		apply func([]byte) []byte
	}{
		{"", same},
		{"without blanks", func(b []byte) []byte {
			var buf bytes.Buffer
			json.Compact(&buf, b) // b is valid
			return buf.Bytes()
		}},
		{"indented by 2", func(b []byte) []byte { return indented(b, "  ") }},
		{"indented by 4", func(b []byte) []byte { return indented(b, "    ") }},
		{"indented by tabs", func(b []byte) []byte { return indented(b, "\t") }},
		{"with a blank after each comma and colon", spaced},
	}
	spellings = []struct {
		name  string
		apply func([]byte) []byte
	}{
		{"", same},
		{`with \/ for /`, func(b []byte) []byte { return respell(b, spelling{slash: `\/`}) }},
		{`with / for \/`, func(b []byte) []byte { return respell(b, spelling{slash: "/"}) }},
		{`with \u escapes`, func(b []byte) []byte { return respell(b, spelling{escape: true}) }},
		{`with \u escapes and \/ for /`, func(b []byte) []byte { return respell(b, spelling{slash: `\/`, escape: true}) }},
		{`with UTF-8 for \u escapes`, func(b []byte) []byte { return respell(b, spelling{unescape: true}) }},
		{`with UTF-8 for \u escapes and / for \/`, func(b []byte) []byte { return respell(b, spelling{slash: "/", unescape: true}) }},
		{`with <, > and & escaped`, escapeHTML},
		{`with <, > and & escaped and \/ for /`, func(b []byte) []byte { return respell(escapeHTML(b), spelling{slash: `\/`}) }},
	}
)

func same(b []byte) []byte { return b }

// indented returns nil for what would become too long: a small body of nested brackets would be hundreds of megabytes.
func indented(b []byte, by string) []byte {
	text, _ := jsondoc.Indent(b, by, 4*reencodeBytes)
	return text
}

func escapeHTML(b []byte) []byte {
	var buf bytes.Buffer
	json.HTMLEscape(&buf, b)
	return buf.Bytes()
}

func spaced(b []byte) []byte {
	var buf bytes.Buffer
	json.Compact(&buf, b)
	compact := buf.Bytes()
	out := make([]byte, 0, len(compact)+len(compact)/4)
	for i := 0; i < len(compact); {
		if compact[i] == '"' {
			end := skipString(compact, i)
			if end < 0 {
				return nil
			}
			out = append(out, compact[i:end]...)
			i = end
			continue
		}
		out = append(out, compact[i])
		if compact[i] == ',' || compact[i] == ':' {
			out = append(out, ' ')
		}
		i++
	}
	return out
}

// spelling is a writer's choice of how to escape characters in JSON strings.
type spelling struct {
	slash    string // how a solidus is written; "": as it is
	escape   bool   // what is not ASCII as \u
	unescape bool   // the reverse
}

// respell rewrites valid JSON.
func respell(b []byte, as spelling) []byte {
	out := make([]byte, 0, len(b)+len(b)/8)
	for i := 0; i < len(b); {
		c := b[i]
		switch {
		case c == '\\' && i+1 < len(b):
			var size int
			out, size = as.appendEscape(out, b[i:])
			i += size
		case c == '/' && as.slash != "":
			out = append(out, as.slash...)
			i++
		case c >= utf8.RuneSelf && as.escape:
			r, size := utf8.DecodeRune(b[i:])
			if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
				out = fmt.Appendf(out, `\u%04x\u%04x`, r1, r2)
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
			i += size
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// appendEscape appends the escape that b begins with, and returns its length in b. A surrogate pair counts as one.
func (as spelling) appendEscape(out, b []byte) ([]byte, int) {
	if b[1] == '/' && as.slash != "" {
		return append(out, as.slash...), 2
	}
	if b[1] != 'u' || len(b) < 6 {
		return append(out, b[:2]...), 2
	}
	r, size := hexRune(b[2:6]), 6
	if utf16.IsSurrogate(r) && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		r, size = utf16.DecodeRune(r, hexRune(b[8:12])), 12
	}
	if as.unescape && r > 0x7f && r != utf8.RuneError {
		return utf8.AppendRune(out, r), size
	}
	return append(out, b[:size]...), size
}

func hexRune(digits []byte) rune {
	var r rune
	for _, c := range digits {
		r = r<<4 | rune(unhex(c)&0xf)
	}
	return r
}

func toLatin1(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		if r > 0xff {
			return nil
		}
		out = append(out, byte(r))
	}
	return out
}

func fromLatin1(b []byte) []byte {
	if utf8.Valid(b) {
		return nil
	}
	out := make([]byte, 0, len(b)+16)
	for _, c := range b {
		out = utf8.AppendRune(out, rune(c))
	}
	return out
}
