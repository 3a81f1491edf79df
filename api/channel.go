package api

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"hookglass"
)

// NotificationChannel is where notifications of a workspace go. Credentials are never shown.
type NotificationChannel struct {
	ID              string      `json:"id" example:"chan_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	WorkspaceID     int64       `json:"workspace_id" example:"1"`
	Name            string      `json:"name" example:"On call"`
	Kind            string      `json:"kind" enum:"slack,discord,teams,telegram,email,webhook" example:"slack"`
	Enabled         bool        `json:"enabled" example:"true"`
	Config          ChannelView `json:"config"`
	State           string      `json:"state" enum:"active,failing,disabled" doc:"disabled: by people, or by the service for the disabled_reason." example:"active"`
	DisabledAt      *Time       `json:"disabled_at" doc:"When the service disabled it; null: it did not. Setting enabled to true brings it back." example:"2026-11-20T10:15:30.123456Z"`
	DisabledReason  *string     `json:"disabled_reason" enum:"failing,gone" doc:"failing: it took nothing for a day; gone: it answered 410." example:"failing"`
	Failures        int         `json:"consecutive_failures" doc:"Attempts that failed since the last that did not." example:"0"`
	LastError       *string     `json:"last_error" doc:"Of the last attempt, where it failed." example:"The channel answered 404."`
	LastDeliveredAt *Time       `json:"last_delivered_at" example:"2026-11-20T10:15:30.123456Z"`
	Problem         *string     `json:"problem" doc:"Why this installation cannot send to channels of this kind; null: it can." example:"This installation has no mail relay."`
	Secret          string      `json:"secret,omitempty" doc:"The signing secret of a webhook channel that was created without one; shown in the answer to its creation alone."`
	CreatedAt       Time        `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	UpdatedAt       Time        `json:"updated_at" example:"2026-11-20T10:15:30.123456Z"`
}

// ChannelView is the part of a channel's configuration that is shown; each kind has its own fields.
type ChannelView struct {
	Host   string    `json:"host,omitempty" doc:"slack, discord and teams: where the webhook URL leads." example:"hooks.slack.com"`
	ChatID string    `json:"chat_id,omitempty" doc:"telegram."`
	To     []string  `json:"to,omitempty" doc:"email."`
	URL    string    `json:"url,omitempty" doc:"webhook; without its query."`
	Events *[]string `json:"events,omitempty" doc:"webhook: the activity that is pushed to it."`
}

// CreateNotificationChannel is the body of POST /notification_channels.
type CreateNotificationChannel struct {
	_                   struct{}                `additionalProperties:"false"`
	NotificationChannel *NewNotificationChannel `json:"notification_channel,omitempty" required:"true"`
}

// NewNotificationChannel describes a new channel.
type NewNotificationChannel struct {
	_           struct{}                  `additionalProperties:"false"`
	Name        Optional[string]          `json:"name,omitzero" required:"true" minLength:"1" maxLength:"200" doc:"Unique in its workspace; steps of actions may use it as well as the id." example:"On call"`
	Kind        Optional[string]          `json:"kind,omitzero" required:"true" enum:"slack,discord,teams,telegram,email,webhook" example:"slack"`
	Enabled     Optional[bool]            `json:"enabled,omitzero" doc:"Default true." example:"true"`
	Config      Optional[ChannelSettings] `json:"config,omitzero" required:"true"`
	WorkspaceID Optional[int64]           `json:"workspace_id,omitzero" null:"true" minimum:"1" doc:"A workspace of the account; default is the token's own, or the account's oldest."`
}

// UpdateNotificationChannel is the body of PATCH /notification_channels/{channel_id}.
type UpdateNotificationChannel struct {
	_                   struct{}                   `additionalProperties:"false"`
	NotificationChannel *NotificationChannelChange `json:"notification_channel,omitempty" required:"true"`
}

