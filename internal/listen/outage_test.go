package listen_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hookglass/api"
	"hookglass/internal/listen"
)

func TestAnOutageCostsNothing(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, nil)
	first := s.arrive(api.TunnelRequest{})
	eventually(t, "the first", func() bool { return slices.Contains(h.ids(), first) })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool {
		return len(told[listen.Disconnected](l)) > 0 && get(s, func() bool { return len(s.gaps) == 1 })
	})
	for range 34 {
		s.arrive(api.TunnelRequest{})
	}
	// The machine slept: by its own clock nearly no time went by.
	s.set(func() { s.down, s.gaps[0].at = false, time.Now().Add(-time.Hour) })
	eventually(t, "it is back and has caught up", func() bool { return len(told[listen.Offline](l)) == 1 })
	if off := told[listen.Offline](l)[0]; off.Missed != 34 || off.Delivered != 34 || off.Failed != 0 || off.For < time.Hour || off.For > 90*time.Minute {
		t.Errorf("it tells %+v", off)
	}
	if ids := h.ids(); len(ids) != 35 {
		t.Errorf("%d deliveries of 35 events", len(ids))
	}
	s.set(func() {
		if len(s.said) != 1 || s.said[0] != (api.RecoverGap{Outcome: "completed", AttemptedCount: 34, SucceededCount: 34}) || s.gaps[0].state != "recovered" {
			t.Errorf("recoveries %+v of %+v", s.said, s.gaps[0])
		}
		if s.connects < 2 {
			t.Errorf("%d tickets", s.connects)
		}
		// What the socket takes may be read behind the word that the recovery is over, which then does not count it.
		if s.byREST < 34 {
			t.Errorf("of what was caught up on, %d were reported by REST", s.byREST)
		}
	})
	sum, err := l.end(true)
	if err != nil || sum.Delivered != 35 || sum.Failed != 0 || sum.Waiting != 0 || sum.Unreported != 0 || sum.Reconnects != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	eventually(t, "a goodbye", func() bool {
		return get(s, func() bool {
			return s.left == 1 && slices.Contains(s.closed, websocket.StatusNormalClosure) && len(s.gaps) == 1
		})
	})
}

// A server may take for missed what is being delivered. It is waited for, not delivered again, and counts: the server has
// its result before it hears that the recovery is over, also where it reads what the socket brings only later.
func TestWhatIsUnderWayIsPartOfARecovery(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	h := newTarget(t, func(int, http.ResponseWriter, *http.Request) { <-gate })
	l := start(t, s, h.URL, nil)
	s.arrive(api.TunnelRequest{})
	eventually(t, "it is under way", func() bool { return len(h.ids()) == 1 })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "a gap", func() bool { return get(s, func() bool { return len(s.gaps) == 1 }) })
	s.set(func() { s.down, s.behind, s.gaps[0].from = false, true, 0 })
	eventually(t, "the recovery", func() bool { return get(s, func() bool { return s.pages > 0 }) })
	close(gate)
	eventually(t, "its end", func() bool { return get(s, func() bool { return len(s.said) > 0 }) })
	if said := get(s, func() api.RecoverGap { return s.said[0] }); said != (api.RecoverGap{Outcome: "completed", AttemptedCount: 1, SucceededCount: 1}) {
		t.Errorf("the recovery was said to be %+v", said)
	}
	if state := get(s, func() string { return s.gaps[0].state }); state != "recovered" {
		t.Errorf("the gap is %s", state)
	}
	if sum, _ := l.end(true); len(h.ids()) != 1 || sum.Delivered != 1 {
		t.Errorf("%d deliveries, %+v", len(h.ids()), sum)
	}
}

