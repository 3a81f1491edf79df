package listen

import (
	"time"

	"hookglass/api"
)

// Note is something that a person or a program that watches may want to be told.
type Note interface{ note() }

// Connected tells that events come in, for the first time or again.
type Connected struct{ Again bool }

// Disconnected tells that they do not, and why. The listener tries again by itself.
type Disconnected struct{ Err error }

// Offline tells what a time without a connection cost: what was missed, and what became of it.
type Offline struct {
	For       time.Duration
	Missed    int
	Delivered int
	Failed    int
	Shown     int // that have no target
}

// Warning is a sentence about something that may need attention.
type Warning struct{ Text string }

// Arrived tells that an event is about to be sent to an address, or a command run for it.
type Arrived struct{ Event *api.TunnelRequest }

// Delivered tells what became of an event. The fields are those of a line of JSON output as well.
type Delivered struct {
	Event      *api.TunnelRequest
	TargetURL  string // where it went; "": it has no target, and was shown only
	StatusCode int    // of the answer; 0: none came
	Took       time.Duration
	Failure    string // the category, where no answer came
	Problem    string // and why; also why a command failed
	Body       []byte // the beginning of the answer's body
	Size       int64  // bytes of the answer's body that came
	Truncated  bool   // there was more than Body holds
	Recovered  bool   // it was caught up on after an outage
	Duplicate  bool   // chaos: the second delivery
	Dropped    bool   // chaos: it was not delivered

	Command  bool   // a command was run for it, and Body is what it printed
	ExitCode int    // of the command; -1: it was ended
	Stderr   string // the end of what the command wrote there
}

// OK reports whether the event counts as delivered.
func (d Delivered) OK() bool { return d.StatusCode >= 200 && d.StatusCode < 300 }

// Replayed tells what became of a replay that the server asked for.
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

// Summary is what a listener did in all.
type Summary struct {
	Received   int           `json:"received"`  // events that it was to deliver or show
	Delivered  int           `json:"delivered"` // answered with a 2xx
	Failed     int           `json:"failed"`    // answered otherwise, or not at all
	Shown      int           `json:"shown"`     // that had no target
	Filtered   int           `json:"filtered"`  // that the filters left out
	Waiting    int           `json:"waiting"`   // received and not delivered when it ended
	Unreported int           `json:"unreported"`
	Reconnects int           `json:"reconnects"`
	Elapsed    time.Duration `json:"-"`
	Chaos      *ChaosReport  `json:"chaos,omitempty"`
}
