package api

import (
	"time"

	"hookglass"
)

// Endpoint is an address that catches webhooks or mail.
type Endpoint struct {
	ID             string         `json:"id" doc:"Prefix ep_." example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Name           string         `json:"name" doc:"A label for people." example:"Payments"`
	Kind           string         `json:"kind" enum:"webhook,email" doc:"What it catches." example:"webhook"`
	CustomID       *string        `json:"custom_id" doc:"Works as the id in every path and in the reception URL." example:"payments"`
	Provider       *string        `json:"provider" enum:"github,stripe,shopify,slack,twilio" doc:"The intended source; detection does not need it. Null for email endpoints." example:"stripe"`
	ProviderConfig ProviderConfig `json:"provider_config"`
	WebhookURL     *string        `json:"webhook_url" format:"uri" doc:"Where webhooks are received; null for email endpoints." example:"https://hooks.example.com/hooks/ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	URL            *string        `json:"url" format:"uri" doc:"The same as webhook_url, for older clients." example:"https://hooks.example.com/hooks/ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	EmailAddress   *string        `json:"email_address" doc:"Where mail is received; null for webhook endpoints."`
	TunnelActive   bool           `json:"tunnel_active" doc:"Whether a local machine is connected." example:"false"`
	Enabled        bool           `json:"enabled" doc:"A disabled endpoint answers 410." example:"true"`
	Response       *Response      `json:"response" doc:"The custom answer to senders; null for the default one."`
	ResponseRules  []ResponseRule `json:"response_rules" doc:"Custom answers to some webhooks: that of the first rule that means a webhook goes before response."`
	ResponseScript *string        `json:"response_script" doc:"What the attempts of each delivery are answered one after another; null where all are answered the same." example:"500*3,timeout,200"`
	SchemaTracking bool           `json:"schema_tracking" doc:"Whether schemas are inferred of what arrives." example:"false"`
	WorkspaceID    *int64         `json:"workspace_id" doc:"Null for a temporary endpoint." example:"1"`
	EventCount     int64          `json:"event_count" doc:"Events that are stored." example:"42"`
	RefusedCount   int64          `json:"refused_count" doc:"What came and was answered an error instead of being stored: too large, disabled meanwhile, no room. The ledger counts it by reason." example:"0"`
	LastEventAt    *Time          `json:"last_event_at" example:"2026-11-20T10:15:30.123456Z"`
	ExpiresAt      *Time          `json:"expires_at" doc:"When a temporary endpoint ends; null for others."`
	CreatedAt      Time           `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	UpdatedAt      Time           `json:"updated_at" example:"2026-11-20T10:15:30.123456Z"`
	TunnelKey      string         `json:"tunnel_key,omitempty" doc:"Reads and deletes the events of a temporary endpoint, as a bearer token. Only the answer that creates the endpoint has it."`
}

// ProviderConfig are the settings for how an endpoint treats providers' webhooks.
type ProviderConfig struct {
	_            struct{} `additionalProperties:"false"`
	Handshake    *bool    `json:"handshake,omitempty" doc:"Whether a provider's handshakes are answered by themselves; default true." example:"true"`
	ResponseMode string   `json:"response_mode,omitempty" enum:"static,tunnel" doc:"Whether the connected local machine's answer goes to the sender; default static." example:"static"`
	// ExpectedEvents is what existing command lines send when they create an endpoint for a provider. It has no effect
	// and is not kept, so that no description has it.
	ExpectedEvents []string `json:"expected_events,omitempty" hidden:"true"`
}

// Response is an endpoint's custom answer. Body and header values may contain templates such as {{request.method}}.
type Response struct {
	_       struct{}          `additionalProperties:"false"`
	Status  *int              `json:"status,omitempty" minimum:"200" maximum:"599" doc:"Any status that ends a request; 200 when it is not given." example:"201"`
	Headers map[string]string `json:"headers" required:"false" maxProperties:"50" doc:"50 at most, with names of 256 and values of 8,192 bytes. Fields that frame the answer or set cookies are refused. With Access-Control-Allow-Origin and Access-Control-Allow-Headers, each *, pages of any origin may send and read the answer."`
	Body    string            `json:"body" required:"false" maxLength:"1048576" doc:"At most 1 MiB." example:"{\"ok\":true}"`
	DelayMS int64             `json:"delay_ms" required:"false" minimum:"0" maximum:"30000" doc:"Milliseconds to wait before the answer." example:"0"`
}

// ResponseRule is a custom answer to webhooks that match a condition.
type ResponseRule struct {
	_    struct{} `additionalProperties:"false"`
	When string   `json:"when" minLength:"1" maxLength:"1000" doc:"Which webhooks: a query as of lists, of what is known when one comes: method, path, header, query, body, provider, event, signature and the like, not status, tag, note, ignored, delivery, tunnel or the time. Bodies of more than 1 MiB are not looked into." example:"method:GET path:/health"`
	Response
}

// TryRules is the body of POST /endpoints/{endpoint_id}/response_rules/try.
type TryRules struct {
	_             struct{}                 `additionalProperties:"false"`
	ResponseRules Optional[[]ResponseRule] `json:"response_rules,omitzero" null:"true" maxItems:"20" doc:"The rules to try; default: those of the endpoint. Null or none: no rules."`
	Q             Optional[string]         `json:"q,omitzero" maxLength:"1000" doc:"Which events, in the search language; default: all, also ignored ones." example:"method:POST after:2h"`
	Limit         Optional[int64]          `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"How many of the last, 1 to 100; default 25." example:"25"`
}

// TriedRules is how past events would be answered now. Nothing was stored or counted.
type TriedRules struct {
	Evaluated int          `json:"evaluated" doc:"Events looked at." example:"25"`
	Matched   int          `json:"matched" doc:"Of them, those that a rule would answer." example:"3"`
	Complete  bool         `json:"complete" doc:"false: the time for it ended first." example:"true"`
	Events    []TriedEvent `json:"events" doc:"Newest first."`
}

// TriedEvent is how one event would be answered.
type TriedEvent struct {
	EventID     string     `json:"event_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	RequestedAt Time       `json:"requested_at" example:"2026-11-20T10:15:30.123456Z"`
	Method      string     `json:"method" example:"GET"`
	Path        string     `json:"path" example:"/health"`
	AnsweredBy  string     `json:"answered_by" enum:"rule,response,default,handshake,script,tunnel" doc:"What would answer it: a rule, the endpoint's response, the default answer, or what goes before rules: a provider's handshake, the response_script, the connected local machine." example:"rule"`
	Rule        *ReplyRule `json:"rule" doc:"The first rule that means it; null where no rule would answer it."`
	Status      *int       `json:"status" doc:"Of the answer; null where a script or a local machine would give it." example:"204"`
}

