package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

type metricsQuery struct {
	InEndpoint
	Window string `query:"window" form:"^[0-9]+[mhd]$" default:"24h" doc:"How far back: a number and m, h or d; 1m to 90d, a whole number of steps." example:"24h"`
	Step   string `query:"step" form:"^[0-9]+[mhd]$" doc:"The length of a step: a number and m, h or d; at most 2,000 steps. Steps that are not whole hours divide the hour, and reach back 24 hours at most. Default is one that gives about 24." example:"1h"`
}

func (s *service) metrics(t *table) {
	handle(t, operation{
		id: "get-endpoint-metrics", method: http.MethodGet, path: "/endpoints/{endpoint_id}/metrics", tag: "Metrics", summary: "Read figures of an endpoint",
		text: "What was received in the window, by time, provider, event type, status and signature status, also what was deleted since; deliveries and how long they took; totals of " +
			"actions. Steps begin at whole multiples of their length in UTC; the last one goes on. Ignored events count in the volume, and in no figure of health or of deliveries.",
		access: access{scope: hookglass.ScopeRead},
	}, s.endpointMetrics)
}

func (s *service) endpointMetrics(ctx context.Context, in *metricsQuery) (api.One[api.Metrics], error) {
	return single(ctx, s, func(v *store.View) (hookglass.WindowFigures, error) {
		return v.WindowFigures(in.EndpointID, in.Window, in.Step)
	}, api.FromFigures)
}
