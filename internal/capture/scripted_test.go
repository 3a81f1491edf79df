package capture_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func (b *bench) attempts(n int, body string, headers ...string) (answers []string) {
	for range n {
		r := b.post("POST", "/", body, headers...)
		answers = append(answers, fmt.Sprintf("%d %s %s", r.Status, r.Delay, r.Headers.Get("Retry-After")))
	}
	return answers
}

func TestEachDeliveryIsAnsweredByTheScriptFromItsBeginning(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "500,503+2s@30s,reset,timeout+5s,200" })
		want := []string{"500 0s ", "503 2s 30", "0 0s ", "0 5s ", "200 0s ", "200 0s "}
		github := []string{"X-GitHub-Event", "push", "User-Agent", "GitHub-Hookshot/1", "X-GitHub-Delivery"}
		for _, delivery := range []struct {
			name    string
			body    string
			headers []string
		}{
			{"by its delivery id", `{"n":1}`, append(slices.Clone(github), "11111111-1111-4111-8111-111111111111")},
			{"by another, with the same body", `{"n":1}`, append(slices.Clone(github), "22222222-2222-4222-8222-222222222222")},
			{"by a header of Standard Webhooks", `{"n":1}`, []string{"Webhook-Id", "msg_1"}},
			{"by its body", `{"n":1}`, nil},
			{"by another body", `{"n":2}`, nil},
			{"by none", ``, nil},
		} {
			if got := b.attempts(6, delivery.body, delivery.headers...); !slices.Equal(got, want) {
				t.Errorf("%s: answered %q, want %q", delivery.name, got, want)
			}
		}
		// What is on record is what was sent.
		var kept []*hookglass.Event
		err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
			page, err := v.Events(string(b.ep.ID), store.EventList{Limit: 6})
			if err != nil {
				return err
			}
			for _, e := range page.Events {
				e, err := v.Event(string(b.ep.ID), string(e.ID))
				if err != nil {
					return err
				}
				kept = append(kept, e)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(kept)
		for i, want := range []string{"500 500 0s", "503 503 2s", "0 0 0s", "0 0 5s", "200 200 0s", "200 200 0s"} {
			e := kept[i]
			if got := fmt.Sprintf("%d %d %s", e.Status, e.Reply.Status, e.Reply.Delay); got != want || e.Reply.Source != hookglass.SourceCustom || e.Reply.Unanswered() != (e.Status == 0) {
				t.Errorf("attempt %d is on record as %q from %s, want %q", i+1, got, e.Reply.Source, want)
			}
		}
	})
}

// An attempt is told whether it was received, or the endpoint's own answer, with the status of the script.
func TestTheBodyOfAScriptedAnswerFitsItsStatus(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "299,300,500" })
	for i, want := range []string{`{"received":true,"id":"req_`, `{"error":"scripted","id":"req_`, `{"error":"scripted","id":"req_`} {
		if r := b.post("POST", "/", `{"n":1}`); !strings.HasPrefix(string(r.Body), want) || r.Headers.Get("Content-Type") != "application/json" {
			t.Errorf("attempt %d was answered %d %v %s", i+1, r.Status, r.Headers, r.Body)
		}
	}
	b.set(func(e *hookglass.Endpoint) {
		e.Response = &hookglass.Response{Status: 201, Body: "own {{request.method}}"}
	})
	for i, want := range []int{299, 300, 500} {
		if r := b.post("PUT", "/", `{"n":2}`); r.Status != want || string(r.Body) != "own PUT" {
			t.Errorf("attempt %d was answered %d %s", i+1, r.Status, r.Body)
		}
	}
}

