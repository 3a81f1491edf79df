package hookglass

import "time"

// Release is a caught mail that a person had sent on through the installation's mail relay.
type Release struct {
	Num         int64 // the row; never shown
	ID          string
	EndpointNum int64
	EventSeq    int64
	EventID     EventID
	To          []string
	Relayed
	CreatedAt  time.Time
	FinishedAt time.Time // zero: under way, or its process died meanwhile
}

// Relayed is the outcome of handing a mail to a relay.
type Relayed struct {
	Status  ReleaseStatus
	Code    int      // of the relay's last answer; 0: there was none
	Message string   // of that answer: one sanitized line of bounded length; empty: there is none to show
	Failure *Failure // nil for what was sent
}

// ReleaseStatus says whether a relay took a mail.
type ReleaseStatus string

// The statuses. A mail that the relay may have taken stays unknown: it is never sent again automatically.
const (
	ReleaseSent    ReleaseStatus = "sent"
	ReleaseFailed  ReleaseStatus = "failed"
	ReleaseUnknown ReleaseStatus = "unknown"
)

// PrefixRelease is the prefix of ids of releases.
const PrefixRelease = "rel"

// MaxReleaseRecipients bounds the addresses of one release.
const MaxReleaseRecipients = 20
