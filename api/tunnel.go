package api

import (
	"encoding/base64"
	"encoding/json"
)

// Capabilities beyond the base protocol that both ends of a tunnel may announce (spec: decisions, section 10).
const (
	CapabilityEvidence = "delivery_response_evidence_v2" // reports of version 2
	CapabilityReplay   = "tunnel_replay_v1"              // replays through the tunnel
)

// ConnectTunnel is the body of POST /tunnel/connect. As in all bodies below /tunnel, unknown members are ignored.
type ConnectTunnel struct {
	EndpointID     string          `json:"endpoint_id" required:"true" minLength:"1" doc:"An id or custom id of a webhook endpoint." example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	InstallationID string          `json:"installation_id,omitempty" maxLength:"255" doc:"Tells installations of a client apart." example:"f3b1c6"`
	ClientName     string          `json:"client_name,omitempty" maxLength:"255" example:"hookglass"`
	ClientMetadata *TunnelMetadata `json:"client_metadata,omitempty"`
	Capabilities   []string        `json:"capabilities,omitempty" maxItems:"32" doc:"What the client can do beyond the base protocol." example:"[\"delivery_response_evidence_v2\",\"tunnel_replay_v1\"]"`
}

// ConnectTunnelAnonymous is the body of POST /tunnel/connect_anonymous.
type ConnectTunnelAnonymous struct {
	TunnelKey      string          `json:"tunnel_key" required:"true" minLength:"1" doc:"The key of a temporary endpoint." example:"tk_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	InstallationID string          `json:"installation_id,omitempty" maxLength:"255" doc:"Tells installations of a client apart." example:"f3b1c6"`
	ClientName     string          `json:"client_name,omitempty" maxLength:"255" example:"hookglass"`
	ClientMetadata *TunnelMetadata `json:"client_metadata,omitempty"`
	Capabilities   []string        `json:"capabilities,omitempty" maxItems:"32" doc:"What the client can do beyond the base protocol." example:"[\"delivery_response_evidence_v2\",\"tunnel_replay_v1\"]"`
}

// TunnelMetadata describes the local machine.
type TunnelMetadata struct {
	Hostname string `json:"hostname,omitempty" maxLength:"255" example:"ada-laptop"`
	OS       string `json:"os,omitempty" maxLength:"255" example:"linux"`
	Arch     string `json:"arch,omitempty" maxLength:"255" example:"amd64"`
}

// TunnelTicket is the answer to a connect. It has no envelope.
type TunnelTicket struct {
	Ticket                 string         `json:"ticket" doc:"Opens one socket, once." example:"tt_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	ExpiresIn              int            `json:"expires_in" doc:"Seconds." example:"30"`
	EndpointID             string         `json:"endpoint_id,omitempty" doc:"Of the key, with an anonymous connect." example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	URL                    string         `json:"url" format:"uri" doc:"Of the socket, with the ticket." example:"wss://hooks.example.com/cable?ticket=tt_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	TunnelClientID         string         `json:"tunnel_client_id" doc:"Names this client in reports." example:"tcl_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	TunnelClientCredential string         `json:"tunnel_client_credential" doc:"Proves the client's id in reports."`
	TunnelProtocol         TunnelProtocol `json:"tunnel_protocol"`
}

// TunnelProtocol describes the capabilities of the server's end of a tunnel.
type TunnelProtocol struct {
	DeliveryReportVersion int      `json:"delivery_report_version" example:"2"`
	EvidenceBodyLimit     int      `json:"evidence_body_limit" doc:"Bytes of an answer's body that a report may carry." example:"65536"`
	Capabilities          []string `json:"capabilities" example:"[\"delivery_response_evidence_v2\",\"tunnel_replay_v1\"]"`
}

