package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"hookglass"
	"hookglass/api"
)

// Anonymous reports whether the client's token is the key of a temporary endpoint: it then speaks for that endpoint
// alone.
func (c *Client) Anonymous() bool { return hookglass.IsTunnelKey(c.token) }

// ConnectTunnel gets a ticket, which opens one socket within 30 seconds. With the key of a temporary endpoint the
// endpoint is the key's, whatever r names.
func (c *Client) ConnectTunnel(ctx context.Context, r api.ConnectTunnel) (api.TunnelTicket, error) {
	if c.Anonymous() {
		return call[api.TunnelTicket](ctx, c, http.MethodPost, "/tunnel/connect_anonymous", nil, api.ConnectTunnelAnonymous{
			TunnelKey: c.token, InstallationID: r.InstallationID, ClientName: r.ClientName, ClientMetadata: r.ClientMetadata, Capabilities: r.Capabilities,
		})
	}
	return call[api.TunnelTicket](ctx, c, http.MethodPost, "/tunnel/connect", nil, r)
}

// ReportDelivery tells what became of an event here. The same report may be sent again: it counts once.
func (c *Client) ReportDelivery(ctx context.Context, r api.DeliveryReport) error {
	path := "/tunnel/delivery_reports"
	if c.Anonymous() {
		path, r.TunnelKey = "/tunnel/delivery_reports_anonymous", c.token
	}
	return c.do(ctx, http.MethodPost, path, r)
}

// ReportReplay tells what came of a replay through the tunnel.
func (c *Client) ReportReplay(ctx context.Context, r api.TunnelReplayResult) error {
	return c.do(ctx, http.MethodPost, "/tunnel/replay_results", r)
}

// Gaps returns the gaps of endpoints that are not recovered, oldest first.
func (c *Client) Gaps(ctx context.Context, endpoints []string) ([]api.Gap, error) {
	list, err := call[api.List[api.Gap]](ctx, c, http.MethodGet, "/tunnel/gaps", url.Values{"endpoint_ids[]": endpoints}, nil)
	return list.Data, err
}

// UndeliveredIn returns a page of the events of a gap that no report says were delivered, oldest first; cursor is the
// NextCursor of the page before.
func (c *Client) UndeliveredIn(ctx context.Context, gap api.Gap, page Page) (api.Undelivered, error) {
	query := url.Values{"endpoint_ids[]": {gap.EndpointID}, "gap_id": {gap.ID}}
	setInt(query, "limit", page.Limit)
	if page.Cursor != "" {
		query.Set("cursor", page.Cursor)
	}
	return call[api.Undelivered](ctx, c, http.MethodGet, "/tunnel/undelivered", query, nil)
}

// UndeliveredSince returns a page of the events since a time that no report says were delivered, oldest first.
func (c *Client) UndeliveredSince(ctx context.Context, endpoints []string, since time.Time, page Page) (api.Undelivered, error) {
	query := url.Values{"endpoint_ids[]": endpoints}
	setTime(query, "since", since)
	setInt(query, "limit", page.Limit)
	if page.Cursor != "" {
		query.Set("cursor", page.Cursor)
	}
	return call[api.Undelivered](ctx, c, http.MethodGet, "/tunnel/undelivered", query, nil)
}

// Missed returns the events since a time that no report says were delivered, oldest first, at most 500.
func (c *Client) Missed(ctx context.Context, endpoints []string, since time.Time) ([]api.TunnelRequest, error) {
	query := url.Values{}
	setTime(query, "since", since)
	path := "/tunnel/missed"
	if c.Anonymous() {
		path = "/tunnel/missed_anonymous"
		query.Set("tunnel_key", c.token)
	} else {
		query["endpoint_ids[]"] = endpoints
	}
	list, err := call[api.Undelivered](ctx, c, http.MethodGet, path, query, nil)
	return list.Data, err
}

// RecoverGap says what was done about a gap, and returns what the server makes of it: it believes reports alone.
func (c *Client) RecoverGap(ctx context.Context, gap string, r api.RecoverGap) (api.Gap, error) {
	return data[api.Gap](ctx, c, http.MethodPost, join("tunnel", "gaps", gap, "recovery"), nil, r)
}

// ExchangeCode signs a command line in by the one-time code that a browser showed.
func (c *Client) ExchangeCode(ctx context.Context, code string) (api.SignedIn, error) {
	return data[api.SignedIn](ctx, c, http.MethodPost, "/cli_auth/exchange", nil, api.ExchangeCode{Code: code})
}

// do makes a call whose answer says no more than that it is a success.
func (c *Client) do(ctx context.Context, method, path string, body any) error {
	res, err := c.send(ctx, method, path, nil, body, nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}
