// Package retries measures how senders retry: it groups the captured attempts of each delivery, and shows when they
// came, what changed between them, and how the sender reacted to the answers. It hides how attempts are recognised as
// one delivery.
//
// It only reads, and is safe for concurrent use.
package retries

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/inspect"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// Service is the capability.
type Service struct {
	db                  *store.DB
	readFor, compareFor time.Duration // the constants; shorter in tests
}

// New returns the service.
func New(db *store.DB) *Service { return &Service{db, readFor, compareFor} }

// Bounds of a profile.
const (
	DefaultEvents = 500
	DefaultGroups = 20

	maxAttempts = 50        // listed of one delivery
	readAtOnce  = 64        // events
	largestBody = 256 << 10 // of an event whose body is read

	// As long as a page of a search may take. The first events are read in any case.
	readFor    = 2 * time.Second
	compareFor = time.Second
)

// Options select what a profile is made of.
type Options struct {
	Query  query.Query
	Events int // how many of the newest that match
	Groups int // deliveries to list
}

// Profile measures how an endpoint's events were attempted, from the newest back, as far as time allows. It answers
// not_found.
func (s *Service) Profile(ctx context.Context, who hookglass.Principal, ref string, o Options) (p hookglass.RetryProfile, err error) {
	var found []*hookglass.Event
	err = s.db.View(ctx, who, func(v *store.View) error {
		page, err := v.Events(ref, store.EventList{Query: o.Query, Limit: o.Events})
		found, p.More = page.Events, page.Next != 0
		return err
	})
	if err != nil {
		return p, err
	}
	var arrivals []arrival // the newest first
	for until := time.Now().Add(s.readFor); len(found) > 0; {
		if p.Events > 0 && !time.Now().Before(until) {
			p.More = true
			break
		}
		n := min(len(found), readAtOnce)
		events, err := s.read(ctx, who, seqsOf(found[:n]))
		if err != nil {
			return p, err
		}
		for _, e := range events {
			if known(e) {
				arrivals = append(arrivals, arrivalOf(e))
			}
		}
		p.Events += n
		found = found[n:]
	}
	slices.Reverse(arrivals)
	groups := group(arrivals, s.db.Now())
	p.Summary = summarize(groups)
	listed := groups[:min(len(groups), o.Groups)]
	renewals := newRenewals()
	until := time.Now().Add(s.compareFor)
	for i := range listed {
		g := &listed[i]
		g.Total = len(g.Attempts)
		g.Attempts = g.Attempts[:min(len(g.Attempts), maxAttempts)]
		if len(g.Attempts) == 1 {
			continue
		}
		if !time.Now().Before(until) {
			uncompared(g.Attempts)
			continue
		}
		if err := s.compare(ctx, who, g, renewals); err != nil {
			return p, err
		}
	}
	p.Summary.Renewed, p.Summary.Counter = renewals.result()
	for _, g := range listed {
		p.Groups = append(p.Groups, g.AttemptGroup)
	}
	p.Providers = senders(groups)
	document(&p.Summary, p.Providers)
	return p, nil
}

// uncompared marks attempts as not compared.
func uncompared(attempts []hookglass.Attempt) {
	for i := range attempts[1:] {
		attempts[1+i].MoreChange = true
	}
}

func seqsOf(events []*hookglass.Event) []int64 {
	seqs := make([]int64, len(events))
	for i, e := range events {
		seqs[i] = e.Seq
	}
	return seqs
}

// read returns the events that still exist, with their payloads, in the order of their seqs.
func (s *Service) read(ctx context.Context, who hookglass.Principal, seqs []int64) (events []*hookglass.Event, err error) {
	found, err := store.Read(ctx, s.db, who, func(v *store.View) (map[int64]*hookglass.Event, error) { return v.EventsBySeq(seqs, largestBody) })
	for _, seq := range seqs {
		if e := found[seq]; e != nil {
			events = append(events, e)
		}
	}
	return events, err
}

