package retries_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/retries"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// attempt is an event; what is not said of it is as in every other.
func attempt(at time.Duration, status int, change func(*hookglass.Event)) *hookglass.Event {
	e := &hookglass.Event{
		ID: hookglass.EventID(fmt.Sprintf("req_%d", at.Milliseconds())), Type: hookglass.EventWebhook, ReceivedAt: noon.Add(at), Provider: "acme", EventType: "order", Status: status,
		Payload: &hookglass.Payload{Body: []byte(`{"n":1}`), Reply: &hookglass.Reply{Status: status, Source: hookglass.SourceCustom}},
	}
	if change != nil {
		change(e)
	}
	return e
}

func told(groups []hookglass.AttemptGroup) (all []string) {
	for _, g := range groups {
		text := fmt.Sprintf("%s %s", g.Kind, g.State)
		for _, a := range g.Attempts {
			text += fmt.Sprintf(" %s@%s", a.Answer(), a.Gap)
		}
		all = append(all, text)
	}
	return all
}

func TestWhatBelongsTogether(t *testing.T) {
	id := func(delivery, event string) func(*hookglass.Event) {
		return func(e *hookglass.Event) { e.DeliveryID, e.EventRef = delivery, event }
	}
	body := func(text string) func(*hookglass.Event) {
		return func(e *hookglass.Event) { e.Body = []byte(text) }
	}
	asked := func(method, path, query string) func(*hookglass.Event) {
		return func(e *hookglass.Event) { e.Method, e.Path, e.RawQuery, e.Body = method, path, query, nil }
	}
	ofType := func(name string) func(*hookglass.Event) {
		return func(e *hookglass.Event) { asked("POST", "/", "")(e); e.EventType = name }
	}
	for _, c := range []struct {
		name   string
		events []*hookglass.Event
		now    time.Duration
		want   []string
	}{
		{"one id of the delivery, whatever the body",
			[]*hookglass.Event{attempt(0, 500, id("d1", "")), attempt(time.Second, 500, id("d2", "")), attempt(2*time.Second, 200, func(e *hookglass.Event) { e.DeliveryID, e.Body = "d1", []byte("other") })}, 30 * time.Second,
			[]string{"delivery_id delivered 500@0s 200@2s", "delivery_id waiting 500@0s"}},
		{"one event whose attempts have ids of their own", []*hookglass.Event{attempt(0, 500, id("d1", "e1")), attempt(time.Second, 500, id("d2", "e1")), attempt(3*time.Second, 200, id("d3", "e1"))}, time.Hour,
			[]string{"delivery_id delivered 500@0s 500@1s 200@2s"}},
		{"an event sent twice for two reasons", []*hookglass.Event{attempt(0, 200, id("d1", "e1")), attempt(time.Second, 200, id("d2", "e1"))}, time.Hour,
			[]string{"delivery_id delivered 200@0s", "delivery_id delivered 200@0s"}},
		{"an event sent again after it was answered, whatever came of it since",
			[]*hookglass.Event{attempt(0, 200, id("d1", "e1")), attempt(time.Second, 500, id("d1", "e1")), attempt(3*time.Second, 200, id("d2", "e1"))}, time.Hour,
			[]string{"delivery_id delivered 200@0s 500@1s", "delivery_id delivered 200@0s"}},
		{"one body of one type", []*hookglass.Event{attempt(0, 500, nil), attempt(time.Second, 500, body("x")), attempt(4*time.Second, 200, nil), attempt(5*time.Second, 500, func(e *hookglass.Event) { e.EventType = "refund" })}, time.Minute,
			[]string{"body delivered 500@0s 200@4s", "body waiting 500@0s", "body waiting 500@0s"}},
		{"what has no body, by method, path and query, until it was answered",
			[]*hookglass.Event{
				attempt(0, 500, asked("GET", "/", "")), attempt(time.Second, 500, asked("GET", "/favicon.ico", "")), attempt(2*time.Second, 500, asked("HEAD", "/", "")),
				attempt(3*time.Second, 500, asked("GET", "/", "id=2")), attempt(4*time.Second, 200, asked("GET", "/", "")), attempt(64*time.Second, 200, asked("GET", "/", "")),
			}, 66 * time.Second,
			[]string{"request delivered 500@0s 200@4s", "request delivered 200@0s", "request waiting 500@0s", "request waiting 500@0s", "request waiting 500@0s"}},
		{"what has no body and is of another type, by that", []*hookglass.Event{attempt(0, 500, asked("POST", "/", "")), attempt(time.Second, 500, ofType("refund"))}, time.Minute,
			[]string{"request waiting 500@0s", "request waiting 500@0s"}},
		{"given up, when it is silent for three times as long as ever",
			[]*hookglass.Event{attempt(0, 500, nil), attempt(time.Hour, 500, nil)}, 4*time.Hour + 2*time.Minute, []string{"body given_up 500@0s 500@1h0m0s"}},
		{"not given up before", []*hookglass.Event{attempt(0, 500, nil), attempt(time.Hour, 500, nil)}, 4 * time.Hour, []string{"body waiting 500@0s 500@1h0m0s"}},
		{"given up, because others were tried again sooner",
			[]*hookglass.Event{attempt(0, 500, id("d1", "")), attempt(time.Minute, 500, id("d1", "")), attempt(2*time.Minute, 410, id("d2", ""))}, 10 * time.Minute,
			[]string{"delivery_id waiting 500@0s 500@1m0s", "delivery_id given_up 410@0s"}},
		{"not given up while it waits as it was told, whatever others did",
			[]*hookglass.Event{attempt(0, 500, id("d1", "")), attempt(time.Second, 200, id("d1", "")), attempt(2*time.Second, 429, func(e *hookglass.Event) {
				e.DeliveryID, e.Reply.Headers = "d2", hookglass.Headers{{Name: "Retry-After", Value: "3600"}}
			})}, time.Hour,
			[]string{"delivery_id delivered 500@0s 200@1s", "delivery_id waiting 429@0s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			groups, _ := retries.Group(c.events, noon.Add(c.now))
			if got := told(groups); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			keys := map[hookglass.DeliveryKey]bool{}
			for _, g := range groups {
				keys[g.Key] = true
			}
			if len(keys) != len(groups) {
				t.Errorf("%d deliveries have %d identities", len(groups), len(keys))
			}
		})
	}
}