// TunnelSubscription identifies a subscription of the socket; its JSON text is the identifier of Action Cable.
type TunnelSubscription struct {
	Channel        string          `json:"channel" example:"TunnelChannel"`
	EndpointID     string          `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	ClientID       string          `json:"client_id,omitempty"`
	TargetURL      string          `json:"target_url,omitempty" format:"uri" example:"http://localhost:3000"`
	ClientMetadata *TunnelMetadata `json:"client_metadata,omitempty"`
}

// TunnelChannel is the channel of a [TunnelSubscription].
const TunnelChannel = "TunnelChannel"

// Types of messages that the server sends on a subscription.
const (
	TunnelWebhookRequest = "webhook_request"
	TunnelReplay         = "tunnel_replay_command"
	// TunnelReportAck says that a report sent over the socket is stored. It is an extension by this service.
	TunnelReportAck = "delivery_report_ack"
)

// TunnelRequest is a captured event on its way to a local machine.
type TunnelRequest struct {
	Type              string             `json:"type" enum:"webhook_request" example:"webhook_request"`
	ID                string             `json:"id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	EndpointID        string             `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Method            string             `json:"method" example:"POST"`
	Path              string             `json:"path" doc:"What followed the endpoint in the request path, as received." example:"/orders"`
	Headers           map[string]string  `json:"headers" doc:"Repeated fields are joined, and Expect is left out; header_list has all, one by one." example:"{\"Content-Type\":\"application/json\"}"`
	HeaderList        [][2]string        `json:"header_list" doc:"Names and values in the order and spelling received." example:"[[\"Content-Type\",\"application/json\"]]"`
	Body              string             `json:"body" doc:"In base64." example:"eyJhbW91bnQiOjEwMH0="`
	BodyEncoding      string             `json:"body_encoding" enum:"base64" example:"base64"`
	BodySize          int64              `json:"body_size" doc:"Bytes of the body." example:"14"`
	QueryParameters   map[string]any     `json:"query_parameters" doc:"Strings, or arrays of strings where a name is repeated." example:"{\"page\":\"2\"}"`
	QueryString       string             `json:"query_string" doc:"As received, without the question mark." example:"page=2"`
	ContentType       *string            `json:"content_type" example:"application/json"`
	IPAddress         *string            `json:"ip_address" example:"203.0.113.7"`
	RequestedAt       Time               `json:"requested_at" example:"2026-11-20T10:15:30.123456Z"`
	DetectedProvider  string             `json:"detected_provider" example:"stripe"`
	ProviderEventData *ProviderEventData `json:"provider_event_data,omitempty"`
	Respond           bool               `json:"respond,omitempty" doc:"The sender waits for this machine's answer."`
	Latin1            []string           `json:"latin1,omitempty" doc:"JSON Pointers to strings of path, query_string and header_list that came as bytes which are not UTF-8: each of their characters is one byte. Absent where all are UTF-8." example:"[\"/header_list/2/1\"]"`
}

// TunnelReplayCommand asks a connected machine to send a request and to report the answer.
type TunnelReplayCommand struct {
	Type              string             `json:"type" enum:"tunnel_replay_command" example:"tunnel_replay_command"`
	CommandID         string             `json:"command_id"`
	ReplayCaseRunID   *string            `json:"replay_case_run_id" doc:"null for a replay that is no case's run."`
	Method            string             `json:"method" example:"POST"`
	URL               string             `json:"url" doc:"Path and query below the machine's target, or the whole address there." example:"/orders?page=2"`
	Headers           map[string]string  `json:"headers"`
	HeaderList        [][2]string        `json:"header_list,omitempty" doc:"The same in order; it goes before headers."`
	BodyBase64        string             `json:"body_base64"`
	TimeoutMS         int64              `json:"timeout_ms" example:"30000"`
	EvidenceBodyLimit int                `json:"evidence_body_limit" example:"65536"`
	ExpiresAt         Time               `json:"expires_at" example:"2026-11-20T10:15:30.123456Z"`
	ResultToken       string             `json:"result_token" doc:"Given back with the result."`
	DetectedProvider  string             `json:"detected_provider,omitempty" doc:"Of the event, as with events: by it and the event type a machine chooses among its targets." example:"stripe"`
	ProviderEventData *ProviderEventData `json:"provider_event_data,omitempty"`
	Latin1            []string           `json:"latin1,omitempty" doc:"JSON Pointers to strings of url and header_list each of whose characters is one byte." example:"[\"/header_list/2/1\"]"`
}

// TunnelEvidence is what a machine observed of an answer (version 2 of reports). All fields are optional.
type TunnelEvidence struct {
	ResolvedURL           string            `json:"resolved_url,omitempty" doc:"The whole address that the request went to; one of more than 8 KiB is not kept." example:"http://localhost:3000/orders?page=2"`
	ContentType           string            `json:"content_type,omitempty" doc:"255 bytes of it are kept." example:"application/json"`
	ResponseHeaders       map[string]string `json:"response_headers,omitempty" maxProperties:"100" doc:"100 at most, 32 KiB together."`
	Body                  string            `json:"body,omitempty" doc:"The answer's body, or its beginning: 64 KiB of it are kept."`
	BodyEncoding          string            `json:"body_encoding,omitempty" enum:"utf8,base64" example:"utf8"`
	DeclaredContentLength *int64            `json:"declared_content_length,omitempty" minimum:"0" maximum:"1125899906842624" doc:"The answer's Content-Length." example:"2"`
	DecodedBytesObserved  *int64            `json:"decoded_bytes_observed,omitempty" minimum:"0" maximum:"1125899906842624" doc:"Bytes of the body that came." example:"2"`
	RetainedBytes         *int64            `json:"retained_bytes,omitempty" minimum:"0" maximum:"1125899906842624" doc:"Bytes of the body that the report carries." example:"2"`
	CaptureComplete       *bool             `json:"capture_complete,omitempty" doc:"The report carries the whole body."`
	TruncationReason      string            `json:"truncation_reason,omitempty" maxLength:"255" doc:"Why it does not." example:"body_limit"`
	Latin1                []string          `json:"latin1,omitempty" doc:"JSON Pointers to values of response_headers that are not UTF-8: each of their characters is one byte of the answer." example:"[\"/response_headers/X-Name\"]"`
}