// PayPal names the transmission, Shopify the webhook: a sender that gives each attempt such an id of its own is known by
// the event's, as in the profile, until an attempt was answered with 2xx.
func TestAttemptsWithOtherDeliveryIDsGoOnByTheirEvent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "500,reset,201,410" })
		paypal := func(event, transmission string) string {
			body := fmt.Sprintf(`{"id":%q,"event_type":"PAYMENT.SALE.COMPLETED","resource_type":"sale","resource":{}}`, event)
			return b.attempts(1, body, "PAYPAL-TRANSMISSION-ID", transmission)[0]
		}
		shopify := func(event, webhook string) string {
			return b.attempts(1, `{}`, "X-Shopify-Topic", "orders/create", "X-Shopify-Event-Id", event, "X-Shopify-Webhook-Id", webhook)[0]
		}
		for i, c := range []struct {
			send            func(event, delivery string) string
			event, delivery string
			want            string
		}{
			{paypal, "WH-1", "t1", "500 0s "}, {paypal, "WH-2", "t2", "500 0s "}, {shopify, "WH-1", "t9", "500 0s "},
			{paypal, "WH-1", "t3", "0 0s "}, {paypal, "WH-2", "t2", "0 0s "}, {shopify, "WH-1", "t8", "0 0s "},
			{paypal, "WH-1", "t4", "201 0s "}, {paypal, "WH-2", "t5", "201 0s "}, {shopify, "WH-1", "t9", "201 0s "},
			{paypal, "WH-1", "t4", "410 0s "}, {paypal, "WH-2", "t6", "500 0s "}, // sent again after it had arrived
			{paypal, "WH-2", "t7", "0 0s "}, {shopify, "", "t8", "201 0s "},
		} {
			if got := c.send(c.event, c.delivery); got != c.want {
				t.Errorf("%d: %s in %s was answered %q, want %q", i, c.event, c.delivery, got, c.want)
			}
		}
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "500,429,200" })
		if got := paypal("WH-1", "t10") + paypal("WH-1", "t11"); got != "500 0s 429 0s " {
			t.Errorf("another script: %q", got)
		}
	})
}

func TestAnotherScriptBeginsAnewAndNodesCountTogether(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "500*3,200" })
		if got := b.attempts(2, "x"); !slices.Equal(got, []string{"500 0s ", "500 0s "}) {
			t.Errorf("answered %q", got)
		}
		other := *b // a node that was started later
		other.captures = newService(db, b.endpoints, nil)
		if got := other.attempts(2, "x"); !slices.Equal(got, []string{"500 0s ", "200 0s "}) {
			t.Errorf("the other node answered %q", got)
		}
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "410" })
		if got := b.attempts(1, "x"); !slices.Equal(got, []string{"410 0s "}) {
			t.Errorf("answered %q", got)
		}
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "500*3,200" })
		if got := b.attempts(1, "x"); !slices.Equal(got, []string{"500 0s "}) {
			t.Errorf("after a change of the script: %q", got)
		}
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "" })
		if r := b.post("POST", "/", "x"); r.Status != 200 || r.Source != hookglass.SourceDefault {
			t.Errorf("without a script: %d %s", r.Status, r.Source)
		}
	})
}

func TestRequestsWithoutABodyAreCountedByMethodPathAndQuery(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "500,200" })
		for i, c := range []struct {
			method, path string
			want         int
		}{{"GET", "/a", 500}, {"GET", "/b", 500}, {"DELETE", "/a", 500}, {"GET", "/a", 200}, {"GET", "/a", 200}} {
			if r := b.post(c.method, c.path, ""); r.Status != c.want {
				t.Errorf("%d: %s %s was answered %d, want %d", i+1, c.method, c.path, r.Status, c.want)
			}
		}
	})
}

func TestAttemptsAtTheSameTimeEachHaveTheirPlace(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "500*20,200" })
		failed := func(attempts int, send func(i int) *hookglass.Reply) int {
			var failed atomic.Int64
			var all sync.WaitGroup
			for i := range attempts {
				all.Go(func() {
					if r := send(i); r.Status == 500 {
						failed.Add(1)
					}
				})
			}
			all.Wait()
			return int(failed.Load())
		}
		if n := failed(24, func(int) *hookglass.Reply { return b.post("POST", "/", "same") }); n != 20 {
			t.Errorf("%d of 24 attempts were answered with 500, want 20", n)
		}
		n := failed(21, func(i int) *hookglass.Reply {
			return b.post("POST", "/", `{"id":"WH-1","event_type":"A","resource_type":"sale","resource":{}}`, "PAYPAL-TRANSMISSION-ID", fmt.Sprint(i))
		})
		if n != 20 {
			t.Errorf("%d of 21 attempts with ids of their own were answered with 500, want 20", n)
		}
	})
}

