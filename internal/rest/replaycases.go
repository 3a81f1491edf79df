package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/replay"
)

type (
	// CasePath is the path of one replay case.
	CasePath struct {
		InEndpoint
		CaseID string `path:"case_id" doc:"The replay case's id." example:"rcase_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	}

	runCase struct {
		CasePath
		Key string `header:"Idempotency-Key" required:"true" shortest:"1" longest:"255" form:"^[^\\x00-\\x1F\\x7F-\\x9F]*$" doc:"Required, 1 to 255 characters, the caller's own. Repeated at the same version of the case it answers the same run, at another 409." example:"deploy-481"`
	}

	runPath struct {
		InEndpoint
		RunID string `path:"run_id" doc:"The run's id." example:"rrun_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	}

	runList struct {
		InEndpoint
		Paging
		CaseID string `query:"replay_case_id" doc:"Only the runs of one case." example:"rcase_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	}
)

func (s *service) replayCases(t *table) {
	const tag, base, runs = "Replay cases", "/endpoints/{endpoint_id}/replay_cases", "/endpoints/{endpoint_id}/replay_case_runs"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handle(t, operation{
		id: "list-replay-cases", method: http.MethodGet, path: base, tag: tag, summary: "List replay cases", access: read, text: "Newest first.",
	}, s.listCases)
	handleBody(t, operation{
		id: "create-replay-case", method: http.MethodPost, path: base, tag: tag, summary: "Save a replay case", access: write, status: http.StatusCreated,
		text: "With a copy of its source event, so it runs after the event is gone. At least one assertion on status or JSON is needed.",
	}, s.createCase)
	handle(t, operation{
		id: "get-replay-case", method: http.MethodGet, path: base + "/{case_id}", tag: tag, summary: "Read a replay case", access: read,
		text: "With its target, options and assertions, its last run, and the lock_version that a change must name. source_available tells whether the event that it was made from is still stored; it runs without it too.",
	}, s.getCase)
	handleBody(t, operation{
		id: "update-replay-case", method: http.MethodPatch, path: base + "/{case_id}", tag: tag, summary: "Change a replay case", access: write,
		text: "What the body does not name stays as it is. It names the lock_version that it was made from; a stale one is 409.", errors: []int{http.StatusConflict},
	}, s.updateCase)
	handle(t, operation{
		id: "delete-replay-case", method: http.MethodDelete, path: base + "/{case_id}", tag: tag, summary: "Delete a replay case", access: write,
		text: "Its runs stay in the list of runs.",
	}, s.deleteCase)
	handle(t, operation{
		id: "run-replay-case", method: http.MethodPost, path: base + "/{case_id}/run", tag: tag, summary: "Run a replay case", access: write, status: http.StatusAccepted,
		text:   "Sends the copy to the case's target, once at most, and judges the answer. Read the run until its state is final.",
		errors: []int{http.StatusConflict, http.StatusUnprocessableEntity},
	}, s.runCase)
	handle(t, operation{
		id: "list-replay-case-runs", method: http.MethodGet, path: runs, tag: tag, summary: "List runs of replay cases", access: read, text: "Newest first.",
	}, s.listRuns)
	handle(t, operation{
		id: "get-replay-case-run", method: http.MethodGet, path: runs + "/{run_id}", tag: tag, summary: "Read a run of a replay case", access: read,
		text: "Its state, what was sent, the answer and the result of each assertion; credentials are redacted. queued and running go on; each other state is final.",
	}, s.getRun)
}

func (s *service) listCases(ctx context.Context, in *inEndpointPaged) (api.List[api.ReplayCase], error) {
	return paged(ofCases, in, func(behind int64, most int) ([]hookglass.ReplayCase, error) {
		return s.Replays.Cases(ctx, asker(ctx), in.EndpointID, behind, most)
	}, func(c hookglass.ReplayCase) int64 { return c.Num }, api.FromReplayCase)
}

func (s *service) createCase(ctx context.Context, in *InEndpoint, body *api.CreateReplayCase) (out api.One[api.ReplayCase], err error) {
	b := body.ReplayCase
	if b == nil {
		return out, hookglass.Invalid("replay_case", "is required")
	}
	d, err := caseDraft(api.ReplayCaseChange{
		SourceID: b.SourceID, Name: b.Name, Description: b.Description, TargetURL: b.TargetURL, Options: b.Options, Assertions: b.Assertions,
	})
	if err != nil {
		return out, err
	}
	c, err := s.Replays.CreateCase(ctx, asker(ctx), in.EndpointID, d)
	out.Data = api.FromReplayCase(c)
	return out, err
}

func (s *service) getCase(ctx context.Context, in *CasePath) (out api.One[api.ReplayCase], err error) {
	c, err := s.Replays.Case(ctx, asker(ctx), in.EndpointID, in.CaseID)
	out.Data = api.FromReplayCase(c)
	return out, err
}

func (s *service) updateCase(ctx context.Context, in *CasePath, body *api.UpdateReplayCase) (out api.One[api.ReplayCase], err error) {
	if body.ReplayCase == nil {
		return out, hookglass.Invalid("replay_case", "is required")
	}
	d, err := caseDraft(*body.ReplayCase)
	if err != nil {
		return out, err
	}
	c, err := s.Replays.UpdateCase(ctx, asker(ctx), in.EndpointID, in.CaseID, d)
	out.Data = api.FromReplayCase(c)
	return out, err
}

func (s *service) deleteCase(ctx context.Context, in *CasePath) (out api.One[api.Deleted], err error) {
	err = s.Replays.DeleteCase(ctx, asker(ctx), in.EndpointID, in.CaseID)
	out.Data = api.Deleted{ID: in.CaseID, Deleted: true}
	return out, err
}

func (s *service) runCase(ctx context.Context, in *runCase) (out api.One[api.ReplayCaseRun], err error) {
	r, err := s.Replays.RunCase(ctx, asker(ctx), in.EndpointID, in.CaseID, in.Key)
	out.Data = api.FromReplayCaseRun(r)
	return out, err
}

func (s *service) listRuns(ctx context.Context, in *runList) (api.List[api.ReplayCaseRun], error) {
	return paged(ofRuns, in, func(behind int64, most int) ([]hookglass.ReplayCaseRun, error) {
		return s.Replays.CaseRuns(ctx, asker(ctx), in.EndpointID, in.CaseID, behind, most)
	}, func(r hookglass.ReplayCaseRun) int64 { return r.Num }, api.FromReplayCaseRun)
}

func (s *service) getRun(ctx context.Context, in *runPath) (out api.One[api.ReplayCaseRun], err error) {
	r, err := s.Replays.CaseRun(ctx, asker(ctx), in.EndpointID, in.RunID)
	out.Data = api.FromReplayCaseRun(r)
	return out, err
}

// caseDraft converts what a caller set. Only a description may be null, which clears it.
func caseDraft(c api.ReplayCaseChange) (d replay.CaseDraft, err error) {
	var faults []hookglass.FieldError
	const in = "replay_case."
	d.SourceID = given(&faults, in+"source_id", c.SourceID, false)
	d.Name = given(&faults, in+"name", c.Name, false)
	d.Description = given(&faults, in+"description", c.Description, true)
	d.TargetURL = given(&faults, in+"target_url", c.TargetURL, false)
	d.LockVersion = given(&faults, in+"lock_version", c.LockVersion, false)
	if o := given(&faults, in+"options", c.Options, false); o != nil {
		d.Options = &replay.CaseOptions{Identity: o.IdentityMode, Signature: o.SignatureMode}
	}
	if a := given(&faults, in+"assertions", c.Assertions, false); a != nil {
		d.Assertions = replay.ReadAssertions(&faults, in+"assertions.", a)
	}
	return d, hookglass.Refusal(faults, nil)
}
