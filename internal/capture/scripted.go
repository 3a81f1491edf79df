package capture

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// script is what the attempts of a delivery are answered one after another. text is its one spelling.
type script struct {
	answers hookglass.ResponseScript
	text    string
}

// readScript reads the script of an endpoint; nil where it has none.
func readScript(e *hookglass.Endpoint) *script {
	if e.ResponseScript == "" {
		return nil
	}
	answers, err := hookglass.ParseResponseScript(e.ResponseScript)
	if err != nil {
		return nil // of a later version of the program: the endpoint answers as without one
	}
	return &script{answers, answers.String()}
}

// follow puts the answer of the endpoint's script in the place of the one that was chosen. Which attempt this is, is
// counted in the database, so that it is right whichever node the attempts come to. One whose event then cannot be
// stored counts: the sender made it.
func (s *Service) follow(ctx context.Context, t Target, ev *hookglass.Event) error {
	if t.known.script == nil || ev.Reply.Source == hookglass.SourceHandshake {
		return nil
	}
	_, key := hookglass.DeliveryIdentity(ev)
	var attempt int64
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		attempt, err = tx.NextAttempt(t.Endpoint.Num, key, t.known.script.text)
		return err
	})
	if err != nil {
		return fmt.Errorf("count an attempt: %w", err)
	}
	own, _ := t.own(ev) // whose status is not given: a script goes before a rule
	ev.Reply = scripted(t.known.script.answers.At(attempt), own, ev)
	return nil
}

// scripted is an entry of a script as a reply: the endpoint's own answer with the entry's status, or a short one where
// it has none.
func scripted(a hookglass.ScriptedAnswer, custom *hookglass.Response, ev *hookglass.Event) *hookglass.Reply {
	if a.Status == 0 {
		return &hookglass.Reply{Source: hookglass.SourceCustom, Delay: a.Delay}
	}
	var r *hookglass.Reply
	switch {
	case custom != nil:
		r = customReply(custom, ev)
	case a.Status < 300:
		r = acknowledged(ev.ID)
	default:
		r = &hookglass.Reply{
			Headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}},
			Body:    []byte(`{"error":"scripted","id":"` + string(ev.ID) + `"}`),
		}
	}
	r.Status, r.Source = a.Status, hookglass.SourceCustom
	if a.Delay > 0 {
		r.Delay = a.Delay
	}
	if a.RetryAfter > 0 {
		kept := r.Headers[:0]
		for _, h := range r.Headers {
			if !strings.EqualFold(h.Name, "Retry-After") {
				kept = append(kept, h)
			}
		}
		r.Headers = append(kept, hookglass.Header{Name: "Retry-After", Value: strconv.FormatInt(int64(a.RetryAfter/time.Second), 10)})
	}
	return dated(given(ev.Method, r))
}
