package hookglass

import (
	"fmt"
	"time"
)

// Ledger is what became of everything that arrived at one endpoint in a period. Its sums come from independent
// sources and so can disagree: figures, which count each event when it arrives and when it is erased; the events that
// are stored; and what each consumer recorded.
type Ledger struct {
	From, To time.Time // whole minutes, or hours; To is not included
	Since    time.Time // since when erased and refused arrivals are counted; zero: always

	Refused   map[string]int64 // answered with an error and not stored, by its code
	Stored    int64            // committed, by the figures
	Kept      int64            // of Stored: there now, by the events
	Deleted   int64            // erased or about to be, by people or by retention
	Ignored   int64            // of Kept
	Answers   map[string]int64 // of Kept: the status that the sender was answered, or one of the words below
	Replays   LedgerReplays    // of Kept
	Consumers []LedgerConsumer
}

// Answers that are no status.
const (
	AnswerAccepted = "accepted" // a mail, with 250
	AnswerNone     = "none"     // a webhook or a mail whose sender was left without an answer on purpose
)

// LedgerReplays count what people sent again.
type LedgerReplays struct{ Delivered, Failed, Pending int64 }

// ConsumerKind is a kind of consumer: something that is to get every event.
type ConsumerKind string

// The kinds of consumers.
const (
	ConsumerTarget  ConsumerKind = "forwarding_target"
	ConsumerAction  ConsumerKind = "action"
	ConsumerTunnel  ConsumerKind = "tunnel"
	ConsumerVerdict ConsumerKind = "mail_verdict"
)

// LedgerConsumer counts the events by their state at one consumer. Each stored event is in exactly one of the counts.
type LedgerConsumer struct {
	Kind      ConsumerKind
	ID, Name  string // of a target or an action; empty else
	Gone      bool   // it was deleted, but its records are still there
	Delivered int64  // done well: answered with a 2xx, completed, reported with a 2xx, judged
	Failed    int64  // given up
	Skipped   int64  // not owed: the consumer was not there or disabled, its conditions did not match, nobody was connected
	Pending   int64  // still to be done
	Expired   int64  // of the tunnel: missed, and erased before they were fetched
	Deleted   int64  // erased; their state at this consumer is not kept
	Owed      int64  // of Skipped: should have been handed over, but there is no record of it
	Stuck     int64  // of Pending: nothing would ever process them
}

// Received returns how many arrivals were answered with an error or stored.
func (l Ledger) Received() int64 {
	n := l.Stored
	for _, refused := range l.Refused {
		n += refused
	}
	return n
}

// sum returns how many events the consumer accounts for.
func (c LedgerConsumer) sum() int64 {
	return c.Delivered + c.Failed + c.Skipped + c.Pending + c.Expired + c.Deleted
}

// LedgerDifference is a sum that does not add up.
type LedgerDifference struct {
	Name             string // stable, for example stored or forwarding_target:7
	Expected, Actual int64
	Message          string
}

// Differences lists the sums that do not add up; none means that the ledger balances.
func (l Ledger) Differences() []LedgerDifference {
	found := []LedgerDifference{}
	check := func(name string, expected, actual int64, format string, args ...any) {
		if expected != actual {
			found = append(found, LedgerDifference{name, expected, actual, fmt.Sprintf(format, args...)})
		}
	}
	check("stored", l.Stored, l.Kept+l.Deleted, "%d events were stored, but %d are there and %d are deleted.", l.Stored, l.Kept, l.Deleted)
	var answers int64
	for _, n := range l.Answers {
		answers += n
	}
	check("answers", l.Kept, answers, "%d events are there, but %d answers to their senders.", l.Kept, answers)
	for _, c := range l.Consumers {
		name := string(c.Kind)
		if c.ID != "" {
			name += ":" + c.ID
		}
		check(name, l.Stored, c.sum(), "%d events were stored, but %d are accounted for.", l.Stored, c.sum())
		check(name+":owed", 0, c.Owed, "%d events should have been handed over, and nothing shows that they were.", c.Owed)
		check(name+":stuck", 0, c.Stuck, "%d events are pending, and nothing would ever go on with them.", c.Stuck)
	}
	return found
}

// LedgerLine is what became of one event.
type LedgerLine struct {
	Event   *Event // in the list form
	SHA256  string // of the body as it is stored, in hex
	Source  ResponseSource
	Verdict ConsumerState // of mail; empty for webhooks
	Tunnel  ConsumerState
	// Oldest first. Of Reports and Replays only the newest are listed.
	Forwards []Forward
	Runs     []ActionRun // without their traces
	Waiting  bool        // actions are still to be chosen
	Reports  []TunnelAttempt
	Replays  []ReplayAttempt
}

// ConsumerState is the state of one event at one consumer.
type ConsumerState string

// The states.
const (
	StateDelivered ConsumerState = "delivered"
	StateFailed    ConsumerState = "failed"
	StateSkipped   ConsumerState = "skipped"
	StatePending   ConsumerState = "pending"
)

// TunnelAttempt is one delivery that a tunnel client reported.
type TunnelAttempt struct {
	EventSeq   int64
	At         time.Time
	StatusCode int // 0: no answer came
}

// ReplayAttempt is one replay.
type ReplayAttempt struct {
	EventSeq  int64
	ID        string
	At        time.Time
	Delivered bool // answered with a 2xx
}
