package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/delivery"
	"hookglass/internal/endpoint"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestAnEventGoesOnceToEachEnabledTarget(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		one, two, off := newSink(t, always(204)), newSink(t, always(200)), newSink(t, always(200))
		a, b := y.target(y.ep, one.URL+"/in?k=v", 3), y.target(y.ep, two.URL, 3)
		disabled, no := y.target(y.ep, off.URL, 3), false
		y.change(disabled, endpoint.TargetDraft{Enabled: &no})
		y.start(y.db)
		ev := y.capture(y.ep, "X-Tag: a\r\nX-Tag: b\r\nContent-Type: text/plain\r\nX-Hub-Signature-256: sha256=00\r\n", "hello")
		until(t, "both deliveries", func() bool {
			return y.settledAll(a, 1, hookglass.ForwardDelivered)() && y.settledAll(b, 1, hookglass.ForwardDelivered)()
		})
		h := one.got()[0]
		if len(one.got()) != 1 || len(two.got()) != 1 || len(off.got()) != 0 || len(y.deliveries(disabled)) != 0 {
			t.Errorf("hits %d, %d, %d", len(one.got()), len(two.got()), len(off.got()))
		}
		if h.method != "POST" || h.path != "/in?k=v" || h.body != "hello" || strings.Join(h.header["X-Tag"], ",") != "a,b" ||
			h.header.Get("X-Hub-Signature-256") != "sha256=00" || h.header.Get("X-Service-Original-Request") != string(ev.ID) ||
			h.header.Get("X-Service-Hops") != "1" || h.header.Get("X-Service-Replay") != "" || h.header.Get("User-Agent") != "" {
			t.Errorf("%+v", h)
		}
		d := y.deliveries(a)[0]
		if d.EventID != ev.ID || d.StatusCode != 204 || len(d.Attempts) != 1 || d.Attempts[0].StatusCode != 204 || d.Attempts[0].Failure != nil ||
			d.FinishedAt.IsZero() || !d.NextAt.IsZero() || d.Attempts[0].At.IsZero() {
			t.Errorf("%s", text(d))
		}
	})
}

// What comes of attempts is observed in words that are few, whatever targets do.
func TestAttemptsAreObserved(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		one := newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader([]int{503, 204, 404}[min(n, 3)-1]) })
		var mu sync.Mutex
		seen := map[string]int{}
		y.observe = func(outcome string, state hookglass.ForwardState, took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			seen[outcome+" "+string(state)]++
			if took < 0 {
				t.Errorf("%s took %v", outcome, took)
			}
		}
		a, b := y.target(y.ep, one.URL, 3), y.target(y.ep, "http://127.0.0.1:1/", 0)
		y.start(y.db)
		y.capture(y.ep, "", "x")
		until(t, "both ends", func() bool {
			return y.settledAll(a, 1, hookglass.ForwardDelivered)() && y.settledAll(b, 1, hookglass.ForwardFailed)()
		})
		mu.Lock()
		defer mu.Unlock()
		if len(seen) != 3 || seen["5xx pending"] != 1 || seen["2xx delivered"] != 1 || seen["connection_refused failed"] != 1 {
			t.Errorf("%v", seen)
		}
	})
}