// A server is asked about a hundred endpoints at once, and no more.
func TestAnOutageOfManyEndpointsCostsNothing(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, func(c *listen.Config) {
		for i := range 150 {
			c.Endpoints = append(c.Endpoints, listen.Endpoint{ID: fmt.Sprintf("ep_%03d", i), Target: c.Endpoints[0].Target})
		}
	})
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool { return len(told[listen.Disconnected](l)) > 0 })
	var missed []string
	for _, e := range []string{"ep_a", "ep_000", "ep_120", "ep_149", "ep_000"} {
		missed = append(missed, s.arrive(api.TunnelRequest{EndpointID: e}))
	}
	s.set(func() { s.down = false })
	eventually(t, "it is back and has caught up", func() bool { return len(told[listen.Offline](l)) == 1 })
	if got := h.ids(); len(got) != len(missed) || slices.ContainsFunc(missed, func(id string) bool { return !slices.Contains(got, id) }) {
		t.Errorf("delivered %q of %q", got, missed)
	}
	if w := told[listen.Warning](l); len(w) != 0 {
		t.Errorf("the warnings are %v", w)
	}
}

// What is too old to be delivered was missed all the same.
func TestWhatIsLeftOfAnOutageIsSaidToBeMissed(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, nil)
	eventually(t, "connected", func() bool { return len(told[listen.Connected](l)) == 1 })
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool { return get(s, func() bool { return len(s.gaps) == 1 }) })
	for range 3 {
		s.arrive(api.TunnelRequest{})
	}
	s.set(func() { s.down, s.events[0].RequestedAt.Time = false, time.Now().Add(-3*time.Hour) })
	eventually(t, "it is back", func() bool { return len(told[listen.Offline](l)) == 1 })
	if off := told[listen.Offline](l)[0]; off.Missed != 3 || off.Delivered != 2 || off.Failed != 0 {
		t.Errorf("it tells %+v", off)
	}
	if _, err := l.end(true); err != nil {
		t.Error(err)
	}
}

func TestWhatTheServerTookForDeliveredIsAskedForAgain(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, nil)
	// Sent into a connection that is already broken: no gap holds it.
	s.set(func() {
		s.events = append(s.events, api.TunnelRequest{Type: api.TunnelWebhookRequest, ID: "req_lost", EndpointID: "ep_a", Method: "POST", RequestedAt: api.Time{Time: time.Now()}})
	})
	s.cut()
	eventually(t, "it was delivered", func() bool { return slices.Contains(h.ids(), "req_lost") })
	eventually(t, "it is told", func() bool { o := told[listen.Offline](l); return len(o) == 1 && o[0].Delivered == 1 })
}

func TestGapsOfAnEarlierTimeAreRecoveredAsAskedFor(t *testing.T) {
	for _, c := range []struct {
		mode      listen.Recovery
		yes       bool
		age       time.Duration
		delivered int
		said      string
	}{
		{listen.RecoverNone, false, 0, 0, "skipped"}, {listen.RecoverRecent, false, 0, 3, "completed"}, {listen.RecoverAsk, true, 0, 3, "completed"},
		{listen.RecoverAsk, false, 0, 0, "skipped"}, {listen.RecoverRecent, false, 3 * time.Hour, 0, "partial"}, {listen.RecoverAll, false, 3 * time.Hour, 3, "completed"},
	} {
		t.Run(fmt.Sprint(c.mode, c.yes, c.age), func(t *testing.T) {
			s := newServer(t)
			h := newTarget(t, nil)
			s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now().Add(-c.age - time.Minute), state: "open"}}
			for i := range 3 {
				s.arrive(api.TunnelRequest{})
				s.events[i].RequestedAt.Time = time.Now().Add(-c.age)
			}
			asked := 0
			l := start(t, s, h.URL, func(cfg *listen.Config) {
				cfg.Recover = c.mode
				cfg.Ask = func(_ context.Context, n int) bool { asked = n; return c.yes }
			})
			live := s.arrive(api.TunnelRequest{})
			eventually(t, "the live one", func() bool { return slices.Contains(h.ids(), live) })
			if c.said != "" {
				eventually(t, "the end of the recovery", func() bool { return get(s, func() bool { return len(s.said) == 1 }) })
			}
			s.set(func() {
				if c.said != "" && s.said[0].Outcome != c.said {
					t.Errorf("it says %+v", s.said)
				}
			})
			if sum, _ := l.end(true); sum.Delivered != 1+c.delivered || (asked == 3) != (c.mode == listen.RecoverAsk) {
				t.Errorf("%+v; asked about %d", sum, asked)
			}
		})
	}
}

