package api

import (
	"maps"

	"hookglass"
)

// LedgerPage is an endpoint's ledger of a window, with a page of its events.
type LedgerPage struct {
	Data Ledger `json:"data"`
	Meta Page   `json:"meta"`
}

// Ledger is what became of everything that arrived at an endpoint in a window. The sums cover the whole window; events
// are a page of it.
type Ledger struct {
	EndpointID  string             `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	From        Time               `json:"from" doc:"Of the window as it was read: whole minutes, or whole hours where it is long or long ago. Included." example:"2026-11-20T09:15:00.000000Z"`
	To          Time               `json:"to" doc:"Not included." example:"2026-11-20T10:16:00.000000Z"`
	BooksFrom   *Time              `json:"books_from" doc:"From when on erased and refused arrivals are counted; a window begins no earlier. null: since ever." example:"2026-11-20T00:00:00.000000Z"`
	Balanced    bool               `json:"balanced" doc:"Every sum holds." example:"true"`
	Differences []LedgerDifference `json:"differences" doc:"The sums that do not hold."`
	Totals      LedgerTotals       `json:"totals"`
	Consumers   []LedgerConsumer   `json:"consumers" doc:"What is to get every event: for each, stored = delivered + failed + skipped + pending + expired + deleted."`
	Events      []LedgerEvent      `json:"events" doc:"Oldest first. Deleted ones are in the sums alone."`
}

// LedgerDifference is a sum that does not balance.
type LedgerDifference struct {
	Name     string `json:"name" doc:"Stable." example:"forwarding_target:3:owed"`
	Expected int64  `json:"expected" example:"0"`
	Actual   int64  `json:"actual" example:"1"`
	Message  string `json:"message" example:"1 events should have been handed over, and nothing shows that they were."`
}

// LedgerTotals are the sums of a window: received = refused + stored, stored = kept + deleted, kept = the answers added
// up.
type LedgerTotals struct {
	Received int64            `json:"received" doc:"Arrivals that were stored, or answered an error." example:"120"`
	Refused  int64            `json:"refused" doc:"Arrivals that were answered an error and not stored." example:"2"`
	Reasons  map[string]int64 `json:"refused_reasons" doc:"Those by the error's code." example:"{\"payload_too_large\":2}"`
	Stored   int64            `json:"stored" doc:"Arrivals that were committed." example:"118"`
	Kept     int64            `json:"kept" doc:"Of those: events that are there now." example:"118"`
	Deleted  int64            `json:"deleted" doc:"Of those: events that people deleted, or that were purged for their age." example:"0"`
	Ignored  int64            `json:"ignored" doc:"Of kept." example:"3"`
	Answers  map[string]int64 `json:"answers" doc:"Of kept: by the status that the sender was answered; accepted for mail, but what a script answered to it; none where one left the sender without an answer." example:"{\"200\":118}"`
	Replays  LedgerReplays    `json:"replays" doc:"Of kept: events that people sent again."`
}

// LedgerReplays count replays.
type LedgerReplays struct {
	Delivered int64 `json:"delivered" example:"1"`
	Failed    int64 `json:"failed" example:"0"`
	Pending   int64 `json:"pending" doc:"Of bulk replays that go on." example:"0"`
}

// LedgerConsumer is the progress of something that is to receive every event.
type LedgerConsumer struct {
	Kind      string  `json:"kind" enum:"forwarding_target,action,tunnel,mail_verdict" example:"forwarding_target"`
	ID        *string `json:"id" doc:"Of a forwarding target or an action." example:"3"`
	Name      *string `json:"name" example:"Staging"`
	Gone      bool    `json:"gone" doc:"It was deleted; what it did is still there." example:"false"`
	Delivered int64   `json:"delivered" doc:"Answered with a 2xx; completed; reported with a 2xx; judged." example:"117"`
	Failed    int64   `json:"failed" doc:"Given up, or ended badly." example:"0"`
	Skipped   int64   `json:"skipped" doc:"Not owed: it was not there or disabled, its conditions did not match, nobody was connected." example:"0"`
	Pending   int64   `json:"pending" doc:"Still to be done." example:"1"`
	Expired   int64   `json:"expired" doc:"Of the tunnel: missed, and erased before they were fetched." example:"0"`
	Deleted   int64   `json:"deleted" doc:"Deleted; where they stood is not kept." example:"0"`
	Owed      int64   `json:"owed" doc:"Of skipped: should have been handed over. More than 0 is a difference." example:"0"`
	Stuck     int64   `json:"stuck" doc:"Of pending: nothing would go on with them. More than 0 is a difference." example:"0"`
}

// LedgerEvent is what became of one event.
type LedgerEvent struct {
	ID          string           `json:"id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Type        string           `json:"type" enum:"webhook,email" example:"webhook"`
	RequestedAt Time             `json:"requested_at" example:"2026-11-20T10:15:30.123456Z"`
	Size        int64            `json:"size" example:"512"`
	SHA256      string           `json:"body_sha256" doc:"Of the body as it is stored, in hex." example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	Ignored     bool             `json:"ignored" example:"false"`
	Answer      LedgerAnswer     `json:"answer" doc:"What the sender was answered."`
	Verdict     *string          `json:"verdict" enum:"delivered,failed,pending" doc:"Of mail: whether it was judged." example:"delivered"`
	Tunnel      string           `json:"tunnel" enum:"delivered,failed,skipped,pending" example:"skipped"`
	Forwards    []LedgerForward  `json:"forwards"`
	Actions     []LedgerRun      `json:"actions"`
	Waiting     bool             `json:"actions_pending" doc:"Its actions are still to be chosen." example:"false"`
	Reports     []LedgerReport   `json:"tunnel_attempts" doc:"The newest 20."`
	Replays     []LedgerReplayed `json:"replays" doc:"The newest 20."`
}

// LedgerAnswer is the answer to a sender.
type LedgerAnswer struct {
	Status *int    `json:"status" doc:"null for mail, and where a script left the sender without an answer." example:"200"`
	Source *string `json:"source" example:"default"`
}

// LedgerForward is the delivery of an event to one forwarding target.
type LedgerForward struct {
	TargetID int64           `json:"target_id" example:"3"`
	Status   string          `json:"status" enum:"pending,sending,delivered,failed,skipped" example:"delivered"`
	Attempts []LedgerAttempt `json:"attempts"`
}

// LedgerAttempt is one request to a forwarding target.
type LedgerAttempt struct {
	At         Time    `json:"at" example:"2026-11-20T10:15:30.123456Z"`
	StatusCode *int    `json:"status_code" example:"200"`
	Error      *string `json:"error" doc:"A code, when there was no complete answer." example:"timeout"`
	DurationMS int64   `json:"duration_ms" example:"42"`
}

// LedgerRun is one run of an action.
type LedgerRun struct {
	ActionID   string `json:"action_id" example:"act_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	RunID      string `json:"run_id" example:"arun_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Rerun      bool   `json:"rerun" doc:"People asked for it; it is in no sum." example:"false"`
	Status     string `json:"status" enum:"queued,running,completed,failed,stopped" example:"completed"`
	FinishedAt *Time  `json:"finished_at" example:"2026-11-20T10:15:30.223456Z"`
}

