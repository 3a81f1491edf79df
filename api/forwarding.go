package api

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"hookglass"
)

// ForwardingTarget is a destination to which an endpoint's events are forwarded automatically.
type ForwardingTarget struct {
	ID             int64             `json:"id" example:"3"`
	EndpointID     string            `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Name           string            `json:"name" example:"Staging"`
	URL            string            `json:"url" format:"uri" example:"https://staging.example.com/webhooks"`
	When           *string           `json:"when" doc:"Which events go to it, as a query; null: all." example:"event:invoice.*"`
	Headers        map[string]string `json:"headers" doc:"Sent with every request, by their names. Their values are never shown: each is [redacted]." example:"{\"Authorization\":\"[redacted]\"}"`
	Enabled        bool              `json:"enabled" doc:"Whether events go to it." example:"true"`
	TimeoutSeconds int               `json:"timeout_seconds" doc:"For one attempt." example:"30"`
	RetryCount     int               `json:"retry_count" doc:"Attempts after the first." example:"3"`
	RateLimit      *int              `json:"rate_limit" doc:"At most so many requests in a rate_period, retries among them; more waits. null: no limit." example:"5"`
	RatePeriod     *string           `json:"rate_period" enum:"second,minute" doc:"null: there is no limit." example:"second"`
	DedupeBy       *string           `json:"dedupe_by" doc:"What identifies a webhook that comes again, so that it is sent once: id, body, header. and a name, or a JSON Pointer; null: nothing, and every event is sent." example:"id"`
	DedupeSeconds  *int              `json:"dedupe_seconds" doc:"For how long after the first; null: there is no dedupe_by." example:"86400"`
	PausedAt       *Time             `json:"paused_at" doc:"When it was paused, for failing too long or by people; null: it is not. While it is paused its deliveries wait." example:"2026-11-20T10:15:30.123456Z"`
	PauseReason    *string           `json:"pause_reason" enum:"failing,manual" doc:"manual: people paused it." example:"failing"`
	Failures       int               `json:"consecutive_failures" doc:"Deliveries that failed since the last that did not." example:"0"`
	Pending        *int              `json:"pending,omitempty" doc:"Deliveries that wait: for their turn or their next attempt, or for the target to be resumed. Counted up to 10,000." example:"312"`
	PendingUntil   *Time             `json:"pending_until,omitempty" doc:"When the last of them is sent at the earliest: at the rate_limit, where there is one, and if each arrives. Absent where none waits, and while the target is paused or disabled." example:"2026-11-20T10:16:33.123456Z"`
	CreatedAt      Time              `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	UpdatedAt      Time              `json:"updated_at" example:"2026-11-20T10:15:30.123456Z"`
}

// CreateForwardingTarget is the body of POST /endpoints/{endpoint_id}/forwarding_targets.
type CreateForwardingTarget struct {
	_                struct{}             `additionalProperties:"false"`
	ForwardingTarget *NewForwardingTarget `json:"forwarding_target,omitempty" required:"true"`
}

// NewForwardingTarget describes a new target.
type NewForwardingTarget struct {
	_              struct{}                    `additionalProperties:"false"`
	Name           Optional[string]            `json:"name,omitzero" required:"true" minLength:"1" maxLength:"200" doc:"A label for people." example:"Staging"`
	URL            Optional[string]            `json:"url,omitzero" required:"true" maxLength:"2048" format:"uri" pattern:"^[Hh][Tt][Tt][Pp][Ss]?://" doc:"http or https, publicly reachable." example:"https://staging.example.com/webhooks"`
	When           Optional[string]            `json:"when,omitzero" null:"true" maxLength:"1000" doc:"Which events go to it: a query as of lists, of what is known when one comes: method, path, header, query, body, provider, event, signature and the like, not status, tag, note, ignored, delivery, tunnel or the time. null, the default: all." example:"event:invoice.* -body./livemode:false"`
	Headers        Optional[map[string]string] `json:"headers,omitzero" null:"true" maxProperties:"20" doc:"Sent with every request, by their names, in the place of headers of the event with the same name: 20 at most, 8,192 bytes together. Not headers that frame the request or belong to its connection, and none beginning with X-Service-. Values are sealed and never shown again." example:"{\"Authorization\":\"Bearer t0ken\",\"X-Environment\":\"staging\"}"`
	Enabled        Optional[bool]              `json:"enabled,omitzero" doc:"Default true." example:"true"`
	TimeoutSeconds Optional[int64]             `json:"timeout_seconds,omitzero" minimum:"1" maximum:"300" doc:"1 to 300, default 30." example:"30"`
	RetryCount     Optional[int64]             `json:"retry_count,omitzero" minimum:"0" maximum:"5" doc:"0 to 5, default 3." example:"3"`
	RateLimit      Optional[int64]             `json:"rate_limit,omitzero" null:"true" minimum:"1" maximum:"1000" doc:"At most so many requests in a rate_period, retries among them; more waits. 1 to 1000; null, the default: no limit." example:"5"`
	RatePeriod     Optional[string]            `json:"rate_period,omitzero" null:"true" enum:"second,minute" doc:"Of a rate_limit. Default second." example:"second"`
	DedupeBy       Optional[string]            `json:"dedupe_by,omitzero" null:"true" pattern:"^((id|body)$|header[.]|/)" maxLength:"200" doc:"What identifies a webhook that the sender sends again, so that the target gets the first only: id, the sender's own id of the delivery or the event; header. and the name of a header; a JSON Pointer to a string or number of the body; body, all of it with method, path and query. An event without it is always sent, and so is one of which the first failed for good. null, the default: every event is sent." example:"header.Idempotency-Key"`
	DedupeSeconds  Optional[int64]             `json:"dedupe_seconds,omitzero" null:"true" minimum:"1" maximum:"604800" doc:"Of a dedupe_by: for how long after the first a webhook is the same, and no longer than that is kept. 1 to 604800, default 86400." example:"86400"`
}

