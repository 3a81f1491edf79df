// Package channels are the pages of the notification channels of each workspace. They never hold a credential, except
// for the signing secret of a webhook channel on the one page that answers its making.
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

// Files is the style.
//
//go:embed channels.css
var Files embed.FS

// Model is what the list shows.
type Model struct {
	layout.Frame
	Workspaces []Workspace
	Problems   map[hookglass.ChannelKind]string // why nothing can be sent to a kind here
	Now        time.Time
	Notice     string
	Bereft     []hookglass.StepReference // steps that name the channel that was just deleted
	Refused    string                    // why the form was refused, beside its fields
	Secret     string                    // of the webhook channel that was just made: shown this once
	SecretOf   hookglass.Channel
	Form       Form
}

// EditModel is what the page of one channel shows.
type EditModel struct {
	layout.Frame
	Channel    hookglass.Channel
	Problem    string // why nothing can be sent to its kind here
	Now        time.Time
	Notice     string
	Refused    string
	References []hookglass.StepReference // the steps for which it was refused
	Stale      bool                      // it was changed since its form was shown
	Test       *Test
	Form       Form
}

// Test is what came of a test message.
type Test struct {
	Delivered  bool
	StatusCode int    // 0: no answer came, or there is none to such a channel
	Message    string // what failed; empty: nothing
}

// Workspace is a workspace with its channels.
type Workspace struct {
	hookglass.Workspace
	Channels []hookglass.Channel
}

// Form is what was typed, except for credentials, and what is wrong with it.
type Form struct {
	Workspace int64
	Name      string
	Kind      hookglass.ChannelKind
	Enabled   bool
	ChatID    string
	To        string // an address a line
	Events    []hookglass.ActivityType
	Seen      string // the mark of what was stored when the form was shown; empty: nothing
	Faults    []hookglass.FieldError

	WebhookURL, URL string // as typed; what is stored is not shown
}

// NewForm is the form of a channel as it is.
func NewForm(c hookglass.Channel) Form {
	f := Form{Name: c.Name, Kind: c.Kind, Enabled: !c.Disabled(), ChatID: c.Shown.ChatID, To: strings.Join(c.Shown.To, "\n"), Events: c.Events}
	f.Seen = layout.Mark(f)
	return f
}

// fault says what is wrong with a field, or with one of its parts (to.1 is of to).
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

// other says what is wrong with what has no field.
func (f Form) other() string {
	for _, x := range f.Faults {
		if x.Field == "notification_channel" {
			return "The channel " + x.Message + "."
		}
	}
	return ""
}

func (f Form) follows(t hookglass.ActivityType) bool { return slices.Contains(f.Events, t) }

// eventName is how a kind of activity is called.
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

// leads is where a channel leads, as far as it may be seen.
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

// state is where a channel is, and how its mark looks.
func state(c hookglass.Channel) (word, class string) {
	switch {
	case c.Disabled():
		return "disabled", "badge"
	case c.Failures > 0:
		return "failing", "badge bad"
	}
	return "active", "badge good"
}

// why says why the service disabled a channel; empty: it did not.
func why(c hookglass.Channel) string {
	switch c.DisableReason {
	case "":
		return ""
	case hookglass.DisabledGone:
		return "Disabled because it responded 410 Gone. Enable it to try again."
	}
	return "Disabled after a day of failed deliveries. Enable it to try again."
}

func path(c hookglass.Channel) string { return "/channels/" + c.ID }

func number(n int64) string { return strconv.FormatInt(n, 10) }
