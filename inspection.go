package hookglass

import "time"

// Severity is how much a finding matters.
type Severity string

// The severities, from the least.
const (
	SeverityOK      Severity = "ok"      // as it should be
	SeverityInfo    Severity = "info"    // good to know
	SeverityWarning Severity = "warning" // worth a look
	SeverityProblem Severity = "problem" // something failed
)

// Area is the stage of an event's path that a finding is about.
type Area string

// The areas, in the order of the path.
const (
	AreaSignature      Area = "signature"
	AreaAuthentication Area = "authentication" // of mail
	AreaResponse       Area = "response"       // that the sender was given
	AreaDelivery       Area = "delivery"       // to targets, through the tunnel, by replays
	AreaAction         Area = "action"
)

// Finding is one statement about an event. Message and Next hold no captured text except names of headers.
type Finding struct {
	Area     Area
	Severity Severity
	Code     string // stable
	Message  string // one or two sentences for a person
	Next     string // what to do; empty: nothing
}

// Attempted is one way in which an event was or will be delivered, and its outcome so far.
type Attempted struct {
	Via        string // target, tunnel or replay
	To         string // the target's name or URL
	URL        string // of a target, where a replay would repeat the delivery; empty: To is the URL
	State      string
	StatusCode int // of the last answer; 0: none
	Failure    *Failure
	Attempts   int
	At         time.Time // of the last attempt; zero: none yet
	NextAt     time.Time // zero: none is to come, or not known when
	SameAs     EventID   // see [Forward]
	Paused     string    // why the target is paused; empty: it is not
	Verdict    Verdict   // of replays
}

// SenderFacts say how a provider sends, according to its own documentation.
type SenderFacts struct {
	Provider string
	Expects  string  // which answer; empty: not known
	Retries  string  // what it does without that answer; empty: not known
	Schedule []int64 // seconds between the attempts, where it says so exactly; nil: it does not
}

// Diagnosis explains what became of one event.
type Diagnosis struct {
	EventID    EventID
	EndpointID EndpointID
	Severity   Severity // the gravest of the findings
	Summary    string   // one sentence
	Findings   []Finding
	Deliveries []Attempted
	Runs       []ActionRun // of actions on it, newest first
	Sender     SenderFacts
	Next       []string // what to do, the most useful first
}

// Change is one place where two events differ. A side that is nil has nothing there.
type Change struct {
	Path        string // a field, a header's name, a parameter's name, or a JSON Pointer
	Left, Right *string
	Cut         bool // a side is longer than what is shown
}

// Comparison is how two events differ.
type Comparison struct {
	Left, Right EventID
	Fields      []Change // of the events themselves: method, path, provider, …
	Headers     []Change
	MoreHeaders bool // there are more than are listed
	Query       []Change
	MoreQuery   bool
	Body        BodyChanges
}

// Same reports whether nothing differs.
func (c Comparison) Same() bool {
	return len(c.Fields)+len(c.Headers)+len(c.Query)+len(c.Body.Changes) == 0 && c.Body.Text == "" && c.Body.Identical
}

// BodyChanges is how two bodies differ.
type BodyChanges struct {
	Form        string // how they were compared: json, form, text or bytes
	Identical   bool   // byte for byte
	Decoded     bool   // one was compressed; they were compared as they are decompressed
	Changes     []Change
	Text        string // of text: the differing lines, in the unified form
	More        bool   // there is more than is listed
	Left, Right int64  // bytes
}
