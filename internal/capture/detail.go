package capture

import (
	"hookglass"
	"hookglass/api"
	"hookglass/internal/email"
	"hookglass/internal/provider"
)

// Detail converts an event to its API detail form. For a webhook it detects the provider again, for a mail it parses
// the message.
func Detail(e *hookglass.Event) api.EventDetail {
	out := api.FromEventDetail(e)
	if e.Payload == nil {
		return out
	}
	if e.Type != hookglass.EventEmail {
		req := provider.Received(e)
		req.Hint = e.Provider
		found := provider.Detect(req)
		out.Relay, out.InnerProvider, out.Flavour = &found.Relay, found.Inner, found.Flavour
		out.ProviderAction = provider.Action(req, found.Provider)
		out.BodyParts = bodyParts(e)
		return out
	}
	m := email.Parse(e.Body)
	found := email.Detect(m, envelopeOf(e))
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