// Reliability, row 68: retry_count 0, 2, 5 are 1, 3, 6 attempts; the bounds of the backoff double from 1 s.
func TestRetriesAreAsManyAsSet(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		y.start(y.db)
		for retries, attempts := range map[int64]int{0: 1, 2: 3, 5: 6} {
			s := newSink(t, always(500))
			target := y.target(y.ep, s.URL, retries)
			ev := y.capture(y.ep, "", "x")
			until(t, "the failure", y.settledAll(target, 1, hookglass.ForwardFailed))
			d := y.deliveries(target)[0]
			if len(s.got()) != attempts || len(d.Attempts) != attempts || d.StatusCode != 500 {
				t.Errorf("retry_count %d: %d hits, %d attempts", retries, len(s.got()), len(d.Attempts))
			}
			for _, h := range s.got() {
				if h.header.Get("X-Service-Original-Request") != string(ev.ID) {
					t.Error("an attempt names another event")
				}
			}
			no := false
			y.change(target, endpoint.TargetDraft{Enabled: &no})
		}
		lines := y.failures()
		if len(lines) != 3 {
			t.Fatalf("%d failures are told of, want one for each delivery", len(lines))
		}
		for _, l := range lines {
			if l.Data["status_code"] != float64(500) || l.Data["error"] != nil || l.Data["attempts"] == nil || l.Data["target_id"] == nil ||
				!strings.HasPrefix(l.Data["url_host"].(string), "127.0.0.1:") || l.EventID == "" {
				t.Errorf("%+v", l)
			}
		}
		bounds := map[time.Duration]int{}
		for _, b := range y.delays.bounds {
			bounds[b]++
		}
		want := map[time.Duration]int{time.Second: 2, 2 * time.Second: 2, 4 * time.Second: 1, 8 * time.Second: 1, 16 * time.Second: 1}
		if fmt.Sprint(bounds) != fmt.Sprint(want) {
			t.Errorf("bounds of the backoff %v, want %v", bounds, want)
		}
	})
}

func TestWhatIsTriedAgain(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		y.start(y.db)
		for status, again := range map[int]bool{
			408: true, 425: true, 429: true, 500: true, 503: true, 599: true,
			600: false, 999: false, 300: false, 302: false, 400: false, 401: false, 404: false, 409: false, 410: false, 424: false, 426: false, 428: false, 499: false,
		} {
			s := newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == 1 {
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(status)
				}
			})
			target := y.target(y.ep, s.URL, 1)
			y.capture(y.ep, "", "x")
			want, hits := hookglass.ForwardFailed, 1
			if again {
				want, hits = hookglass.ForwardDelivered, 2
			}
			until(t, fmt.Sprint(status), y.settledAll(target, 1, want))
			if len(s.got()) != hits {
				t.Errorf("%d: %d hits, want %d", status, len(s.got()), hits)
			}
			must(t, y.endpoints.DeleteForwardingTarget(t.Context(), hookglass.System, string(y.ep.ID), target.ID))
		}
	})
}

func TestAConnectionThatFailsIsTriedAgain(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		target := y.target(y.ep, "http://127.0.0.1:1/", 2)
		reset := newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n < 3 {
				c, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					c.Close()
				}
			}
		})
		broken := y.target(y.ep, reset.URL, 2)
		y.start(y.db)
		y.capture(y.ep, "", "x")
		until(t, "the refusal", y.settledAll(target, 1, hookglass.ForwardFailed))
		until(t, "the third answer", y.settledAll(broken, 1, hookglass.ForwardDelivered))
		d := y.deliveries(target)[0]
		if len(d.Attempts) != 3 || d.Attempts[2].Failure == nil || d.Attempts[2].Failure.Code != "connection_refused" || d.StatusCode != 0 {
			t.Errorf("%s", text(d))
		}
		if e, _ := y.failures()[0].Data["error"].(map[string]any); e["code"] != "connection_refused" || y.failures()[0].Data["status_code"] != nil {
			t.Errorf("%+v", y.failures())
		}
		if d := y.deliveries(broken)[0]; len(d.Attempts) != 3 || d.Attempts[0].Failure == nil || d.Attempts[0].Failure.Code != "reset" {
			t.Errorf("%s", text(d))
		}
	})
}

// Reliability, row 66: an attempt ends by its timeout and a second. Without it, it would go on for as long as the test.
func TestATargetThatNeverAnswersTimesOut(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		target, second := y.target(y.ep, s.URL, 1), int64(1)
		y.change(target, endpoint.TargetDraft{TimeoutSeconds: &second})
		y.start(y.db)
		y.capture(y.ep, "", "x")
		until(t, "the end", y.settledAll(target, 1, hookglass.ForwardFailed))
		d := y.deliveries(target)[0]
		if len(d.Attempts) != 2 {
			t.Fatalf("%s", text(d))
		}
		for _, a := range d.Attempts {
			if a.Failure == nil || a.Failure.Code != "timeout" || a.Duration < time.Second || a.Duration > time.Minute { // a second more, where nothing else runs
				t.Errorf("%s", text(a))
			}
		}
	})
}

