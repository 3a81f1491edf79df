package delivery_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
)

// resend has the failed deliveries to a target sent again, all of them.
func (y *yard) resend(t hookglass.ForwardingTarget) int64 {
	y.t.Helper()
	_, n, err := y.endpoints.ResendFailed(y.t.Context(), hookglass.System, string(t.EndpointID), t.ID, time.Time{}, time.Time{})
	must(y.t, err)
	return n
}

// resendOne has the delivery of an event sent again.
func (y *yard) resendOne(t hookglass.ForwardingTarget, event hookglass.EventID) (hookglass.Forward, error) {
	return y.endpoints.ResendDelivery(y.t.Context(), hookglass.System, string(t.EndpointID), t.ID, event)
}

// consumer is where the ledger says that a target stands.
func (y *yard) consumer(t hookglass.ForwardingTarget) (c hookglass.LedgerConsumer) {
	y.t.Helper()
	must(y.t, y.db.View(y.t.Context(), hookglass.System, func(v *store.View) error {
		l, err := v.Ledger(string(t.EndpointID), v.Now.Add(-time.Hour).Truncate(time.Minute), v.Now.Add(time.Hour).Truncate(time.Minute))
		for _, found := range l.Consumers {
			if found.ID == fmt.Sprint(t.ID) {
				c = found
			}
		}
		return err
	}))
	return c
}

// What failed goes again as it first went: all retries, backoff from its beginning, one failure in the feed, and what
// was attempted before stays with it.
func TestWhatFailedIsSentAgainThroughItsTarget(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n != 9 {
				w.WriteHeader(500)
			}
		})
		target := y.target(y.ep, s.URL, 2)
		y.start(y.db)
		ev := y.capture(y.ep, "X-Tag: a\r\n", "hello")
		until(t, "the failure", y.settledAll(target, 1, hookglass.ForwardFailed))
		if c := y.consumer(target); c.Failed != 1 || c.Delivered+c.Pending != 0 {
			t.Errorf("the ledger has %+v", c)
		}
		for again := 1; again <= 2; again++ {
			if n := y.resend(target); n != 1 {
				t.Fatalf("%d were put in line", n)
			}
			state := hookglass.ForwardFailed
			if again == 2 {
				state = hookglass.ForwardDelivered
			}
			until(t, "the end", func() bool {
				d := y.deliveries(target)[0]
				return d.State == state && len(d.Attempts) == 3+again*3
			})
		}
		d, evidence := y.delivery(target, ev.ID)
		if d.StatusCode != 200 || len(evidence) != 9 || d.FinishedAt.IsZero() || !d.NextAt.IsZero() {
			t.Errorf("%d pieces of evidence of %s", len(evidence), text(d))
		}
		for i, e := range evidence {
			if e.Attempt != i+1 {
				t.Errorf("attempt %d has the evidence of %d", i+1, e.Attempt)
			}
		}
		for _, h := range s.got() {
			if h.body != "hello" || h.header.Get("X-Tag") != "a" || h.header.Get("X-Service-Original-Request") != string(ev.ID) || h.header.Get("X-Service-Replay") != "" {
				t.Errorf("sent %+v", h)
			}
		}
		if want := []time.Duration{1, 2, 1, 2, 1, 2}; fmt.Sprint(y.delays.bounds) != fmt.Sprint(seconds(want)) {
			t.Errorf("the backoff is bounded by %v", y.delays.bounds)
		}
		lines := y.failures()
		if len(lines) != 2 {
			t.Errorf("%d failures are told of", len(lines))
		}
		if c := y.consumer(target); c.Delivered != 1 || c.Failed+c.Pending != 0 || c.Stuck+c.Owed != 0 {
			t.Errorf("the ledger has %+v", c)
		}
		var f hookglass.Figures
		must(t, y.db.View(t.Context(), hookglass.System, func(v *store.View) error {
			steps, err := v.FiguresByStep(y.ep.Num, v.Now.Add(-time.Hour).Truncate(time.Hour), v.Now.Add(2*time.Hour).Truncate(time.Hour), time.Hour)
			for _, one := range steps {
				f.Add(*one)
			}
			return err
		}))
		if got := f.Deliveries[string(hookglass.OutcomeTarget)]; got.Attempts != 9 || got.Failed != 2 || got.Delivered != 1 || got.Bad != 3 {
			t.Errorf("the figures have %+v", got)
		}
		if n := y.resend(target); n != 0 {
			t.Errorf("%d that arrived were put in line", n)
		}
	})
}

func seconds(of []time.Duration) (all []time.Duration) {
	for _, d := range of {
		all = append(all, d*time.Second)
	}
	return all
}

