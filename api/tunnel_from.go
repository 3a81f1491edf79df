package api

import (
	"encoding/base64"
	"maps"
	"strings"

	"hookglass"
)

// FromTunnelRequest converts a captured webhook as local machines get it.
func FromTunnelRequest(e *hookglass.Event) TunnelRequest {
	out := TunnelRequest{
		Type: TunnelWebhookRequest, ID: string(e.ID), EndpointID: string(e.EndpointID), Method: e.Method, Path: Text(e.Path),
		BodyEncoding: "base64", QueryString: Text(e.RawQuery), ContentType: textOrNil(e.ContentType), IPAddress: nonzero(e.IP),
		RequestedAt: Time{e.ReceivedAt}, DetectedProvider: e.Provider, Headers: map[string]string{}, HeaderList: [][2]string{},
		ProviderEventData: &ProviderEventData{EventType: textOrNil(e.EventType), EventID: textOrNil(e.EventRef), DeliveryID: textOrNil(e.DeliveryID)},
	}
	out.QueryParameters, _ = queryOf(e.RawQuery)
	var fields hookglass.Headers
	if e.Payload != nil {
		fields = e.Headers
		out.Headers, out.HeaderList = headersOf(e.Headers)
		// This server has met the expectation, and clients that send all of these fields on would fail: Node's fetch
		// refuses to send an Expect.
		maps.DeleteFunc(out.Headers, func(name, _ string) bool { return strings.EqualFold(name, "Expect") })
		out.Body, out.BodySize = base64.StdEncoding.EncodeToString(e.Body), int64(len(e.Body))
	}
	out.Latin1 = latin1Of(fields, "path", e.Path, "query_string", e.RawQuery)
	return out
}

// FromTunnelMail converts a captured mail as local machines get it: a POST of the normalised JSON.
func FromTunnelMail(e *hookglass.Event, json []byte) TunnelRequest {
	const media = "application/json"
	post := *e
	post.Method, post.Path, post.RawQuery, post.ContentType = "POST", "/", "", media
	post.Payload = &hookglass.Payload{Headers: hookglass.Headers{{Name: "Content-Type", Value: media}}, Body: json}
	return FromTunnelRequest(&post)
}

// FromTunnelCommand converts a command for the client that is to carry it out, with the token for its result.
func FromTunnelCommand(c hookglass.TunnelCommand, url, token string) TunnelReplayCommand {
	out := TunnelReplayCommand{
		Type: TunnelReplay, CommandID: c.ID, ReplayCaseRunID: nonzero(c.RunID), Method: c.Request.Method, URL: Text(url),
		BodyBase64: base64.StdEncoding.EncodeToString(c.Request.Body), TimeoutMS: c.Timeout.Milliseconds(), EvidenceBodyLimit: hookglass.EvidenceLimit,
		ExpiresAt: Time{c.ExpiresAt}, ResultToken: token, DetectedProvider: c.Provider, ProviderEventData: &ProviderEventData{EventType: textOrNil(c.EventType)},
	}
	out.Headers, out.HeaderList = headersOf(c.Request.Headers)
	out.Latin1 = latin1Of(c.Request.Headers, "url", url)
	return out
}

// FromGap converts an outage.
func FromGap(g hookglass.Gap) Gap {
	c := g.Counts
	return Gap{
		ID: g.ID, EndpointID: string(g.EndpointID), EndpointName: g.EndpointName, WorkspaceID: nonzero(g.WorkspaceID), State: string(g.State), Status: string(g.State),
		StartedAt: Time{g.StartedAt}, DetectedAt: Time{g.DetectedAt}, ReconnectedAt: at(g.ReconnectedAt), TargetURL: textOrNil(g.TargetURL),
		ClientHostname: textOrNil(g.Hostname), RecoveryOutcome: nonzero(g.Outcome), RetentionTruncated: c.Expired > 0, Counts: GapCounts(c),
	}
}

