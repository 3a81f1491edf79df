package flow_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/flow"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// arrival is an event of a table: where, how many seconds after the start, its type and its body.
type arrival struct {
	endpoint int64
	at       float64
	kind     string
	body     string
}

func (a arrival) event(n int) *hookglass.Event {
	at := noon.Add(time.Duration(a.at * float64(time.Second)))
	return &hookglass.Event{
		Seq: int64(n), ID: hookglass.EventID(fmt.Sprint("req_", n)), EndpointNum: a.endpoint, Type: hookglass.EventWebhook, ReceivedAt: at, Method: "POST", Path: "/x", RawQuery: "page=2",
		Provider: "stripe", EventType: a.kind, SignatureStatus: hookglass.SignatureVerified, Ignored: "noise", // which makes no difference
		Payload: &hookglass.Payload{Body: []byte(a.body), Headers: hookglass.Headers{{Name: "X-Run", Value: " 7 "}}},
	}
}

func mail(at float64, subject, text string) *hookglass.Event {
	raw := "From: Shop <shop@example.com>\r\nTo: me@example.com\r\nSubject: " + subject + "\r\nContent-Type: text/plain\r\n\r\n" + text
	return &hookglass.Event{
		ID: "eml_1", EndpointNum: 2, Type: hookglass.EventEmail, ReceivedAt: noon.Add(time.Duration(at * float64(time.Second))), Method: "EMAIL", From: "shop@example.com", To: "me@example.com",
		Subject: subject, Payload: &hookglass.Payload{Body: []byte(raw)},
	}
}

func one(endpoint int64, change func(*hookglass.FlowStep)) hookglass.FlowStep {
	s := hookglass.FlowStep{EndpointNum: endpoint, Count: 1}
	if change != nil {
		change(&s)
	}
	return s
}

func of(kind string) func(*hookglass.FlowStep) {
	return func(s *hookglass.FlowStep) { s.EventType = kind }
}

func within(kind string, seconds int) func(*hookglass.FlowStep) {
	return func(s *hookglass.FlowStep) { s.EventType, s.Within = kind, time.Duration(seconds)*time.Second }
}

func never(kind string, seconds int) func(*hookglass.FlowStep) {
	return func(s *hookglass.FlowStep) {
		s.EventType, s.Within, s.Never, s.Count = kind, time.Duration(seconds)*time.Second, true, 0
	}
}

func counted(kind string, n int, exactly bool, seconds int) func(*hookglass.FlowStep) {
	return func(s *hookglass.FlowStep) {
		s.EventType, s.Count, s.Exactly, s.Within = kind, n, exactly, time.Duration(seconds)*time.Second
	}
}

