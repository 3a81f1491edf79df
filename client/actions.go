package client

import (
	"context"
	"net/http"
	"net/url"

	"hookglass/api"
)

// Actions returns the actions of an endpoint, by position.
func (c *Client) Actions(ctx context.Context, endpoint string) ([]api.Action, error) {
	return all[api.Action](ctx, c, join("endpoints", endpoint, "actions"))
}

// CreateAction creates an action.
func (c *Client) CreateAction(ctx context.Context, endpoint string, a api.NewAction) (api.Action, error) {
	return data[api.Action](ctx, c, http.MethodPost, join("endpoints", endpoint, "actions"), nil, api.CreateAction{EndpointAction: &a})
}

// Action returns an action with its last runs.
func (c *Client) Action(ctx context.Context, endpoint, id string) (api.ActionDetail, error) {
	return data[api.ActionDetail](ctx, c, http.MethodGet, join("endpoints", endpoint, "actions", id), nil, nil)
}

// UpdateAction changes what is set in the change; steps replace all that there are.
func (c *Client) UpdateAction(ctx context.Context, endpoint, id string, change api.ActionChange) (api.Action, error) {
	return data[api.Action](ctx, c, http.MethodPatch, join("endpoints", endpoint, "actions", id), nil, api.UpdateAction{EndpointAction: &change})
}

// DeleteAction deletes an action; its runs stay.
func (c *Client) DeleteAction(ctx context.Context, endpoint, id string) error {
	_, err := data[api.Deleted](ctx, c, http.MethodDelete, join("endpoints", endpoint, "actions", id), nil, nil)
	return err
}

// ActionRuns returns a page of the runs of an action, newest first; action "" means all runs on the endpoint, also of
// deleted actions.
func (c *Client) ActionRuns(ctx context.Context, endpoint, action string, page Page) (api.List[api.ActionRun], error) {
	path := join("endpoints", endpoint, "action_runs")
	if action != "" {
		path = join("endpoints", endpoint, "actions", action, "runs")
	}
	return call[api.List[api.ActionRun]](ctx, c, http.MethodGet, path, page.of(url.Values{}), nil)
}

// ActionRun returns a run of an action with the outcome of each step.
func (c *Client) ActionRun(ctx context.Context, endpoint, run string) (api.ActionRun, error) {
	return data[api.ActionRun](ctx, c, http.MethodGet, join("endpoints", endpoint, "action_runs", run), nil, nil)
}

// RerunAction runs an action on an event, whatever its conditions say. It runs in the background; see
// [Client.ActionRun] for the result.
func (c *Client) RerunAction(ctx context.Context, endpoint, action, event string) (api.ActionRun, error) {
	return data[api.ActionRun](ctx, c, http.MethodPost, join("endpoints", endpoint, "actions", action, "runs"), nil,
		api.RerunAction{Run: &api.NewRerun{EventID: api.Some(event)}})
}

// PreviewAction returns what an action would do with an event. Nothing is sent.
func (c *Client) PreviewAction(ctx context.Context, endpoint, action, event string) (api.ActionPreview, error) {
	return data[api.ActionPreview](ctx, c, http.MethodPost, join("endpoints", endpoint, "actions", action, "preview"), nil,
		api.PreviewAction{Preview: &api.NewPreview{IngressEventID: api.Some(event)}})
}

// BacktestAction returns what an action would have done with past events, and what a changed configuration would have.
// Nothing is sent.
func (c *Client) BacktestAction(ctx context.Context, endpoint, action string, with api.BacktestAction) (api.ActionBacktest, error) {
	return data[api.ActionBacktest](ctx, c, http.MethodPost, join("endpoints", endpoint, "actions", action, "backtest"), nil, with)
}
