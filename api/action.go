package api

import (
	"encoding/json"

	"hookglass"
)

// Action runs steps on the events of an endpoint.
type Action struct {
	ID            string            `json:"id" example:"act_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	EndpointID    string            `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Name          string            `json:"name" example:"Tell the CRM"`
	Enabled       bool              `json:"enabled" example:"true"`
	FailurePolicy string            `json:"failure_policy" enum:"continue,stop" doc:"Of steps that have none of their own." example:"continue"`
	Position      int               `json:"position" doc:"From 1. Actions run one after another in this order." example:"1"`
	Conditions    []ActionCondition `json:"conditions" doc:"All must match for the action to run; none: it always runs."`
	Steps         []ActionStep      `json:"steps" doc:"Run in this order."`
	CreatedAt     Time              `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	UpdatedAt     Time              `json:"updated_at" example:"2026-11-20T10:15:30.123456Z"`
}

// ActionDetail is an action with its latest runs.
type ActionDetail struct {
	Action
	RecentRuns []ActionRun `json:"recent_runs" doc:"The last 10, newest first."`
}

// ActionCondition is one trigger condition.
type ActionCondition struct {
	_        struct{} `additionalProperties:"false"`
	Field    string   `json:"field" enum:"provider,event_type,signature_status,http_method,request_path,content_type,sender,email_subject,has_tag" example:"event_type"`
	Operator string   `json:"operator" enum:"equals,not_equals,contains,not_contains,matches,exists,not_exists" doc:"The negative ones hold for an absent value; matches takes a regular expression." example:"equals"`
	Value    *string  `json:"value" required:"false" minLength:"1" maxLength:"500" doc:"Up to 500 characters; none with exists and not_exists." example:"push"`
}

// ActionStep is one step of an action.
type ActionStep struct {
	ReferenceKey  string                `json:"reference_key" doc:"Unique in the action; later steps name it. It never changes." example:"tell_crm"`
	StepType      string                `json:"step_type" enum:"forward,notify,tag,ignore,transform,http_request" example:"http_request"`
	Name          string                `json:"name" example:"Tell CRM"`
	ConfigVersion int                   `json:"config_version" example:"1"`
	FailurePolicy *string               `json:"failure_policy" enum:"continue,stop" doc:"null: the action's, and continue for notify." example:"stop"`
	Config        json.RawMessage       `json:"config" doc:"Whole, with its defaults." example:"{\"method\":\"POST\",\"url\":\"https://crm.example.com/events\",\"headers\":{\"Authorization\":\"Bearer {{ secrets.CRM_TOKEN }}\"},\"body\":\"{\\\"id\\\": {{ request.body.id }}}\",\"timeout_seconds\":10}"`
	Conditions    []ActionStepCondition `json:"conditions" doc:"All must match for the step to run; otherwise it is skipped."`
}

// ActionStepCondition is one condition of a step.
type ActionStepCondition struct {
	_        struct{}        `additionalProperties:"false"`
	Source   string          `json:"source" pattern:"^(request|provider|email|endpoint|steps\\..+)$" doc:"request, provider, email, endpoint or steps.<reference_key>." example:"request"`
	Path     *string         `json:"path,omitzero" required:"true" maxLength:"500" pattern:"^(/|$)" doc:"An RFC 6901 pointer into the source." example:"/body/action"`
	Operator string          `json:"operator" enum:"equals,not_equals,contains,not_contains,matches,exists,not_exists" example:"equals"`
	Value    json.RawMessage `json:"value,omitempty" doc:"A string, a number, true, false or null; none with exists and not_exists." example:"\"opened\""`
}

// CreateAction is the body of POST /endpoints/{endpoint_id}/actions.
type CreateAction struct {
	_              struct{}   `additionalProperties:"false"`
	EndpointAction *NewAction `json:"endpoint_action,omitempty" required:"true"`
}

// NewAction describes a new action.
type NewAction struct {
	_             struct{}                    `additionalProperties:"false"`
	Name          Optional[string]            `json:"name,omitzero" required:"true" minLength:"1" maxLength:"200" doc:"A label for people." example:"Tell the CRM"`
	Enabled       Optional[bool]              `json:"enabled,omitzero" doc:"Default true." example:"true"`
	FailurePolicy Optional[string]            `json:"failure_policy,omitzero" enum:"continue,stop" doc:"Default continue." example:"continue"`
	Position      Optional[int64]             `json:"position,omitzero" minimum:"1" doc:"From 1; those behind move on. Default: the last." example:"1"`
	Conditions    Optional[[]ActionCondition] `json:"conditions,omitzero" maxItems:"10" doc:"Up to 10." example:"[{\"field\":\"event_type\",\"operator\":\"equals\",\"value\":\"push\"}]"`
	Steps         Optional[[]NewStep]         `json:"steps,omitzero" example:"[{\"step_type\":\"tag\",\"name\":\"Mark\",\"config\":{\"tag\":\"pushed\"}}]"`
}

// NewStep describes a step.
type NewStep struct {
	_             struct{}              `additionalProperties:"false"`
	ReferenceKey  Optional[string]      `json:"reference_key,omitzero" null:"true" pattern:"^[A-Za-z_][A-Za-z0-9_-]{0,63}$" doc:"Derived from the name when omitted. In a change it says which step this is." example:"mark"`
	StepType      string                `json:"step_type" enum:"forward,notify,tag,ignore,transform,http_request" example:"tag"`
	Name          Optional[string]      `json:"name,omitzero" minLength:"1" maxLength:"200" doc:"A label for people; default: the type." example:"Mark"`
	ConfigVersion Optional[int64]       `json:"config_version,omitzero" null:"true" minimum:"1" maximum:"1" doc:"Default: the current version, which is 1." example:"1"`
	FailurePolicy Optional[string]      `json:"failure_policy,omitzero" null:"true" enum:"continue,stop" doc:"null: the action's, and continue for notify." example:"stop"`
	Config        JSONObject            `json:"config,omitempty" doc:"By type: forward {url, timeout_seconds, retry_count, append_path, append_query}; notify {channel, message}, channel a name or chan_…; tag {tag}; ignore {reason}, noise, mistake, resolved or test; transform {source, operations}, source being request, provider, email or steps.<reference_key>, and operations, done in order, of {op: select, path}, {op: set, path, and one of value, from and template}, {op: remove, path}, {op: rename, from, to}, {op: pick, fields: {name: path}} and {op: wrap, key}; http_request {method, url, headers, body, timeout_seconds}, url, headers and body with templates as {{ request.body.id }} or {{ steps.<reference_key>.output }}. Secrets are named as {{ secrets.NAME }}, never written. Unknown keys are refused."`
	Conditions    []ActionStepCondition `json:"conditions,omitempty" maxItems:"10" doc:"Up to 10."`
}

// UpdateAction is the body of PATCH /endpoints/{endpoint_id}/actions/{action_id}.
type UpdateAction struct {
	_              struct{}      `additionalProperties:"false"`
	EndpointAction *ActionChange `json:"endpoint_action,omitempty" required:"true"`
}

// ActionChange lists the fields to change; absent ones stay.
type ActionChange struct {
	_             struct{}                    `additionalProperties:"false"`
	Name          Optional[string]            `json:"name,omitzero" minLength:"1" maxLength:"200" doc:"A label for people." example:"Tell the CRM"`
	Enabled       Optional[bool]              `json:"enabled,omitzero" example:"false"`
	FailurePolicy Optional[string]            `json:"failure_policy,omitzero" enum:"continue,stop" example:"stop"`
	Position      Optional[int64]             `json:"position,omitzero" minimum:"1" doc:"From 1; the others make room." example:"2"`
	Conditions    Optional[[]ActionCondition] `json:"conditions,omitzero" maxItems:"10" doc:"Replaces all." example:"[]"`
	Steps         Optional[[]NewStep]         `json:"steps,omitzero" doc:"Replaces all. A step with the reference_key of one that there is keeps it." example:"[{\"reference_key\":\"mark\",\"step_type\":\"tag\",\"name\":\"Mark\",\"config\":{\"tag\":\"pushed\"}}]"`
}

// FromAction converts an action.
func FromAction(a hookglass.Action) Action {
	out := Action{
		ID: a.ID, EndpointID: string(a.EndpointID), Name: a.Name, Enabled: a.Enabled, FailurePolicy: string(a.FailurePolicy), Position: a.Position,
		Conditions: make([]ActionCondition, len(a.Conditions)), Steps: make([]ActionStep, len(a.Steps)), CreatedAt: Time{a.CreatedAt}, UpdatedAt: Time{a.UpdatedAt},
	}
	for i, c := range a.Conditions {
		out.Conditions[i] = fromCondition(c)
	}
	for i, st := range a.Steps {
		out.Steps[i] = ActionStep{
			ReferenceKey: st.ReferenceKey, StepType: string(st.Type), Name: st.Name, ConfigVersion: st.ConfigVersion,
			FailurePolicy: nonzero(string(st.FailurePolicy)), Config: st.Config, Conditions: make([]ActionStepCondition, len(st.Conditions)),
		}
		for j, c := range st.Conditions {
			out.Steps[i].Conditions[j] = ActionStepCondition{Source: c.Source, Path: &c.Path, Operator: c.Operator, Value: c.Value}
		}
	}
	return out
}

func fromCondition(c hookglass.Condition) ActionCondition {
	out := ActionCondition{Field: c.Field, Operator: c.Operator}
	if c.Operator != hookglass.OperatorExists && c.Operator != hookglass.OperatorNotExists {
		out.Value = &c.Value
	}
	return out
}

// ActionRun is one run of an action on one event, and its trace. Everything in it is redacted.
type ActionRun struct {
	ID          string          `json:"id" example:"arun_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	ActionID    string          `json:"action_id" example:"act_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	EndpointID  string          `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	EventID     string          `json:"event_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	ParentRunID *string         `json:"parent_run_id" doc:"Of a rerun: the run that it repeats." example:"arun_0dfk3v6m8t7h1s9xq2b4c5n6wy"`
	Status      string          `json:"status" enum:"queued,running,completed,failed,stopped" doc:"completed: no step failed. failed: one did and the rest went on. stopped: one halted the rest. These three are final." example:"completed"`
	Trigger     ActionTrigger   `json:"trigger"`
	Steps       []ActionRunStep `json:"steps"`
	CreatedAt   Time            `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	StartedAt   *Time           `json:"started_at" example:"2026-11-20T10:15:30.123456Z"`
	FinishedAt  *Time           `json:"finished_at" example:"2026-11-20T10:15:30.223456Z"`
	DurationMS  *int64          `json:"duration_ms" example:"100"`
}

// ActionTrigger is the result of the trigger conditions, overall and of each.
type ActionTrigger struct {
	Matched    bool                    `json:"matched" example:"true"`
	Conditions []ActionConditionResult `json:"conditions"`
}

// ActionConditionResult is the result of one condition.
type ActionConditionResult struct {
	ActionCondition
	Actual  *string          `json:"actual" doc:"What it was compared with, cut when long; null: there was no such value." example:"push"`
	Matched bool             `json:"matched" example:"true"`
	Error   *DeliveryFailure `json:"error" doc:"Why it could not be evaluated; then it does not match."`
}

// ActionRunStep is the result of one step.
type ActionRunStep struct {
	ReferenceKey string           `json:"reference_key" example:"tell_crm"`
	StepType     string           `json:"step_type" enum:"forward,notify,tag,ignore,transform,http_request" example:"http_request"`
	Name         string           `json:"name" example:"Tell CRM"`
	Status       string           `json:"status" enum:"running,completed,failed,skipped,stopped" example:"completed"`
	Reason       *string          `json:"reason" doc:"With skipped: condition_false." example:"condition_false"`
	StartedAt    *Time            `json:"started_at" example:"2026-11-20T10:15:30.123456Z"`
	DurationMS   *int64           `json:"duration_ms" example:"42"`
	Summary      json.RawMessage  `json:"summary" doc:"What it did, by type, in 2 KiB at most; null: nothing. forward: url_host, attempts, status_code, response_body. http_request: method, url_host, status_code and sizes. transform: the type and size of its output." example:"{\"method\":\"POST\",\"url_host\":\"crm.example.com\",\"request_bytes\":9,\"duration_ms\":42,\"status_code\":200,\"response_bytes\":11,\"response_truncated\":false}"`
	Error        *DeliveryFailure `json:"error" doc:"With failed."`
	Truncated    bool             `json:"truncated" doc:"The summary leaves something out." example:"false"`
}

// FromActionRun converts a run.
func FromActionRun(r hookglass.ActionRun) ActionRun {
	out := ActionRun{
		ID: r.ID, ActionID: r.ActionID, EndpointID: string(r.EndpointID), EventID: string(r.EventID), ParentRunID: nonzero(r.ParentID), Status: string(r.Status),
		Trigger: FromTrigger(r.Trigger), Steps: make([]ActionRunStep, len(r.Steps)), CreatedAt: Time{r.CreatedAt}, StartedAt: at(r.StartedAt), FinishedAt: at(r.FinishedAt),
	}
	if !r.FinishedAt.IsZero() {
		out.DurationMS = new(r.FinishedAt.Sub(r.StartedAt).Milliseconds())
	}
	for i, st := range r.Steps {
		step := ActionRunStep{
			ReferenceKey: st.ReferenceKey, StepType: string(st.Type), Name: st.Name, Status: string(st.Status), Reason: nonzero(st.Reason),
			StartedAt: at(st.StartedAt), Summary: orNull(st.Summary), Truncated: st.Truncated,
		}
		if !st.StartedAt.IsZero() && st.Status != hookglass.StepRunning {
			step.DurationMS = new(st.Duration.Milliseconds())
		}
		if st.Failure != nil {
			step.Error = &DeliveryFailure{st.Failure.Code, st.Failure.Message}
		}
		out.Steps[i] = step
	}
	return out
}

// FromTrigger converts the result of trigger conditions.
func FromTrigger(t hookglass.TriggerResult) ActionTrigger {
	out := ActionTrigger{Matched: t.Matched, Conditions: make([]ActionConditionResult, len(t.Conditions))}
	for i, c := range t.Conditions {
		out.Conditions[i] = ActionConditionResult{ActionCondition: fromCondition(c.Condition), Matched: c.Matched}
		if !c.Absent {
			out.Conditions[i].Actual = &c.Actual
		}
		if c.Failure != nil {
			out.Conditions[i].Error = &DeliveryFailure{c.Failure.Code, c.Failure.Message}
		}
	}
	return out
}

func orNull(text []byte) json.RawMessage {
	if text == nil {
		return json.RawMessage("null")
	}
	return text
}

// RerunAction is the body of POST /endpoints/{endpoint_id}/actions/{action_id}/runs.
type RerunAction struct {
	_   struct{}  `additionalProperties:"false"`
	Run *NewRerun `json:"run,omitempty" required:"true" minProperties:"1"`
}

// NewRerun selects what to run an action on.
type NewRerun struct {
	_           struct{}         `additionalProperties:"false"`
	EventID     Optional[string] `json:"event_id,omitzero" minLength:"1" doc:"The captured event; it may be left out where a parent is named." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	ParentRunID Optional[string] `json:"parent_run_id,omitzero" null:"true" doc:"The run that this one repeats. Default: the action's first run on the event, if there is one." example:"arun_0dfk3v6m8t7h1s9xq2b4c5n6wy"`
}

