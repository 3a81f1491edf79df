package web_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
)

// failing gives the user's endpoint a target at which n requests have failed, and returns the target and the requests.
func (s *site) failing(n int) (target string, events []hookglass.EventID) {
	s.t.Helper()
	name, address := "Staging", "https://staging.example.com/"
	made, err := s.endpoints.CreateForwardingTarget(s.t.Context(), s.who, string(s.endpoint.ID), endpoint.TargetDraft{Name: &name, URL: &address})
	if err != nil {
		s.t.Fatal(err)
	}
	for range n {
		events = append(events, s.hook(json("{}")))
	}
	err = s.db.Update(s.t.Context(), hookglass.System, func(tx *store.Tx) error {
		claimed, err := tx.ClaimForwards(made.ID, tx.Now, n, time.Minute)
		for i := range claimed {
			c := &claimed[i]
			c.State, c.FinishedAt, c.StatusCode = hookglass.ForwardFailed, tx.Now, 503
			c.Attempts = []hookglass.ForwardAttempt{{At: tx.Now, StatusCode: 503}}
		}
		if err == nil {
			_, err = tx.SettleForwards(claimed)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return strconv.FormatInt(made.ID, 10), events
}

// What failed at a target can be sent again from the settings, one by one and all, and from the request.
func TestWhatFailedAtATargetIsSentAgainByAForm(t *testing.T) {
	s := newSite(t)
	target, events := s.failing(12)
	b := s.signedIn()
	all := "/targets/" + target + "/resend"
	one := func(n int) string { return "/targets/" + target + "/deliveries/" + string(events[n]) + "/resend" }
	pending := func(n int) bool {
		t.Helper()
		var state hookglass.ForwardState
		if err := s.db.View(t.Context(), s.who, func(v *store.View) error {
			id, _ := strconv.ParseInt(target, 10, 64)
			f, _, err := v.Forward(string(s.endpoint.ID), id, events[n])
			state = f.State
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return state == hookglass.ForwardPending
	}
	const summary = `Failed deliveries <span class="small">`
	b.want(200, "GET", s.page("/settings"), nil).holds(t, summary+"12<", "Send all again", s.path(all), s.path(one(11)))

	a := b.want(303, "POST", s.page(one(11)), nil)
	if to := a.Header.Get("Location"); to != s.path("/settings?done=resent&at=forwarding#forwarding") || !pending(11) {
		t.Errorf("on to %s", to)
	}
	b.want(200, "GET", s.page("/settings?done=resent&at=forwarding"), nil).holds(t, "Queued to be sent again.", summary+"11<", "1 delivery is waiting")

	b.want(200, "GET", s.page("/requests/"+string(events[3])+"?tab=deliveries"), nil).holds(t, s.path(one(3)), `aria-label="Send again to Staging"`)
	a = b.want(303, "POST", s.page(one(3)), url.Values{"at": {"request"}})
	if to := a.Header.Get("Location"); to != s.path("/requests/"+string(events[3])+"?tab=deliveries") || !pending(3) {
		t.Errorf("on to %s", to)
	}
	b.want(200, "GET", s.page("/requests/"+string(events[3])+"?tab=deliveries"), nil).lacks(t, s.path(one(3)))

	b.want(303, "POST", s.page(all), nil)
	for n := range events {
		if !pending(n) {
			t.Errorf("%s does not wait", events[n])
		}
	}
	page := b.want(200, "GET", s.page("/settings"), nil)
	page.lacks(t, summary, "Send all again", "/resend")
	page.holds(t, "12 deliveries are waiting; the last is sent at the earliest at <time")
	b.want(303, "POST", s.page("/targets/"+target), url.Values{"paused": {"true"}})
	page = b.want(200, "GET", s.page("/settings"), nil)
	page.holds(t, "12 deliveries are waiting for the target to be resumed.")
	page.lacks(t, "the last is sent")
	b.want(404, "POST", s.page("/targets/x/resend"), nil)
	b.want(404, "POST", s.page("/targets/99/deliveries/"+string(events[0])+"/resend"), nil)
	s.visitor().want(401, "POST", s.page(all), nil)
}

// path is page without the server.
func (s *site) path(below string) string { return "/endpoints/" + string(s.endpoint.ID) + below }

// While a target is taken down for a while, what comes for it waits.
func TestATargetIsPausedAndResumedByAForm(t *testing.T) {
	s := newSite(t)
	target, _ := s.failing(0)
	b := s.signedIn()
	one := s.page("/targets/" + target)
	b.want(200, "GET", s.page("/settings"), nil).holds(t, `aria-label="Pause Staging"`, `aria-label="Disable Staging"`)
	b.want(303, "POST", one, url.Values{"paused": {"true"}})
	page := b.want(200, "GET", s.page("/settings"), nil)
	page.holds(t, ">paused<", `aria-label="Resume Staging"`)
	if strings.Contains(page.body, `aria-label="Pause Staging"`) {
		t.Error("a paused target can be paused")
	}
	b.want(303, "POST", one, url.Values{"enabled": {"true"}})
	b.want(200, "GET", s.page("/settings"), nil).holds(t, ">enabled<", `aria-label="Pause Staging"`)
}
