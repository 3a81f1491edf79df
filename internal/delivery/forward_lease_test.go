package delivery_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// laterSeen moves the time on, and waits until a node that counts its looks at the clock has looked what is due.
func (y *yard) laterSeen(looks *atomic.Int64, d time.Duration) {
	y.t.Helper()
	y.later(d)
	seen := looks.Load()
	until(y.t, "another round", func() bool { return looks.Load() > seen+3 })
}

// startSteadily runs a node, and returns what moves the time on and waits until the node has looked what is due.
func (y *yard) startSteadily(db *store.DB) (later func(time.Duration)) {
	var looks atomic.Int64
	y.startBy(db, func() time.Time { looks.Add(1); return y.clock.now() })
	return func(d time.Duration) { y.laterSeen(&looks, d) }
}

// leaseEnds is when the first delivery to a target that is under way is due for other nodes.
func (y *yard) leaseEnds(t hookglass.ForwardingTarget) (at time.Time) {
	y.t.Helper()
	must(y.t, y.db.View(y.t.Context(), hookglass.System, func(v *store.View) error {
		queues, err := v.ForwardQueues()
		for _, q := range queues {
			if q.TargetID == t.ID {
				at = q.FirstAt
			}
		}
		return err
	}))
	return at
}

// inHand are the ways by which a delivery gets into the hands of a node: it starts one with an event to forward.
var inHand = map[string]func(y *yard, node func()){
	"handed over by its capture": func(y *yard, node func()) { node(); y.capture(y.ep, "", "x") },
	"found in the table":         func(y *yard, node func()) { y.capture(y.ep, "", "x"); node() },
}

// Spec: decisions, section 14, "Operation": a dead node's work is taken over within 60 s. The target has a timeout of
// 300 s, which its node has not waited for.
func TestWhatADeadNodeHadInHandIsSentAgainWithinAMinute(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		for name, take := range inHand {
			t.Run(name, func(t *testing.T) {
				_, e := y.tenant(strings.Fields(name)[0] + "@example.com")
				y := &yard{t: t, db: y.db, endpoints: y.endpoints, client: y.client, ep: e, clock: &clock{}, delays: &delays{}}
				asked, buried := make(chan struct{}), make(chan struct{})
				defer close(buried)
				var dead atomic.Bool
				s := newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
					if !dead.Load() {
						close(asked)
						<-buried
					}
					w.WriteHeader(200)
				})
				target := y.target(y.ep, s.URL, 0)
				take(y, func() {
					y.startBy(y.db, func() time.Time {
						if dead.Load() {
							<-buried // it does nothing any more
						}
						return y.clock.now()
					})
				})
				<-asked
				dead.Store(true)
				later := y.startSteadily(y.db)
				for range 4 {
					later(14500 * time.Millisecond) // a node looks every second
				}
				until(t, "the delivery by the other node", y.settledAll(target, 1, hookglass.ForwardDelivered))
			})
		}
	})
}

// Others would send it a second time: a target may take up to 300 s, which is longer than a lease.
func TestTheLeaseOfADeliveryUnderWayIsRenewed(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		for name, take := range inHand {
			t.Run(name, func(t *testing.T) {
				_, e := y.tenant(strings.Fields(name)[0] + "@example.com")
				y := &yard{t: t, db: y.db, endpoints: y.endpoints, client: y.client, ep: e, clock: &clock{}, delays: &delays{}}
				s, asked, answer := heldSink(t)
				target := y.target(y.ep, s.URL, 0)
				take(y, func() { y.start(y.db) })
				<-asked
				for range 4 {
					before := y.leaseEnds(target)
					y.later(20 * time.Second)
					until(t, "the renewal", func() bool { return y.leaseEnds(target).After(before) })
				}
				answer <- 200
				until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
				if d := y.deliveries(target)[0]; len(s.got()) != 1 || len(d.Attempts) != 1 {
					t.Errorf("%d hits, %s", len(s.got()), text(d))
				}
			})
		}
	})
}

