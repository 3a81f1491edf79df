package client

import (
	"context"
	"net/http"
	"net/url"

	"hookglass/api"
)

// ReleaseMail sends a caught mail on, and returns the relay's answer.
func (c *Client) ReleaseMail(ctx context.Context, endpoint, id string, to []string) (api.Release, error) {
	made, err := data[api.Release](ctx, c, http.MethodPost, join("endpoints", endpoint, "requests", id, "releases"), nil, api.ReleaseMail{To: to})
	if err == nil && made.Status == "" {
		err = foreign(http.StatusCreated, "")
	}
	return made, err
}

// Releases returns a page of the releases of a mail, newest first.
func (c *Client) Releases(ctx context.Context, endpoint, id string, page Page) (api.List[api.Release], error) {
	return call[api.List[api.Release]](ctx, c, http.MethodGet, join("endpoints", endpoint, "requests", id, "releases"), page.of(url.Values{}), nil)
}
