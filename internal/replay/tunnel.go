package replay

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/delivery"
)

// Tunnel reaches the local machines that are connected to endpoints.
type Tunnel interface {
	// Send has one connected client of the event's endpoint make a request, at most once, and waits for the outcome.
	Send(ctx context.Context, of *hookglass.Event, runID string, request hookglass.SentRequest, timeout time.Duration) hookglass.TunnelOutcome
}

// send delivers a request to its target, on the network or on a connected local machine. blocked means that no machine
// can have received it.
func (s *Service) send(ctx context.Context, src source, target, runID string, out delivery.Request) (got delivery.Outcome, blocked bool) {
	if target == hookglass.TunnelTarget {
		got, blocked = s.sendLocally(ctx, src, runID, out)
	} else {
		got = delivery.Send(ctx, s.Client, src.key(), Timeout, out)
	}
	if res := got.Response; res != nil && res.Truncated {
		res.Body = delivery.Beginning(res.Body, len(res.Body))
	}
	return got, blocked
}

func (s *Service) sendLocally(ctx context.Context, src source, runID string, out delivery.Request) (got delivery.Outcome, blocked bool) {
	o := hookglass.TunnelOutcome{Failure: &hookglass.NoTunnel, Blocked: true}
	if s.Tunnel != nil {
		o = s.Tunnel.Send(ctx, src.event, runID, out.SentRequest, Timeout)
	}
	return delivery.Outcome{Headers: out.Headers, Response: o.Response, Failure: o.Failure, MaySent: o.MaySent, Duration: o.Duration}, o.Blocked
}
