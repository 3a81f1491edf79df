package mcp

import (
	"context"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/alert"
	"hookglass/internal/httpd"
	"hookglass/internal/store"
)

type (
	newAlert struct {
		InEndpoint
		Name       *string        `json:"name" required:"true" doc:"A label for people."`
		Kind       *string        `json:"kind" required:"true" enum:"missing_webhook,error_response,keyword_match,volume_spike,schema_drift" doc:"What it watches for."`
		Enabled    *bool          `json:"enabled" doc:"Default true."`
		Config     *alertSettings `json:"config" required:"true" doc:"By kind: missing_webhook {window_minutes}; error_response {threshold, window_minutes}; keyword_match {keyword, field}; volume_spike {factor, window_minutes, min_count}; schema_drift {event_type}."`
		ChannelIDs *[]string      `json:"channel_ids" doc:"Notification channels (chan_…) that are told; 20 at most."`
	}

	alertSettings struct {
		WindowMinutes *int64   `json:"window_minutes" minimum:"1" maximum:"1440" doc:"missing_webhook, error_response and volume_spike: the time that counts."`
		Threshold     *int64   `json:"threshold" minimum:"1" doc:"error_response: how many deliveries failed or were answered with 400 or more."`
		Keyword       *string  `json:"keyword" doc:"keyword_match: 1 to 200 characters; ASCII letters compare without case."`
		Field         *string  `json:"field" doc:"keyword_match: any (the default), body, headers, path, query, event_type, subject, from, to, or a JSON Pointer into the body."`
		Factor        *float64 `json:"factor" doc:"volume_spike: 1.01 to 1,000,000; how many times the average of the 24 windows before."`
		MinCount      *int64   `json:"min_count" minimum:"1" doc:"volume_spike: fewer requests in the window are no spike; default 10."`
		EventType     *string  `json:"event_type" doc:"schema_drift: of this event type alone."`
	}
)

func alertTools() []tool {
	return []tool{
		define(tool{
			name: "list_alerts", title: "List alerts", scope: hookglass.ScopeRead, hints: reads,
			text: "Use this to see what is watched at an endpoint and which alerts are triggered now. Oldest first. Cheap.",
		}, (*service).listAlerts),
		define(tool{
			name: "create_alert", title: "Create an alert", scope: hookglass.ScopeWrite, hints: creates,
			text: "Use this to have someone told when webhooks stop coming, deliveries fail, a word appears, far more arrives than usual, or bodies change their form. It watches from now on, and tells the notification channels named, when it is triggered and when that is over.",
		}, (*service).createAlert),
	}
}

func (s *service) listAlerts(ctx context.Context, in *inEndpointPaged) (out api.List[api.Alert], err error) {
	p, err := ofAlerts.Page(in.Limit, in.Cursor)
	if err != nil {
		return out, err
	}
	err = s.view(ctx, func(v *store.View) error {
		found, err := v.Alerts(in.EndpointID, p.Behind, p.Most())
		out = httpd.Answer(p, found, func(a hookglass.Alert) int64 { return a.Num }, api.FromAlert)
		return err
	})
	return out, err
}

func (s *service) createAlert(ctx context.Context, in *newAlert) (out api.One[api.Alert], err error) {
	a, err := s.Alerts.Create(ctx, asker(ctx), in.EndpointID, alert.Draft{
		Name: in.Name, Kind: (*hookglass.AlertKind)(in.Kind), Enabled: in.Enabled, ChannelIDs: in.ChannelIDs, Config: in.Config.settings(),
	})
	out.Data = api.FromAlert(a)
	return out, err
}

func (c *alertSettings) settings() *alert.Settings {
	return &alert.Settings{WindowMinutes: c.WindowMinutes, Threshold: c.Threshold, Keyword: c.Keyword, Field: c.Field, Factor: c.Factor, MinCount: c.MinCount, EventType: c.EventType}
}