// UpdateForwardingTarget is the body of PATCH /endpoints/{endpoint_id}/forwarding_targets/{target_id}.
type UpdateForwardingTarget struct {
	_                struct{}                `additionalProperties:"false"`
	ForwardingTarget *ForwardingTargetChange `json:"forwarding_target,omitempty" required:"true"`
}

// ForwardingTargetChange lists the fields to change; absent ones stay.
type ForwardingTargetChange struct {
	_              struct{}                    `additionalProperties:"false"`
	Name           Optional[string]            `json:"name,omitzero" minLength:"1" maxLength:"200" doc:"A label for people." example:"Staging"`
	URL            Optional[string]            `json:"url,omitzero" maxLength:"2048" format:"uri" pattern:"^[Hh][Tt][Tt][Pp][Ss]?://" doc:"http or https, publicly reachable." example:"https://staging.example.com/webhooks"`
	When           Optional[string]            `json:"when,omitzero" null:"true" maxLength:"1000" doc:"Which events go to it: a query as of lists, of what is known when one comes: method, path, header, query, body, provider, event, signature and the like, not status, tag, note, ignored, delivery, tunnel or the time. null: all. A change is for what comes from then on." example:"event:invoice.* -body./livemode:false"`
	Headers        Optional[map[string]string] `json:"headers,omitzero" null:"true" maxProperties:"20" doc:"Sent with every request, by their names, in the place of headers of the event with the same name: 20 at most, 8,192 bytes together. Not headers that frame the request or belong to its connection, and none beginning with X-Service-. Values are sealed and never shown again. They replace those there are; a value of [redacted], as it is shown, stays. null: all stay." example:"{\"Authorization\":\"Bearer t0ken\",\"X-Environment\":\"staging\"}"`
	Enabled        Optional[bool]              `json:"enabled,omitzero" doc:"true also resumes a target that is paused. false skips what waits for it." example:"true"`
	Paused         Optional[bool]              `json:"paused,omitzero" doc:"true has its deliveries wait, until false has them sent. Not true for a target that is disabled." example:"false"`
	TimeoutSeconds Optional[int64]             `json:"timeout_seconds,omitzero" minimum:"1" maximum:"300" doc:"1 to 300." example:"30"`
	RetryCount     Optional[int64]             `json:"retry_count,omitzero" minimum:"0" maximum:"5" doc:"0 to 5." example:"3"`
	RateLimit      Optional[int64]             `json:"rate_limit,omitzero" null:"true" minimum:"1" maximum:"1000" doc:"At most so many requests in a rate_period, retries among them; more waits. 1 to 1000; null: no limit." example:"5"`
	RatePeriod     Optional[string]            `json:"rate_period,omitzero" null:"true" enum:"second,minute" doc:"Of a rate_limit." example:"second"`
	DedupeBy       Optional[string]            `json:"dedupe_by,omitzero" null:"true" pattern:"^((id|body)$|header[.]|/)" maxLength:"200" doc:"What identifies a webhook that the sender sends again, so that the target gets the first only: id, the sender's own id of the delivery or the event; header. and the name of a header; a JSON Pointer to a string or number of the body; body, all of it with method, path and query. An event without it is always sent, and so is one of which the first failed for good. null: every event is sent. A change is for what comes from then on." example:"header.Idempotency-Key"`
	DedupeSeconds  Optional[int64]             `json:"dedupe_seconds,omitzero" null:"true" minimum:"1" maximum:"604800" doc:"Of a dedupe_by: for how long after the first a webhook is the same, and no longer than that is kept. 1 to 604800." example:"86400"`
}

