package capture

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/store"
)

// Tunnel reaches the local machines that are connected to endpoints.
type Tunnel interface {
	// Answer waits for a local machine's answer to an event. It returns nil if none comes in time.
	Answer(ctx context.Context, ev *hookglass.Event) *hookglass.TargetResponse
}

// awaiting returns the reply to the sender of a stored event. In response mode tunnel, the reply awaits a local
// machine's answer (spec: decisions, section 5, response_mode), except for a provider's handshake and for endpoints
// with a script, which take precedence.
func awaiting(t Target, ev *hookglass.Event) *hookglass.Reply {
	if t.Endpoint.ProviderConfig.ResponseMode != hookglass.ResponseTunnel || ev.Reply.Source == hookglass.SourceHandshake || t.known.script != nil {
		return ev.Reply
	}
	r := *ev.Reply
	slim := *ev // without the payload, which may be large and is not needed
	slim.Payload = nil
	r.Awaits = &slim
	return &r
}

// Answer waits for a local machine's answer to the event that a reply awaits, records it, and returns what to send to
// the sender. It returns soon after ctx ends.
func (s *Service) Answer(ctx context.Context, r *hookglass.Reply) *hookglass.Reply {
	own := *r
	own.Awaits = nil
	if s.cfg.Tunnel == nil {
		return &own
	}
	answer := s.cfg.Tunnel.Answer(ctx, r.Awaits)
	if answer == nil {
		return &own
	}
	given := tunnelReply(r.Awaits.Method, answer)
	// What is recorded must be what is sent, so if one cannot be recorded, it is not sent.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.SetReply(r.Awaits, given) })
	if err != nil {
		s.log.Warn("the answer of a local machine could not be stored, so it was not given", "event", r.Awaits.ID, "error", err)
		return &own
	}
	return given
}

func tunnelReply(method string, answer *hookglass.TargetResponse) *hookglass.Reply {
	r := &hookglass.Reply{Status: answer.Status, Body: answer.Body, Source: hookglass.SourceTunnel}
	coded := stillCoded(answer)
	for _, h := range answer.Headers {
		if !coded && strings.EqualFold(h.Name, "Content-Encoding") {
			continue
		}
		// A policy of a local machine's pages is not passed on either.
		if Sendable(h) && !hookglass.AffectsHost(h.Name) && !strings.EqualFold(h.Name, "Content-Security-Policy") {
			r.Headers = append(r.Headers, h)
		}
	}
	r = finish(method, r)
	if answer.Truncated && !bodiless(method, r.Status) {
		r.Headers = append(r.Headers, truncated)
	}
	return dated(r)
}

// truncated says, to the sender and in the record, that the body is cut: a report holds at most 64 KiB of an answer
// (spec: decisions, section 10), or the local machine broke off.
var truncated = hookglass.Header{Name: "X-Service-Truncated", Value: "true"}

// stillCoded reports whether the body of a local machine's answer still has the content coding that its headers name.
// Some clients pass the body on as received, others after their HTTP library decoded it, with the original headers.
func stillCoded(answer *hookglass.TargetResponse) bool {
	of := coding.Of(answer.Headers)
	if of == "" || utf8.Valid(answer.Body) {
		return false
	}
	plain, err := coding.Decoded(answer.Body, of, 1<<10)
	return err == nil || errors.Is(err, coding.ErrLonger) || errors.Is(err, coding.ErrUnknown) || len(plain) > 0
}
