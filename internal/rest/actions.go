package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/action"
	"hookglass/internal/draft"
	"hookglass/internal/httpd"
	"hookglass/internal/store"
)

type (
	// ActionPath is the path of one action.
	ActionPath struct {
		InEndpoint
		ActionID string `path:"action_id" doc:"The action's id." example:"act_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	}

	actionRunList struct {
		ActionPath
		Paging
	}

	// ActionRunPath is the path of one run of an action.
	ActionRunPath struct {
		InEndpoint
		RunID string `path:"action_run_id" doc:"The run's id." example:"arun_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	}
)

func (s *service) actions(t *table) {
	const tag, in = "Actions", "/endpoints/{endpoint_id}"
	const base, one = in + "/actions", in + "/actions/{action_id}"
	const older, olderOne = in + "/endpoint_actions", in + "/endpoint_actions/{action_id}"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handle(t, operation{
		id: "list-actions", method: http.MethodGet, path: base, aliases: []string{older}, tag: tag, summary: "List actions", text: "By position.", access: read,
	}, s.listActions)
	handleBody(t, operation{
		id: "create-action", method: http.MethodPost, path: base, aliases: []string{older}, tag: tag, summary: "Create an action", access: write,
		text: "It runs on events that are captured from now on. Actions need a Pro, Team or Business plan; forward steps an active paid subscription, transform steps " +
			"the Business plan, http_request steps both. A tag that the workspace does not have is made; a secret or a channel must be there.", status: http.StatusCreated,
	}, s.createAction)
	handle(t, operation{
		id: "get-action", method: http.MethodGet, path: one, aliases: []string{olderOne}, tag: tag, summary: "Read an action", text: "With its last 10 runs.", access: read,
	}, s.getAction)
	handleBody(t, operation{
		id: "update-action", method: http.MethodPatch, path: one, aliases: []string{olderOne}, tag: tag, summary: "Change an action", access: write,
		text: "What the body does not name stays as it is; steps replaces all of them.",
	}, s.updateAction)
	handle(t, operation{
		id: "delete-action", method: http.MethodDelete, path: one, aliases: []string{olderOne}, tag: tag, summary: "Delete an action", text: "Its runs are kept.", access: write,
	}, s.deleteAction)
	handleBody(t, operation{
		id: "preview-action", method: http.MethodPost, path: one + "/preview", aliases: []string{olderOne + "/preview"}, tag: tag, summary: "Preview an action on a captured event", access: read,
		text: "Renders the steps and sends nothing. Secrets show as {{secrets.NAME}}; what else is sensitive is blotted out and listed.",
	}, s.previewAction)
	handleBody(t, operation{
		id: "backtest-action", method: http.MethodPost, path: one + "/backtest", aliases: []string{olderOne + "/backtest"}, tag: tag, summary: "Try an action on past events", access: read,
		text: "What it would have done with the last events that the query means, and what a changed configuration would have. Nothing is sent.",
	}, s.backtestAction)
	handle(t, operation{
		id: "list-action-runs", method: http.MethodGet, path: one + "/runs", aliases: []string{olderOne + "/runs"}, tag: tag, summary: "List the runs of an action", access: read,
		text: "Newest first. A run is kept as long as its event.",
	}, s.listActionRuns)
	handleBody(t, operation{
		id: "rerun-action", method: http.MethodPost, path: one + "/runs", aliases: []string{olderOne + "/runs"}, tag: tag, summary: "Run an action again", access: write, status: http.StatusAccepted,
		text: "On a captured event, in the background, with the configuration that is current when it begins, whatever its trigger conditions say.",
	}, s.rerunAction)
	handle(t, operation{
		id: "list-endpoint-action-runs", method: http.MethodGet, path: in + "/action_runs", tag: tag, summary: "List the runs of all actions", access: read,
		text: "Newest first, also those of deleted actions.",
	}, s.listEndpointActionRuns)
	handle(t, operation{
		id: "get-action-run", method: http.MethodGet, path: in + "/action_runs/{action_run_id}", tag: tag, summary: "Read a run of an action", access: read,
		text: "What became of one event: whether each condition of the trigger held, and the status, timing and summary of each step. Secrets are redacted. A run is kept as long as its event, also when its action is deleted.",
	}, s.getActionRun)
}

func (s *service) listActions(ctx context.Context, in *inEndpointListed) (out api.List[api.Action], err error) {
	p, err := in.page(ofActions)
	if err != nil {
		return out, err
	}
	err = s.view(ctx, func(v *store.View) error {
		found, err := v.Actions(in.EndpointID, p.Behind, p.Most())
		out = httpd.Answer(p, found, store.NextAction(found), api.FromAction)
		return err
	})
	return out, err
}

func (s *service) createAction(ctx context.Context, in *InEndpoint, body *api.CreateAction) (out api.One[api.Action], err error) {
	if body.EndpointAction == nil {
		return out, hookglass.Invalid("endpoint_action", "is required")
	}
	d, err := draft.Action(api.ActionChange(*body.EndpointAction))
	if err != nil {
		return out, err
	}
	a, err := s.Actions.Create(ctx, asker(ctx), in.EndpointID, d)
	out.Data = api.FromAction(a)
	return out, err
}

func (s *service) getAction(ctx context.Context, in *ActionPath) (out api.One[api.ActionDetail], err error) {
	err = s.view(ctx, func(v *store.View) error {
		a, err := v.Action(in.EndpointID, in.ActionID)
		if err != nil {
			return err
		}
		runs, err := v.ActionRuns(in.EndpointID, in.ActionID, "", hookglass.RecentRuns)
		out.Data = api.ActionDetail{Action: api.FromAction(a), RecentRuns: actionRuns(runs)}
		return err
	})
	return out, err
}

func actionRuns(found []hookglass.ActionRun) []api.ActionRun {
	runs := make([]api.ActionRun, 0, len(found))
	for _, r := range found {
		runs = append(runs, api.FromActionRun(r))
	}
	return runs
}

func (s *service) updateAction(ctx context.Context, in *ActionPath, body *api.UpdateAction) (out api.One[api.Action], err error) {
	if body.EndpointAction == nil {
		return out, hookglass.Invalid("endpoint_action", "is required")
	}
	d, err := draft.Action(*body.EndpointAction)
	if err != nil {
		return out, err
	}
	a, err := s.Actions.Update(ctx, asker(ctx), in.EndpointID, in.ActionID, d)
	out.Data = api.FromAction(a)
	return out, err
}

func (s *service) deleteAction(ctx context.Context, in *ActionPath) (out api.One[api.Deleted], err error) {
	err = s.Actions.Delete(ctx, asker(ctx), in.EndpointID, in.ActionID)
	out.Data = api.Deleted{ID: in.ActionID, Deleted: true}
	return out, err
}

func (s *service) listActionRuns(ctx context.Context, in *actionRunList) (out api.List[api.ActionRun], err error) {
	return s.pageOfRuns(ctx, in.Paging, func(v *store.View, before string, limit int) ([]hookglass.ActionRun, error) {
		return v.ActionRuns(in.EndpointID, in.ActionID, before, limit)
	})
}

func (s *service) listEndpointActionRuns(ctx context.Context, in *inEndpointPaged) (out api.List[api.ActionRun], err error) {
	return s.pageOfRuns(ctx, in.Paging, func(v *store.View, before string, limit int) ([]hookglass.ActionRun, error) {
		return v.EndpointActionRuns(in.EndpointID, before, limit)
	})
}

func (s *service) pageOfRuns(ctx context.Context, in Paging, read func(v *store.View, before string, limit int) ([]hookglass.ActionRun, error)) (out api.List[api.ActionRun], err error) {
	p, err := ofActionRuns.PageOfIDs(in.Limit, in.Cursor)
	if err != nil {
		return out, err
	}
	err = s.view(ctx, func(v *store.View) error {
		found, err := read(v, p.BehindID, p.Most())
		out = httpd.AnswerIDs(p, found, func(r hookglass.ActionRun) string { return r.ID }, api.FromActionRun)
		return err
	})
	return out, err
}

func (s *service) getActionRun(ctx context.Context, in *ActionRunPath) (api.One[api.ActionRun], error) {
	return single(ctx, s, func(v *store.View) (hookglass.ActionRun, error) { return v.ActionRun(in.EndpointID, in.RunID) }, api.FromActionRun)
}

func (s *service) rerunAction(ctx context.Context, in *ActionPath, body *api.RerunAction) (out api.One[api.ActionRun], err error) {
	if body.Run == nil {
		return out, hookglass.Invalid("run", "is required")
	}
	var faults []hookglass.FieldError
	event := given(&faults, "run.event_id", body.Run.EventID, false)
	parent := given(&faults, "run.parent_run_id", body.Run.ParentRunID, true)
	if len(faults) > 0 {
		return out, hookglass.InvalidFields(faults)
	}
	r, err := s.Actions.Rerun(ctx, asker(ctx), in.EndpointID, in.ActionID, or(event), or(parent))
	out.Data = api.FromActionRun(r)
	return out, err
}

func (s *service) previewAction(ctx context.Context, in *ActionPath, body *api.PreviewAction) (out api.One[api.ActionPreview], err error) {
	if body.Preview == nil || !body.Preview.IngressEventID.Set || body.Preview.IngressEventID.Null {
		return out, hookglass.Invalid("preview.ingress_event_id", "is required")
	}
	p, err := s.Actions.Preview(ctx, asker(ctx), in.EndpointID, in.ActionID, body.Preview.IngressEventID.Value)
	out.Data = api.ActionPreview{
		EventID: string(p.EventID), Trigger: api.FromTrigger(p.Trigger), Steps: make([]api.PreviewedStep, len(p.Steps)), SensitiveFields: make([]api.SensitiveField, len(p.Sensitive)),
	}
	for i, st := range p.Steps {
		out.Data.Steps[i] = api.PreviewedStep{
			ReferenceKey: st.ReferenceKey, StepType: string(st.Type), Name: st.Name, Status: string(st.Status), Reason: orNull(st.Reason),
			Output: st.Output, Rendered: st.Rendered, Truncated: st.Truncated, Error: failureOf(st.Failure),
		}
	}
	for i, f := range p.Sensitive {
		out.Data.SensitiveFields[i] = api.SensitiveField{Step: f.Step, Path: f.Path}
	}
	return out, err
}

func (s *service) backtestAction(ctx context.Context, in *ActionPath, body *api.BacktestAction) (out api.One[api.ActionBacktest], err error) {
	var faults []hookglass.FieldError
	query := given(&faults, "query", body.Query, false)
	limit := howMany(&faults, body.Limit, 0, action.MaxBacktest)
	if len(faults) > 0 {
		return out, hookglass.InvalidFields(faults)
	}
	var submitted *action.Draft
	if body.EndpointAction != nil {
		d, err := draft.Action(*body.EndpointAction)
		if err != nil {
			return out, err
		}
		submitted = &d
	}
	b, err := s.Actions.Backtest(ctx, asker(ctx), in.EndpointID, in.ActionID, action.BacktestOf{Query: or(query), Limit: limit, Draft: submitted})
	if err != nil {
		return out, err
	}
	out.Data = api.ActionBacktest{Evaluated: len(b.Events), Complete: b.Complete, Events: make([]api.BacktestEvent, len(b.Events))}
	if submitted != nil {
		out.Data.Submitted = new(int)
	}
	for i, e := range b.Events {
		one := api.BacktestEvent{
			EventID: string(e.Stored.EventID), RequestedAt: api.Time{Time: e.Stored.ReceivedAt}, Stored: backtestOutcome(e.Stored),
			Differences: make([]api.BacktestDifference, len(e.Differences)), More: e.More,
		}
		if e.Stored.Trigger.Matched {
			out.Data.Matched++
		}
		if e.Submitted != nil {
			one.Submitted = new(backtestOutcome(*e.Submitted))
			if e.Submitted.Trigger.Matched {
				*out.Data.Submitted++
			}
		}
		for j, d := range e.Differences {
			one.Differences[j] = api.BacktestDifference{Step: d.Step, Path: d.Path, Stored: d.Stored, Submitted: d.Submitted}
		}
		out.Data.Events[i] = one
	}
	return out, nil
}

func backtestOutcome(p action.PreviewResult) api.BacktestOutcome {
	out := api.BacktestOutcome{Trigger: api.FromTrigger(p.Trigger), Steps: make([]api.BacktestStep, len(p.Steps))}
	for i, st := range p.Steps {
		out.Steps[i] = api.BacktestStep{
			ReferenceKey: st.ReferenceKey, StepType: string(st.Type), Status: string(st.Status), Reason: orNull(st.Reason), Error: failureOf(st.Failure),
		}
	}
	return out
}
