package listen_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass/api"
	"hookglass/internal/listen"
)

// What was missed before is no part of an outage, also where nothing is caught up on.
func TestWithoutRecoveryAnOutageIsAsLongAsItWas(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now().Add(-26 * time.Hour), state: "open"}}
	s.arrive(api.TunnelRequest{})
	l := start(t, s, h.URL, func(c *listen.Config) { c.Recover = listen.RecoverNone })
	eventually(t, "it knows the gap", func() bool { return l.Knows("tgap_0") })
	live := s.arrive(api.TunnelRequest{})
	eventually(t, "the live one", func() bool { return get(s, func() bool { return s.delivered(live) }) })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool {
		return len(told[listen.Disconnected](l)) > 0 && get(s, func() bool { return len(s.gaps) == 2 })
	})
	s.arrive(api.TunnelRequest{})
	s.arrive(api.TunnelRequest{})
	s.set(func() { s.down = false })
	eventually(t, "it is back", func() bool { return len(told[listen.Offline](l)) == 1 })
	if off := told[listen.Offline](l)[0]; off.Missed != 2 || off.Delivered != 0 || off.Failed != 0 || off.For > time.Hour {
		t.Errorf("it tells %+v", off)
	}
	if said := get(s, func() []api.RecoverGap { return s.said }); !slices.Equal(said, []api.RecoverGap{{Outcome: "skipped"}, {Outcome: "skipped"}}) {
		t.Errorf("the server is told %+v", said)
	}
	if sum, err := l.end(true); err != nil || sum.Delivered != 1 || len(told[listen.Warning](l)) != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// A script sends to the address of a new endpoint as soon as it is printed, when nobody is subscribed yet.
func TestANewEndpointsFirstEventsAreDelivered(t *testing.T) {
	for _, how := range []listen.Recovery{listen.RecoverRecent, listen.RecoverNone} {
		s := newServer(t)
		h := newTarget(t, nil)
		made := time.Now()
		early := s.arrive(api.TunnelRequest{})
		l := start(t, s, h.URL, func(c *listen.Config) { c.Recover, c.Since = how, made })
		eventually(t, "the early one", func() bool { return get(s, func() bool { return s.delivered(early) }) })
		live := s.arrive(api.TunnelRequest{})
		eventually(t, "the live one", func() bool { return get(s, func() bool { return s.delivered(live) }) })
		if ids := h.ids(); !slices.Equal(ids, []string{early, live}) {
			t.Errorf("%s: %v were delivered, want %s and %s", how, ids, early, live)
		}
		if sum, err := l.end(true); err != nil || sum.Delivered != 2 || len(told[listen.Warning](l)) != 0 {
			t.Errorf("%s: %+v, %v", how, sum, err)
		}
	}
}

// A waking machine finds its network, loses it and finds it again.
func TestARecoveryThatIsInterruptedLosesNoCount(t *testing.T) {
	s := newServer(t)
	var l *local
	var fine, slow string
	h := newTarget(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/failed":
			w.WriteHeader(500)
		case "/slow":
			eventually(t, "the others", func() bool {
				return get(s, func() bool { return s.delivered(fine) && len(s.reports) == 2 })
			})
			s.cut()
			eventually(t, "the second break", func() bool { return len(told[listen.Disconnected](l)) >= 2 })
		}
	})
	l = start(t, s, h.URL, func(c *listen.Config) { c.Endpoints[0].Provider = "x" })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool {
		return len(told[listen.Disconnected](l)) > 0 && get(s, func() bool { return len(s.gaps) == 1 })
	})
	old := s.arrive(api.TunnelRequest{DetectedProvider: "x"})
	fine = s.arrive(api.TunnelRequest{DetectedProvider: "x"})
	s.arrive(api.TunnelRequest{DetectedProvider: "x", Path: "/failed"})
	slow = s.arrive(api.TunnelRequest{DetectedProvider: "x", Path: "/slow"})
	s.arrive(api.TunnelRequest{DetectedProvider: "y"}) // nobody asked for it
	s.set(func() {
		s.events[0].RequestedAt.Time = time.Now().Add(-3 * time.Hour)
		s.gaps[0].at = time.Now().Add(-time.Hour)
		s.down = false
	})
	eventually(t, "it is back and has caught up", func() bool { return len(told[listen.Offline](l)) == 1 })
	if off := told[listen.Offline](l)[0]; off.Missed != 4 || off.Delivered != 2 || off.Failed != 1 || off.For < time.Hour || off.For > 90*time.Minute {
		t.Errorf("it tells %+v", off)
	}
	if ids := h.ids(); len(ids) != 3 || slices.Contains(ids, old) || !slices.Contains(ids, slow) {
		t.Errorf("delivered %v", ids)
	}
	// The next outage begins anew.
	s.cut()
	eventually(t, "the next is told", func() bool { return len(told[listen.Offline](l)) == 2 })
	if off := told[listen.Offline](l)[1]; off.Delivered != 0 || off.For > 30*time.Minute {
		t.Errorf("it tells %+v", off)
	}
	if sum, err := l.end(true); err != nil || sum.Delivered != 2 || sum.Failed != 1 || sum.Filtered != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestTheServerKnowsHowLongAnOutageWas(t *testing.T) {
	lost := time.Now().Add(-time.Hour)
	if got := listen.Away(lost, nil); got < time.Hour || got > time.Since(lost)+time.Second {
		t.Errorf("it was away for %v", got)
	}
	end := api.Time{Time: time.Now()}
	before := api.Time{Time: end.Add(-time.Hour)}
	gaps := []api.Gap{
		{StartedAt: api.Time{Time: end.Add(-4 * time.Hour)}, ReconnectedAt: &end}, {StartedAt: api.Time{Time: end.Add(-5 * time.Hour)}, ReconnectedAt: &before},
		{StartedAt: api.Time{Time: end.Add(-6 * time.Hour)}}, // which goes on
	}
	for range gaps {
		if got := listen.Away(lost, gaps).Round(time.Second); got != 5*time.Hour {
			t.Errorf("it was away for %v, and the server says 5 hours", got)
		}
		gaps = append(gaps[1:], gaps[0])
	}
}