// Reliability, row 68: a target can ask for more time, but not park a delivery.
func TestRetryAfterIsHonouredUpToABound(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		y.start(y.db)
		for value, want := range map[string]time.Duration{
			"70": 70 * time.Second, "90": 90 * time.Second, "3600": time.Hour, "3601": time.Hour, "99999999999999999999": time.Hour, "-1": 0, "soon": 0,
			time.Now().UTC().Add(2 * time.Hour).Format(http.TimeFormat): time.Hour, time.Now().UTC().Add(-time.Hour).Format(http.TimeFormat): 0,
		} {
			s := newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == 1 {
					w.Header().Set("Retry-After", value)
					w.WriteHeader(429)
				}
			})
			target := y.target(y.ep, s.URL, 1)
			y.capture(y.ep, "", "x")
			if want == 0 {
				until(t, value, y.settledAll(target, 1, hookglass.ForwardDelivered))
			} else {
				until(t, value, func() bool {
					d := y.deliveries(target)
					return len(d) == 1 && len(d[0].Attempts) == 1 && d[0].State == hookglass.ForwardPending
				})
				d := y.deliveries(target)[0]
				if wait := d.NextAt.Sub(d.Attempts[0].At.Add(d.Attempts[0].Duration)); wait < want-10*time.Millisecond || wait > want+time.Minute {
					t.Errorf("Retry-After %s: waits %v, want %v", value, wait, want)
				}
			}
			must(t, y.endpoints.DeleteForwardingTarget(t.Context(), hookglass.System, string(y.ep.ID), target.ID))
		}
	})
}

func TestADelayedDeliveryGoesWhenItsTimeComes(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				w.Header().Set("Retry-After", "3000")
				w.WriteHeader(503)
			}
		})
		target := y.target(y.ep, s.URL, 1)
		stop := y.start(y.db)
		y.capture(y.ep, "", "x")
		until(t, "the first attempt", func() bool { d := y.deliveries(target)[0]; return len(d.Attempts) == 1 })
		stop()
		y.clock.advance(40 * time.Minute) // a restart later
		stop = y.start(y.db)
		other := y.target(y.ep, newSink(t, always(200)).URL, 0)
		y.capture(y.ep, "", "what shows that it has looked")
		until(t, "another delivery", y.settledAll(other, 1, hookglass.ForwardDelivered))
		if d := y.deliveries(target); len(d[len(d)-1].Attempts) != 1 {
			t.Errorf("did not wait: %s", text(d))
		}
		stop()
		y.clock.advance(11 * time.Minute)
		y.start(y.db)
		until(t, "the delivery", y.settledAll(target, 2, hookglass.ForwardDelivered))
	})
}

func TestAnAnswerIsKeptShortAndAsText(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		for body, want := range map[string]string{
			"ok":                           "ok",
			strings.Repeat("é", 500):       strings.Repeat("é", 500),
			strings.Repeat("é", 501):       strings.Repeat("é", 500),
			strings.Repeat("𝄞", 2<<18):     strings.Repeat("𝄞", 500),
			"a\xff\x00b":                   "a\uFFFD\x00b",
			strings.Repeat("x", 499) + "é": strings.Repeat("x", 499) + "é",
		} {
			s := newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
			target := y.target(y.ep, s.URL, 0)
			stop := y.start(y.db)
			y.capture(y.ep, "", "x")
			until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
			stop()
			a := y.deliveries(target)[0].Attempts[0]
			if a.Body != want || a.Truncated != (utf8.RuneCountInString(body) > 500) {
				t.Errorf("kept %d characters, truncated %t", utf8.RuneCountInString(a.Body), a.Truncated)
			}
			must(t, y.endpoints.DeleteForwardingTarget(t.Context(), hookglass.System, string(y.ep.ID), target.ID))
		}
	})
}

