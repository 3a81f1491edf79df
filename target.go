package hookglass

import "time"

// ForwardingTarget is where an endpoint's events go on to by themselves (spec, "Forwarding target").
type ForwardingTarget struct {
	ID          int64
	EndpointNum int64
	EndpointID  EndpointID
	Name        string
	URL         string
	When        string // which events go to it, as a search; empty: all
	Enabled     bool
	Timeout     time.Duration // of one attempt, whole seconds
	RetryCount  int           // attempts after the first
	Rate        Rate          // how fast it is sent to at most
	Failures    int           // deliveries that failed since the last that did not
	FailingFrom time.Time     // when the first of them failed; zero: none
	PausedAt    time.Time     // zero: not paused
	PauseReason string        // empty: not paused
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Bounds of a forwarding target (spec, "Limits": they are those of a forward step).
const (
	DefaultForwardTimeout = 30 * time.Second
	MaxForwardTimeout     = 300 * time.Second
	DefaultForwardRetries = 3
	MaxForwardRetries     = 5
	MaxForwardWait        = time.Hour // that a target may ask for with Retry-After

	// MaxForwardAttempts is from how many attempts on a delivery is not sent again: they are all kept with it.
	MaxForwardAttempts = 100
)

// ForwardBacklog is what waits for a forwarding target.
type ForwardBacklog struct {
	Pending int       // deliveries that are pending, counted up to MostPending
	Until   time.Time // when the last of them goes at the earliest; zero: none waits, or the target is paused or disabled
}

// MostPending is where the count of what waits for a target stops. There may be more then.
const MostPending = 10_000

// Why a target is paused.
const (
	PauseFailing = "failing" // by the service, because its deliveries failed for long
	PauseManual  = "manual"  // by people
)

// ForwardState is how far a delivery is.
type ForwardState string

// The states of a delivery. From pending and sending it goes on, the others are final.
const (
	ForwardPending   ForwardState = "pending"   // to be sent, for the first time or again
	ForwardSending   ForwardState = "sending"   // a node has it, for as long as its lease
	ForwardDelivered ForwardState = "delivered" // answered with a 2xx
	ForwardFailed    ForwardState = "failed"    // no attempt is left, or none would help
	ForwardSkipped   ForwardState = "skipped"   // not sent: its target was disabled, or its account may not forward
)

// Forward is the delivery of one event to one forwarding target. There is one at most for each such pair.
type Forward struct {
	Num         int64 // the row; never shown
	TargetID    int64
	EndpointNum int64
	EventSeq    int64
	EventID     EventID
	State       ForwardState
	StatusCode  int // of the last attempt; 0: it had no answer
	Attempts    []ForwardAttempt
	Spent       int       // of Attempts: those that were made before it was sent again, which count for no retry; of one that is sent
	NextAt      time.Time // of a pending delivery: when it is sent; zero: not known
	FinishedAt  time.Time // zero: not final
	CreatedAt   time.Time
}

// Resend says whether people may have it sent again: it is to be put in line, or it waits there already. It answers
// conflict for what arrived, what was never to be sent, and what was attempted too often.
func (f *Forward) Resend() (put bool, err error) {
	switch {
	case f.State == ForwardDelivered:
		return false, Errorf(CodeConflict, "The delivery arrived, and is not sent again. Replay the request to send it once more.")
	case f.State == ForwardSkipped:
		return false, Errorf(CodeConflict, "The delivery was skipped, because its target was disabled or its account may not forward. Replay the request to send it.")
	case f.State != ForwardFailed:
		return false, nil
	case len(f.Attempts) >= MaxForwardAttempts:
		return false, Errorf(CodeConflict, "The delivery was attempted %d times, and is not sent again. Replay the request to send it once more.", len(f.Attempts))
	}
	return true, nil
}

// ForwardEvidence is what one attempt of a delivery sent and what was answered: credentials redacted, bodies cut.
type ForwardEvidence struct {
	Attempt   int // from 1, in the order of Attempts
	Request   SentRequest
	EventBody int             // so many first bytes of the event's body are the request's; they are kept with the event alone
	Response  *TargetResponse // nil: there was no complete answer
}

// ForwardAttempt is one request of a delivery and what came of it. Exactly one of StatusCode and Failure is set.
type ForwardAttempt struct {
	At         time.Time
	Duration   time.Duration
	StatusCode int
	Failure    *Failure
	Body       string // the beginning of the answer, as text
	Truncated  bool   // the answer was longer
}
