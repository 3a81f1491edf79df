package client

import (
	"context"
	"net/http"

	"hookglass/api"
)

// Endpoints returns all endpoints, oldest first.
func (c *Client) Endpoints(ctx context.Context) ([]api.Endpoint, error) {
	return all[api.Endpoint](ctx, c, "/endpoints")
}

// Endpoint returns the endpoint with an id or custom id.
func (c *Client) Endpoint(ctx context.Context, ref string) (api.Endpoint, error) {
	return data[api.Endpoint](ctx, c, http.MethodGet, join("endpoints", ref), nil, nil)
}

// CreateEndpoint creates an endpoint.
func (c *Client) CreateEndpoint(ctx context.Context, e api.NewEndpoint) (api.Endpoint, error) {
	return data[api.Endpoint](ctx, c, http.MethodPost, "/endpoints", nil, api.CreateEndpoint{Endpoint: &e})
}

// UpdateEndpoint changes the fields that are set.
func (c *Client) UpdateEndpoint(ctx context.Context, ref string, change api.EndpointChange) (api.Endpoint, error) {
	return data[api.Endpoint](ctx, c, http.MethodPatch, join("endpoints", ref), nil, api.UpdateEndpoint{Endpoint: &change})
}

// TryRules returns how past events of an endpoint would be answered now, by its own response rules or by others.
func (c *Client) TryRules(ctx context.Context, ref string, with api.TryRules) (api.TriedRules, error) {
	return data[api.TriedRules](ctx, c, http.MethodPost, join("endpoints", ref, "response_rules", "try"), nil, with)
}

// DeleteEndpoint permanently deletes an endpoint with all its events. The answer has its id.
func (c *Client) DeleteEndpoint(ctx context.Context, ref string) (api.Deleted, error) {
	return data[api.Deleted](ctx, c, http.MethodDelete, join("endpoints", ref), nil, nil)
}

// CreateTemporaryEndpoint creates an endpoint that lives 24 hours and has no owner. Its TunnelKey is shown only in this
// answer; it is the token to read the endpoint with.
func (c *Client) CreateTemporaryEndpoint(ctx context.Context) (api.Endpoint, error) {
	return data[api.Endpoint](ctx, c, http.MethodPost, "/temporary_endpoints", nil, nil)
}
