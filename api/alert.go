package api

import "hookglass"

// Alert watches an endpoint.
type Alert struct {
	ID             string    `json:"id" example:"alrt_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	EndpointID     string    `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Name           string    `json:"name" example:"Deliveries fail"`
	Kind           string    `json:"kind" enum:"missing_webhook,error_response,keyword_match,volume_spike,schema_drift" example:"error_response"`
	Enabled        bool      `json:"enabled" example:"true"`
	Config         AlertView `json:"config"`
	ChannelIDs     []string  `json:"channel_ids" doc:"Notification channels that are told when it is triggered, and when it is resolved."`
	State          string    `json:"state" enum:"ok,triggered" example:"ok"`
	StateChangedAt Time      `json:"state_changed_at" example:"2026-11-20T10:15:30.123456Z"`
	CreatedAt      Time      `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	UpdatedAt      Time      `json:"updated_at" example:"2026-11-20T10:15:30.123456Z"`
}

// AlertView is the configuration of an alert; each kind has its own fields.
type AlertView struct {
	WindowMinutes int64   `json:"window_minutes,omitempty" example:"10"`
	Threshold     int64   `json:"threshold,omitempty" example:"5"`
	Keyword       string  `json:"keyword,omitempty"`
	Field         string  `json:"field,omitempty"`
	Factor        float64 `json:"factor,omitempty"`
	MinCount      int64   `json:"min_count,omitempty"`
	EventType     string  `json:"event_type,omitempty"`
}

// CreateAlert is the body of POST /endpoints/{endpoint_id}/alerts.
type CreateAlert struct {
	_     struct{}  `additionalProperties:"false"`
	Alert *NewAlert `json:"alert,omitempty" required:"true"`
}

// NewAlert describes a new alert.
type NewAlert struct {
	_          struct{}                `additionalProperties:"false"`
	Name       Optional[string]        `json:"name,omitzero" required:"true" minLength:"1" maxLength:"200" example:"Deliveries fail"`
	Kind       Optional[string]        `json:"kind,omitzero" required:"true" enum:"missing_webhook,error_response,keyword_match,volume_spike,schema_drift" example:"error_response"`
	Enabled    Optional[bool]          `json:"enabled,omitzero" doc:"Default true." example:"true"`
	Config     Optional[AlertSettings] `json:"config,omitzero" required:"true"`
	ChannelIDs Optional[[]string]      `json:"channel_ids,omitzero" maxItems:"20" doc:"Notification channels of the endpoint's workspace that are told; 20 at most."`
}

// UpdateAlert is the body of PATCH /endpoints/{endpoint_id}/alerts/{alert_id}.
type UpdateAlert struct {
	_     struct{}     `additionalProperties:"false"`
	Alert *AlertChange `json:"alert,omitempty" required:"true"`
}

// AlertChange lists the fields to change; absent ones stay, also within config.
type AlertChange struct {
	_          struct{}                `additionalProperties:"false"`
	Name       Optional[string]        `json:"name,omitzero" minLength:"1" maxLength:"200" example:"Deliveries fail"`
	Kind       Optional[string]        `json:"kind,omitzero" doc:"May not change."`
	Enabled    Optional[bool]          `json:"enabled,omitzero" doc:"It watches anew from when it is enabled." example:"true"`
	Config     Optional[AlertSettings] `json:"config,omitzero"`
	ChannelIDs Optional[[]string]      `json:"channel_ids,omitzero" maxItems:"20" doc:"All of them."`
}

// AlertSettings are the configuration of an alert; each kind has its own fields, and no others.
type AlertSettings struct {
	_             struct{}          `additionalProperties:"false"`
	WindowMinutes Optional[int64]   `json:"window_minutes,omitzero" minimum:"1" maximum:"1440" doc:"missing_webhook, error_response and volume_spike: 1 to 1440." example:"10"`
	Threshold     Optional[int64]   `json:"threshold,omitzero" minimum:"1" maximum:"1000000" doc:"error_response: how many deliveries to forwarding targets, by forward steps and through the tunnel that failed or were answered with 400 or more." example:"5"`
	Keyword       Optional[string]  `json:"keyword,omitzero" minLength:"1" maxLength:"200" doc:"keyword_match: 1 to 200 characters; ASCII letters compare without case."`
	Field         Optional[string]  `json:"field,omitzero" pattern:"^((any|body|headers|path|query|event_type|subject|from|to)$|/)" doc:"keyword_match: any (the default), body, headers, path, query, event_type, subject, from, to, or a JSON Pointer into the body."`
	Factor        Optional[float64] `json:"factor,omitzero" minimum:"1.01" maximum:"1000000" doc:"volume_spike: how many times the average of the 24 windows before."`
	MinCount      Optional[int64]   `json:"min_count,omitzero" minimum:"1" maximum:"1000000" doc:"volume_spike: fewer events in the window are no spike; default 10."`
	EventType     Optional[string]  `json:"event_type,omitzero" maxLength:"200" doc:"schema_drift: of this event type alone; of any when it is not given."`
}

// Incident is a period in which an alert was triggered.
type Incident struct {
	ID         string  `json:"id" example:"inc_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	AlertID    string  `json:"alert_id" example:"alrt_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	RequestID  *string `json:"request_id" doc:"The event that triggered it; null where none did." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Summary    string  `json:"summary" example:"5 or more deliveries failed or were answered with 400 or more within 10 minutes."`
	Resolution *string `json:"resolution" doc:"null while it goes on." example:"Only 2 bad deliveries are left in 10 minutes."`
	StartedAt  Time    `json:"started_at" example:"2026-11-20T10:15:30.123456Z"`
	ResolvedAt *Time   `json:"resolved_at" doc:"null while it goes on." example:"2026-11-20T10:25:30.123456Z"`
}

// FromAlert converts an alert.
func FromAlert(a hookglass.Alert) Alert {
	channels := a.ChannelIDs
	if channels == nil {
		channels = []string{}
	}
	return Alert{
		ID: a.ID, EndpointID: string(a.EndpointID), Name: a.Name, Kind: string(a.Kind), Enabled: a.Enabled, Config: AlertView(a.Config),
		ChannelIDs: channels, State: string(a.State), StateChangedAt: Time{a.ChangedAt}, CreatedAt: Time{a.CreatedAt}, UpdatedAt: Time{a.UpdatedAt},
	}
}

// FromIncident converts an incident of an alert.
func FromIncident(alertID string, i hookglass.Incident) Incident {
	return Incident{
		ID: i.ID, AlertID: alertID, RequestID: nonzero(string(i.EventID)), Summary: i.Summary, Resolution: nonzero(i.Resolution),
		StartedAt: Time{i.StartedAt}, ResolvedAt: at(i.ResolvedAt),
	}
}