// The server refuses to look back behind what it keeps. What it keeps of that time is fetched all the same.
func TestALookBackBehindWhatIsKeptFindsTheRest(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, nil)
	live := s.arrive(api.TunnelRequest{})
	eventually(t, "the live one", func() bool { return get(s, func() bool { return s.delivered(live) }) })
	lost := time.Now()
	l.Open(lost.Add(-time.Minute))
	quiet := func(id string, at time.Time) { // the server thinks that it sent it
		s.events = append(s.events, api.TunnelRequest{
			ID: id, EndpointID: "ep_a", Method: "POST", Path: "/", RequestedAt: api.Time{Time: at}, Type: api.TunnelWebhookRequest, BodyEncoding: "base64",
		})
	}
	s.set(func() {
		s.retained = lost.Add(-15 * time.Second)
		quiet("req_gone", lost.Add(-20*time.Second))
		for i := range 120 {
			quiet("req_kept"+string(rune('a'+i/26))+string(rune('a'+i%26)), lost.Add(-10*time.Second))
		}
	})
	s.cut()
	eventually(t, "it is back", func() bool { return len(told[listen.Offline](l)) == 1 })
	if sum, err := l.end(true); err != nil || sum.Delivered != 121 || len(told[listen.Warning](l)) != 0 {
		t.Errorf("%+v, %v, %v", sum, err, told[listen.Warning](l))
	}
	if slices.Contains(h.ids(), "req_gone") {
		t.Error("it delivered what is not kept")
	}
	if n := get(s, func() int { return s.pages }); n > 40 {
		t.Errorf("it asked %d times", n)
	}
}

// What nobody was sent before a listener began, and what its person did not want, is not delivered because a connection
// broke later.
func TestALaterOutageBringsNothingOfTheTimeBefore(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	s.gaps = []*gap{{id: "tgap_declined", endpoint: "ep_a", from: 0, to: -1, at: time.Now().Add(-time.Minute), state: "open"}}
	s.arrive(api.TunnelRequest{})
	s.arrive(api.TunnelRequest{})
	s.gaps[0].to, s.gaps[0].state = 1, "reconnected"
	for i := range s.events {
		s.events[i].RequestedAt.Time = time.Now().Add(-10 * time.Second)
	}
	l := start(t, s, h.URL, func(c *listen.Config) {
		c.Recover = listen.RecoverAsk
		c.Ask = func(context.Context, int) bool { return false }
	})
	live := s.arrive(api.TunnelRequest{})
	eventually(t, "the live one", func() bool { return slices.Contains(h.ids(), live) })
	eventually(t, "what was declined", func() bool { return get(s, func() bool { return len(s.said) == 1 }) })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool {
		return len(told[listen.Disconnected](l)) > 0 && get(s, func() bool { return len(s.gaps) == 2 })
	})
	missed := s.arrive(api.TunnelRequest{})
	s.set(func() { s.down = false })
	eventually(t, "it is back", func() bool { return len(told[listen.Offline](l)) == 1 })
	if off := told[listen.Offline](l)[0]; off.Missed != 1 || off.Delivered != 1 {
		t.Errorf("it tells %+v", off)
	}
	if ids := h.ids(); !slices.Equal(ids, []string{live, missed}) {
		t.Errorf("delivered %q, want %q and %q", ids, live, missed)
	}
}