// A listener that was killed behind its last delivery left the gap without a word about it. What failed is sent again to
// who asks for all.
func TestAGapWhoseEventsWereAllTriedIsSaidToBeOver(t *testing.T) {
	for mode, again := range map[listen.Recovery]int64{listen.RecoverRecent: 0, listen.RecoverAsk: 0, listen.RecoverAll: 1} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			s := newServer(t)
			h := newTarget(t, nil)
			s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now(), state: "open"}}
			tried := s.arrive(api.TunnelRequest{})
			s.set(func() {
				s.take(api.DeliveryReport{EndpointID: "ep_a", WebhookRequestID: tried, TargetURL: h.URL, StatusCode: api.Some[int64](500), ReportVersion: 2, DeliveryAttemptID: "before"})
			})
			l := start(t, s, h.URL, func(cfg *listen.Config) { cfg.Recover = mode })
			eventually(t, "a word about the gap", func() bool { return get(s, func() bool { return len(s.said) == 1 }) })
			want := api.RecoverGap{Outcome: "partial"}
			if again > 0 {
				want = api.RecoverGap{Outcome: "completed", AttemptedCount: again, SucceededCount: again}
			}
			if said := get(s, func() api.RecoverGap { return s.said[0] }); said != want {
				t.Errorf("it says %+v", said)
			}
			if sum, _ := l.end(true); int64(sum.Delivered) != again || sum.Failed != 0 {
				t.Errorf("what had failed: %+v", sum)
			}
		})
	}
}

// Who catches up on nothing says that of what nobody has tried. What another listener said of an outage stays.
func TestWhatIsSkippedIsWhatNobodyTried(t *testing.T) {
	s := newServer(t)
	tried := s.arrive(api.TunnelRequest{})
	s.arrive(api.TunnelRequest{})
	s.arrive(api.TunnelRequest{})
	s.set(func() {
		s.take(api.DeliveryReport{EndpointID: "ep_a", WebhookRequestID: tried, TargetURL: "http://x.test/", StatusCode: api.Some[int64](500), ReportVersion: 2, DeliveryAttemptID: "before"})
		for i, state := range []string{"reconnected", "partial", "reconnected"} {
			s.gaps = append(s.gaps, &gap{id: fmt.Sprintf("tgap_%d", i), endpoint: "ep_a", from: i, to: i + 1, at: time.Now().Add(time.Duration(i-3) * time.Minute), state: state})
		}
	})
	l := start(t, s, "http://x.test/", func(cfg *listen.Config) { cfg.Recover = listen.RecoverNone })
	eventually(t, "a word about the last", func() bool { return get(s, func() bool { return s.gaps[2].state == "partial" }) })
	if said := get(s, func() []api.RecoverGap { return slices.Clone(s.said) }); !slices.Equal(said, []api.RecoverGap{{Outcome: "skipped"}}) {
		t.Errorf("it says %+v", said)
	}
	if sum, _ := l.end(true); sum.Received != 0 {
		t.Errorf("%+v", sum)
	}
}

// An outage from before a listener began is caught up on to its end, though some of its events were tried, and though
// all fail: each is sent once, and the server is told how many.
func TestALongGapIsTriedToItsEnd(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", from: 0, to: -1, at: time.Now(), state: "open"}}
	const n = 25 // pages of ten
	for range n {
		s.arrive(api.TunnelRequest{})
	}
	s.set(func() {
		s.take(api.DeliveryReport{EndpointID: "ep_a", WebhookRequestID: s.events[0].ID, TargetURL: h.URL, StatusCode: api.Some[int64](500), ReportVersion: 2, DeliveryAttemptID: "before"})
	})
	l := start(t, s, h.URL, nil)
	eventually(t, "a word about the gap", func() bool { return get(s, func() bool { return len(s.said) == 1 }) })
	if said := get(s, func() api.RecoverGap { return s.said[0] }); said != (api.RecoverGap{Outcome: "partial", AttemptedCount: n, FailedCount: n}) {
		t.Errorf("it says %+v", said)
	}
	if sum, _ := l.end(true); sum.Failed != n || len(h.ids()) != n {
		t.Errorf("%d deliveries, %+v", len(h.ids()), sum)
	}
}