// Categories of failed requests in reports.
const (
	FailureConnectionRefused = "connection_refused"
	FailureTimeout           = "timeout"
	FailureDNS               = "dns_error"
	FailureTLS               = "tls_error"
	FailureHTTP              = "http_error"
	FailureUnknown           = "unknown_error"
)

// DeliveryReport reports the delivery of an event on a local machine. It is the body of POST /tunnel/delivery_reports
// and of /tunnel/delivery_reports_anonymous, and the data of the socket's action delivery_report.
type DeliveryReport struct {
	TunnelKey              string          `json:"tunnel_key,omitempty" doc:"Anonymous reports only: the endpoint's key, instead of a token."`
	EndpointID             string          `json:"endpoint_id,omitempty" required:"true" minLength:"1" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	WebhookRequestID       string          `json:"webhook_request_id" required:"true" minLength:"1" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	TargetURL              string          `json:"target_url" required:"true" maxLength:"8192" format:"uri" example:"http://localhost:3000"`
	StatusCode             Optional[int64] `json:"status_code,omitzero" required:"true" minimum:"0" maximum:"599" except:"1-99" doc:"Of the answer; 0: none came." example:"200"`
	ResponseMessage        string          `json:"response_message,omitempty" doc:"The answer's reason, or why there was none: 4 KiB of it are kept." example:"OK"`
	ResponseTimeMS         *int64          `json:"response_time_ms,omitempty" minimum:"0" maximum:"86400000" example:"12"`
	FailureCategory        string          `json:"failure_category,omitempty" enum:"connection_refused,timeout,dns_error,tls_error,http_error,unknown_error"`
	ReportVersion          int             `json:"report_version,omitempty" minimum:"1" maximum:"2" example:"2"`
	DeliveryAttemptID      string          `json:"delivery_attempt_id,omitempty" maxLength:"255" doc:"The same report sent twice counts once." example:"f3b1c6b2"`
	TunnelClientID         string          `json:"tunnel_client_id,omitempty" maxLength:"255"`
	TunnelClientCredential string          `json:"tunnel_client_credential,omitempty"`
	TunnelEvidence
}

// DeliveryReportAck is sent on the subscription when a report over the socket was accepted or finally refused.
type DeliveryReportAck struct {
	Type              string `json:"type" enum:"delivery_report_ack" example:"delivery_report_ack"`
	DeliveryAttemptID string `json:"delivery_attempt_id"`
	Status            string `json:"status" enum:"ok,refused" example:"ok"`
	Error             string `json:"error,omitempty" doc:"With refused: the code."`
}

// TunnelReplayResult is the body of POST /tunnel/replay_results.
type TunnelReplayResult struct {
	ResultToken            string          `json:"result_token" required:"true" minLength:"1" doc:"As the command has it; it serves once." example:"trt_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	CommandID              string          `json:"command_id" required:"true" minLength:"1" example:"tcmd_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	StatusCode             Optional[int64] `json:"status_code,omitzero" minimum:"0" maximum:"599" except:"1-99" doc:"Of the answer; 0: none came." example:"200"`
	ResponseTimeMS         *int64          `json:"response_time_ms,omitempty" minimum:"0" maximum:"86400000" example:"12"`
	ResponseMessage        string          `json:"response_message,omitempty" doc:"4 KiB of it are kept." example:"OK"`
	Error                  string          `json:"error,omitempty" doc:"Why there was no answer: 4 KiB of it are kept."`
	FailureCategory        string          `json:"failure_category,omitempty" enum:"connection_refused,timeout,dns_error,tls_error,http_error,unknown_error"`
	RequestMayHaveBeenSent *bool           `json:"request_may_have_been_sent,omitempty" doc:"Bytes of the request may have reached the target. Left out: they may, but with connection_refused, dns_error and tls_error."`
	TunnelEvidence
}

