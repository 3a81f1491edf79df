package capture

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/coding"
	"hookglass/internal/store"
)

// Tunnel is the way to the local machines that are connected to endpoints.
type Tunnel interface {
	// Answer waits for what a local machine answers to an event, and returns nil where none does in time.
	Answer(ctx context.Context, ev *hookglass.Event) *hookglass.TargetResponse
}

// awaiting is the reply to the sender of a stored event: one that awaits where a local machine's answer shall be given
// (decisions, section 5, response_mode). A provider's handshake is answered by itself, and a script goes before the
// tunnel.
func awaiting(t Target, ev *hookglass.Event) *hookglass.Reply {
	if t.Endpoint.ProviderConfig.ResponseMode != hookglass.ResponseTunnel || ev.Reply.Source == hookglass.SourceHandshake || t.known.script != nil {
		return ev.Reply
	}
	r := *ev.Reply
	slim := *ev // without the body, which may be large and is not needed
	slim.Payload = nil
	r.Awaits = &slim
	return &r
}

// Answer waits for a local machine's answer to the event that a reply awaits, puts it on record, and returns what the
// sender is to be given. It returns soon after ctx ends.
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
	// What is on record is what was sent: without the one there is not the other.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.SetReply(r.Awaits, given) })
	if err != nil {
		s.log.Warn("the answer of a local machine could not be stored, so it was not given", "event", r.Awaits.ID, "error", err)
		return &own
	}
	return given
}

// private are fields of a local machine's answer that are not passed on: what would reach into the web app, which may
// share the host.
var private = []string{
	"Set-Cookie", "Clear-Site-Data", "Service-Worker-Allowed", "Strict-Transport-Security", "Alt-Svc", "Nel", "Report-To",
	"Content-Security-Policy",
}

func tunnelReply(method string, answer *hookglass.TargetResponse) *hookglass.Reply {
	r := &hookglass.Reply{Status: answer.Status, Body: answer.Body, Source: hookglass.SourceTunnel}
	coded := stillCoded(answer)
	for _, h := range answer.Headers {
		if !coded && strings.EqualFold(h.Name, "Content-Encoding") {
			continue
		}
		if Sendable(h) && !slices.ContainsFunc(private, func(name string) bool { return strings.EqualFold(name, h.Name) }) {
			r.Headers = append(r.Headers, h)
		}
	}
	r = finish(method, r)
	if answer.Truncated && len(r.Body) > 0 {
		r.Headers = append(r.Headers, truncated)
	}
	return dated(r)
}

// truncated tells the sender, and who reads the record, that the body is the beginning of a longer one: a report holds
// 64 KiB of an answer at most (decisions, section 10), or the local machine broke off.
var truncated = hookglass.Header{Name: "X-Service-Truncated", Value: "true"}

// stillCoded reports whether the body of a local machine's answer has the coding that its headers name. Some clients
// pass on what came, others what their HTTP library made of it, with the headers that it had before.
func stillCoded(answer *hookglass.TargetResponse) bool {
	of := coding.Of(answer.Headers)
	if of == "" || utf8.Valid(answer.Body) {
		return false
	}
	plain, err := coding.Decoded(answer.Body, of, 1<<10)
	return err == nil || errors.Is(err, coding.ErrLonger) || errors.Is(err, coding.ErrUnknown) || len(plain) > 0
}
