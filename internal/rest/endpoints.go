package rest

import (
	"context"
	"net/http"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
	"hookglass/internal/draft"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
)

type endpointID struct {
	ID string `path:"id" doc:"The endpoint's id or custom id." example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
}

func (s *service) endpoints(t *table) {
	const tag = "Endpoints"
	handle(t, operation{
		id: "list-endpoints", method: http.MethodGet, path: "/endpoints", tag: tag, summary: "List endpoints",
		text: "Webhook and email endpoints, oldest first.", access: access{scope: hookglass.ScopeRead},
	}, s.listEndpoints)
	handleBody(t, operation{
		id: "create-endpoint", method: http.MethodPost, path: "/endpoints", tag: tag, summary: "Create an endpoint",
		text:   "A webhook endpoint, or with kind email an inbox. Its webhook_url or email_address is in the answer and takes events at once. 422 where a custom_id or a local part is taken, in any workspace of the installation.",
		access: access{scope: hookglass.ScopeWrite}, status: http.StatusCreated,
	}, s.createEndpoint)
	handle(t, operation{
		id: "get-endpoint", method: http.MethodGet, path: "/endpoints/{id}", tag: tag, summary: "Read an endpoint",
		text:   "By its id or its custom id, with how many events it has and when the last came. 404 also for an endpoint of another account or workspace. The secrets of its signature configs are never shown.",
		access: access{scope: hookglass.ScopeRead, key: true},
	}, s.getEndpoint)
	handleBody(t, operation{
		id: "update-endpoint", method: http.MethodPatch, path: "/endpoints/{id}", tag: tag, summary: "Change an endpoint",
		text: "What the body does not name stays as it is.", access: access{scope: hookglass.ScopeWrite},
	}, s.updateEndpoint)
	handleBody(t, operation{
		id: "try-response-rules", method: http.MethodPost, path: "/endpoints/{endpoint_id}/response_rules/try", tag: tag, summary: "Try rules of answers on captured events",
		text:   "Which rule would answer each of the last events that the query means, and with which status, if they came now to the endpoint as it is, but enabled. Nothing is sent, stored or counted.",
		access: access{scope: hookglass.ScopeRead}, bare: true,
	}, s.tryRules)
	handle(t, operation{
		id: "delete-endpoint", method: http.MethodDelete, path: "/endpoints/{id}", tag: tag, summary: "Delete an endpoint",
		text: "With all its events, for good.", access: access{scope: hookglass.ScopeWrite},
	}, s.deleteEndpoint)
	if s.TemporaryEndpoints {
		handle(t, operation{
			id: "create-temporary-endpoint", method: http.MethodPost, path: "/temporary_endpoints", tag: tag, summary: "Create a temporary endpoint",
			text: "It lives 24 hours and belongs to nobody. Its tunnel_key is shown in this answer alone; as a bearer token it reads and " +
				"deletes the endpoint's events. At most 10 a minute for one address.",
			access: access{public: true}, status: http.StatusCreated, limit: rate{10, time.Minute},
		}, s.createTemporaryEndpoint)
	}
}

func (s *service) listEndpoints(ctx context.Context, in *OptionalPaging) (api.List[api.Endpoint], error) {
	return listed(ctx, s, ofEndpoints, in, func(v *store.View, behind int64, most int) ([]hookglass.Endpoint, error) {
		return v.Endpoints(behind, most)
	}, func(e hookglass.Endpoint) int64 { return e.Num }, s.endpoint)
}

func (s *service) createEndpoint(ctx context.Context, _ *struct{}, body *api.CreateEndpoint) (out api.One[api.Endpoint], err error) {
	if body.Endpoint == nil {
		return out, hookglass.Invalid("endpoint", "is required")
	}
	d, err := draft.Endpoint(body.Endpoint)
	if err != nil {
		return out, err
	}
	e, err := s.Endpoints.Create(ctx, asker(ctx), d)
	out.Data = s.endpoint(e)
	return out, err
}

func (s *service) getEndpoint(ctx context.Context, in *endpointID) (api.One[api.Endpoint], error) {
	return single(ctx, s, func(v *store.View) (hookglass.Endpoint, error) { return v.Endpoint(in.ID) }, s.endpoint)
}

func (s *service) updateEndpoint(ctx context.Context, in *endpointID, body *api.UpdateEndpoint) (out api.One[api.Endpoint], err error) {
	c := body.Endpoint
	if c == nil {
		return out, hookglass.Invalid("endpoint", "is required")
	}
	d, err := draft.Endpoint(&api.NewEndpoint{
		Name: c.Name, Provider: c.Provider, CustomID: c.CustomID, ProviderConfig: c.ProviderConfig, Response: c.Response, Enabled: c.Enabled,
		ResponseRules: c.ResponseRules, ResponseScript: c.ResponseScript, SchemaTracking: c.SchemaTracking,
	})
	if err != nil {
		return out, err
	}
	e, err := s.Endpoints.Update(ctx, asker(ctx), in.ID, d)
	out.Data = s.endpoint(e)
	return out, err
}

func (s *service) tryRules(ctx context.Context, in *InEndpoint, body *api.TryRules) (out api.One[api.TriedRules], err error) {
	var faults []hookglass.FieldError
	q := given(&faults, "q", body.Q, false)
	limit := howMany(&faults, body.Limit, capture.DefaultTried, capture.MaxTried)
	rules := draft.Rules(body.ResponseRules)
	if rules != nil {
		err = endpoint.CheckRules(*rules)
	}
	if err = hookglass.Refusal(faults, err); err != nil {
		return out, err
	}
	tried, err := s.Captures.TryRules(ctx, asker(ctx), in.EndpointID, or(q), int(limit), rules)
	if err != nil {
		return out, err
	}
	out.Data = api.TriedRules{Evaluated: len(tried.Events), Complete: tried.Complete, Events: make([]api.TriedEvent, len(tried.Events))}
	for i, e := range tried.Events {
		out.Data.Events[i] = api.TriedEvent{
			EventID: string(e.Event.ID), RequestedAt: api.Time{Time: e.Event.ReceivedAt}, Method: e.Event.Method, Path: api.Text(e.Event.Path),
			AnsweredBy: string(e.By), Rule: api.FromReplyRule(e.Rule), Status: orNull(e.Status),
		}
		if e.Rule != nil {
			out.Data.Matched++
		}
	}
	return out, nil
}

func (s *service) deleteEndpoint(ctx context.Context, in *endpointID) (out api.One[api.Deleted], err error) {
	e, err := s.Endpoints.Delete(ctx, asker(ctx), in.ID)
	out.Data = api.Deleted{ID: string(e.ID), Deleted: true}
	return out, err
}

func (s *service) createTemporaryEndpoint(ctx context.Context, _ *struct{}) (out api.One[api.Endpoint], err error) {
	e, key, err := s.Endpoints.CreateTemporary(ctx)
	out.Data = s.endpoint(e)
	out.Data.TunnelKey = key
	return out, err
}

func (s *service) endpoint(e hookglass.Endpoint) api.Endpoint {
	return api.FromEndpoint(e, s.Addresses)
}