// ReplyRule is a rule that determined the answer to an event.
type ReplyRule struct {
	Index int    `json:"index" doc:"Its place among response_rules, from 0." example:"0"`
	When  string `json:"when" doc:"Its condition." example:"method:GET path:/health"`
}

// FromReplyRule converts a rule; nil is null.
func FromReplyRule(r *hookglass.ReplyRule) *ReplyRule {
	if r == nil {
		return nil
	}
	return &ReplyRule{Index: r.Index, When: r.When}
}

// CreateEndpoint is the body of POST /endpoints.
type CreateEndpoint struct {
	_        struct{}     `additionalProperties:"false"`
	Endpoint *NewEndpoint `json:"endpoint,omitempty" required:"true"`
}

// NewEndpoint describes a new endpoint. Only the name is required.
type NewEndpoint struct {
	_              struct{}                 `additionalProperties:"false"`
	Name           Optional[string]         `json:"name,omitzero" required:"true" minLength:"1" maxLength:"200" doc:"A label for people." example:"Payments"`
	Kind           Optional[string]         `json:"kind,omitzero" enum:"webhook,email" doc:"Default webhook." example:"webhook"`
	Provider       Optional[string]         `json:"provider,omitzero" null:"true" enum:"github,stripe,shopify,slack,twilio" doc:"The intended source; for webhook endpoints only." example:"stripe"`
	EmailLocalPart Optional[string]         `json:"email_local_part,omitzero" null:"true" pattern:"^[a-z0-9._-]{2,50}$" doc:"For email endpoints only; random when absent."`
	CustomID       Optional[string]         `json:"custom_id,omitzero" null:"true" pattern:"^[a-z0-9][a-z0-9-]{1,62}$" doc:"Unique in the installation." example:"payments"`
	ProviderConfig Optional[ProviderConfig] `json:"provider_config,omitzero" doc:"For webhook endpoints only."`
	Response       Optional[Response]       `json:"response,omitzero" null:"true" doc:"A custom answer to senders; for webhook endpoints only."`
	ResponseRules  Optional[[]ResponseRule] `json:"response_rules,omitzero" null:"true" maxItems:"20" doc:"Custom answers to some webhooks: that of the first rule that means a webhook goes before response. Their bodies have 1 MiB together at most. For webhook endpoints only."`
	ResponseScript Optional[string]         `json:"response_script,omitzero" null:"true" maxLength:"1000" doc:"What the attempts of each delivery are answered one after another: statuses, reset and timeout, separated by commas; behind each a delay (+2s), a Retry-After (@30s) and how often it repeats (*3). The last one answers all that follow. Of an email endpoint: codes of SMTP without Retry-After, which may have an enhanced code and a text behind them (451*2 4.7.1 Greylisted,250); rcpt: before all has recipients be answered so. Null ends it." example:"500*3,timeout,200"`
	SchemaTracking Optional[bool]           `json:"schema_tracking,omitzero" doc:"Whether schemas are inferred of what arrives; default false." example:"true"`
	Enabled        Optional[bool]           `json:"enabled,omitzero" doc:"Default true." example:"true"`
	WorkspaceID    Optional[int64]          `json:"workspace_id,omitzero" null:"true" minimum:"1" doc:"Where to create it; default the token's workspace, or the account's oldest."`
}

