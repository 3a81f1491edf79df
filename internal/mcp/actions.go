package mcp

import (
	"cmp"
	"context"
	"fmt"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/action"
	"hookglass/internal/httpd"
	"hookglass/internal/store"
)

type (
	newAction struct {
		InEndpoint
		Name          *string                `json:"name" required:"true" doc:"A label for people."`
		Enabled       *bool                  `json:"enabled" doc:"Default true."`
		FailurePolicy *string                `json:"failure_policy" enum:"continue,stop" doc:"What happens after a failed step, unless the step says otherwise; default continue."`
		Position      *int64                 `json:"position" doc:"From 1; default: the last."`
		Conditions    *[]api.ActionCondition `json:"conditions" doc:"All must match for it to run; up to 10. Example: [{\"field\":\"event_type\",\"operator\":\"equals\",\"value\":\"push\"}]."`
		Steps         *[]newStep             `json:"steps" required:"true" doc:"What it does, in order."`
	}

	newStep struct {
		ReferenceKey  *string                   `json:"reference_key" doc:"By which later steps name it; derived from the name when left out."`
		StepType      string                    `json:"step_type" enum:"forward,notify,tag,ignore,transform,http_request" doc:"What the step does."`
		Type          string                    `json:"type" enum:"forward,notify,tag,ignore,transform,http_request" doc:"The older name of step_type."`
		Name          *string                   `json:"name" doc:"A label for people; default: the type."`
		ConfigVersion *int64                    `json:"config_version" doc:"Default: the current version, 1."`
		FailurePolicy *string                   `json:"failure_policy" enum:"continue,stop" doc:"Default: the action's, and continue for notify."`
		Config        api.JSONObject            `json:"config" doc:"By type: forward {url, timeout_seconds, retry_count, append_path, append_query}; notify {channel, message}, channel a name or chan_…; tag {tag}; ignore {reason}, noise, mistake, resolved or test; transform {source, operations}, source being request, provider, email or steps.<reference_key>, and operations, done in order, of {op: select, path}, {op: set, path, and one of value, from and template}, {op: remove, path}, {op: rename, from, to}, {op: pick, fields: {name: path}} and {op: wrap, key}; http_request {method, url, headers, body, timeout_seconds}, url, headers and body with templates as {{ request.body.id }} or {{ steps.<reference_key>.output }}. Secrets are named as {{ secrets.NAME }}, never written. Unknown keys are refused."`
		Conditions    []api.ActionStepCondition `json:"conditions" doc:"All must match for the step to run; otherwise it is skipped."`
	}

	actionPath struct {
		InEndpoint
		ActionID string `json:"action_id" required:"true" doc:"The action's id, act_…."`
	}

	actionRunList struct {
		InEndpoint
		ActionID  string `json:"action_id" doc:"Only the runs of this action, act_…."`
		RunID     string `json:"run_id" doc:"Only this run, arun_…."`
		RequestID string `json:"request_id" doc:"Only the runs on this request: its id, \"latest\", \"latest <event type>\", or the sender's own id."`
		Paging
	}

	// actionView and its parts carry the older name of step_type as well (spec, "Action step").
	actionView struct {
		api.Action
		Steps []stepView `json:"steps"`
	}
	stepView struct {
		api.ActionStep
		Type string `json:"type" enum:"forward,notify,tag,ignore,transform,http_request"`
	}
	runView struct {
		api.ActionRun
		Steps []runStepView `json:"steps"`
	}
	runStepView struct {
		api.ActionRunStep
		Type string `json:"type" enum:"forward,notify,tag,ignore,transform,http_request"`
	}
)

func actionTools() []tool {
	return []tool{
		define(tool{
			name: "list_actions", title: "List actions", scope: hookglass.ScopeRead, hints: reads,
			text: "Use this to see what happens by itself to requests that arrive at an endpoint: its actions by position, with conditions and steps. Secrets show as {{ secrets.NAME }}. Cheap.",
		}, (*service).listActions),
		define(tool{
			name: "create_action", title: "Create an action", scope: hookglass.ScopeWrite, hints: hints{openWorld: true},
			text: "Use this to have something done to every matching request from now on: forward it, notify a channel, tag or ignore it, transform it, call an address. Its steps may send requests to other services. Depends on the account's plan. Secrets are referred to by name as {{ secrets.NAME }}; their values cannot be set here.",
		}, (*service).createAction),
		define(tool{
			name: "delete_action", title: "Delete an action", scope: hookglass.ScopeWrite, hints: removes,
			text: "Use this only when you were asked to remove an action. The records of its runs stay.",
		}, (*service).deleteAction),
		define(tool{
			name: "get_action_runs", title: "List runs of actions", scope: hookglass.ScopeRead, hints: reads, captured: true,
			text: "Use this to see what actions did: for each run its status, whether the conditions matched, and every step with its outcome, time and error, redacted. Of one action, of one request, or of all the endpoint's; newest first.",
		}, (*service).actionRuns),
	}
}

func (s *service) listActions(ctx context.Context, in *inEndpointPaged) (out api.List[actionView], err error) {
	p, err := ofActions.Page(in.Limit, in.Cursor)
	if err != nil {
		return out, err
	}
	err = s.view(ctx, func(v *store.View) error {
		found, err := v.Actions(in.EndpointID, p.Behind, p.Most())
		out = httpd.Answer(p, found, store.NextAction(found), viewAction)
		return err
	})
	return out, err
}

