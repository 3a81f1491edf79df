package action

import (
	"context"
	"errors"
	"time"

	"hookglass"
	"hookglass/internal/email"
	"hookglass/internal/store"
)

// Work runs the actions of an event's endpoint, one after another by position. Doing it again finds the runs that there
// are: those that ended stay, one that did not goes on. It answers rate_limited where a step waits to forward again,
// where a mail's verdict is waited for and where there is no room for a large event, not_found where the event is gone.
func (s *Service) Work(ctx context.Context, t store.Task) error {
	if t.Event != nil {
		if wait := t.Event.VerdictWait(s.db.Now()); wait > 0 {
			return later(wait)
		}
	}
	sc, held, give, err := s.stage(ctx, t)
	if err != nil {
		return err
	}
	defer give()
	s.saver.enter()
	defer s.saver.leave()
	if err := s.play(ctx, sc, held); err != nil {
		if e := s.settled(ctx, sc, nil); e != nil && !errors.Is(e, errElsewhere) {
			return errors.Join(e, err)
		}
		return err
	}
	var ending *store.Task
	if len(sc.ended) > 0 && t.Ended != nil {
		ending = &t
	}
	switch err := s.settled(ctx, sc, ending); {
	case errors.Is(err, errElsewhere):
		return later(again) // whoever has it ends it; then it is found to have ended
	case err != nil:
		return err
	case ending != nil:
		t.Ended()
	}
	return nil
}

// stage makes ready what the runs on a task's event need, and finds those that are held. give is to be called when the
// event is no longer needed.
func (s *Service) stage(ctx context.Context, t store.Task) (sc *scene, held []store.HeldRun, give func(), err error) {
	p, err := s.plans.find(ctx, t.EndpointNum)
	if err != nil {
		return nil, nil, nil, err
	}
	secrets, err := s.vaults.find(ctx, p.endpoint.WorkspaceID)
	if err != nil {
		return nil, nil, nil, err
	}
	event, give := t.Event, func() {}
	if event != nil {
		if give, err = s.hold(p.endpoint, event.Size); err != nil {
			return nil, nil, nil, err
		}
	}
	if t.Claim > 1 || event == nil || event.Payload == nil {
		err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
			if t.Claim > 1 {
				if held, err = v.FirstActionRuns(t.EventSeq); err != nil {
					return err
				}
			}
			event, err = loadEvent(v, p.endpoint, t)
			return err
		})
		if err != nil {
			give()
			return nil, nil, nil, err
		}
	}
	sc = p.scene(event)
	sc.secrets = secrets
	return sc, held, give, nil
}

// play goes on with the runs that are held and has the other actions run.
func (s *Service) play(ctx context.Context, sc *scene, held []store.HeldRun) error {
	begun := make(map[int64]bool)
	for i := range held {
		begun[held[i].ActionNum] = true
		if held[i].Status.Final() {
			continue
		}
		// It began before whatever has not begun.
		if err := s.goOn(ctx, sc, held[i], true); err != nil {
			return err
		}
	}
	if sc.rights.MayUseActions() != nil {
		return nil
	}
	for _, a := range sc.actions {
		if begun[a.Num] || a.CreatedAt.After(sc.event.ReceivedAt) { // it runs on what is captured from then on, not on what waits
			continue
		}
		doc := sc.base.Fresh()
		trigger := a.trigger.Evaluate(doc)
		if !trigger.Matched {
			continue
		}
		if err := s.run(ctx, s.start(sc, a, doc, trigger)); err != nil {
			return err
		}
	}
	return nil
}

// loadEvent reads an event with its payload, however large. It answers not_found.
func loadEvent(v *store.View, e hookglass.Endpoint, t store.Task) (*hookglass.Event, error) {
	if t.Event != nil {
		return v.Event(string(e.ID), string(t.Event.ID))
	}
	found, err := v.EventsBySeq([]int64{t.EventSeq}, 1<<40)
	if err != nil {
		return nil, err
	}
	if found[t.EventSeq] == nil || found[t.EventSeq].Payload == nil {
		return nil, hookglass.NotFound("request")
	}
	return found[t.EventSeq], nil
}

// run goes on with a run until it has ended or waits. It answers rate_limited then.
func (s *Service) run(ctx context.Context, r *run) error {
	for i := range r.steps {
		if len(r.steps[i].secrets) > 0 {
			var err error
			s.saver.away(func() { err = s.db.View(ctx, hookglass.System, r.loadSecrets) })
			if err != nil {
				return err
			}
			break
		}
	}
	r.redactTrigger()
	wait, err := r.proceed(ctx)
	switch {
	case errors.Is(err, errElsewhere):
		return later(again) // whoever has it ends it; then it is found to have ended
	case err != nil:
		return err
	case wait > 0:
		return later(wait)
	}
	return nil
}

// redactTrigger blots secrets out of the values with which the conditions were compared.
func (r *run) redactTrigger() {
	for i := range r.held.Trigger.Conditions {
		c := &r.held.Trigger.Conditions[i]
		c.Actual, _ = r.redactor().Text(c.Actual)
	}
}

func later(wait time.Duration) error {
	return &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "The actions of an event wait to go on.", RetryAfter: wait}
}

// goOn takes a run that did not end and goes on with it. A run that cannot be read ends as failed. force takes it from
// whoever has it.
func (s *Service) goOn(ctx context.Context, sc *scene, h store.HeldRun, force bool) error {
	var ours bool
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		ours, err = tx.TakeActionRun(&h, holdSlack, force)
		return err
	})
	if err != nil || !ours {
		return err
	}
	r, err := s.resume(sc, h)
	if err != nil {
		s.Log.Error("a run of an action can not go on", "run", h.ID, "error", err)
		return s.abandon(ctx, h, hookglass.FailureInternal, "The run can not go on: what it had to remember can not be read.")
	}
	return s.run(ctx, r)
}

// abandon ends a run that nobody can go on with, unless somebody else has. The step that was at work failed, and what
// is behind it does not run. It counts in the totals unless nothing of it ran.
func (s *Service) abandon(ctx context.Context, h store.HeldRun, code, message string) error {
	h.Status, h.FinishedAt = hookglass.ActionRunFailed, notBefore(h.CreatedAt, s.db.Now())
	if h.StartedAt.IsZero() {
		h.StartedAt = h.FinishedAt
	}
	for i := range h.Steps {
		if st := &h.Steps[i]; st.Status == hookglass.StepRunning {
			st.Status, st.Failure, st.Duration = hookglass.StepFailed, &hookglass.Failure{Code: code, Message: message}, max(0, h.FinishedAt.Sub(st.StartedAt))
		}
	}
	return s.db.Update(context.WithoutCancel(ctx), hookglass.System, func(tx *store.Tx) error {
		ours, err := tx.SaveActionRun(&h, 0)
		if err != nil || !ours || len(h.Steps) == 0 {
			return err
		}
		return tx.CountActionRuns(&h.ActionRun)
	})
}

// scene makes ready what the runs on an event need.
func (p *plan) scene(event *hookglass.Event) *scene {
	copied := *event
	sc := &scene{endpoint: p.endpoint, rights: p.rights, actions: p.actions, event: &copied, had: event.Tags}
	var mail *Mail
	if event.Type == hookglass.EventEmail {
		m := email.Parse(event.Body)
		mail = &Mail{Text: m.Text, HTML: m.HTML}
	}
	sc.base = NewContext(sc.event, &sc.endpoint, mail)
	return sc
}
