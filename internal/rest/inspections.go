package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

type comparisonOf struct {
	EventPath
	Other string `query:"other_request_id" required:"true" shortest:"1" doc:"The event to compare it with; it may be of another endpoint." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wy"`
}

func (s *service) inspections(t *table) {
	const tag, base = "Requests", "/endpoints/{endpoint_id}/requests/{id}"
	read := access{scope: hookglass.ScopeRead}
	handle(t, operation{
		id: "diagnose-request", method: http.MethodGet, path: base + "/diagnosis", tag: tag, summary: "Explain what became of an event", access: read,
		text: "Its signature or authentication, the answer that the sender was given and whether it will send again, every delivery and action, and what to do next.",
	}, s.diagnose)
	handle(t, operation{
		id: "compare-requests", method: http.MethodGet, path: base + "/comparison", tag: tag, summary: "Compare two events", access: read,
		text: "Fields, headers, query and body: JSON by pointer, forms by parameter, other text by line.",
	}, s.compareRequests)
}

func (s *service) diagnose(ctx context.Context, in *EventPath) (out api.One[api.Diagnosis], err error) {
	d, err := s.Diagnoses.Diagnose(ctx, asker(ctx), in.EndpointID, in.ID)
	out.Data = api.FromDiagnosis(d)
	return out, err
}

func (s *service) compareRequests(ctx context.Context, in *comparisonOf) (out api.One[api.Comparison], err error) {
	other, err := store.Read(ctx, s.DB, asker(ctx), func(v *store.View) (hookglass.Endpoint, error) { return v.EndpointOfEvent(in.Other) })
	if err != nil {
		return out, err
	}
	c, err := s.Diagnoses.Compare(ctx, asker(ctx), in.EndpointID, in.ID, string(other.ID), in.Other)
	out.Data = api.FromComparison(c)
	return out, err
}