// UpdateEndpoint is the body of PATCH /endpoints/{id}.
type UpdateEndpoint struct {
	_        struct{}        `additionalProperties:"false"`
	Endpoint *EndpointChange `json:"endpoint,omitempty" required:"true"`
}

// EndpointChange lists the fields to change; absent ones stay.
type EndpointChange struct {
	_              struct{}                 `additionalProperties:"false"`
	Name           Optional[string]         `json:"name,omitzero" minLength:"1" maxLength:"200" example:"Payments, live"`
	Provider       Optional[string]         `json:"provider,omitzero" null:"true" enum:"github,stripe,shopify,slack,twilio" doc:"Null clears it." example:"stripe"`
	CustomID       Optional[string]         `json:"custom_id,omitzero" null:"true" pattern:"^[a-z0-9][a-z0-9-]{1,62}$" doc:"Null clears it." example:"payments-live"`
	ProviderConfig Optional[ProviderConfig] `json:"provider_config,omitzero" doc:"Replaces the whole object."`
	Response       Optional[Response]       `json:"response,omitzero" null:"true" doc:"Null brings back the default answer."`
	ResponseRules  Optional[[]ResponseRule] `json:"response_rules,omitzero" null:"true" maxItems:"20" doc:"Replaces all of them; null or none ends them."`
	ResponseScript Optional[string]         `json:"response_script,omitzero" null:"true" maxLength:"1000" doc:"What the attempts of each delivery are answered one after another: statuses, reset and timeout, separated by commas; behind each a delay (+2s), a Retry-After (@30s) and how often it repeats (*3). The last one answers all that follow. Of an email endpoint: codes of SMTP without Retry-After, which may have an enhanced code and a text behind them (451*2 4.7.1 Greylisted,250); rcpt: before all has recipients be answered so. Null ends it." example:"500*3,timeout,200"`
	SchemaTracking Optional[bool]           `json:"schema_tracking,omitzero" doc:"Whether schemas are inferred of what arrives; default false." example:"true"`
	Enabled        Optional[bool]           `json:"enabled,omitzero" example:"true"`
}

// FromEndpoint converts an endpoint.
func FromEndpoint(e hookglass.Endpoint, addresses Addresses) Endpoint {
	out := Endpoint{
		ID: string(e.ID), Name: e.Name, Kind: string(e.Kind), CustomID: nonzero(e.CustomID), Provider: nonzero(e.Provider),
		ProviderConfig: ProviderConfig{Handshake: e.ProviderConfig.Handshake, ResponseMode: string(e.ProviderConfig.ResponseMode)},
		ResponseScript: nonzero(e.ResponseScript), SchemaTracking: e.SchemaTracking,
		TunnelActive: e.TunnelActive, Enabled: e.Enabled, WorkspaceID: nonzero(e.WorkspaceID),
		EventCount: e.EventCount, RefusedCount: e.RefusedCount, LastEventAt: at(e.LastEventAt), ExpiresAt: at(e.ExpiresAt),
		CreatedAt: Time{e.CreatedAt}, UpdatedAt: Time{e.UpdatedAt},
	}
	if e.Kind == hookglass.KindEmail {
		out.EmailAddress = new(e.EmailLocalPart + "@" + addresses.MailDomain)
	} else {
		url := addresses.hook(string(e.ID))
		out.WebhookURL, out.URL = &url, &url
	}
	if e.Response != nil {
		r := fromResponse(*e.Response)
		out.Response = &r
	}
	out.ResponseRules = make([]ResponseRule, len(e.ResponseRules))
	for i, r := range e.ResponseRules {
		out.ResponseRules[i] = ResponseRule{When: r.When, Response: fromResponse(r.Response)}
	}
	return out
}

func fromResponse(r hookglass.Response) Response {
	out := Response{Status: &r.Status, Headers: r.Headers, Body: r.Body, DelayMS: r.Delay.Milliseconds()}
	if r.Headers == nil {
		out.Headers = map[string]string{}
	}
	return out
}

// Domain converts the rule to the domain type.
func (r ResponseRule) Domain() hookglass.ResponseRule {
	return hookglass.ResponseRule{When: r.When, Response: *r.Response.Domain()}
}

// Domain converts the answer to the domain type. A delay beyond time.Duration becomes negative, which is refused like
// any other value out of range.
func (r Response) Domain() *hookglass.Response {
	delay := time.Duration(-1)
	if r.DelayMS >= 0 && r.DelayMS < 1<<32 {
		delay = time.Duration(r.DelayMS) * time.Millisecond
	}
	status := 200
	if r.Status != nil {
		status = *r.Status
	}
	return &hookglass.Response{Status: status, Headers: r.Headers, Body: r.Body, Delay: delay}
}

// Domain converts the settings to the domain type.
func (c ProviderConfig) Domain() hookglass.ProviderConfig {
	return hookglass.ProviderConfig{Handshake: c.Handshake, ResponseMode: hookglass.ResponseMode(c.ResponseMode)}
}