// PreviewAction is the body of POST /endpoints/{endpoint_id}/actions/{action_id}/preview.
type PreviewAction struct {
	_       struct{}    `additionalProperties:"false"`
	Preview *NewPreview `json:"preview,omitempty" required:"true"`
}

// NewPreview selects what to preview an action on.
type NewPreview struct {
	_              struct{}         `additionalProperties:"false"`
	IngressEventID Optional[string] `json:"ingress_event_id,omitzero" required:"true" minLength:"1" doc:"A captured event of the endpoint." example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
}

// ActionPreview is what an action would do with an event. Nothing was sent.
type ActionPreview struct {
	EventID         string           `json:"event_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Trigger         ActionTrigger    `json:"trigger"`
	Steps           []PreviewedStep  `json:"steps"`
	SensitiveFields []SensitiveField `json:"sensitive_fields" doc:"What is blotted out in the steps, secrets included."`
}

// PreviewedStep is what one step would do.
type PreviewedStep struct {
	ReferenceKey string           `json:"reference_key" example:"tell_crm"`
	StepType     string           `json:"step_type" enum:"forward,notify,tag,ignore,transform,http_request" example:"http_request"`
	Name         string           `json:"name" example:"Tell CRM"`
	Status       string           `json:"status" enum:"completed,failed,skipped,stopped" doc:"completed: it can be rendered." example:"completed"`
	Reason       *string          `json:"reason" doc:"With skipped: condition_false, or request_not_sent for a step that looks at the answer to a request, which a preview does not send." example:"condition_false"`
	Output       json.RawMessage  `json:"output,omitempty" doc:"Of a transform: what it makes."`
	Rendered     json.RawMessage  `json:"rendered,omitempty" doc:"Of any other: what it would do." example:"{\"method\":\"POST\",\"url\":\"https://crm.example.com/events\",\"headers\":{\"Authorization\":\"Bearer {{secrets.CRM_TOKEN}}\"},\"body\":\"{\\\"id\\\": 7}\"}"`
	Truncated    bool             `json:"truncated" doc:"It is larger than what is shown." example:"false"`
	Error        *DeliveryFailure `json:"error"`
}