// FromForwardingTarget converts a target.
func FromForwardingTarget(t hookglass.ForwardingTarget) ForwardingTarget {
	headers := make(map[string]string, len(t.HeaderNames))
	for _, name := range t.HeaderNames {
		headers[name] = hookglass.Redacted
	}
	return ForwardingTarget{
		ID: t.ID, EndpointID: string(t.EndpointID), Name: t.Name, URL: t.URL, When: nonzero(t.When), Headers: headers, Enabled: t.Enabled,
		TimeoutSeconds: int(t.Timeout / time.Second), RetryCount: t.RetryCount, RateLimit: nonzero(t.Rate.Limit), RatePeriod: nonzero(t.Rate.PeriodName()),
		DedupeBy: nonzero(string(t.Dedupe.By)), DedupeSeconds: nonzero(int(t.Dedupe.Window / time.Second)),
		PausedAt: at(t.PausedAt), PauseReason: nonzero(t.PauseReason), Failures: t.Failures,
		CreatedAt: Time{t.CreatedAt}, UpdatedAt: Time{t.UpdatedAt},
	}
}

// WithBacklog adds the waiting deliveries.
func (t ForwardingTarget) WithBacklog(b hookglass.ForwardBacklog) ForwardingTarget {
	t.Pending, t.PendingUntil = &b.Pending, at(b.Until)
	return t
}

