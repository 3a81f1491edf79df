package api

import (
	"encoding/hex"
	"time"

	"hookglass"
)

// RetryProfile describes how senders retried the events of an endpoint.
type RetryProfile struct {
	Events    int              `json:"events" doc:"Events that were looked at, the newest." example:"500"`
	More      bool             `json:"more" doc:"Whether there are older ones. Where events is less than was asked for, reading ended for its time."`
	Groups    []AttemptGroup   `json:"groups" doc:"Deliveries, those with several attempts first, the newest of them first."`
	Summary   RetrySummary     `json:"summary"`
	Providers []DocumentedRule `json:"providers" doc:"What the senders among them document."`
}

// AttemptGroup is a delivery with its attempts, oldest first.
type AttemptGroup struct {
	Identity     string         `json:"identity" doc:"Tells the delivery from others of the endpoint." example:"5d41402abc4b2a76b9719d911017c592"`
	IdentifiedBy string         `json:"identified_by" enum:"delivery_id,event_id,body,request,envelope" doc:"request, of what has no body, is method, path and query with the event type, until one is answered with 2xx. Of mail event_id is its Message-ID with the recipients; envelope, where it has none, its sender, recipients and subject." example:"delivery_id"`
	Provider     string         `json:"provider" example:"shopify"`
	EventType    *string        `json:"event_type" example:"orders/create"`
	DeliveryID   *string        `json:"delivery_id" doc:"Of the last attempt; null where the sender gives none." example:"b1a2c3"`
	State        string         `json:"state" enum:"delivered,waiting,given_up" doc:"given_up: the sender was silent for three times as long as it ever was, or was told to wait." example:"delivered"`
	AttemptCount int            `json:"attempt_count" doc:"More than are listed where these are too many." example:"4"`
	AfterSuccess int            `json:"after_success" doc:"Attempts after one that was answered with 2xx." example:"0"`
	Attempts     []RetryAttempt `json:"attempts"`
}

