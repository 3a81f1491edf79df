package client

import (
	"context"
	"io"
	"net/http"

	"hookglass/api"
)

// ShareBundle writes a bundle of requests that can be given away.
func (c *Client) ShareBundle(ctx context.Context, endpoint string, r api.CreateShareBundle, to io.Writer) error {
	res, err := c.unhurried().send(ctx, http.MethodPost, join("endpoints", endpoint, "share_bundles"), nil, r, nil)
	if err != nil {
		return err
	}
	return save(res, to)
}