// SensitiveField is a place in what a step renders.
type SensitiveField struct {
	Step string `json:"step" doc:"The reference key." example:"tell_crm"`
	Path string `json:"path" doc:"An RFC 6901 pointer into its output, or into what is rendered." example:"/headers/Authorization"`
}

// BacktestAction is the body of POST /endpoints/{endpoint_id}/actions/{action_id}/backtest.
type BacktestAction struct {
	_              struct{}         `additionalProperties:"false"`
	Query          Optional[string] `json:"query,omitzero" maxLength:"1000" doc:"Which events, in the search language; default: all." example:"provider:github"`
	Limit          Optional[int64]  `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"How many of the last, 1 to 100; default 25." example:"25"`
	EndpointAction *ActionChange    `json:"endpoint_action,omitempty" doc:"A configuration to try beside the stored one: what it does not name is as stored."`
}

// ActionBacktest is what an action would have done with past events. Nothing was sent.
type ActionBacktest struct {
	Evaluated int             `json:"evaluated" doc:"Events looked at." example:"25"`
	Matched   int             `json:"matched" doc:"Of them, those that the stored configuration matches." example:"3"`
	Submitted *int            `json:"submitted_matched" doc:"Those that the submitted configuration matches; null without one." example:"4"`
	Complete  bool            `json:"complete" doc:"false: the time for it ended first." example:"true"`
	Events    []BacktestEvent `json:"events" doc:"Newest first."`
}

