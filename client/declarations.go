package client

import (
	"context"
	"net/http"

	"hookglass/api"
)

// Declare changes a workspace to match a declaration, completely or not at all. A dry run returns what would change.
func (c *Client) Declare(ctx context.Context, d api.Declaration, dryRun bool) (api.Declared, error) {
	return data[api.Declared](ctx, c, http.MethodPost, "/declarations", nil, api.Declare{Declaration: &d, DryRun: api.Some(dryRun)})
}
