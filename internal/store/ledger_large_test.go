package store_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// The ledger of an endpoint with many events, which is counted by ranges of seqs, is that of one with few, of which
// each event is asked: whatever the order of their times is, whatever became of them, and for windows that begin and
// end anywhere.
func TestTheLedgerOfManyEventsIsThatOfFew(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for seed := range uint64(4) {
			gone := 10
			if seed == 0 {
				gone = 2_100 // more than a result of either database has columns
			}
			compareLedgers(t, db, rand.New(rand.NewPCG(seed, 29)), gone)
		}
	})
}

// gone is the number of targets that were deleted long ago and had deliveries.
func compareLedgers(t *testing.T, db *store.DB, rnd *rand.Rand, gone int) {
	exec := func(text string, args ...any) {
		t.Helper()
		update(t, db, func(tx *store.Tx) error { return tx.Exec(text, args...) })
	}
	e, other := newEndpoint(t, db), newEndpoint(t, db)
	now := time.Now().UTC().Truncate(time.Microsecond)
	var targets []hookglass.ForwardingTarget
	for i, ago := range []time.Duration{30 * time.Hour, time.Hour, 20 * time.Minute} {
		target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: fmt.Sprint(i), URL: "https://app.example.com/", Enabled: true, Timeout: time.Second}
		update(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		exec("UPDATE forwarding_targets SET updated_at = $1 WHERE id = $2", now.Add(-ago).UnixMicro(), target.ID)
		targets = append(targets, target)
	}
	foreign := hookglass.ForwardingTarget{EndpointNum: other.Num, Name: "other", URL: "https://app.example.com/", Enabled: true, Timeout: time.Second}
	update(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&foreign) })
	var seqs []int64
	var ids []string
	const many = 120
	for i := range many {
		ev := newEvent(e, "x")
		// Over two hours and a half, mixed within some minutes, and a clock that is an hour off now and then.
		ev.ReceivedAt = now.Add(-150*time.Minute + time.Duration(i)*150*time.Minute/many + time.Duration(rnd.IntN(240))*time.Second)
		if rnd.IntN(20) == 0 {
			ev.ReceivedAt = ev.ReceivedAt.Add(-time.Hour)
		}
		ev.Reply = &hookglass.Reply{Status: []int{200, 200, 200, 204, 0}[rnd.IntN(5)]}
		if err := db.CaptureWith(t.Context(), 0, ev, store.Work{Forward: rnd.IntN(10) > 0}); err != nil {
			t.Fatal(err)
		}
		seqs, ids = append(seqs, ev.Seq), append(ids, string(ev.ID))
		if rnd.IntN(3) == 0 {
			if err := db.CaptureWith(t.Context(), 0, newEvent(other, "x"), store.Work{Forward: true}); err != nil {
				t.Fatal(err)
			}
		}
		switch i {
		case many / 3, many / 2:
			rollUp(t, db)
		}
	}
	pick := func() int64 { return seqs[rnd.IntN(len(seqs))] }
	for range many {
		state := []string{"delivered", "delivered", "failed", "skipped", "pending", "sending"}[rnd.IntN(6)]
		due := any(nil)
		if strings.HasSuffix(state, "ing") && rnd.IntN(5) > 0 {
			due = now.UnixMicro()
		}
		exec("UPDATE forwards SET state = $1, due_at = $2 WHERE event = $3 AND target = $4", state, due, pick(), targets[rnd.IntN(len(targets))].ID)
	}
	for range 10 {
		exec("UPDATE events SET ignored = 'noise' WHERE seq = $1", pick())
		exec("DELETE FROM forwards WHERE event = $1 AND target = $2", pick(), targets[rnd.IntN(len(targets))].ID)
	}
	exec(`INSERT INTO forwards (target, endpoint, event, state, claim, lost, created_at)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		SELECT 1000000 * $2 + i, $2, $3, 'delivered', 0, 0, 0 FROM n`, gone, e.Num, pick())
	exec("DELETE FROM forwarding_targets WHERE id = $1", targets[0].ID) // its deliveries stay
	for range 5 {
		at := rnd.IntN(len(ids))
		update(t, db, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), ids[at]) })
		ids = append(ids[:at], ids[at+1:]...)
	}
	ranges := 0
	hour := now.Truncate(time.Hour)
	windows := [][2]time.Time{
		{hour.Add(-3 * time.Hour), hour.Add(2 * time.Hour)}, {hour.Add(-time.Hour), hour}, {hour, hour.Add(time.Hour)},
		{now.Add(-40 * time.Minute).Truncate(time.Minute), now.Add(2 * time.Minute).Truncate(time.Minute)},
		{now.Add(-100 * time.Minute).Truncate(time.Minute), now.Add(-17 * time.Minute).Truncate(time.Minute)},
		{now.Add(-33 * time.Minute).Truncate(time.Minute), now.Add(-31 * time.Minute).Truncate(time.Minute)},
		{hour.Add(5 * time.Hour), hour.Add(6 * time.Hour)},
	}
	compare := func(w [2]time.Time) {
		t.Helper()
		read := func(count int) (l hookglass.Ledger) {
			exec("UPDATE endpoint_stats SET event_count = $1 WHERE endpoint = $2", count, e.Num)
			err := db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
				v.Record(func(text string, _ []any) {
					if strings.Contains(text, "FROM forwards WHERE event >=") {
						ranges++
					}
				})
				l, err = v.Ledger(string(e.ID), w[0], w[1])
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		if few, large := read(many), read(1_000_000); !reflect.DeepEqual(few, large) {
			t.Errorf("%s to %s:\nfew  %+v\nmany %+v", w[0], w[1], few, large)
		}
	}
	for _, w := range windows {
		compare(w)
	}
	if ranges < 4 {
		t.Errorf("deliveries were counted by ranges %d times", ranges)
	}
	// Figures of an earlier version do not place events.
	exec("UPDATE rollups SET figures = replace(figures, '\"k\":', '\"none\":')")
	ranges = 0
	compare(windows[0])
	if ranges > 0 {
		t.Error("events that are not placed were counted by ranges")
	}
}

