package action

import (
	"context"
	"errors"
	"time"

	"hookglass"
	"hookglass/internal/fair"
	"hookglass/internal/store"
)

const (
	queueSlack = 30 * time.Second // for the job of a rerun to begin
	lostSlack  = 3 * time.Second  // for a job or a task to arrive before the sweep steps in

	// rerunsAtOnce is the number of workers in internal/job for reruns, each of which waits for its targets. A tenant
	// gets half of them at most and an endpoint a quarter, so that targets that never answer leave some to others.
	rerunsAtOnce   = 64
	rerunsOfTenant = rerunsAtOnce / 2
	// placeAgain is how soon a rerun is tried again that found no place.
	placeAgain = 2 * time.Second
)

// place takes a place for a rerun at an endpoint. It answers rate_limited where there is none.
func (s *Service) place(e hookglass.Endpoint) (give func(), err error) {
	give, ok := s.reruns.Take(fair.Tenant(e.AccountID, e.Num), e.Num)
	if !ok {
		return nil, later(placeAgain)
	}
	return give, nil
}

// Rerun queues another run of an action on an event. Its parent is the run that is named or, without one, the first run
// on the event, if there is one. It answers not_found, plan_required and validation_failed.
func (s *Service) Rerun(ctx context.Context, who hookglass.Principal, ref, actionID, eventID, parentID string) (r hookglass.ActionRun, err error) {
	if err := who.MayManage(); err != nil {
		return r, err
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		eventID, parentID := eventID, parentID              // the update may run twice
		_, present, i, err := lockAction(tx, ref, actionID) // so that a concurrent deletion of the action sees this rerun
		if err != nil {
			return err
		}
		a := present[i]
		if _, _, err := permitted(&tx.View, ref); err != nil {
			return err
		}
		if parentID != "" {
			if eventID, err = eventOfParent(tx, ref, a, parentID, eventID); err != nil {
				return err
			}
		}
		if eventID == "" {
			return hookglass.Invalid("run.event_id", "is required")
		}
		event, err := tx.ListedEvent(ref, eventID)
		if err != nil {
			return err
		}
		if parentID == "" {
			first, err := tx.FirstActionRun(a.Num, event.Seq)
			if err == nil {
				parentID = first.ID
			} else if !hookglass.Is(err, hookglass.CodeNotFound) {
				return err
			}
		}
		h := store.HeldRun{ActionRun: hookglass.ActionRun{
			ID: hookglass.NewSortableID(hookglass.PrefixActionRun, tx.Now), EndpointNum: a.EndpointNum, EndpointID: a.EndpointID, ActionNum: a.Num, ActionID: a.ID,
			EventSeq: event.Seq, EventID: event.ID, ParentID: parentID, Rerun: true, Status: hookglass.ActionRunQueued,
		}}
		stored, err := tx.InsertActionRun(&h, queueSlack)
		if err != nil {
			return err
		}
		if !stored {
			return hookglass.NotFound("request") // it was deleted just now
		}
		tx.Enqueue(hookglass.ActionRunJob{RunID: h.ID})
		r = h.ActionRun
		return nil
	})
	return r, err
}

// eventOfParent returns the event of the parent run. An event that the caller names must be the same.
func eventOfParent(tx *store.Tx, ref string, a hookglass.Action, parentID, eventID string) (string, error) {
	parent, err := tx.ActionRun(ref, parentID)
	if err != nil {
		return "", err
	}
	if parent.ActionNum != a.Num {
		return "", hookglass.Invalid("run.parent_run_id", "is a run of another action")
	}
	if eventID == "" {
		return string(parent.EventID), nil
	}
	if named, err := hookglass.ParseEventID(eventID); err == nil && named != parent.EventID {
		return "", hookglass.Invalid("run.parent_run_id", "is a run on another event")
	}
	return eventID, nil
}

// queuedRun is a rerun with what it takes.
type queuedRun struct {
	store.HeldRun
	plan
	event   *hookglass.Event
	current *hookglass.Action // nil: it was deleted, or the run goes on with the steps that it began with
}

// open reads a rerun, and takes a place and room for its event until release is called. Of a rerun that has ended it
// reads no more than that. It answers not_found when the endpoint or the event was deleted, and rate_limited as
// ExecuteRun does.
func (s *Service) open(ctx context.Context, runID string) (q queuedRun, release func(), err error) {
	leave, give := func() {}, func() {}
	err = s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		if q.HeldRun, err = v.HeldActionRun(runID); err != nil || q.Status.Final() {
			return err
		}
		if q.endpoint, q.rights, err = rightsAt(v, q.EndpointNum); err != nil {
			return err
		}
		place, err := s.place(q.endpoint)
		if err != nil {
			return err
		}
		leave = place
		if q.Checkpoint == nil {
			a, err := v.ActionByNum(q.ActionNum)
			if err == nil {
				q.current = &a
			} else if !hookglass.Is(err, hookglass.CodeNotFound) {
				return err
			}
		}
		light, err := v.EventsBySeq([]int64{q.EventSeq}, 0)
		if err != nil {
			return err
		}
		if e := light[q.EventSeq]; e != nil {
			room, err := s.hold(q.endpoint, e.Size)
			if err != nil {
				return err
			}
			give = room
		}
		q.event, err = v.Event(string(q.endpoint.ID), string(q.EventID))
		return err
	})
	return q, func() { give(); leave() }, err
}

