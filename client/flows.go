package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hookglass/api"
)

// CreateFlow starts the flow that a JSON object describes, see api.NewFlow. The same idempotency key returns the same
// flow; "" means none.
func (c *Client) CreateFlow(ctx context.Context, flow json.RawMessage, key string) (f api.Flow, err error) {
	header := http.Header{}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	res, err := c.send(ctx, http.MethodPost, "/flows", nil, map[string]json.RawMessage{"flow": flow}, header)
	if err != nil {
		return f, err
	}
	one, err := answer[api.One[api.Flow]](c, res)
	return one.Data, err
}

// Flows returns a page of flows, newest first.
func (c *Client) Flows(ctx context.Context, state string, page Page) (api.List[api.Flow], error) {
	query := page.of(url.Values{})
	setText(query, "state", state)
	return call[api.List[api.Flow]](ctx, c, http.MethodGet, "/flows", query, nil)
}

// Flow returns a flow.
func (c *Client) Flow(ctx context.Context, id string) (api.Flow, error) {
	return data[api.Flow](ctx, c, http.MethodGet, join("flows", id), nil, nil)
}

// WaitFlow returns a flow once its version is greater than after or, if after is 0, once it has ended, and in any case
// after that many seconds, 1 to 60.
func (c *Client) WaitFlow(ctx context.Context, id string, after int64, seconds int) (api.Flow, error) {
	// The answer may begin only at the timeout, and takes time to arrive.
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+answerTime)
	defer cancel()
	query := url.Values{"timeout": {strconv.Itoa(seconds)}}
	if after > 0 {
		query.Set("after", strconv.FormatInt(after, 10))
	}
	waited, err := call[api.FlowWait](ctx, c.unhurried(), http.MethodGet, join("flows", id, "wait"), query, nil)
	return waited.Data, err
}

// DeleteFlow deletes a flow, which ends without a result if it was running.
func (c *Client) DeleteFlow(ctx context.Context, id string) error {
	_, err := data[api.Deleted](ctx, c, http.MethodDelete, join("flows", id), nil, nil)
	return err
}
