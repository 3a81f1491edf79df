package hookglass

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ReplayCase is a saved replay with assertions on its answer (spec, "Replay case"). Its configuration and the
// snapshot of its event are sealed at rest; the case outlives the event.
type ReplayCase struct {
	Num             int64 // the row; never shown
	ID              string
	EndpointNum     int64
	EndpointID      EndpointID
	SourceID        EventID
	SourceAvailable bool // the event is still stored
	SnapshotVersion int64
	LockVersion     int64
	LastRun         *ReplayCaseRun // its ID, State and FinishedAt; nil before the first
	Sealed          []byte         // the configuration, see internal/seal
	CreatedAt       time.Time
	UpdatedAt       time.Time

	ReplayCaseConfig // opened
}

// ReplayCaseConfig is what people set on a case.
type ReplayCaseConfig struct {
	Name        string
	Description string
	TargetURL   string
	Options     ReplayOptions
	Assertions  Assertions
}

// Assertions are what a run's answer must satisfy; at least one is set.
type Assertions struct {
	StatusClass string // 1xx to 5xx; empty: not asserted
	StatusCode  int    // 0: not asserted
	JSONSubset  []byte // a JSON object that the answer must contain; nil: not asserted
}

// Bounds of a case.
const (
	maxCaseName        = 200
	maxCaseDescription = 2_000
	maxJSONSubset      = 64 << 10
)

// Faults lists what is wrong with the fields of a case. Targets and JSON are checked elsewhere.
func (c ReplayCaseConfig) Faults() (faults []FieldError) {
	fault := func(field, message string) { faults = append(faults, FieldError{"replay_case." + field, message}) }
	if strings.TrimSpace(c.Name) == "" || utf8.RuneCountInString(c.Name) > maxCaseName {
		fault("name", "must have 1 to 200 characters, and not blanks alone")
	} else if strings.ContainsFunc(c.Name, unicode.IsControl) {
		fault("name", "may not hold control characters")
	}
	if utf8.RuneCountInString(c.Description) > maxCaseDescription {
		fault("description", "may have 2,000 characters at most")
	}
	a := c.Assertions
	if a.StatusClass == "" && a.StatusCode == 0 && len(a.JSONSubset) == 0 {
		fault("assertions", "must hold at least one of status and json_subset")
	}
	if s := a.StatusClass; s != "" && (len(s) != 3 || s[0] < '1' || s[0] > '5' || s[1:] != "xx") {
		fault("assertions.status.class", "must be one of 1xx, 2xx, 3xx, 4xx and 5xx")
	}
	if a.StatusCode != 0 && (a.StatusCode < 100 || a.StatusCode > 599) {
		fault("assertions.status.code", "must be from 100 to 599")
	}
	if len(a.JSONSubset) > maxJSONSubset {
		fault("assertions.json_subset", "may have 64 KiB at most")
	}
	return faults
}

// RunState is where a case run is (spec, "Replay case run states").
type RunState string

// The states. Nothing leaves one that is final.
const (
	RunQueued          RunState = "queued"
	RunRunning         RunState = "running"
	RunPassed          RunState = "passed"
	RunAssertionFailed RunState = "assertion_failed"
	RunTransportFailed RunState = "transport_failed" // before any byte was written
	RunBlocked         RunState = "blocked"
	RunUnknown         RunState = "unknown" // the target may have received it
)

// Final reports whether the state is never left.
func (s RunState) Final() bool { return s != RunQueued && s != RunRunning }

// ReplayCaseRun is one run of a case. It sends at most once.
type ReplayCaseRun struct {
	Num             int64 // the row; never shown
	ID              string
	CaseNum         int64
	CaseID          string
	EndpointNum     int64
	CaseLockVersion int64
	SnapshotVersion int64
	State           RunState
	IdempotencyKey  string
	Sealed          []byte // the case's configuration as of CaseLockVersion
	SealedResult    []byte // the RunResult, which holds parts of the configuration; nil: none yet
	CreatedAt       time.Time
	StartedAt       time.Time // zero: not yet; once it is set, the request may have been sent
	FinishedAt      time.Time // zero: not yet

	RunResult
}

// RunResult is the outcome of a run. Secrets are redacted before it is stored.
type RunResult struct {
	Duration   time.Duration
	Request    *SentRequest // without its body
	Response   *TargetResponse
	Assertions []AssertionResult
	Failure    *Failure
}

// AssertionResult is the outcome of one assertion.
type AssertionResult struct {
	Kind     string // status or json_subset
	Path     string // an RFC 6901 pointer into the answer; empty for its root and for the status
	Expected []byte // JSON
	Actual   []byte // JSON, cut when long; nil: there is no such value
	Passed   bool
}

// BatchState is where a bulk replay is.
type BatchState string

// The states of a bulk replay.
const (
	BatchRunning   BatchState = "running"
	BatchPaused    BatchState = "paused"
	BatchCompleted BatchState = "completed"
	BatchStopped   BatchState = "stopped" // by stop_on_failure
	BatchCanceled  BatchState = "canceled"
)

// Final reports whether the state is never left.
func (s BatchState) Final() bool { return s != BatchRunning && s != BatchPaused }

// ReplayBatch replays the events that match a query, oldest first.
type ReplayBatch struct {
	Num           int64 // the row; never shown
	ID            string
	EndpointNum   int64
	Query         string
	TargetURL     string
	Options       ReplayOptions
	Rate          int // a second
	StopOnFailure bool
	State         BatchState
	Total         int64
	Passed        int64 // the target answered 2xx
	Failed        int64 // another status, no answer, or an unknown outcome
	CreatedAt     time.Time
	UpdatedAt     time.Time
	FinishedAt    time.Time
}

// ItemState is where one event of a bulk replay is.
type ItemState string

// The states of an event in a bulk replay. Nothing leaves the last three.
const (
	ItemPending ItemState = "pending"
	ItemSending ItemState = "sending" // the request may have been sent
	ItemPassed  ItemState = "passed"
	ItemFailed  ItemState = "failed"
	ItemUnknown ItemState = "unknown" // its worker died with it
)

// BatchItem is one event of a bulk replay.
type BatchItem struct {
	Num        int64 // the row; never shown
	EventSeq   int64
	EventID    EventID
	State      ItemState
	ReplayID   string
	StatusCode int
	Failure    *Failure
	FinishedAt time.Time
}

// ReplayRunJob sends one case run.
type ReplayRunJob struct{ RunID string }

// Kind implements Job.
func (ReplayRunJob) Kind() string { return "replay_run" }

// ReplayQueue is the queue of replays.
const ReplayQueue = "replay"

// Queue implements Queued.
func (ReplayRunJob) Queue() string { return ReplayQueue }

// ReplayBatchJob continues one bulk replay.
type ReplayBatchJob struct{ BatchID string }

// Kind implements Job.
func (ReplayBatchJob) Kind() string { return "replay_batch" }

// Queue implements Queued.
func (ReplayBatchJob) Queue() string { return ReplayQueue }