func TestStepsAndWhatBecomesOfThem(t *testing.T) {
	a, b := "a", "b"
	for _, c := range []struct {
		name    string
		any     bool
		steps   []hookglass.FlowStep
		events  []arrival
		end     float64
		want    string // state, and those of the steps
		message string // a part
	}{
		{"one that comes", false, []hookglass.FlowStep{one(1, nil)}, []arrival{{1, 1, a, ""}}, 1, "passed: passed", ""},
		{"one elsewhere", false, []hookglass.FlowStep{one(1, nil)}, []arrival{{2, 1, a, ""}}, 1, "pending: watching", ""},
		{"none, and there is time", false, []hookglass.FlowStep{one(1, nil)}, nil, 61, "pending: watching", ""},
		{"none in time", false, []hookglass.FlowStep{one(1, nil)}, nil, 61.1, "expired: expired", "Nothing matched within 1m0s."},
		{"at the last moment", false, []hookglass.FlowStep{one(1, within("", 5))}, []arrival{{1, 5, a, ""}}, 7, "passed: passed", ""},
		{"a little too late", false, []hookglass.FlowStep{one(1, within("", 5))}, []arrival{{1, 5.001, a, ""}}, 7, "expired: expired", "req_1 matched, but did not count: It came 1ms too late."},
		{"another type", false, []hookglass.FlowStep{one(1, within(b, 5))}, []arrival{{1, 1, a, ""}}, 7, "expired: expired", `The nearest was req_1, which met 1 of 2 conditions: event_type should be "b" and was "a".`},
		{"no type", false, []hookglass.FlowStep{one(1, within(b, 5))}, []arrival{{1, 1, "", ""}}, 7, "expired: expired", `event_type should be "b".`},
		{"nothing to extract", false, []hookglass.FlowStep{one(1, func(s *hookglass.FlowStep) {
			s.Extract, s.Within = []hookglass.FlowExtract{{Name: "order", Source: "/data/id"}}, 5*time.Second
		})}, []arrival{{1, 1, a, ""}}, 7, "expired: expired", `which met 1 of 2 conditions: extract.order found nothing by "/data/id".`},
		{"in order", false, []hookglass.FlowStep{one(1, of(a)), one(1, of(b))}, []arrival{{1, 1, a, ""}, {1, 2, b, ""}}, 2, "passed: passed passed", ""},
		{"in the wrong order", false, []hookglass.FlowStep{one(1, of(a)), one(1, within(b, 5))}, []arrival{{1, 1, b, ""}, {1, 2, a, ""}}, 9, "expired: passed expired", "It came before the turn of this step."},
		{"in any order", true, []hookglass.FlowStep{one(1, of(a)), one(1, of(b))}, []arrival{{1, 1, b, ""}, {1, 2, a, ""}}, 2, "passed: passed passed", ""},
		{"one event, two steps", false, []hookglass.FlowStep{one(1, nil), one(1, nil)}, []arrival{{1, 1, a, ""}}, 2, "pending: passed watching", ""},
		{"one event, two steps in any order", true, []hookglass.FlowStep{one(1, nil), one(1, nil)}, []arrival{{1, 1, a, ""}}, 2, "pending: passed watching", ""},
		{"within counts from the step before", false, []hookglass.FlowStep{one(1, of(a)), one(1, within(b, 5))}, []arrival{{1, 30, a, ""}, {1, 35, b, ""}}, 40, "passed: passed passed", ""},
		{"within is no longer than the flow", false, []hookglass.FlowStep{one(1, within("", 300))}, nil, 61.1, "expired: expired", "Nothing matched within 1m0s."},
		{"one more than is asked for", false, []hookglass.FlowStep{one(1, of(a)), one(1, of(b))}, []arrival{{1, 1, a, ""}, {1, 2, a, ""}, {1, 3, b, ""}}, 3, "passed: passed passed", ""},
		{"the nearest of those that miss", false, []hookglass.FlowStep{one(1, func(s *hookglass.FlowStep) { s.EventType, s.Subject, s.Within = b, "x", 5*time.Second })}, []arrival{{1, 1, a, ""}, {1, 2, b, ""}, {1, 3, b, ""}}, 7, "expired: expired", "The nearest was req_2, which met 2 of 3 conditions"},
		{"within counts from the start in any order", true, []hookglass.FlowStep{one(1, of(a)), one(1, within(b, 5))}, []arrival{{1, 30, a, ""}, {1, 35, b, ""}}, 40, "expired: skipped expired", ""},
		{"the second is missing", false, []hookglass.FlowStep{one(1, nil), one(2, within("", 5)), one(1, nil)}, []arrival{{1, 1, a, ""}}, 20, "expired: passed expired skipped", "Step s1 expired."},
		{"two of two", false, []hookglass.FlowStep{one(1, counted(a, 2, false, 0))}, []arrival{{1, 1, a, ""}, {1, 2, a, ""}}, 3, "passed: passed", ""},
		{"one of two", false, []hookglass.FlowStep{one(1, counted(a, 2, false, 5))}, []arrival{{1, 1, a, ""}}, 7, "expired: expired", "Only 1 of 2 matched within 5s."},
		{"exactly two hold", false, []hookglass.FlowStep{one(1, counted(a, 2, true, 5))}, []arrival{{1, 1, a, ""}, {1, 2, a, ""}}, 6, "pending: holding", ""},
		{"exactly two", false, []hookglass.FlowStep{one(1, counted(a, 2, true, 5))}, []arrival{{1, 1, a, ""}, {1, 2, a, ""}}, 6.1, "passed: passed", ""},
		{"one too many", false, []hookglass.FlowStep{one(1, counted(a, 2, true, 5))}, []arrival{{1, 1, a, ""}, {1, 2, a, ""}, {1, 5, a, ""}}, 6, "failed: failed", "req_3 is one too many: exactly 2 may match."},
		{"one more when it is over", false, []hookglass.FlowStep{one(1, counted(a, 2, true, 5))}, []arrival{{1, 1, a, ""}, {1, 2, a, ""}, {1, 5.001, a, ""}}, 7, "passed: passed", ""},
		{"exactly one, then another step", false, []hookglass.FlowStep{one(1, counted(a, 1, true, 0)), one(1, of(b))}, []arrival{{1, 1, a, ""}, {1, 2, b, ""}}, 2, "passed: passed passed", ""},
		{"one too many before the other step", false, []hookglass.FlowStep{one(1, counted(a, 1, true, 0)), one(1, of(b))}, []arrival{{1, 1, a, ""}, {1, 2, a, ""}}, 2, "failed: failed skipped", ""},
		{"never, and it did not", false, []hookglass.FlowStep{one(1, of(a)), one(1, never(b, 0)), one(2, nil)}, []arrival{{1, 1, a, ""}, {2, 2, a, ""}}, 2, "passed: passed passed passed", ""},
		{"never, and it did", false, []hookglass.FlowStep{one(1, of(a)), one(1, never(b, 0)), one(2, nil)}, []arrival{{1, 1, a, ""}, {1, 2, b, ""}}, 2, "failed: passed failed skipped", "req_2 matches, and nothing may."},
		{"never, and it did elsewhere", false, []hookglass.FlowStep{one(1, of(a)), one(1, never(b, 0)), one(2, nil)}, []arrival{{1, 1, a, ""}, {3, 2, b, ""}}, 2, "pending: passed watching watching", ""},
		{"never, and it did before its turn", false, []hookglass.FlowStep{one(1, of(a)), one(1, never(b, 0)), one(2, nil)}, []arrival{{1, 0, b, ""}, {1, 1, a, ""}, {2, 2, a, ""}}, 2, "passed: passed passed passed", ""},
		{"never at the end", false, []hookglass.FlowStep{one(1, of(a)), one(1, never(b, 5))}, []arrival{{1, 1, a, ""}}, 7, "pending: passed watching", ""},
		{"never at the end, and it did not", false, []hookglass.FlowStep{one(1, of(a)), one(1, never(b, 5))}, []arrival{{1, 1, a, ""}}, 7.1, "passed: passed passed", ""},
		{"never at the end, and it did later", false, []hookglass.FlowStep{one(1, of(a)), one(1, never(b, 5))}, []arrival{{1, 1, a, ""}, {1, 6.5, b, ""}}, 7.1, "passed: passed passed", ""},
		{"never for a while, and one of that while is stored when it is over", false, []hookglass.FlowStep{one(1, never(b, 5)), one(2, of(b))}, []arrival{{2, 7, a, ""}, {1, 4, b, ""}}, 8, "pending: passed watching", ""},
		{"never any, but the one that is expected", false, []hookglass.FlowStep{one(1, never("*", 0)), one(1, of(a))}, []arrival{{1, 1, a, ""}}, 1, "passed: passed passed", ""},
		{"only never", false, []hookglass.FlowStep{one(1, never(a, 0))}, nil, 60, "pending: watching", ""},
		{"only never, to the end", false, []hookglass.FlowStep{one(1, never(a, 0))}, nil, 61.1, "passed: passed", ""},
		{"only never, one of them for a while", false, []hookglass.FlowStep{one(1, never(a, 0)), one(1, never(b, 5))}, nil, 6.1, "pending: watching passed", ""},
		{"only never, for a while", false, []hookglass.FlowStep{one(1, never(a, 5))}, nil, 6.1, "passed: passed", ""},
	} {
		plan := hookglass.FlowPlan{AnyTurn: c.any, Timeout: time.Minute, Steps: c.steps}
		for i := range plan.Steps {
			plan.Steps[i].Key = fmt.Sprint("s", i)
		}
		events := make([]*hookglass.Event, len(c.events))
		for i, e := range c.events {
			events[i] = e.event(i + 1)
		}
		f, err := flow.Play(plan, noon, events, noon.Add(time.Duration(c.end*float64(time.Second))))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := string(f.State) + ":"
		for i, s := range f.Progress.Steps {
			got += " " + string(s.State)
			switch s.State {
			case hookglass.FlowStepPassed, hookglass.FlowStepFailed, hookglass.FlowStepExpired, hookglass.FlowStepHolding:
				if s.Ended.IsZero() || f.State.Final() && s.Ended.After(f.FinishedAt) || s.Count != len(s.Matched) {
					t.Errorf("%s: step %d is %s since %v with %d of %d events, and the flow since %v", c.name, i, s.State, s.Ended, len(s.Matched), s.Count, f.FinishedAt)
				}
			}
			if n := len(s.Matched); n > 0 && !s.Ended.IsZero() && s.State != hookglass.FlowStepExpired && !s.Ended.Equal(s.Matched[n-1].ReceivedAt) {
				t.Errorf("%s: step %d is %s since %v, and not since its last event at %v", c.name, i, s.State, s.Ended, s.Matched[n-1].ReceivedAt)
			}
			if failed := s.State == hookglass.FlowStepFailed; failed && (len(s.Matched) == 0 || !strings.HasPrefix(s.Message, string(s.Matched[len(s.Matched)-1].EventID))) {
				t.Errorf("%s: step %d failed (%s), and lists %v", c.name, i, s.Message, s.Matched)
			}
		}
		if got != c.want || !strings.Contains(f.Progress.Message, c.message) || f.State.Final() == f.FinishedAt.IsZero() ||
			f.FinishedAt.After(f.DeadlineAt) || f.FinishedAt.After(noon.Add(time.Duration(c.end*float64(time.Second)))) {
			t.Errorf("%s: %s (%s) at %v, want %s (%s)", c.name, got, f.Progress.Message, f.FinishedAt, c.want, c.message)
		}
	}
}

