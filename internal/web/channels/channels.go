// Package channels renders the pages of the notification channels of each workspace. They never hold a credential,
// except for the signing secret of a new webhook channel, once, right after its creation.
package channels

import (
	"embed"
	"slices"
	"strconv"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Files holds the style.
//
//go:embed channels.css
var Files embed.FS

// Model is the content of the list page.
type Model struct {
	layout.Frame
	Workspaces []Workspace
	Problems   map[hookglass.ChannelKind]string // why this installation cannot send to a kind
	Now        time.Time
	Notice     string
	Bereft     []hookglass.StepReference // steps that use the channel just deleted
	Refused    string                    // why the form as a whole was refused
	Secret     string                    // of the webhook channel just created; shown only once
	SecretOf   hookglass.Channel
	Form       Form
}

// EditModel is the content of the page of one channel.
type EditModel struct {
	layout.Frame
	Channel    hookglass.Channel
	Problem    string // why this installation cannot send to its kind
	Now        time.Time
	Notice     string
	Refused    string
	References []hookglass.StepReference // the steps because of which it was refused
	Stale      bool                      // the channel changed after the form was shown
	Test       *Test
	Form       Form
}

// Test is the result of a test message.
type Test struct {
	Delivered  bool
	StatusCode int    // 0: no response, or the kind has none
	Message    string // what failed; empty: nothing
}

// Workspace is a workspace with its channels.
type Workspace struct {
	hookglass.Workspace
	Channels []hookglass.Channel
}

// Form holds what was typed, except for credentials, and its faults.
type Form struct {
	Workspace int64
	Name      string
	Kind      hookglass.ChannelKind
	Enabled   bool
	ChatID    string
	To        string // one address per line
	Events    []hookglass.ActivityType
	Seen      string // the mark of the stored channel when the form was shown; empty for a new one
	Faults    []hookglass.FieldError

	WebhookURL, URL string // as typed; the stored URL is not shown
}

// NewForm returns the form of a stored channel.
func NewForm(c hookglass.Channel) Form {
	f := Form{Name: c.Name, Kind: c.Kind, Enabled: !c.Disabled(), ChatID: c.Shown.ChatID, To: strings.Join(c.Shown.To, "\n"), Events: c.Events}
	f.Seen = layout.Mark(f)
	return f
}

// fault returns what is wrong with a field or one of its parts (to.1 is part of to).
func (f Form) fault(field string) string {
	for _, x := range f.Faults {
		name := strings.TrimPrefix(strings.TrimPrefix(x.Field, "notification_channel."), "config.")
		first, _, _ := strings.Cut(name, ".")
		if first == field {
			return words[field] + " " + x.Message + "."
		}
	}
	return ""
}

var words = map[string]string{
	"name": "The name", "kind": "The kind", "webhook_url": "The webhook URL", "bot_token": "The bot token", "chat_id": "The chat", "to": "The list of addresses",
	"url": "The URL", "secret": "The secret", "events": "The activity", "workspace_id": "The workspace",
}

// other returns the fault that belongs to no field.
func (f Form) other() string {
	for _, x := range f.Faults {
		if x.Field == "notification_channel" {
			return "The channel " + x.Message + "."
		}
	}
	return ""
}

func (f Form) follows(t hookglass.ActivityType) bool { return slices.Contains(f.Events, t) }

// eventName returns the name of a type of activity.
func eventName(t hookglass.ActivityType) string {
	switch t {
	case hookglass.ActivityWebhookReceived:
		return "Webhook received"
	case hookglass.ActivityEmailReceived:
		return "Email received"
	case hookglass.ActivityForwardingFailed:
		return "Forwarding failed"
	}
	return "Alert triggered"
}

// leads returns the visible part of a channel's destination.
func leads(c hookglass.Channel) string {
	switch c.Kind {
	case hookglass.ChannelTelegram:
		return "chat " + c.Shown.ChatID
	case hookglass.ChannelEmail:
		return strings.Join(c.Shown.To, ", ")
	case hookglass.ChannelWebhook:
		return c.Shown.URL
	}
	return c.Shown.Host
}

// state returns the state of a channel, and the class of its badge. problem says why this installation cannot send to
// its kind.
func state(c hookglass.Channel, problem string) (word, class string) {
	switch {
	case c.Disabled():
		return "disabled", "badge"
	case problem != "":
		return "cannot send", "badge bad"
	case c.Failures > 0:
		return "failing", "badge bad"
	}
	return "active", "badge good"
}

// why says why the service disabled a channel. It is empty if it did not.
func why(c hookglass.Channel) string {
	switch c.DisableReason {
	case "":
		return ""
	case hookglass.DisabledGone:
		return "Disabled because it responded 410 Gone. Enable it to try again."
	}
	return "Disabled after a day of failed deliveries. Enable it to try again."
}

// failed says why the last message was not delivered. It is empty where that is the known problem of the installation.
func failed(c hookglass.Channel, problem string) string {
	if problem != "" && strings.Contains(c.LastError, problem) {
		return ""
	}
	return c.LastError
}

func path(c hookglass.Channel) string { return "/channels/" + c.ID }

func number(n int64) string { return strconv.FormatInt(n, 10) }
