package client

import (
	"context"
	"net/http"
	"strconv"

	"hookglass/api"
)

func secretsOf(workspace int64, id ...string) string {
	return join(append([]string{"workspaces", strconv.FormatInt(workspace, 10), "action_secrets"}, id...)...)
}

// ActionSecrets returns the action secrets of a workspace, oldest first and without their values.
func (c *Client) ActionSecrets(ctx context.Context, workspace int64) ([]api.ActionSecret, error) {
	return all[api.ActionSecret](ctx, c, secretsOf(workspace))
}

// CreateActionSecret creates an action secret.
func (c *Client) CreateActionSecret(ctx context.Context, workspace int64, secret api.NewActionSecret) (api.ActionSecret, error) {
	return data[api.ActionSecret](ctx, c, http.MethodPost, secretsOf(workspace), nil, api.CreateActionSecret{ActionSecret: &secret})
}

// UpdateActionSecret changes the fields that are set. The name cannot change.
func (c *Client) UpdateActionSecret(ctx context.Context, workspace int64, id string, change api.ActionSecretChange) (api.ActionSecret, error) {
	return data[api.ActionSecret](ctx, c, http.MethodPatch, secretsOf(workspace, id), nil, api.UpdateActionSecret{ActionSecret: &change})
}

// DeleteActionSecret deletes an action secret. While a step names it, it answers secret_in_use with References.
func (c *Client) DeleteActionSecret(ctx context.Context, workspace int64, id string) error {
	_, err := data[api.Deleted](ctx, c, http.MethodDelete, secretsOf(workspace, id), nil, nil)
	return err
}