func TestALoopOfForwardsEnds(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 3)
		y.start(y.db)
		y.capture(y.ep, "X-Service-Hops: 3\r\n", "x")
		y.capture(y.ep, "X-Service-Hops: 2\r\n", "x")
		until(t, "the end of the loop", y.settledAll(target, 1, hookglass.ForwardFailed))
		until(t, "the last hop", y.settledAll(target, 1, hookglass.ForwardDelivered))
		if h := s.got(); len(h) != 1 || h[0].header.Get("X-Service-Hops") != "3" {
			t.Errorf("%+v", h)
		}
		for _, d := range y.deliveries(target) {
			if d.State == hookglass.ForwardFailed && (len(d.Attempts) != 1 || d.Attempts[0].Failure.Code != "loop_detected") {
				t.Errorf("%s", text(d))
			}
		}
	})
}

// mail stores a mail as reception does, whose verdict is still to come.
func (y *yard) mail(received time.Time) *hookglass.Event {
	y.t.Helper()
	ev := &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventEmail, received), EndpointNum: y.ep.Num, EndpointID: y.ep.ID, Type: hookglass.EventEmail, ReceivedAt: received,
		Method: "EMAIL", Path: "a@example.com", Subject: "Hi", Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked,
		Payload: &hookglass.Payload{Headers: hookglass.Headers{{Name: "Subject", Value: "Hi"}}, Body: []byte("raw")},
	}
	must(y.t, y.db.CaptureWith(y.t.Context(), y.ep.AccountID, ev, store.Work{Forward: true}))
	return ev
}

// later moves the time on and has nodes look what is due.
func (y *yard) later(d time.Duration) {
	y.t.Helper()
	y.clock.advance(d)
	must(y.t, y.db.Update(y.t.Context(), hookglass.System, func(tx *store.Tx) error { tx.Announce(store.TopicForwards); return nil }))
}

func TestMailGoesAsJSONWithItsVerdict(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 0)
		y.start(y.db)
		y.start(y.db) // a second node
		mail := y.mail(time.Now().UTC())
		y.capture(y.ep, "", "a webhook waits for nothing")
		until(t, "the delivery of the webhook", y.settledAll(target, 1, hookglass.ForwardDelivered))
		y.later(10 * time.Second) // of thirty
		until(t, "that the mail waits", func() bool {
			d := y.deliveries(target)[1]
			return d.State == hookglass.ForwardPending && d.NextAt.After(y.clock.now()) && len(d.Attempts) == 0
		})
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			return tx.SetVerdicts([]store.Verdict{{EndpointNum: mail.EndpointNum, EventSeq: mail.Seq, Results: hookglass.Authentication{SPF: "pass", DKIM: "fail", DMARC: "none"}, Details: []byte("{}")}})
		}))
		y.later(time.Second) // which is as long as it may wait to look again
		until(t, "the delivery", y.settledAll(target, 2, hookglass.ForwardDelivered))
		h := s.got()
		if len(h) != 2 {
			t.Fatalf("%d hits", len(h))
		}
		if h := h[1]; h.method != "POST" || h.header.Get("Content-Type") != "application/json" || !strings.Contains(h.body, `"subject":"Hi"`) ||
			!strings.Contains(h.body, `"authentication":{"spf":"pass","dkim":"fail","dmarc":"none"}`) {
			t.Errorf("%+v", h)
		}
		if d := y.deliveries(target)[1]; d.EventID != mail.ID || len(d.Attempts) != 1 {
			t.Errorf("%s", text(d))
		}
	})
}

// A verdict that never comes holds nothing for ever, and to have waited for it is no attempt and counts as lost to
// nobody.
func TestMailGoesWithoutAVerdictAfterAWhile(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 0)
		y.start(y.db)
		old := y.mail(time.Now().UTC().Add(-31 * time.Second)) // as after a night when nothing ran
		until(t, "the delivery of the old mail", y.settledAll(target, 1, hookglass.ForwardDelivered))
		y.mail(time.Now().UTC())
		var next time.Time
		for range 10 { // more often than a delivery may be lost
			until(t, "that the mail waits on", func() bool {
				d := y.deliveries(target)[0]
				if !d.NextAt.After(next) {
					return false
				}
				next = d.NextAt
				return true
			})
			y.later(1100 * time.Millisecond) // the longest that it waits is a second
		}
		if h := s.got(); len(h) != 1 || h[0].header.Get("X-Service-Original-Request") != string(old.ID) {
			t.Fatalf("%+v", h)
		}
		y.later(20 * time.Second)
		until(t, "the delivery", y.settledAll(target, 2, hookglass.ForwardDelivered))
		for _, h := range s.got() {
			if !strings.Contains(h.body, `"authentication":{"spf":"pending","dkim":"pending","dmarc":"pending"}`) {
				t.Errorf("%+v", h)
			}
		}
		if d := y.deliveries(target)[0]; len(d.Attempts) != 1 {
			t.Errorf("%s", text(d))
		}
	})
}

