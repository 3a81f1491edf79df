package delivery_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/endpoint"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// once adds a target to an endpoint that gets a webhook only once within a window.
func (y *yard) once(e hookglass.Endpoint, url string, window time.Duration, retries int64) hookglass.ForwardingTarget {
	y.t.Helper()
	name, by, seconds, timeout := "Target", "id", int64(window/time.Second), int64(300)
	t, err := y.endpoints.CreateForwardingTarget(y.t.Context(), hookglass.System, string(e.ID), endpoint.TargetDraft{Name: &name, URL: &url, RetryCount: &retries, TimeoutSeconds: &timeout, DedupeBy: &by, DedupeSeconds: &seconds})
	must(y.t, err)
	return t
}

// keyed stores an event as reception does, whose key at a target is that of an id.
func (y *yard) keyed(db *store.DB, t hookglass.ForwardingTarget, id string, at time.Time) *hookglass.Event {
	y.t.Helper()
	return y.judged(db, t, id, at, hookglass.SignatureUnchecked)
}

// judged is keyed of an event with a verdict on its signature.
func (y *yard) judged(db *store.DB, t hookglass.ForwardingTarget, id string, at time.Time, status hookglass.SignatureStatus) *hookglass.Event {
	y.t.Helper()
	at = at.UTC().Truncate(time.Microsecond)
	ev := &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, at), EndpointNum: t.EndpointNum, EndpointID: t.EndpointID, Type: hookglass.EventWebhook, ReceivedAt: at,
		Method: "POST", Path: "/x", URL: "https://hooks.example.com/", Proto: "HTTP/1.1", Provider: hookglass.UnknownProvider,
		SignatureStatus: status, Size: int64(len(id)), Status: 200,
		Payload: &hookglass.Payload{Body: []byte(id), Reply: &hookglass.Reply{Status: 200, Source: hookglass.SourceDefault}},
	}
	work := store.Work{Forward: true, Keys: []store.TargetKey{{TargetID: t.ID, Key: hookglass.DedupeID.Key([]byte(id))}}}
	must(y.t, db.CaptureWith(y.t.Context(), y.owner.Account.ID, ev, work))
	return ev
}

// of returns the delivery of an event to a target.
func (y *yard) of(t hookglass.ForwardingTarget, ev *hookglass.Event) hookglass.Forward {
	y.t.Helper()
	all := y.deliveries(t)
	i := slices.IndexFunc(all, func(f hookglass.Forward) bool { return f.EventID == ev.ID })
	if i < 0 {
		y.t.Fatalf("no delivery of %s", ev.ID)
	}
	return all[i]
}

// becomes waits until the delivery of an event to a target has a state.
func (y *yard) becomes(t hookglass.ForwardingTarget, ev *hookglass.Event, state hookglass.ForwardState) (f hookglass.Forward) {
	y.t.Helper()
	until(y.t, string(state)+" of "+string(ev.Body), func() bool { f = y.of(t, ev); return f.State == state })
	return f
}

// skippedFor checks that the delivery of an event is skipped because of another one.
func (y *yard) skippedFor(t hookglass.ForwardingTarget, ev, first *hookglass.Event) {
	y.t.Helper()
	if f := y.becomes(t, ev, hookglass.ForwardSkipped); f.SameAs != first.ID || len(f.Attempts) != 0 || f.FinishedAt.IsZero() {
		y.t.Errorf("the delivery of a duplicate of %s: %+v", first.ID, f)
	}
}

func bodies(hits []hit) (all []string) {
	for _, h := range hits {
		all = append(all, h.body)
	}
	return all
}

