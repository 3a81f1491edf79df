package action

import (
	"context"
	"errors"
	"slices"
	"time"

	"hookglass"
	"hookglass/internal/email"
	"hookglass/internal/store"
)

// Work runs the actions of an event's endpoint, one after another by position. When it is repeated, runs that have
// ended are left alone and one that has not is resumed. It answers rate_limited when a step waits to forward again,
// while a mail's verdict is awaited and when there is no room for a large event, and not_found when the event is gone.
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
		return later(again) // by then its holder has ended it
	case err != nil:
		return err
	case ending != nil:
		t.Ended()
	}
	return nil
}

// stage prepares what the runs on a task's event need, and finds runs that have begun. give is to be called when the
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

// play resumes the runs that have begun, and then runs the other actions.
func (s *Service) play(ctx context.Context, sc *scene, held []store.HeldRun) error {
	begun := make(map[int64]bool)
	for i := range held {
		begun[held[i].ActionNum] = true
		if held[i].Status.Final() {
			continue
		}
		// Resume it first: it began before any that has not begun.
		if err := s.goOn(ctx, sc, held[i], true); err != nil {
			return err
		}
	}
	for _, a := range sc.actions {
		if begun[a.Num] || a.CreatedAt.After(sc.event.ReceivedAt) { // an action runs only on events captured after its creation
			continue
		}
		// Those before may have taken minutes: an action runs as it is when its run starts.
		p, err := s.plans.find(ctx, sc.endpoint.Num)
		if err != nil {
			return err
		}
		sc.rights = p.rights
		i := slices.IndexFunc(p.actions, func(now *program) bool { return now.Num == a.Num })
		if i < 0 || sc.rights.MayUseActions() != nil {
			continue
		}
		a = p.actions[i]
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

// run executes a run until it ends or waits; then it answers rate_limited.
func (s *Service) run(ctx context.Context, r *run) error {
	if names := secretsOf(r.steps); len(names) > 0 {
		var err error
		s.saver.away(func() {
			err = s.db.View(ctx, hookglass.System, func(v *store.View) error { return r.loadSecrets(v, names) })
		})
		if err != nil {
			return err
		}
	}
	r.redactTrigger()
	wait, err := r.proceed(ctx)
	switch {
	case errors.Is(err, errElsewhere):
		return later(again) // by then its holder has ended it
	case err != nil:
		return err
	case wait > 0:
		return later(wait)
	}
	return nil
}

// redactTrigger redacts secrets in the values that the conditions compared.
func (r *run) redactTrigger() {
	for i := range r.held.Trigger.Conditions {
		c := &r.held.Trigger.Conditions[i]
		c.Actual = r.redactor().Text(c.Actual)
	}
}

func later(wait time.Duration) error {
	return &hookglass.Error{Code: hookglass.CodeRateLimited, Message: "The actions of an event wait to go on.", RetryAfter: wait}
}

// goOn takes over a run that has not ended and resumes it. A run that cannot be read ends as failed, and one whose
// action is gone at its next step. force takes it from another worker.
func (s *Service) goOn(ctx context.Context, sc *scene, h store.HeldRun, force bool) error {
	var ours bool
	var gone *hookglass.Failure
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		if ours, err = tx.TakeActionRun(&h, holdSlack, force); err != nil || !ours {
			return err
		}
		gone, err = goneAction(&tx.View, h)
		return err
	})
	if err != nil || !ours {
		return err
	}
	r, err := s.resume(sc, h)
	if err != nil {
		s.Log.Error("a run of an action cannot go on", "run", h.ID, "error", err)
		return s.abandon(ctx, h, hookglass.FailureInternal, "The run cannot go on: what it had to remember cannot be read.")
	}
	r.gone = gone
	return s.run(ctx, r)
}

// goneAction says why a run that waited may not go on, nil if it may. A rerun is asked for by people, who may do so
// while the action is disabled.
func goneAction(v *store.View, h store.HeldRun) (*hookglass.Failure, error) {
	a, err := v.ActionByNum(h.ActionNum)
	switch {
	case hookglass.Is(err, hookglass.CodeNotFound):
		return &hookglass.Failure{Code: string(hookglass.CodeNotFound), Message: "The action was deleted while its run waited."}, nil
	case err == nil && !a.Enabled && !h.Rerun:
		return &hookglass.Failure{Code: hookglass.FailureDisabled, Message: "The action was disabled while its run waited."}, nil
	}
	return nil, err
}

// abandon ends a run that nobody can resume, unless another worker has ended it. The running step fails, and later ones
// do not run. The run counts in the totals unless none of its steps had begun.
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

// scene prepares what the runs on an event need.
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