func TestWhatDeliveriesHaveInCommon(t *testing.T) {
	one := func(n string) func(*hookglass.Event) { return func(e *hookglass.Event) { e.DeliveryID = n } }
	later := func(n, after string) func(*hookglass.Event) {
		return func(e *hookglass.Event) {
			e.DeliveryID, e.Reply.Headers = n, hookglass.Headers{{Name: "Retry-After", Value: after}}
		}
	}
	_, s := retries.Group([]*hookglass.Event{
		attempt(0, 429, later("a", "10")), attempt(10*time.Second, 500, one("a")), attempt(40*time.Second, 200, one("a")), attempt(50*time.Second, 200, one("a")),
		attempt(60*time.Second, 429, later("b", noon.Add(90*time.Second).Format("Mon, 02 Jan 2006 15:04:05 GMT"))), attempt(80*time.Second, 500, one("b")),
		attempt(90*time.Second, 410, one("c")),
	}, noon.Add(24*time.Hour))
	if s.Deliveries != 3 || s.Retried != 2 || s.Delivered != 1 || s.GivenUp != 2 || !slices.Equal(s.GaveUpAfter, []int{1, 2}) || s.AfterSuccess != 1 || s.MaxAttempts != 4 {
		t.Errorf("summary %+v", s)
	}
	if s.RetryAfter != (hookglass.RetryAfterFigure{Given: 2, Honoured: 1, Early: 1}) {
		t.Errorf("Retry-After %+v", s.RetryAfter)
	}
	// The time that a sender was told counts from the answer, which may have been held; and 2xx asks for nothing.
	held := func(n, after string) func(*hookglass.Event) {
		return func(e *hookglass.Event) {
			later(n, after)(e)
			e.Reply.Delay = 20 * time.Second
		}
	}
	date := func(at time.Duration) string { return noon.Add(at).Format("Mon, 02 Jan 2006 15:04:05 GMT") }
	_, held20 := retries.Group([]*hookglass.Event{
		attempt(0, 503, held("a", "10")), attempt(25*time.Second, 503, held("a", "10")), attempt(55*time.Second, 200, held("a", "10")),
		attempt(60*time.Second, 503, held("b", date(90*time.Second))), attempt(90*time.Second, 503, held("b", date(150*time.Second))), attempt(149*time.Second, 200, one("b")),
	}, noon.Add(24*time.Hour))
	if held20.RetryAfter != (hookglass.RetryAfterFigure{Given: 4, Honoured: 2, Early: 2}) {
		t.Errorf("Retry-After of answers that were held %+v", held20.RetryAfter)
	}
	if len(s.Schedule) != 3 || s.Schedule[0] != (hookglass.RetryStep{Attempt: 2, N: 2, Median: 15 * time.Second, Min: 10 * time.Second, Max: 20 * time.Second, Jitter: 2.0 / 3}) {
		t.Errorf("schedule %+v", s.Schedule)
	}
	want := []hookglass.AnswerFigure{{Answer: "200", Attempts: 2, Retried: 1}, {Answer: "410", Attempts: 1}, {Answer: "429", Attempts: 2, Retried: 2}, {Answer: "500", Attempts: 2, Retried: 1}}
	if !slices.Equal(s.Answers, want) {
		t.Errorf("answers %+v, want %+v", s.Answers, want)
	}
}

