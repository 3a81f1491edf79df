package mcp

import (
	"context"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/httpd"
	"hookglass/internal/replay"
)

type (
	replayRequest struct {
		RequestPath
		TargetURL     string         `json:"target_url" required:"true" doc:"Where to send it, or the word tunnel for the machine connected by hookglass listen."`
		IdentityMode  string         `json:"identity_mode" enum:"original,regenerate" doc:"Default original. regenerate makes a new delivery id, so that a handler does not take it for a duplicate; webhooks with a JSON body."`
		SignatureMode string         `json:"signature_mode" enum:"preserve,strip,resign" doc:"Default preserve. resign signs anew with the endpoint's signature config; an old timestamp fails otherwise."`
		Overrides     *api.Overrides `json:"overrides" doc:"Changes to a copy of the request: method, headers (null removes one), body, query."`
		TimeShift     api.TimeShift  `json:"time_shift" also:"integer" doc:"Moves all times in the request and signs anew: now, +3h, -2d, or milliseconds. For handlers that refuse old requests."`
		DryRun        bool           `json:"dry_run" doc:"Send nothing; show what would be sent and which times would move."`
		MaxBytes      int            `json:"max_bytes" minimum:"1" maximum:"262144" default:"16384" doc:"How much of the target's answer is returned."`
	}

	newCase struct {
		InEndpoint
		SourceID      string           `json:"source_id" required:"true" doc:"The request that it replays: its id, \"latest\", \"latest <event type>\", or the sender's own id. The case keeps a copy."`
		Name          *string          `json:"name" required:"true" minLength:"1" maxLength:"200" doc:"What it shows, for people."`
		Description   *string          `json:"description" maxLength:"2000" doc:"More for people."`
		TargetURL     *string          `json:"target_url" required:"true" doc:"Where every run sends it, or the word tunnel."`
		Options       *api.CaseOptions `json:"options" doc:"identity_mode and signature_mode, if you do not give them beside this."`
		IdentityMode  string           `json:"identity_mode" enum:"original,regenerate" doc:"Default original."`
		SignatureMode string           `json:"signature_mode" enum:"preserve,strip,resign" doc:"Default preserve."`
		Assertions    *api.Assertions  `json:"assertions" required:"true" doc:"What the answer must be: status {class: \"2xx\"} or {code: 200}, and json_subset, an object that the answer must contain. At least one."`
	}

	// CasePath identifies a replay case.
	CasePath struct {
		InEndpoint
		CaseID string `json:"case_id" required:"true" doc:"The replay case's id, rcase_…."`
	}

	runCase struct {
		CasePath
		IdempotencyKey string `json:"idempotency_key" required:"true" minLength:"1" maxLength:"255" doc:"Your own key for this run, 1 to 255 characters. The same key answers the same run again, so a repeated call sends nothing twice."`
	}

	runPath struct {
		InEndpoint
		RunID    string `json:"run_id" required:"true" doc:"The run's id, rrun_…."`
		MaxBytes int    `json:"max_bytes" minimum:"1" maximum:"262144" default:"16384" doc:"How much of the target's answer is returned."`
	}

	// replayed and ranCase also say which bodies were cut here.
	replayed struct {
		api.Replay
		Truncated []string `json:"truncated"`
	}
	ranCase struct {
		api.ReplayCaseRun
		Truncated []string `json:"truncated"`
	}
)

func replayTools() []tool {
	return []tool{
		define(tool{
			name: "replay_request", title: "Replay a captured request", scope: hookglass.ScopeWrite, hints: sends, captured: true,
			text: "Use this to send a captured request to a handler once more, for example after you changed its code. It goes out at once, with its method, headers and body, and the target's answer is returned; the handler may act on it. Waits up to 30 seconds. A target that does not answer is a result with delivered: false.",
		}, (*service).replay),
		define(tool{
			name: "save_replay_case", title: "Save a replay case", scope: hookglass.ScopeWrite, hints: creates,
			text: "Use this to keep a captured request as a test: what is sent where, and what the answer must be. It runs after the request itself is gone. Nothing is sent yet; run_replay_case does that.",
		}, (*service).saveCase),
		define(tool{
			name: "list_replay_cases", title: "List replay cases", scope: hookglass.ScopeRead, hints: reads,
			text: "Use this to see which replay cases an endpoint has, and how the last run of each went. Newest first. Cheap.",
		}, (*service).listCases),
		define(tool{
			name: "get_replay_case", title: "Read a replay case", scope: hookglass.ScopeRead, hints: reads,
			text: "Use this to see what a replay case sends and what it asserts. Cheap.",
		}, (*service).getCase),
		define(tool{
			name: "run_replay_case", title: "Run a replay case", scope: hookglass.ScopeWrite, hints: hints{destructive: true, idempotent: true, openWorld: true}, captured: true,
			text: "Use this to send a replay case to its target and have the answer judged. Returns the run at once, usually queued; read it with get_replay_case_run until its state is passed, assertion_failed, transport_failed, blocked or unknown.",
		}, (*service).runCase),
		define(tool{
			name: "get_replay_case_run", title: "Read a run of a replay case", scope: hookglass.ScopeRead, hints: reads, captured: true,
			text: "Use this to see how a run went: its state, what was sent, the target's answer, and each assertion with what was expected and what came. Cheap.",
		}, (*service).getCaseRun),
	}
}

