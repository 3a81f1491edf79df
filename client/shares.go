package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"hookglass/api"
)

// CreateShareLink creates a link that lets anybody read an event, without its secrets. Only this answer has its URL.
func (c *Client) CreateShareLink(ctx context.Context, endpoint, id string, l api.NewShareLink) (api.ShareLink, error) {
	return data[api.ShareLink](ctx, c, http.MethodPost, join("endpoints", endpoint, "requests", id, "share_links"), nil, api.CreateShareLink{ShareLink: &l})
}

// ShareLinks returns a page of the links to an event, newest first; id "" means all links of the endpoint.
func (c *Client) ShareLinks(ctx context.Context, endpoint, id string, page Page) (api.List[api.ShareLink], error) {
	path := join("endpoints", endpoint, "share_links")
	if id != "" {
		path = join("endpoints", endpoint, "requests", id, "share_links")
	}
	return call[api.List[api.ShareLink]](ctx, c, http.MethodGet, path, page.of(url.Values{}), nil)
}

// RevokeShareLink ends a link at once.
func (c *Client) RevokeShareLink(ctx context.Context, endpoint string, id int64) error {
	_, err := data[api.DeletedNumber](ctx, c, http.MethodDelete, join("endpoints", endpoint, "share_links", strconv.FormatInt(id, 10)), nil, nil)
	return err
}
