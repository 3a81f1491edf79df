package hookglass

import "time"

// AlertKind is what an alert watches for.
type AlertKind string

// The kinds (spec: decisions, section 11).
const (
	AlertMissingWebhook AlertKind = "missing_webhook"
	AlertErrorResponse  AlertKind = "error_response"
	AlertKeywordMatch   AlertKind = "keyword_match"
	AlertVolumeSpike    AlertKind = "volume_spike"
	AlertSchemaDrift    AlertKind = "schema_drift" // additive to section 11
)

// AlertKinds lists the kinds.
var AlertKinds = []AlertKind{AlertMissingWebhook, AlertErrorResponse, AlertKeywordMatch, AlertVolumeSpike, AlertSchemaDrift}

// AlertConfig is how an alert watches. Each kind has its own fields; the others are zero.
type AlertConfig struct {
	WindowMinutes int64   `json:",omitempty"` // missing_webhook, error_response, volume_spike
	Threshold     int64   `json:",omitempty"` // error_response: bad deliveries in the window
	Keyword       string  `json:",omitempty"` // keyword_match
	Field         string  `json:",omitempty"` // keyword_match: one of KeywordFields, or an RFC 6901 pointer into the body
	Factor        float64 `json:",omitempty"` // volume_spike: times the average before
	MinCount      int64   `json:",omitempty"` // volume_spike: fewer events are no spike
	EventType     string  `json:",omitempty"` // schema_drift: of this event type alone; empty: of any
}

// Bounds of an alert (spec: decisions, section 13, "Alerts").
const (
	MaxAlertWindow  = 1440 // minutes
	MaxThreshold    = 1_000_000
	MinSpikeFactor  = 1.01
	MaxSpikeFactor  = 1_000_000
	MaxKeyword      = 200 // characters
	MaxKeywordField = 500 // characters of a pointer
	MaxAlerts       = 100 // of an endpoint
	MaxAlertTargets = 20  // channels of an alert

	KeywordQuiet = 10 * time.Minute // keyword_match returns to ok after so long without a match
)

// The parts of an event that keyword_match looks into.
const (
	KeywordAny       = "any"
	KeywordBody      = "body"
	KeywordHeaders   = "headers"
	KeywordPath      = "path"
	KeywordQuery     = "query"
	KeywordEventType = "event_type"
	KeywordSubject   = "subject"
	KeywordFrom      = "from"
	KeywordTo        = "to"
)

// KeywordFields lists them.
var KeywordFields = []string{
	KeywordAny, KeywordBody, KeywordHeaders, KeywordPath, KeywordQuery, KeywordEventType, KeywordSubject, KeywordFrom, KeywordTo,
}

// AlertState is where an alert is.
type AlertState string

// The states.
const (
	AlertOK        AlertState = "ok"
	AlertTriggered AlertState = "triggered"
)

// Alert watches an endpoint.
type Alert struct {
	Num         int64 // the row; never shown
	ID          string
	AccountID   int64
	EndpointNum int64
	EndpointID  EndpointID
	Name        string
	Kind        AlertKind
	Enabled     bool
	Config      AlertConfig
	ChannelIDs  []string // in the order of their making
	State       AlertState
	ChangedAt   time.Time // when State last changed
	ArmedAt     time.Time // when it began to watch: made, enabled, or set to watch for something else
	Version     int64     // counts what people changed
	Cursor      int64     // keyword_match: the seq that it has read to
	MatchedAt   time.Time // keyword_match: when the last match was received; zero: none
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Incident is one time in which an alert was triggered.
type Incident struct {
	Num        int64 // the row; never shown
	ID         string
	EventID    EventID // that triggered it; empty: none did
	Summary    string
	Resolution string // empty: it goes on
	StartedAt  time.Time
	ResolvedAt time.Time // zero: it goes on
}

// Prefixes of ids of alerts.
const (
	PrefixAlert    = "alrt"
	PrefixIncident = "inc"
)

// AlertJob rolls up figures and judges all alerts.
type AlertJob struct{}

// Kind implements Job.
func (AlertJob) Kind() string { return "alerts" }

// RetagJob removes a tag from the events of a workspace that carry it under an old name, or renames it there. It
// works in batches.
type RetagJob struct {
	WorkspaceID int64
	TagID       int64 // 0: enqueued by an earlier version, which knew only the names
	From        string
	To          string // the new name when the job was enqueued; empty: the tag is removed
	After       int64  // the Seq of the last event that the job has visited
}

// Kind implements Job.
func (RetagJob) Kind() string { return "retag" }
