package tunnel

import (
	"context"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// answerTime is how long a sender waits for the local machine's answer (spec: decisions, section 14).
const answerTime = 25 * time.Second

// answerable reports whether the sender of an event waits for a local machine's answer. Handshakes of providers are
// answered by the server.
func answerable(e hookglass.Endpoint, ev *hookglass.Event) bool {
	return e.ProviderConfig.ResponseMode == hookglass.ResponseTunnel && ev.Type == hookglass.EventWebhook &&
		ev.Payload != nil && ev.Reply != nil && ev.Reply.Source != hookglass.SourceHandshake
}

// Answer waits for a local machine's answer to a stored event. It returns nil when no machine is connected, the machine
// gives no answer, the event is deleted (then nobody can report on it any more), or ctx ends.
func (s *Service) Answer(ctx context.Context, ev *hookglass.Event) *hookglass.TargetResponse {
	heard := s.db.Listen(store.TopicTunnel(ev.EndpointNum))
	defer heard.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		var connected, kept bool
		var r *hookglass.DeliveryReport
		err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
			if connected, err = v.HasTunnel(ev.EndpointNum); err != nil {
				return err
			}
			if kept, err = v.Keeps(ev); err != nil {
				return err
			}
			if r, err = v.FirstAnswer(ev.Seq); hookglass.Is(err, hookglass.CodeNotFound) {
				r, err = nil, nil
			}
			return err
		})
		switch {
		case err == nil && r != nil:
			if r.StatusCode < 200 {
				return nil // no answer came, or none that ends a request
			}
			return responseOf(r.StatusCode, r.Evidence)
		case err == nil && !(connected && kept):
			return nil
		}
		select {
		case <-heard.C:
		case <-look.C:
		case <-ctx.Done():
			return nil
		case <-s.Draining:
			return nil
		}
	}
}

// responseOf returns the local target's answer; e may be nil.
func responseOf(status int, e *hookglass.DeliveryEvidence) *hookglass.TargetResponse {
	out := &hookglass.TargetResponse{Status: status}
	if e != nil {
		out.Headers, out.Body, out.Truncated = withType(e), e.Body, !e.Complete
	}
	return out
}

// withType returns the header fields of an answer, with the Content-Type that the client reports if they have none.
func withType(e *hookglass.DeliveryEvidence) hookglass.Headers {
	if e.ContentType == "" || e.Headers.Has("Content-Type") {
		return e.Headers
	}
	return append(hookglass.Headers{{Name: "Content-Type", Value: e.ContentType}}, e.Headers...)
}
