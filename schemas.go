package hookglass

import "time"

// EventSchema is what is known of the JSON bodies of one event type at an endpoint. Observed and Baseline are encoded
// by the package that infers them.
type EventSchema struct {
	Num         int64 // the row; never shown
	EndpointNum int64
	Provider    string
	EventType   string // empty: not known
	Version     int64  // counts changes
	Observed    []byte // since the baseline was accepted, or from the beginning
	Events      int64  // examined in total
	Baseline    []byte // nil: none was accepted
	AcceptedAt  time.Time
	Drifts      int     // ways in which Observed departs from Baseline
	DriftEvent  EventID // in which the first departure was seen
	Summary     string  // of some of them: pointers and types, no values
	FirstAt     time.Time
	LastAt      time.Time
}

// MaxEventSchemas bounds the event types per endpoint for which schemas are kept.
const MaxEventSchemas = 500
