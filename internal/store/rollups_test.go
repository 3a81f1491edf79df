package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// week returns the figures of an endpoint over the last seven days, added up.
func week(tb testing.TB, db *store.DB, e hookglass.Endpoint) (all hookglass.Figures) {
	tb.Helper()
	to := time.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	err := db.View(tb.Context(), hookglass.System, func(v *store.View) error {
		steps, err := v.FiguresByStep(e.Num, to.Add(-7*24*time.Hour), to, time.Hour)
		for _, f := range steps {
			all.Add(*f)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// rollUp rolls up all there is.
func rollUp(tb testing.TB, db *store.DB) {
	tb.Helper()
	for more := true; more; {
		update(tb, db, func(tx *store.Tx) (err error) {
			more, err = tx.RollUp(200)
			return err
		})
	}
}

func update(tb testing.TB, db *store.DB, fn func(*store.Tx) error) {
	tb.Helper()
	if err := db.Update(tb.Context(), hookglass.System, fn); err != nil {
		tb.Fatal(err)
	}
}

func TestARollUpCountsSoManyEventsAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		several(t, db, e, 5)
		for _, want := range []bool{true, true, false} {
			update(t, db, func(tx *store.Tx) error {
				more, err := tx.RollUp(2)
				if more != want {
					t.Errorf("there is more: %v", more)
				}
				return err
			})
		}
		if all := week(t, db, e); all.Counted() != 5 {
			t.Errorf("%d are counted", all.Counted())
		}
	})
}

// Figures are the same before a roll-up and after it, whatever was done to the events meanwhile; they count what
// arrived, also what was deleted.
func TestFiguresAreExactWhenRolledUpOrNot(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		var events []*hookglass.Event
		for i := range 6 {
			event := newEvent(e, "12345")
			if event.Provider = "stripe"; i%2 == 1 {
				event.SignatureStatus = hookglass.SignatureFailed
			}
			if err := db.Capture(t.Context(), 0, event); err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
			update(t, db, func(tx *store.Tx) error {
				return tx.AddOutcomes(hookglass.Outcome{EndpointNum: e.Num, EventSeq: event.Seq, Source: hookglass.OutcomeTarget, At: event.ReceivedAt,
					Took: time.Duration(i+1) * time.Millisecond, StatusCode: 500, Final: hookglass.OutcomeFailed})
			})
		}
		want := func(when string, ignored, forged, failed int64) {
			t.Helper()
			f := week(t, db, e)
			d := f.Deliveries[string(hookglass.OutcomeTarget)]
			if f.Events != 6 || f.Bytes != 30 || f.Providers["stripe"] != 6 || f.Signatures["failed"] != 3 || f.Ignored != ignored || f.Forged != forged || d.Failed != failed || d.Bad != failed {
				t.Errorf("%s: %+v", when, f)
			}
		}
		ignore := func(i int, reason string) {
			update(t, db, func(tx *store.Tx) error { return tx.SetIgnored(string(e.ID), string(events[i].ID), reason) })
		}
		want("nothing is rolled up", 0, 3, 6)
		ignore(1, "noise")
		want("one is ignored before", 1, 2, 5)
		rollUp(t, db)
		want("rolled up", 1, 2, 5)
		ignore(3, "noise")
		want("another is ignored after", 2, 1, 4)
		ignore(3, "test")
		want("for another reason", 2, 1, 4)
		ignore(1, "")
		want("the first no longer", 1, 2, 5)
		update(t, db, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), string(events[0].ID)) })
		want("one is deleted", 1, 2, 5)

		late := newEvent(e, "12345")
		if err := db.Capture(t.Context(), 0, late); err != nil {
			t.Fatal(err)
		}
		update(t, db, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), string(late.ID)) })
		if f := week(t, db, e); f.Events != 7 {
			t.Errorf("one that was deleted before it was rolled up: %+v", f)
		}
		update(t, db, func(tx *store.Tx) error { _, err := tx.DeleteAllEvents(string(e.ID)); return err })
		rollUp(t, db)
		rollUp(t, db)
		if f := week(t, db, e); f.Events != 7 {
			t.Errorf("all were deleted: %+v", f)
		}
	})
}