// When the database was away for longer than a lease, the node that comes back first must not take what another one has
// under way: its target would get it twice.
func TestAfterTheDatabaseWasAwayANodeHasTheTimeToRenewItsLeases(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s, asked, back := stallingSink(t, 1, 200)
		target := y.target(y.ep, s.URL, 0)
		var away atomic.Bool
		y.startBy(y.db, func() time.Time {
			if away.Load() {
				<-back
			}
			return y.clock.now()
		})
		y.capture(y.ep, "", "x")
		<-asked
		later := y.startSteadily(y.db)
		later(0)
		away.Store(true)
		later(time.Minute)
		close(back)
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
		if len(s.got()) != 1 {
			t.Errorf("%d hits", len(s.got()))
		}
	})
}

// A round goes by the time at which it began. What is taken while the storage keeps it waiting is due later than
// anything could be by that time, and must not be sent a second time.
func TestWhatIsTakenWhileARoundWaitsIsNotTakenBack(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		s := newSink(t, always(200))
		target := y.target(y.ep, s.URL, 0)
		y.capture(y.ep, "", "x")
		var calls atomic.Int64
		now := func() time.Time {
			began := y.clock.now()
			if calls.Add(1) == 1 {
				y.clock.advance(time.Minute)
				err := y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
					_, err := tx.ClaimForwards(target.ID, y.clock.now(), 10, 45*time.Second) // another node
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
			return began
		}
		y.startBy(y.db, now)
		seen := calls.Load()
		until(t, "some rounds", func() bool { return calls.Load() > seen+8 })
		if d := y.deliveries(target)[0]; d.State != hookglass.ForwardSending || len(s.got()) > 0 {
			t.Errorf("%d hits, %s", len(s.got()), text(d))
		}
		for range 2 {
			y.laterSeen(&calls, 23*time.Second)
		}
		until(t, "the delivery", y.settledAll(target, 1, hookglass.ForwardDelivered))
	})
}

func TestWhoHasLostItsLeaseWritesNothing(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		target := y.target(y.ep, "https://a.example.com", 0)
		y.capture(y.ep, "", "x")
		now := time.Now().Add(time.Second)
		claim := func(at time.Time) (c store.ClaimedForward) {
			must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				all, err := tx.ClaimForwards(target.ID, at, 1, time.Minute)
				if len(all) > 0 {
					c = all[0]
				}
				return err
			}))
			return c
		}
		slow := claim(now)
		if again := claim(now.Add(59 * time.Second)); again.Num != 0 {
			t.Fatal("claimed twice")
		}
		quick := claim(now.Add(time.Minute))
		if quick.Num != slow.Num || quick.Lost != 1 {
			t.Fatalf("%+v", quick)
		}
		for _, c := range []struct {
			by  store.ClaimedForward
			end time.Duration
		}{{slow, 2 * time.Minute}, {quick, time.Hour}} {
			must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				return tx.ExtendForwards(map[int64]int64{c.by.Num: c.by.Claim}, now.Add(time.Hour))
			}))
			if end := y.leaseEnds(target); end.Sub(now).Round(time.Second) != c.end {
				t.Errorf("extended by claim %d: the lease ends at %s", c.by.Claim, end)
			}
		}
		for i, c := range []store.ClaimedForward{slow, quick, quick} {
			c.State, c.FinishedAt = hookglass.ForwardDelivered, now
			must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				written, err := tx.SettleForwards([]store.ClaimedForward{c})
				if len(written) != 1 || written[0] != (i == 1) {
					t.Errorf("%d: written %v", i, written)
				}
				return err
			}))
		}
	})
}

// Whoever takes over tells the outcome: nobody else counts a failure, writes a line of activity or pauses the target.
func TestAnOutcomeThatComesTooLateTellsNothing(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		over := make(chan struct{})
		s := newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			<-over
			w.WriteHeader(404)
		})
		target := y.target(y.ep, s.URL, 0)
		stop := y.start(y.db)
		y.capture(y.ep, "", "x")
		until(t, "the request", func() bool { return len(s.got()) == 1 })
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			taken, err := tx.ClaimForwards(target.ID, y.clock.now().Add(time.Hour), 1, time.Hour) // by another node
			if len(taken) != 1 {
				t.Errorf("%d were taken over", len(taken))
			}
			return err
		}))
		close(over)
		stop()
		if d := y.deliveries(target)[0]; d.State != hookglass.ForwardSending || len(d.Attempts) != 0 {
			t.Errorf("the delivery of the other node: %s", text(d))
		}
		if n := y.read(target).Failures; n != 0 || len(y.failures()) != 0 {
			t.Errorf("%d failures are counted, and %d told", n, len(y.failures()))
		}
	})
}
