package client

import (
	"context"
	"net/http"
	"net/url"

	"hookglass/api"
)

// Alerts returns the alerts of an endpoint, oldest first.
func (c *Client) Alerts(ctx context.Context, endpoint string) ([]api.Alert, error) {
	return all[api.Alert](ctx, c, join("endpoints", endpoint, "alerts"))
}

// CreateAlert creates an alert.
func (c *Client) CreateAlert(ctx context.Context, endpoint string, a api.NewAlert) (api.Alert, error) {
	return data[api.Alert](ctx, c, http.MethodPost, join("endpoints", endpoint, "alerts"), nil, api.CreateAlert{Alert: &a})
}

// Alert returns an alert.
func (c *Client) Alert(ctx context.Context, endpoint, id string) (api.Alert, error) {
	return data[api.Alert](ctx, c, http.MethodGet, join("endpoints", endpoint, "alerts", id), nil, nil)
}

// UpdateAlert changes what is set in the change.
func (c *Client) UpdateAlert(ctx context.Context, endpoint, id string, change api.AlertChange) (api.Alert, error) {
	return data[api.Alert](ctx, c, http.MethodPatch, join("endpoints", endpoint, "alerts", id), nil, api.UpdateAlert{Alert: &change})
}

// DeleteAlert deletes an alert with its history.
func (c *Client) DeleteAlert(ctx context.Context, endpoint, id string) error {
	_, err := data[api.Deleted](ctx, c, http.MethodDelete, join("endpoints", endpoint, "alerts", id), nil, nil)
	return err
}

// Incidents returns a page of the times in which an alert was triggered, newest first.
func (c *Client) Incidents(ctx context.Context, endpoint, id string, page Page) (api.List[api.Incident], error) {
	return call[api.List[api.Incident]](ctx, c, http.MethodGet, join("endpoints", endpoint, "alerts", id, "incidents"), page.of(url.Values{}), nil)
}