func TestATargetGetsAWebhookOnlyOnce(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to, all := newSink(t, always(200)), newSink(t, always(200))
		var skipped sync.Map
		target, other := y.once(y.ep, to.URL, time.Hour, 0), y.target(y.ep, all.URL, 0)
		y.skipped = func() { skipped.Store(time.Now(), nil) }
		y.start(y.db)
		now := time.Now()
		first := y.keyed(y.db, target, "a", now)
		y.becomes(target, first, hookglass.ForwardDelivered)
		second, another := y.keyed(y.db, target, "a", now), y.keyed(y.db, target, "b", now)
		y.skippedFor(target, second, first)
		y.becomes(target, another, hookglass.ForwardDelivered)
		y.skippedFor(target, y.keyed(y.db, target, "a", now), first)
		none := y.capture(y.ep, "", "none") // nothing identifies it
		y.becomes(target, none, hookglass.ForwardDelivered)
		y.becomes(target, y.capture(y.ep, "", "none"), hookglass.ForwardDelivered)
		until(t, "the other target", y.settledAll(other, 6, hookglass.ForwardDelivered))
		if got := bodies(to.got()); fmt.Sprint(got) != "[a b none none]" {
			t.Errorf("it got %v", got)
		}
		n := 0
		skipped.Range(func(any, any) bool { n++; return true })
		if n != 2 {
			t.Errorf("%d skipped deliveries were counted", n)
		}
	})
}

func TestAWebhookIsTheSameWithinTheWindow(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to := newSink(t, always(200))
		target := y.once(y.ep, to.URL, time.Minute, 0)
		y.start(y.db)
		now := time.Now()
		first := y.keyed(y.db, target, "a", now)
		y.becomes(target, first, hookglass.ForwardDelivered)
		y.skippedFor(target, y.keyed(y.db, target, "a", now.Add(time.Minute-time.Microsecond)), first)
		next := y.keyed(y.db, target, "a", now.Add(time.Minute)) // not of the one that was skipped just before
		y.becomes(target, next, hookglass.ForwardDelivered)
		y.skippedFor(target, y.keyed(y.db, target, "a", now.Add(2*time.Minute-time.Microsecond)), next)
		// A clock that went back far, or an event that was captured under a wrong one.
		y.becomes(target, y.keyed(y.db, target, "a", now.Add(-time.Minute)), hookglass.ForwardDelivered)

		longer := int64(3600)
		y.change(target, endpoint.TargetDraft{DedupeSeconds: &longer})
		if f := y.becomes(target, y.keyed(y.db, target, "a", now.Add(30*time.Minute)), hookglass.ForwardSkipped); f.SameAs == "" {
			t.Errorf("within a longer window: %+v", f)
		}
	})
}

// If the first fails, the sender's next try is sent. A third one waits for that.
func TestADuplicateIsTheSecondChanceOfOneThatFails(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to, asked, answer := heldSink(t)
		target := y.once(y.ep, to.URL, time.Hour, 0)
		y.start(y.db)
		now := time.Now()
		first := y.keyed(y.db, target, "a", now)
		<-asked
		second, third := y.keyed(y.db, target, "a", now), y.keyed(y.db, target, "a", now)
		for _, ev := range []*hookglass.Event{second, third} {
			until(t, "waiting for the first", func() bool {
				f := y.of(target, ev)
				return f.State == hookglass.ForwardPending && f.SameAs == first.ID && f.NextAt.After(now)
			})
		}
		answer <- 400
		<-asked
		if f := y.becomes(target, first, hookglass.ForwardFailed); f.SameAs != "" {
			t.Errorf("the first: %+v", f)
		}
		until(t, "waiting for the second", func() bool {
			a, b := y.of(target, second), y.of(target, third)
			return a.State == hookglass.ForwardSending && b.State == hookglass.ForwardPending && b.SameAs == second.ID
		})
		answer <- 200
		if f := y.becomes(target, second, hookglass.ForwardDelivered); f.SameAs != "" {
			t.Errorf("the second: %+v", f)
		}
		y.skippedFor(target, third, second)
		y.skippedFor(target, y.keyed(y.db, target, "a", now), second)

		// People send the first again: it is no duplicate of the second.
		_, err := y.endpoints.ResendDelivery(t.Context(), hookglass.System, string(y.ep.ID), target.ID, first.ID)
		must(t, err)
		<-asked
		answer <- 200
		y.becomes(target, first, hookglass.ForwardDelivered)
		if n := len(to.got()); n != 3 {
			t.Errorf("%d requests", n)
		}
		// What was skipped is not sent again, and says why.
		_, err = y.endpoints.ResendDelivery(t.Context(), hookglass.System, string(y.ep.ID), target.ID, third.ID)
		if !hookglass.Is(err, hookglass.CodeConflict) {
			t.Errorf("sending a duplicate again: %v", err)
		}
	})
}

