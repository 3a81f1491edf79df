package api

import (
	"cmp"

	"hookglass"
)

// Diagnosis explains what became of an event.
type Diagnosis struct {
	RequestID  string              `json:"request_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	EndpointID string              `json:"endpoint_id" example:"ep_7c1v9k2m4n6p8q0r2s4t6v8w0y"`
	Severity   string              `json:"severity" enum:"ok,info,warning,problem" doc:"The gravest of the findings." example:"problem"`
	Summary    string              `json:"summary" example:"One problem: The forwarding target \"orders\" did not take it: 4 attempts, last answered 500."`
	Findings   []DiagnosisFinding  `json:"findings" doc:"In the order of the event's way: signature or authentication, response, deliveries, actions."`
	Deliveries []DiagnosisDelivery `json:"deliveries" doc:"To forwarding targets, as reported by tunnel clients, and by replays; up to 20 of each."`
	Runs       []ActionRun         `json:"action_runs" doc:"Of actions on it, newest first; up to 20."`
	Sender     SenderFacts         `json:"sender"`
	NextSteps  []string            `json:"next_steps" doc:"What to do, the most useful first." example:"[\"The handler failed: read its log at that time, mend it, then replay the request.\"]"`
}

// DiagnosisFinding is one finding about an event.
type DiagnosisFinding struct {
	Area     string  `json:"area" enum:"signature,authentication,response,delivery,action" example:"signature"`
	Severity string  `json:"severity" enum:"ok,info,warning,problem" example:"problem"`
	Code     string  `json:"code" doc:"A stable word." example:"body_reencoded"`
	Message  string  `json:"message" example:"The signature is right for the body with other line ends: something on the way changed them."`
	NextStep *string `json:"next_step" example:"Check what stands between the sender and this address."`
}

// DiagnosisDelivery is one way in which an event was passed on.
type DiagnosisDelivery struct {
	Via           string   `json:"via" enum:"target,tunnel,replay" example:"target"`
	To            string   `json:"to" doc:"The target's name, or the URL." example:"orders"`
	URL           string   `json:"url" doc:"Where it goes: of a target its address, to which a replay can send the event again." example:"https://orders.example.com/hooks"`
	State         string   `json:"state" enum:"pending,sending,delivered,failed,skipped" example:"failed"`
	StatusCode    *int     `json:"status_code" doc:"Of the last answer." example:"500"`
	Attempts      int      `json:"attempts" example:"4"`
	LastAttemptAt *Time    `json:"last_attempt_at" example:"2026-11-20T10:15:30.123456Z"`
	NextAttemptAt *Time    `json:"next_attempt_at" example:"2026-11-20T10:16:30.123456Z"`
	Error         *Failure `json:"error"`
	Verdict       *string  `json:"verdict" enum:"fixed,regressed,still_failing,still_passing" doc:"Of a replay: compared with the one before at the same target."`
}

// SenderFacts are known facts about how a sender sends.
type SenderFacts struct {
	Provider string  `json:"provider" example:"stripe"`
	Expects  *string `json:"expects" doc:"Which answer it takes for success; null: not known." example:"any 2xx quickly"`
	Retries  *string `json:"retries" doc:"What it does without that answer; null: not known." example:"live mode: up to 3 days, exponential backoff; sandbox: 3 times over a few hours"`
}

// FromDiagnosis converts a diagnosis.
func FromDiagnosis(d hookglass.Diagnosis) Diagnosis {
	out := Diagnosis{
		RequestID: string(d.EventID), EndpointID: string(d.EndpointID), Severity: string(d.Severity), Summary: d.Summary,
		Findings: make([]DiagnosisFinding, len(d.Findings)), Deliveries: make([]DiagnosisDelivery, len(d.Deliveries)), Runs: make([]ActionRun, len(d.Runs)),
		Sender:    SenderFacts{Provider: d.Sender.Provider, Expects: nonzero(d.Sender.Expects), Retries: nonzero(d.Sender.Retries)},
		NextSteps: append([]string{}, d.Next...),
	}
	for i, f := range d.Findings {
		out.Findings[i] = DiagnosisFinding{Area: string(f.Area), Severity: string(f.Severity), Code: f.Code, Message: Text(f.Message), NextStep: nonzero(f.Next)}
	}
	for i, a := range d.Deliveries {
		out.Deliveries[i] = DiagnosisDelivery{
			Via: a.Via, To: Text(a.To), URL: Text(cmp.Or(a.URL, a.To)), State: a.State, StatusCode: nonzero(a.StatusCode), Attempts: a.Attempts, LastAttemptAt: at(a.At), NextAttemptAt: at(a.NextAt),
			Error: fromFailure(a.Failure), Verdict: nonzero(string(a.Verdict)),
		}
	}
	for i, r := range d.Runs {
		out.Runs[i] = FromActionRun(r)
	}
	return out
}

// Comparison is how two events differ.
type Comparison struct {
	RequestID      string         `json:"request_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	OtherRequestID string         `json:"other_request_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wy"`
	Same           bool           `json:"same" doc:"Nothing differs but the ids and the times." example:"false"`
	Fields         []Change       `json:"fields" doc:"What differs of the events' own fields."`
	Headers        []Change       `json:"headers" doc:"By name, in lower case; repeated values are joined; up to 100."`
	MoreHeaders    bool           `json:"more_headers" doc:"More headers differ than are listed." example:"false"`
	Query          []Change       `json:"query" doc:"By parameter, up to 100."`
	MoreQuery      bool           `json:"more_query" doc:"More parameters differ than are listed." example:"false"`
	Body           BodyComparison `json:"body"`
}