func TestWhatIsOlderThanWantedIsLeft(t *testing.T) {
	s := newServer(t)
	s.set(func() {
		s.events = append(s.events, api.TunnelRequest{Type: api.TunnelWebhookRequest, ID: "req_old", EndpointID: "ep_a", Method: "POST", RequestedAt: api.Time{Time: time.Now().Add(-3 * time.Hour)}})
	})
	l := listen.New(listen.Config{Client: s.client("hg_x"), Endpoints: []listen.Endpoint{{ID: "ep_a"}}, Recover: listen.RecoverRecent})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l.CatchUp(ctx, time.Now().Add(-4*time.Hour))
	if ctx.Err() != nil {
		t.Error("it asked for the same again and again")
	}
	if l.Admitted() > 0 {
		t.Error("it was delivered")
	}
}

// A backlog of what failed, or of what nobody asked for, is longer than what is remembered of it.
func TestALongBacklogIsCaughtUpOnOnce(t *testing.T) {
	s := newServer(t)
	const n = 200
	s.set(func() {
		for i := range n {
			at := time.Now().Add(time.Duration(i-n) * time.Minute)
			s.events = append(s.events, api.TunnelRequest{
				Type: api.TunnelWebhookRequest, ID: fmt.Sprintf("req_%d", i), EndpointID: "ep_a", Method: "POST", DetectedProvider: "y", RequestedAt: api.Time{Time: at},
			})
		}
	})
	l := listen.New(listen.Config{Client: s.client("hg_x"), Endpoints: []listen.Endpoint{{ID: "ep_a", Provider: "x"}}, Recover: listen.RecoverAll})
	l.Remember(10)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l.CatchUp(ctx, time.Now().Add(-n*time.Hour))
	if ctx.Err() != nil {
		t.Error("it asked for the same again and again")
	}
	if asked := get(s, func() int { return s.pages }); asked > n/50+2 {
		t.Errorf("it asked for %d pages", asked)
	}
	if known := l.Remembered(); known != 10 {
		t.Errorf("it remembers %d events", known)
	}
}

func TestMoreThanWaitsIsFetchedLater(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			s := newServer(t)
			gate := make(chan struct{})
			h := newTarget(t, func(_ int, w http.ResponseWriter, _ *http.Request) { <-gate; w.WriteHeader(status) })
			l := start(t, s, h.URL, nil)
			const n = 1_200
			for range n {
				s.arrive(api.TunnelRequest{Body: base64of("x")})
			}
			eventually(t, "sixteen under way", func() bool { return len(h.ids()) == 16 })
			close(gate)
			eventually(t, "all are reported", func() bool { return get(s, func() bool { return len(s.reports) == n }) })
			eventually(t, "nothing is left to ask for", func() bool { return !l.Behind() })
			eventually(t, "nothing waits", func() bool { return l.Weight() == 0 })
			if got := len(h.ids()); got != n {
				t.Errorf("%d deliveries", got)
			}
			if sum, _ := l.end(true); sum.Reconnects != 0 || sum.Delivered+sum.Failed != n {
				t.Errorf("%+v", sum)
			}
		})
	}
}

// Events wait up to so many bytes. What would be more is left for later, and delivered all the same.
func TestSoManyBytesWaitAtMost(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	l := start(t, s, h.URL, nil)
	body := base64of("xyz") // which is how they wait
	l.Fill(int64(len(body)))
	for i, later := range []bool{false, true} {
		s.arrive(api.TunnelRequest{Body: base64of([]string{"xyz", "xyz+"}[i])})
		eventually(t, "it is delivered", func() bool { return len(told[listen.Delivered](l)) == i+1 })
		if d := told[listen.Delivered](l)[i]; d.Recovered != later || !d.OK() {
			t.Errorf("event %d: left for later: %t, want %t; %s", i, d.Recovered, later, d.Problem)
		}
	}
}

