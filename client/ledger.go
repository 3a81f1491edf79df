package client

import (
	"context"
	"net/http"
	"net/url"

	"hookglass/api"
)

// Ledger returns what became of everything that arrived at an endpoint in a window, with a page of its events. from and
// to are times, or durations back from now; empty, they are an hour before to, and now.
func (c *Client) Ledger(ctx context.Context, endpoint, from, to string, page Page) (api.LedgerPage, error) {
	query := page.of(url.Values{})
	setText(query, "from", from)
	setText(query, "to", to)
	ledger, err := call[api.LedgerPage](ctx, c, http.MethodGet, join("endpoints", endpoint, "ledger"), query, nil)
	if err == nil && ledger.Data.EndpointID == "" {
		err = foreign(http.StatusOK, "")
	}
	return ledger, err
}
