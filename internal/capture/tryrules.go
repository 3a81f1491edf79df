package capture

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/provider"
	"hookglass/internal/query"
	"hookglass/internal/store"
)

// Bounds of trying rules, for which a person waits.
const (
	MaxTried     = 100
	DefaultTried = 25
	triedFor     = 20 * time.Second
)

// triedTimes is how many times its size an event takes while rules are tried on it: it is decoded and answered.
const triedTimes = 3

// AnsweredBy says what answers a webhook.
type AnsweredBy string

// What answers webhooks. Handshakes, scripts and local machines take precedence over rules; the response is for events
// that match no rule.
const (
	ByRule      AnsweredBy = "rule"
	ByResponse  AnsweredBy = "response"
	ByDefault   AnsweredBy = "default"
	ByHandshake AnsweredBy = "handshake"
	ByScript    AnsweredBy = "script"
	ByTunnel    AnsweredBy = "tunnel"
)

// TriedRules is the result of trying rules.
type TriedRules struct {
	Events   []TriedEvent // newest first
	Complete bool         // false: time ran out
}

// TriedEvent is what an event would be answered with.
type TriedEvent struct {
	Event  *hookglass.Event // in the list form
	By     AnsweredBy
	Rule   *hookglass.ReplyRule // nil: By is not ByRule
	Status int                  // 0: it depends on the attempt or the local machine
}

// TryRules determines how the newest events that match a query would be answered now by the endpoint, as if it were
// enabled and, if rules are given, had these. It stores nothing and counts no attempts for a script. It answers
// not_found, validation_failed and, if there is no room for a large event, unavailable.
func (s *Service) TryRules(ctx context.Context, who hookglass.Principal, ref, text string, limit int, rules *[]hookglass.ResponseRule) (tried TriedRules, err error) {
	if limit < 1 || limit > MaxTried {
		return tried, hookglass.Invalid("limit", "must be 1 to %d", MaxTried)
	}
	q, err := query.Filter{Q: text, Ignored: "any"}.Parse(s.db.Now())
	if err != nil {
		return tried, err
	}
	t := Target{known: new(target)}
	var page store.EventPage
	err = s.db.View(ctx, who, func(v *store.View) (err error) {
		if t.Endpoint, err = v.Endpoint(ref); err != nil {
			return err
		}
		if t.Endpoint.Kind != hookglass.KindWebhook {
			return hookglass.Invalid("endpoint_id", "is an email endpoint, and rules answer webhooks")
		}
		if t.known.configs, err = s.cfg.Verifiers.Verifiers(v, ref); err != nil {
			return err
		}
		page, err = v.Events(ref, store.EventList{Query: q, Limit: limit})
		return err
	})
	if err != nil {
		return tried, err
	}
	if rules != nil {
		t.Endpoint.ResponseRules = *rules
	}
	t.known.script, t.known.rules = readScript(&t.Endpoint), readRules(t.Endpoint.ResponseRules)
	until := time.Now().Add(triedFor)
	for _, listed := range page.Events {
		if time.Now().After(until) || ctx.Err() != nil {
			return tried, ctx.Err()
		}
		one, err := s.tryOn(ctx, who, t, listed)
		if hookglass.Is(err, hookglass.CodeNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return tried, err
		}
		tried.Events = append(tried.Events, one)
	}
	tried.Complete = page.Next == 0 || len(page.Events) == limit // otherwise the search ran out of time
	return tried, nil
}

// tryOn answers one event, which it holds meanwhile.
func (s *Service) tryOn(ctx context.Context, who hookglass.Principal, t Target, listed *hookglass.Event) (TriedEvent, error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	ev, err := s.Hold(ctx, who, triedTimes, func(v *store.View) (*hookglass.Event, error) {
		return v.Event(string(t.Endpoint.ID), string(listed.ID))
	})
	if err != nil {
		return TriedEvent{}, err
	}
	req := s.presented(ev, t.Endpoint.Provider)
	r := answer(t, ev, req, provider.Detect(req))
	tried := TriedEvent{Event: listed, By: t.answeredBy(r)}
	switch tried.By {
	case ByRule:
		tried.Rule = r.Rule
		fallthrough
	case ByResponse, ByDefault, ByHandshake:
		tried.Status = r.Status
	}
	return tried, nil
}

// answeredBy returns what answers the event, given the reply r of the endpoint alone.
func (t Target) answeredBy(r *hookglass.Reply) AnsweredBy {
	switch {
	case r.Source == hookglass.SourceHandshake:
		return ByHandshake
	case t.known.script != nil:
		return ByScript
	case t.Endpoint.ProviderConfig.ResponseMode == hookglass.ResponseTunnel && t.Endpoint.TunnelActive:
		return ByTunnel
	case r.Rule != nil:
		return ByRule
	case r.Source == hookglass.SourceCustom:
		return ByResponse
	}
	return ByDefault
}