// nodesDie has so many nodes die, one after another, with the next delivery to a target in hand.
func (y *yard) nodesDie(target hookglass.ForwardingTarget, n int) {
	y.t.Helper()
	for range n {
		y.clock.advance(time.Hour)
		must(y.t, y.db.Update(y.t.Context(), hookglass.System, func(tx *store.Tx) error {
			_, err := tx.ClaimForwards(target.ID, y.clock.now(), 1, time.Minute)
			return err
		}))
	}
	y.clock.advance(time.Hour)
}

func TestADeliveryThatKillsItsNodesIsGivenUp(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 3)
		y.capture(y.ep, "", "x")
		y.nodesDie(target, 6)
		y.start(y.db)
		until(t, "the end", y.settledAll(target, 1, hookglass.ForwardFailed))
		if d := y.deliveries(target)[0]; len(s.got()) != 0 || d.Attempts[0].Failure.Code != "abandoned" {
			t.Errorf("%s", text(d))
		}
	})
}

func TestADeliveryWhoseNodesDiedAsOftenAsMayBeIsSent(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 3)
		y.capture(y.ep, "", "x")
		y.nodesDie(target, 5)
		y.start(y.db)
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
		if d := y.deliveries(target)[0]; len(s.got()) != 1 || len(d.Attempts) != 1 {
			t.Errorf("%s", text(d))
		}
	})
}

func TestAStoppingNodeHandsBackWhatHangs(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		arrived := make(chan struct{}, 10)
		s := newSink(t, func(n int, _ http.ResponseWriter, r *http.Request) {
			if arrived <- struct{}{}; n == 1 {
				<-r.Context().Done()
			}
		})
		target := y.target(y.ep, s.URL, 0)
		stop := y.start(y.db)
		y.capture(y.ep, "", "x")
		<-arrived
		stop()
		if d := y.deliveries(target)[0]; d.State != hookglass.ForwardPending || len(d.Attempts) != 0 {
			t.Errorf("%s", text(d))
		}
		y.start(y.db)
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
	})
}

// Two nodes on one database send each delivery once.
func TestTwoNodesDoNotSendTheSame(t *testing.T) {
	dsn := storetest.Migrated(t)
	y := newYard(t, storetest.Open(t, store.Config{URL: dsn}))
	other := storetest.Open(t, store.Config{URL: dsn})
	s := newSink(t, always(200))
	target := y.target(y.ep, s.URL, 0)
	const n = 300
	for range n {
		y.capture(y.ep, "", "x")
	}
	y.start(y.db)
	y.start(other)
	until(t, "all deliveries", y.settledAll(target, n, hookglass.ForwardDelivered))
	seen := map[string]int{}
	for _, h := range s.got() {
		seen[h.header.Get("X-Service-Original-Request")]++
	}
	if len(seen) != n || len(s.got()) != n {
		t.Errorf("%d events in %d hits, want %d in as many", len(seen), len(s.got()), n)
	}
}