// Of several events a step has the values of the first. A step that refers to them takes no event that comes before. In
// any order its time counts from the start of the flow all the same.
func TestAStepThatRefersToAnother(t *testing.T) {
	plan := hookglass.FlowPlan{AnyTurn: true, Timeout: time.Minute, Steps: []hookglass.FlowStep{
		one(1, func(s *hookglass.FlowStep) {
			s.Key, s.EventType, s.Count, s.Extract = "paid", "a", 2, []hookglass.FlowExtract{{Name: "order", Source: "/id"}}
		}),
		one(1, func(s *hookglass.FlowStep) {
			s.Key, s.EventType, s.Within = "sent", "b", 10*time.Second
			s.Where = []hookglass.FlowWhere{{Part: "/id", Contains: true, Value: "{{steps.paid.order}}"}}
		}),
	}}
	for at, want := range map[float64]hookglass.FlowState{9: hookglass.FlowPassed, 11: hookglass.FlowExpired} {
		events := []*hookglass.Event{
			arrival{1, 6, "b", `{"id":"ord_0"}`}.event(0), arrival{1, 7, "a", `{"id":"ord_1"}`}.event(1), arrival{1, 8, "a", `{"id":"ord_2"}`}.event(2), arrival{1, at, "b", `{"id":"ord_1"}`}.event(3),
		}
		f, err := flow.Play(plan, noon, events, noon.Add(15*time.Second))
		late := "Step sent expired. Nothing matched within 10s. req_3 matched, but did not count: It came 1s too late."
		if err != nil || f.State != want || f.Progress.Steps[0].Values["order"] != "ord_1" || want == hookglass.FlowExpired && f.Progress.Message != late {
			t.Errorf("after %v s: %v, %s, want %s (%+v)", at, err, f.State, want, f.Progress)
		}
	}
}

