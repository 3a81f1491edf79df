package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/delivery"
	"hookglass/internal/endpoint"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// bound gives a target a bound.
func (y *yard) bound(t hookglass.ForwardingTarget, limit int64, period string) {
	y.t.Helper()
	d := endpoint.TargetDraft{RateLimit: &limit}
	if period != "" {
		d.RatePeriod = &period
	}
	y.change(t, d)
}

// bounded adds a target with a bound to an endpoint.
func (y *yard) bounded(e hookglass.Endpoint, url string, limit int64, period string) hookglass.ForwardingTarget {
	y.t.Helper()
	name, retries := "Target", int64(0)
	t, err := y.endpoints.CreateForwardingTarget(y.t.Context(), hookglass.System, string(e.ID), endpoint.TargetDraft{Name: &name, URL: &url, RetryCount: &retries, RateLimit: &limit, RatePeriod: &period})
	must(y.t, err)
	return t
}

// arrivals are when requests came to a sink.
type arrivals struct {
	*sink
	mu   sync.Mutex
	at   []time.Time
	late time.Duration // the longest that the machine kept the test waiting
}

func newArrivals(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *arrivals {
	a := &arrivals{}
	ended := make(chan struct{})
	var watching sync.WaitGroup
	t.Cleanup(func() {
		close(ended)
		watching.Wait()
	})
	watching.Go(func() {
		for last := time.Now(); ; {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
			}
			a.mu.Lock()
			a.late = max(a.late, time.Since(last)-5*time.Millisecond)
			a.mu.Unlock()
			last = time.Now()
		}
	})
	a.sink = newSink(t, func(n int, w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.at = append(a.at, time.Now())
		a.mu.Unlock()
		answer(n, w, r)
	})
	return a
}

// within fails where a window had more than a bound allows in it and a second's worth. What a busy machine takes
// between a request's turn and its being seen is granted: a few times what it was seen to take.
func (a *arrivals) within(t testing.TB, r hookglass.Rate) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := 100*time.Millisecond + 3*a.late
	for i := range a.at {
		for k := i; k < len(a.at); k++ {
			window := a.at[k].Sub(a.at[i])
			if most := float64(window+seen)/float64(r.Every()) + max(1, float64(time.Second)/float64(r.Every())); float64(k-i+1) > most {
				t.Fatalf("%d requests in %v, on a machine that is late by %v", k-i+1, window, a.late)
			}
		}
	}
}

func TestATargetIsSentToAsFastAsItsBoundAllows(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to, free := newArrivals(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n%5 == 1 {
				w.WriteHeader(500) // and is tried again
			}
		}), newSink(t, always(200))
		slow, fast := y.target(y.ep, to.URL, 5), y.target(y.ep, free.URL, 5)
		y.bound(slow, 40, "")
		y.start(y.db)
		const n = 100
		for i := range n {
			y.capture(y.ep, "", fmt.Sprint(i))
		}
		until(t, "sending to the target without a bound", y.settledAll(fast, n, hookglass.ForwardDelivered))
		until(t, "sending to the target with a bound", y.settledAll(slow, n, hookglass.ForwardDelivered))
		to.within(t, hookglass.Rate{Limit: 40, Period: time.Second})
		for _, f := range y.deliveries(slow) {
			for _, a := range f.Attempts[:len(f.Attempts)-1] {
				if a.StatusCode != 500 {
					t.Errorf("an attempt that was none: %+v", a)
				}
			}
		}
	})
}

// Two nodes and their successors keep one bound together.
func TestNodesKeepABoundTogether(t *testing.T) {
	dsn := storetest.Migrated(t)
	y := newYard(t, storetest.Open(t, store.Config{URL: dsn}))
	other := storetest.Open(t, store.Config{URL: dsn})
	to := newArrivals(t, always(200))
	target := y.target(y.ep, to.URL, 0)
	rate := hookglass.Rate{Limit: 50, Period: time.Second}
	y.bound(target, int64(rate.Limit), "")
	one, two := y.start(y.db), y.start(other)
	const n = 120
	for i := range n {
		y.capture(y.ep, "", fmt.Sprint(i))
	}
	until(t, "a third of it", func() bool { return len(to.got()) > n/3 })
	one()
	two()
	y.start(y.db)
	y.start(other)
	until(t, "all of it", y.settledAll(target, n, hookglass.ForwardDelivered))
	to.within(t, rate)
	if got := len(to.got()); got != n {
		t.Errorf("%d requests", got)
	}
}

func TestWhatWaitsForItsTurnGoesInOrderAndLosesNothing(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to := newArrivals(t, always(200))
		target := y.bounded(y.ep, to.URL, 1, hookglass.PeriodMinute)
		y.start(y.db)
		const n = 20
		for i := range n {
			y.capture(y.ep, "", fmt.Sprint(i))
		}
		for want := 1; want <= 3; want++ {
			until(t, "the turn", y.settledAll(target, want, hookglass.ForwardDelivered))
			if waiting := y.settledAll(target, n-want, hookglass.ForwardPending)(); !waiting || len(to.got()) != want {
				t.Fatalf("%d sent, and the rest does not wait", len(to.got()))
			}
			y.clock.advance(time.Minute)
		}
		for i, h := range to.got() {
			if h.body != fmt.Sprint(i) {
				t.Errorf("%q came at place %d", h.body, i)
			}
		}
		// Another bound is of what waits already.
		y.bound(target, 1000, hookglass.PeriodSecond)
		until(t, "sending by the new bound", y.settledAll(target, n, hookglass.ForwardDelivered))
		y.bound(target, 1, hookglass.PeriodMinute)
		y.capture(y.ep, "", "a")
		y.capture(y.ep, "", "b")
		none := int64(0)
		y.change(target, endpoint.TargetDraft{RateLimit: &none})
		until(t, "sending without a bound", y.settledAll(target, n+2, hookglass.ForwardDelivered))
	})
}