func TestATargetThatFailsForLongIsPausedAndResumed(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s, up := newSinkAway(t)
		target := y.target(y.ep, s.URL, 0)
		y.start(y.db)
		failed := 0
		fail := func(n int) {
			t.Helper()
			for range n {
				y.capture(y.ep, "", "x")
			}
			failed += n
			until(t, "the failures", y.settledAll(target, failed, hookglass.ForwardFailed))
		}
		fail(25)
		if p := y.read(target); !p.PausedAt.IsZero() || p.Failures != 25 {
			t.Fatalf("paused within 10 minutes: %+v", p)
		}
		y.clock.advance(10 * time.Minute)
		fail(1)
		p := y.read(target)
		if p.PausedAt.IsZero() || p.PauseReason != "failing" || !p.Enabled {
			t.Fatalf("not paused: %+v", p)
		}
		y.capture(y.ep, "", "waits")
		y.clock.advance(time.Hour)
		marker, other := newSink(t, always(200)), hookglass.ForwardingTarget{}
		other = y.target(y.ep, marker.URL, 0)
		y.capture(y.ep, "", "also waits")
		until(t, "a round", y.settledAll(other, 1, hookglass.ForwardDelivered))
		if len(s.got()) != failed {
			t.Error("a paused target was sent to")
		}
		if d := y.deliveries(target); d[0].State != hookglass.ForwardPending || !d[0].NextAt.IsZero() {
			t.Errorf("%s", text(d[0]))
		}
		up.Store(true)
		yes := true
		y.change(target, endpoint.TargetDraft{Enabled: &yes})
		until(t, "what waited", y.settledAll(target, 2, hookglass.ForwardDelivered))
		if p := y.read(target); !p.PausedAt.IsZero() || p.Failures != 0 || p.PauseReason != "" {
			t.Errorf("%+v", p)
		}
	})
}

func TestATargetThatPeoplePauseWaitsForThem(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 0)
		y.start(y.db)
		y.capture(y.ep, "", "before")
		until(t, "the first", y.settledAll(target, 1, hookglass.ForwardDelivered))
		yes, no := true, false
		y.change(target, endpoint.TargetDraft{Paused: &yes})
		paused := y.read(target)
		if paused.PausedAt.IsZero() || paused.PauseReason != hookglass.PauseManual || !paused.Enabled {
			t.Fatalf("not paused: %+v", paused)
		}
		y.capture(y.ep, "", "waits")
		y.clock.advance(time.Hour)
		marker := newSink(t, always(200))
		other := y.target(y.ep, marker.URL, 0)
		y.capture(y.ep, "", "also waits")
		until(t, "a round", y.settledAll(other, 1, hookglass.ForwardDelivered))
		if len(s.got()) != 1 {
			t.Error("a paused target was sent to")
		}
		y.change(target, endpoint.TargetDraft{Paused: &yes}) // it is
		if again := y.read(target); !again.PausedAt.Equal(paused.PausedAt) {
			t.Errorf("it is paused since %v, not since %v", again.PausedAt, paused.PausedAt)
		}
		y.change(target, endpoint.TargetDraft{Paused: &no})
		until(t, "what waited", y.settledAll(target, 3, hookglass.ForwardDelivered))
		if p := y.read(target); !p.PausedAt.IsZero() || p.PauseReason != "" {
			t.Errorf("%+v", p)
		}
	})
}

// Those who paused a target know why; a delivery that was on its way and fails does not tell them otherwise.
func TestATargetThatPeoplePausedIsNotPausedAgainForFailing(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s, begun, end := stallingSink(t, 20, 404)
		target := y.target(y.ep, s.URL, 0)
		y.start(y.db)
		for range 19 {
			y.capture(y.ep, "", "x")
		}
		until(t, "the failures", y.settledAll(target, 19, hookglass.ForwardFailed))
		y.clock.advance(time.Hour)
		y.capture(y.ep, "", "the last")
		<-begun
		yes := true
		y.change(target, endpoint.TargetDraft{Paused: &yes})
		paused := y.read(target)
		close(end)
		until(t, "the last failure", y.settledAll(target, 20, hookglass.ForwardFailed))
		if p := y.read(target); p.PauseReason != hookglass.PauseManual || !p.PausedAt.Equal(paused.PausedAt) || p.Failures != 20 {
			t.Errorf("%+v", p)
		}
	})
}

func TestASuccessEndsTheCountOfFailures(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n != 20 {
				w.WriteHeader(400)
			}
		})
		target := y.target(y.ep, s.URL, 0)
		y.start(y.db)
		for n := 1; n <= 39; n++ {
			y.capture(y.ep, "", "x")
			until(t, "a delivery", func() bool { return !y.deliveries(target)[0].FinishedAt.IsZero() })
			y.clock.advance(time.Minute)
		}
		if p := y.read(target); p.Failures != 19 || !p.PausedAt.IsZero() {
			t.Errorf("%+v", p)
		}
		y.capture(y.ep, "", "x")
		until(t, "the pause", func() bool { return !y.read(target).PausedAt.IsZero() })
	})
}

