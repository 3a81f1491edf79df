package client

import (
	"context"
	"net/http"
	"net/url"

	"hookglass/api"
)

// Schemas returns the schemas of an endpoint's event types.
func (c *Client) Schemas(ctx context.Context, endpoint string) (api.SchemaList, error) {
	return call[api.SchemaList](ctx, c, http.MethodGet, join("endpoints", endpoint, "schemas"), nil, nil)
}

// Schema returns the schema of an event type, "-" for events without one. provider is needed if several providers have
// events of this type.
func (c *Client) Schema(ctx context.Context, endpoint, eventType, provider string) (api.Schema, error) {
	return data[api.Schema](ctx, c, http.MethodGet, join("endpoints", endpoint, "schemas", eventType), of(provider), nil)
}

// SchemaTypes returns the schema of an event type as types of a language, go or ts.
func (c *Client) SchemaTypes(ctx context.Context, endpoint, eventType, provider, language string) (api.SchemaCode, error) {
	query := of(provider)
	query.Set("lang", language)
	return data[api.SchemaCode](ctx, c, http.MethodGet, join("endpoints", endpoint, "schemas", eventType, "types"), query, nil)
}

// SchemaDrift returns how an event type differs from its baseline.
func (c *Client) SchemaDrift(ctx context.Context, endpoint, eventType, provider string) (api.SchemaDrifts, error) {
	return data[api.SchemaDrifts](ctx, c, http.MethodGet, join("endpoints", endpoint, "schemas", eventType, "drift"), of(provider), nil)
}

// AcceptSchema makes the schema of an event type its baseline.
func (c *Client) AcceptSchema(ctx context.Context, endpoint, eventType, provider string) (api.Schema, error) {
	return data[api.Schema](ctx, c, http.MethodPost, join("endpoints", endpoint, "schemas", eventType, "accept"), of(provider), nil)
}

func of(provider string) url.Values {
	query := url.Values{}
	setText(query, "provider", provider)
	return query
}