// What is not sent when its turn comes gives the turn back: a mail that waits for its verdict does not cost a minute.
func TestATurnThatNothingIsSentInIsReturned(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		way, to := &refusing{Client: y.client}, newSink(t, always(200))
		way.turns.Store(1)
		way.requests.Store(1)
		y.client = way
		target := y.bounded(y.ep, to.URL, 1, hookglass.PeriodMinute)
		y.start(y.db)
		y.capture(y.ep, "", "a")
		until(t, "sending in the same minute", y.settledAll(target, 1, hookglass.ForwardDelivered))
		if f := y.deliveries(target)[0]; len(f.Attempts) != 1 {
			t.Errorf("%d attempts", len(f.Attempts))
		}
	})
}

// heldTurn keeps the first request from its turn on the way out.
type heldTurn struct {
	delivery.Client
	asks        atomic.Int64
	asked, free chan struct{}
}

func (c *heldTurn) Turn(ctx context.Context, key string, line int64) (*outbound.Turn, error) {
	if c.asks.Add(1) == 1 {
		close(c.asked)
		<-c.free
	}
	return c.Client.Turn(ctx, key, line)
}

// Until a request goes, its target has no other turn; and one that goes late goes a whole turn before the next.
func TestARequestThatIsLateForItsTurnDelaysTheNext(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		held := &heldTurn{Client: y.client, asked: make(chan struct{}), free: make(chan struct{})}
		y.client = held
		to := newSink(t, always(200))
		target := y.bounded(y.ep, to.URL, 1, hookglass.PeriodMinute)
		free := newSink(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n%4 != 0 {
				w.WriteHeader(500)
			}
		})
		_, other := y.tenant("bob@example.com")
		beside := y.target(other, free.URL, 5)
		looks := 0
		look := func() { // what is tried again is found by rounds, each of which looks at all targets
			t.Helper()
			looks++
			y.capture(other, "", "x")
			until(t, "sending to the other", y.settledAll(beside, looks, hookglass.ForwardDelivered))
		}
		sent := func(what, want string) {
			t.Helper()
			got := ""
			for _, h := range to.got() {
				got += h.body
			}
			if got != want {
				t.Errorf("%s %q were sent, want %q", what, got, want)
			}
		}
		y.start(y.db)
		y.capture(y.ep, "", "a")
		<-held.asked
		y.capture(y.ep, "", "b")
		y.clock.advance(90 * time.Second)
		look()
		sent("before the first goes", "")
		close(held.free)
		until(t, "the first", y.settledAll(target, 1, hookglass.ForwardDelivered))
		look()
		sent("less than a minute after the first", "a")
		y.clock.advance(time.Minute)
		until(t, "the second", y.settledAll(target, 2, hookglass.ForwardDelivered))
		y.capture(y.ep, "", "c")
		look()
		sent("less than a minute after the second", "ab")
	})
}

// What waits for turns takes no place from others, and is neither claimed nor looked at.
func TestWhatWaitsForTurnsHoldsNothing(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		slow, fast := newSink(t, always(200)), newSink(t, always(200))
		_, other := y.tenant("bob@example.com")
		var bound []hookglass.ForwardingTarget
		for range 10 {
			bound = append(bound, y.bounded(y.ep, slow.URL, 1, hookglass.PeriodMinute))
		}
		free := y.target(other, fast.URL, 0)
		beside := y.target(y.ep, fast.URL, 0)
		y.start(y.db)
		const n = 40
		for range n {
			y.capture(y.ep, "", "x")
			y.capture(other, "", "x")
		}
		until(t, "sending to the others", func() bool {
			return y.settledAll(free, n, hookglass.ForwardDelivered)() && y.settledAll(beside, n, hookglass.ForwardDelivered)()
		})
		for _, target := range bound {
			until(t, "waiting", y.settledAll(target, n-1, hookglass.ForwardPending))
		}
		paused, disabled := true, false
		y.change(bound[0], endpoint.TargetDraft{Paused: &paused})
		y.change(bound[1], endpoint.TargetDraft{Enabled: &disabled})
		until(t, "skipping what waits for a disabled target", y.settledAll(bound[1], n-1, hookglass.ForwardSkipped))
		y.clock.advance(time.Minute)
		until(t, "the next turn", y.settledAll(bound[2], 2, hookglass.ForwardDelivered))
		if !y.settledAll(bound[0], n-1, hookglass.ForwardPending)() {
			t.Error("a paused target was sent to")
		}
	})
}

// refusing is a way out that has no turn for some requests, and none any more for some that had one.
type refusing struct {
	delivery.Client
	turns, requests atomic.Int64
}

func (c *refusing) Turn(ctx context.Context, key string, line int64) (*outbound.Turn, error) {
	if c.turns.Add(-1) >= 0 {
		return nil, &outbound.Failure{Code: outbound.CodeBusy}
	}
	return c.Client.Turn(ctx, key, line)
}

func (c *refusing) Do(ctx context.Context, r outbound.Request) (*outbound.Response, error) {
	if c.requests.Add(-1) >= 0 {
		return nil, &outbound.Failure{Code: outbound.CodeBusy}
	}
	return c.Client.Do(ctx, r)
}