// Gap is a period in which no machine was connected to an endpoint, with what arrived in it.
type Gap struct {
	ID                 string    `json:"id" example:"tgap_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	EndpointID         string    `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	EndpointName       string    `json:"endpoint_name" example:"Payments"`
	WorkspaceID        *int64    `json:"workspace_id" doc:"null for a temporary endpoint." example:"1"`
	State              string    `json:"state" enum:"open,reconnected,partial,recovered" example:"reconnected"`
	Status             string    `json:"status" enum:"open,reconnected,partial,recovered" doc:"The same as state." example:"reconnected"`
	StartedAt          Time      `json:"started_at" example:"2026-11-20T10:15:30.123456Z"`
	DetectedAt         Time      `json:"detected_at" example:"2026-11-20T10:15:40.123456Z"`
	ReconnectedAt      *Time     `json:"reconnected_at" doc:"null while it is open." example:"2026-11-20T10:17:43.123456Z"`
	TargetURL          *string   `json:"target_url" example:"http://localhost:3000"`
	ClientHostname     *string   `json:"client_hostname" example:"ada-laptop"`
	RecoveryOutcome    *string   `json:"recovery_outcome" enum:"completed,partial,skipped,interrupted" doc:"As the last recovery call claimed it; null before one."`
	RetentionTruncated bool      `json:"retention_truncated" doc:"Events of the gap were deleted before they were delivered."`
	Counts             GapCounts `json:"counts"`
}

// GapCounts count the events of a gap: total = recovered + failed + pending + expired.
type GapCounts struct {
	Total     int64 `json:"total_count" example:"14"`
	Retained  int64 `json:"retained_count" doc:"Still stored." example:"14"`
	Pending   int64 `json:"pending_count" doc:"Stored, and no report yet." example:"2"`
	Recovered int64 `json:"recovered_count" doc:"A report with a 2xx status." example:"12"`
	Failed    int64 `json:"failed_count" doc:"Reports, and none with a 2xx status." example:"0"`
	Expired   int64 `json:"expired_count" doc:"Deleted undelivered." example:"0"`
}

// Undelivered is the answer of GET /tunnel/undelivered. Meta is only in the gap-aware form.
type Undelivered struct {
	Data []TunnelRequest  `json:"data"`
	Meta *UndeliveredMeta `json:"meta,omitempty"`
}

// UndeliveredMeta says which events the answer is about.
type UndeliveredMeta struct {
	GapID              *string `json:"gap_id" doc:"null where since was given." example:"tgap_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	StartedAt          Time    `json:"started_at" example:"2026-11-20T10:15:30.123456Z"`
	DetectedAt         *Time   `json:"detected_at" example:"2026-11-20T10:15:40.123456Z"`
	EndedAt            *Time   `json:"ended_at" doc:"null while it goes on." example:"2026-11-20T10:17:43.123456Z"`
	TotalCount         int64   `json:"total_count" example:"14"`
	PendingCount       int64   `json:"pending_count" example:"2"`
	ReturnedCount      int64   `json:"returned_count" example:"2"`
	NextCursor         *string `json:"next_cursor" doc:"Give it as cursor to get what follows; null at the end."`
	RetentionTruncated bool    `json:"retention_truncated"`
}

// RecoverGap is the body of POST /tunnel/gaps/{gap_id}/recovery: the client's account of its recovery.
type RecoverGap struct {
	Outcome        string `json:"outcome" required:"true" enum:"completed,partial,skipped,interrupted" example:"completed"`
	AttemptedCount int64  `json:"attempted_count" required:"false" minimum:"0" example:"14"`
	SucceededCount int64  `json:"succeeded_count" required:"false" minimum:"0" example:"14"`
	FailedCount    int64  `json:"failed_count" required:"false" minimum:"0" example:"0"`
}

// CableMessage is a message of the socket in either direction (the Action Cable protocol, actioncable-v1-json).
type CableMessage struct {
	Type       string          `json:"type,omitempty"`    // of the server: welcome, ping, confirm_subscription, reject_subscription, disconnect
	Command    string          `json:"command,omitempty"` // of the client: subscribe, unsubscribe, message
	Identifier string          `json:"identifier,omitempty"`
	Data       string          `json:"data,omitempty"` // of the client: JSON text with an action
	Message    json.RawMessage `json:"message,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Reconnect  *bool           `json:"reconnect,omitempty"`
}

// CableProtocol is the subprotocol of the socket.
const CableProtocol = "actioncable-v1-json"

// Bytes returns the body as received.
func (r *TunnelRequest) Bytes() ([]byte, error) {
	if r.BodyEncoding == "base64" || r.BodyEncoding == "" {
		return base64.StdEncoding.DecodeString(r.Body)
	}
	return []byte(r.Body), nil
}
