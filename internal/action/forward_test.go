package action_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/action"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

func TestForwardsAreRetried(t *testing.T) {
	for name, c := range map[string]struct {
		answers []int // 0: the connection is refused
		retries int
		want    string
		sent    int
	}{
		"at once":             {[]int{200}, 3, "completed on=completed mark=completed", 1},
		"503 then 200":        {[]int{503, 429, 200}, 3, "completed on=completed mark=completed", 3},
		"refused then 201":    {[]int{0, 201}, 1, "completed on=completed mark=completed", 2},
		"always 500":          {[]int{500, 500, 500}, 2, "failed on=failed(http_status) mark=completed", 3},
		"404 is final":        {[]int{404}, 5, "failed on=failed(http_status) mark=completed", 1},
		"a redirect is final": {[]int{301}, 5, "failed on=failed(http_status) mark=completed", 1},
		"no retries":          {[]int{503}, 0, "failed on=failed(http_status) mark=completed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bench) {
				b.net.respond = func(n int, _ outbound.Request) (*outbound.Response, error) {
					if status := c.answers[n-1]; status > 0 {
						return answer(status, "hm"), nil
					}
					return nil, &outbound.Failure{Code: outbound.CodeConnectionRefused, Message: "refused"}
				}
				a := b.create(draft("Forward", step("forward", "On", fmt.Sprintf(`{"url":"https://app.example.com/x","retry_count":%d}`, c.retries)), step("tag", "Mark", `{"tag":"t"}`)))
				run := b.ran(a, body)
				wantOutcome(t, run, c.want)
				if n := len(b.net.requests()); n != c.sent {
					t.Errorf("%d requests, want %d", n, c.sent)
				}
				if n := len(summaryOf(t, run, 0)["attempts"].([]any)); n != c.sent {
					t.Errorf("the summary has %d attempts, want %d", n, c.sent)
				}
				var feed []hookglass.Activity
				must(t, b.db.View(t.Context(), b.who, func(v *store.View) (err error) {
					feed, err = v.Activity(hookglass.ActivityForwardingFailed, time.Now().Add(-time.Hour), 10)
					return err
				}))
				if failed := strings.Contains(c.want, "on=failed"); failed != (len(feed) == 1) {
					t.Fatalf("the feed has %+v", feed)
				} else if failed {
					d := feed[0].Data
					if d["action_id"] != a.ID || d["run_id"] != run.ID || d["step"] != "on" || d["url_host"] != "app.example.com" || d["attempts"] != float64(c.sent) {
						t.Errorf("forwarding.failed has %v", d)
					}
				}
			})
		})
	}
}

// What was tried is told also when a forward may not be tried again, because the right to it ended meanwhile.
func TestAForwardThatMayNotGoOnTellsOfItsAttempts(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(int, outbound.Request) (*outbound.Response, error) {
			b.plan(hookglass.PlanBusiness, hookglass.SubscriptionCanceled)
			return answer(503, "hm"), nil
		}
		run := b.ran(b.create(draft("Forward", step("forward", "On", `{"url":"https://app.example.com/x","retry_count":3}`))), body)
		wantOutcome(t, run, "failed on=failed(subscription_required)")
		if tried := summaryOf(t, run, 0)["attempts"].([]any); len(tried) != 1 || tried[0].(map[string]any)["status_code"] != 503.0 {
			t.Errorf("the summary has the attempts %v", tried)
		}
		var feed []hookglass.Activity
		must(t, b.db.View(t.Context(), b.who, func(v *store.View) (err error) {
			feed, err = v.Activity(hookglass.ActivityForwardingFailed, time.Now().Add(-time.Hour), 10)
			return err
		}))
		if len(feed) != 1 || feed[0].Data["attempts"] != 1.0 || feed[0].Data["status_code"] != 503.0 {
			t.Errorf("the feed has %+v", feed)
		}
	})
}

// As a delivery to a target: who deletes or disables an action, to spare a target that fails, means what waits too.
func TestARunThatWaitsEndsWithItsAction(t *testing.T) {
	off := false
	remove := func(b *bench, a hookglass.Action) error {
		return b.actions.Delete(b.t.Context(), b.who, string(b.ep.ID), a.ID)
	}
	disable := func(b *bench, a hookglass.Action) error {
		_, err := b.actions.Update(b.t.Context(), b.who, string(b.ep.ID), a.ID, action.Draft{Enabled: &off})
		return err
	}
	for name, c := range map[string]struct {
		end   func(b *bench, a hookglass.Action) error
		rerun bool
		want  string
		sent  int
	}{
		"deleted":           {remove, false, "stopped on=failed(not_found) mark=stopped", 1},
		"a rerun, deleted":  {remove, true, "stopped on=failed(not_found) mark=stopped", 1},
		"disabled":          {disable, false, "stopped on=failed(action_disabled) mark=stopped", 1},
		"a rerun, disabled": {disable, true, "failed on=failed(http_status) mark=completed", 3},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, b *bench) {
				a := b.create(draft("Forward", step("forward", "On", `{"url":"https://app.example.com/x","retry_count":2}`), step("tag", "Mark", `{"tag":"t"}`)))
				b.net.respond = func(n int, _ outbound.Request) (*outbound.Response, error) {
					if n == 1 {
						must(t, c.end(b, a))
					}
					return answer(503, "hm"), nil
				}
				e := b.capture(body)
				if !c.rerun {
					b.work(e)
				} else {
					again, err := b.actions.Rerun(t.Context(), b.who, string(b.ep.ID), a.ID, string(e.ID), "")
					must(t, err)
					for range c.sent {
						if err := b.actions.ExecuteRun(t.Context(), again.ID); err != nil && !hookglass.Is(err, hookglass.CodeRateLimited) {
							t.Fatal(err)
						}
					}
					must(t, b.actions.ExecuteRun(t.Context(), again.ID))
				}
				run := b.runs(a)[0]
				wantOutcome(t, run, c.want)
				if tried := summaryOf(t, run, 0)["attempts"].([]any); len(tried) != c.sent || len(b.net.requests()) != c.sent {
					t.Errorf("%d requests were sent, of which the summary has %d, want %d", len(b.net.requests()), len(tried), c.sent)
				}
			})
		})
	}
}

func TestAForwardFailsRatherThanAskTooEarly(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.net.respond = func(int, outbound.Request) (*outbound.Response, error) {
			later := answer(429, "later")
			later.Headers = append(later.Headers, hookglass.Header{Name: "Retry-After", Value: "601"}) // the deadline is at 600
			return later, nil
		}
		run := b.ran(b.create(draft("Forward", step("forward", "On", `{"url":"https://app.example.com/x","retry_count":3}`))), body)
		wantOutcome(t, run, "failed on=failed(http_status)")
		if n := len(b.net.requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestAForwardIsSentAgainAfterACrash(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		a := b.create(draft("Crash", step("forward", "On", `{"url":"https://a.example.com/"}`), step("tag", "Mark", `{"tag":"t"}`)))
		e := b.capture(body)
		release := died(t, b, e)
		must(t, b.actions.Work(t.Context(), task(e, 2)))
		release()
		if runs := b.runs(a); len(runs) != 1 {
			t.Errorf("there are %d runs", len(runs))
		} else {
			wantOutcome(t, runs[0], "completed on=completed mark=completed")
		}
	})
}