// What a slow sender began to send long before is captured behind what came since.
func TestWhatCameLongBeforeItWasCapturedIsFetchedLaterToo(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	h := newTarget(t, func(int, http.ResponseWriter, *http.Request) { <-gate })
	l := start(t, s, h.URL, nil)
	const n = 600
	now := time.Now()
	for range n {
		s.arrive(api.TunnelRequest{RequestedAt: api.Time{Time: now}})
	}
	slow := s.arrive(api.TunnelRequest{RequestedAt: api.Time{Time: now.Add(-time.Minute)}})
	eventually(t, "sixteen under way", func() bool { return len(h.ids()) == 16 })
	close(gate)
	eventually(t, "all are reported", func() bool { return get(s, func() bool { return len(s.reports) == n+1 }) })
	if !slices.Contains(h.ids(), slow) {
		t.Error("what came before was not delivered")
	}
	if sum, _ := l.end(true); sum.Delivered != n+1 {
		t.Errorf("%+v", sum)
	}
}

// What was left for later is older than what a look back at an outage asks for.
func TestWhatWasLeftForLaterOutlastsTheConnection(t *testing.T) {
	s := newServer(t)
	gate := make(chan struct{})
	h := newTarget(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/last" {
			<-gate
		}
	})
	l := start(t, s, h.URL, func(c *listen.Config) {
		c.Endpoints = append(c.Endpoints, listen.Endpoint{ID: "ep_b", Target: c.Endpoints[0].Target})
	})
	eventually(t, "nothing was missed before", func() bool { return get(s, func() int { return s.listed }) == 1 })
	const n = 700
	began := time.Now().Add(-time.Hour)
	for i := range n {
		s.arrive(api.TunnelRequest{RequestedAt: api.Time{Time: began.Add(time.Duration(i) * time.Second)}})
	}
	last := s.arrive(api.TunnelRequest{EndpointID: "ep_b", Path: "/last"})
	eventually(t, "each was taken in or left", func() bool { return slices.Contains(h.ids(), last) })
	s.set(func() { s.stalled = true })
	close(gate)
	eventually(t, "the rest is asked for", func() bool { return get(s, func() int { return s.pages }) > 0 })
	s.cut()
	eventually(t, "the break is noticed", func() bool { return len(told[listen.Disconnected](l)) == 1 })
	s.set(func() { s.stalled = false })
	eventually(t, "all are reported", func() bool { return get(s, func() bool { return len(s.reports) == n+1 }) })
	if got := len(h.ids()); got != n+1 {
		t.Errorf("%d deliveries", got)
	}
}

// For the race detector: what comes live and what is caught up on meet the same chaos.
func TestChaosMeetsWhatIsCaughtUpOnToo(t *testing.T) {
	s := newServer(t)
	h := newTarget(t, nil)
	const n = 100
	s.gaps = []*gap{{id: "tgap_0", endpoint: "ep_a", to: -1, at: time.Now(), state: "open"}}
	for range n {
		s.arrive(api.TunnelRequest{})
	}
	l := start(t, s, h.URL, func(c *listen.Config) {
		c.Chaos, c.Recover = &listen.Chaos{MaxDelay: time.Millisecond, Seed: 1}, listen.RecoverAll
	})
	for range n {
		s.arrive(api.TunnelRequest{})
	}
	eventually(t, "all are reported", func() bool { return get(s, func() bool { return len(s.reports) == 2*n }) })
	if sum, err := l.end(true); err != nil || sum.Delivered != 2*n {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestWhatWasMissedWithoutATargetHasNotFailed(t *testing.T) {
	s := newServer(t)
	l := start(t, s, "", nil)
	s.set(func() { s.down = true })
	s.cut()
	eventually(t, "it is noticed", func() bool {
		return len(told[listen.Disconnected](l)) > 0 && get(s, func() bool { return len(s.gaps) == 1 })
	})
	s.arrive(api.TunnelRequest{})
	s.arrive(api.TunnelRequest{})
	s.set(func() { s.down = false })
	eventually(t, "it is back", func() bool { return len(told[listen.Offline](l)) == 1 })
	if off := told[listen.Offline](l)[0]; off.Missed != 2 || off.Shown != 2 || off.Delivered != 0 || off.Failed != 0 {
		t.Errorf("it tells %+v", off)
	}
	if sum, err := l.end(true); err != nil || sum.Shown != 2 || sum.Failed != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
}
