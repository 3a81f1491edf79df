package mcp

import (
	"context"
	"slices"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/draft"
	"hookglass/internal/httpd"
	"hookglass/internal/store"
)

// table lists the tools (spec, "MCP interface").
func table() []tool {
	return slices.Concat(endpointTools(), requestTools(), replayTools(), actionTools(), inspectionTools(), alertTools())
}

type (
	// Paging are the arguments of a list.
	Paging struct {
		Limit  int    `json:"limit" minimum:"1" maximum:"100" default:"25" doc:"How many at most."`
		Cursor string `json:"cursor" doc:"The next_cursor of the answer before; leave it out for the first page."`
	}

	// InEndpoint is the endpoint that a tool is about.
	InEndpoint struct {
		EndpointID string `json:"endpoint_id" required:"true" doc:"The endpoint's id (ep_…) or custom id."`
	}

	// inEndpointPaged are the arguments of a list of what lies in an endpoint.
	inEndpointPaged struct {
		InEndpoint
		Paging
	}

	newEndpoint struct {
		Name           *string             `json:"name" required:"true" minLength:"1" maxLength:"200" doc:"A label for people."`
		Kind           *string             `json:"kind" enum:"webhook,email" doc:"What it catches; default webhook."`
		Provider       *string             `json:"provider" enum:"github,stripe,shopify,slack,twilio" doc:"The intended source of webhooks. Detection does not need it."`
		EmailLocalPart *string             `json:"email_local_part" doc:"For email endpoints: what stands before the @, lower case, 2 to 50 characters; random when left out."`
		CustomID       *string             `json:"custom_id" doc:"A readable id, lower case letters, digits and hyphens; unique in the installation."`
		ProviderConfig *api.ProviderConfig `json:"provider_config" doc:"How handshakes and answers are treated."`
		Response       *api.Response       `json:"response" doc:"A custom answer to senders of webhooks."`
		ResponseScript *string             `json:"response_script" maxLength:"1000" doc:"What the attempts of each delivery are answered one after another, the last one all that follow: 500*3,timeout,200 for webhooks; 451*2,250 for mail, where rcpt:550 has recipients be refused."`
		Enabled        *bool               `json:"enabled" doc:"Default true."`
		WorkspaceID    *int64              `json:"workspace_id" doc:"Where to create it; default the token's workspace, or the account's oldest."`
	}
)

func endpointTools() []tool {
	return []tool{
		define(tool{
			name: "list_endpoints", title: "List endpoints", scope: hookglass.ScopeRead, hints: reads,
			text: "Use this first, to find the endpoint you are to work with. Returns the webhook and email endpoints that the token may see, oldest first, with their addresses and how many events each holds. Cheap.",
		}, (*service).listEndpoints),
		define(tool{
			name: "get_endpoint", title: "Read an endpoint", scope: hookglass.ScopeRead, hints: reads,
			text: "Use this to see all settings of one endpoint: its address, its custom response to senders, whether a local machine is connected by tunnel. Cheap.",
		}, (*service).getEndpoint),
		define(tool{
			name: "create_endpoint", title: "Create an endpoint", scope: hookglass.ScopeWrite, hints: creates,
			text: "Use this when something needs an address of its own to send webhooks or mail to. Returns the endpoint with its webhook_url or email_address. Each call makes another one.",
		}, (*service).createEndpoint),
		define(tool{
			name: "delete_endpoint", title: "Delete an endpoint", scope: hookglass.ScopeWrite, hints: removes,
			text: "Use this only when you were asked to remove an endpoint. It goes for good, with all its events, actions, alerts and replay cases; senders are answered 404 from then on.",
		}, (*service).deleteEndpoint),
	}
}

func (s *service) listEndpoints(ctx context.Context, in *Paging) (out api.List[api.Endpoint], err error) {
	p, err := ofEndpoints.Page(in.Limit, in.Cursor)
	if err != nil {
		return out, err
	}
	err = s.view(ctx, func(v *store.View) error {
		found, err := v.Endpoints(p.Behind, p.Most())
		out = httpd.Answer(p, found, func(e hookglass.Endpoint) int64 { return e.Num }, s.endpoint)
		return err
	})
	return out, err
}

func (s *service) getEndpoint(ctx context.Context, in *InEndpoint) (out api.One[api.Endpoint], err error) {
	err = s.view(ctx, func(v *store.View) error {
		e, err := v.Endpoint(in.EndpointID)
		out.Data = s.endpoint(e)
		return err
	})
	return out, err
}

func (s *service) createEndpoint(ctx context.Context, in *newEndpoint) (out api.One[api.Endpoint], err error) {
	d, err := draft.Endpoint(&api.NewEndpoint{
		Name: api.Maybe(in.Name), Kind: api.Maybe(in.Kind), Provider: api.Maybe(in.Provider), EmailLocalPart: api.Maybe(in.EmailLocalPart), CustomID: api.Maybe(in.CustomID),
		ProviderConfig: api.Maybe(in.ProviderConfig), Response: api.Maybe(in.Response), ResponseScript: api.Maybe(in.ResponseScript), Enabled: api.Maybe(in.Enabled), WorkspaceID: api.Maybe(in.WorkspaceID),
	})
	if err != nil {
		return out, err
	}
	e, err := s.Endpoints.Create(ctx, asker(ctx), d)
	out.Data = s.endpoint(e)
	return out, err
}

func (s *service) deleteEndpoint(ctx context.Context, in *InEndpoint) (out api.One[api.Deleted], err error) {
	e, err := s.Endpoints.Delete(ctx, asker(ctx), in.EndpointID)
	out.Data = api.Deleted{ID: string(e.ID), Deleted: true}
	return out, err
}

func (s *service) endpoint(e hookglass.Endpoint) api.Endpoint {
	return api.FromEndpoint(e, s.Addresses)
}
