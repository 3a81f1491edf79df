package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/api"
	"hookglass/internal/capture"
)

// arriveAt captures a webhook as if it had come at a time.
func (s *site) arriveAt(ref string, at time.Time, body string, headers ...string) {
	s.t.Helper()
	s.arrive(ref, func(a *capture.Arrival) {
		a.At, a.Body, a.Headers = at, []byte(body), nil
		for i := 0; i < len(headers); i += 2 {
			a.Headers = append(a.Headers, hookglass.Header{Name: headers[i], Value: headers[i+1]})
		}
	})
}

func TestAScriptIsSetReadAndTakenBack(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var e api.One[api.Endpoint]
		s.want(201, "POST", "/endpoints", `{"endpoint":{"name":"Flaky","response_script":" 500*3, TIMEOUT+60s ,200"}}`, &e)
		if e.Data.ResponseScript == nil || *e.Data.ResponseScript != "500*3,timeout,200" || e.Data.SchemaTracking {
			t.Errorf("made with %v", e.Data.ResponseScript)
		}
		at := "/endpoints/" + e.Data.ID
		s.want(200, "PATCH", at, `{"endpoint":{"name":"Still"}}`, &e)
		if e.Data.ResponseScript == nil {
			t.Error("a change of the name took the script")
		}
		var refused api.Error
		s.want(422, "PATCH", at, `{"endpoint":{"response_script":"500,teapot"}}`, &refused)
		if len(refused.Details) != 1 || refused.Details[0].Field != "endpoint.response_script" {
			t.Errorf("refused with %+v", refused)
		}
		s.want(422, "PATCH", at, `{"endpoint":{"response_script":5}}`, nil)
		long := strings.Repeat("timeout+2m,", 89) + "timeout+2m" // 120s, as it is stored and read again
		s.want(422, "PATCH", at, `{"endpoint":{"response_script":"`+long+`"}}`, &refused)
		if len(refused.Details) != 1 || !strings.Contains(refused.Details[0].Message, "in seconds") {
			t.Errorf("a script that is longer as it is stored: %+v", refused.Details)
		}
		s.want(200, "PATCH", at, `{"endpoint":{"response_script":null}}`, &e)
		if e.Data.ResponseScript != nil {
			t.Errorf("after null it is %q", *e.Data.ResponseScript)
		}
		s.want(422, "POST", "/endpoints", `{"endpoint":{"name":"Mail","kind":"email","response_script":"200"}}`, &refused)
		if len(refused.Details) != 1 || refused.Details[0].Field != "endpoint.response_script" {
			t.Errorf("refused with %+v", refused)
		}
		s.want(422, "POST", "/endpoints", `{"endpoint":{"name":"Mail","kind":"email","schema_tracking":true}}`, nil)
		s.want(422, "PATCH", at, `{"endpoint":{"schema_tracking":null}}`, nil)
	})
}

