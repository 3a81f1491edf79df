package capture

import (
	"hookglass"
	"hookglass/api"
	"hookglass/internal/email"
)

// Detail is an event in the detail form. The message of a mail is read for it.
func Detail(e *hookglass.Event) api.EventDetail {
	out := api.FromEventDetail(e)
	if e.Type != hookglass.EventEmail || e.Payload == nil {
		return out
	}
	m := email.Parse(e.Body)
	envelope := email.Envelope{}
	if e.Envelope != nil {
		envelope.MailFrom = e.Envelope.From
	}
	found := email.Detect(m, envelope)
	message := api.Message{
		Text: m.Text, HTML: m.HTML, Headers: m.HeaderObject(), Extracted: api.Extracted(email.Extract(m)),
		MessageID: m.MessageID, Date: m.Date, Cc: m.Cc, ReplyTo: m.ReplyTo, Kind: found.Kind, Relay: found.Relay,
	}
	for _, f := range m.Attachments {
		message.Attachments = append(message.Attachments, api.Attachment(f))
	}
	for _, f := range m.Faults {
		message.Faults = append(message.Faults, string(f))
	}
	return out.WithMessage(message)
}
