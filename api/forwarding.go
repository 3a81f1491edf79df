package api

import (
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
