package rest

import (
	"context"
	"net/http"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/alert"
	"hookglass/internal/store"
)

type channelPath struct {
	ID string `path:"channel_id" doc:"The notification channel's id." example:"chan_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
}

func (s *service) channels(t *table) {
	const tag, base = "Notification channels", "/notification_channels"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handle(t, operation{
		id: "list-notification-channels", method: http.MethodGet, path: base, tag: tag, summary: "List notification channels", text: "Oldest first.",
		access: read, errors: []int{404},
	}, s.listChannels)
	handleBody(t, operation{
		id: "create-notification-channel", method: http.MethodPost, path: base, tag: tag, summary: "Create a notification channel", access: write, status: http.StatusCreated,
		text: "config has webhook_url for slack, discord and teams; bot_token and chat_id for telegram; to for email; url, secret and events for webhook. " +
			"A webhook channel gets each message as a POST of {id, type, timestamp, occurred_at, endpoint_id, request_id, data}, signed by Standard Webhooks " +
			"(webhook-id, webhook-timestamp, webhook-signature); the events that it names are pushed to it as they happen in its workspace, in their order and at least " +
			"once each. A channel that took nothing for a day is disabled.",
	}, s.createChannel)
	handle(t, operation{
		id: "get-notification-channel", method: http.MethodGet, path: base + "/{channel_id}", tag: tag, summary: "Read a notification channel", access: read,
		text: "With its state: when something last arrived, the last error, and whether the service disabled it. Credentials are never shown.",
	}, s.getChannel)
	handleBody(t, operation{
		id: "update-notification-channel", method: http.MethodPatch, path: base + "/{channel_id}", tag: tag, summary: "Change a notification channel", access: write,
		text:   "What the body does not name stays as it is, credentials too. While a step of an action names the channel by its name, another name is 409, with references.",
		errors: []int{http.StatusConflict},
	}, s.updateChannel)
	handle(t, operation{
		id: "delete-notification-channel", method: http.MethodDelete, path: base + "/{channel_id}", tag: tag, summary: "Delete a notification channel", access: write,
		text: "What waits for it is not sent, and alerts no longer tell it. Steps of actions that name it, which the answer lists, fail until they name another.",
	}, s.deleteChannel)
	handle(t, operation{
		id: "test-notification-channel", method: http.MethodPost, path: base + "/{channel_id}/test", tag: tag, summary: "Send a test message", access: write,
		text: "At once, and also to a channel that is disabled.", limit: rate{30, time.Minute},
	}, s.testChannel)
}

func (s *service) listChannels(ctx context.Context, in *workspaceList) (api.List[api.NotificationChannel], error) {
	return listed(ctx, s, ofChannels, in, func(v *store.View, behind int64, most int) ([]hookglass.Channel, error) {
		if err := reaches(v, in.WorkspaceID); err != nil {
			return nil, err
		}
		return v.Channels(in.WorkspaceID, behind, most)
	}, func(c hookglass.Channel) int64 { return c.Num }, s.channel)
}

func (s *service) channel(c hookglass.Channel) api.NotificationChannel {
	return api.FromChannel(c, s.Alerts.Problem(c.Kind))
}

func (s *service) createChannel(ctx context.Context, _ *struct{}, body *api.CreateNotificationChannel) (out api.One[api.NotificationChannel], err error) {
	b := body.NotificationChannel
	if b == nil {
		return out, hookglass.Invalid("notification_channel", "is required")
	}
	d, err := channelDraft(api.NotificationChannelChange{Name: b.Name, Kind: b.Kind, Enabled: b.Enabled, Config: b.Config}, b.WorkspaceID)
	if err != nil {
		return out, err
	}
	c, secret, err := s.Alerts.CreateChannel(ctx, asker(ctx), d)
	out.Data = s.channel(c)
	out.Data.Secret = secret
	return out, err
}

func (s *service) getChannel(ctx context.Context, in *channelPath) (api.One[api.NotificationChannel], error) {
	return single(ctx, s, func(v *store.View) (hookglass.Channel, error) { return v.Channel(in.ID) }, s.channel)
}

func (s *service) updateChannel(ctx context.Context, in *channelPath, body *api.UpdateNotificationChannel) (out api.One[api.NotificationChannel], err error) {
	if body.NotificationChannel == nil {
		return out, hookglass.Invalid("notification_channel", "is required")
	}
	d, err := channelDraft(*body.NotificationChannel, api.Optional[int64]{})
	if err != nil {
		return out, err
	}
	c, err := s.Alerts.UpdateChannel(ctx, asker(ctx), in.ID, d)
	out.Data = s.channel(c)
	return out, err
}

func (s *service) deleteChannel(ctx context.Context, in *channelPath) (out api.One[api.DeletedChannel], err error) {
	steps, err := s.Alerts.DeleteChannel(ctx, asker(ctx), in.ID)
	out.Data = api.DeletedChannel{Deleted: api.Deleted{ID: in.ID, Deleted: true}, References: api.FromStepReferences(steps)}
	return out, err
}

func (s *service) testChannel(ctx context.Context, in *channelPath) (out api.One[api.ChannelTest], err error) {
	sent, err := s.Alerts.TestChannel(ctx, asker(ctx), in.ID)
	out.Data = api.ChannelTest{Delivered: sent.Delivered, StatusCode: orNull(sent.StatusCode), Error: failureOf(sent.Failure)}
	return out, err
}

// channelDraft refuses null, which only the workspace may be.
func channelDraft(c api.NotificationChannelChange, workspace api.Optional[int64]) (d alert.ChannelDraft, err error) {
	var faults []hookglass.FieldError
	const in = "notification_channel."
	d.Name = given(&faults, in+"name", c.Name, false)
	d.Kind = (*hookglass.ChannelKind)(given(&faults, in+"kind", c.Kind, false))
	d.Enabled = given(&faults, in+"enabled", c.Enabled, false)
	d.WorkspaceID = workspaceOf(&faults, in+"workspace_id", workspace)
	if config := given(&faults, in+"config", c.Config, false); config != nil {
		d.Config = &alert.ChannelSettings{
			WebhookURL: given(&faults, in+"config.webhook_url", config.WebhookURL, false),
			BotToken:   given(&faults, in+"config.bot_token", config.BotToken, false),
			ChatID:     (*string)(given(&faults, in+"config.chat_id", config.ChatID, false)),
			URL:        given(&faults, in+"config.url", config.URL, false),
			Secret:     given(&faults, in+"config.secret", config.Secret, false),
			To:         given(&faults, in+"config.to", config.To, false),
			Events:     given(&faults, in+"config.events", config.Events, false),
		}
	}
	return d, hookglass.Refusal(faults, nil)
}