// heldSink is a target that says when it is asked, and answers with the status that it is given then.
func heldSink(t *testing.T) (to *sink, asked chan struct{}, answer chan int) {
	asked, answer = make(chan struct{}), make(chan int)
	to = newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		w.WriteHeader(<-answer)
	})
	return to, asked, answer
}

// allWaitFor waits until all other deliveries of a target wait for another, and are looked at again in half a minute at
// the earliest.
func (y *yard) allWaitFor(target hookglass.ForwardingTarget, first *hookglass.Event) {
	until(y.t, "waiting for the first", func() bool {
		for _, f := range y.deliveries(target) {
			if f.EventID != first.ID && (f.SameAs == "" || !f.NextAt.After(y.clock.now().Add(30*time.Second))) {
				return false
			}
		}
		return true
	})
}

// When the first arrives, all that wait for it are skipped promptly, however long they have waited: each that is
// skipped wakes the next. Those that fail wake one that is sent, and the others go on to wait for that.
func TestDuplicatesDoNotWaitForLongOnceTheFirstHasArrived(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to, asked, answer := heldSink(t)
		target := y.once(y.ep, to.URL, time.Hour, 0)
		y.start(y.db)
		now := time.Now()
		first := y.keyed(y.db, target, "a", now)
		<-asked
		y.clock.advance(2 * time.Minute) // by the node's clock they have waited for so long; its lease is renewed
		second := y.keyed(y.db, target, "a", now)
		var same []*hookglass.Event
		for range 40 {
			same = append(same, y.keyed(y.db, target, "a", now))
		}
		y.allWaitFor(target, first)
		for _, f := range y.deliveries(target) {
			if f.EventID != first.ID && f.SameAs != first.ID {
				t.Errorf("%s waits for %s", f.EventID, f.SameAs)
			}
		}
		elapsed := storetest.Watch(t)
		answer <- 400
		<-asked
		y.becomes(target, first, hookglass.ForwardFailed)
		answer <- 200
		y.becomes(target, second, hookglass.ForwardDelivered)
		for _, ev := range same {
			y.skippedFor(target, ev, second)
		}
		if took := elapsed(); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := len(to.got()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// Nodes store events in another order than they received them. The first is what was stored first, and those behind it
// are woken in that order, too: otherwise one would be woken that waits for another.
func TestDuplicatesAreWokenInTheOrderInWhichTheyWereStored(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to, asked, answer := heldSink(t)
		target := y.once(y.ep, to.URL, time.Hour, 0)
		y.start(y.db)
		now := time.Now()
		first := y.keyed(y.db, target, "a", now)
		<-asked
		y.clock.advance(2 * time.Minute)
		var same []*hookglass.Event // the later stored, the earlier received
		for i := range 20 {
			same = append(same, y.keyed(y.db, target, "a", now.Add(-time.Duration(i+1)*time.Second)))
		}
		y.allWaitFor(target, first)
		elapsed := storetest.Watch(t)
		answer <- 400
		<-asked // by the one that was stored next
		answer <- 200
		y.becomes(target, same[0], hookglass.ForwardDelivered)
		for _, ev := range same[1:] {
			y.skippedFor(target, ev, same[0])
		}
		if took := elapsed(); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// What failed and is sent again by people is the first of nothing: any number may fail with one key, and no look-up
// reads them.
func TestWhatFailedIsNotTheFirstWhenSentAgain(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to, up := newSinkAway(t)
		target := y.once(y.ep, to.URL, time.Hour, 0)
		y.start(y.db)
		now := time.Now()
		first := y.keyed(y.db, target, "a", now)
		y.becomes(target, first, hookglass.ForwardFailed)
		up.Store(true)
		_, err := y.endpoints.ResendDelivery(t.Context(), hookglass.System, string(y.ep.ID), target.ID, first.ID)
		must(t, err)
		y.becomes(target, first, hookglass.ForwardDelivered)
		next := y.keyed(y.db, target, "a", now)
		y.becomes(target, next, hookglass.ForwardDelivered)
		y.skippedFor(target, y.keyed(y.db, target, "a", now), next)
	})
}

// What failed, was skipped or was deleted is not the first of anything.
func TestOnlyWhatArrivesHasDuplicates(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to, up := newSinkAway(t)
		target := y.once(y.ep, to.URL, time.Hour, 0)
		no, yes := false, true
		now := time.Now()
		y.start(y.db)
		failed := y.keyed(y.db, target, "failed", now)
		y.becomes(target, failed, hookglass.ForwardFailed)
		up.Store(true)

		y.change(target, endpoint.TargetDraft{Paused: &yes})
		left := y.keyed(y.db, target, "skipped", now)
		y.change(target, endpoint.TargetDraft{Enabled: &no})
		y.becomes(target, left, hookglass.ForwardSkipped)
		y.change(target, endpoint.TargetDraft{Enabled: &yes})

		gone := y.keyed(y.db, target, "deleted", now)
		y.becomes(target, gone, hookglass.ForwardDelivered)
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEvent(string(y.ep.ID), string(gone.ID)) }))

		for _, id := range []string{"failed", "skipped", "deleted"} {
			y.becomes(target, y.keyed(y.db, target, id, now), hookglass.ForwardDelivered)
		}
		// All that was captured is deleted, and not erased yet.
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { _, err := tx.DeleteAllEvents(string(y.ep.ID)); return err }))
		y.becomes(target, y.keyed(y.db, target, "failed", now), hookglass.ForwardDelivered)
		if n := len(to.got()); n != 6 {
			t.Errorf("%d requests", n)
		}
	})
}

