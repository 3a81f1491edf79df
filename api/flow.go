package api

import (
	"encoding/json"
	"time"

	"hookglass"
)

// Flow is an expectation on webhooks and mail, and its progress.
type Flow struct {
	ID          string     `json:"id" example:"flow_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	WorkspaceID int64      `json:"workspace_id" example:"1"`
	Name        *string    `json:"name" example:"Checkout"`
	State       string     `json:"state" enum:"pending,passed,failed,expired" doc:"failed: something came that may not come, or an endpoint was deleted. expired: something did not come in time. All but pending are final." example:"passed"`
	Message     *string    `json:"message" doc:"Why it did not pass: the first step that was not met, and what came nearest to it." example:"Step mail expired. Nothing matched within 30s."`
	Order       string     `json:"order" enum:"ordered,any" example:"ordered"`
	Timeout     float64    `json:"timeout_seconds" example:"60"`
	Steps       []FlowStep `json:"steps"`
	Version     int64      `json:"version" doc:"Counts the changes that are seen here; give it to wait." example:"3"`
	StartedAt   Time       `json:"started_at" example:"2026-11-20T10:15:30.123456Z"`
	DeadlineAt  Time       `json:"deadline_at" example:"2026-11-20T10:16:30.123456Z"`
	FinishedAt  *Time      `json:"finished_at" example:"2026-11-20T10:15:34.123456Z"`
	DurationMS  *int64     `json:"duration_ms" example:"4000"`
}

// FlowStep is one expectation and its progress.
type FlowStep struct {
	ID         string                     `json:"id" example:"paid"`
	EndpointID string                     `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Provider   *string                    `json:"provider" example:"stripe"`
	EventType  *string                    `json:"event_type" example:"checkout.session.*"`
	Subject    *string                    `json:"subject"`
	From       *string                    `json:"from"`
	Query      *string                    `json:"q"`
	Within     *float64                   `json:"within_seconds" example:"30"`
	Count      *FlowCount                 `json:"count" doc:"null with never."`
	Never      bool                       `json:"never" example:"false"`
	Where      map[string]json.RawMessage `json:"where" example:"{\"/data/id\":\"{{steps.paid.order}}\"}"`
	Extract    map[string]string          `json:"extract" example:"{\"order\":\"/data/id\"}"`
	State      string                     `json:"state" enum:"waiting,watching,holding,passed,failed,expired,skipped" doc:"waiting: its turn has not come. holding: it has what it takes, and may get no more. skipped: the flow ended before." example:"passed"`
	Message    *string                    `json:"message" doc:"Why it failed or expired."`
	Matched    []FlowMatch                `json:"matched" doc:"The events that counted, or that may not have come; the first 20."`
	Received   int                        `json:"matched_count" example:"1"`
	Values     map[string]string          `json:"values" doc:"What was extracted, from the first event that counted." example:"{\"order\":\"ord_1\"}"`
	NearMiss   *FlowNearMiss              `json:"near_miss" doc:"While it has not passed: the event that came nearest."`
	SinceAt    *Time                      `json:"watching_since" example:"2026-11-20T10:15:30.123456Z"`
	UntilAt    *Time                      `json:"watching_until" example:"2026-11-20T10:16:00.123456Z"`
	EndedAt    *Time                      `json:"ended_at" example:"2026-11-20T10:15:32.123456Z"`
	TookMS     *int64                     `json:"took_ms" doc:"From when it began to watch until it ended." example:"2000"`
}

// FlowCount is how many events a step needs.
type FlowCount struct {
	_       struct{} `additionalProperties:"false"`
	AtLeast int64    `json:"at_least,omitempty" minimum:"1" maximum:"1000" doc:"So many or more." example:"1"`
	Exactly int64    `json:"exactly,omitempty" minimum:"1" maximum:"1000" doc:"So many, and no more until within_seconds have passed or, without them, until all other steps have." example:"1"`
}