// LedgerReport is one delivery through the tunnel, as its other end reported it.
type LedgerReport struct {
	At         Time `json:"at" example:"2026-11-20T10:15:30.123456Z"`
	StatusCode int  `json:"status_code" doc:"0: no answer came." example:"200"`
}

// LedgerReplayed is one replay.
type LedgerReplayed struct {
	ID        string `json:"id" example:"rpl_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	At        Time   `json:"at" example:"2026-11-20T10:15:30.123456Z"`
	Delivered bool   `json:"delivered" example:"true"`
}

// FromLedger converts the ledger of an endpoint with a page of its events.
func FromLedger(e hookglass.Endpoint, l hookglass.Ledger, lines []hookglass.LedgerLine) Ledger {
	differences := l.Differences()
	out := Ledger{
		EndpointID: string(e.ID), From: Time{l.From}, To: Time{l.To}, BooksFrom: at(l.Since), Balanced: len(differences) == 0,
		Differences: make([]LedgerDifference, len(differences)), Consumers: make([]LedgerConsumer, len(l.Consumers)), Events: make([]LedgerEvent, len(lines)),
		Totals: LedgerTotals{
			Received: l.Received(), Refused: l.Received() - l.Stored, Reasons: maps.Clone(l.Refused), Stored: l.Stored, Kept: l.Kept, Deleted: l.Deleted,
			Ignored: l.Ignored, Answers: maps.Clone(l.Answers), Replays: LedgerReplays(l.Replays),
		},
	}
	for i, d := range differences {
		out.Differences[i] = LedgerDifference(d)
	}
	for i, c := range l.Consumers {
		out.Consumers[i] = LedgerConsumer{
			string(c.Kind), nonzero(c.ID), nonzero(c.Name), c.Gone, c.Delivered, c.Failed, c.Skipped, c.Pending, c.Expired, c.Deleted, c.Owed, c.Stuck,
		}
	}
	for i, line := range lines {
		out.Events[i] = fromLedgerLine(line)
	}
	return out
}

func fromLedgerLine(l hookglass.LedgerLine) LedgerEvent {
	e := l.Event
	out := LedgerEvent{
		ID: string(e.ID), Type: string(e.Type), RequestedAt: Time{e.ReceivedAt}, Size: e.Size, SHA256: l.SHA256, Ignored: e.Ignored != "",
		Answer: LedgerAnswer{nonzero(e.Status), nonzero(string(l.Source))}, Verdict: nonzero(string(l.Verdict)), Tunnel: string(l.Tunnel), Waiting: l.Waiting,
		Forwards: make([]LedgerForward, len(l.Forwards)), Actions: make([]LedgerRun, len(l.Runs)), Reports: make([]LedgerReport, len(l.Reports)), Replays: make([]LedgerReplayed, len(l.Replays)),
	}
	for i, f := range l.Forwards {
		out.Forwards[i] = LedgerForward{f.TargetID, string(f.State), make([]LedgerAttempt, len(f.Attempts))}
		for k, a := range f.Attempts {
			out.Forwards[i].Attempts[k] = LedgerAttempt{At: Time{a.At}, StatusCode: nonzero(a.StatusCode), DurationMS: a.Duration.Milliseconds()}
			if a.Failure != nil {
				out.Forwards[i].Attempts[k].Error = &a.Failure.Code
			}
		}
	}
	for i, r := range l.Runs {
		out.Actions[i] = LedgerRun{r.ActionID, r.ID, r.Rerun, string(r.Status), at(r.FinishedAt)}
	}
	for i, r := range l.Reports {
		out.Reports[i] = LedgerReport{Time{r.At}, r.StatusCode}
	}
	for i, r := range l.Replays {
		out.Replays[i] = LedgerReplayed{r.ID, Time{r.At}, r.Delivered}
	}
	return out
}