// Events that were only shown, or failed, stay undelivered, so the server lists their gap after each later outage, too.
func TestWhatWasToldOfAnOutageIsNotCountedAgainInALaterOne(t *testing.T) {
	s := newServer(t)
	s.gaps = []*gap{{id: "tgap_earlier", endpoint: "ep_a", from: 0, to: -1, at: time.Now().Add(-time.Minute), state: "open"}}
	s.arrive(api.TunnelRequest{})
	s.arrive(api.TunnelRequest{})
	s.gaps[0].to, s.gaps[0].state = 2, "reconnected"
	l := start(t, s, "", nil)
	for n, missed := range []int{2, 0, 1, 0} {
		if n > 0 {
			s.set(func() { s.down = true })
			s.cut()
			eventually(t, "it is noticed", func() bool {
				return len(told[listen.Disconnected](l)) >= n && get(s, func() bool { return len(s.gaps) == n+1 })
			})
			for range missed {
				s.arrive(api.TunnelRequest{})
			}
			s.set(func() { s.down = false })
		}
		eventually(t, "what was missed is told", func() bool { return len(told[listen.Offline](l)) == n+1 })
		if off := told[listen.Offline](l)[n]; off.Missed != missed || off.Shown != missed {
			t.Errorf("of outage %d it tells %+v, and %d events came", n, off, missed)
		}
	}
	if sum, err := l.end(true); err != nil || sum.Shown != 3 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// A node that died holds its sessions for a while, so its gap may be noted when everybody is back. It is looked for, also
// where a recovery was under way when it was time to look.
func TestAGapThatIsNotedLateIsCaughtUpOn(t *testing.T) {
	for when, look := range map[string]time.Duration{"while it recovers": 100 * time.Millisecond, "before it is connected": time.Nanosecond} {
		t.Run(when, func(t *testing.T) {
			s := newServer(t)
			ready := make(chan struct{})
			h := newTarget(t, func(n int, _ http.ResponseWriter, _ *http.Request) {
				if n == 1 {
					<-ready
				}
			})
			s.arrive(api.TunnelRequest{})
			late := s.arrive(api.TunnelRequest{})
			s.gaps = []*gap{{id: "tgap_known", endpoint: "ep_a", from: 0, to: 1, at: time.Now().Add(-time.Minute), state: "reconnected"}}
			l := start(t, s, h.URL, func(c *listen.Config) {
				c.Recover = listen.RecoverAll
				c.Look(look)
			})
			eventually(t, "the recovery is under way", func() bool { return len(h.ids()) == 1 })
			s.set(func() {
				s.gaps = append(s.gaps, &gap{id: "tgap_late", endpoint: "ep_a", from: 1, to: 2, at: time.Now().Add(-time.Minute), state: "reconnected"})
			})
			<-time.After(300 * time.Millisecond) // so that it is under way when it is time to look
			close(ready)
			eventually(t, "the late one", func() bool { return get(s, func() bool { return s.delivered(late) }) })
			if sum, err := l.end(true); err != nil || sum.Delivered != 2 {
				t.Errorf("%+v, %v", sum, err)
			}
		})
	}
}

// What ended before the time that is wanted is not asked for, and how long an outage took is the server's word. An
// outage that brought nothing is not spoken of.
func TestAnEarlierOutageIsToldAsTheServerHasIt(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	for _, provider := range []string{"x", "x", "y"} {
		s.arrive(api.TunnelRequest{DetectedProvider: provider, RequestedAt: api.Time{Time: ago(time.Hour)}})
	}
	s.set(func() {
		s.events[0].RequestedAt.Time = ago(4 * time.Hour)
		s.gaps = []*gap{
			{id: "tgap_old", endpoint: "ep_a", from: 0, to: 1, at: ago(5 * time.Hour), back: ago(3 * time.Hour), state: "reconnected"},
			{id: "tgap_new", endpoint: "ep_a", from: 1, to: 2, at: ago(70 * time.Minute), back: ago(50 * time.Minute), state: "reconnected"},
			{id: "tgap_other", endpoint: "ep_a", from: 2, to: 3, at: ago(40 * time.Minute), state: "reconnected"},
		}
	})
	l := start(t, s, h.URL, func(c *listen.Config) { c.Endpoints[0].Provider = "x" })
	eventually(t, "a word about both", func() bool { return get(s, func() int { return len(s.said) }) == 2 })
	if sum, err := l.end(true); err != nil || sum.Delivered != 1 || get(s, func() int { return s.pages }) != 2 {
		t.Errorf("%+v, %v", sum, err)
	}
	if off := told[listen.Offline](l); len(off) != 1 || off[0].For.Round(time.Minute) != 20*time.Minute || off[0].Missed != 1 {
		t.Errorf("it tells %+v", off)
	}
}

// A person hears that something was not fetched, and the server that the recovery was interrupted.
func TestWhatCanNotBeFetchedIsSaid(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now(), state: "open"}}
	s.arrive(api.TunnelRequest{})
	s.barred = true
	l := start(t, s, h.URL, nil)
	eventually(t, "a warning", func() bool { return len(told[listen.Warning](l)) == 1 })
	if w := told[listen.Warning](l)[0].Text; !strings.HasPrefix(w, "some missed events could not be fetched: ") {
		t.Error(w)
	}
	if said := get(s, func() []api.RecoverGap { return s.said }); !slices.Equal(said, []api.RecoverGap{{Outcome: "interrupted"}}) {
		t.Errorf("the server is told %+v", said)
	}
	if off := told[listen.Offline](l); len(off) > 0 {
		t.Errorf("it tells %+v", off)
	}
}