// FlowMatch is an event that counted for a step.
type FlowMatch struct {
	RequestID  string `json:"request_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	ReceivedAt Time   `json:"received_at" example:"2026-11-20T10:15:32.123456Z"`
}

// FlowNearMiss is an event that did not count, and why.
type FlowNearMiss struct {
	FlowMatch
	Met        int         `json:"conditions_met" doc:"The endpoint is one of them." example:"1"`
	Total      int         `json:"conditions" example:"2"`
	Reason     *string     `json:"reason" doc:"Where all conditions were met: why it did not count." example:"It came 2s too late."`
	Conditions []FlowFault `json:"failed" doc:"The conditions that were not met, as far as they were looked at."`
}

// FlowFault is a condition that was not met.
type FlowFault struct {
	Condition string `json:"condition" example:"event_type"`
	Expected  string `json:"expected" example:"checkout.session.completed"`
	Actual    string `json:"actual" doc:"Cut when long; empty where it is not one value." example:"checkout.session.expired"`
}

// FlowWait is the answer to waiting for a flow.
type FlowWait struct {
	Data Flow         `json:"data"`
	Meta FlowWaitMeta `json:"meta"`
}

// FlowWaitMeta says why waiting ended.
type FlowWaitMeta struct {
	TimedOut bool `json:"timed_out" doc:"Nothing happened that was waited for." example:"false"`
}

// CreateFlow is the body of POST /flows.
type CreateFlow struct {
	_    struct{} `additionalProperties:"false"`
	Flow *NewFlow `json:"flow,omitempty" required:"true"`
}

// NewFlow is what is expected.
type NewFlow struct {
	_       struct{}                `additionalProperties:"false"`
	Name    Optional[string]        `json:"name,omitzero" maxLength:"500" doc:"A label for people." example:"Checkout"`
	Order   Optional[string]        `json:"order,omitzero" enum:"ordered,any" doc:"ordered, the default: each step begins when the one before has passed. any: all begin at once." example:"ordered"`
	Timeout Optional[float64]       `json:"timeout_seconds,omitzero" minimum:"0.1" maximum:"86400" doc:"For all of it; default 300." example:"60"`
	Since   Optional[string]        `json:"since,omitzero" doc:"Events that were received since then count too: ISO 8601, or a duration as 30s or 5m that counts back from now; an hour at most. Default: what comes from now on." example:"10s"`
	Steps   Optional[[]NewFlowStep] `json:"steps,omitzero" required:"true" minItems:"1" maxItems:"20" doc:"What is expected."`
}

// NewFlowStep is one expectation. All given conditions must hold.
type NewFlowStep struct {
	_          struct{}                             `additionalProperties:"false"`
	ID         Optional[string]                     `json:"id,omitzero" pattern:"^[A-Za-z][A-Za-z0-9_-]{0,63}$" doc:"By which others refer to its values; default step1, step2 and so on." example:"paid"`
	EndpointID Optional[string]                     `json:"endpoint_id,omitzero" required:"true" minLength:"1" doc:"An endpoint's id or custom id; all of one workspace." example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Provider   Optional[string]                     `json:"provider,omitzero" maxLength:"500" doc:"The detected provider; * stands for any characters."`
	EventType  Optional[string]                     `json:"event_type,omitzero" maxLength:"500" doc:"* stands for any characters." example:"checkout.session.*"`
	Subject    Optional[string]                     `json:"subject,omitzero" maxLength:"500" doc:"Of mail: it has this text in it; * stands for any characters, and then it must be all of it."`
	From       Optional[string]                     `json:"from,omitzero" maxLength:"500" doc:"Of mail, likewise."`
	Query      Optional[string]                     `json:"q,omitzero" maxLength:"1000" doc:"In the query language of searches." example:"method:POST"`
	Within     Optional[float64]                    `json:"within_seconds,omitzero" minimum:"0.001" maximum:"86400" doc:"After the step before has passed, or after the start; default: until the flow's timeout." example:"30"`
	Count      Optional[FlowCount]                  `json:"count,omitzero" minProperties:"1" maxProperties:"1" doc:"Default: at least one."`
	Never      Optional[bool]                       `json:"never,omitzero" doc:"No event may match, from when the step before has passed until within_seconds have passed or, without them, until all other steps have. It holds up no other step." example:"false"`
	Where      Optional[map[string]json.RawMessage] `json:"where,omitzero" maxProperties:"20" doc:"Parts of the event and what they must be: a JSON Pointer into the body, header.<name>, query.<name>, subject, from, to, path or text. A value is compared as text, or {\"contains\": text}; {{steps.<id>.<name>}} stands for a value that an earlier step extracted." example:"{\"/type\":\"checkout.session.completed\"}"`
	Extract    Optional[map[string]string]          `json:"extract,omitzero" maxProperties:"20" doc:"Names and what they take from the event: any part as in where; of mail link, link:<text in it> and code; regex:<RE2 pattern>, its first group. An event without it does not match." example:"{\"order\":\"/data/object/id\"}"`
}

