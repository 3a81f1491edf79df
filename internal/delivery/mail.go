package delivery

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"hookglass"
)

// mailJSON is a captured mail as targets get it (decisions, section 7).
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
	Attachments    []struct{}         `json:"attachments"`
	Authentication mailAuthentication `json:"authentication"`
	ReceivedAt     string             `json:"received_at"`
}

type mailAuthentication struct {
	SPF   string `json:"spf"`
	DKIM  string `json:"dkim"`
	DMARC string `json:"dmarc"`
}

// MailJSON is a mail event as the normalised JSON that a target gets.
func MailJSON(e *hookglass.Event) []byte {
	m := mailJSON{
		ID: string(e.ID), Type: string(e.Type), From: e.From, To: e.To, Subject: e.Subject,
		CC: e.Headers.Get("Cc"), Date: e.Headers.Get("Date"), MessageID: e.Headers.Get("Message-ID"),
		Headers: map[string]string{}, Attachments: []struct{}{}, ReceivedAt: e.ReceivedAt.UTC().Format(time.RFC3339Nano),
		Authentication: mailAuthentication{"none", "none", "none"},
	}
	names := map[string]string{} // lower case to the spelling of the first
	for _, h := range e.Headers {
		name, repeated := names[strings.ToLower(h.Name)]
		if !repeated {
			name = h.Name
			names[strings.ToLower(name)] = name
			m.Headers[name] = h.Value
			continue
		}
		m.Headers[name] += ", " + h.Value
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(m) // strings and maps of them can always be written
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