func TestWhatChangesFromAttemptToAttempt(t *testing.T) {
	with := func(body string, headers ...string) *hookglass.Event {
		return attempt(0, 500, func(e *hookglass.Event) {
			e.DeliveryID, e.Body = headers[1], []byte(body)
			for i := 0; i < len(headers); i += 2 {
				e.Headers = append(e.Headers, hookglass.Header{Name: headers[i], Value: headers[i+1]})
			}
		})
	}
	found, more := retries.Changes(
		with(`{"id":1,"attempt":1,"old":true}`, "X-Delivery", "d1", "Stripe-Signature", "t=1,v1=a", "X-Count", "1", "Host", "x", "Content-Length", "30"),
		with(`{"id":1,"attempt":2,"new":null}`, "X-Delivery", "d2", "Stripe-Signature", "t=2,v1=b", "X-Count", "2", "Host", "x", "Content-Length", "31", "X-Retry-Reason", "timeout"))
	var got []string
	for _, c := range found {
		got = append(got, fmt.Sprintf("%s %s %s %s", c.Part, c.Name, c.Kind, c.Role))
	}
	want := []string{
		"header X-Delivery changed delivery_id", "header Stripe-Signature changed signature", "header X-Count changed attempt_counter", "header X-Retry-Reason added attempt_counter",
		"body /attempt changed body", "body /old removed body", "body /new added body",
	}
	if !slices.Equal(got, want) || more {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWhatElseChangesFromAttemptToAttempt(t *testing.T) {
	of := func(path, query, body string, headers ...string) *hookglass.Event {
		return attempt(0, 500, func(e *hookglass.Event) {
			e.Path, e.RawQuery, e.Body, e.EventRef = path, query, []byte(body), "evt_"+query
			for i := 0; i < len(headers); i += 2 {
				e.Headers = append(e.Headers, hookglass.Header{Name: headers[i], Value: headers[i+1]})
			}
		})
	}
	many := func(value string) (headers []string) {
		for n := range 31 {
			headers = append(headers, fmt.Sprint("X-", n), value)
		}
		return headers
	}
	for _, c := range []struct {
		name         string
		before, next *hookglass.Event
		want         []string
		more         bool
	}{
		{"nothing", of("/", "a", "x"), of("/", "a", "x"), nil, false},
		{"where it was sent, and a body that is no JSON", of("/a", "a", "x", "X-Event", "evt_a"), of("/b", "b", "y", "X-Event", "evt_b"), []string{"header X-Event changed event_id", "path  changed ", "query  changed ", "body  changed body"}, false},
		{"spaces alone", of("/", "a", "{}"), of("/", "a", " {}"), []string{"body  changed body"}, false},
		{"what names the event, the delivery, or the time", of("/", "a", "x", "X-Event", "evt_a", "Webhook-Id", "1a", "X-Timestamp", "1", "X-Hmac", "1"), of("/", "a", "x", "X-Event", "evt_a", "Webhook-Id", "2a", "X-Timestamp", "2", "X-Hmac", "2"),
			[]string{"header Webhook-Id changed delivery_id", "header X-Timestamp changed timestamp", "header X-Hmac changed signature"}, false},
		{"a number that grows by more than one, or is no count", of("/", "a", "x", "X-N", "1", "X-At", "1700000000"), of("/", "a", "x", "X-N", "3", "X-At", "1700000001"), []string{"header X-N changed ", "header X-At changed "}, false},
		{"more than are listed", of("/", "a", "x", many("1")...), of("/", "a", "x", many("x")...), nil, true},
	} {
		found, more := retries.Changes(c.before, c.next)
		var got []string
		for _, c := range found {
			got = append(got, fmt.Sprintf("%s %s %s %s", c.Part, c.Name, c.Kind, c.Role))
		}
		if more != c.more || c.more && len(got) != 30 || !c.more && !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, more %t; want %q", c.name, got, more, c.want)
		}
	}
}
