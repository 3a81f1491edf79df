package capture

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/email"
	"hookglass/internal/store"
)

// Mail is one message on its way to mail endpoints, exactly as it came.
type Mail struct {
	From     string      // the reverse path; empty: the null sender
	To       []Recipient // at least one
	Named    []string    // the recipients that a mail service tells; nil: those of To
	Composed bool        // see hookglass.Envelope
	Helo     string
	Protocol string     // see hookglass.Envelope
	Client   netip.Addr // the sending server, after trusted proxies; may be the zero Addr
	Raw      []byte     // the arrival owns it
	At       time.Time  // when all of it was there
}

// Recipient is one recipient of a mail.
type Recipient struct {
	Address string // as the sender wrote it
	Target  Target
}

// Delivered says what became of a mail at one recipient: the event, or why there is none.
type Delivered struct {
	Event hookglass.EventID
	Err   error
}

// maxListed bounds what of a mail's From, To and Subject the list form has. All of it is in the header.
const maxListed = 2_000

// AdmitMail finds the endpoint with a local part, which is in lower case, before the mail is read. It answers not_found
// for one that is unknown, deleted or expired; gone for a disabled one; rate_limited when too much of it is under way.
func (s *Service) AdmitMail(ctx context.Context, localPart string) (Target, error) {
	return s.admit(ctx, mailbox(localPart), hookglass.KindEmail)
}

// AdmitMailbox is AdmitMail by the endpoint's id or custom id.
func (s *Service) AdmitMailbox(ctx context.Context, ref string) (Target, error) {
	return s.admit(ctx, ref, hookglass.KindEmail)
}

// CaptureMail stores the mail once for each endpoint among the recipients' and says what became of it at each
// recipient. What is told to be stored is on disk. The events of several endpoints are committed side by side: one may
// be stored and another not. Errors: not_found when the endpoint was deleted meanwhile, rate_limited, and unavailable
// when the storage cannot take it.
func (s *Service) CaptureMail(ctx context.Context, m *Mail) []Delivered {
	events, of := s.judgeMail(m)
	outcomes := make([]error, len(events))
	if len(events) == 1 {
		outcomes[0] = s.keepMail(ctx, m.To[0].Target, events[0])
	} else {
		var storing sync.WaitGroup
		for i, r := range m.To {
			if n := of[i]; !slices.Contains(of[:i], n) {
				storing.Go(func() { outcomes[n] = s.keepMail(ctx, r.Target, events[n]) }) // and so in one commit, mostly
			}
		}
		storing.Wait()
	}
	delivered := make([]Delivered, len(m.To))
	for i, n := range of {
		if delivered[i].Err = outcomes[n]; outcomes[n] == nil {
			delivered[i].Event = events[n].ID
		}
	}
	return delivered
}

func (s *Service) keepMail(ctx context.Context, t Target, ev *hookglass.Event) (err error) {
	defer func() { s.refused.add(t.Endpoint.Num, err) }()
	if t.known.underWay.Add(1) > perEndpoint {
		t.known.underWay.Add(-1)
		return tooMany()
	}
	defer t.known.underWay.Add(-1)
	work := t.known.following(ev)
	work.Tasks = append(slices.Clip(work.Tasks), store.TaskVerdict)
	if err := s.db.CaptureWith(ctx, t.Endpoint.AccountID, ev, work); err != nil {
		s.outage.refusal(err)
		return err
	}
	s.outage.stored()
	return nil
}

// CapturePosted stores a mail that was posted, as itself or in the form of a mail service, and returns the reply to its
// sender. Errors are those of CaptureMail, and unsupported_media_type, invalid_json and validation_failed for a body
// that is no mail.
func (s *Service) CapturePosted(ctx context.Context, t Target, a *Arrival) (*hookglass.Reply, error) {
	posted, err := fromPost(a)
	if err != nil {
		s.refused.add(t.Endpoint.Num, err)
		return nil, err
	}
	own := Recipient{Address: t.Endpoint.EmailLocalPart + "@" + s.cfg.MailDomain, Target: t}
	delivered := s.CaptureMail(ctx, &Mail{
		From: posted.MailFrom, To: []Recipient{own}, Named: posted.Recipients, Composed: posted.Composed, Protocol: "HTTP", Raw: posted.Raw, At: a.At,
	})
	if err := delivered[0].Err; err != nil {
		return nil, err
	}
	return acknowledged(delivered[0].Event), nil
}

// fromPost reads a posted mail. One that is compressed is refused: it would be kept as a message that nobody can read.
func fromPost(a *Arrival) (*email.Posted, error) {
	if coding.Of(a.Headers) != "" {
		return nil, hookglass.Errorf(hookglass.CodeUnsupportedMediaType, "The body may not be compressed.")
	}
	return email.FromPost(a.Headers.Get("Content-Type"), a.Body)
}

// judgeMail makes an event of the mail for each endpoint, and says for each recipient which event is its.
func (s *Service) judgeMail(m *Mail) (events []*hookglass.Event, of []int) {
	parsed := email.Parse(m.Raw)
	found := email.Detect(parsed, m.envelope())
	at := s.db.Stamp(m.At).UTC().Truncate(time.Microsecond)
	byEndpoint := make(map[int64]int, 1)
	for _, r := range m.To {
		e := &r.Target.Endpoint
		n, again := byEndpoint[e.Num]
		of = append(of, n)
		if again {
			events[n].Envelope.To = append(events[n].Envelope.To, r.Address)
			continue
		}
		of[len(of)-1], byEndpoint[e.Num] = len(events), len(events)
		ev := &hookglass.Event{
			ID: hookglass.NewEventID(hookglass.EventEmail, at), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventEmail,
			ReceivedAt: at, Method: "EMAIL", Path: strings.ToLower(r.Address), IP: addrText(m.Client),
			Proto: m.Protocol, Size: int64(len(m.Raw)), Provider: found.Provider, EventType: found.EventType, EventRef: listed(parsed.MessageID),
			SignatureStatus: hookglass.SignatureUnchecked, From: listed(parsed.From), To: listed(parsed.To), Subject: listed(parsed.Subject),
			Payload: &hookglass.Payload{
				Headers: parsed.Headers, Body: m.Raw,
				Envelope: &hookglass.Envelope{From: m.From, To: []string{r.Address}, Helo: m.Helo, Protocol: m.Protocol, Composed: m.Composed},
			},
		}
		if ev.From == "" {
			ev.From = m.From
		}
		events = append(events, ev)
	}
	for _, ev := range events {
		if m.Named != nil {
			ev.Envelope.To = m.Named
		}
		if ev.To == "" {
			ev.To = strings.Join(ev.Envelope.To, ", ")
		}
	}
	return events, of
}

func (m *Mail) envelope() email.Envelope {
	return email.Envelope{RemoteIP: m.Client, HELO: m.Helo, MailFrom: m.From}
}

// envelopeOf is the envelope of a mail that was stored.
func envelopeOf(ev *hookglass.Event) email.Envelope {
	if ev.Envelope == nil {
		return email.Envelope{}
	}
	client, _ := netip.ParseAddr(ev.IP) // empty where it is not known
	return email.Envelope{RemoteIP: client, HELO: ev.Envelope.Helo, MailFrom: ev.Envelope.From}
}

// listed cuts a text at the last character that fits.
func listed(s string) string {
	if len(s) <= maxListed {
		return s
	}
	return strings.ToValidUTF8(s[:maxListed], "")
}
