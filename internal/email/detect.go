package email

import (
	"cmp"
	"slices"
	"strings"

	"hookglass"
)

// Detection is what the headers say about a mail's origin and kind. Headers can be forged: this is a description, not
// proof.
type Detection struct {
	Provider  string // the service that made the mail; hookglass.UnknownProvider when not recognised
	Relay     string // the sending service or mail provider that carried it for another; may be empty
	Kind      string // one of the Kinds
	EventType string // the provider's own event type, or the kind
}

// The kinds of mail.
const (
	KindBounce         = "bounce"
	KindDelayed        = "delivery_delayed"
	KindDeliveryReport = "delivery_report"
	KindComplaint      = "complaint"
	KindReadReceipt    = "read_receipt"
	KindAutoReply      = "auto_reply"
	KindCalendar       = "calendar"
	KindList           = "list"
	KindNotification   = "notification"
	KindNewsletter     = "newsletter"
	KindMessage        = "message"
)

// Detect returns which service sent a message and what kind of mail it is. From alone identifies no service: anybody
// can write it.
func Detect(m *Message, env Envelope) Detection {
	headers := make(hookglass.Headers, len(m.Headers))
	for i, h := range m.Headers {
		headers[i] = hookglass.Header{Name: strings.ToLower(h.Name), Value: strings.ToLower(h.Value)}
	}
	mailFrom := cmp.Or(env.MailFrom, strings.Trim(headers.Get("return-path"), "<> "))
	fromNobody := mailFrom == "" && (env.RemoteIP.IsValid() || headers.Has("return-path"))
	t := traces{
		headers: headers, messageID: Address{Address: strings.Trim(headers.Get("message-id"), "<>")}.domain(),
		returnPath: Address{Address: mailFrom}.domain(),
	}
	for _, v := range headers.Values("dkim-signature") {
		t.signers = append(t.signers, parseTags(v)["d"])
	}
	d := Detection{Provider: hookglass.UnknownProvider}
	var made *sender
	layer := layerApp
	for ; layer <= layerMailbox && made == nil; layer++ {
		made = t.find(table()[layer])
	}
	if made != nil {
		d.Provider = made.ID
		for ; layer <= layerMailbox && d.Relay == ""; layer++ {
			if relay := t.find(table()[layer]); relay != nil && layer >= layerESP {
				d.Relay = relay.ID
			}
		}
	}
	d.Kind = m.kind(headers, fromNobody, made)
	d.EventType = d.Kind
	if made != nil && made.Event != "" {
		if own := headers.Get(made.Event); own != "" && len(own) <= 64 {
			d.EventType = own
		}
	}
	return d
}

// traces are the places in a header where services name themselves, in lower case.
type traces struct {
	headers    hookglass.Headers
	messageID  string   // domain
	returnPath string   // domain
	signers    []string // domains of DKIM signatures
}

// find returns the sender of a layer with the strongest trace: its own headers, its domain in the Message-ID, in the
// return path, in a signature, in a hop. Of equals it returns the first.
func (t *traces) find(layer []sender) *sender {
	for _, left := range []func(*sender) bool{
		t.hasHeaders,
		func(s *sender) bool { return s.owns(t.messageID) },
		func(s *sender) bool { return s.owns(t.returnPath) },
		func(s *sender) bool { return slices.ContainsFunc(t.signers, s.owns) },
		t.hasHop,
	} {
		for i := range layer {
			if left(&layer[i]) {
				return &layer[i]
			}
		}
	}
	return nil
}

// hasHeaders reports whether the message has a set of headers that only this sender writes.
func (t *traces) hasHeaders(s *sender) bool {
	return slices.ContainsFunc(s.strong, func(all []condition) bool {
		return !slices.ContainsFunc(all, func(c condition) bool { return !c.met(t.headers) })
	})
}

// hasHop reports whether a message passed through a server of a sender.
func (t *traces) hasHop(s *sender) bool {
	for _, hop := range t.headers.Values("received") {
		for _, domain := range s.Received {
			if at := strings.Index(hop, domain); at > 0 && strings.IndexByte(". (", hop[at-1]) >= 0 {
				return true
			}
		}
	}
	return false
}

