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

// Anonymous reports whether the client's token is the key of a temporary endpoint: it then speaks for that endpoint
// alone.
func (c *Client) Anonymous() bool { return hookglass.IsTunnelKey(c.token) }

// ConnectTunnel gets a ticket, which opens one socket within 30 seconds. With the key of a temporary endpoint the
// endpoint is the key's, whatever r names.
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

// ReportDelivery tells what became of an event here. The same report may be sent again: it counts once.
func (c *Client) ReportDelivery(ctx context.Context, r api.DeliveryReport) error {
	path := "/tunnel/delivery_reports"
	if c.Anonymous() {
		path, r.TunnelKey = "/tunnel/delivery_reports_anonymous", c.token
	}
	return c.told(ctx, path, r)
}

// ReportReplay tells what came of a replay through the tunnel.
func (c *Client) ReportReplay(ctx context.Context, r api.TunnelReplayResult) error {
	return c.told(ctx, "/tunnel/replay_results", r)
}

// maxGaps bounds a list of gaps: no client makes up for more at a time.
const maxGaps = 10_000

// Gaps returns all gaps of endpoints, 100 at most, that are not recovered, oldest first: the first maxGaps of them.
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

// UndeliveredIn returns a page of the events of a gap that no report says were delivered, oldest first; cursor is the
// NextCursor of the page before.
func (c *Client) UndeliveredIn(ctx context.Context, gap api.Gap, page Page) (api.Undelivered, error) {
	query := page.of(url.Values{"endpoint_ids[]": {gap.EndpointID}, "gap_id": {gap.ID}})
	return call[api.Undelivered](ctx, c, http.MethodGet, "/tunnel/undelivered", query, nil)
}

// UndeliveredSince returns a page of the events since a time that no report says were delivered, oldest first.
func (c *Client) UndeliveredSince(ctx context.Context, endpoints []string, since time.Time, page Page) (api.Undelivered, error) {
	query := page.of(url.Values{"endpoint_ids[]": endpoints})
	setTime(query, "since", since)
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

// told makes a call of which no more is to be known than that the server took it. What a page between here and there
// answers, as that of a network that wants a login first, is no such word.
func (c *Client) told(ctx context.Context, path string, body any) error {
	answer, err := call[struct {
		Data json.RawMessage `json:"data"`
	}](ctx, c, http.MethodPost, path, nil, body)
	if err == nil && len(answer.Data) == 0 {
		err = foreign(http.StatusOK, "")
	}
	return err
}