// FromFlow converts a flow.
func FromFlow(f hookglass.Flow) Flow {
	out := Flow{
		ID: f.ID, WorkspaceID: f.WorkspaceID, Name: nonzero(f.Plan.Name), State: string(f.State), Message: nonzero(f.Progress.Message), Order: "ordered",
		Timeout: f.Plan.Timeout.Seconds(), Steps: make([]FlowStep, len(f.Plan.Steps)), Version: f.Version,
		StartedAt: Time{f.StartedAt}, DeadlineAt: Time{f.DeadlineAt}, FinishedAt: at(f.FinishedAt), DurationMS: between(f.StartedAt, f.FinishedAt),
	}
	if f.Plan.AnyTurn {
		out.Order = "any"
	}
	for i, s := range f.Plan.Steps {
		out.Steps[i] = fromFlowStep(s, f.Progress.Steps[i])
	}
	return out
}

func fromFlowStep(s hookglass.FlowStep, p hookglass.FlowStepProgress) FlowStep {
	out := FlowStep{
		ID: s.Key, EndpointID: string(s.EndpointID), Provider: nonzero(s.Provider), EventType: nonzero(s.EventType), Subject: nonzero(s.Subject), From: nonzero(s.From),
		Query: nonzero(s.Query), Within: nonzero(s.Within.Seconds()), Never: s.Never, Where: map[string]json.RawMessage{}, Extract: map[string]string{},
		State: string(p.State), Message: nonzero(p.Message), Matched: make([]FlowMatch, len(p.Matched)), Received: p.Count, Values: p.Values,
		SinceAt: at(p.Since), UntilAt: at(p.Until), EndedAt: at(p.Ended), TookMS: between(p.Since, p.Ended),
	}
	switch {
	case s.Never:
	case s.Exactly:
		out.Count = &FlowCount{Exactly: int64(s.Count)}
	default:
		out.Count = &FlowCount{AtLeast: int64(s.Count)}
	}
	for _, w := range s.Where {
		var value any = w.Value
		if w.Contains {
			value = map[string]string{"contains": w.Value}
		}
		out.Where[w.Part], _ = json.Marshal(value) // never fails for strings
	}
	for _, x := range s.Extract {
		out.Extract[x.Name] = x.Source
	}
	if out.Values == nil {
		out.Values = map[string]string{}
	}
	for i, m := range p.Matched {
		out.Matched[i] = FlowMatch{string(m.EventID), Time{m.ReceivedAt}}
	}
	if n := p.NearMiss; n != nil {
		out.NearMiss = &FlowNearMiss{FlowMatch: FlowMatch{string(n.EventID), Time{n.ReceivedAt}}, Met: n.Held, Total: n.Total, Reason: nonzero(n.Reason), Conditions: make([]FlowFault, len(n.Faults))}
		for i, fault := range n.Faults {
			out.NearMiss.Conditions[i] = FlowFault(fault)
		}
	}
	return out
}

// between returns a duration in milliseconds, or nil if there is no end.
func between(from, to time.Time) *int64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	return new(max(to.Sub(from).Milliseconds(), 0))
}
