package client

import (
	"context"
	"net/http"

	"hookglass/api"
)

// RetryProfile measures how the senders of an endpoint's events retried; events and groups of 0 are the server's
// defaults.
func (c *Client) RetryProfile(ctx context.Context, endpoint string, filter Filter, events, groups int) (api.RetryProfile, error) {
	query := filter.values()
	setInt(query, "events", events)
	setInt(query, "limit", groups)
	return data[api.RetryProfile](ctx, c, http.MethodGet, join("endpoints", endpoint, "retry_profile"), query, nil)
}
