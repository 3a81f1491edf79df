package mcp

import (
	"cmp"
	"context"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/store"
)

type (
	compared struct {
		RequestID      string `json:"request_id" required:"true" doc:"One request: its id, \"latest\", \"latest <event type>\", or the sender's own id."`
		OtherRequestID string `json:"other_request_id" required:"true" doc:"The other one, in the same manner."`
		EndpointID     string `json:"endpoint_id" doc:"The endpoint's id or custom id; needed only where a request is not named by its own id."`
	}

	metricsWindow struct {
		InEndpoint
		Window string `json:"window" default:"24h" doc:"How far back: a number and m, h or d, 1m to 90d; default 24h."`
		Step   string `json:"step" doc:"The length of a step: a number and m, h or d; default one that gives about 24."`
	}
)

func inspectionTools() []tool {
	return []tool{
		define(tool{
			name: "diagnose_request", title: "Diagnose a captured request", scope: hookglass.ScopeRead, hints: reads, captured: true,
			text: "Use this when a webhook or mail did not do what it should. Explains why a signature fails, what the sender was answered and whether it will send again, what became of every delivery and action, and what to do next, the most useful first. Takes up to a second.",
		}, (*service).diagnose),
		define(tool{
			name: "compare_requests", title: "Compare two captured requests", scope: hookglass.ScopeRead, hints: reads, captured: true,
			text: "Use this to see why one request worked and another did not. Returns what differs in fields, headers, query and body (decompressed), JSON by pointer, other text by line; left is request_id. Cheaper than reading both.",
		}, (*service).compare),
		define(tool{
			name: "get_endpoint_metrics", title: "Read figures of an endpoint", scope: hookglass.ScopeRead, hints: reads, captured: true,
			text: "Use this to see how much an endpoint receives and how healthy it is: counts over time and by provider, event type, status and signature status, delivery times, failures, totals of actions. Cheap.",
		}, (*service).metrics),
	}
}

func (s *service) diagnose(ctx context.Context, in *RequestPath) (out api.One[api.Diagnosis], err error) {
	ref, id, err := s.locate(ctx, *in)
	if err != nil {
		return out, err
	}
	d, err := s.Diagnoses.Diagnose(ctx, asker(ctx), ref, id)
	out.Data = api.FromDiagnosis(d)
	return out, err
}

func (s *service) compare(ctx context.Context, in *compared) (out api.One[api.Comparison], err error) {
	var refs, ids [2]string
	err = s.view(ctx, func(v *store.View) error {
		for i, word := range []string{in.RequestID, in.OtherRequestID} {
			p := RequestPath{EndpointID: in.EndpointID, RequestID: word}
			if _, wrong := hookglass.ParseEventID(word); wrong == nil {
				p.EndpointID = "" // it says by itself where it is
			}
			if refs[i], ids[i], err = p.find(v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	c, err := s.Diagnoses.Compare(ctx, asker(ctx), refs[0], ids[0], refs[1], ids[1])
	out.Data = api.FromComparison(c)
	return out, err
}

func (s *service) metrics(ctx context.Context, in *metricsWindow) (out api.One[api.Metrics], err error) {
	err = s.view(ctx, func(v *store.View) error {
		f, err := v.WindowFigures(in.EndpointID, cmp.Or(in.Window, "24h"), in.Step)
		out.Data = api.FromFigures(f)
		return err
	})
	return out, err
}