func TestTheRetryProfile(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		e := s.newEndpoint(`,"response_script":"500,reset,503@60s,200"`)
		at := "/endpoints/" + e.ID
		began := time.Now().Add(-30 * time.Minute)
		slack := func(delivery string, wait ...time.Duration) {
			when := began
			for i, w := range wait {
				when = when.Add(w)
				headers := []string{"X-Slack-Request-Timestamp", when.Format("150405"), "X-Slack-Signature", "v0=" + when.Format("150405.000"), "User-Agent", "Slackbot 1.0", "Content-Type", "application/json"}
				if i > 0 {
					headers = append(headers, "X-Slack-Retry-Num", string(rune('0'+i)), "X-Slack-Retry-Reason", "http_error")
				}
				s.arriveAt(e.ID, when, `{"type":"event_callback","event_id":"`+delivery+`","event":{"type":"message"}}`, headers...)
			}
		}
		slack("Ev01", 0, time.Second, time.Minute, 2*time.Minute)
		slack("Ev02", 0, 3*time.Second, 30*time.Second)

		var p api.One[api.RetryProfile]
		s.want(200, "GET", at+"/retry_profile", "", &p)
		if p.Data.Events != 7 || p.Data.More || len(p.Data.Groups) != 2 {
			t.Fatalf("%d events, %d groups", p.Data.Events, len(p.Data.Groups))
		}
		var first api.AttemptGroup
		for _, g := range p.Data.Groups {
			if g.AttemptCount == 4 {
				first = g
			}
		}
		if first.Provider != "slack" || first.State != "delivered" || len(first.Attempts) != 4 {
			t.Fatalf("the first delivery: %+v", first)
		}
		for i, want := range []string{"500", "reset", "503", "200"} {
			a := first.Attempts[i]
			if a.Answer != want || (a.GapMS == nil) != (i == 0) || (a.Status == nil) != (want == "reset") {
				t.Errorf("attempt %d: %+v", i+1, a)
			}
		}
		if gap := *first.Attempts[3].GapMS; gap != 120_000 || *first.Attempts[2].RetryAfterSeconds != 60 {
			t.Errorf("the last attempt came after %d ms", gap)
		}
		roles := map[string]string{}
		for _, c := range first.Attempts[2].Changes {
			if c.Role != nil {
				roles[*c.Name] = *c.Role
			}
		}
		if roles["X-Slack-Signature"] != "signature" || roles["X-Slack-Request-Timestamp"] != "timestamp" || roles["X-Slack-Retry-Num"] != "attempt_counter" {
			t.Errorf("what changed before the third attempt: %v", roles)
		}
		sum := p.Data.Summary
		if sum.Deliveries != 2 || sum.Retried != 2 || sum.Delivered != 1 || sum.GivenUp != 1 || sum.MaxAttempts != 4 || sum.GaveUpAfter == nil || sum.GaveUpAfter.Median != 3 {
			t.Errorf("summary %+v", sum)
		}
		if len(sum.Schedule) != 3 || sum.Schedule[0].Count != 2 || sum.Schedule[0].MedianMS != 2000 || sum.Schedule[0].MinMS != 1000 || sum.Schedule[0].Jitter != 1 || sum.Schedule[1].DocumentedMS == nil || *sum.Schedule[1].DocumentedMS != 60_000 {
			t.Errorf("schedule %+v", sum.Schedule)
		}
		if sum.RetryAfter != (api.RetryAfterFigure{Given: 2, Honoured: 1, NotRetried: 1}) {
			t.Errorf("Retry-After %+v", sum.RetryAfter)
		}
		if sum.Renewed["signature"] != "changed" || sum.Renewed["timestamp"] != "changed" || sum.Renewed["body"] != "kept" || sum.AttemptCounter == nil || *sum.AttemptCounter != "X-Slack-Retry-Num" {
			t.Errorf("renewed %v, counter %v", sum.Renewed, sum.AttemptCounter)
		}
		if len(p.Data.Providers) != 1 || p.Data.Providers[0].Retries == nil || len(p.Data.Providers[0].ScheduleSeconds) != 3 {
			t.Errorf("documented %+v", p.Data.Providers)
		}

		s.want(200, "GET", at+"/retry_profile?provider=stripe", "", &p)
		if p.Data.Events != 0 || len(p.Data.Groups) != 0 || p.Data.Summary.Deliveries != 0 {
			t.Errorf("of another provider: %+v", p.Data)
		}
		s.want(200, "GET", at+"/retry_profile?events=2&limit=1", "", &p)
		if p.Data.Events != 2 || !p.Data.More || len(p.Data.Groups) != 1 {
			t.Errorf("of two events: %+v", p.Data)
		}
		for _, wrong := range []string{"events=0", "events=2001", "limit=0", "limit=101", "q=sig:maybe", "after=soon"} {
			s.want(422, "GET", at+"/retry_profile?"+wrong, "", nil)
		}
		s.want(404, "GET", "/endpoints/ep_00000000000000000000000000/retry_profile", "", nil)
	})
}