// An ignored event counts in no figure of deliveries and in no alert, also once it is gone, whether its deliveries had
// been rolled up by then or not.
func TestWhatWasIgnoredCountsNowhereOnceItIsErased(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		for i, rolled := range []bool{false, true, false} {
			event := newEvent(e, "12345")
			if err := db.Capture(t.Context(), 0, event); err != nil {
				t.Fatal(err)
			}
			update(t, db, func(tx *store.Tx) error {
				return tx.AddOutcomes(hookglass.Outcome{EndpointNum: e.Num, EventSeq: event.Seq, Source: hookglass.OutcomeTarget, At: event.ReceivedAt,
					StatusCode: 500, Final: hookglass.OutcomeFailed})
			})
			if rolled {
				rollUp(t, db)
			}
			if i == 2 {
				continue // the last is not ignored: it counts, gone or not
			}
			update(t, db, func(tx *store.Tx) error { return tx.SetIgnored(string(e.ID), string(event.ID), "noise") })
		}
		want := func(when string) {
			t.Helper()
			if d := week(t, db, e).Deliveries[string(hookglass.OutcomeTarget)]; d.Failed != 1 || d.Bad != 1 {
				t.Errorf("%s, figures: %+v", when, d)
			}
			err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
				n, err := v.BadDeliveries(e.Num, time.Now().Add(-time.Hour), 10)
				if n != 1 {
					t.Errorf("%s, alerts count %d", when, n)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		another := newEndpoint(t, db)
		update(t, db, func(tx *store.Tx) error {
			return tx.AddOutcomes(hookglass.Outcome{EndpointNum: another.Num, EventSeq: 4711, Source: hookglass.OutcomeTarget, At: time.Now(), StatusCode: 500, Final: hookglass.OutcomeFailed})
		})
		want("all are there")
		update(t, db, func(tx *store.Tx) error { _, err := tx.DeleteAllEvents(string(e.ID)); return err })
		for done := false; !done; {
			update(t, db, func(tx *store.Tx) (err error) { done, err = tx.EraseEvents(e.Num); return err })
		}
		want("all are gone")
		rollUp(t, db)
		want("all are gone, and rolled up")
	})
}

// An endpoint that is gone has no figures, also where attempts were not rolled up by then.
func TestADeletedEndpointLeavesNoFigures(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		attempt := func() {
			event := newEvent(e, "12345")
			if err := db.Capture(t.Context(), 0, event); err != nil {
				t.Fatal(err)
			}
			update(t, db, func(tx *store.Tx) error {
				return tx.AddOutcomes(hookglass.Outcome{EndpointNum: e.Num, EventSeq: event.Seq, Source: hookglass.OutcomeTarget, At: event.ReceivedAt,
					StatusCode: 200, Final: hookglass.OutcomeDelivered})
			})
		}
		attempt()
		rollUp(t, db)
		attempt()
		update(t, db, func(tx *store.Tx) error { return tx.DeleteEndpoint(&e) })
		for done := false; !done; {
			update(t, db, func(tx *store.Tx) (err error) { done, err = tx.EraseEvents(e.Num); return err })
		}
		rollUp(t, db)
		err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
			n, err := v.Ints("SELECT count(*) FROM rollups WHERE endpoint = $1", e.Num)
			if err == nil && n[0] != 0 {
				t.Errorf("%d rows of figures are left", n[0])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// Two nodes that roll up at the same time count everything once.
// What a sender was answered is known for some events only when they are in the figures already: a local machine took
// its time.
// Totals of actions are a row an hour of each status, so they go when figures by hours go.
func TestTotalsOfActionsAreKeptAsLongAsFigures(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, other := newEndpoint(t, db), newEndpoint(t, db)
		const day = 24 * time.Hour
		total := func(e hookglass.Endpoint, ago time.Duration) store.ActionCount {
			return store.ActionCount{EndpointNum: e.Num, At: time.Now().Add(-ago), ActionTotals: hookglass.ActionTotals{Runs: map[hookglass.RunStatus]int64{hookglass.ActionRunCompleted: 1}}}
		}
		update(t, db, func(tx *store.Tx) error {
			return tx.AddActionTotals(total(e, 500*day), total(e, 401*day), total(e, 399*day), total(other, 401*day), total(other, 0))
		})
		update(t, db, func(tx *store.Tx) error {
			more, err := tx.PurgeFigures()
			if more {
				t.Error("there is more to delete")
			}
			return err
		})
		update(t, db, func(tx *store.Tx) error {
			var ages []int64
			err := tx.EachInt("SELECT DISTINCT hour FROM action_totals ORDER BY hour", nil, func(hour int64) error {
				ages = append(ages, int64(time.Since(time.Unix(hour*3600, 0))/day))
				return nil
			})
			if !slices.Equal(ages, []int64{399, 0}) {
				t.Errorf("totals of %v days ago are kept, want those of 399 and 0", ages)
			}
			return err
		})
	})
}

func TestFiguresHaveTheAnswersThatWereGiven(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		var events []*hookglass.Event
		for range 3 {
			event := newEvent(e, "12345")
			event.Payload.Reply = &hookglass.Reply{Status: 200, Source: hookglass.SourceDefault}
			if err := db.Capture(t.Context(), 0, event); err != nil {
				t.Fatal(err)
			}
			events = append(events, event)
		}
		answer := func(i, status int) {
			update(t, db, func(tx *store.Tx) error {
				return tx.SetReply(events[i], &hookglass.Reply{Status: status, Source: hookglass.SourceTunnel})
			})
		}
		answer(0, 201)
		rollUp(t, db)
		answer(1, 503)
		if f := week(t, db, e); fmt.Sprint(f.Statuses) != "map[200:1 201:1 503:1]" || f.Events != 3 {
			t.Errorf("%d events, answered %v", f.Events, f.Statuses)
		}
		for _, event := range events {
			update(t, db, func(tx *store.Tx) error { return tx.SetIgnored(string(e.ID), string(event.ID), "noise") })
		}
		update(t, db, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), string(events[2].ID)) })
		answer(2, 500) // which is gone
		if f := week(t, db, e); fmt.Sprint(f.Statuses) != "map[200:1 201:1 503:1]" || f.Events != 3 || f.Ignored != 3 {
			t.Errorf("%d events, answered %v, %d ignored", f.Events, f.Statuses, f.Ignored)
		}
	})
}

