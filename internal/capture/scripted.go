package capture

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// script is a response script; text is its canonical form.
type script struct {
	answers hookglass.ResponseScript
	text    string
}

// readScript parses the script of an endpoint for webhooks; nil is none.
func readScript(e *hookglass.Endpoint) *script {
	if e.ResponseScript == "" || e.Kind == hookglass.KindEmail {
		return nil
	}
	answers, err := hookglass.ParseResponseScript(e.ResponseScript)
	if err != nil {
		return nil // from a newer version of the program: the endpoint answers as without one
	}
	return &script{answers, answers.String()}
}

// follow replaces the chosen reply with the answer of the endpoint's script. Attempts are counted in the database, so
// that the count is right whichever nodes they reach. An attempt counts even if its event cannot be stored afterwards,
// because the sender made it.
func (s *Service) follow(ctx context.Context, t Target, ev *hookglass.Event) error {
	if t.known.script == nil || ev.Reply.Source == hookglass.SourceHandshake {
		return nil
	}
	_, key := hookglass.DeliveryIdentity(ev)
	event, named := hookglass.EventIdentity(ev)
	script := t.known.script
	open := func(n int64) bool { return !script.answers.At(n).Success() }
	var attempt int64
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		if named {
			attempt, err = tx.NextAttemptOf(t.Endpoint.Num, key, event, script.text, open)
			return err
		}
		attempt, err = tx.NextAttempt(t.Endpoint.Num, key, script.text)
		return err
	})
	if err != nil {
		return fmt.Errorf("count an attempt: %w", err)
	}
	own, _ := t.own(ev) // not its status: the script determines that
	ev.Reply = scripted(script.answers.At(attempt), own, ev)
	return nil
}

// scripted converts an entry of a script to a reply: the endpoint's custom answer with the entry's status, or a short
// one if there is no custom answer.
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
		kept := slices.DeleteFunc(r.Headers, func(h hookglass.Header) bool { return strings.EqualFold(h.Name, "Retry-After") })
		r.Headers = append(kept, hookglass.Header{Name: "Retry-After", Value: strconv.FormatInt(int64(a.RetryAfter/time.Second), 10)})
	}
	return dated(given(ev.Method, r))
}