// compare finds what changed between the attempts of a delivery.
func (s *Service) compare(ctx context.Context, who hookglass.Principal, g *delivery, renewals *renewals) error {
	events, err := s.read(ctx, who, g.seqs[:len(g.Attempts)])
	if err != nil {
		return err
	}
	at := make(map[hookglass.EventID]int, len(g.Attempts))
	for i, a := range g.Attempts {
		at[a.EventID] = i
	}
	for i := 1; i < len(events); i++ {
		before, next := events[i-1], events[i]
		a := &g.Attempts[at[next.ID]]
		if before.Payload == nil || next.Payload == nil { // too large
			a.MoreChange = true
			continue
		}
		a.Changes, a.MoreChange = changes(before, next)
		renewals.note(before, next, a.Changes)
	}
	return nil
}

// known reports whether the answer to an event is known. It is not for a mail that is too large to be loaded, unless a
// script gave it a status.
func known(e *hookglass.Event) bool {
	return e.Type == hookglass.EventWebhook || e.Payload != nil || e.Status != 0
}

// arrival is what is needed of an event to group it.
type arrival struct {
	attempt    hookglass.Attempt
	seq        int64
	key        hookglass.DeliveryKey
	own        hookglass.DeliveryKey // of a delivery that is no other's although it has the same key
	kind       hookglass.IdentityKind
	provider   string
	eventType  string
	eventRef   string
	deliveryID string
	mail       bool
}

func arrivalOf(e *hookglass.Event) arrival {
	a := arrival{
		attempt: hookglass.Attempt{EventID: e.ID, At: e.ReceivedAt, Status: e.Status}, seq: e.Seq,
		provider: e.Provider, eventType: e.EventType, eventRef: e.EventRef, deliveryID: e.DeliveryID,
	}
	lone := *e
	lone.DeliveryID = string(e.ID)
	_, a.own = hookglass.DeliveryIdentity(&lone)
	a.kind, a.key = hookglass.DeliveryIdentity(e)
	if a.mail = e.Type == hookglass.EventEmail; a.mail {
		a.eventRef = "" // one mail goes to several recipients by itself, which are deliveries of their own
		if e.Payload != nil && e.Reply == nil {
			a.attempt.Status = 250
		}
	}
	if e.Payload == nil {
		if a.kind == hookglass.IdentityBody { // too large to compare: a group of its own
			a.key = a.own
		}
		return a
	}
	if a.deliveryID == "" && a.kind == hookglass.IdentityDelivery {
		a.deliveryID = e.Headers.Get("Webhook-Id")
	}
	if r := e.Reply; r != nil {
		a.attempt.Held = r.Delay
		a.attempt.RetryAfter = retryAfter(r.Headers.Get("Retry-After"), e.ReceivedAt.Add(r.Delay))
	}
	return a
}

// retryAfter parses both forms of the field of an answer that was given at that time (RFC 9110, section 10.2.3).
func retryAfter(field string, at time.Time) time.Duration {
	field = strings.TrimSpace(field)
	if n, err := strconv.ParseInt(field, 10, 32); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if when, err := time.Parse(hookglass.HTTPDate, field); err == nil && when.After(at) {
		return when.Sub(at)
	}
	return 0
}

// senders returns what the providers of deliveries document.
func senders(groups []delivery) (facts []hookglass.SenderFacts) {
	seen := map[string]bool{}
	for _, g := range groups {
		if !g.mail { // what is documented is of webhooks
			seen[g.Provider] = true
		}
	}
	for _, name := range sorted(seen) {
		facts = append(facts, inspect.Sender(name))
	}
	return facts
}

// document adds the sender's documented schedule to the measured one, if there is only one sender.
func document(s *hookglass.RetrySummary, facts []hookglass.SenderFacts) {
	for i := range s.Schedule {
		step := &s.Schedule[i]
		step.Documented = -1
		if len(facts) == 1 && step.Attempt-2 < len(facts[0].Schedule) {
			step.Documented = time.Duration(facts[0].Schedule[step.Attempt-2]) * time.Second
		}
	}
}
