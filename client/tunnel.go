package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"hookglass"
	"hookglass/api"
)

// Anonymous reports whether the client's token is the key of a temporary endpoint, which is valid for that endpoint
// only.
func (c *Client) Anonymous() bool { return hookglass.IsTunnelKey(c.token) }

// ConnectTunnel gets a ticket, which opens one socket within 30 seconds. The key of a temporary endpoint determines the
// endpoint, whatever r names.
func (c *Client) ConnectTunnel(ctx context.Context, r api.ConnectTunnel) (api.TunnelTicket, error) {
	path, body := "/tunnel/connect", any(r)
	if c.Anonymous() {
		path, body = "/tunnel/connect_anonymous", api.ConnectTunnelAnonymous{
			TunnelKey: c.token, InstallationID: r.InstallationID, ClientName: r.ClientName, ClientMetadata: r.ClientMetadata, Capabilities: r.Capabilities,
		}
	}
	ticket, err := call[api.TunnelTicket](ctx, c, http.MethodPost, path, nil, body)
	if err == nil && ticket.Ticket == "" {
		err = foreign(http.StatusOK, "")
	}
	return ticket, err
}

// ReportDelivery reports the delivery of an event. The same report may be sent repeatedly: it counts once.
func (c *Client) ReportDelivery(ctx context.Context, r api.DeliveryReport) error {
	path := "/tunnel/delivery_reports"
	if c.Anonymous() {
		path, r.TunnelKey = "/tunnel/delivery_reports_anonymous", c.token
	}
	return c.told(ctx, path, r)
}

// ReportReplay reports the result of a replay through the tunnel.
func (c *Client) ReportReplay(ctx context.Context, r api.TunnelReplayResult) error {
	return c.told(ctx, "/tunnel/replay_results", r)
}

// maxGaps bounds a list of gaps, which is more than any client recovers at a time.
const maxGaps = 10_000

// Gaps returns the unrecovered gaps of at most 100 endpoints, oldest first: the first maxGaps of them.
func (c *Client) Gaps(ctx context.Context, endpoints []string) (all []api.Gap, err error) {
	for query := (url.Values{"endpoint_ids[]": endpoints}); ; {
		list, err := call[api.List[api.Gap]](ctx, c, http.MethodGet, "/tunnel/gaps", query, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Data...)
		if list.Meta.NextCursor == nil || len(list.Data) == 0 || len(all) >= maxGaps {
			return all, nil
		}
		query.Set("cursor", *list.Meta.NextCursor)
		query.Set("limit", "100")
	}
}

// UndeliveredIn returns a page of the events of a gap that no report marks as delivered, oldest first; cursor is the
// NextCursor of the page before.
func (c *Client) UndeliveredIn(ctx context.Context, gap api.Gap, page Page) (api.Undelivered, error) {
	query := page.of(url.Values{"endpoint_ids[]": {gap.EndpointID}, "gap_id": {gap.ID}})
	return call[api.Undelivered](ctx, c, http.MethodGet, "/tunnel/undelivered", query, nil)
}

// UndeliveredSince returns a page of the events since a time that no report marks as delivered, oldest first.
func (c *Client) UndeliveredSince(ctx context.Context, endpoints []string, since time.Time, page Page) (api.Undelivered, error) {
	query := page.of(url.Values{"endpoint_ids[]": endpoints})
	setTime(query, "since", since)
	return call[api.Undelivered](ctx, c, http.MethodGet, "/tunnel/undelivered", query, nil)
}

// Missed returns the events since a time that no report marks as delivered, oldest first, at most 500.
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

// RecoverGap reports the recovery of a gap, and returns the gap's new state, which the server computes from delivery
// reports.
func (c *Client) RecoverGap(ctx context.Context, gap string, r api.RecoverGap) (api.Gap, error) {
	return data[api.Gap](ctx, c, http.MethodPost, join("tunnel", "gaps", gap, "recovery"), nil, r)
}

// ExchangeCode signs in with the one-time code that the browser showed.
func (c *Client) ExchangeCode(ctx context.Context, code string) (api.SignedIn, error) {
	return data[api.SignedIn](ctx, c, http.MethodPost, "/cli_auth/exchange", nil, api.ExchangeCode{Code: code})
}

// told makes a call whose only result is that the server accepted it. The page of another server, such as a network's
// login page, does not count as that.
func (c *Client) told(ctx context.Context, path string, body any) error {
	answer, err := call[struct {
		Data json.RawMessage `json:"data"`
	}](ctx, c, http.MethodPost, path, nil, body)
	if err == nil && len(answer.Data) == 0 {
		err = foreign(http.StatusOK, "")
	}
	return err
}
