package hookglass

import (
	"regexp"
	"time"
)

// EndpointKind is what an endpoint catches.
type EndpointKind string

// The kinds.
const (
	KindWebhook EndpointKind = "webhook"
	KindEmail   EndpointKind = "email"
)

// EndpointProviders are the values of an endpoint's provider field (spec, "Endpoint").
var EndpointProviders = []string{"github", "stripe", "shopify", "slack", "twilio"}

// ResponseMode says where the answer to a sender comes from.
type ResponseMode string

// The response modes; the empty one means static.
const (
	ResponseStatic ResponseMode = "static"
	ResponseTunnel ResponseMode = "tunnel"
)

// ProviderConfig are the settings of spec: decisions, section 5.
type ProviderConfig struct {
	Handshake    *bool        // nil: on
	ResponseMode ResponseMode // empty: static
}

// Handshakes reports whether provider handshakes are answered.
func (c ProviderConfig) Handshakes() bool { return c.Handshake == nil || *c.Handshake }

// Response is an endpoint's custom answer; Body and header values may hold templates (spec: decisions, section 4).
type Response struct {
	Status  int
	Headers map[string]string
	Body    string
	Delay   time.Duration
}

// ResponseRule is a custom answer to the webhooks that match a condition.
type ResponseRule struct {
	When string // a query over what is known when an event arrives
	Response
}

// MaxResponseRules bounds the rules of an endpoint. The first rule that matches an event answers it.
const MaxResponseRules = 20

// Endpoint is an address that catches webhooks or mail.
type Endpoint struct {
	Num            int64 // the row, for the store and for announcements; never shown
	ID             EndpointID
	AccountID      int64 // 0 for a temporary endpoint nobody claimed
	WorkspaceID    int64 // 0 for a temporary endpoint nobody claimed
	Name           string
	Kind           EndpointKind
	CustomID       string // empty: none
	Provider       string // empty: none
	ProviderConfig ProviderConfig
	EmailLocalPart string
	Enabled        bool
	Response       *Response
	ResponseRules  []ResponseRule // tried before Response
	ResponseScript string         // as [ParseResponseScript] or, for email endpoints, [ParseMailScript] reads it; empty: none
	SchemaTracking bool           // whether schemas are inferred from what it captures
	TunnelActive   bool
	EventCount     int64
	RefusedCount   int64     // arrivals that were answered with an error of any kind
	LastEventAt    time.Time // zero: never
	ExpiresAt      time.Time // zero: permanent
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

var (
	customIDPattern  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,62}$`)
	localPartPattern = regexp.MustCompile(`^[a-z0-9._-]{2,50}$`)
)

// ValidCustomID reports whether s may be a custom id (spec: decisions, section 5). A string of the form of an endpoint
// id is refused: it could shadow a real one.
func ValidCustomID(s string) bool { return customIDPattern.MatchString(s) && !IsEndpointID(s) }

// ValidLocalPart reports whether s may be the local part of a generated address (spec, "Limits").
func ValidLocalPart(s string) bool { return localPartPattern.MatchString(s) }