// owns reports whether a domain belongs to a sender.
func (s *sender) owns(name string) bool {
	return slices.ContainsFunc(s.Domains, func(domain string) bool { return within(name, domain) })
}

// within reports whether a name is a domain or a subdomain of it.
func within(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, domain) && name[len(name)-len(domain)-1] == '.'
}

// autoReplySubjects are the beginnings of the subjects of automatic replies without a header that says so.
var autoReplySubjects = []string{"automatic reply", "auto:", "autoreply:", "auto-reply:", "out of office", "out-of-office", "abwesenheit", "automatische antwort", "réponse automatique", "respuesta automática", "risposta automatica", "automatisch antwoord", "自動応答", "自动答复"}

// kind applies the rules in order: reports about other mail first, then automatic replies, then the rest.
func (m *Message) kind(h hookglass.Headers, fromNobody bool, made *sender) string {
	if m.media == "multipart/report" {
		switch strings.ToLower(m.params["report-type"]) {
		case "delivery-status":
			return m.deliveryStatus()
		case "feedback-report":
			return KindComplaint
		case "disposition-notification":
			return KindReadReceipt
		}
	}
	local := ""
	if len(m.Senders) > 0 {
		local, _, _ = strings.Cut(strings.ToLower(m.Senders[0].Address), "@")
	}
	submitted, _, _ := strings.Cut(h.Get("auto-submitted"), ";")
	submitted = strings.TrimSpace(stripComment(submitted))
	precedence := h.Get("precedence")
	subject := strings.ToLower(m.Subject)
	switch {
	case h.Has("x-failed-recipients"), fromNobody && (local == "mailer-daemon" || local == "postmaster"):
		return KindBounce
	case submitted == "auto-replied", h.Has("x-autoreply"), h.Has("x-autorespond"), h.Has("x-auto-reply-from"),
		precedence == "auto_reply", h.Get("x-precedence") == "auto_reply", h.Get("delivered-to") == "autoresponder",
		hasAnyPrefix(subject, autoReplySubjects):
		return KindAutoReply
	case m.invites():
		return KindCalendar
	case made != nil && made.app: // even if it looks like list mail, as many do
		return KindNotification
	case h.Has("list-id"), h.Has("x-mailing-list"), h.Has("mailing-list"), precedence == "list":
		return KindList
	case submitted == "auto-generated", submitted == "auto-notified":
		return KindNotification
	case h.Has("list-unsubscribe"), precedence == "bulk", made != nil && made.Marketing:
		return KindNewsletter
	}
	return KindMessage
}

// deliveryStatus returns the worst Action among a report's recipients (RFC 3464, section 2.3.3).
func (m *Message) deliveryStatus() string {
	kind := KindDeliveryReport
	known := false
	for _, n := range m.reports {
		if n.media != "message/delivery-status" && n.media != "message/global-delivery-status" {
			continue
		}
		content := decodeTransfer(nil, n.body, n.encoding, func(Fault) {})
		for l := range strings.Lines(string(content[:min(len(content), maxValue)])) {
			name, value, ok := strings.Cut(l, ":")
			if !ok || !strings.EqualFold(strings.TrimSpace(name), "Action") {
				continue
			}
			known = true
			switch strings.ToLower(strings.TrimSpace(value)) {
			case "failed":
				return KindBounce
			case "delayed":
				kind = KindDelayed
			}
		}
	}
	if !known {
		return KindBounce
	}
	return kind
}

// invites reports whether the mail is an invitation, a reply to one, or its cancellation (RFC 6047).
func (m *Message) invites() bool {
	for _, n := range m.files {
		if n.media == "text/calendar" {
			switch strings.ToUpper(n.params["method"]) {
			case "REQUEST", "REPLY", "CANCEL":
				return true
			}
		}
	}
	return false
}

func hasAnyPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}
