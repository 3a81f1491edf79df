package inspector

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"

	"hookglass/internal/coding"
	"hookglass/internal/web/show"
)

// Part is one part of a multipart body.
type Part struct {
	Index       int
	Name        string
	Filename    string
	ContentType string
	Size        int64
	Text        string // the beginning, if it is text
	Cut         bool
}

// maxPartText bounds the shown beginning of a part.
const maxPartText = 8 << 10

// multiparts parses the parts of a multipart body up to the first error.
func multiparts(body []byte, contentType string) (all []Part) {
	for i, part := range coding.Parts(body, contentType) {
		p := Part{Index: i, Name: part.Name, Filename: part.Filename, ContentType: part.ContentType, Size: int64(len(part.Content))}
		content := part.Content
		if !isText(content) {
			content, _ = coding.Text(content, p.ContentType, maxDecoded)
		}
		if len(content) > 0 {
			text, cut := beginningOf(content, maxPartText)
			p.Text, p.Cut = show.Text(text), cut
		}
		all = append(all, p)
	}
	return all
}

// maxXML bounds the documents that are indented.
const maxXML = 256 << 10

// indentXML returns a document with each element on its own line, or "" if it is too large or not XML. Entities and
// references are not resolved.
func indentXML(body []byte) string {
	if len(body) > maxXML {
		return ""
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	var b strings.Builder
	depth, text, opened := 0, false, false
	line := func() {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.Repeat("  ", min(depth, 40)))
	}
	for at := d.InputOffset(); ; at = d.InputOffset() {
		token, err := d.RawToken()
		if err == io.EOF {
			break
		}
		if err != nil || b.Len() > 4*maxXML {
			return ""
		}
		raw := string(body[at:d.InputOffset()])
		switch token.(type) {
		case xml.StartElement:
			line()
			b.WriteString(raw)
			opened, text = true, false
			if !strings.HasSuffix(raw, "/>") {
				depth++
			}
		case xml.EndElement:
			if raw == "" { // of a self-closing element
				opened = false
				continue
			}
			depth = max(depth-1, 0)
			if !text && !opened {
				line()
			}
			b.WriteString(raw)
			opened, text = false, false
		case xml.CharData:
			if trimmed := strings.TrimSpace(raw); trimmed != "" {
				if !opened {
					line()
				}
				b.WriteString(trimmed)
				text = true
			}
		default:
			line()
			b.WriteString(raw)
			opened, text = false, false
		}
	}
	return show.Text(b.String())
}
