package inspector

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"

	"hookglass"
	"hookglass/internal/email"
	"hookglass/internal/web/show"
)

// Mail is a mail as it is shown.
type Mail struct {
	*email.Message
	email.Extracted
	Results *email.Results // nil: not judged yet
	Source  string         // the beginning of the message as received
	Cut     bool
	Plain   string // the text, shortened
}

func newMail(e *hookglass.Event) *Mail {
	m := &Mail{Message: email.Parse(e.Body)}
	m.Extracted = email.Extract(m.Message)
	if len(e.Verdict) > 0 {
		var r email.Results
		if json.Unmarshal(e.Verdict, &r) == nil {
			m.Results = &r
		}
	}
	source, cut := show.Cut(string(e.Body[:min(len(e.Body), maxText+8)]), maxText)
	m.Source, m.Cut = show.Text(source), cut
	text, _ := show.Cut(m.Text, maxText)
	m.Plain = show.Text(text)
	return m
}

var cidPattern = regexp.MustCompile(`(?i)cid:[^"'\s)>]+`)

// maxInline bounds the bytes of the images that are put into a mail's HTML.
const maxInline = 8 << 20

// MailHTML is the HTML of a raw mail with the images that it carries itself put into it. It is as the sender wrote it, to be
// shown in a sandbox alone.
func MailHTML(raw []byte) string {
	m := email.Parse(raw)
	room := maxInline
	return cidPattern.ReplaceAllStringFunc(m.HTML, func(ref string) string {
		file, ok := m.InlineByCID(ref)
		if !ok || !strings.HasPrefix(file.ContentType, "image/") || file.Size > int64(room) {
			return ref
		}
		content, err := m.Content(file.Index)
		if err != nil {
			return ref
		}
		room -= len(content)
		return "data:" + file.ContentType + ";base64," + base64.StdEncoding.EncodeToString(content)
	})
}
