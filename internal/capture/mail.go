package capture

import (
	"cmp"
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

// Mail is a message for mail endpoints, exactly as received.
type Mail struct {
	From     string      // the reverse path; empty: the null sender
	To       []Recipient // at least one
	Named    []string    // the recipients that a mail service names; nil: those of To
	Composed bool        // see hookglass.Envelope
	Helo     string
	Protocol string     // see hookglass.Envelope
	Client   netip.Addr // the sending server, according to trusted proxies; may be the zero Addr
	Raw      []byte     // owned by the arrival
	At       time.Time  // when it was complete
	Answers  Answers    // how many answers the sender gets, where endpoints have scripts
}

// Recipient is one recipient of a mail.
type Recipient struct {
	Address string // as the sender wrote it
	Target  Target
}

// Delivered is the outcome for one recipient of a mail: the event, or why there is none.
type Delivered struct {
	Event hookglass.EventID
	Err   error
	Reply *hookglass.Reply // the answer of a script, as recorded with the event; nil: no script answered
}

// maxListed bounds From, To and Subject in the list form, in bytes. The headers hold them in full.
const maxListed = 2_000

// AdmitMail finds the endpoint with a local part, given in lower case, before the mail is read. It answers not_found
// for one that is unknown, deleted or expired, gone for a disabled one, and rate_limited if too many of its arrivals
// are in progress.
func (s *Service) AdmitMail(ctx context.Context, localPart string) (Target, error) {
	return s.admit(ctx, mailbox(localPart), hookglass.KindEmail)
}

// AdmitMailbox is AdmitMail by the endpoint's id or custom id.
func (s *Service) AdmitMailbox(ctx context.Context, ref string) (Target, error) {
	return s.admit(ctx, ref, hookglass.KindEmail)
}

// CaptureMail stores the mail once for each endpoint among the recipients and returns the outcome for each recipient. A
// mail with an event is on disk, even if a script refuses it. The events of several endpoints are committed
// independently: some may be stored and others not. Errors: not_found if the endpoint was deleted meanwhile,
// rate_limited, and unavailable if the storage cannot take it.
func (s *Service) CaptureMail(ctx context.Context, m *Mail) []Delivered {
	events, of := s.judgeMail(m)
	targets := make([]Target, len(events))
	for i, r := range m.To {
		targets[of[i]] = r.Target
	}
	outcomes := s.followMail(ctx, m.Answers, targets, events)
	if len(events) == 1 && outcomes[0] == nil {
		outcomes[0] = s.keepMail(ctx, targets[0], events[0])
	} else {
		var storing sync.WaitGroup
		for n, ev := range events {
			if outcomes[n] == nil {
				storing.Go(func() { outcomes[n] = s.keepMail(ctx, targets[n], ev) }) // concurrently, to share a commit
			}
		}
		storing.Wait()
	}
	delivered := make([]Delivered, len(m.To))
	for i, n := range of {
		if delivered[i].Err = outcomes[n]; outcomes[n] == nil {
			delivered[i].Event, delivered[i].Reply = events[n].ID, events[n].Reply
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

// CapturePosted stores a mail that was posted over HTTP, raw or in the form of a mail service, and returns the reply.
// Errors are those of CaptureMail, and unsupported_media_type, invalid_json and validation_failed for a body that is
// not a mail.
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

// fromPost parses a posted mail. It refuses a compressed one, which would be kept as a message that nobody can read.
func fromPost(a *Arrival) (*email.Posted, error) {
	if coding.Of(a.Headers) != "" {
		return nil, hookglass.Errorf(hookglass.CodeUnsupportedMediaType, "The body may not be compressed.")
	}
	return email.FromPost(a.Headers.Get("Content-Type"), a.Body)
}

// judgeMail makes an event of the mail for each endpoint; of maps each recipient to its event.
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
			SignatureStatus: hookglass.SignatureUnchecked, From: cmp.Or(listed(parsed.From), m.From), To: listed(parsed.To), Subject: listed(parsed.Subject),
			Payload: &hookglass.Payload{
				Headers: parsed.Headers, Body: m.Raw,
				Envelope: &hookglass.Envelope{From: m.From, To: []string{r.Address}, Helo: m.Helo, Protocol: m.Protocol, Composed: m.Composed},
			},
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

// envelopeOf returns the envelope of a stored mail.
func envelopeOf(ev *hookglass.Event) email.Envelope {
	if ev.Envelope == nil {
		return email.Envelope{}
	}
	client, _ := netip.ParseAddr(ev.IP) // the zero Addr if it is not known
	return email.Envelope{RemoteIP: client, HELO: ev.Envelope.Helo, MailFrom: ev.Envelope.From}
}

func listed(s string) string { return hookglass.Beginning(s, maxListed) }