// Change is one place where two events differ; left is the side of request_id.
type Change struct {
	Path  string  `json:"path" doc:"A field, header or parameter by its name, or a JSON Pointer into the body. In the JSON that a field of a form holds: the name and the pointer, as payload/user/id. A path of more than 1,000 bytes is cut, and ends in …" example:"/data/object/amount"`
	Kind  string  `json:"kind" enum:"added,removed,changed" doc:"added: only the other request has it." example:"changed"`
	Left  *string `json:"left" doc:"Up to 500 bytes; of JSON as it is spelled." example:"100"`
	Right *string `json:"right" example:"200"`
	Cut   bool    `json:"cut" doc:"A side is longer than what is shown." example:"false"`
}

// BodyComparison is how two bodies differ.
type BodyComparison struct {
	ComparedAs string   `json:"compared_as" enum:"json,form,text,bytes" example:"json"`
	Identical  bool     `json:"identical" doc:"Byte for byte, as received." example:"false"`
	Decoded    bool     `json:"decoded" doc:"A side came compressed (gzip or deflate): it is compared as it is decompressed." example:"false"`
	Changes    []Change `json:"changes" doc:"Of JSON and forms, up to 100."`
	Diff       *string  `json:"diff" doc:"Of text: the differing lines."`
	More       bool     `json:"more" doc:"There is more than is listed." example:"false"`
	LeftSize   int64    `json:"left_size" doc:"Bytes, as received." example:"512"`
	RightSize  int64    `json:"right_size" example:"514"`
}

// FromComparison converts a comparison.
func FromComparison(c hookglass.Comparison) Comparison {
	return Comparison{
		RequestID: string(c.Left), OtherRequestID: string(c.Right), Same: c.Same(), Fields: fromChanges(c.Fields),
		Headers: fromChanges(c.Headers), MoreHeaders: c.MoreHeaders, Query: fromChanges(c.Query), MoreQuery: c.MoreQuery,
		Body: BodyComparison{
			ComparedAs: c.Body.Form, Identical: c.Body.Identical, Decoded: c.Body.Decoded, Changes: fromChanges(c.Body.Changes), Diff: nonzero(c.Body.Text), More: c.Body.More,
			LeftSize: c.Body.Left, RightSize: c.Body.Right,
		},
	}
}

func fromChanges(changes []hookglass.Change) []Change {
	out := make([]Change, len(changes))
	for i, c := range changes {
		out[i] = Change{Path: c.Path, Kind: "changed", Left: c.Left, Right: c.Right, Cut: c.Cut}
		switch {
		case c.Left == nil:
			out[i].Kind = "added"
		case c.Right == nil:
			out[i].Kind = "removed"
		}
	}
	return out
}
