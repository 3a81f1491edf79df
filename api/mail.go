package api

import (
	"encoding/json"

	"hookglass"
)

// Authentication are the results of checks whether a mail's sender is genuine.
type Authentication struct {
	SPF   string `json:"spf" enum:"pending,pass,fail,softfail,neutral,none,temperror,permerror" doc:"pending until it has been looked up, soon after the mail came." example:"pass"`
	DKIM  string `json:"dkim" enum:"pending,pass,fail,neutral,none,temperror,permerror" example:"pass"`
	DMARC string `json:"dmarc" enum:"pending,pass,fail,none,temperror,permerror" example:"pass"`
}

// MailDetail is what the detail form has in addition for mail.
type MailDetail struct {
	TextBody              *string                `json:"text_body,omitempty" doc:"Mail only, as what follows: the text, empty where there is none." example:"Your code is 482913."`
	HTMLBody              *string                `json:"html_body,omitempty" doc:"The HTML as sent, empty where there is none. It is not safe to show as it is." example:"<p>Your code is <b>482913</b>.</p>"`
	EmailHeaders          map[string]string      `json:"email_headers,omitzero" doc:"Decoded; repeated fields are joined by a comma and a space. header_list has them one by one." example:"{\"Subject\":\"Welcome\"}"`
	AttachmentMetadata    []Attachment           `json:"attachment_metadata,omitzero" doc:"Attachments and inline images, in the order of the message."`
	AuthenticationResults *AuthenticationResults `json:"authentication_results,omitempty" doc:"What authentication rests on."`
	Extracted             *Extracted             `json:"extracted,omitempty" doc:"Links and one-time codes found in subject, text and HTML."`
	Envelope              *Envelope              `json:"envelope,omitempty" doc:"What the sending server said of the mail, apart from the mail itself."`
	MessageID             *string                `json:"message_id,omitempty" example:"<20261120101530.1@example.com>"`
	Date                  *string                `json:"date,omitempty" doc:"As the sender wrote it." example:"Fri, 20 Nov 2026 10:15:30 +0000"`
	Cc                    *string                `json:"cc,omitempty" example:"bob@example.com"`
	ReplyTo               *string                `json:"reply_to,omitempty" example:"help@example.com"`
	Kind                  *string                `json:"kind,omitempty" doc:"What kind of mail it is: message, notification, newsletter, list, auto_reply, bounce and others." example:"notification"`
	ParseFaults           []string               `json:"parse_faults,omitzero" doc:"What is wrong with the message; it is read as far as possible. The raw message has everything." example:"[\"too_many_parts\"]"`
}

// Attachment describes an attachment.
type Attachment struct {
	Index       int    `json:"index" doc:"Counted from 0: its place in …/attachments/{index}." example:"0"`
	Filename    string `json:"filename" doc:"Cleaned: safe as the name of a file." example:"invoice.pdf"`
	ContentType string `json:"content_type" example:"application/pdf"`
	Size        int64  `json:"size" doc:"Bytes, decoded." example:"48213"`
	ContentID   string `json:"content_id" doc:"By which the HTML refers to it as cid:…; empty where it has none." example:"logo@example.com"`
	Inline      bool   `json:"inline" doc:"Shown within the HTML rather than beside it." example:"false"`
	Disposition string `json:"disposition" doc:"As sent: attachment, inline, or empty." example:"attachment"`
}

// Extracted are the links and codes in a mail.
type Extracted struct {
	Links []string `json:"links" example:"[\"https://example.com/verify?token=x\"]"`
	Codes []string `json:"codes" doc:"The likeliest first." example:"[\"482913\"]"`
}

// Envelope is what a sending server said about a mail.
type Envelope struct {
	MailFrom string   `json:"mail_from" doc:"The reverse path; empty for the null sender. A local part that needs quotes has them." example:"bounces@example.com"`
	RcptTo   []string `json:"rcpt_to" doc:"The recipients by which the mail came to this endpoint." example:"[\"inbox@mail.example.com\"]"`
	Helo     string   `json:"helo" example:"mx.example.com"`
	Protocol string   `json:"protocol" doc:"SMTP, ESMTP, ESMTPS, LMTP or HTTP; ESMTPA and ESMTPSA of a client that had signed in." example:"ESMTPS"`
	ClientIP *string  `json:"client_ip" doc:"Of the sending server; null where it is not known." example:"203.0.113.7"`
	Composed bool     `json:"composed" doc:"The message was put together from what a mail service posted; it is not byte for byte what was sent." example:"false"`
}