func TestWhatWaitsForADisabledTargetIsSkipped(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target, no := y.target(y.ep, s.URL, 0), false
		y.capture(y.ep, "", "x")
		y.change(target, endpoint.TargetDraft{Enabled: &no})
		y.start(y.db)
		until(t, "the end", y.settledAll(target, 1, hookglass.ForwardSkipped))
		if len(s.got()) != 0 {
			t.Error("it was sent")
		}
	})
}

// Whoever enables a target again at once need not know how far the background has come.
func TestWhatWaitedForADisabledTargetIsNotSentOnceItIsEnabled(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target, no, yes := y.target(y.ep, s.URL, 0), false, true
		y.capture(y.ep, "", "before")
		y.change(target, endpoint.TargetDraft{Enabled: &no})
		y.change(target, endpoint.TargetDraft{Enabled: &yes})
		y.capture(y.ep, "", "after")
		y.change(target, endpoint.TargetDraft{Enabled: &yes}) // it is: nothing changes
		y.start(y.db)
		until(t, "the end", func() bool {
			d := y.deliveries(target)
			return len(d) == 2 && d[0].State == hookglass.ForwardDelivered && d[1].State == hookglass.ForwardSkipped
		})
		if got := s.got(); len(got) != 1 || string(got[0].body) != "after" {
			t.Errorf("%d were sent", len(got))
		}
	})
}

// However much has waited, no transaction skips all of it: captures stand behind it.
func TestEnablingATargetSkipsWhatWaitsInPieces(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		const all, most = 1_100, 500
		target, no, yes := y.target(y.ep, "https://a.example.com/", 0), false, true
		for range all {
			y.capture(y.ep, "", "x")
		}
		y.change(target, endpoint.TargetDraft{Enabled: &no})
		y.change(target, endpoint.TargetDraft{Enabled: &yes})
		at := map[time.Time]int{}
		must(t, y.db.View(t.Context(), hookglass.System, func(v *store.View) error {
			forwards, err := v.Forwards(string(y.ep.ID), target.ID, 0, 2*all)
			for _, f := range forwards {
				if f.State != hookglass.ForwardSkipped {
					t.Fatalf("%+v", f)
				}
				at[f.FinishedAt]++
			}
			return err
		}))
		skipped := 0
		for _, n := range at {
			if skipped += n; n > most {
				t.Errorf("a transaction skipped %d", n)
			}
		}
		if skipped != all {
			t.Errorf("%d were skipped, want %d", skipped, all)
		}
	})
}

func TestWithoutASubscriptionNothingIsForwarded(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 0)
		lapsed := hookglass.SubscriptionCanceled
		_, err := y.accounts.SetAccount(t.Context(), y.owner.Account.ID, account.Change{Subscription: &lapsed})
		must(t, err)
		y.capture(y.ep, "", "x")
		y.start(y.db)
		until(t, "the end", y.settledAll(target, 1, hookglass.ForwardSkipped))
		if len(s.got()) != 0 {
			t.Error("it was sent")
		}
	})
}

func TestDeliveriesGoWithTheirEventAndTheirTarget(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target, gone := y.target(y.ep, s.URL, 0), y.target(y.ep, s.URL, 0)
		ev := y.capture(y.ep, "", "x")
		y.capture(y.ep, "", "y")
		must(t, y.endpoints.DeleteForwardingTarget(t.Context(), hookglass.System, string(y.ep.ID), gone.ID))
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEvent(string(y.ep.ID), string(ev.ID)) }))
		y.start(y.db)
		until(t, "the other", y.settledAll(target, 1, hookglass.ForwardDelivered))
		if len(y.deliveries(target)) != 1 || len(s.got()) != 1 || s.got()[0].body != "y" {
			t.Errorf("%d deliveries, %d hits", len(y.deliveries(target)), len(s.got()))
		}
		var waiting []store.ForwardQueue
		until(t, "the queue's end", func() bool {
			must(t, y.db.View(t.Context(), hookglass.System, func(v *store.View) (err error) { waiting, err = v.ForwardQueues(); return err }))
			return len(waiting) == 0
		})
	})
}