// A flow is due with the step whose time ends first, whichever that is, as long as it is not decided.
func TestAFlowIsDueWithItsFirstStep(t *testing.T) {
	for _, c := range []struct {
		any    bool
		steps  []hookglass.FlowStep
		events []*hookglass.Event
		want   time.Duration
	}{
		{true, []hookglass.FlowStep{one(1, nil), one(1, within("", 5)), one(1, within("", 7))}, nil, 5 * time.Second},
		{true, []hookglass.FlowStep{one(1, within("", 5)), one(1, within("", 7)), one(1, nil)}, nil, 5 * time.Second},
		{false, []hookglass.FlowStep{one(1, within("", 5)), one(2, nil)}, nil, 5 * time.Second},
		{false, []hookglass.FlowStep{one(1, within("", 5)), one(2, nil)}, []*hookglass.Event{arrival{1, 1, "a", ""}.event(1)}, time.Minute},
		{false, []hookglass.FlowStep{one(1, counted("", 1, true, 5)), one(2, nil)}, []*hookglass.Event{arrival{1, 1, "a", ""}.event(1)}, 5 * time.Second},
	} {
		plan := hookglass.FlowPlan{AnyTurn: c.any, Timeout: time.Minute, Steps: c.steps}
		for i := range plan.Steps {
			plan.Steps[i].Key = fmt.Sprint("s", i)
		}
		if due, err := flow.Due(plan, noon, c.events); err != nil || !due.Equal(noon.Add(c.want+flow.Grace)) {
			t.Errorf("%+v: due at %v, %v, want %v after the start", c, due, err, c.want)
		}
	}
}

