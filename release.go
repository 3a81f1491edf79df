package hookglass

import "time"

// Release is a caught mail that was sent on, on request of a person, through the mail relay of the installation.
type Release struct {
	Num         int64 // the row; never shown
	ID          string
	EndpointNum int64
	EventSeq    int64
	EventID     EventID
	To          []string
	Relayed
	CreatedAt  time.Time
	FinishedAt time.Time // zero: under way, or its process died
}

// Relayed is what came of handing a mail to a relay.
type Relayed struct {
	Status  ReleaseStatus
	Code    int      // of the relay's last answer; 0: there was none
	Message string   // of that answer, one line, bounded and clean; empty: none that may be told
	Failure *Failure // nil for what was sent
}

// ReleaseStatus says whether a relay took a mail.
type ReleaseStatus string

// The statuses. A mail that may have been taken is unknown, for good: it is never sent again by itself.
const (
	ReleaseSent    ReleaseStatus = "sent"
	ReleaseFailed  ReleaseStatus = "failed"
	ReleaseUnknown ReleaseStatus = "unknown"
)

// PrefixRelease is of ids of releases.
const PrefixRelease = "rel"

// MaxReleaseRecipients bounds the addresses of one release.
const MaxReleaseRecipients = 20
