package client

import (
	"context"
	"net/http"
	"net/url"

	"hookglass/api"
)

// Metrics returns the figures of an endpoint over a window up to now, each a number and m, h or d; "" is the server's
// default: a day, in about 24 steps.
func (c *Client) Metrics(ctx context.Context, endpoint, window, step string) (api.Metrics, error) {
	query := url.Values{}
	setText(query, "window", window)
	setText(query, "step", step)
	return data[api.Metrics](ctx, c, http.MethodGet, join("endpoints", endpoint, "metrics"), query, nil)
}