// Whoever guesses the id of a webhook and cannot sign does not take its place.
func TestAWrongSignatureIsTheFirstOfNothing(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to := newSink(t, always(200))
		target := y.once(y.ep, to.URL, time.Hour, 0)
		y.start(y.db)
		now := time.Now()
		forged := y.judged(y.db, target, "a", now, hookglass.SignatureFailed)
		y.becomes(target, forged, hookglass.ForwardDelivered)
		meant := y.judged(y.db, target, "a", now, hookglass.SignatureVerified)
		y.becomes(target, meant, hookglass.ForwardDelivered)
		y.skippedFor(target, y.judged(y.db, target, "a", now, hookglass.SignatureVerified), meant)
	})
}

// A node dies while it has the first, and nobody knows whether that was sent. The duplicate waits until another node
// has sent it again.
func TestADuplicateWaitsForTheFirstOfANodeThatDied(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to := newSink(t, always(200))
		target := y.once(y.ep, to.URL, time.Hour, 0)
		now := time.Now()
		first := y.keyed(y.db, target, "a", now)
		must(t, y.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			claimed, err := tx.ClaimForwards(target.ID, time.Now().Add(time.Second), 10, 30*time.Second)
			if err == nil && len(claimed) != 1 {
				err = fmt.Errorf("%d deliveries were claimed", len(claimed))
			}
			return err
		}))
		second := y.keyed(y.db, target, "a", now)
		y.start(y.db)
		until(t, "waiting for the first", func() bool { return y.of(target, second).SameAs == first.ID })
		if n := len(to.got()); n != 0 {
			t.Errorf("%d requests before the lease ended", n)
		}
		y.clock.advance(time.Minute + time.Second)
		y.becomes(target, first, hookglass.ForwardDelivered)
		y.clock.advance(time.Minute + time.Second) // if it was judged before that
		y.skippedFor(target, second, first)
		if n := len(to.got()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// Once the setting is gone, what waits goes.
func TestWithoutTheSettingEveryWebhookIsSent(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		asked, answer := make(chan struct{}, 10), make(chan int, 10)
		to := newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			asked <- struct{}{}
			w.WriteHeader(<-answer)
		})
		target := y.once(y.ep, to.URL, time.Hour, 0)
		y.start(y.db)
		now := time.Now()
		first := y.keyed(y.db, target, "a", now)
		<-asked
		second := y.keyed(y.db, target, "a", now)
		until(t, "waiting for the first", func() bool { return y.of(target, second).SameAs == first.ID })
		none := ""
		y.change(target, endpoint.TargetDraft{DedupeBy: &none})
		if d := y.read(target).Dedupe; d.On() || d.Window != 0 {
			t.Errorf("the setting: %+v", d)
		}
		y.clock.advance(2 * time.Minute) // it is looked at again
		<-asked
		answer <- 200
		answer <- 200
		y.becomes(target, first, hookglass.ForwardDelivered)
		y.becomes(target, second, hookglass.ForwardDelivered)
	})
}

