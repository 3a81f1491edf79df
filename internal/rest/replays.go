package rest

import (
	"context"
	"net/http"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/replay"
	"hookglass/internal/store"
)

type (
	replayList struct {
		EventPath
		Paging
	}

	// BatchPath is the path of one bulk replay.
	BatchPath struct {
		InEndpoint
		BatchID string `path:"batch_id" doc:"The bulk replay's id." example:"rbat_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	}

	batchItems struct {
		BatchPath
		Paging
	}
)

func (s *service) replays(t *table) {
	const tag, base = "Replay", "/endpoints/{endpoint_id}/requests/{id}"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handleBody(t, operation{
		id: "replay-request", method: http.MethodPost, path: base + "/replay", tag: tag, summary: "Replay a captured event", access: write,
		text: "Sends it at once and waits up to 30 seconds. Webhooks go with their method, headers and body; mail goes as JSON by POST. A target that " +
			"does not answer is a result with delivered: false; one that outbound protection forbids is 422. 429 is told where the bodies of other replays leave no room for a large one.",
		errors: []int{http.StatusTooManyRequests},
	}, s.replay)
	handle(t, operation{
		id: "list-replays", method: http.MethodGet, path: base + "/replays", tag: tag, summary: "List the replays of an event", access: read,
		text: "Newest first, with request and answer. Each is compared with the attempt before at the same target.",
	}, s.listReplays)

	const batches = "/endpoints/{endpoint_id}/replay_batches"
	handleBody(t, operation{
		id: "create-replay-batch", method: http.MethodPost, path: batches, tag: tag, summary: "Replay many events", access: write, status: http.StatusAccepted,
		text: "Those that the query means now, oldest first, one after another. No event is sent twice, whatever happens to the service.",
	}, s.createBatch)
	handle(t, operation{
		id: "list-replay-batches", method: http.MethodGet, path: batches, tag: tag, summary: "List bulk replays", access: read, text: "Newest first.",
	}, s.listBatches)
	handle(t, operation{
		id: "get-replay-batch", method: http.MethodGet, path: batches + "/{batch_id}", tag: tag, summary: "Read a bulk replay", access: read,
		text: "How far it is: how many events it is about, how many were answered with 2xx, failed or wait. It goes on until its state is completed, stopped or canceled.",
	}, s.getBatch)
	handle(t, operation{
		id: "list-replay-batch-results", method: http.MethodGet, path: batches + "/{batch_id}/results", tag: tag, summary: "List the results of a bulk replay", access: read,
		text: "In the order in which the events are sent.",
	}, s.listBatchItems)
	for _, m := range []struct {
		verb, summary string
		move          func(context.Context, hookglass.Principal, string, string) (hookglass.ReplayBatch, error)
	}{
		{"pause", "Pause a bulk replay", s.Replays.Pause},
		{"resume", "Go on with a paused bulk replay", s.Replays.Resume},
		{"cancel", "Cancel a bulk replay", s.Replays.Cancel},
	} {
		handle(t, operation{
			id: m.verb + "-replay-batch", method: http.MethodPost, path: batches + "/{batch_id}/" + m.verb, tag: tag, summary: m.summary, access: write,
			text: "An event that is under way is finished. Asked for again it changes nothing; any other change of one that has ended is 409.", errors: []int{http.StatusConflict},
		}, func(ctx context.Context, in *BatchPath) (out api.One[api.ReplayBatch], err error) {
			b, err := m.move(ctx, asker(ctx), in.EndpointID, in.BatchID)
			out.Data = api.FromReplayBatch(b)
			return out, err
		})
	}
}

func (s *service) replay(ctx context.Context, in *EventPath, body *api.ReplayRequest) (out api.One[api.Replay], err error) {
	done, err := s.Replays.Replay(ctx, asker(ctx), in.EndpointID, in.ID, replay.Request{
		TargetURL: body.TargetURL, Identity: body.IdentityMode, Signature: body.SignatureMode, Overrides: replay.ReadOverrides(body.Overrides),
		TimeShift: string(body.TimeShift), DryRun: body.DryRun,
	})
	if err != nil {
		return out, err
	}
	out.Data = api.FromReplay(done)
	return out, nil
}

func (s *service) listReplays(ctx context.Context, in *replayList) (api.List[api.ReplayRecord], error) {
	return listed(ctx, s, ofReplays, in, func(v *store.View, behind int64, most int) ([]*hookglass.Replay, error) {
		return v.Replays(in.EndpointID, in.ID, behind, most)
	}, func(r *hookglass.Replay) int64 { return r.Num }, api.FromReplayRecord)
}

func (s *service) createBatch(ctx context.Context, in *InEndpoint, body *api.CreateReplayBatch) (out api.One[api.ReplayBatch], err error) {
	r := replay.BatchRequest{
		Query: body.Query, Events: body.RequestIDs, TargetURL: body.TargetURL, Identity: body.IdentityMode, Signature: body.SignatureMode,
		StopOnFailure: body.StopOnFailure, DryRun: body.DryRun,
	}
	if body.Rate != nil {
		if r.Rate = *body.Rate; r.Rate == 0 {
			r.Rate = -1 // 0 would be the default
		}
	}
	b, err := s.Replays.CreateBatch(ctx, asker(ctx), in.EndpointID, r)
	out.Data = api.FromReplayBatch(b)
	return out, err
}

func (s *service) listBatches(ctx context.Context, in *inEndpointPaged) (api.List[api.ReplayBatch], error) {
	return listed(ctx, s, ofBatches, in, func(v *store.View, behind int64, most int) ([]hookglass.ReplayBatch, error) {
		return v.ReplayBatches(in.EndpointID, behind, most)
	}, func(b hookglass.ReplayBatch) int64 { return b.Num }, api.FromReplayBatch)
}

func (s *service) getBatch(ctx context.Context, in *BatchPath) (api.One[api.ReplayBatch], error) {
	return single(ctx, s, func(v *store.View) (hookglass.ReplayBatch, error) { return v.ReplayBatch(in.EndpointID, in.BatchID) }, api.FromReplayBatch)
}

func (s *service) listBatchItems(ctx context.Context, in *batchItems) (api.List[api.BatchItem], error) {
	return listed(ctx, s, ofBatchItems, in, func(v *store.View, behind int64, most int) ([]hookglass.BatchItem, error) {
		return v.BatchItems(in.EndpointID, in.BatchID, behind, most)
	}, func(i hookglass.BatchItem) int64 { return i.Num }, api.FromBatchItem)
}
