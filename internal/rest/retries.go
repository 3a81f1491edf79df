package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/retries"
)

type retryQuery struct {
	InEndpoint
	EventFilter
	Events int `query:"events" minimum:"1" maximum:"2000" default:"500" doc:"How many of the newest events that the filters mean are looked at." example:"500"`
	Limit  int `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"How many deliveries are listed at most; the summary is of all." example:"20"`
}

func (s *service) retryProfile(t *table) {
	handle(t, operation{
		id: "get-retry-profile", method: http.MethodGet, path: "/endpoints/{endpoint_id}/retry_profile", tag: "Metrics", summary: "Measure how senders retry",
		text: "The attempts of each delivery, told to belong together by the provider's delivery id, else its event id, else the body and the event type: when they came, what each was answered, " +
			"and what changed between them. The summary has the schedule with its jitter, what senders did after each answer, whether they honour Retry-After, and what they document. Give the endpoint a " +
			"response_script to see more than the first attempt. Reading takes three seconds at most, besides the search for the events.",
		access: access{scope: hookglass.ScopeRead},
	}, s.getRetryProfile)
}

func (s *service) getRetryProfile(ctx context.Context, in *retryQuery) (out api.One[api.RetryProfile], err error) {
	q, err := in.query(s.DB.Now())
	if err != nil {
		return out, err
	}
	p, err := s.Retries.Profile(ctx, asker(ctx), in.EndpointID, retries.Options{Query: q, Events: in.Events, Groups: in.Limit})
	out.Data = api.FromRetryProfile(p)
	return out, err
}
