package api

import "hookglass"

// Activity is one line of an account's feed.
type Activity struct {
	Type       string         `json:"type" enum:"webhook.received,email.received,forwarding.failed,alert.triggered" example:"webhook.received"`
	OccurredAt Time           `json:"occurred_at" example:"2026-11-20T10:15:30.123456Z"`
	EndpointID string         `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	RequestID  *string        `json:"request_id" doc:"The event that it is about; null when there is none." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Data       map[string]any `json:"data" doc:"webhook.received: method, path, content_type, size. email.received: from, to, subject, size. forwarding.failed: target_id, or action_id, run_id and step of a forward step; url_host, status_code, error, attempts. alert.triggered: alert_id, name, kind, summary." example:"{\"method\":\"POST\",\"path\":\"/orders\",\"content_type\":\"application/json\",\"size\":512}"`
}

// ActivityList is the answer of GET /events.
type ActivityList struct {
	Data []Activity    `json:"data"`
	Meta ActivityCount `json:"meta"`
}

// ActivityCount says how many lines there are in an answer.
type ActivityCount struct {
	Count int `json:"count" example:"1"`
}

// FromActivity converts a line of the feed.
func FromActivity(a hookglass.Activity) Activity {
	out := Activity{
		Type: string(a.Type), OccurredAt: Time{a.OccurredAt}, EndpointID: string(a.EndpointID),
		RequestID: nonzero(string(a.EventID)), Data: make(map[string]any, len(a.Data)),
	}
	for name, v := range a.Data {
		if s, ok := v.(string); ok {
			v = Text(s)
		}
		out.Data[name] = v
	}
	return out
}
