package client

import (
	"context"
	"net/http"
	"net/url"

	"hookglass/api"
)

// Replay sends a captured event again and returns what became of it.
func (c *Client) Replay(ctx context.Context, endpoint, id string, r api.ReplayRequest) (api.Replay, error) {
	replayed, err := data[api.Replay](ctx, c, http.MethodPost, join("endpoints", endpoint, "requests", id, "replay"), nil, r)
	told := replayed.DryRun || replayed.Delivered && replayed.StatusCode != nil || !replayed.Delivered && replayed.Error != nil
	if err == nil && !told {
		err = foreign(http.StatusOK, "")
	}
	return replayed, err
}

// ReplayCases returns a page of an endpoint's cases, newest first.
func (c *Client) ReplayCases(ctx context.Context, endpoint string, page Page) (api.List[api.ReplayCase], error) {
	return call[api.List[api.ReplayCase]](ctx, c, http.MethodGet, join("endpoints", endpoint, "replay_cases"), page.of(url.Values{}), nil)
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
	one, err := answer[api.One[api.ReplayCaseRun]](c, res)
	return one.Data, err
}

// ReplayCaseRun reads a run.
func (c *Client) ReplayCaseRun(ctx context.Context, endpoint, id string) (api.ReplayCaseRun, error) {
	return data[api.ReplayCaseRun](ctx, c, http.MethodGet, join("endpoints", endpoint, "replay_case_runs", id), nil, nil)
}

// CreateReplayBatch starts to replay many events; a dry run returns how many.
func (c *Client) CreateReplayBatch(ctx context.Context, endpoint string, r api.CreateReplayBatch) (api.ReplayBatch, error) {
	return data[api.ReplayBatch](ctx, c, http.MethodPost, join("endpoints", endpoint, "replay_batches"), nil, r)
}

// ReplayBatches returns a page of an endpoint's bulk replays, newest first.
func (c *Client) ReplayBatches(ctx context.Context, endpoint string, page Page) (api.List[api.ReplayBatch], error) {
	return call[api.List[api.ReplayBatch]](ctx, c, http.MethodGet, join("endpoints", endpoint, "replay_batches"), page.of(url.Values{}), nil)
}

// ReplayBatch reads a bulk replay.
func (c *Client) ReplayBatch(ctx context.Context, endpoint, id string) (api.ReplayBatch, error) {
	return data[api.ReplayBatch](ctx, c, http.MethodGet, join("endpoints", endpoint, "replay_batches", id), nil, nil)
}

// ReplayBatchResults returns a page of the events of a bulk replay, in the order of sending.
func (c *Client) ReplayBatchResults(ctx context.Context, endpoint, id string, page Page) (api.List[api.BatchItem], error) {
	return call[api.List[api.BatchItem]](ctx, c, http.MethodGet, join("endpoints", endpoint, "replay_batches", id, "results"), page.of(url.Values{}), nil)
}

// PauseReplayBatch pauses a bulk replay.
func (c *Client) PauseReplayBatch(ctx context.Context, endpoint, id string) (api.ReplayBatch, error) {
	return data[api.ReplayBatch](ctx, c, http.MethodPost, join("endpoints", endpoint, "replay_batches", id, "pause"), nil, nil)
}

// ResumeReplayBatch resumes a paused bulk replay.
func (c *Client) ResumeReplayBatch(ctx context.Context, endpoint, id string) (api.ReplayBatch, error) {
	return data[api.ReplayBatch](ctx, c, http.MethodPost, join("endpoints", endpoint, "replay_batches", id, "resume"), nil, nil)
}

// CancelReplayBatch ends a bulk replay for good.
func (c *Client) CancelReplayBatch(ctx context.Context, endpoint, id string) (api.ReplayBatch, error) {
	return data[api.ReplayBatch](ctx, c, http.MethodPost, join("endpoints", endpoint, "replay_batches", id, "cancel"), nil, nil)
}
