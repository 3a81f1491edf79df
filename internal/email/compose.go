package email

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
)

// draft is a message given in parts.
type draft struct {
	header     block // values decoded or encoded, as told
	text, html string
	pieces     []piece
}

// piece is an attachment.
type piece struct {
	name, media, id string
	content         []byte
}

// fallback sets a missing header field to the first value that is not empty.
func (d *draft) fallback(name string, values ...string) {
	if d.header.get(name) != "" {
		return
	}
	for _, v := range values {
		if v != "" {
			d.header = append(d.header, field{name, v})
			return
		}
	}
}

// attachFiles attaches a form's files; ids maps content ids to the names of file fields. If several name one, the last
// in their order counts, so that the same form is the same mail.
func (d *draft) attachFiles(f *form, ids map[string]string) {
	last := map[string]string{} // ids by the names of fields
	for id, name := range ids {
		last[name] = max(last[name], id)
	}
	for _, name := range f.order {
		p := f.files[name]
		p.id = trimID(last[name])
		d.pieces = append(d.pieces, p)
	}
}

// structured are the fields whose values are addresses: only the names in them are encoded.
var structured = map[string]bool{"from": true, "to": true, "cc": true, "bcc": true, "reply-to": true, "sender": true}

// compose writes the message: the given fields except those of MIME, then text and HTML as alternatives, then the
// attachments. DKIM signatures are renamed, because they sign the original mail and would fail here. The same draft
// gives the same bytes.
func (d *draft) compose() []byte {
	var b bytes.Buffer
	for _, f := range d.header {
		lower := strings.ToLower(f.name)
		if !isFieldName([]byte(f.name)) || strings.HasPrefix(lower, "content-") || lower == "mime-version" {
			continue
		}
		if lower == "dkim-signature" {
			f.name = "X-Original-" + f.name
		}
		b.WriteString(fold(f.name+": "+encodeValue(lower, f.value)) + "\r\n")
	}
	b.WriteString("MIME-Version: 1.0\r\n")
	sum := sha256.Sum256(append(b.Bytes(), d.text+"\x00"+d.html...))
	boundary := hex.EncodeToString(sum[:12])

	writeBody := func() {
		switch {
		case d.html == "":
			writeText(&b, "text/plain", d.text)
		case d.text == "":
			writeText(&b, "text/html", d.html)
		default:
			inner := "=_alternative_" + boundary
			b.WriteString("Content-Type: multipart/alternative; boundary=\"" + inner + "\"\r\n\r\n--" + inner + "\r\n")
			writeText(&b, "text/plain", d.text)
			b.WriteString("\r\n--" + inner + "\r\n")
			writeText(&b, "text/html", d.html)
			b.WriteString("\r\n--" + inner + "--\r\n")
		}
	}
	if len(d.pieces) == 0 {
		writeBody()
		return b.Bytes()
	}
	outer := "=_mixed_" + boundary
	b.WriteString("Content-Type: multipart/mixed; boundary=\"" + outer + "\"\r\n\r\n--" + outer + "\r\n")
	writeBody()
	for _, p := range d.pieces {
		b.WriteString("\r\n--" + outer + "\r\n")
		p.write(&b)
	}
	b.WriteString("\r\n--" + outer + "--\r\n")
	return b.Bytes()
}

// encodeValue returns a header value as it may appear on the wire.
func encodeValue(lowerName, value string) string {
	value = printable(guessUTF8(value))
	if isASCII(value) {
		return value
	}
	if !structured[lowerName] {
		return mime.QEncoding.Encode("utf-8", value)
	}
	var list []string
	for _, a := range parseAddresses(value, func(Fault) {}) {
		list = append(list, (&mail.Address{Name: a.Name, Address: a.Address}).String())
	}
	return strings.Join(list, ", ")
}

// fold breaks a field at spaces into lines of 78 bytes, where it can (RFC 5322, section 2.1.1).
func fold(s string) string {
	var b strings.Builder
	width := 0
	for i, word := range strings.Split(s, " ") {
		if i > 1 && word != "" && width+1+len(word) > 78 {
			b.WriteString("\r\n")
			width = 0
		}
		if i > 0 {
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func writeText(b *bytes.Buffer, media, text string) {
	b.WriteString("Content-Type: " + media + "; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n")
	w := quotedprintable.NewWriter(b)
	_, _ = w.Write([]byte(text)) // to a buffer
	_ = w.Close()
}

func (p piece) write(b *bytes.Buffer) {
	media, params, err := mime.ParseMediaType(p.media)
	if err != nil || strings.HasPrefix(media, "multipart/") {
		media, params = "application/octet-stream", map[string]string{}
	}
	delete(params, "name")
	contentType := cmp.Or(mime.FormatMediaType(media, params), "application/octet-stream")
	disposition := "attachment"
	if p.id != "" {
		disposition = "inline"
	}
	if name := cleanFilename(p.name); name != "" {
		disposition = mime.FormatMediaType(disposition, map[string]string{"filename": name})
	}
	b.WriteString("Content-Type: " + contentType + "\r\nContent-Disposition: " + disposition + "\r\nContent-Transfer-Encoding: base64\r\n")
	if id := trimID(p.id); id != "" {
		b.WriteString("Content-ID: <" + id + ">\r\n")
	}
	b.WriteString("\r\n")
	encoded := base64.StdEncoding.EncodeToString(p.content)
	for len(encoded) > 76 {
		b.WriteString(encoded[:76] + "\r\n")
		encoded = encoded[76:]
	}
	b.WriteString(encoded)
}
