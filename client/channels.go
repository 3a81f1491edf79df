package client

import (
	"context"
	"net/http"

	"hookglass/api"
)

// NotificationChannels returns the notification channels of all workspaces that the token sees, oldest first.
func (c *Client) NotificationChannels(ctx context.Context) ([]api.NotificationChannel, error) {
	return all[api.NotificationChannel](ctx, c, "/notification_channels")
}

// CreateNotificationChannel creates a notification channel. For one of kind webhook without a secret, the server
// generates one, which only this answer shows.
func (c *Client) CreateNotificationChannel(ctx context.Context, n api.NewNotificationChannel) (api.NotificationChannel, error) {
	return data[api.NotificationChannel](ctx, c, http.MethodPost, "/notification_channels", nil, api.CreateNotificationChannel{NotificationChannel: &n})
}

// NotificationChannel returns a notification channel, without its credentials.
func (c *Client) NotificationChannel(ctx context.Context, id string) (api.NotificationChannel, error) {
	return data[api.NotificationChannel](ctx, c, http.MethodGet, join("notification_channels", id), nil, nil)
}

// UpdateNotificationChannel changes the fields that are set. Enabling a channel that the service disabled re-enables
// it.
func (c *Client) UpdateNotificationChannel(ctx context.Context, id string, change api.NotificationChannelChange) (api.NotificationChannel, error) {
	return data[api.NotificationChannel](ctx, c, http.MethodPatch, join("notification_channels", id), nil, api.UpdateNotificationChannel{NotificationChannel: &change})
}

// DeleteNotificationChannel deletes a notification channel with its waiting messages. The answer lists the steps of
// actions that name it, which fail from then on.
func (c *Client) DeleteNotificationChannel(ctx context.Context, id string) (api.DeletedChannel, error) {
	return data[api.DeletedChannel](ctx, c, http.MethodDelete, join("notification_channels", id), nil, nil)
}

// TestNotificationChannel sends a message to a notification channel at once. A failed delivery is reported in the
// answer and not as an error.
func (c *Client) TestNotificationChannel(ctx context.Context, id string) (api.ChannelTest, error) {
	return data[api.ChannelTest](ctx, c, http.MethodPost, join("notification_channels", id, "test"), nil, nil)
}