// NotificationChannelChange lists the fields to change; absent ones stay, also within config.
type NotificationChannelChange struct {
	_       struct{}                  `additionalProperties:"false"`
	Name    Optional[string]          `json:"name,omitzero" minLength:"1" maxLength:"200" example:"Night shift"`
	Kind    Optional[string]          `json:"kind,omitzero" doc:"May not change."`
	Enabled Optional[bool]            `json:"enabled,omitzero" doc:"true also brings back a channel that the service disabled; what waited for it is not sent." example:"true"`
	Config  Optional[ChannelSettings] `json:"config,omitzero"`
}

// ChannelSettings are how a channel is reached; each kind has its own fields. Credentials are write-only.
type ChannelSettings struct {
	_          struct{}           `additionalProperties:"false"`
	WebhookURL Optional[string]   `json:"webhook_url,omitzero" pattern:"^[Hh][Tt][Tt][Pp][Ss]?://" maxLength:"2048" doc:"slack, discord and teams: the incoming webhook. Write-only." example:"https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"`
	BotToken   Optional[string]   `json:"bot_token,omitzero" minLength:"1" maxLength:"256" doc:"telegram: the bot's token. Write-only."`
	ChatID     Optional[ChatID]   `json:"chat_id,omitzero" also:"integer" doc:"telegram: the chat's number, or @name."`
	To         Optional[[]string] `json:"to,omitzero" minItems:"1" maxItems:"20" doc:"email: 1 to 20 addresses."`
	URL        Optional[string]   `json:"url,omitzero" pattern:"^[Hh][Tt][Tt][Pp][Ss]?://" maxLength:"2048" doc:"webhook: where messages are posted to."`
	Secret     Optional[string]   `json:"secret,omitzero" minLength:"1" maxLength:"256" doc:"webhook: what messages are signed with (Standard Webhooks): whsec_ and base64 of 24 to 64 bytes, or any other text. Without one it is made and shown once. Write-only."`
	Events     Optional[[]string] `json:"events,omitzero" enum:"webhook.received,email.received,forwarding.failed,alert.triggered" doc:"webhook: activity that is pushed to it: webhook.received, email.received, forwarding.failed, alert.triggered."`
}

// ChatID is a string, or a number, which is converted to a string.
type ChatID string

// UnmarshalJSONFrom implements the decoder's interface.
func (c *ChatID) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	text, err := textOrNumber(dec)
	*c = ChatID(text)
	return err
}

// textOrNumber reads a string, or a number as a string.
func textOrNumber(dec *jsontext.Decoder) (string, error) {
	if k := dec.PeekKind(); k != '"' && k != '0' {
		return "", errors.New("neither text nor a number")
	}
	token, err := dec.ReadToken()
	return token.String(), err
}

// ChannelTest is the result of a test message.
type ChannelTest struct {
	Delivered  bool             `json:"delivered" example:"true"`
	StatusCode *int             `json:"status_code" doc:"That the channel answered; null for mail, and where no answer came." example:"200"`
	Error      *DeliveryFailure `json:"error" doc:"null when there was a complete answer, whatever its status."`
}

// FromChannel converts a channel; problem is why nothing can be sent to its kind, or "".
func FromChannel(c hookglass.Channel, problem string) NotificationChannel {
	state := "active"
	switch {
	case c.Disabled():
		state = "disabled"
	case c.Failures > 0:
		state = "failing"
	}
	view := ChannelView{Host: c.Shown.Host, ChatID: c.Shown.ChatID, To: c.Shown.To, URL: c.Shown.URL}
	if c.Kind == hookglass.ChannelWebhook {
		events := make([]string, len(c.Events))
		for i, e := range c.Events {
			events[i] = string(e)
		}
		view.Events = &events
	}
	return NotificationChannel{
		ID: c.ID, WorkspaceID: c.WorkspaceID, Name: c.Name, Kind: string(c.Kind), Enabled: !c.Disabled(), Config: view, State: state,
		DisabledAt: at(c.DisabledAt), DisabledReason: nonzero(c.DisableReason), Failures: c.Failures, LastError: nonzero(c.LastError),
		LastDeliveredAt: at(c.LastDeliveredAt), Problem: nonzero(problem), CreatedAt: Time{c.CreatedAt}, UpdatedAt: Time{c.UpdatedAt},
	}
}
