package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/draft"
	"hookglass/internal/store"
)

type (
	incidentList struct {
		AlertPath
		Paging
	}

	// AlertPath is the path of one alert.
	AlertPath struct {
		InEndpoint
		AlertID string `path:"alert_id" doc:"The alert's id." example:"alrt_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	}
)

func (s *service) alerts(t *table) {
	const tag, base = "Alerts", "/endpoints/{endpoint_id}/alerts"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handle(t, operation{
		id: "list-alerts", method: http.MethodGet, path: base, tag: tag, summary: "List alerts", text: "Oldest first.", access: read,
	}, s.listAlerts)
	handleBody(t, operation{
		id: "create-alert", method: http.MethodPost, path: base, tag: tag, summary: "Create an alert", access: write, status: http.StatusCreated,
		text: "missing_webhook {window_minutes}: nothing arrived for so long. error_response {threshold, window_minutes}: so many deliveries failed or were answered with 400 or more; " +
			"it is resolved when half of them or fewer are left. keyword_match {keyword, field}: resolved when 10 minutes pass without a match. volume_spike {factor, window_minutes, " +
			"min_count}: more events than factor times the average of the 24 windows before. schema_drift {event_type}: bodies depart from the schema that was accepted for their type, until " +
			"what is new is accepted. Ignored events count in none. An alert is judged every 10 seconds; each time in which it is " +
			"triggered is one incident, with one alert.triggered in the activity feed, and its channels are told when it begins and when it ends.",
	}, s.createAlert)
	handle(t, operation{
		id: "get-alert", method: http.MethodGet, path: base + "/{alert_id}", tag: tag, summary: "Read an alert", access: read,
		text: "With its state, ok or triggered, and when that changed. One that is disabled watches nothing.",
	}, s.getAlert)
	handleBody(t, operation{
		id: "update-alert", method: http.MethodPatch, path: base + "/{alert_id}", tag: tag, summary: "Change an alert", access: write,
		text: "What the body does not name stays as it is. One that is to watch for something else watches anew, and its incident, if one goes on, is resolved.",
	}, s.updateAlert)
	handle(t, operation{
		id: "delete-alert", method: http.MethodDelete, path: base + "/{alert_id}", tag: tag, summary: "Delete an alert", text: "With its history.", access: write,
	}, s.deleteAlert)
	handle(t, operation{
		id: "list-alert-incidents", method: http.MethodGet, path: base + "/{alert_id}/incidents", tag: tag, summary: "List the incidents of an alert",
		text: "The times in which it was triggered, newest first.", access: read,
	}, s.listIncidents)
}

func (s *service) listAlerts(ctx context.Context, in *inEndpointListed) (api.List[api.Alert], error) {
	return listed(ctx, s, ofAlerts, in, func(v *store.View, behind int64, most int) ([]hookglass.Alert, error) {
		return v.Alerts(in.EndpointID, behind, most)
	}, func(a hookglass.Alert) int64 { return a.Num }, api.FromAlert)
}

func (s *service) createAlert(ctx context.Context, in *InEndpoint, body *api.CreateAlert) (out api.One[api.Alert], err error) {
	if body.Alert == nil {
		return out, hookglass.Invalid("alert", "is required")
	}
	d, err := draft.Alert(api.AlertChange(*body.Alert))
	if err != nil {
		return out, err
	}
	a, err := s.Alerts.Create(ctx, asker(ctx), in.EndpointID, d)
	out.Data = api.FromAlert(a)
	return out, err
}

func (s *service) getAlert(ctx context.Context, in *AlertPath) (api.One[api.Alert], error) {
	return single(ctx, s, func(v *store.View) (hookglass.Alert, error) { return v.Alert(in.EndpointID, in.AlertID) }, api.FromAlert)
}

func (s *service) updateAlert(ctx context.Context, in *AlertPath, body *api.UpdateAlert) (out api.One[api.Alert], err error) {
	if body.Alert == nil {
		return out, hookglass.Invalid("alert", "is required")
	}
	d, err := draft.Alert(*body.Alert)
	if err != nil {
		return out, err
	}
	a, err := s.Alerts.Update(ctx, asker(ctx), in.EndpointID, in.AlertID, d)
	out.Data = api.FromAlert(a)
	return out, err
}

func (s *service) deleteAlert(ctx context.Context, in *AlertPath) (out api.One[api.Deleted], err error) {
	err = s.Alerts.Delete(ctx, asker(ctx), in.EndpointID, in.AlertID)
	out.Data = api.Deleted{ID: in.AlertID, Deleted: true}
	return out, err
}

func (s *service) listIncidents(ctx context.Context, in *incidentList) (api.List[api.Incident], error) {
	return listed(ctx, s, ofIncidents, in, func(v *store.View, behind int64, most int) ([]hookglass.Incident, error) {
		return v.Incidents(in.EndpointID, in.AlertID, behind, most)
	}, func(i hookglass.Incident) int64 { return i.Num }, func(i hookglass.Incident) api.Incident { return api.FromIncident(in.AlertID, i) })
}