func TestAScriptedStatusKeepsTheEndpointsOwnAnswer(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) {
		e.ResponseScript = "429@7s,200+1s,204,205,304"
		e.Response = &hookglass.Response{Status: 201, Headers: map[string]string{"X-A": "{{request.method}}", "Retry-After": "1"}, Body: "own", Delay: 5 * time.Millisecond}
	})
	for i, want := range []string{"429 5ms own POST 7", "200 1s own POST 1", "204 5ms  POST 1", "205 5ms  POST 1", "304 5ms  POST 1"} {
		r := b.post("POST", "/", "x")
		if got := fmt.Sprintf("%d %s %s %s %s", r.Status, r.Delay, r.Body, r.Headers.Get("X-A"), strings.Join(r.Headers.Values("Retry-After"), "+")); got != want {
			t.Errorf("attempt %d: %q, want %q", i+1, got, want)
		}
	}
}

func TestAHandshakeIsNoAttempt(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "500" })
	r := b.post("POST", "/", `{"type":"url_verification","token":"t","challenge":"c"}`, "Content-Type", "application/json", "X-Slack-Request-Timestamp", "1", "X-Slack-Signature", "v0=00")
	if r.Status != 200 || r.Source != hookglass.SourceHandshake {
		t.Errorf("a handshake was answered with %d from %s", r.Status, r.Source)
	}
}

// Adyen wants [accepted] for each notification, which is no question: the endpoint's own answers go before it.
func TestWhatASenderWantsForEachDeliveryYieldsToTheEndpointsOwnAnswers(t *testing.T) {
	const notification = `{"live":"false","notificationItems":[{"NotificationRequestItem":{"eventCode":"AUTHORISATION"}}]}`
	for _, c := range []struct {
		name string
		set  func(e *hookglass.Endpoint)
		want string
	}{
		{"nothing set", func(*hookglass.Endpoint) {}, "200 handshake [accepted]"},
		{"handshakes off", func(e *hookglass.Endpoint) { off := false; e.ProviderConfig.Handshake = &off }, "200 default {"},
		{"an answer", func(e *hookglass.Endpoint) { e.Response = &hookglass.Response{Status: 503, Body: "own"} }, "503 custom own"},
		{"a script", func(e *hookglass.Endpoint) { e.ResponseScript = "500" }, "500 custom {"},
		{"a local machine", func(e *hookglass.Endpoint) { e.ProviderConfig.ResponseMode = hookglass.ResponseTunnel }, "418 tunnel tea"},
		{"a local machine that is away", func(e *hookglass.Endpoint) { e.ProviderConfig.ResponseMode = hookglass.ResponseTunnel }, "200 default [accepted]"},
	} {
		b := newBench(t, storetest.SQLite(t))
		b.set(c.set)
		local := machine{&hookglass.TargetResponse{Status: 418, Body: []byte("tea")}}
		if strings.HasSuffix(c.name, "away") {
			local = machine{}
		}
		through := b.through(local)
		r := through.post("POST", "/", notification, "Content-Type", "application/json")
		if r.Awaits != nil {
			r = through.captures.Answer(t.Context(), r)
		}
		if got := fmt.Sprintf("%d %s %s", r.Status, r.Source, r.Body); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestCountsOfAttemptsGoWithTheRetentionOfEvents(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		b.set(func(e *hookglass.Endpoint) { e.ResponseScript = "500,200" })
		b.attempts(1, "x")
		purge := func(at time.Time) {
			if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				due, err := tx.AttemptsDue(at, time.Hour)
				if err == nil {
					_, err = tx.PurgeAttempts(due)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		purge(time.Now().Add(59 * time.Minute))
		if got := b.attempts(1, "x"); got[0] != "200 0s " {
			t.Errorf("within the retention the second attempt was answered %q", got)
		}
		purge(time.Now().Add(61 * time.Minute))
		if got := b.attempts(1, "x"); got[0] != "500 0s " {
			t.Errorf("after the retention an attempt was answered %q", got)
		}
	})
}
