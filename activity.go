package hookglass

import "time"

// ActivityType names what happened (spec, "Events").
type ActivityType string

// The activity types.
const (
	ActivityWebhookReceived  ActivityType = "webhook.received"
	ActivityEmailReceived    ActivityType = "email.received"
	ActivityForwardingFailed ActivityType = "forwarding.failed"
	ActivityAlertTriggered   ActivityType = "alert.triggered"
)

// Activity is one line of an account's feed.
type Activity struct {
	Type       ActivityType
	OccurredAt time.Time
	EndpointID EndpointID
	EventID    EventID        // empty when not applicable
	Data       map[string]any // wire members, see the specification's "Events"
	Captured   *Event         // of a capture, or of a failure once it is named: the event as lists have it; else nil
}