func TestNothingIsRolledUpTwice(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		floodWith(t, db, 3_000, func(int) *hookglass.Event { return newEvent(e, "x") })
		done := make(chan error)
		for range 4 {
			go func() {
				var err error
				for more := true; more && err == nil; {
					err = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) (err error) {
						more, err = tx.RollUp(200)
						return err
					})
				}
				done <- err
			}()
		}
		for range 4 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if f := week(t, db, e); f.Events != 3_000 {
			t.Errorf("%d events are counted", f.Events)
		}
	})
}

// What senders choose cannot make figures grow without bound.
func TestNamesInFiguresAreBounded(t *testing.T) {
	var f hookglass.Figures
	for i := range 1_000 {
		f.AddEvent(&hookglass.Event{EventType: fmt.Sprintf("type.%d", i), Provider: "unknown"}, 1)
	}
	if n := len(f.EventTypes); n > 201 || f.EventTypes[hookglass.OtherName] != 800 {
		t.Errorf("there are %d names, and %d others", n, f.EventTypes[hookglass.OtherName])
	}
}

func TestQuantilesAreRightToThreePercent(t *testing.T) {
	var d hookglass.Figures
	for ms := 1; ms <= 1_000; ms++ {
		d.AddOutcome(hookglass.Outcome{Source: hookglass.OutcomeTarget, StatusCode: 200, Took: time.Duration(ms) * time.Millisecond}, 1)
	}
	for q, want := range map[float64]float64{0.5: 500, 0.95: 950, 0.99: 990} {
		got := float64(d.Deliveries[string(hookglass.OutcomeTarget)].Quantile(q).Microseconds()) / 1000
		if got < want*0.97 || got > want*1.03 {
			t.Errorf("the quantile %v is %v ms, want %v", q, got, want)
		}
	}
	if (hookglass.Deliveries{}).Quantile(0.5) != 0 {
		t.Error("nothing has a quantile")
	}
}

// BenchmarkFiguresOfAWeek reads a week by hours of an endpoint that received 1,000,000 events in it.
func BenchmarkFiguresOfAWeek(b *testing.B) {
	const n = 1_000_000
	for name, open := range map[string]func(testing.TB) *store.DB{
		"sqlite":   storetest.SQLite,
		"postgres": func(tb testing.TB) *store.DB { return storetest.Open(tb, store.Config{URL: storetest.Migrated(tb)}) },
	} {
		b.Run(name, func(b *testing.B) {
			db := open(b)
			e := newEndpoint(b, db)
			began := time.Now().Add(-6*24*time.Hour - 22*time.Hour).UnixMicro()
			for first := 0; first < n; first += 100_000 {
				update(b, db, func(tx *store.Tx) error {
					return tx.Exec(`WITH RECURSIVE g (i) AS (SELECT cast($1 AS bigint) + 1 UNION ALL SELECT i + 1 FROM g WHERE i < cast($1 AS bigint) + 100000)
						INSERT INTO events (seq, id, endpoint, type, received_at, method, path, raw_query, size, provider, event_type, signature_status, status)
						SELECT i, 'req_' || i, $2, 'webhook', cast($3 AS bigint) + i * 590000, 'POST', '/', '', 1000, 'p' || (i % 10), 't' || (i % 40), 'verified', 200 FROM g`,
						first, e.Num, began)
				})
			}
			rolled := time.Now()
			rollUp(b, db)
			b.ReportMetric(float64(n)/time.Since(rolled).Seconds(), "rolled/s")
			if f := week(b, db, e); f.Events != n {
				b.Fatalf("%d events are counted", f.Events)
			}
			for b.Loop() {
				week(b, db, e)
			}
		})
	}
}

// A delivery may end when its endpoint is gone already, and leaves nothing behind.
func TestADeletedEndpointHasNoFigures(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		event := several(t, db, e, 1)[0]
		rollUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.DeleteEndpoint(&e) })
		for done := false; !done; {
			update(t, db, func(tx *store.Tx) (err error) { done, err = tx.EraseEvents(e.Num); return err })
		}
		update(t, db, func(tx *store.Tx) error {
			return tx.AddOutcomes(hookglass.Outcome{EndpointNum: e.Num, EventSeq: event.Seq, Source: hookglass.OutcomeTarget, At: event.ReceivedAt, StatusCode: 200, Final: hookglass.OutcomeDelivered})
		})
		rollUp(t, db)
		err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
			left, err := v.Ints("SELECT span FROM rollups WHERE endpoint = $1", e.Num)
			if len(left) != 0 {
				t.Errorf("%d rows of figures are left", len(left))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