func viewAction(a hookglass.Action) actionView {
	out := actionView{Action: api.FromAction(a), Steps: make([]stepView, len(a.Steps))}
	for i, st := range out.Action.Steps {
		out.Steps[i] = stepView{st, st.StepType}
	}
	return out
}

func viewRun(r hookglass.ActionRun) runView {
	out := runView{ActionRun: api.FromActionRun(r), Steps: make([]runStepView, len(r.Steps))}
	for i, st := range out.ActionRun.Steps {
		out.Steps[i] = runStepView{st, st.StepType}
	}
	return out
}

func (s *service) createAction(ctx context.Context, in *newAction) (out api.One[actionView], err error) {
	d := action.Draft{Name: in.Name, Enabled: in.Enabled, FailurePolicy: in.FailurePolicy, Position: in.Position}
	if in.Conditions != nil {
		made := make([]action.ConditionDraft, len(*in.Conditions))
		for i, c := range *in.Conditions {
			made[i] = action.ConditionDraft{Field: c.Field, Operator: c.Operator, Value: c.Value}
		}
		d.Conditions = &made
	}
	steps := make([]action.StepDraft, len(*in.Steps))
	var faults []hookglass.FieldError
	for i, st := range *in.Steps {
		if st.StepType != "" && st.Type != "" && st.StepType != st.Type {
			field := fmt.Sprintf("steps.%d.type", i)
			faults = append(faults, hookglass.FieldError{Field: field, Message: "differs from step_type; give it once"})
		}
		steps[i] = st.draft()
	}
	if len(faults) > 0 {
		return out, hookglass.InvalidFields(faults)
	}
	d.Steps = &steps
	a, err := s.Actions.Create(ctx, asker(ctx), in.EndpointID, d)
	out.Data = viewAction(a)
	return out, err
}

func (st newStep) draft() action.StepDraft {
	d := action.StepDraft{
		ReferenceKey: st.ReferenceKey, Type: cmp.Or(st.StepType, st.Type), Name: st.Name, ConfigVersion: st.ConfigVersion, FailurePolicy: st.FailurePolicy, Config: st.Config,
	}
	for _, c := range st.Conditions {
		d.Conditions = append(d.Conditions, action.StepConditionDraft{Source: c.Source, Path: c.Path, Operator: c.Operator, Value: c.Value})
	}
	return d
}

func (s *service) deleteAction(ctx context.Context, in *actionPath) (out api.One[api.Deleted], err error) {
	err = s.Actions.Delete(ctx, asker(ctx), in.EndpointID, in.ActionID)
	out.Data = api.Deleted{ID: in.ActionID, Deleted: true}
	return out, err
}

func (s *service) actionRuns(ctx context.Context, in *actionRunList) (out api.List[runView], err error) {
	p, err := ofActionRuns.PageOfIDs(in.Limit, in.Cursor)
	if err != nil {
		return out, err
	}
	err = s.view(ctx, func(v *store.View) error {
		found, err := in.read(v, p)
		out = httpd.AnswerIDs(p, found, func(r hookglass.ActionRun) string { return r.ID }, viewRun)
		return err
	})
	return out, err
}

// maxEventRuns bounds the runs on one request that are searched: an action runs once, and again for each rerun.
const maxEventRuns = 1_000

// read returns the runs that match all of the arguments.
func (in *actionRunList) read(v *store.View, p httpd.Page) ([]hookglass.ActionRun, error) {
	switch {
	case in.RunID != "":
		return in.one(v)
	case in.RequestID != "":
		return in.ofRequest(v, p)
	case in.ActionID != "":
		return v.ActionRuns(in.EndpointID, in.ActionID, p.BehindID, p.Most())
	}
	return v.EndpointActionRuns(in.EndpointID, p.BehindID, p.Most())
}

// one returns the named run, or none if it is of another action or on another request.
func (in *actionRunList) one(v *store.View) ([]hookglass.ActionRun, error) {
	r, err := v.ActionRun(in.EndpointID, in.RunID)
	if err != nil {
		return nil, err
	}
	on := r.EventID
	if in.RequestID != "" {
		if on, err = v.FindEvent(in.EndpointID, in.RequestID); err != nil {
			return nil, err
		}
	}
	if on != r.EventID || in.ActionID != "" && in.ActionID != r.ActionID {
		return nil, hookglass.NotFound("action run")
	}
	return []hookglass.ActionRun{r}, nil
}

func (in *actionRunList) ofRequest(v *store.View, p httpd.Page) ([]hookglass.ActionRun, error) {
	id, err := v.FindEvent(in.EndpointID, in.RequestID)
	if err != nil {
		return nil, err
	}
	e, err := v.ListedEvent(in.EndpointID, string(id))
	if err != nil {
		return nil, err
	}
	if in.ActionID != "" {
		if _, err := v.ActionRuns(in.EndpointID, in.ActionID, "", 1); err != nil { // there is no such action and never was
			return nil, err
		}
	}
	found, err := v.EventActionRuns(e.Seq, maxEventRuns)
	kept := found[:0]
	for _, r := range found {
		if (p.BehindID == "" || r.ID < p.BehindID) && (in.ActionID == "" || r.ActionID == in.ActionID) {
			kept = append(kept, r)
		}
	}
	return kept, err
}
