package delivery

import (
	"cmp"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/email"
)

// mailJSON is a captured mail as targets get it (spec: decisions, section 7).
type mailJSON struct {
	ID             string             `json:"id"`
	Type           string             `json:"type"`
	From           string             `json:"from"`
	To             string             `json:"to"`
	CC             string             `json:"cc"`
	Subject        string             `json:"subject"`
	Date           string             `json:"date"`
	MessageID      string             `json:"message_id"`
	TextBody       string             `json:"text_body"`
	HTMLBody       string             `json:"html_body"`
	Headers        map[string]string  `json:"headers"`
	Attachments    []mailAttachment   `json:"attachments"`
	Authentication mailAuthentication `json:"authentication"`
	ReceivedAt     string             `json:"received_at"`
}

type mailAttachment struct {
	Filename    string `json:"filename"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	ContentID   string `json:"content_id"`
	Content     []byte `json:"content_base64"`
}

type mailAuthentication struct {
	SPF   string `json:"spf"`
	DKIM  string `json:"dkim"`
	DMARC string `json:"dmarc"`
}

// MailJSON returns a mail as the normalised JSON that targets get.
func MailJSON(e *hookglass.Event) []byte {
	parsed := email.Parse(e.Body)
	m := mailJSON{
		ID: string(e.ID), Type: string(e.Type), From: cmp.Or(parsed.From, e.From), To: cmp.Or(parsed.To, e.To), CC: parsed.Cc, Subject: cmp.Or(parsed.Subject, e.Subject),
		Date: parsed.Date, MessageID: parsed.MessageID, TextBody: parsed.Text, HTMLBody: parsed.HTML, Headers: parsed.HeaderObject(),
		Attachments: make([]mailAttachment, len(parsed.Attachments)), ReceivedAt: e.ReceivedAt.UTC().Format(hookglass.TimeLayout),
		Authentication: mailAuthentication{
			cmp.Or(e.Authentication.SPF, hookglass.AuthPending), cmp.Or(e.Authentication.DKIM, hookglass.AuthPending), cmp.Or(e.Authentication.DMARC, hookglass.AuthPending),
		},
	}
	for i, f := range parsed.Attachments {
		content, _ := parsed.Content(i) // it is there
		m.Attachments[i] = mailAttachment{f.Filename, f.ContentType, f.Size, f.ContentID, content}
	}
	text, _ := api.JSON(m) // strings and maps of them can always be written
	return text
}