// Reliability, row 77: one tenant's target that never answers delays neither its other targets nor other tenants.
func TestABlackHoleDelaysNobodyElse(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		var inside, most atomic.Int64
		hole := newSink(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
			n := inside.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			<-r.Context().Done()
			inside.Add(-1)
		})
		y.target(y.ep, hole.URL, 0)
		for range 300 {
			y.capture(y.ep, "", "x")
		}
		stop := y.start(y.db)
		until(t, "a full hole", func() bool { return inside.Load() == 32 })

		fine := newSink(t, always(200))
		beside := y.target(y.ep, fine.URL, 0)
		_, theirs := y.tenant("eve@example.com")
		other := y.target(theirs, fine.URL, 0)
		y.capture(theirs, "", "x")
		y.capture(y.ep, "", "x")
		until(t, "the neighbours' deliveries", func() bool {
			return y.settledAll(beside, 1, hookglass.ForwardDelivered)() && y.settledAll(other, 1, hookglass.ForwardDelivered)()
		})
		if most.Load() != 32 {
			t.Errorf("%d at once in the hole, want 32", most.Load())
		}
		hole.CloseClientConnections()
		stop()
	})
}

// crowded is a way out on which the first turn never comes.
type crowded struct {
	delivery.Client
	turns atomic.Int64
	sent  chan outbound.Request
}

func (c *crowded) Turn(ctx context.Context, key string, line int64) (*outbound.Turn, error) {
	if c.turns.Add(1) == 1 {
		return nil, &outbound.Failure{Code: outbound.CodeBusy, Message: "Nobody ends."}
	}
	return c.Client.Turn(ctx, key, line)
}

func (c *crowded) Do(ctx context.Context, r outbound.Request) (*outbound.Response, error) {
	c.sent <- r
	return c.Client.Do(ctx, r)
}

// A delivery that found no turn is no attempt, and the wait for one is no part of the time that its target has.
func TestADeliveryHasItsTurnBeforeItsTime(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		c := &crowded{Client: y.client, sent: make(chan outbound.Request, 10)}
		y.client = c
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 0)
		stop := y.start(y.db)
		y.capture(y.ep, "", "x")
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
		stop()
		if r := <-c.sent; r.Turn == nil || r.Timeout != target.Timeout || len(c.sent) != 0 {
			t.Errorf("sent with the turn %v and the timeout %v, and %d more", r.Turn, r.Timeout, len(c.sent))
		}
	})
}

// panicking is a way out that fails as no way out should, once.
type panicking struct {
	delivery.Client
	done atomic.Bool
}

func (c *panicking) Do(ctx context.Context, r outbound.Request) (*outbound.Response, error) {
	if !c.done.Swap(true) {
		panic("in the way out")
	}
	return c.Client.Do(ctx, r)
}

// A fault of the service in one delivery ends that one, and is on record as such.
func TestAPanicEndsOneDelivery(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		y.client = &panicking{Client: y.client}
		target := y.target(y.ep, newSink(t, always(200)).URL, 5)
		y.start(y.db)
		y.capture(y.ep, "", "x")
		until(t, "the end of the delivery", y.settledAll(target, 1, hookglass.ForwardFailed))
		if d := y.deliveries(target)[0]; len(d.Attempts) != 1 || d.Attempts[0].Failure.Code != "internal" {
			t.Errorf("%s", text(d))
		}
		y.capture(y.ep, "", "y")
		until(t, "the next delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
	})
}

// A body that is loaded only when it is sent.
func TestALargeBodyArrivesWhole(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 0)
		y.start(y.db)
		body := strings.Repeat("0123456789abcdef", (10<<20)/16)
		for range 8 {
			y.capture(y.ep, "", body)
		}
		until(t, "the deliveries", y.settledAll(target, 8, hookglass.ForwardDelivered))
		for _, h := range s.got() {
			if h.body != body {
				t.Errorf("%d bytes", len(h.body))
			}
		}
	})
}
