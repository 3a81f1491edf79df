package hookglass

import "time"

// PrefixTunnelGap is the prefix of ids of gaps.
const PrefixTunnelGap = "tgap"

// GapState is how far the recovery of an outage is.
type GapState string

// The states of a gap (spec, "Tunnel gap states"). Only a recovery moves it to partial and recovered; from recovered
// nothing moves it.
const (
	GapOpen        GapState = "open"        // no session is back
	GapReconnected GapState = "reconnected" // one is
	GapPartial     GapState = "partial"     // a recovery left some events undelivered
	GapRecovered   GapState = "recovered"   // every event that is still stored was delivered
)

// GapOutcomes are what a client may say of its recovery (spec, "Tunnel").
var GapOutcomes = []string{"completed", "partial", "skipped", "interrupted"}

// Gap is an outage of the tunnel of one endpoint, and what became of the events that fell into it.
type Gap struct {
	Num           int64 // the row; never shown
	ID            string
	EndpointNum   int64
	EndpointID    EndpointID
	EndpointName  string
	WorkspaceID   int64
	State         GapState
	From, To      int64 // its events have a Seq above From and, unless To is 0, up to To
	StartedAt     time.Time
	DetectedAt    time.Time // what was reported until then is not missing
	ReconnectedAt time.Time // zero: not yet
	TargetURL     string
	Hostname      string
	Outcome       string // of the last recovery; empty: none yet
	Counts        GapCounts
}

// GapCounts say what became of the events of a gap. Each event is in exactly one of Recovered, Failed, Pending and
// Expired, and Total is their sum.
type GapCounts struct {
	Total     int64
	Retained  int64 // still stored
	Pending   int64 // never reported
	Recovered int64 // delivered, whether they are still stored or not
	Failed    int64 // reported, and never with success
	Expired   int64 // deleted before they were delivered
}

// AfterRecovery returns the state of a gap after a client reported its recovery. It rests on the delivery reports
// alone, not on what the client claims.
func (g *Gap) AfterRecovery() GapState {
	switch {
	case g.State == GapOpen || g.State == GapRecovered:
		return g.State
	case g.Counts.Pending == 0 && g.Counts.Failed == 0:
		return GapRecovered
	}
	return GapPartial
}