// While it waits, here for a target that is paused, sending it again changes nothing.
func TestWhatIsToBeSentAgainWaitsForATargetThatIsPaused(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s, up := newSinkAway(t)
		target := y.target(y.ep, s.URL, 0)
		y.start(y.db)
		const n = 25
		var events []hookglass.EventID
		for range n {
			events = append(events, y.capture(y.ep, "", "x").ID)
		}
		until(t, "the failures", y.settledAll(target, n, hookglass.ForwardFailed))
		y.clock.advance(10 * time.Minute)
		y.capture(y.ep, "", "x")
		until(t, "the pause", func() bool { return !y.read(target).PausedAt.IsZero() })
		hits := len(s.got())

		one, err := y.resendOne(target, events[3])
		must(t, err)
		if one.State != hookglass.ForwardPending || len(one.Attempts) != 1 || !one.FinishedAt.IsZero() || !one.NextAt.IsZero() || one.StatusCode != 404 {
			t.Errorf("%s", text(one))
		}
		same, err := y.resendOne(target, events[3])
		must(t, err)
		if text(same) != text(one) {
			t.Errorf("%s became %s", text(one), text(same))
		}
		if all := y.resend(target); all != n {
			t.Errorf("%d were put in line", all)
		}
		if all := y.resend(target); all != 0 {
			t.Errorf("%d were put in line once more", all)
		}
		if c := y.consumer(target); c.Pending != n+1 || c.Failed+c.Stuck != 0 {
			t.Errorf("the ledger has %+v", c)
		}
		up.Store(true)
		yes := true
		y.change(target, endpoint.TargetDraft{Enabled: &yes})
		until(t, "all", y.settledAll(target, n+1, hookglass.ForwardDelivered))
		if got := len(s.got()) - hits; got != n+1 {
			t.Errorf("%d requests for %d deliveries", got, n+1)
		}
	})
}

func TestWhatMayNotBeSentAgain(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Fail") != "" {
				w.WriteHeader(400)
			}
		})
		target, no, yes := y.target(y.ep, s.URL, 0), false, true
		skipped := y.capture(y.ep, "", "x")
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			_, err := tx.SkipForwards(target.ID, tx.Now, 1)
			return err
		}))
		often := y.capture(y.ep, "", "x")
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			claimed, err := tx.ClaimForwards(target.ID, tx.Now, 1, time.Minute)
			if err != nil {
				return err
			}
			claimed[0].State, claimed[0].FinishedAt, claimed[0].Attempts = hookglass.ForwardFailed, tx.Now, make([]hookglass.ForwardAttempt, hookglass.MaxForwardAttempts)
			_, err = tx.SettleForwards(claimed)
			return err
		}))
		y.start(y.db)
		arrived, failed, deleted := y.capture(y.ep, "", "x"), y.capture(y.ep, "X-Fail: 1\r\n", "x"), y.capture(y.ep, "X-Fail: 1\r\n", "x")
		until(t, "the ends", func() bool {
			return y.settledAll(target, 1, hookglass.ForwardDelivered)() && y.settledAll(target, 3, hookglass.ForwardFailed)()
		})
		refused := func(what string, code hookglass.Code, err error) {
			t.Helper()
			if !hookglass.Is(err, code) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := y.resendOne(target, arrived.ID)
		refused("one that arrived", hookglass.CodeConflict, err)
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEvent(string(y.ep.ID), string(deleted.ID)) }))
		_, err = y.resendOne(target, deleted.ID)
		refused("one of an event that was deleted", hookglass.CodeNotFound, err)
		_, err = y.resendOne(hookglass.ForwardingTarget{ID: target.ID + 1, EndpointID: y.ep.ID}, failed.ID)
		refused("one to no target", hookglass.CodeNotFound, err)

		r, other := y.tenant("bea@example.com")
		stranger := hookglass.Principal{Account: r.Account.ID, User: r.User.ID, Scopes: hookglass.System.Scopes}
		_, err = y.endpoints.ResendDelivery(t.Context(), stranger, string(y.ep.ID), target.ID, failed.ID)
		refused("another's", hookglass.CodeNotFound, err)
		_, _, err = y.endpoints.ResendFailed(t.Context(), stranger, string(y.ep.ID), target.ID, time.Time{}, time.Time{})
		refused("all of another", hookglass.CodeNotFound, err)
		_, _, err = y.endpoints.ResendFailed(t.Context(), stranger, string(other.ID), target.ID, time.Time{}, time.Time{})
		refused("all of another's target", hookglass.CodeNotFound, err)
		_, _, err = y.endpoints.ResendFailed(t.Context(), hookglass.Principal{Endpoint: y.ep.ID}, string(y.ep.ID), target.ID, time.Time{}, time.Time{})
		refused("by the key of a temporary endpoint", hookglass.CodeForbidden, err)

		y.change(target, endpoint.TargetDraft{Enabled: &no})
		_, err = y.resendOne(target, failed.ID)
		refused("one to a target that is disabled", hookglass.CodeConflict, err)
		_, _, err = y.endpoints.ResendFailed(t.Context(), hookglass.System, string(y.ep.ID), target.ID, time.Time{}, time.Time{})
		refused("all to a target that is disabled", hookglass.CodeConflict, err)
		y.change(target, endpoint.TargetDraft{Enabled: &yes})

		change := func(to hookglass.Subscription) {
			_, err := y.accounts.SetAccount(t.Context(), y.owner.Account.ID, account.Change{Subscription: &to})
			must(t, err)
		}
		change(hookglass.SubscriptionCanceled)
		_, err = y.resendOne(target, failed.ID)
		refused("one without a subscription", hookglass.CodeSubscriptionRequired, err)
		change(hookglass.SubscriptionActive)

		_, err = y.resendOne(target, often.ID)
		refused("one that was attempted too often", hookglass.CodeConflict, err)
		_, err = y.resendOne(target, skipped.ID)
		refused("one that was skipped", hookglass.CodeConflict, err)
		if n := y.resend(target); n != 1 {
			t.Errorf("%d were put in line", n)
		}
		until(t, "the end", func() bool { _, evidence := y.delivery(target, failed.ID); return len(evidence) == 2 })
		if len(s.got()) != 4 {
			t.Errorf("%d requests", len(s.got()))
		}
	})
}