// ExecuteRun runs a rerun or resumes one. It does nothing when the rerun has ended or another worker has it. It answers
// rate_limited when a step waits for its next attempt, when the tenant has too many other reruns under way, and when
// there is no room for a large event. Calling it again is safe.
func (s *Service) ExecuteRun(ctx context.Context, runID string) error {
	q, release, err := s.open(ctx, runID)
	defer release()
	switch {
	case hookglass.Is(err, hookglass.CodeNotFound):
		return nil // the endpoint or the event was deleted, and the run with it
	case err != nil || q.Status.Final():
		return err
	}
	h, sc := q.HeldRun, q.scene(q.event)
	if sc.secrets, err = s.vaults.find(ctx, q.endpoint.WorkspaceID); err != nil {
		return err
	}
	s.saver.enter()
	defer s.saver.leave()
	if h.Checkpoint != nil {
		if err := s.goOn(ctx, sc, h, false); err != nil {
			return err
		}
		return s.rerunEnded(ctx, sc)
	}
	var ours bool
	err = s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		ours, err = tx.BeginQueuedRun(&h, queueSlack)
		return err
	})
	if err != nil || !ours {
		return err
	}
	if q.current == nil { // deleted by an older version, which left what was queued
		return s.abandon(ctx, h, string(hookglass.CodeNotFound), deletedFirst)
	}
	program, err := compile(*q.current)
	if err != nil {
		s.Log.Error("an action cannot be run", "error", err)
		return s.abandon(ctx, h, hookglass.FailureInternal, "The action cannot be read.")
	}
	// A rerun records the trigger and runs the steps whatever it says (spec: decisions, section 13).
	doc := sc.base.Fresh()
	r := s.start(sc, program, doc, program.trigger.Evaluate(doc))
	trigger, started := r.held.Trigger, r.held.StartedAt
	r.held, r.stored = h, true
	r.held.Trigger, r.held.StartedAt, r.held.Status = trigger, notBefore(h.CreatedAt, started), hookglass.ActionRunRunning
	if err := s.run(ctx, r); err != nil {
		return err
	}
	return s.rerunEnded(ctx, sc)
}

// deletedFirst says why a rerun did nothing.
const deletedFirst = "The action was deleted before the rerun began."

// endQueued ends the reruns of a deleted action that nobody has begun. Their traces say so in the first step. They
// count in no totals, since nothing ran.
func endQueued(tx *store.Tx, a hookglass.Action) error {
	queued, err := tx.QueuedActionRuns(a.Num)
	if err != nil {
		return err
	}
	for _, h := range queued {
		h.Status, h.StartedAt = hookglass.ActionRunFailed, notBefore(h.CreatedAt, tx.Now)
		h.FinishedAt = h.StartedAt
		for i, st := range a.Steps {
			result := hookglass.StepResult{ReferenceKey: st.ReferenceKey, Type: st.Type, Name: st.Name, Status: hookglass.StepStopped}
			if i == 0 {
				result.Status, result.Failure = hookglass.StepFailed, &hookglass.Failure{Code: string(hookglass.CodeNotFound), Message: deletedFirst}
			}
			h.Steps = append(h.Steps, result)
		}
		if _, err := tx.SaveActionRun(&h, 0); err != nil {
			return err
		}
	}
	return nil
}

// notBefore returns t, or earlier when t is before it: another node's clock may be ahead.
func notBefore(earlier, t time.Time) time.Time {
	if t.Before(earlier) {
		return earlier
	}
	return t
}

// rerunEnded stores how a rerun ended, unless somebody else has it by now.
func (s *Service) rerunEnded(ctx context.Context, sc *scene) error {
	err := s.settled(ctx, sc, nil)
	if errors.Is(err, errElsewhere) {
		return later(again)
	}
	return err
}

// sweep queues reruns that nobody holds again, ends first runs whose task is gone, and deletes runs that outlived their
// event. The last happens on PostgreSQL only: SQLite, with its one writer, leaves none.
func (s *Service) sweep(ctx context.Context) error {
	return errors.Join(s.sweepOrphans(ctx), s.sweepLost(ctx))
}

func (s *Service) sweepOrphans(ctx context.Context) error {
	if !s.db.Postgres() {
		return nil
	}
	return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		tx.MayBeLost()
		s.orphans, err = tx.DeleteOrphanRuns(s.orphans, orphanRuns)
		return err
	})
}

func (s *Service) sweepLost(ctx context.Context) error {
	lost, err := store.Read(ctx, s.db, hookglass.System, func(v *store.View) ([]store.HeldRun, error) {
		return v.LostActionRuns(lostSlack, sweepRuns)
	})
	if err != nil {
		return err
	}
	for _, h := range lost {
		if h.Rerun {
			err = s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.RequeueActionRun(h.Num, h.ID, lostSlack) })
		} else {
			err = s.abandon(ctx, h, hookglass.FailureOutcomeUnknown, "The process ended while the step was at work, several times.")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
