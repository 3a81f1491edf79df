package hookglass

import "time"

// ForwardingTarget is a destination to which an endpoint's events are forwarded automatically (spec, "Forwarding
// target").
type ForwardingTarget struct {
	ID          int64
	EndpointNum int64
	EndpointID  EndpointID
	Name        string
	URL         string
	When        string   // the query that an event must match to be forwarded; empty: all are
	HeaderNames []string // of the headers that the target adds, sorted
	Sealed      []byte   // these headers, sealed by internal/seal; nil: none
	Enabled     bool
	Timeout     time.Duration // of one attempt, whole seconds
	RetryCount  int           // attempts after the first
	Rate        Rate          // the rate limit
	Dedupe      Dedupe        // which events are the same to it
	Failures    int           // consecutive deliveries that failed, up to now
	FailingFrom time.Time     // when the first of them failed; zero: none
	PausedAt    time.Time     // zero: not paused
	PauseReason string        // empty: not paused
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Bounds of a forwarding target (spec, "Limits": those of a forward step).
const (
	DefaultForwardTimeout = 30 * time.Second
	MaxForwardTimeout     = 300 * time.Second
	DefaultForwardRetries = 3
	MaxForwardRetries     = 5
	MaxForwardWait        = time.Hour // the longest Retry-After that is honoured

	// MaxForwardAttempts bounds the attempts of one delivery, resending included, because it keeps them all.
	MaxForwardAttempts = 100
)

// ForwardBacklog is what waits for a forwarding target.
type ForwardBacklog struct {
	Pending int       // deliveries that are pending, counted up to MostPending
	Until   time.Time // the earliest time for the last of them; zero: none waits, or the target is off
}

// MostPending is where the count of a target's backlog stops; there may be more.
const MostPending = 10_000

// Why a target is paused.
const (
	PauseFailing = "failing" // by the service, after deliveries failed for a long time
	PauseManual  = "manual"  // by people
)

// ForwardState is how far a delivery is.
type ForwardState string

// The states of a delivery. All but pending and sending are final.
const (
	ForwardPending   ForwardState = "pending"   // to be sent, for the first time or again
	ForwardSending   ForwardState = "sending"   // a node holds its lease
	ForwardDelivered ForwardState = "delivered" // answered with a 2xx
	ForwardFailed    ForwardState = "failed"    // no attempt is left, or a retry would not help
	ForwardSkipped   ForwardState = "skipped"   // not sent: its target was disabled, its account may not forward, or it is a duplicate
)

// Forward is the delivery of one event to one forwarding target. Each such pair has at most one.
type Forward struct {
	Num         int64 // the row; never shown
	TargetID    int64
	EndpointNum int64
	EventSeq    int64
	EventID     EventID
	State       ForwardState
	StatusCode  int // of the last attempt; 0: it had no answer
	Attempts    []ForwardAttempt
	Spent       int       // Attempts made before it was last resent; these are no retries. Set while it is sending
	NextAt      time.Time // of a pending delivery: when it is sent; zero: not known
	SameAs      EventID   // the same webhook, which was forwarded instead (skipped) or whose delivery it waits for (pending)
	FinishedAt  time.Time // zero: not final
	CreatedAt   time.Time
}

// Resend reports whether the delivery is to be queued again; put is false if it is queued already. It answers
// conflict for a delivery that succeeded, was skipped, or has used up its attempts.
func (f *Forward) Resend() (put bool, err error) {
	switch {
	case f.State == ForwardDelivered:
		return false, Errorf(CodeConflict, "The delivery arrived, and is not sent again. Replay the request to send it once more.")
	case f.State == ForwardSkipped && f.SameAs != "":
		return false, Errorf(CodeConflict, "The delivery was skipped, because the same webhook was forwarded with %s. Replay the request to send it.", f.SameAs)
	case f.State == ForwardSkipped:
		return false, Errorf(CodeConflict, "The delivery was skipped, because its target was disabled or its account may not forward. Replay the request to send it.")
	case f.State != ForwardFailed:
		return false, nil
	case len(f.Attempts) >= MaxForwardAttempts:
		return false, Errorf(CodeConflict, "The delivery was attempted %d times, and is not sent again. Replay the request to send it once more.", len(f.Attempts))
	}
	return true, nil
}

// ForwardEvidence is what one attempt of a delivery sent and received: credentials are redacted and bodies are cut.
type ForwardEvidence struct {
	Attempt   int // from 1, in the order of Attempts
	Request   SentRequest
	EventBody int             // the request's body is this many bytes of the event's, stored only there
	Response  *TargetResponse // nil: there was no complete answer
}

// ForwardAttempt is one request of a delivery and its outcome. Exactly one of StatusCode and Failure is set.
type ForwardAttempt struct {
	At         time.Time
	Duration   time.Duration
	StatusCode int
	Failure    *Failure
	Body       string // the beginning of the answer, as text
	Truncated  bool   // the answer was longer
}
