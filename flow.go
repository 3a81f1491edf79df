package hookglass

import "time"

// Flow is an expectation over the events of a workspace: steps that arriving events are to fulfil in a given time.
type Flow struct {
	Num         int64 // the row; never shown
	ID          string
	AccountID   int64
	WorkspaceID int64
	Plan        FlowPlan
	State       FlowState
	Progress    FlowProgress
	Cursor      int64 // the Seq up to which events were judged
	Version     int64 // counts changes that people can see
	StartedAt   time.Time
	DeadlineAt  time.Time
	FinishedAt  time.Time // zero: it goes on
}

// FlowPlan is what is expected. It does not change.
type FlowPlan struct {
	Name    string `json:",omitempty"`
	AnyTurn bool   `json:",omitempty"` // steps may be fulfilled in any order
	Timeout time.Duration
	Steps   []FlowStep
}

// FlowStep is one expectation.
type FlowStep struct {
	Key         string
	EndpointNum int64
	EndpointID  EndpointID
	Provider    string        `json:",omitempty"`
	EventType   string        `json:",omitempty"`
	Subject     string        `json:",omitempty"` // of mail
	From        string        `json:",omitempty"` // of mail
	Query       string        `json:",omitempty"` // in the query language
	Within      time.Duration `json:",omitempty"` // after the step before, or the start; 0: until the deadline
	Count       int           // events that it takes
	Exactly     bool          `json:",omitempty"` // more than Count events fail the step
	Never       bool          `json:",omitempty"` // no event may match
	Where       []FlowWhere   `json:",omitempty"`
	Extract     []FlowExtract `json:",omitempty"`
}

// FlowWhere compares a part of an event.
type FlowWhere struct {
	Part     string // a JSON Pointer into the body, header.<name>, query.<name>, subject, from, to, path or text
	Contains bool   `json:",omitempty"` // else: equal to
	Value    string // may hold {{steps.<key>.<name>}}
}

// FlowExtract takes a value from the event that fulfilled a step.
type FlowExtract struct {
	Name   string
	Source string // a JSON Pointer into the body, header.<name>, link, link:<text>, code or regex:<pattern>
}

// Bounds of a flow.
const (
	MaxFlowSteps    = 20
	MaxFlowTimeout  = 24 * time.Hour
	MinFlowTimeout  = 100 * time.Millisecond
	MaxFlowCount    = 1_000
	MaxFlowNames    = 20  // conditions and extracted values of a step, each
	MaxFlowText     = 500 // characters of a name, a pattern or a compared value
	MaxFlowValue    = 2_000
	MaxLiveFlows    = 100 // of an account
	FlowKept        = 30 * 24 * time.Hour
	DefaultFlowTime = 5 * time.Minute
)

// FlowState is how far a flow is.
type FlowState string

// The states. From pending it goes on, the others are final.
const (
	FlowPending FlowState = "pending"
	FlowPassed  FlowState = "passed"
	FlowFailed  FlowState = "failed"  // an event came that must not come, or an endpoint is gone
	FlowExpired FlowState = "expired" // something did not come in time
)

// Final reports whether a flow has ended.
func (s FlowState) Final() bool { return s != FlowPending }

// FlowStepState is how far a step is.
type FlowStepState string

// The states of a step.
const (
	FlowStepWaiting  FlowStepState = "waiting"  // its turn has not come
	FlowStepWatching FlowStepState = "watching" // for events that match
	FlowStepHolding  FlowStepState = "holding"  // it has its events, and must not get more
	FlowStepPassed   FlowStepState = "passed"
	FlowStepFailed   FlowStepState = "failed"
	FlowStepExpired  FlowStepState = "expired"
	FlowStepSkipped  FlowStepState = "skipped" // the flow ended before
)

// FlowProgress is how far the steps are, in the order of the plan's.
type FlowProgress struct {
	Steps   []FlowStepProgress
	Message string `json:",omitempty"` // why it did not pass
}

// FlowStepProgress is how far one step is.
type FlowStepProgress struct {
	State    FlowStepState
	Since    time.Time         `json:",omitzero"` // when it began to watch
	Until    time.Time         `json:",omitzero"` // the last time that counts
	Ended    time.Time         `json:",omitzero"`
	Count    int               `json:",omitempty"`
	Matched  []FlowMatch       `json:",omitempty"` // the first of Count
	Values   map[string]string `json:",omitempty"`
	NearMiss *FlowNearMiss     `json:",omitempty"`
	Message  string            `json:",omitempty"` // why it failed or expired
}

// FlowMatch is an event that counts for a step, or against it.
type FlowMatch struct {
	EventID    EventID
	ReceivedAt time.Time
}

// FlowNearMiss is the event that came closest to matching a step.
type FlowNearMiss struct {
	FlowMatch
	Held, Total int    // conditions
	Reason      string `json:",omitempty"` // where all conditions held: why it did not count
	Faults      []FlowFault
}

// FlowFault is a condition that did not hold.
type FlowFault struct {
	Condition string // event_type, q, /data/id
	Expected  string
	Actual    string // cut when long; empty where it is not one value
}

// PrefixFlow is the prefix of ids of flows.
const PrefixFlow = "flow"