// The last of as many events as are wanted may be the last of what was missed.
func TestTheEndAfterSoManyEventsComesBehindWhatIsSaidOfAnOutage(t *testing.T) {
	for _, c := range []struct {
		wanted  int
		outcome string
		told    int
	}{{wanted: 3, outcome: "completed", told: 1}, {wanted: 2, outcome: "interrupted"}} {
		s := newServer(t)
		h := newTarget(t, nil)
		for range 3 {
			s.arrive(api.TunnelRequest{})
		}
		s.arrive(api.TunnelRequest{DetectedProvider: "y"}) // nobody asked for it
		s.set(func() {
			for i := range s.events[:3] {
				s.events[i].DetectedProvider = "x"
			}
			s.gaps = []*gap{{id: "tgap_1", endpoint: "ep_a", from: 0, to: 4, at: time.Now().Add(-time.Minute), state: "reconnected"}}
		})
		l := start(t, s, h.URL, func(to *listen.Config) {
			to.Endpoints[0].Provider = "x"
			to.Recover, to.ExitAfter = listen.RecoverAll, c.wanted
		})
		sum, err := l.end(false)
		if err != nil || sum.Delivered != c.wanted || sum.Unreported != 0 {
			t.Errorf("after %d: %+v, %v", c.wanted, sum, err)
		}
		off := told[listen.Offline](l)
		if len(off) != c.told || c.told > 0 && (off[0].Missed != 3 || off[0].Delivered != 3 || off[0].Failed != 0) {
			t.Errorf("after %d it tells %+v", c.wanted, off)
		}
		if said := get(s, func() []api.RecoverGap { return s.said }); len(said) != 1 || said[0].Outcome != c.outcome || said[0].SucceededCount != int64(c.wanted) {
			t.Errorf("after %d the server was told %+v", c.wanted, said)
		}
	}
}

func TestTheEndAfterSoManyEventsComesBehindWhatIsSaidOfAnOutageOfItsOwn(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, func(c *listen.Config) { c.ExitAfter = 3 })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool {
		return len(told[listen.Disconnected](l)) > 0 && get(s, func() bool { return len(s.gaps) == 1 })
	})
	for range 3 {
		s.arrive(api.TunnelRequest{})
	}
	s.set(func() { s.down = false })
	if sum, err := l.end(false); err != nil || sum.Delivered != 3 {
		t.Errorf("%+v, %v", sum, err)
	}
	if off := told[listen.Offline](l); len(off) != 1 || off[0].Missed != 3 || off[0].Delivered != 3 {
		t.Errorf("it tells %+v", off)
	}
}

func TestAQuestionThatAnOutageInterruptsIsAskedAgain(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now().Add(-time.Minute), state: "open"}}
	missed := s.arrive(api.TunnelRequest{})
	asked := make(chan int, 2)
	start(t, s, h.URL, func(cfg *listen.Config) {
		cfg.Recover = listen.RecoverAsk
		first := true
		cfg.Ask = func(ctx context.Context, n int) bool {
			asked <- n
			if first {
				first = false
				<-ctx.Done()
				return false
			}
			return true
		}
	})
	<-asked
	s.cut()
	if n := <-asked; n != 1 {
		t.Errorf("asked about %d", n)
	}
	eventually(t, "it is delivered", func() bool { return slices.Contains(h.ids(), missed) })
}
