package delivery_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/store"
)

// startWarm starts a node and returns when captures hand deliveries over to it.
func (y *yard) startWarm(target hookglass.ForwardingTarget) (stop func()) {
	y.t.Helper()
	stop = y.start(y.db)
	y.capture(y.ep, "", "warm")
	until(y.t, "the first delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
	return stop
}

func TestWhatIsHandedOverAndFindsNoPlaceWaitsInTheTable(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		var inside, most atomic.Int64
		open := make(chan struct{})
		s := newSink(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				return
			}
			for m, now := most.Load(), inside.Add(1); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			<-open
			inside.Add(-1)
		})
		target := y.target(y.ep, s.URL, 0)
		y.startWarm(target)
		const n = 120
		var captures sync.WaitGroup
		for range n {
			captures.Go(func() { y.capture(y.ep, "", "x") })
		}
		captures.Wait()
		until(t, "a full target", func() bool { return inside.Load() == 32 })
		until(t, "the others back in the table", y.settledAll(target, n-32, hookglass.ForwardPending))
		close(open)
		until(t, "all deliveries", y.settledAll(target, n+1, hookglass.ForwardDelivered))
		if len(s.got()) != n+1 || most.Load() != 32 {
			t.Errorf("%d hits, %d at once", len(s.got()), most.Load())
		}
		for _, d := range y.deliveries(target) {
			if len(d.Attempts) != 1 {
				t.Errorf("%s", text(d))
			}
		}
	})
}

func TestWithoutASubscriptionNothingThatIsHandedOverIsForwarded(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 0)
		y.startWarm(target)
		lapsed := hookglass.SubscriptionCanceled
		_, err := y.accounts.SetAccount(t.Context(), y.owner.Account.ID, account.Change{Subscription: &lapsed})
		must(t, err)
		y.capture(y.ep, "", "x")
		until(t, "the end", y.settledAll(target, 1, hookglass.ForwardSkipped))
		if len(s.got()) != 1 {
			t.Error("it was sent")
		}
	})
}

// A temporary endpoint belongs to no account, so nothing asks for a subscription: neither of what waited in the table,
// nor of what is handed over.
func TestATemporaryEndpointForwardsWithoutASubscription(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		e, _, err := y.endpoints.CreateTemporary(t.Context())
		must(t, err)
		y.ep = e
		target := y.target(y.ep, newSink(t, always(200)).URL, 0)
		y.capture(y.ep, "", "waited")
		y.start(y.db)
		until(t, "the first", y.settledAll(target, 1, hookglass.ForwardDelivered))
		y.capture(y.ep, "", "handed over")
		until(t, "both", y.settledAll(target, 2, hookglass.ForwardDelivered))
	})
}

func TestWhatFindsNoPlaceGoesBehindWhatWaits(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		open := make(chan struct{})
		s := newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n > 1 {
				<-open
			}
		})
		target := y.target(y.ep, s.URL, 0)
		y.startWarm(target)
		for range 40 {
			y.capture(y.ep, "", "early")
		}
		until(t, "the queue", y.settledAll(target, 8, hookglass.ForwardPending))
		y.capture(y.ep, "", "late")
		close(open)
		until(t, "all deliveries", y.settledAll(target, 42, hookglass.ForwardDelivered))
		hits := s.got()
		for i, h := range hits[:33] { // those that were under way
			if h.body == "late" {
				t.Errorf("the last came as number %d of %d", i, len(hits))
			}
		}
	})
}

// Events that come one after another share a connection, and one that comes alone has its own.
func TestConnectionsAreSharedByDeliveriesThatFollowSoon(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 1)
		y.startWarm(target)
		time.Sleep(150 * time.Millisecond)
		y.capture(y.ep, "", "x")
		until(t, "the delivery of one alone", y.settledAll(target, 2, hookglass.ForwardDelivered))
		if connection := s.got()[1].header.Get("Connection"); !strings.EqualFold(connection, "close") {
			t.Errorf("one alone: %q", connection)
		}
		began := time.Now()
		for n := 4; ; n += 2 { // on a busy machine some that follow come too late
			y.capture(y.ep, "", "x")
			y.capture(y.ep, "", "x")
			until(t, "the deliveries", y.settledAll(target, n, hookglass.ForwardDelivered))
			for _, h := range s.got()[2:] {
				if h.header.Get("Connection") == "" {
					return
				}
			}
			if n > 100 && time.Since(began) > time.Minute {
				t.Fatal("none shares a connection")
			}
		}
	})
}

// What a process had been handed over when it died is sent by another when its lease is over.
func TestWhatWasHandedOverToADeadNodeIsSentAgain(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 0)
		y.db.HandForwards(deadDesk{})
		y.capture(y.ep, "", "x")
		if d := y.deliveries(target)[0]; d.State != hookglass.ForwardSending {
			t.Fatalf("%s", text(d))
		}
		y.clock.advance(31 * time.Second)
		y.start(y.db)
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
		if d := y.deliveries(target)[0]; len(s.got()) != 1 || len(d.Attempts) != 1 {
			t.Errorf("%s", text(d))
		}
	})
}

// deadDesk takes all that it is offered and does nothing with it.
type deadDesk struct{}

func (deadDesk) Offer(int64, *hookglass.Event) time.Time             { return time.Now().Add(30 * time.Second) }
func (deadDesk) Take(int64, *hookglass.Event, []store.HandedForward) {}