func (s *service) replay(ctx context.Context, in *replayRequest) (out api.One[replayed], err error) {
	ref, id, err := s.locate(ctx, in.RequestPath)
	if err != nil {
		return out, err
	}
	done, err := s.Replays.Replay(ctx, asker(ctx), ref, id, replay.Request{
		TargetURL: in.TargetURL, Identity: in.IdentityMode, Signature: in.SignatureMode, Overrides: replay.ReadOverrides(in.Overrides),
		TimeShift: string(in.TimeShift), DryRun: in.DryRun,
	})
	if err != nil {
		return out, err
	}
	out.Data = replayed{Replay: api.FromReplay(done), Truncated: []string{}}
	if body := out.Data.ResponseBody; body != nil && shorten(body, in.MaxBytes, out.Data.ResponseBodyEncoding) {
		out.Data.Truncated = append(out.Data.Truncated, "response_body")
	}
	return out, nil
}

func (s *service) saveCase(ctx context.Context, in *newCase) (out api.One[api.ReplayCase], err error) {
	var faults []hookglass.FieldError
	options := replay.CaseOptions{Identity: in.IdentityMode, Signature: in.SignatureMode}
	if o := in.Options; o != nil {
		for _, mode := range []struct {
			field  string
			beside *string
			inside string
		}{{"identity_mode", &options.Identity, o.IdentityMode}, {"signature_mode", &options.Signature, o.SignatureMode}} {
			switch {
			case *mode.beside == "":
				*mode.beside = mode.inside
			case mode.inside != "" && mode.inside != *mode.beside:
				faults = append(faults, hookglass.FieldError{Field: mode.field, Message: "differs from that in options; give it once"})
			}
		}
	}
	d := replay.CaseDraft{
		Name: in.Name, Description: in.Description, TargetURL: in.TargetURL, Options: &options,
		Assertions: replay.ReadAssertions(&faults, "assertions.", in.Assertions),
	}
	if len(faults) > 0 {
		return out, hookglass.InvalidFields(faults)
	}
	_, source, err := s.locate(ctx, RequestPath{EndpointID: in.EndpointID, RequestID: in.SourceID})
	if err != nil {
		return out, err
	}
	d.SourceID = &source
	c, err := s.Replays.CreateCase(ctx, asker(ctx), in.EndpointID, d)
	out.Data = api.FromReplayCase(c)
	return out, err
}

func (s *service) listCases(ctx context.Context, in *inEndpointPaged) (out api.List[api.ReplayCase], err error) {
	p, err := ofCases.Page(in.Limit, in.Cursor)
	if err != nil {
		return out, err
	}
	found, err := s.Replays.Cases(ctx, asker(ctx), in.EndpointID, p.Behind, p.Most())
	return httpd.Answer(p, found, func(c hookglass.ReplayCase) int64 { return c.Num }, api.FromReplayCase), err
}

func (s *service) getCase(ctx context.Context, in *CasePath) (out api.One[api.ReplayCase], err error) {
	c, err := s.Replays.Case(ctx, asker(ctx), in.EndpointID, in.CaseID)
	out.Data = api.FromReplayCase(c)
	return out, err
}

func (s *service) runCase(ctx context.Context, in *runCase) (out api.One[ranCase], err error) {
	r, err := s.Replays.RunCase(ctx, asker(ctx), in.EndpointID, in.CaseID, in.IdempotencyKey)
	out.Data = writeRun(r, maxRunBody)
	return out, err
}

// maxRunBody is how much of a target's answer is shown by default: a queried run may have an answer.
const maxRunBody = 16 << 10

func (s *service) getCaseRun(ctx context.Context, in *runPath) (out api.One[ranCase], err error) {
	r, err := s.Replays.CaseRun(ctx, asker(ctx), in.EndpointID, in.RunID)
	out.Data = writeRun(r, in.MaxBytes)
	return out, err
}

func writeRun(r hookglass.ReplayCaseRun, most int) ranCase {
	out := ranCase{ReplayCaseRun: api.FromReplayCaseRun(r), Truncated: []string{}}
	if res := out.Response; res != nil && shorten(&res.Body, most, res.BodyEncoding) {
		out.Truncated = append(out.Truncated, "response.body")
	}
	return out
}
