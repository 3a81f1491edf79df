package capture_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// However much is due, a purge has an end, and the next goes on: it is not the only thing that its job is for. How much
// one takes depends on how long the last one took.
func TestAPurgeLeavesTheRestToTheNext(t *testing.T) {
	const all, most = 1_100, 500 // events: three pieces or more
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		other, _, err := b.endpoints.CreateTemporary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.past(other) // which has waited for longer
		for range all {
			b.past(b.ep)
		}
		b.captures.SetPurgeTime(0)
		purge := func() (left int64) {
			t.Helper()
			if err := b.captures.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			if m := b.count(other); m != 0 {
				t.Errorf("%d events are left of what comes first, want none", m)
			}
			return b.count(b.ep)
		}
		left := purge()
		if left != all {
			t.Fatalf("%d events are left after the first purge, whose time was over with the other endpoint, want %d", left, all)
		}
		for left > 0 {
			now := purge()
			if now >= left || left-now > most {
				t.Fatalf("%d of %d events are left, want 1 to %d fewer", now, left, most)
			}
			left = now
		}
	})
}

// past captures an event that is past its retention.
func (b *bench) past(e hookglass.Endpoint) {
	b.t.Helper()
	at := time.Now().Add(-2 * time.Hour)
	ev := &hookglass.Event{
		ID: hookglass.NewEventID(hookglass.EventWebhook, at), EndpointNum: e.Num, EndpointID: e.ID, Type: hookglass.EventWebhook, ReceivedAt: at, Method: "POST", Path: "/",
		URL: "http://x/", Proto: "HTTP/1.1", Provider: hookglass.UnknownProvider, SignatureStatus: hookglass.SignatureUnchecked,
		Payload: &hookglass.Payload{Reply: &hookglass.Reply{Status: 200, Source: hookglass.SourceDefault}},
	}
	if err := b.db.Capture(b.t.Context(), 0, ev); err != nil {
		b.t.Fatal(err)
	}
}

// count is how many events an endpoint has.
func (b *bench) count(e hookglass.Endpoint) (n int64) {
	b.t.Helper()
	err := b.db.View(b.t.Context(), hookglass.System, func(v *store.View) error {
		now, err := v.Endpoint(string(e.ID))
		n = now.EventCount
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// An endpoint of which much is due does not keep others from being purged in time.
func TestEndpointsArePurgedInTurns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		other, _, err := b.endpoints.CreateTemporary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 1_100 { // three pieces
			b.past(b.ep)
		}
		b.past(other)
		ctx, stop := context.WithCancel(t.Context())
		watched := db.Watch(store.TopicEvents(other.Num), func() { // also when its capture is told of late
			var left hookglass.Endpoint
			err := db.View(context.Background(), hookglass.System, func(v *store.View) (err error) {
				left, err = v.Endpoint(string(other.ID))
				return err
			})
			if err == nil && left.EventCount == 0 {
				stop() // what comes next finds the context ended
			}
		})
		if err := b.captures.Purge(ctx); !hookglass.Is(err, hookglass.CodeUnavailable) {
			t.Error(err)
		}
		watched.Close()
		if n, m := b.count(b.ep), b.count(other); n != 600 || m != 0 {
			t.Errorf("%d and %d events are left when the second endpoint was purged", n, m)
		}
		if err := b.captures.Purge(t.Context()); err != nil || b.count(b.ep) != 0 {
			t.Errorf("%v, and %d events are left", err, b.count(b.ep))
		}
	})
}

// An endpoint that cannot be expired keeps neither the others, nor what is past its retention. The error names it.
func TestAnEndpointThatCannotBeExpiredLeavesTheRest(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		made := make([]hookglass.Endpoint, 3)
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			for i := range made {
				made[i] = hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "over", Kind: hookglass.KindWebhook, Enabled: true, ExpiresAt: tx.Now.Add(-time.Minute)}
				if err := tx.CreateEndpoint(&made[i], nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		kept, _, err := b.endpoints.CreateTemporary(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.past(kept)
		b.captures.SetExpire(func(tx *store.Tx, num int64) error {
			if num == made[0].Num {
				return errors.New("a fault")
			}
			return tx.ExpireEndpoint(num)
		})
		if err := b.captures.Purge(t.Context()); err == nil || err.Error() != fmt.Sprintf("expire endpoint %d: store: a fault", made[0].Num) {
			t.Error(err)
		}
		var left []int64
		err = db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
			left, err = v.EndpointsDue(time.Now(), 10)
			return err
		})
		if err != nil || !slices.Equal(left, []int64{made[0].Num}) || b.count(kept) != 0 {
			t.Errorf("%v: %v are left, and %d events", err, left, b.count(kept))
		}
	})
}

// A claim that began before the end, and was made after the purge had found the endpoint due, is not undone.
func TestAnEndpointThatIsClaimedAtItsEndStays(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		e := hookglass.Endpoint{ID: hookglass.NewEndpointID(), Name: "over", Kind: hookglass.KindWebhook, Enabled: true}
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			e.ExpiresAt = tx.Now.Add(-time.Minute)
			return tx.CreateEndpoint(&e, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		claimed := false
		b.captures.SetExpire(func(tx *store.Tx, num int64) error {
			e.ExpiresAt, claimed = time.Time{}, true
			if err := tx.SaveEndpoint(&e); err != nil {
				return err
			}
			return tx.ExpireEndpoint(num)
		})
		if err := b.captures.Purge(t.Context()); err != nil || !claimed {
			t.Fatal(err, claimed)
		}
		err = db.View(t.Context(), hookglass.System, func(v *store.View) error {
			_, err := v.Endpoint(string(e.ID))
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A purge takes all that is past its retention: lines of the feed, counters of attempts and incidents too.
func TestAPurgeIsOfMoreThanEvents(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(t, db)
		a, key := hookglass.Alert{ID: "alrt_1", EndpointNum: b.ep.Num, Name: "A word", Kind: hookglass.AlertKeywordMatch, Enabled: true}, hookglass.DeliveryKey{1}
		attempts := 0
		for _, age := range []time.Duration{2 * time.Hour, 0} {
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				tx.Now = tx.Now.Add(-age)
				if a.Num == 0 {
					if err := tx.CreateAlert(&a, nil); err != nil {
						return err
					}
				}
				for _, a.State = range []hookglass.AlertState{hookglass.AlertOK, hookglass.AlertTriggered} { // it opens, and is over
					if _, _, err := tx.TurnAlert(a, hookglass.Incident{ID: fmt.Sprint("inc_", age), Summary: "It came."}); err != nil {
						return err
					}
				}
				n, err := tx.NextAttempt(b.ep.Num, key, "500,200")
				attempts = int(n)
				return errors.Join(err, tx.AddActivity(hookglass.Activity{Type: hookglass.ActivityForwardingFailed, OccurredAt: tx.Now, EndpointID: b.ep.ID}))
			})
			if err == nil {
				err = b.captures.Purge(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		err := db.View(t.Context(), hookglass.Principal{Endpoint: b.ep.ID}, func(v *store.View) error {
			lines, err := v.Activity("", time.Time{}, 10)
			if err != nil {
				return err
			}
			incidents, err := v.Incidents(string(b.ep.ID), a.ID, 0, 10)
			if len(lines) != 1 || len(incidents) != 1 || attempts != 1 {
				t.Errorf("%d lines and %d incidents are left, and the next attempt is number %d, want 1 of each", len(lines), len(incidents), attempts)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
