package client

import (
	"context"
	"net/http"

	"hookglass/api"
)

// Declare makes a workspace what the declaration says, all of it or nothing, or says what that would change.
func (c *Client) Declare(ctx context.Context, d api.Declaration, dryRun bool) (api.Declared, error) {
	return data[api.Declared](ctx, c, http.MethodPost, "/declarations", nil, api.Declare{Declaration: &d, DryRun: api.Some(dryRun)})
}