// AuthenticationResults are the results with their reasons, which are stable words.
type AuthenticationResults struct {
	SPF struct {
		Result   string `json:"result" example:"pass"`
		Domain   string `json:"domain,omitempty" doc:"Whose record was asked for." example:"example.com"`
		Identity string `json:"identity,omitempty" doc:"mailfrom, or helo for the null sender." example:"mailfrom"`
		ClientIP string `json:"client_ip,omitempty" example:"203.0.113.7"`
		Reason   string `json:"reason,omitempty" example:"matched_ip"`
	} `json:"spf"`
	DKIM struct {
		Result     string          `json:"result" doc:"pass when any signature passes." example:"pass"`
		Signatures []DKIMSignature `json:"signatures,omitempty"`
		Reason     string          `json:"reason,omitempty" example:"no_signature"`
	} `json:"dkim"`
	DMARC struct {
		Result       string   `json:"result" example:"pass"`
		Domain       string   `json:"domain,omitempty" doc:"Of From." example:"example.com"`
		PolicyDomain string   `json:"policy_domain,omitempty" doc:"Whose record holds." example:"example.com"`
		Policy       string   `json:"policy,omitempty" doc:"none, quarantine or reject." example:"reject"`
		Alignment    string   `json:"alignment,omitempty" doc:"relaxed or strict." example:"relaxed"`
		Aligned      []string `json:"aligned,omitempty" doc:"Which of spf and dkim passed for an aligned domain." example:"[\"dkim\"]"`
		Reason       string   `json:"reason,omitempty" example:"no_record"`
	} `json:"dmarc"`
	ARC *ARCClaim `json:"arc,omitempty" doc:"What the newest ARC set claims. It is not verified."`
}

// DKIMSignature is one signature of a mail.
type DKIMSignature struct {
	Result    string `json:"result" example:"pass"`
	Domain    string `json:"domain" example:"example.com"`
	Selector  string `json:"selector" example:"s1"`
	Algorithm string `json:"algorithm" example:"rsa-sha256"`
	Reason    string `json:"reason,omitempty" example:"body_changed"`
}

// ARCClaim is the claim of the newest set of RFC 8617.
type ARCClaim struct {
	Instance int    `json:"instance" example:"1"`
	Domain   string `json:"domain" example:"forwarder.example"`
	Claim    string `json:"claim" example:"pass"`
}

func authenticationOf(a hookglass.Authentication) *Authentication {
	out := &Authentication{a.SPF, a.DKIM, a.DMARC}
	for _, s := range []*string{&out.SPF, &out.DKIM, &out.DMARC} {
		if *s == "" {
			*s = hookglass.AuthPending
		}
	}
	return out
}

// mailOf returns the detail of a mail that is stored in the event; [EventDetail.WithMessage] adds what the message
// contains.
func mailOf(e *hookglass.Event) MailDetail {
	out := MailDetail{AuthenticationResults: &AuthenticationResults{}}
	r := out.AuthenticationResults
	if e.Verdict == nil || json.Unmarshal(e.Verdict, r) != nil {
		a := authenticationOf(e.Authentication)
		r.SPF.Result, r.DKIM.Result, r.DMARC.Result = a.SPF, a.DKIM, a.DMARC
	}
	if v := e.Envelope; v != nil {
		out.Envelope = &Envelope{
			MailFrom: Text(v.From), RcptTo: append([]string{}, v.To...), Helo: Text(v.Helo), Protocol: v.Protocol, ClientIP: nonzero(e.IP), Composed: v.Composed,
		}
	}
	return out
}

// Message is the parsed content of a mail.
type Message struct {
	Text, HTML                   string
	Headers                      map[string]string
	Attachments                  []Attachment
	Extracted                    Extracted
	MessageID, Date, Cc, ReplyTo string
	Kind, Relay                  string
	Faults                       []string
}

// WithMessage adds the parsed content of a mail to its detail form.
func (d EventDetail) WithMessage(m Message) EventDetail {
	d.TextBody, d.HTMLBody, d.EmailHeaders, d.Extracted = &m.Text, &m.HTML, m.Headers, &m.Extracted
	d.AttachmentMetadata, d.ParseFaults = append([]Attachment{}, m.Attachments...), append([]string{}, m.Faults...)
	d.MessageID, d.Date, d.Cc, d.ReplyTo, d.Kind, d.Relay = &m.MessageID, &m.Date, &m.Cc, &m.ReplyTo, &m.Kind, &m.Relay
	return d
}
