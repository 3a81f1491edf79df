package api

import "hookglass"

// ReleaseMail is the body of POST /endpoints/{endpoint_id}/requests/{id}/releases.
type ReleaseMail struct {
	_  struct{} `additionalProperties:"false"`
	To []string `json:"to,omitempty" required:"true" minItems:"1" maxItems:"20" doc:"Bare addresses, each among those that the operator allows." example:"[\"dev@example.com\"]"`
}

// Release is a caught mail that was sent on, through the operator's mail relay.
type Release struct {
	ID           string   `json:"id" example:"rel_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	EventID      string   `json:"event_id" example:"eml_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	To           []string `json:"to" doc:"Each address once, its domain in ASCII." example:"[\"dev@example.com\"]"`
	Status       string   `json:"status" enum:"sent,failed,unknown" doc:"sent: the relay took the mail for all of them; what it does with it then it tells the operator's sender address. failed: nobody was sent it. unknown: under way where finished_at is null, or interrupted; it is never sent again by itself." example:"sent"`
	RelayCode    *int     `json:"relay_code" doc:"SMTP code of the relay's last answer; null: there was none." example:"250"`
	RelayMessage *string  `json:"relay_message" doc:"What the relay said with it, one line of 300 characters at most." example:"2.0.0 Ok: queued as 4XyZ"`
	Error        *Failure `json:"error" doc:"Why it is not sent: relay_unreachable, relay_refused, recipient_refused, message_too_large, smtputf8_missing, eightbit_missing, relay_disconnected or relay_no_answer."`
	CreatedAt    Time     `json:"created_at" example:"2026-11-20T10:15:30.123456Z"`
	FinishedAt   *Time    `json:"finished_at" doc:"Null: it is under way, or the service was stopped meanwhile." example:"2026-11-20T10:15:30.654321Z"`
}

// FromRelease converts a release.
func FromRelease(r hookglass.Release) Release {
	out := Release{
		ID: r.ID, EventID: string(r.EventID), To: r.To, Status: string(r.Status), RelayMessage: nonzero(r.Message), Error: fromFailure(r.Failure), CreatedAt: Time{r.CreatedAt},
	}
	if r.Code != 0 {
		out.RelayCode = &r.Code
	}
	if !r.FinishedAt.IsZero() {
		out.FinishedAt = &Time{r.FinishedAt}
	}
	return out
}