// TunnelDelivery is a delivery to a local machine, as an event shows it.
type TunnelDelivery struct {
	Kind              string            `json:"kind" enum:"tunnel" example:"tunnel"`
	Status            string            `json:"status" enum:"delivered,failed" doc:"delivered: answered with 2xx." example:"delivered"`
	TargetURL         string            `json:"target_url" example:"http://localhost:3000"`
	ResolvedURL       *string           `json:"resolved_url" example:"http://localhost:3000/orders"`
	StatusCode        int               `json:"status_code" doc:"0: no answer came." example:"200"`
	ResponseMessage   *string           `json:"response_message"`
	ResponseTimeMS    int64             `json:"response_time_ms" example:"12"`
	FailureCategory   *string           `json:"failure_category"`
	ReportVersion     int               `json:"report_version" example:"2"`
	DeliveryAttemptID *string           `json:"delivery_attempt_id"`
	TunnelClientID    *string           `json:"tunnel_client_id"`
	ReportedAt        Time              `json:"reported_at" example:"2026-11-20T10:15:30.123456Z"`
	ContentType       *string           `json:"content_type" doc:"Of the answer, as what follows; reports of version 2 alone."`
	ResponseHeaders   map[string]string `json:"response_headers,omitempty"`
	Body              *string           `json:"body"`
	BodyEncoding      string            `json:"body_encoding,omitempty" enum:"utf8,base64"`
	DeclaredLength    *int64            `json:"declared_content_length" doc:"The answer's Content-Length; null: it had none."`
	RetainedBytes     *int64            `json:"retained_bytes"`
	ObservedBytes     *int64            `json:"decoded_bytes_observed"`
	CaptureComplete   *bool             `json:"capture_complete"`
	TruncationReason  *string           `json:"truncation_reason"`
}

// fromDeliveryReport converts a client's report.
func fromDeliveryReport(r *hookglass.DeliveryReport) TunnelDelivery {
	out := TunnelDelivery{
		Kind: "tunnel", Status: "failed", TargetURL: Text(r.TargetURL), ResolvedURL: textOrNil(r.ResolvedURL), StatusCode: r.StatusCode,
		ResponseMessage: textOrNil(r.Message), ResponseTimeMS: r.ResponseTime.Milliseconds(), FailureCategory: nonzero(r.FailureCategory),
		ReportVersion: r.Version, DeliveryAttemptID: nonzero(r.AttemptID), TunnelClientID: nonzero(r.ClientID), ReportedAt: Time{r.At},
	}
	if r.Delivered() {
		out.Status = "delivered"
	}
	if e := r.Evidence; e != nil {
		body, encoding := Body(e.Body)
		out.ContentType, out.Body, out.BodyEncoding, out.TruncationReason = textOrNil(e.ContentType), &body, encoding, textOrNil(e.TruncationReason)
		out.ResponseHeaders, _ = headersOf(e.Headers)
		out.RetainedBytes, out.ObservedBytes, out.CaptureComplete = &e.RetainedBytes, &e.ObservedBytes, &e.Complete
		if e.DeclaredLength >= 0 {
			out.DeclaredLength = &e.DeclaredLength
		}
	}
	return out
}

// DeliveryReportByKey is the body of POST /tunnel/delivery_reports_anonymous.
type DeliveryReportByKey struct {
	DeliveryReport
	TunnelKey  string `json:"tunnel_key" required:"true" minLength:"1" doc:"The key of a temporary endpoint." example:"tk_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	EndpointID string `json:"endpoint_id,omitempty" doc:"Default: the endpoint of the key." example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
}

// ReportedDelivery is the answer to a delivery report.
type ReportedDelivery struct {
	Data   ReportedDeliveryData `json:"data"`
	Status string               `json:"status" enum:"ok" example:"ok"`
}

// ReportedDeliveryData describes what was stored.
type ReportedDeliveryData struct {
	EndpointID        string  `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	WebhookRequestID  string  `json:"webhook_request_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	DeliveryAttemptID *string `json:"delivery_attempt_id"`
	StatusCode        int     `json:"status_code" example:"200"`
	Delivered         bool    `json:"delivered" doc:"This report carries a 2xx status." example:"true"`
	ReportedAt        Time    `json:"reported_at" example:"2026-11-20T10:15:30.123456Z"`
}

// AcceptedReplayResult is the answer to the result of a command.
type AcceptedReplayResult struct {
	Data   AcceptedReplayResultData `json:"data"`
	Status string                   `json:"status" enum:"ok" example:"ok"`
}

// AcceptedReplayResultData names the command.
type AcceptedReplayResultData struct {
	CommandID string `json:"command_id" example:"tcmd_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
}

// TunnelSignatureConfig is the body of POST /tunnel/signature_config_anonymous.
type TunnelSignatureConfig struct {
	TunnelKey       string              `json:"tunnel_key" required:"true" minLength:"1" doc:"The key of a temporary endpoint." example:"tk_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	SignatureConfig *NewSignatureConfig `json:"signature_config,omitempty" required:"true"`
}

// ClaimEndpoint is the body of POST /endpoints/claim.
type ClaimEndpoint struct {
	_           struct{}         `additionalProperties:"false"`
	TunnelKey   string           `json:"tunnel_key" required:"true" minLength:"1" doc:"The key of a temporary endpoint. It is of no use from then on." example:"tk_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Name        Optional[string] `json:"name,omitzero" minLength:"1" maxLength:"200" doc:"Default: as it is." example:"Payments"`
	WorkspaceID Optional[int64]  `json:"workspace_id,omitzero" null:"true" minimum:"1" doc:"Default: the token's workspace, or the account's oldest."`
}
