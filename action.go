package hookglass

import (
	"regexp"
	"time"
)

// Action is a list of steps that runs on the events of an endpoint (spec, "Action").
type Action struct {
	Num           int64 // the row; never shown
	ID            string
	EndpointNum   int64
	EndpointID    EndpointID
	Name          string
	Enabled       bool
	FailurePolicy FailurePolicy // of steps that have none of their own
	Position      int           // from 1, without gaps
	Conditions    []Condition   // all must match; none: it always runs
	Steps         []Step
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// FailurePolicy says what a step that fails does to those behind it.
type FailurePolicy string

// The failure policies.
const (
	FailureContinue FailurePolicy = "continue"
	FailureStop     FailurePolicy = "stop"
)

// Condition is one trigger condition of an action: a field of the event, an operator, and the value to compare with.
type Condition struct {
	Field    string
	Operator string
	Value    string // empty with exists and not_exists
}

// ConditionFields are what trigger conditions look at (spec: decisions, section 8).
var ConditionFields = []string{
	"provider", "event_type", "signature_status", "http_method", "request_path", "content_type", "sender", "email_subject", "has_tag",
}

// The operators of conditions (spec, "Trigger conditions").
const (
	OperatorEquals      = "equals"
	OperatorNotEquals   = "not_equals"
	OperatorContains    = "contains"
	OperatorNotContains = "not_contains"
	OperatorMatches     = "matches"
	OperatorExists      = "exists"
	OperatorNotExists   = "not_exists"
)

// ConditionOperators lists the operators.
var ConditionOperators = []string{
	OperatorEquals, OperatorNotEquals, OperatorContains, OperatorNotContains, OperatorMatches, OperatorExists, OperatorNotExists,
}

// StepCondition is one condition of a step: a value of the context of its run.
type StepCondition struct {
	Source   string // request, provider, email, endpoint or steps.<reference_key>
	Path     string // RFC 6901, into the source
	Operator string
	Value    []byte // a JSON string, number, true, false or null; nil with exists and not_exists
}

// StepType is what a step does.
type StepType string

// The step types (spec, "Step configurations").
const (
	StepForward   StepType = "forward"
	StepNotify    StepType = "notify"
	StepTag       StepType = "tag"
	StepIgnore    StepType = "ignore"
	StepTransform StepType = "transform"
	StepRequest   StepType = "http_request"
)

// StepTypes lists the step types.
var StepTypes = []StepType{StepForward, StepNotify, StepTag, StepIgnore, StepTransform, StepRequest}

// Step is one thing that an action does.
type Step struct {
	ReferenceKey  string // unique in the action, never changed
	Type          StepType
	Name          string
	ConfigVersion int
	FailurePolicy FailurePolicy // empty: the action's, and continue for notify
	Config        []byte        // a JSON object, checked and with its defaults
	Conditions    []StepCondition
}

// ConfigVersion is the current version of the configuration of every step type.
const ConfigVersion = 1

// Bounds of actions (spec, "Limits"; spec: decisions, section 8).
const (
	MaxConditions     = 10  // of an action, and of a step
	MaxConditionValue = 500 // characters
	ActionDeadline    = 10 * time.Minute
	MaxStepSummary    = 2 << 10 // bytes
	RecentRuns        = 10      // shown with an action
)

// RunStatus is where an action run is, and how it ended.
type RunStatus string

// The statuses. Nothing leaves the last three (spec: decisions, section 13, "Action runs").
const (
	ActionRunQueued    RunStatus = "queued"    // a rerun that waits for its job
	ActionRunRunning   RunStatus = "running"   // at work, or waiting to forward again
	ActionRunCompleted RunStatus = "completed" // no step failed
	ActionRunFailed    RunStatus = "failed"    // a step failed and the rest went on
	ActionRunStopped   RunStatus = "stopped"   // a step failed and halted the rest
)

// Final reports whether the status is never left.
func (s RunStatus) Final() bool { return s != ActionRunQueued && s != ActionRunRunning }

// ActionRun is one run of an action on one event, and its trace. Everything in it is redacted.
type ActionRun struct {
	Num         int64 // the row; never shown
	ID          string
	EndpointNum int64
	EndpointID  EndpointID
	ActionNum   int64
	ActionID    string
	EventSeq    int64
	EventID     EventID
	ParentID    string // of a rerun: the run that it repeats; empty: none
	Rerun       bool
	Status      RunStatus
	CreatedAt   time.Time
	StartedAt   time.Time // zero: not yet
	FinishedAt  time.Time // zero: not yet

	Trace
}

// Trace is what a run records of what happened.
type Trace struct {
	Trigger TriggerResult
	Steps   []StepResult
}

// TriggerResult is whether the trigger conditions matched, and each of them.
type TriggerResult struct {
	Matched    bool
	Conditions []ConditionResult
}

// ConditionResult is what became of one condition.
type ConditionResult struct {
	Condition
	Actual  string // what it was compared with, cut when long
	Absent  bool   // there was no such value
	Matched bool
	Failure *Failure // why it could not be evaluated; nil: it was
}

// StepStatus is how a step ended.
type StepStatus string

// The step statuses.
const (
	StepCompleted StepStatus = "completed"
	StepFailed    StepStatus = "failed"
	StepSkipped   StepStatus = "skipped" // see its reason
	StepStopped   StepStatus = "stopped" // a step before it halted the run
	StepRunning   StepStatus = "running" // in a run that is not final: at work, or waiting to forward again
)

// Why a step was skipped.
const (
	ReasonConditionFalse = "condition_false"
	ReasonNotSent        = "request_not_sent" // in a preview: it needs the answer to a request
)

// StepResult is what became of one step.
type StepResult struct {
	ReferenceKey string
	Type         StepType
	Name         string
	Status       StepStatus
	Reason       string // with skipped
	StartedAt    time.Time
	Duration     time.Duration
	Summary      []byte // a JSON object of at most MaxStepSummary bytes; nil: none
	Failure      *Failure
	Truncated    bool // Summary leaves something out
}

// Failure codes of steps, besides those of outbound requests.
const (
	FailureTemplate       = "template_error"
	FailureTransform      = "transform_error"
	FailureCondition      = "condition_error"
	FailureDeadline       = "deadline_exceeded"
	FailureDisabled       = "action_disabled" // while the run waited
	FailureOutcomeUnknown = "outcome_unknown" // the process died while the step may have been at work
	FailureHTTPStatus     = "http_status"
	FailureChannelMissing = "channel_not_found"
	FailureNotify         = "notify_failed"
	FailureInternal       = "internal"
)

// ActionSecret is a value that templates name and nobody reads again. It belongs to a workspace.
type ActionSecret struct {
	Num         int64 // the row; never shown
	ID          string
	WorkspaceID int64
	Name        string
	Description string
	Sealed      []byte // see internal/seal
	CreatedAt   time.Time
	UpdatedAt   time.Time
	LastUsedAt  time.Time // zero: never
}

// StepReference is a step that names a secret, a tag or a channel.
type StepReference struct {
	EndpointID EndpointID
	ActionID   string
	ActionName string
	Step       string // its reference key
}

// InUse returns an error with the given code that lists the steps that use a thing, or nil if there are none.
func InUse(code Code, message string, by []StepReference) error {
	if len(by) == 0 {
		return nil
	}
	references := make([]map[string]any, len(by))
	for i, r := range by {
		references[i] = map[string]any{"endpoint_id": string(r.EndpointID), "action_id": r.ActionID, "action_name": r.ActionName, "step": r.Step}
	}
	return &Error{Code: code, Message: message, Extra: map[string]any{"references": references}}
}

// Bounds of a secret. A value is many times larger than any header line needs; a description is two lines.
const (
	MaxSecretValue       = 16 << 10 // bytes
	MaxSecretDescription = 500      // characters
)

var secretName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// ValidSecretName reports whether s may name an action secret (spec: decisions, section 9).
func ValidSecretName(s string) bool { return secretName.MatchString(s) }

// Prefixes of ids of actions.
const (
	PrefixAction       = "act"
	PrefixActionRun    = "arun"
	PrefixActionSecret = "asec"
)

// ActionRunJob does a rerun.
type ActionRunJob struct{ RunID string }

// Kind implements Job.
func (ActionRunJob) Kind() string { return "action_run" }

// ActionQueue is the queue of reruns. They have one of their own because they wait for other machines.
const ActionQueue = "action"

// Queue implements Queued.
func (ActionRunJob) Queue() string { return ActionQueue }

// ActionTotals are figures on the runs of an endpoint's actions (spec, Actions rule 8). They hold no text that people
// wrote.
type ActionTotals struct {
	Runs            map[RunStatus]int64
	Steps           map[StepType]map[StepStatus]int64
	Failures        map[string]int64 // failed steps by code
	ConditionFalse  int64            // steps that their condition skipped
	TruncatedTraces int64            // runs with a shortened summary
	TimedSteps      int64
	StepTime        time.Duration // of the timed steps together
}

// Add counts a run that has ended.
func (t *ActionTotals) Add(r *ActionRun) {
	if t.Runs == nil {
		t.Runs, t.Steps, t.Failures = make(map[RunStatus]int64), make(map[StepType]map[StepStatus]int64), make(map[string]int64)
	}
	t.Runs[r.Status]++
	truncated := false
	for _, st := range r.Steps {
		if t.Steps[st.Type] == nil {
			t.Steps[st.Type] = make(map[StepStatus]int64)
		}
		t.Steps[st.Type][st.Status]++
		truncated = truncated || st.Truncated
		switch st.Status {
		case StepFailed:
			if st.Failure != nil {
				t.Failures[st.Failure.Code]++
			}
			fallthrough
		case StepCompleted:
			t.TimedSteps++
			t.StepTime += st.Duration
		case StepSkipped:
			if st.Reason == ReasonConditionFalse {
				t.ConditionFalse++
			}
		}
	}
	if truncated {
		t.TruncatedTraces++
	}
}

// AverageStep is how long a step took on average.
func (t ActionTotals) AverageStep() time.Duration {
	if t.TimedSteps == 0 {
		return 0
	}
	return t.StepTime / time.Duration(t.TimedSteps)
}
