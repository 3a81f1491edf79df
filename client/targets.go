package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"hookglass/api"
)

// ForwardingTargets returns the forwarding targets of an endpoint, oldest first.
func (c *Client) ForwardingTargets(ctx context.Context, endpoint string) ([]api.ForwardingTarget, error) {
	return all[api.ForwardingTarget](ctx, c, join("endpoints", endpoint, "forwarding_targets"))
}

// CreateForwardingTarget creates a target.
func (c *Client) CreateForwardingTarget(ctx context.Context, endpoint string, t api.NewForwardingTarget) (api.ForwardingTarget, error) {
	return data[api.ForwardingTarget](ctx, c, http.MethodPost, join("endpoints", endpoint, "forwarding_targets"), nil, api.CreateForwardingTarget{ForwardingTarget: &t})
}

// ForwardingTarget returns a target.
func (c *Client) ForwardingTarget(ctx context.Context, endpoint string, id int64) (api.ForwardingTarget, error) {
	return data[api.ForwardingTarget](ctx, c, http.MethodGet, target(endpoint, id), nil, nil)
}

// UpdateForwardingTarget changes the fields that are set. Enabling a paused target resumes it.
func (c *Client) UpdateForwardingTarget(ctx context.Context, endpoint string, id int64, change api.ForwardingTargetChange) (api.ForwardingTarget, error) {
	return data[api.ForwardingTarget](ctx, c, http.MethodPatch, target(endpoint, id), nil, api.UpdateForwardingTarget{ForwardingTarget: &change})
}

// DeleteForwardingTarget deletes a target with its deliveries.
func (c *Client) DeleteForwardingTarget(ctx context.Context, endpoint string, id int64) error {
	_, err := data[api.DeletedNumber](ctx, c, http.MethodDelete, target(endpoint, id), nil, nil)
	return err
}

// TargetDeliveries returns a page of the deliveries to a target that were made after a time, newest first. It is a
// time, or a duration back from now; empty means no bound.
func (c *Client) TargetDeliveries(ctx context.Context, endpoint string, id int64, after string, page Page) (api.List[api.Delivery], error) {
	return c.deliveries(ctx, endpoint, id, url.Values{}, after, page)
}

// FailedTargetDeliveries is TargetDeliveries of those that failed.
func (c *Client) FailedTargetDeliveries(ctx context.Context, endpoint string, id int64, after string, page Page) (api.List[api.Delivery], error) {
	return c.deliveries(ctx, endpoint, id, url.Values{"status": {"failed"}}, after, page)
}

func (c *Client) deliveries(ctx context.Context, endpoint string, id int64, query url.Values, after string, page Page) (api.List[api.Delivery], error) {
	setText(query, "after", after)
	return call[api.List[api.Delivery]](ctx, c, http.MethodGet, target(endpoint, id)+"/deliveries", page.of(query), nil)
}

// ResendDelivery sends a failed delivery to a target again, and returns it. One that is already waiting is left as it
// is.
func (c *Client) ResendDelivery(ctx context.Context, endpoint string, id int64, delivery string) (api.Delivery, error) {
	return data[api.Delivery](ctx, c, http.MethodPost, target(endpoint, id)+join("deliveries", delivery, "resend"), nil, nil)
}

// ResendFailed sends the failed deliveries to a target between two times again. Each is a time, or a duration back from
// now; empty means no bound.
func (c *Client) ResendFailed(ctx context.Context, endpoint string, id int64, after, before string) (api.ResentDeliveries, error) {
	query := url.Values{}
	setText(query, "after", after)
	setText(query, "before", before)
	return data[api.ResentDeliveries](ctx, c.unhurried(), http.MethodPost, target(endpoint, id)+"/resend", query, nil)
}

func target(endpoint string, id int64) string {
	return join("endpoints", endpoint, "forwarding_targets", strconv.FormatInt(id, 10))
}
