package listen

import (
	"time"

	"hookglass/api"
)

// Note is something to tell the user or a program that watches.
type Note interface{ note() }

// Connected says that the listener is connected, for the first time or again.
type Connected struct{ Again bool }

// Disconnected says that the connection was lost, and why. The listener reconnects by itself.
type Disconnected struct{ Err error }

// Offline says what was missed during a time without a connection, and what became of it.
type Offline struct {
	For       time.Duration
	Missed    int
	Delivered int
	Failed    int
	Shown     int // without a target
}

// Warning is a sentence about something that may need attention.
type Warning struct{ Text string }

// Arrived says that an event is about to be delivered.
type Arrived struct{ Event *api.TunnelRequest }

// Delivered says what became of an event. Its fields also appear in the JSON output.
type Delivered struct {
	Event      *api.TunnelRequest
	Target     *Target // nil: it has no target, and was only shown
	TargetURL  string  // the target's, with the path and query of the event; "": there is none
	StatusCode int     // of the answer; 0: none came
	Took       time.Duration
	Failure    string // the category, if there was no answer
	Problem    string // and the reason; also why a command failed
	Body       []byte // the beginning of the answer's body
	Size       int64  // bytes of the answer's body that came
	Truncated  bool   // there was more than Body holds
	Recovered  bool   // it was fetched after an outage
	Duplicate  bool   // chaos: the second delivery
	Dropped    bool   // chaos: it was not delivered

	Command  bool   // a command was run for it, and Body is what it printed
	ExitCode int    // of the command; -1: it was ended
	Stderr   string // the end of the command's stderr
}

// OK reports whether the event counts as delivered.
func (d Delivered) OK() bool { return taken(d.StatusCode) }

// Replayed says what became of a replay that the server asked for.
type Replayed struct {
	Method, URL string
	StatusCode  int
	Took        time.Duration
	Problem     string
}

func (Connected) note()    {}
func (Disconnected) note() {}
func (Offline) note()      {}
func (Warning) note()      {}
func (Arrived) note()      {}
func (Delivered) note()    {}
func (Replayed) note()     {}

// Summary is what a listener did in total.
type Summary struct {
	Received   int           `json:"received"`  // events to deliver or show
	Delivered  int           `json:"delivered"` // answered with a 2xx
	Failed     int           `json:"failed"`    // answered otherwise, or not at all
	Shown      int           `json:"shown"`     // without a target
	Filtered   int           `json:"filtered"`  // left out by filters
	Waiting    int           `json:"waiting"`   // received, and not delivered when it ended
	Unreported int           `json:"unreported"`
	Reconnects int           `json:"reconnects"`
	Elapsed    time.Duration `json:"-"`
	Chaos      *ChaosReport  `json:"chaos,omitempty"`
}