// An event that makes the code that judges it panic fails its flow, where it would have ended the node.
func TestAnEventThatPanicsFailsItsFlow(t *testing.T) {
	plan := hookglass.FlowPlan{Timeout: time.Minute, Steps: []hookglass.FlowStep{one(1, nil), one(2, func(s *hookglass.FlowStep) {
		s.Extract = []hookglass.FlowExtract{{Name: "code", Source: "code"}}
	}), one(2, nil)}}
	plan.Steps[0].Key, plan.Steps[1].Key, plan.Steps[2].Key, plan.AnyTurn = "order", "mail", "again", true
	var logged bytes.Buffer
	f, err := flow.Panic(plan, mail(1, "Hi", ""), slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil || f.State != hookglass.FlowFailed || f.FinishedAt.IsZero() || f.Progress.Message != "Step mail failed. eml_1 could not be judged." ||
		f.Progress.Steps[0].State != hookglass.FlowStepSkipped || f.Progress.Steps[1].State != hookglass.FlowStepFailed || f.Progress.Steps[2].State != hookglass.FlowStepSkipped {
		t.Errorf("%+v %v", f, err)
	}
	if !strings.Contains(logged.String(), "level=ERROR") || !strings.Contains(logged.String(), "a broken mail") {
		t.Errorf("logged is %q", logged.String())
	}
}

func TestValuesGoFromStepToStep(t *testing.T) {
	plan := hookglass.FlowPlan{Timeout: time.Minute, Steps: []hookglass.FlowStep{
		one(1, func(s *hookglass.FlowStep) {
			s.Key = "paid"
			s.Extract = []hookglass.FlowExtract{{Name: "order", Source: "/data/id"}, {Name: "run", Source: "header.x-run"}, {Name: "n", Source: `regex:"n":(\d+)`}, {Name: "page", Source: "query.page"}}
		}),
		one(2, func(s *hookglass.FlowStep) {
			s.Key, s.Subject, s.From = "mail", "order", "shop@"
			s.Where = []hookglass.FlowWhere{{Part: "text", Contains: true, Value: "Order {{steps.paid.order}} of run {{ steps.paid.run }}"}}
			s.Extract = []hookglass.FlowExtract{{Name: "code", Source: "code"}, {Name: "link", Source: "link:confirm"}, {Name: "to", Source: "to"}}
		}),
		one(1, func(s *hookglass.FlowStep) {
			s.Key = "confirmed"
			s.Where = []hookglass.FlowWhere{{Part: "/id", Value: "{{steps.paid.order}}"}, {Part: "/code", Value: "{{steps.mail.code}}"}, {Part: "/n", Value: "7"}, {Part: "/ok", Value: "true"}}
		}),
	}}
	events := []*hookglass.Event{
		arrival{1, 1, "a", `{"data":{}}`}.event(1),
		arrival{1, 2, "a", `{"data":{"id":"ord_1"},"n":42}`}.event(2),
		mail(3, "Another order", "Order ord_2 of run 7"),
		mail(4, "Your order", "Order ord_1 of run 7\r\nYour verification code is 493817\r\nhttps://shop.example.com/help https://shop.example.com/confirm?x=1"),
		arrival{1, 5, "a", `{"id":"ord_1","code":"493817","n":7,"ok":false}`}.event(5),
		arrival{1, 6, "a", `{"id":"ord_1","code":"493817","n":7,"ok":true}`}.event(6),
	}
	f, err := flow.Play(plan, noon, events[:5], noon.Add(5*time.Second))
	if err != nil || f.State != hookglass.FlowPending {
		t.Fatalf("%v %+v", err, f)
	}
	miss := f.Progress.Steps[2].NearMiss
	if miss == nil || miss.EventID != "req_5" || miss.Held != 4 || miss.Total != 5 || miss.Faults[0] != (hookglass.FlowFault{Condition: "/ok", Expected: "true", Actual: "false"}) {
		t.Errorf("the near miss is %+v", miss)
	}
	if f, err = flow.Play(plan, noon, events, noon.Add(6*time.Second)); err != nil || f.State != hookglass.FlowPassed {
		t.Fatalf("%v %+v", err, f)
	}
	if got := fmt.Sprint(f.Progress.Steps[0].Values, f.Progress.Steps[1].Values); got != "map[n:42 order:ord_1 page:2 run:7] map[code:493817 link:https://shop.example.com/confirm?x=1 to:me@example.com]" {
		t.Errorf("values: %s", got)
	}
}

// A query may ask for what only the payload tells, and a part must be what is given, or hold it where that is asked for.
func TestAStepReadsThePayload(t *testing.T) {
	where := func(contains bool) func(*hookglass.FlowStep) {
		return func(s *hookglass.FlowStep) {
			s.Where = []hookglass.FlowWhere{{Part: "/state", Contains: contains, Value: "paid"}}
		}
	}
	query := func(s *hookglass.FlowStep) { s.Query = "state paid header.x-run:7 method:POST" }
	for name, c := range map[string]struct {
		step          func(*hookglass.FlowStep)
		misses, meets string
		fault         hookglass.FlowFault
	}{
		"a query":     {query, `{"state":"open"}`, `{"state":"paid"}`, hookglass.FlowFault{Condition: "q", Expected: "paid"}},
		"a part":      {where(false), `{"state":"unpaid"}`, `{"state":"paid"}`, hookglass.FlowFault{Condition: "/state", Expected: "paid", Actual: "unpaid"}},
		"what it has": {where(true), `{"state":"open"}`, `{"state":"unpaid"}`, hookglass.FlowFault{Condition: "/state", Expected: "paid", Actual: "open"}},
	} {
		plan := hookglass.FlowPlan{Timeout: time.Minute, Steps: []hookglass.FlowStep{one(1, c.step)}}
		plan.Steps[0].Key = "paid"
		misses, meets := arrival{1, 1, "a", c.misses}.event(1), arrival{1, 2, "a", c.meets}.event(2)
		f, err := flow.Play(plan, noon, []*hookglass.Event{misses}, noon.Add(time.Second))
		if n := f.Progress.Steps[0].NearMiss; err != nil || f.State != hookglass.FlowPending || n == nil || len(n.Faults) != 1 || n.Faults[0] != c.fault {
			t.Errorf("%s: %v, %s, %+v", name, err, f.State, n)
		}
		if f, err = flow.Play(plan, noon, []*hookglass.Event{misses, meets}, noon.Add(2*time.Second)); err != nil || f.State != hookglass.FlowPassed {
			t.Errorf("%s: %v, %+v", name, err, f)
		}
	}
}

// A parameter with a semicolon, or one that is encoded wrongly, is what the record of the event shows.
func TestAParameterIsReadAsItIsShown(t *testing.T) {
	plan := hookglass.FlowPlan{Timeout: time.Minute, Steps: []hookglass.FlowStep{one(1, func(s *hookglass.FlowStep) {
		s.Key = "sale"
		s.Where = []hookglass.FlowWhere{{Part: "query.share", Value: "100%"}}
		s.Extract = []hookglass.FlowExtract{{Name: "list", Source: "query.list"}}
	})}}
	e := arrival{1, 1, "a", ""}.event(1)
	e.RawQuery = "list=a;b&share=100%&list=c"
	f, err := flow.Play(plan, noon, []*hookglass.Event{e}, noon.Add(time.Second))
	if err != nil || f.State != hookglass.FlowPassed || f.Progress.Steps[0].Values["list"] != "a;b" {
		t.Errorf("%v %+v", err, f)
	}
}

// HTML is what it shows as well as what was written: the sentence that a test waits for is broken by marks, entities
// and lines.
func TestTheHTMLOfAMailIsReadAsItIsShown(t *testing.T) {
	e := mail(1, "Hello", "")
	e.Body = []byte("From: shop@example.com\r\nContent-Type: text/html\r\n\r\n<p>We&#39;re sending <b>order 7</b>&nbsp;&amp;\r\n  more</p>")
	for _, text := range []string{"We're sending order 7 & more", "We&#39;re"} {
		plan := hookglass.FlowPlan{Timeout: time.Minute, Steps: []hookglass.FlowStep{one(2, func(s *hookglass.FlowStep) {
			s.Key, s.Where = "mail", []hookglass.FlowWhere{{Part: "text", Contains: true, Value: text}}
			s.Extract = []hookglass.FlowExtract{{Name: "order", Source: `regex:sending order (\d+) &`}}
		})}}
		if f, err := flow.Play(plan, noon, []*hookglass.Event{e}, noon.Add(time.Second)); err != nil || f.State != hookglass.FlowPassed || f.Progress.Steps[0].Values["order"] != "7" {
			t.Errorf("%s: %v %+v", text, err, f)
		}
	}
}

func TestACompressedBodyIsRead(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(`{"id":"ord_1"}`)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	e := arrival{1, 1, "a", packed.String()}.event(1)
	e.Headers = append(e.Headers, hookglass.Header{Name: "Content-Encoding", Value: "gzip"})
	plan := hookglass.FlowPlan{Timeout: time.Minute, Steps: []hookglass.FlowStep{one(1, func(s *hookglass.FlowStep) {
		s.Key, s.Where = "paid", []hookglass.FlowWhere{{Part: "/id", Value: "ord_1"}, {Part: "text", Contains: true, Value: `"id":`}}
	})}}
	if f, err := flow.Play(plan, noon, []*hookglass.Event{e}, noon.Add(time.Second)); err != nil || f.State != hookglass.FlowPassed {
		t.Errorf("%v %+v", err, f)
	}
}

func TestAPartIsInAFieldOfAForm(t *testing.T) {
	e := arrival{1, 1, "a", "payload=%7B%22user%22%3A%7B%22id%22%3A%22U1%22%7D%7D&run=7"}.event(1)
	e.ContentType = "application/x-www-form-urlencoded"
	plan := hookglass.FlowPlan{Timeout: time.Minute, Steps: []hookglass.FlowStep{one(1, func(s *hookglass.FlowStep) {
		s.Key, s.Where = "clicked", []hookglass.FlowWhere{{Part: "/run", Value: "7"}}
		s.Extract = []hookglass.FlowExtract{{Name: "user", Source: "/payload/user/id"}}
	})}}
	if f, err := flow.Play(plan, noon, []*hookglass.Event{e}, noon.Add(time.Second)); err != nil || f.State != hookglass.FlowPassed || f.Progress.Steps[0].Values["user"] != "U1" {
		t.Errorf("%v %+v", err, f)
	}
}

func TestAPatternHasItsTime(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		within        time.Duration
		found         string
		ok, late      bool
	}{
		{"o[0-9]+", "an o12", 0, "o12", true, false}, // a quick one needs none
		{"o([0-9]+)", "an o12", 0, "12", true, false},
		{"o([0-9]+)?", "an o", 0, "", false, false},
		{"o[0-9]+", "none", 0, "", false, false},
		{"(?:x|é){500}(y)", strings.Repeat("é", 60_000) + "y!", time.Minute, "y", true, false},
		{"(?:x|é){500}y$", strings.Repeat("é", 60_000) + "y", time.Minute, strings.Repeat("é", 500) + "y", true, false},
		{"(?:x|é){500}z", strings.Repeat("é", 60_000) + "y", time.Minute, "", false, false},
		{"(?:x|é){500}$", strings.Repeat("é", 60_000), -1, "", false, true}, // where it was cut is no end
	} {
		found, ok, late, err := flow.Find(c.pattern, c.text, c.within)
		if err != nil || found != c.found || ok != c.ok || late != c.late {
			t.Errorf("%s: %.20q, %v, %v, %v", c.pattern, found, ok, late, err)
		}
	}
}