// Two nodes capture duplicates at the same instant, in groups of all sizes, and one of each is sent. Nodes die and
// others go on.
func TestNodesSendOneOfAllDuplicates(t *testing.T) {
	dsn := storetest.Migrated(t)
	y := newYard(t, storetest.Open(t, store.Config{URL: dsn}))
	other := storetest.Open(t, store.Config{URL: dsn})
	to := newSink(t, func(_ int, w http.ResponseWriter, _ *http.Request) { time.Sleep(time.Millisecond) })
	target := y.once(y.ep, to.URL, time.Hour, 3)
	one, two := y.start(y.db), y.start(other)
	const ids, copies = 40, 5
	now := time.Now()
	send := func(from, to int) {
		var sending sync.WaitGroup
		for i := from; i < to; i++ {
			for c := range copies {
				db := y.db
				if c%2 == 1 {
					db = other
				}
				sending.Go(func() { y.keyed(db, target, fmt.Sprint(i), now) })
			}
		}
		sending.Wait()
	}
	send(0, ids/2)
	one() // a node stops, and hands back what it has
	two()
	y.start(y.db)
	y.start(other)
	send(ids/2, ids)
	until(t, "one of each", y.settledAll(target, ids, hookglass.ForwardDelivered))
	until(t, "skipping the others", y.settledAll(target, ids*(copies-1), hookglass.ForwardSkipped))
	if n := len(to.got()); n != ids {
		t.Errorf("%d requests of %d webhooks", n, ids)
	}
}

// A target may have a rate limit too: turns in which duplicates are skipped are not lost.
func TestDuplicatesUseNoTurns(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		to := newSink(t, always(200))
		target := y.once(y.ep, to.URL, time.Hour, 0)
		y.bound(target, 30, "minute")
		now := time.Now()
		first := y.keyed(y.db, target, "a", now)
		var same []*hookglass.Event
		for range 20 {
			same = append(same, y.keyed(y.db, target, "a", now))
		}
		last := y.keyed(y.db, target, "b", now)
		y.start(y.db)
		y.becomes(target, first, hookglass.ForwardDelivered)
		elapsed := storetest.Watch(t)
		for _, ev := range same {
			y.skippedFor(target, ev, first)
		}
		y.becomes(target, last, hookglass.ForwardDelivered)
		if took := elapsed(); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
