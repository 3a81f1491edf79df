package api

import (
	"fmt"
	"strings"
	"time"

	"hookglass"
)

// ForwardingTarget is where an endpoint's events go on to by themselves.
type ForwardingTarget struct {
	ID             int64   `json:"id" example:"3"`
	EndpointID     string  `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Name           string  `json:"name" example:"Staging"`
	URL            string  `json:"url" format:"uri" example:"https://staging.example.com/webhooks"`
	Enabled        bool    `json:"enabled" doc:"Whether events go to it." example:"true"`
	TimeoutSeconds int     `json:"timeout_seconds" doc:"For one attempt." example:"30"`
	RetryCount     int     `json:"retry_count" doc:"Attempts after the first." example:"3"`
	PausedAt       *Time   `json:"paused_at" doc:"When it was paused for failing too long; null: it is not. While it is paused its deliveries wait." example:"2026-11-20T10:15:30.123456Z"`
	PauseReason    *string `json:"pause_reason" enum:"failing" example:"failing"`
	Failures       int     `json:"consecutive_failures" doc:"Deliveries that failed since the last that did not." example:"0"`
	CreatedAt      Time    `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	UpdatedAt      Time    `json:"updated_at" example:"2026-11-20T10:15:30.123456Z"`
}

// CreateForwardingTarget is the body of POST /endpoints/{endpoint_id}/forwarding_targets.
type CreateForwardingTarget struct {
	_                struct{}             `additionalProperties:"false"`
	ForwardingTarget *NewForwardingTarget `json:"forwarding_target,omitempty" required:"true"`
}

// NewForwardingTarget is what a new target shall be.
type NewForwardingTarget struct {
	_              struct{}         `additionalProperties:"false"`
	Name           Optional[string] `json:"name,omitzero" required:"true" doc:"A label for people." example:"Staging"`
	URL            Optional[string] `json:"url,omitzero" required:"true" format:"uri" doc:"http or https, publicly reachable." example:"https://staging.example.com/webhooks"`
	Enabled        Optional[bool]   `json:"enabled,omitzero" doc:"Default true." example:"true"`
	TimeoutSeconds Optional[int64]  `json:"timeout_seconds,omitzero" doc:"1 to 300, default 30." example:"30"`
	RetryCount     Optional[int64]  `json:"retry_count,omitzero" doc:"0 to 5, default 3." example:"3"`
}

// UpdateForwardingTarget is the body of PATCH /endpoints/{endpoint_id}/forwarding_targets/{target_id}.
type UpdateForwardingTarget struct {
	_                struct{}                `additionalProperties:"false"`
	ForwardingTarget *ForwardingTargetChange `json:"forwarding_target,omitempty" required:"true"`
}

// ForwardingTargetChange names what to change; what is absent stays.
type ForwardingTargetChange struct {
	_              struct{}         `additionalProperties:"false"`
	Name           Optional[string] `json:"name,omitzero" doc:"A label for people." example:"Staging"`
	URL            Optional[string] `json:"url,omitzero" format:"uri" doc:"http or https, publicly reachable." example:"https://staging.example.com/webhooks"`
	Enabled        Optional[bool]   `json:"enabled,omitzero" doc:"true also resumes a target that is paused. false skips what waits for it." example:"true"`
	TimeoutSeconds Optional[int64]  `json:"timeout_seconds,omitzero" doc:"1 to 300." example:"30"`
	RetryCount     Optional[int64]  `json:"retry_count,omitzero" doc:"0 to 5." example:"3"`
}

// FromForwardingTarget writes a target.
func FromForwardingTarget(t hookglass.ForwardingTarget) ForwardingTarget {
	return ForwardingTarget{
		ID: t.ID, EndpointID: string(t.EndpointID), Name: t.Name, URL: t.URL, Enabled: t.Enabled,
		TimeoutSeconds: int(t.Timeout / time.Second), RetryCount: t.RetryCount,
		PausedAt: at(t.PausedAt), PauseReason: nonzero(t.PauseReason), Failures: t.Failures,
		CreatedAt: Time{t.CreatedAt}, UpdatedAt: Time{t.UpdatedAt},
	}
}

// Delivery is what became of one event on its way to a forwarding target.
type Delivery struct {
	ID            string            `json:"id" example:"dlv_0dfk3v6m8t7h1s9xq2b4c5n6wz_3"`
	EventID       string            `json:"event_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Status        string            `json:"status" enum:"pending,sending,delivered,failed,skipped" example:"delivered"`
	StatusCode    *int              `json:"status_code" doc:"Of the last attempt; null when it had no answer." example:"200"`
	Attempts      []DeliveryAttempt `json:"attempts" doc:"The first first."`
	NextAttemptAt *Time             `json:"next_attempt_at" doc:"With pending, when it is tried; null while the target is paused." example:"2026-11-20T10:15:30.123456Z"`
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
}

// DeliveryFailure is why a request had no complete answer.
type DeliveryFailure struct {
	Code    string `json:"code" doc:"Stable." example:"timeout"`
	Message string `json:"message" doc:"For a person." example:"The target did not answer in time."`
}

// FromForward writes a delivery.
func FromForward(f hookglass.Forward) Delivery {
	_, suffix, _ := strings.Cut(string(f.EventID), "_")
	d := Delivery{
		ID: fmt.Sprintf("dlv_%s_%d", suffix, f.TargetID), EventID: string(f.EventID), Status: string(f.State), StatusCode: nonzero(f.StatusCode),
		Attempts: make([]DeliveryAttempt, len(f.Attempts)), NextAttemptAt: at(f.NextAt), CreatedAt: Time{f.CreatedAt}, FinishedAt: at(f.FinishedAt),
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