func TestAScriptOfMailIsSetAndItsAnswersAreOnRecord(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		inbox := s.newEndpoint(`,"kind":"email","email_local_part":"inbox","response_script":" DATA: 451*2 4.7.1 Greylisted, reset, 250"`)
		if inbox.ResponseScript == nil || *inbox.ResponseScript != "451*2 4.7.1 Greylisted,reset,250" {
			t.Fatalf("made with %v", inbox.ResponseScript)
		}
		at := "/endpoints/" + inbox.ID
		var ids []string
		for range 5 {
			ids = append(ids, s.answered("inbox", welcome))
		}
		for i, want := range []string{"451 4.7.1 Greylisted", "451 4.7.1 Greylisted", "", "250 2.0.0 Stored", "250 2.0.0 Stored"} {
			var e api.One[api.EventDetail]
			s.want(200, "GET", at+"/requests/"+ids[i], "", &e)
			got := ""
			if e.Data.ResponseStatusSent != nil {
				got = fmt.Sprintf("%d %s", *e.Data.ResponseStatusSent, *e.Data.ResponseBodySent)
			}
			if got != want || e.Data.ResponseSource != "custom" || e.Data.Status != nil || len(e.Data.ResponseHeaderList) != 0 || e.Data.Envelope == nil || e.Data.Envelope.RcptTo[0] != "inbox@mail.test" {
				t.Errorf("attempt %d is on record as %q from %q, status %v, envelope %+v", i+1, got, e.Data.ResponseSource, e.Data.Status, e.Data.Envelope)
			}
			var d api.One[api.Diagnosis]
			s.want(200, "GET", at+"/requests/"+ids[i]+"/diagnosis", "", &d)
			if code := []string{"custom_error", "custom_error", "unanswered", "accepted", "accepted"}[i]; !slices.ContainsFunc(d.Data.Findings, func(f api.DiagnosisFinding) bool { return f.Code == code }) {
				t.Errorf("attempt %d: %+v has no %s", i+1, d.Data.Findings, code)
			}
		}
		other := s.answered("inbox", strings.Replace(welcome, "<1@", "<2@", 1)) // another mail begins at the start

		var list struct{ Data []api.Event }
		s.want(200, "GET", at+"/requests?q=status:451", "", &list)
		if len(list.Data) != 3 || list.Data[0].ID != other || list.Data[0].Status != nil {
			t.Errorf("answered 451: %+v", list.Data)
		}
		var p api.One[api.RetryProfile]
		s.want(200, "GET", at+"/retry_profile", "", &p)
		if len(p.Data.Groups) != 2 || len(p.Data.Providers) != 0 {
			t.Fatalf("%+v", p.Data)
		}
		g := p.Data.Groups[0]
		if g.IdentifiedBy != "event_id" || g.State != "delivered" || g.AttemptCount != 5 || g.Attempts[0].Answer != "451" || g.Attempts[2].Answer != "reset" || g.Attempts[3].Answer != "250" {
			t.Errorf("%+v", g)
		}
		var l api.One[api.Ledger]
		s.want(200, "GET", at+"/ledger", "", &l)
		if a := l.Data.Totals.Answers; a["451"] != 3 || a["none"] != 1 || a["accepted"] != 2 || len(a) != 3 || !l.Data.Balanced {
			t.Errorf("the ledger has %v", a)
		}
		s.want(200, "PATCH", at, `{"endpoint":{"response_script":null}}`, nil)
		var e api.One[map[string]any]
		s.want(200, "GET", at+"/requests/"+s.answered("inbox", welcome), "", &e)
		if _, there := e.Data["response_status_sent"]; there {
			t.Error("a mail without a script has an answer on record")
		}
	})
}

// answered is deliver as it comes by SMTP, where scripts are asked.
func (s *site) answered(localPart, raw string) string {
	s.t.Helper()
	target, err := s.captures.AdmitMail(s.t.Context(), localPart)
	if err != nil {
		s.t.Fatal(err)
	}
	d := s.captures.CaptureMail(s.t.Context(), &capture.Mail{
		From: "bounces@example.org", To: []capture.Recipient{{Address: localPart + "@mail.test", Target: target}}, Protocol: "ESMTP", Raw: []byte(raw), At: time.Now(), Answers: capture.AnswersOne,
	})
	if d[0].Err != nil {
		s.t.Fatal(d[0].Err)
	}
	return string(d[0].Event)
}
