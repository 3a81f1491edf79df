package email

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"hookglass"
)

// fromMailgun reads what a Mailgun route forwards (documentation.mailgun.com, "Receiving, forwarding and storing
// messages").
func fromMailgun(f *form) (*Posted, error) {
	p := &Posted{MailFrom: f.text("sender", ""), Recipients: addressesOf(f.text("recipient", ""))}
	if f.values["body-mime"] != "" {
		p.Raw = []byte(f.values["body-mime"])
		return p, nil
	}
	d := draft{text: f.text("body-plain", ""), html: f.text("body-html", "")}
	var pairs [][2]string
	if json.Unmarshal([]byte(f.values["message-headers"]), &pairs) == nil {
		for _, pair := range pairs {
			d.header = append(d.header, field{pair[0], pair[1]})
		}
	}
	d.fallback("From", f.text("from", ""))
	d.fallback("To", f.text("To", ""), f.text("recipient", ""))
	d.fallback("Subject", f.text("subject", ""))
	ids := map[string]string{} // names of attachment fields, by content id
	_ = json.Unmarshal([]byte(f.values["content-id-map"]), &ids)
	d.attachFiles(f, ids)
	p.Raw, p.Composed = d.compose(), true
	return p, nil
}

// fromSendGrid reads what SendGrid's inbound parse posts (docs.sendgrid.com, "Setting up the inbound parse webhook").
func fromSendGrid(f *form) (*Posted, error) {
	p := &Posted{}
	var envelope struct {
		From string   `json:"from"`
		To   []string `json:"to"`
	}
	if json.Unmarshal([]byte(f.values["envelope"]), &envelope) == nil {
		p.MailFrom, p.Recipients = envelope.From, envelope.To
	}
	if f.values["email"] != "" {
		p.Raw = []byte(f.values["email"])
		return p, nil
	}
	charsets := map[string]string{}
	_ = json.Unmarshal([]byte(f.values["charsets"]), &charsets)
	d := draft{text: f.text("text", charsets["text"]), html: f.text("html", charsets["html"])}
	d.header, _ = scanHeader([]byte(f.values["headers"]), maxHeaderBytes, func(Fault) {})
	d.fallback("From", f.text("from", charsets["from"]))
	d.fallback("To", f.text("to", charsets["to"]))
	d.fallback("Cc", f.text("cc", charsets["cc"]))
	d.fallback("Subject", f.text("subject", charsets["subject"]))
	ids := map[string]string{}
	_ = json.Unmarshal([]byte(f.values["content-ids"]), &ids)
	d.attachFiles(f, ids)
	p.Raw, p.Composed = d.compose(), true
	return p, nil
}

// postmarkAddress is a mailbox in Postmark's posts.
type postmarkAddress struct {
	Email, Name string
}

// fromPostmark reads Postmark's inbound webhook (postmarkapp.com, "Parse an email").
func fromPostmark(body []byte) (*Posted, error) {
	var in struct {
		From, To, Cc, ReplyTo, Subject, Date  string
		FromFull                              *postmarkAddress
		ToFull, CcFull                        []postmarkAddress
		OriginalRecipient, TextBody, HtmlBody string
		RawEmail                              string
		Headers                               []struct{ Name, Value string }
		Attachments                           []struct{ Name, Content, ContentType, ContentID string }
	}
	err := json.Unmarshal(body, &in)
	if _, other := err.(*json.UnmarshalTypeError); err != nil && !other {
		return nil, &hookglass.Error{Code: hookglass.CodeInvalidJSON, Message: "The body is not JSON of Postmark's inbound webhook.", Err: err}
	}
	if err != nil || in.FromFull == nil && in.OriginalRecipient == "" && in.RawEmail == "" && in.Headers == nil {
		return nil, hookglass.Errorf(hookglass.CodeValidationFailed, "The JSON is not Postmark's inbound webhook.")
	}
	p := &Posted{Recipients: addressesOf(in.OriginalRecipient)}
	for _, h := range in.Headers {
		if strings.EqualFold(h.Name, "Return-Path") {
			p.MailFrom = strings.Trim(h.Value, "<> ")
		}
	}
	if in.RawEmail != "" {
		p.Raw = []byte(in.RawEmail)
		return p, nil
	}
	d := draft{text: in.TextBody, html: in.HtmlBody}
	for _, h := range in.Headers {
		d.header = append(d.header, field{h.Name, h.Value})
	}
	from := in.From
	if in.FromFull != nil && in.FromFull.Email != "" {
		from = postmarkMailbox(*in.FromFull).String()
	}
	d.fallback("From", from)
	d.fallback("To", joinPostmark(in.ToFull), in.To)
	d.fallback("Cc", joinPostmark(in.CcFull), in.Cc)
	d.fallback("Reply-To", in.ReplyTo)
	d.fallback("Subject", in.Subject)
	d.fallback("Date", in.Date)
	for _, a := range in.Attachments {
		content, err := base64.StdEncoding.DecodeString(a.Content)
		if err != nil {
			content, _ = decodeBase64(nil, []byte(a.Content))
		}
		d.pieces = append(d.pieces, piece{name: a.Name, media: a.ContentType, id: a.ContentID, content: content})
	}
	p.Raw, p.Composed = d.compose(), true
	return p, nil
}

func postmarkMailbox(a postmarkAddress) Address { return Address{Name: a.Name, Address: a.Email} }

func joinPostmark(list []postmarkAddress) string {
	addresses := make([]Address, len(list))
	for i, a := range list {
		addresses[i] = postmarkMailbox(a)
	}
	return joinAddresses(addresses)
}

// addressesOf returns the bare addresses of a list.
func addressesOf(list string) (bare []string) {
	for _, a := range parseAddresses(list, func(Fault) {}) {
		bare = append(bare, a.Address)
	}
	return bare
}