// BacktestEvent is one event of a backtest.
type BacktestEvent struct {
	EventID     string               `json:"event_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	RequestedAt Time                 `json:"requested_at" example:"2026-11-20T10:15:30.123456Z"`
	Stored      BacktestOutcome      `json:"stored"`
	Submitted   *BacktestOutcome     `json:"submitted" doc:"null without a submitted configuration."`
	Differences []BacktestDifference `json:"differences" doc:"Between what the steps of both make, by reference key."`
	More        bool                 `json:"more_differences" example:"false"`
}

// BacktestOutcome is what a configuration would do with an event.
type BacktestOutcome struct {
	Trigger ActionTrigger  `json:"trigger"`
	Steps   []BacktestStep `json:"steps"`
}

// BacktestStep is what a step would do.
type BacktestStep struct {
	ReferenceKey string           `json:"reference_key" example:"shape"`
	StepType     string           `json:"step_type" enum:"forward,notify,tag,ignore,transform,http_request" example:"transform"`
	Status       string           `json:"status" enum:"completed,failed,skipped,stopped" example:"completed"`
	Reason       *string          `json:"reason" example:"condition_false"`
	Error        *DeliveryFailure `json:"error"`
}

// BacktestDifference is a place where the results of a step differ.
type BacktestDifference struct {
	Step      string          `json:"step" example:"shape"`
	Path      string          `json:"path" doc:"An RFC 6901 pointer." example:"/id"`
	Stored    json.RawMessage `json:"stored,omitempty" doc:"Absent: there is nothing at this place." example:"1"`
	Submitted json.RawMessage `json:"submitted,omitempty" doc:"Absent: there is nothing at this place." example:"2"`
}
