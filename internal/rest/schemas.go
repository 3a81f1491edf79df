package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/drift"
)

type (
	schemaList struct {
		InEndpoint
		Sample int `query:"sample" minimum:"1" maximum:"2000" default:"500" doc:"How many of the newest events are looked at where the endpoint keeps no schemas." example:"500"`
	}

	// SchemaPath is the path of the schema of one event type.
	SchemaPath struct {
		InEndpoint
		EventType string `path:"event_type" doc:"The provider's event type; - for events without one." example:"invoice.paid"`
		Provider  string `query:"provider" doc:"Where several providers have events of this type." example:"stripe"`
	}

	schemaOf struct {
		SchemaPath
		Sample int `query:"sample" minimum:"1" maximum:"2000" default:"500" doc:"How many of the newest events are looked at where the endpoint keeps no schemas." example:"500"`
	}

	schemaCode struct {
		SchemaPath
		Lang string `query:"lang" enum:"go,ts" default:"ts" doc:"The language." example:"ts"`
	}
)

func (s *service) schemas(t *table) {
	const tag, base = "Schemas", "/endpoints/{endpoint_id}/schemas"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handle(t, operation{
		id: "list-schemas", method: http.MethodGet, path: base, tag: tag, summary: "List the schemas of event types", access: read,
		text: "Inferred from JSON bodies, by provider and event type. While the endpoint's schema_tracking is on they are kept, of all that arrives; otherwise they are inferred from the newest events, as many as two seconds are enough for.",
	}, s.listSchemas)
	handle(t, operation{
		id: "get-schema", method: http.MethodGet, path: base + "/{event_type}", tag: tag, summary: "Read the schema of an event type", access: read,
		text: "As JSON Schema 2020-12, and each place with what was seen there. No values are in it but the words of small sets.",
	}, s.getSchema)
	handle(t, operation{
		id: "get-schema-types", method: http.MethodGet, path: base + "/{event_type}/types", tag: tag, summary: "Read the schema of an event type as types of a language", access: read,
		text: "Types of TypeScript or Go to paste into a program, from the same schema. 404 where no event of this type with a JSON body is known.",
	}, s.getSchemaTypes)
	handle(t, operation{
		id: "get-schema-drift", method: http.MethodGet, path: base + "/{event_type}/drift", tag: tag, summary: "Read how an event type departs from its baseline", access: read,
		text: "What arrived since the baseline was accepted: members that are new, gone or not always there any more, types and words that it does not know. An alert of kind schema_drift tells of it.",
	}, s.getSchemaDrift)
	handle(t, operation{
		id: "accept-schema", method: http.MethodPost, path: base + "/{event_type}/accept", tag: tag, summary: "Make the schema of an event type its baseline", access: write,
		text: "What is known by now is as it should be: drift is counted anew. 409 where the endpoint's schema_tracking is off.", errors: []int{http.StatusConflict},
	}, s.acceptSchema)
	handle(t, operation{
		id: "delete-schema", method: http.MethodDelete, path: base + "/{event_type}", tag: tag, summary: "Forget the schema of an event type", access: write,
		text: "With its baseline. What arrives from then on begins another.",
	}, s.deleteSchema)
}

func (s *service) listSchemas(ctx context.Context, in *schemaList) (out api.SchemaList, err error) {
	all, err := s.Drift.All(ctx, asker(ctx), in.EndpointID, in.Sample)
	if err != nil {
		return out, err
	}
	out.Data = []api.SchemaSummary{}
	for _, t := range all.Types {
		out.Data = append(out.Data, t.Summary())
	}
	out.Meta = api.SchemaMeta{Tracking: all.Endpoint.SchemaTracking, Source: all.Source(), Events: all.Events, More: all.More}
	return out, nil
}

func (s *service) getSchema(ctx context.Context, in *schemaOf) (out api.One[api.Schema], err error) {
	all, t, err := s.Drift.One(ctx, asker(ctx), in.EndpointID, in.EventType, in.Provider, in.Sample)
	if err == nil {
		out.Data = t.Whole(all.Source())
	}
	return out, err
}

func (s *service) getSchemaTypes(ctx context.Context, in *schemaCode) (out api.One[api.SchemaCode], err error) {
	_, t, err := s.Drift.One(ctx, asker(ctx), in.EndpointID, in.EventType, in.Provider, drift.DefaultSample)
	if err == nil {
		out.Data = api.SchemaCode{Language: in.Lang, Code: t.Code(in.Lang)}
	}
	return out, err
}

func (s *service) getSchemaDrift(ctx context.Context, in *schemaOf) (out api.One[api.SchemaDrifts], err error) {
	_, t, err := s.Drift.One(ctx, asker(ctx), in.EndpointID, in.EventType, in.Provider, in.Sample)
	if err == nil {
		out.Data = t.Drift()
	}
	return out, err
}

func (s *service) acceptSchema(ctx context.Context, in *SchemaPath) (out api.One[api.Schema], err error) {
	t, err := s.Drift.Accept(ctx, asker(ctx), in.EndpointID, in.EventType, in.Provider)
	if err == nil {
		out.Data = t.Whole(drift.Tracked)
	}
	return out, err
}

func (s *service) deleteSchema(ctx context.Context, in *SchemaPath) (out api.One[api.Deleted], err error) {
	err = s.Drift.Forget(ctx, asker(ctx), in.EndpointID, in.EventType, in.Provider)
	out.Data = api.Deleted{ID: in.EventType, Deleted: true}
	return out, err
}
