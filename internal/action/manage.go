package action

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"hookglass"
	"hookglass/internal/store"
)

// Create stores an action. It answers not_found, plan_required, subscription_required and validation_failed.
func (s *Service) Create(ctx context.Context, who hookglass.Principal, ref string, d Draft) (a hookglass.Action, err error) {
	if err := who.MayManage(); err != nil {
		return a, err
	}
	a = hookglass.Action{ID: hookglass.NewSortableID(hookglass.PrefixAction, s.db.Now()), Enabled: true, FailurePolicy: hookglass.FailureContinue}
	def := s.define(d, &a)
	if d.Name == nil {
		def.fault("name", "is required")
	}
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, rights, err := permitted(&tx.View, ref)
		if err != nil {
			return err
		}
		if err := def.fails(); err != nil {
			return err
		}
		present, err := tx.LockActions(e.Num)
		if err != nil {
			return err
		}
		if most := rights.ActionsPerEndpoint(); most >= 0 && len(present) >= most {
			return hookglass.Errorf(hookglass.CodePlanRequired, "This plan allows %d actions for an endpoint.", most)
		}
		if err := mayHave(rights, a.Steps, nil); err != nil {
			return err
		}
		refs, err := s.resolve(tx, e, def)
		if err != nil {
			return err
		}
		a.EndpointNum, a.EndpointID = e.Num, e.ID
		a.Position = len(present) + 1
		if d.Position != nil {
			a.Position = int(min(*d.Position, int64(len(present)+1)))
		}
		for _, other := range present[a.Position-1:] {
			if err := tx.PlaceAction(other.Num, other.Position+1); err != nil {
				return err
			}
		}
		return tx.CreateAction(&a, refs)
	})
	return a, err
}

// Update changes what the draft names. It answers not_found, plan_required, subscription_required and
// validation_failed.
func (s *Service) Update(ctx context.Context, who hookglass.Principal, ref, id string, d Draft) (a hookglass.Action, err error) {
	if err := who.MayManage(); err != nil {
		return a, err
	}
	var changed hookglass.Action
	def := s.define(d, &changed) // outside the transaction: it takes as long as the draft is large
	err = s.db.Update(ctx, who, func(tx *store.Tx) error {
		e, present, i, err := lockAction(tx, ref, id)
		if err != nil {
			return err
		}
		a = present[i]
		before := a.Steps
		var refs []store.ActionRef // nil: as they are
		_, rights, err := permitted(&tx.View, ref)
		if disable := (Draft{Enabled: d.Enabled}); err != nil && (d.Enabled == nil || *d.Enabled || d != disable) {
			return err // an account whose plan has lapsed may still switch its actions off
		}
		if err := def.fails(); err != nil {
			return err
		}
		d.change(&a, changed)
		if d.Steps != nil {
			if err := mayHave(rights, a.Steps, before); err != nil {
				return err
			}
			if refs, err = s.resolve(tx, e, def); err != nil {
				return err
			}
		}
		if d.Position != nil {
			a.Position = int(min(*d.Position, int64(len(present))))
			if err := move(tx, present, i, a.Position); err != nil {
				return err
			}
		}
		return tx.SaveAction(&a, refs)
	})
	return a, err
}

// lockAction locks the actions of an endpoint. present[i] is the one that id names.
func lockAction(tx *store.Tx, ref, id string) (e hookglass.Endpoint, present []hookglass.Action, i int, err error) {
	if e, err = tx.Endpoint(ref); err != nil {
		return e, nil, 0, err
	}
	if present, err = tx.LockActions(e.Num); err != nil {
		return e, nil, 0, err
	}
	i = slices.IndexFunc(present, func(a hookglass.Action) bool { return a.ID == id })
	if i < 0 {
		return e, nil, 0, hookglass.NotFound("action")
	}
	return e, present, i, nil
}

// move renumbers the actions between the old and the new position of a moved one. The caller stores that one.
func move(tx *store.Tx, present []hookglass.Action, from, to int) error {
	order := slices.Delete(slices.Clone(present), from, from+1)
	order = slices.Insert(order, to-1, present[from])
	for i, a := range order {
		if a.Position != i+1 && a.ID != present[from].ID {
			if err := tx.PlaceAction(a.Num, i+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delete deletes an action; its runs stay, and a rerun that has not begun ends. It answers not_found.
func (s *Service) Delete(ctx context.Context, who hookglass.Principal, ref, id string) error {
	if err := who.MayManage(); err != nil {
		return err
	}
	return s.db.Update(ctx, who, func(tx *store.Tx) error {
		_, present, i, err := lockAction(tx, ref, id)
		if err != nil {
			return err
		}
		for _, other := range present[i+1:] {
			if err := tx.PlaceAction(other.Num, other.Position-1); err != nil {
				return err
			}
		}
		if err := endQueued(tx, present[i]); err != nil {
			return err
		}
		return tx.DeleteAction(present[i].Num)
	})
}

// permitted answers plan_required where the endpoint's account may have no actions.
func permitted(v *store.View, ref string) (e hookglass.Endpoint, rights hookglass.Entitlements, err error) {
	if e, err = v.Endpoint(ref); err != nil {
		return e, rights, err
	}
	if rights, err = v.Entitlements(e); err != nil {
		return e, rights, err
	}
	return e, rights, rights.MayUseActions()
}

// mayHave answers plan_required or subscription_required for steps that the account may not have. An unchanged step is
// left alone: after a plan has lapsed it stays stored, but cannot be reconfigured (spec, Actions rule 3).
func mayHave(rights hookglass.Entitlements, steps, before []hookglass.Step) error {
	if most := rights.StepsPerAction(); len(steps) > most {
		return hookglass.Errorf(hookglass.CodePlanRequired, "This plan allows %d steps in an action.", most)
	}
	for _, st := range steps {
		if slices.ContainsFunc(before, func(old hookglass.Step) bool {
			return old.ReferenceKey == st.ReferenceKey && old.Type == st.Type && bytes.Equal(old.Config, st.Config) &&
				(!composes(st) || slices.EqualFunc(old.Conditions, st.Conditions, sameCondition))
		}) {
			continue
		}
		if err := mayRun(rights, st); err != nil {
			return err
		}
	}
	return nil
}

// composes reports whether the conditions of a step read an earlier step. Its configuration is not looked at: the only
// types whose configuration can read one require the Business plan anyway.
func composes(st hookglass.Step) bool {
	return slices.ContainsFunc(st.Conditions, func(c hookglass.StepCondition) bool { return strings.HasPrefix(c.Source, "steps.") })
}

func sameCondition(a, b hookglass.StepCondition) bool {
	return a.Source == b.Source && a.Path == b.Path && a.Operator == b.Operator && bytes.Equal(a.Value, b.Value)
}

// mayRun answers plan_required or subscription_required where a step may not run.
func mayRun(rights hookglass.Entitlements, st hookglass.Step) error {
	if composes(st) {
		if err := rights.MayCompose(); err != nil {
			return err
		}
	}
	switch st.Type {
	case hookglass.StepForward:
		return rights.MayForward()
	case hookglass.StepTransform:
		return rights.MayTransform()
	case hookglass.StepRequest:
		return rights.MayRequestHTTP()
	}
	return rights.MayUseActions()
}
