package client

import (
	"context"
	"net/http"
	"net/url"

	"hookglass/api"
)

// Replay sends a captured event again and returns what became of it.
func (c *Client) Replay(ctx context.Context, endpoint, id string, r api.ReplayRequest) (api.Replay, error) {
	return data[api.Replay](ctx, c, http.MethodPost, join("endpoints", endpoint, "requests", id, "replay"), nil, r)
}

// ReplayCases returns a page of an endpoint's cases, newest first.
func (c *Client) ReplayCases(ctx context.Context, endpoint string, page Page) (api.List[api.ReplayCase], error) {
	query := url.Values{}
	setInt(query, "limit", page.Limit)
	if page.Cursor != "" {
		query.Set("cursor", page.Cursor)
	}
	return call[api.List[api.ReplayCase]](ctx, c, http.MethodGet, join("endpoints", endpoint, "replay_cases"), query, nil)
}

// CreateReplayCase saves a case.
func (c *Client) CreateReplayCase(ctx context.Context, endpoint string, r api.NewReplayCase) (api.ReplayCase, error) {
	return data[api.ReplayCase](ctx, c, http.MethodPost, join("endpoints", endpoint, "replay_cases"), nil, api.CreateReplayCase{ReplayCase: &r})
}

// UpdateReplayCase changes a case from the version that the change names.
func (c *Client) UpdateReplayCase(ctx context.Context, endpoint, id string, change api.ReplayCaseChange) (api.ReplayCase, error) {
	return data[api.ReplayCase](ctx, c, http.MethodPatch, join("endpoints", endpoint, "replay_cases", id), nil, api.UpdateReplayCase{ReplayCase: &change})
}

// RunReplayCase queues a run of a case; the same key gives the same run again.
func (c *Client) RunReplayCase(ctx context.Context, endpoint, id, key string) (api.ReplayCaseRun, error) {
	res, err := c.send(ctx, http.MethodPost, join("endpoints", endpoint, "replay_cases", id, "run"), nil, nil, http.Header{"Idempotency-Key": {key}})
	if err != nil {
		return api.ReplayCaseRun{}, err
	}
	one, err := answer[api.One[api.ReplayCaseRun]](res)
	return one.Data, err
}

// ReplayCaseRun reads a run.
func (c *Client) ReplayCaseRun(ctx context.Context, endpoint, id string) (api.ReplayCaseRun, error) {
	return data[api.ReplayCaseRun](ctx, c, http.MethodGet, join("endpoints", endpoint, "replay_case_runs", id), nil, nil)
}
