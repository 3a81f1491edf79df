package action

import (
	"context"
	"slices"

	"hookglass"
	"hookglass/internal/store"
)

// Try answers what Create, or Update of the named action, would find wrong with a draft. With an event, it also
// previews the drafted action on it. Nothing is sent, and nothing is stored. It answers not_found, plan_required,
// subscription_required, validation_failed and, when there is no room for a large event, unavailable.
func (s *Service) Try(ctx context.Context, who hookglass.Principal, ref, actionID, eventID string, d Draft) (p PreviewResult, err error) {
	if err := who.MayManage(); err != nil {
		return p, err
	}
	var a hookglass.Action
	var pl plan
	ctx, done := context.WithCancel(ctx)
	defer done()
	event, err := s.Hold(ctx, who, rehearsalTimes, func(v *store.View) (event *hookglass.Event, err error) {
		a = hookglass.Action{ID: hookglass.NewSortableID(hookglass.PrefixAction, s.db.Now()), Enabled: true, FailurePolicy: hookglass.FailureContinue}
		if pl.endpoint, pl.rights, err = permitted(v, ref); err != nil {
			return nil, err
		}
		if actionID != "" {
			if a, err = v.Action(ref, actionID); err != nil {
				return nil, err
			}
		}
		if err := s.apply(v, pl, d, &a); err != nil {
			return nil, err
		}
		if eventID != "" {
			event, err = v.Event(ref, eventID)
		}
		return event, err
	})
	if err != nil || event == nil {
		return p, err
	}
	program, err := compile(a)
	if err != nil {
		return p, err
	}
	return s.rehearse(pl.scene(event), program), nil
}

// apply applies a draft to an action, and answers what Create or Update would find wrong with it.
func (s *Service) apply(v *store.View, pl plan, d Draft, a *hookglass.Action) error {
	before := a.Steps
	def := s.define(d, a)
	if a.Name == "" && len(def.faults) == 0 {
		def.fault("name", "is required")
	}
	if err := missing(v, pl.endpoint, &def); err != nil {
		return err
	}
	if err := def.fails(); err != nil || d.Steps == nil { // stored steps stay, whatever the plan allows by now
		return err
	}
	return mayHave(pl.rights, a.Steps, before)
}

// missing faults secrets and channels that the workspace does not have. Missing tags are created when the action is
// stored.
func missing(v *store.View, e hookglass.Endpoint, def *definition) error {
	found, err := v.NamedActionSecrets(e.WorkspaceID, def.secretNames())
	if err != nil {
		return err
	}
	for _, m := range def.secrets {
		if !slices.ContainsFunc(found, func(s hookglass.ActionSecret) bool { return s.Name == m.name }) {
			def.noSecret(m)
		}
	}
	for _, m := range def.channels {
		_, err := v.ChannelIn(e.WorkspaceID, m.name)
		if hookglass.Is(err, hookglass.CodeNotFound) {
			def.noChannel(m)
		} else if err != nil {
			return err
		}
	}
	return nil
}