// An event whose clock was off by days is in the ledger of its own day, and not in that of its neighbours.
func TestAnEventWhoseClockIsDaysOffIsInTheLedgerOfItsOwnDay(t *testing.T) {
	const day = 24 * time.Hour
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		noon := time.Now().UTC().Truncate(day).Add(-25*day + day/2)
		const days, each = 20, 6
		own := [days]int64{}
		for d := range days {
			for i := range each {
				ev := newEvent(e, "x")
				at := d
				switch {
				case d == 15 && i == 3:
					at -= 8
				case d == 5 && i == 3:
					at += 8
				}
				own[at]++
				ev.ReceivedAt = noon.Add(time.Duration(at)*day + time.Duration(i)*time.Minute)
				if err := db.Capture(t.Context(), 0, ev); err != nil {
					t.Fatal(err)
				}
			}
		}
		rollUp(t, db)
		for _, count := range []int{days * each, 1_000_000} {
			update(t, db, func(tx *store.Tx) error {
				return tx.Exec("UPDATE endpoint_stats SET event_count = $1 WHERE endpoint = $2", count, e.Num)
			})
			for d, want := range own {
				from := noon.Add(time.Duration(d)*day - day/2)
				err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
					l, err := v.Ledger(string(e.ID), from, from.Add(day))
					if l.Stored != want || l.Kept != want || l.Answers["200"] != want || len(l.Differences()) > 0 {
						t.Errorf("of %d events, day %d has stored %d, kept %d, answers %v, %v; want %d", count, d, l.Stored, l.Kept, l.Answers, l.Differences(), want)
					}
					if err != nil {
						return err
					}
					lines, _, err := v.LedgerLines(string(e.ID), from, from.Add(day), 0, 100)
					if int64(len(lines)) != want {
						t.Errorf("of %d events, day %d lists %d, want %d", count, d, len(lines), want)
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
