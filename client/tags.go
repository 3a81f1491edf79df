package client

import (
	"context"
	"net/http"
	"strconv"

	"hookglass/api"
)

// Tags returns the tags of all workspaces that the token sees, oldest first.
func (c *Client) Tags(ctx context.Context) ([]api.Tag, error) {
	return all[api.Tag](ctx, c, "/tags")
}

// CreateTag creates a tag. [Client.Tag] creates it, too, when it does not exist.
func (c *Client) CreateTag(ctx context.Context, t api.NewTag) (api.Tag, error) {
	return data[api.Tag](ctx, c, http.MethodPost, "/tags", nil, api.CreateTag{Tag: &t})
}

// UpdateTag changes the fields that are set; events with the tag get its new name.
func (c *Client) UpdateTag(ctx context.Context, id int64, change api.TagChange) (api.Tag, error) {
	return data[api.Tag](ctx, c, http.MethodPatch, join("tags", strconv.FormatInt(id, 10)), nil, api.UpdateTag{Tag: &change})
}

// DeleteTag deletes a tag and removes it from all events. It is refused while a step of an action uses it.
func (c *Client) DeleteTag(ctx context.Context, id int64) error {
	_, err := data[api.DeletedNumber](ctx, c, http.MethodDelete, join("tags", strconv.FormatInt(id, 10)), nil, nil)
	return err
}