// Delivery is the delivery of one event to a forwarding target.
type Delivery struct {
	ID            string            `json:"id" example:"dlv_0dfk3v6m8t7h1s9xq2b4c5n6wz_3"`
	EventID       string            `json:"event_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Status        string            `json:"status" enum:"pending,sending,delivered,failed,skipped" example:"delivered"`
	StatusCode    *int              `json:"status_code" doc:"Of the last attempt; null when it had no answer." example:"200"`
	Attempts      []DeliveryAttempt `json:"attempts" doc:"The first first."`
	NextAttemptAt *Time             `json:"next_attempt_at" doc:"With pending, when it is tried; null while the target is paused." example:"2026-11-20T10:15:30.123456Z"`
	SameAs        *string           `json:"same_as" doc:"Where the target has a dedupe_by: with skipped, the event with which the same webhook was delivered; with pending, the one whose delivery it waits for, to go if that fails. It may be deleted since." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	CreatedAt     Time              `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	FinishedAt    *Time             `json:"finished_at" example:"2026-11-20T10:15:30.123456Z"`
}

// DeliveryAttempt is one request of a delivery.
type DeliveryAttempt struct {
	At                Time             `json:"at" example:"2026-11-20T10:15:30.123456Z"`
	StatusCode        *int             `json:"status_code" doc:"null when there was no complete answer." example:"200"`
	Error             *DeliveryFailure `json:"error" doc:"null when there was a complete answer, whatever its status."`
	DurationMS        int64            `json:"duration_ms" example:"42"`
	ResponseBody      string           `json:"response_body" doc:"The first 500 characters." example:"ok"`
	ResponseTruncated bool             `json:"response_truncated" doc:"The answer was longer." example:"false"`

	Request  *DeliveryRequest  `json:"request,omitempty" doc:"What was sent; when one delivery is read, not in the list."`
	Response *DeliveryResponse `json:"response,omitempty" doc:"What was answered; when one delivery is read, not in the list."`
}

// DeliveryRequest is the request of an attempt. Credentials are redacted; at most 8 KiB of a body are kept.
type DeliveryRequest struct {
	Method        string            `json:"method" example:"POST"`
	URL           string            `json:"url" example:"https://staging.example.com/webhooks"`
	Headers       map[string]string `json:"headers" doc:"Repeated fields are joined by a comma and a space." example:"{\"Content-Type\":\"application/json\"}"`
	HeaderList    [][2]string       `json:"header_list" doc:"As sent, in order." example:"[[\"Content-Type\",\"application/json\"]]"`
	Latin1        []string          `json:"latin1,omitempty" doc:"JSON Pointers to strings of url and header_list that are bytes which are not UTF-8: each of their characters is one byte. Absent where all are UTF-8." example:"[\"/header_list/2/1\"]"`
	Body          string            `json:"body" doc:"In base64 where it is not UTF-8; see body_encoding." example:"{\"amount\":100}"`
	BodyEncoding  string            `json:"body_encoding" enum:"utf8,base64" example:"utf8"`
	BodyTruncated bool              `json:"body_truncated" example:"false"`
}

// DeliveryResponse is a target's answer. Credentials are redacted; at most 8 KiB of a body are kept.
type DeliveryResponse struct {
	StatusCode    int               `json:"status_code" example:"200"`
	Headers       map[string]string `json:"headers" doc:"Repeated fields are joined by a comma and a space." example:"{\"Content-Type\":\"text/plain\"}"`
	HeaderList    [][2]string       `json:"header_list" doc:"As received, in order." example:"[[\"Content-Type\",\"application/json\"]]"`
	Latin1        []string          `json:"latin1,omitempty" doc:"JSON Pointers to strings of header_list that are bytes which are not UTF-8: each of their characters is one byte. Absent where all are UTF-8." example:"[\"/header_list/2/1\"]"`
	Body          string            `json:"body" doc:"In base64 where it is not UTF-8; see body_encoding." example:"ok"`
	BodyEncoding  string            `json:"body_encoding" enum:"utf8,base64" example:"utf8"`
	BodyTruncated bool              `json:"body_truncated" example:"false"`
}

// DeliveryFailure is why a request had no complete answer.
type DeliveryFailure struct {
	Code    string `json:"code" doc:"Stable." example:"timeout"`
	Message string `json:"message" doc:"For a person." example:"The target did not answer in time."`
}

// ResentDeliveries is how many failed deliveries to a target were queued again.
type ResentDeliveries struct {
	TargetID int64 `json:"target_id" example:"3"`
	Resent   int64 `json:"resent" doc:"How many were put in line. Those that wait already are not among them." example:"312"`
	PausedAt *Time `json:"paused_at" doc:"When the target was paused: they wait until it is resumed; null: it is not." example:"2026-11-20T10:15:30.123456Z"`
}

// FromResent converts the number of deliveries to a target that were queued again.
func FromResent(t hookglass.ForwardingTarget, n int64) ResentDeliveries {
	return ResentDeliveries{TargetID: t.ID, Resent: n, PausedAt: at(t.PausedAt)}
}

// DeliveryID returns the id of the delivery of an event to a target.
func DeliveryID(event hookglass.EventID, targetID int64) string {
	_, suffix, _ := strings.Cut(string(event), "_")
	return fmt.Sprintf("dlv_%s_%d", suffix, targetID)
}

// FromForward converts a delivery.
func FromForward(f hookglass.Forward) Delivery {
	d := Delivery{
		ID: DeliveryID(f.EventID, f.TargetID), EventID: string(f.EventID), Status: string(f.State), StatusCode: nonzero(f.StatusCode),
		Attempts: make([]DeliveryAttempt, len(f.Attempts)), NextAttemptAt: at(f.NextAt), SameAs: nonzero(string(f.SameAs)), CreatedAt: Time{f.CreatedAt}, FinishedAt: at(f.FinishedAt),
	}
	for i, a := range f.Attempts {
		d.Attempts[i] = DeliveryAttempt{
			At: Time{a.At}, StatusCode: nonzero(a.StatusCode), DurationMS: a.Duration.Milliseconds(),
			ResponseBody: a.Body, ResponseTruncated: a.Truncated,
		}
		if a.Failure != nil {
			d.Attempts[i].Error = &DeliveryFailure{a.Failure.Code, a.Failure.Message}
		}
	}
	return d
}

// FromForwardEvidence converts a delivery with the requests and answers of its attempts.
func FromForwardEvidence(f hookglass.Forward, evidence []hookglass.ForwardEvidence) Delivery {
	d := FromForward(f)
	for _, e := range evidence {
		if e.Attempt < 1 || e.Attempt > len(d.Attempts) {
			continue
		}
		a := &d.Attempts[e.Attempt-1]
		a.Request = &DeliveryRequest{Method: e.Request.Method, URL: Text(e.Request.URL), BodyTruncated: e.Request.Truncated}
		a.Request.Headers, a.Request.HeaderList = headersOf(e.Request.Headers)
		a.Request.Latin1 = latin1Of(e.Request.Headers, "url", e.Request.URL)
		a.Request.Body, a.Request.BodyEncoding = Body(e.Request.Body)
		if res := e.Response; res != nil {
			a.Response = &DeliveryResponse{StatusCode: res.Status, BodyTruncated: res.Truncated}
			a.Response.Headers, a.Response.HeaderList = headersOf(res.Headers)
			a.Response.Latin1 = latin1Of(res.Headers)
			a.Response.Body, a.Response.BodyEncoding = Body(res.Body)
		}
	}
	return d
}

// DeliveredEvents returns the events that a delivery's id may mean, and the target's id. It returns none for an invalid
// id.
func DeliveredEvents(id string) (events []hookglass.EventID, targetID int64) {
	suffix, ok := strings.CutPrefix(id, "dlv_")
	suffix, digits, ok2 := strings.Cut(suffix, "_")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || !ok2 || err != nil || suffix == "" {
		return nil, 0
	}
	return []hookglass.EventID{hookglass.EventID("req_" + suffix), hookglass.EventID("eml_" + suffix)}, n
}
