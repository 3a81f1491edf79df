package hookglass

import (
	"slices"
	"time"
)

// ChannelKind is what a notification channel leads to.
type ChannelKind string

// The kinds (spec: decisions, section 11).
const (
	ChannelSlack    ChannelKind = "slack"
	ChannelDiscord  ChannelKind = "discord"
	ChannelTeams    ChannelKind = "teams"
	ChannelTelegram ChannelKind = "telegram"
	ChannelEmail    ChannelKind = "email"
	ChannelWebhook  ChannelKind = "webhook"
)

// ChannelKinds lists the kinds.
var ChannelKinds = []ChannelKind{ChannelSlack, ChannelDiscord, ChannelTeams, ChannelTelegram, ChannelEmail, ChannelWebhook}

// Channel is where the notifications of a workspace go.
type Channel struct {
	Num             int64 // the row; never shown
	ID              string
	WorkspaceID     int64
	AccountID       int64
	Name            string // unique in its workspace
	Kind            ChannelKind
	Enabled         bool
	Sealed          []byte // a ChannelConfig, see internal/seal
	Shown           ChannelHints
	Events          []ActivityType // of a webhook channel: the activity that is pushed to it
	Failures        int            // attempts that failed since the last that did not
	FailingFrom     time.Time      // when the first of them failed; zero: none
	DisabledAt      time.Time      // when the service disabled it; zero: it did not
	DisableReason   string         // empty: it did not
	LastError       string         // of the last attempt that failed; empty: none since the last that did not
	LastDeliveredAt time.Time      // zero: never
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// Reasons for which the service disables a channel by itself.
const (
	DisabledFailing = "failing" // it failed for too long
	DisabledGone    = "gone"    // it answered 410
)

// ChannelConfig is what people set on a channel, credentials included. Each kind has its own fields (spec: decisions,
// section 13).
type ChannelConfig struct {
	WebhookURL string   `json:",omitempty"` // slack, discord, teams
	BotToken   string   `json:",omitempty"` // telegram
	ChatID     string   `json:",omitempty"` // telegram
	To         []string `json:",omitempty"` // email
	URL        string   `json:",omitempty"` // webhook
	Secret     string   `json:",omitempty"` // webhook; whsec_ and base64, or text
}

// ChannelHints is the part of a configuration that may be seen.
type ChannelHints struct {
	Host   string   `json:",omitempty"` // slack, discord, teams
	ChatID string   `json:",omitempty"`
	To     []string `json:",omitempty"`
	URL    string   `json:",omitempty"` // without its query
}

// Subscribable is the activity that webhook channels may follow: all of it.
var Subscribable = []ActivityType{ActivityWebhookReceived, ActivityEmailReceived, ActivityForwardingFailed, ActivityAlertTriggered}

// Disabled reports whether nothing is sent to the channel, because a person disabled it or because it kept failing.
// Messages that wait meanwhile are dropped: an enabled channel starts over.
func (c Channel) Disabled() bool { return !c.Enabled || !c.DisabledAt.IsZero() }

// FollowsCaptures reports whether captured events are pushed to the channel.
func (c Channel) FollowsCaptures() bool {
	return slices.Contains(c.Events, ActivityWebhookReceived) || slices.Contains(c.Events, ActivityEmailReceived)
}

// Message is what a channel is told. Chat and mail show Title and Text; a webhook gets the rest, as the activity feed
// has it.
type Message struct {
	ID         string // the same for every attempt
	Type       string
	At         time.Time
	EndpointID EndpointID
	EventID    EventID // empty: not applicable
	Title      string
	Text       string
	Data       map[string]any
}

// Types of messages besides those of activity.
const (
	MessageTest          = "channel.test"
	MessageAction        = "action.notification"
	MessageAlertResolved = "alert.resolved"
)

// Prefixes of ids of channels and their messages.
const (
	PrefixChannel = "chan"
	PrefixMessage = "msg"
)
