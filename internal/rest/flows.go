package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/flow"
	"hookglass/internal/store"
)

type (
	// FlowPath is the path of one flow.
	FlowPath struct {
		ID string `path:"flow_id" doc:"The flow's id." example:"flow_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	}

	flowKey struct {
		Key string `header:"Idempotency-Key" longest:"255" form:"^[^\\x00-\\x1F\\x7F-\\x9F]*$" doc:"Optional, 1 to 255 characters, the caller's own. Repeated with the same body it answers the flow that began before, with another 409." example:"deploy-481"`
	}

	flowList struct {
		Paging
		State string `query:"state" enum:"pending,passed,failed,expired" doc:"Only flows of this state." example:"pending"`
	}

	flowWait struct {
		FlowPath
		Timeout int   `query:"timeout" minimum:"1" maximum:"60" default:"30" doc:"How many seconds to wait at most." example:"30"`
		After   int64 `query:"after" minimum:"0" doc:"Answer as soon as the flow's version is greater than this; without it or with 0, as soon as it has ended." example:"1"`
	}
)

func (s *service) flows(t *table) {
	const tag, base = "Flows", "/flows"
	read, write := access{scope: hookglass.ScopeRead}, access{scope: hookglass.ScopeWrite}
	handle(t, operation{
		id: "list-flows", method: http.MethodGet, path: base, tag: tag, summary: "List flows", text: "Newest first. Those that ended are kept for 30 days.", access: read,
	}, s.listFlows)
	handleBody(t, operation{
		id: "create-flow", method: http.MethodPost, path: base, tag: tag, summary: "Begin a flow: expect webhooks and mail", access: write, status: http.StatusCreated, errors: []int{409},
		text: "A flow watches endpoints of one workspace from now on, each step for an event that meets all its conditions. It passes when every step has, fails when an event comes that may not " +
			"(never, exactly), and expires when a step is not met in time; then message and near_miss say what came nearest and which condition it did not meet. Times are those at which " +
			"events were received. An event counts for one step at most, and what counted is not held against another. An account may have 100 flows that go on.",
	}, s.createFlow)
	handle(t, operation{
		id: "get-flow", method: http.MethodGet, path: base + "/{flow_id}", tag: tag, summary: "Read a flow", access: read,
		text: "Its state and each step: what it waits for, how often that came and with which events. It answers at once; to wait for what comes, use wait.",
	}, s.getFlow)
	handle(t, operation{
		id: "wait-for-flow", method: http.MethodGet, path: base + "/{flow_id}/wait", tag: tag, summary: "Wait for a flow", access: read,
		text: "Answers as soon as the flow has ended or, with after, as soon as a step has moved on; at the latest when the time is over, with timed_out true. Call again then. It answers 401 as soon as the token is revoked.",
	}, s.waitForFlow)
	handle(t, operation{
		id: "delete-flow", method: http.MethodDelete, path: base + "/{flow_id}", tag: tag, summary: "Delete a flow", text: "One that goes on ends without a result.", access: write,
	}, s.deleteFlow)
}

func (s *service) listFlows(ctx context.Context, in *flowList) (api.List[api.Flow], error) {
	return listed(ctx, s, ofFlows, in, func(v *store.View, behind int64, most int) ([]hookglass.Flow, error) {
		return v.Flows(hookglass.FlowState(in.State), behind, most)
	}, func(f hookglass.Flow) int64 { return f.Num }, api.FromFlow)
}

func (s *service) createFlow(ctx context.Context, in *flowKey, body *api.CreateFlow) (out api.One[api.Flow], err error) {
	if body.Flow == nil {
		return out, hookglass.Invalid("flow", "is required")
	}
	d, err := flowDraft(*body.Flow, s.DB.Now())
	if err != nil {
		return out, err
	}
	f, err := s.Flows.Create(ctx, asker(ctx), d, in.Key)
	out.Data = api.FromFlow(f)
	return out, err
}

func (s *service) getFlow(ctx context.Context, in *FlowPath) (api.One[api.Flow], error) {
	return single(ctx, s, func(v *store.View) (hookglass.Flow, error) { return v.Flow(in.ID) }, api.FromFlow)
}

func (s *service) waitForFlow(ctx context.Context, in *flowWait) (out api.FlowWait, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(in.Timeout)*time.Second)
	defer cancel()
	after := in.After
	if after == 0 {
		after = -1 // versions begin at 1
	}
	var f hookglass.Flow
	err = s.whilePermitted(ctx, func(ctx context.Context) (err error) {
		f, err = s.Flows.Wait(ctx, asker(ctx), in.ID, after, s.Draining)
		return err
	})
	if err != nil {
		return out, err
	}
	out.Data = api.FromFlow(f)
	out.Meta.TimedOut = !f.State.Final() && (after < 0 || f.Version <= after)
	return out, nil
}

func (s *service) deleteFlow(ctx context.Context, in *FlowPath) (out api.One[api.Deleted], err error) {
	err = s.Flows.Delete(ctx, asker(ctx), in.ID)
	out.Data = api.Deleted{ID: in.ID, Deleted: true}
	return out, err
}

// flowDraft converts a flow as a caller sends it.
func flowDraft(n api.NewFlow, now time.Time) (d flow.Draft, err error) {
	var faults []hookglass.FieldError
	const in = "flow."
	d.Name = or(given(&faults, in+"name", n.Name, false))
	switch order := or(given(&faults, in+"order", n.Order, false)); order {
	case "", "ordered":
	case "any":
		d.AnyTurn = true
	default:
		faults = append(faults, hookglass.FieldError{Field: in + "order", Message: "must be ordered or any"})
	}
	d.Timeout = seconds(&faults, in+"timeout_seconds", n.Timeout)
	if since := or(given(&faults, in+"since", n.Since, false)); since != "" {
		d.Since, err = moment(in+"since", since, now)
	}
	steps := or(given(&faults, in+"steps", n.Steps, false))
	for i, step := range steps {
		d.Steps = append(d.Steps, stepDraft(&faults, fmt.Sprintf("%ssteps.%d.", in, i), step))
	}
	return d, hookglass.Refusal(faults, err)
}

func stepDraft(faults *[]hookglass.FieldError, in string, n api.NewFlowStep) (d flow.StepDraft) {
	fault := func(field, message string) {
		*faults = append(*faults, hookglass.FieldError{Field: in + field, Message: message})
	}
	d.Key = or(given(faults, in+"id", n.ID, false))
	if d.Endpoint = or(given(faults, in+"endpoint_id", n.EndpointID, false)); d.Endpoint == "" {
		fault("endpoint_id", "is required")
	}
	d.Provider = or(given(faults, in+"provider", n.Provider, false))
	d.EventType = or(given(faults, in+"event_type", n.EventType, false))
	d.Subject = or(given(faults, in+"subject", n.Subject, false))
	d.From = or(given(faults, in+"from", n.From, false))
	d.Query = or(given(faults, in+"q", n.Query, false))
	d.Within = seconds(faults, in+"within_seconds", n.Within)
	d.Never = or(given(faults, in+"never", n.Never, false))
	if c := given(faults, in+"count", n.Count, false); c != nil {
		if n := c.AtLeast + c.Exactly; (c.AtLeast == 0) == (c.Exactly == 0) || n < 1 || n > hookglass.MaxFlowCount {
			fault("count", "must be {\"at_least\": n} or {\"exactly\": n}, n from 1 to 1000")
		} else {
			d.Count, d.Exactly = int(n), c.Exactly != 0
		}
	}
	wheres := or(given(faults, in+"where", n.Where, false))
	for _, part := range slices.Sorted(maps.Keys(wheres)) {
		w, ok := whereDraft(part, wheres[part])
		if !ok {
			fault("where", "compares with a string, a number, true, false, null or {\"contains\": text}")
			break
		}
		d.Where = append(d.Where, w)
	}
	extracts := or(given(faults, in+"extract", n.Extract, false))
	for _, name := range slices.Sorted(maps.Keys(extracts)) {
		d.Extract = append(d.Extract, hookglass.FlowExtract{Name: name, Source: extracts[name]})
	}
	return d
}

// whereDraft parses the expected value of a part: a string, another scalar's JSON, or what it must contain.
func whereDraft(part string, raw json.RawMessage) (w hookglass.FlowWhere, ok bool) {
	w.Part = part
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0 || raw[0] == '[':
		return w, false
	case raw[0] == '"':
		err := json.Unmarshal(raw, &w.Value)
		return w, err == nil
	case raw[0] == '{':
		var contains map[string]string
		err := json.Unmarshal(raw, &contains)
		w.Contains, w.Value = true, contains["contains"]
		return w, err == nil && len(contains) == 1 && w.Value != ""
	}
	w.Value = string(raw)
	return w, true
}

// seconds parses a duration; absent is 0.
func seconds(faults *[]hookglass.FieldError, field string, o api.Optional[float64]) time.Duration {
	n := given(faults, field, o, false)
	if n == nil {
		return 0
	}
	if *n < 0.001 || *n > hookglass.MaxFlowTimeout.Seconds() {
		*faults = append(*faults, hookglass.FieldError{Field: field, Message: "must be above 0 and at most 86400"})
		return 0
	}
	return time.Duration(*n * float64(time.Second))
}