// RetryAttempt is one attempt of a delivery.
type RetryAttempt struct {
	RequestID         string          `json:"request_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	ReceivedAt        Time            `json:"received_at" example:"2026-11-20T10:15:30.123456Z"`
	GapMS             *int64          `json:"gap_ms" doc:"Milliseconds since the attempt before; null for the first." example:"60000"`
	Answer            string          `json:"answer" doc:"As a response script spells it: a status, reset or timeout." example:"500"`
	Status            *int            `json:"status" doc:"null where no answer was given." example:"500"`
	RetryAfterSeconds *int64          `json:"retry_after_seconds,omitempty" doc:"That it was told."`
	Changes           []AttemptChange `json:"changes" doc:"In which it differs from the attempt before: names, no values."`
	MoreChanges       bool            `json:"more_changes,omitempty" doc:"There may be more: there are too many, a body is too large, or there was not the time to look."`
}

// AttemptChange is a part in which an attempt differs from the one before.
type AttemptChange struct {
	Part string  `json:"part" enum:"header,path,query,body" example:"header"`
	Name *string `json:"name" doc:"The header, or the JSON Pointer into the body; null: the whole." example:"X-Slack-Retry-Num"`
	Kind string  `json:"kind" enum:"added,removed,changed" example:"changed"`
	Role *string `json:"role" enum:"signature,timestamp,delivery_id,event_id,attempt_counter,body" doc:"What it is for, as far as its name and value tell." example:"attempt_counter"`
}

// RetrySummary is what the deliveries have in common.
type RetrySummary struct {
	Deliveries           int               `json:"deliveries" example:"12"`
	Retried              int               `json:"retried" doc:"With more than one attempt." example:"9"`
	Delivered            int               `json:"delivered" example:"8"`
	Waiting              int               `json:"waiting" example:"1"`
	GivenUp              int               `json:"given_up" example:"3"`
	AttemptsAfterSuccess int               `json:"attempts_after_success" example:"0"`
	MaxAttempts          int               `json:"max_attempts" example:"4"`
	GaveUpAfter          *AttemptRange     `json:"gave_up_after" doc:"Attempts of deliveries that were given up; null where none was."`
	Schedule             []RetryStep       `json:"schedule"`
	Answers              []AnswerFigure    `json:"answers" doc:"What the senders did after each answer."`
	RetryAfter           RetryAfterFigure  `json:"retry_after"`
	Renewed              map[string]string `json:"renewed" doc:"Whether signature, timestamp, delivery_id, event_id and body change from attempt to attempt: absent, kept, changed or sometimes." example:"{\"delivery_id\":\"kept\",\"signature\":\"changed\"}"`
	AttemptCounter       *string           `json:"attempt_counter" doc:"A header that counts attempts; null where none was seen." example:"X-Slack-Retry-Num"`
}

// AttemptRange is a number of attempts over several deliveries.
type AttemptRange struct {
	Min    int `json:"min" example:"4"`
	Median int `json:"median" example:"4"`
	Max    int `json:"max" example:"5"`
}

// RetryStep is the wait before one attempt, over all deliveries that had it.
type RetryStep struct {
	Attempt      int     `json:"attempt" example:"2"`
	Count        int     `json:"count" doc:"Deliveries with it." example:"9"`
	MedianMS     int64   `json:"median_ms" example:"60000"`
	MinMS        int64   `json:"min_ms" example:"58000"`
	MaxMS        int64   `json:"max_ms" example:"61000"`
	Jitter       float64 `json:"jitter" doc:"The difference of the longest and the shortest, relative to the median." example:"0.05"`
	DocumentedMS *int64  `json:"documented_ms" doc:"What the sender documents; null where it does not say exactly, or where there are several senders." example:"60000"`
}

// AnswerFigure counts what senders did after an answer.
type AnswerFigure struct {
	Answer     string `json:"answer" doc:"As a response script spells it." example:"500"`
	Attempts   int    `json:"attempts" doc:"That were answered so." example:"9"`
	Retried    int    `json:"retried" doc:"Of them, those that another attempt followed." example:"9"`
	NotRetried int    `json:"not_retried" doc:"The others; another attempt may still come." example:"0"`
}

// RetryAfterFigure counts how senders reacted to Retry-After.
type RetryAfterFigure struct {
	Given      int `json:"given" example:"3"`
	Honoured   int `json:"honoured" doc:"The next attempt came no earlier, half a second aside." example:"3"`
	Early      int `json:"early" doc:"It came earlier." example:"0"`
	NotRetried int `json:"not_retried" example:"0"`
}

// DocumentedRule is what a provider documents about its sending.
type DocumentedRule struct {
	Provider        string  `json:"provider" example:"slack"`
	Expects         *string `json:"expects" example:"2xx within 3 s"`
	Retries         *string `json:"retries" doc:"null where it is not known." example:"3 retries: at once, after 1 min, after 5 min"`
	ScheduleSeconds []int64 `json:"schedule_seconds" doc:"The waits between attempts; empty where it does not say exactly." example:"[0,60,300]"`
}

// FromRetryProfile converts a profile.
func FromRetryProfile(p hookglass.RetryProfile) RetryProfile {
	out := RetryProfile{Events: p.Events, More: p.More, Groups: []AttemptGroup{}, Summary: fromRetrySummary(p.Summary), Providers: []DocumentedRule{}}
	for _, g := range p.Groups {
		group := AttemptGroup{
			Identity: hex.EncodeToString(g.Key[:]), IdentifiedBy: string(g.Kind), Provider: g.Provider, EventType: textOrNil(g.EventType), DeliveryID: textOrNil(g.DeliveryID),
			State: string(g.State), AttemptCount: g.Total, AfterSuccess: g.AfterSuccess, Attempts: []RetryAttempt{},
		}
		for i, a := range g.Attempts {
			group.Attempts = append(group.Attempts, fromAttempt(a, i > 0))
		}
		out.Groups = append(out.Groups, group)
	}
	for _, f := range p.Providers {
		schedule := f.Schedule
		if schedule == nil {
			schedule = []int64{}
		}
		out.Providers = append(out.Providers, DocumentedRule{Provider: f.Provider, Expects: nonzero(f.Expects), Retries: nonzero(f.Retries), ScheduleSeconds: schedule})
	}
	return out
}

func fromAttempt(a hookglass.Attempt, follows bool) RetryAttempt {
	out := RetryAttempt{
		RequestID: string(a.EventID), ReceivedAt: Time{a.At}, Answer: a.Answer(), Status: nonzero(a.Status),
		RetryAfterSeconds: nonzero(int64(a.RetryAfter / time.Second)), Changes: []AttemptChange{}, MoreChanges: a.MoreChange,
	}
	if follows {
		out.GapMS = new(a.Gap.Milliseconds())
	}
	for _, c := range a.Changes {
		out.Changes = append(out.Changes, AttemptChange{Part: c.Part, Name: textOrNil(c.Name), Kind: c.Kind, Role: nonzero(string(c.Role))})
	}
	return out
}

func fromRetrySummary(s hookglass.RetrySummary) RetrySummary {
	out := RetrySummary{
		Deliveries: s.Deliveries, Retried: s.Retried, Delivered: s.Delivered, Waiting: s.Waiting, GivenUp: s.GivenUp,
		AttemptsAfterSuccess: s.AfterSuccess, MaxAttempts: s.MaxAttempts, Schedule: []RetryStep{}, Answers: []AnswerFigure{},
		RetryAfter: RetryAfterFigure{Given: s.RetryAfter.Given, Honoured: s.RetryAfter.Honoured, Early: s.RetryAfter.Early, NotRetried: s.RetryAfter.None},
		Renewed:    make(map[string]string, len(s.Renewed)), AttemptCounter: textOrNil(s.Counter),
	}
	if n := len(s.GaveUpAfter); n > 0 {
		out.GaveUpAfter = &AttemptRange{Min: s.GaveUpAfter[0], Median: s.GaveUpAfter[n/2], Max: s.GaveUpAfter[n-1]}
	}
	for _, step := range s.Schedule {
		one := RetryStep{
			Attempt: step.Attempt, Count: step.N, MedianMS: step.Median.Milliseconds(), MinMS: step.Min.Milliseconds(), MaxMS: step.Max.Milliseconds(), Jitter: step.Jitter,
		}
		if step.Documented >= 0 {
			one.DocumentedMS = new(step.Documented.Milliseconds())
		}
		out.Schedule = append(out.Schedule, one)
	}
	for _, a := range s.Answers {
		out.Answers = append(out.Answers, AnswerFigure{Answer: a.Answer, Attempts: a.Attempts, Retried: a.Retried, NotRetried: a.Attempts - a.Retried})
	}
	for role, renewal := range s.Renewed {
		out.Renewed[string(role)] = string(renewal)
	}
	return out
}
