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

// The ledger is added up from books that can disagree: a row that vanishes without having been counted, and a delivery
// that nothing would ever go on with, are named.
func TestTheLedgerNamesWhatWasLost(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "app", URL: "https://app.example.com/", Enabled: true, Timeout: time.Second}
		update(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		for range 3 {
			if err := db.CaptureWith(t.Context(), 0, newEvent(e, "x"), store.Work{Forward: true}); err != nil {
				t.Fatal(err)
			}
		}
		rollUp(t, db)
		names := func() (names []string) {
			hour := time.Now().UTC().Truncate(time.Hour)
			err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
				l, err := v.Ledger(string(e.ID), hour.Add(-time.Hour), hour.Add(2*time.Hour))
				for _, d := range l.Differences() {
					names = append(names, d.Name)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return names
		}
		if got := names(); len(got) > 0 {
			t.Fatalf("at first: %v", got)
		}
		update(t, db, func(tx *store.Tx) error {
			return tx.Exec("UPDATE forwards SET due_at = NULL WHERE num = (SELECT max(num) FROM forwards)")
		})
		if got := names(); len(got) != 1 || got[0][len(got[0])-6:] != ":stuck" {
			t.Errorf("a delivery that is never due: %v", got)
		}
		update(t, db, func(tx *store.Tx) error {
			return tx.Exec("DELETE FROM events WHERE seq = (SELECT min(seq) FROM events)")
		})
		if got := names(); len(got) < 2 || got[0] != "stored" {
			t.Errorf("an event that vanished: %v", got)
		}
	})
}

// A target is owed what came while it was as it is: of one that was not changed in the window, everything, of one that
// was, what came since, and of one that is off, nothing.
func TestATargetIsOwedWhatCameSinceItWasChanged(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		now := time.Now().UTC()
		want := map[string]int64{}
		for _, c := range []struct {
			changed time.Duration // ago
			enabled bool
			owed    int64
		}{{100 * time.Hour, true, 3}, {30 * time.Minute, true, 1}, {0, true, 0}, {100 * time.Hour, false, 0}} {
			target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: fmt.Sprint(c), URL: "https://app.example.com/", Enabled: c.enabled, Timeout: time.Second}
			update(t, db, func(tx *store.Tx) error {
				if err := tx.CreateForwardingTarget(&target); err != nil {
					return err
				}
				return tx.Exec("UPDATE forwarding_targets SET updated_at = $1 WHERE id = $2", now.Add(-c.changed).UnixMicro(), target.ID)
			})
			want[target.Name] = c.owed
		}
		arrive := func(ago time.Duration, forward bool) {
			t.Helper()
			event := newEvent(e, "x")
			event.ReceivedAt = now.Add(-ago)
			if err := db.CaptureWith(t.Context(), 0, event, store.Work{Forward: forward}); err != nil {
				t.Fatal(err)
			}
		}
		arrive(20*time.Minute, true)
		arrive(50*time.Minute, false)
		arrive(40*time.Minute, false)
		arrive(20*time.Minute, false)
		rollUp(t, db)
		hour := now.Truncate(time.Hour)
		reading(t, db, func(v *store.View) error {
			l, err := v.Ledger(string(e.ID), hour.Add(-2*time.Hour), hour.Add(2*time.Hour))
			for _, c := range l.Consumers {
				if c.Owed != want[c.Name] {
					t.Errorf("%s: owed %d, want %d", c.Name, c.Owed, want[c.Name])
				}
			}
			if len(l.Consumers) != len(want) {
				t.Errorf("%d consumers", len(l.Consumers))
			}
			return err
		})
	})
}

// A window has its first moment and not its last: wherever it begins and ends, the figures, the events and the lines
// agree on what is in it, of few events and of many, before they are rolled up and after.
func TestAWindowHasItsFirstMomentAndNotItsLast(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		hour := time.Now().UTC().Truncate(time.Hour)
		type window struct {
			from, to time.Time
			e        hookglass.Endpoint
			events   int64
		}
		var windows []window
		for _, of := range [][2]time.Duration{{-3 * time.Hour, -2 * time.Hour}, {-53 * time.Minute, -51 * time.Minute}, {-113 * time.Minute, -51 * time.Minute}, {-4 * time.Hour, -51 * time.Minute}} {
			w := window{from: hour.Add(of[0]), to: hour.Add(of[1]), e: newEndpoint(t, db), events: 2}
			update(t, db, func(tx *store.Tx) error {
				return tx.Exec(`INSERT INTO tunnel_gaps (id, endpoint, state, from_seq, started_at, detected_at, target_url, hostname, recovered_gone, expired_gone)
					VALUES ($1, $2, 'open', 0, 1, 2, '', '', 0, 0)`, fmt.Sprintf("tgap_%d", w.e.Num), w.e.Num)
			})
			times := []time.Time{w.from.Add(-time.Microsecond), w.from, w.to.Add(-time.Microsecond), w.to}
			for at := w.from.Truncate(time.Hour).Add(time.Hour); at.Before(w.to); at = at.Add(time.Hour) {
				times = append(times, at)
				w.events++
			}
			for _, at := range times {
				event := newEvent(w.e, "x")
				event.ReceivedAt = at
				capture(t, db, event)
			}
			windows = append(windows, w)
		}
		for _, rolled := range []bool{false, true} {
			if rolled {
				rollUp(t, db)
			}
			for _, w := range windows {
				for _, count := range []int{10, 1_000_000} {
					update(t, db, func(tx *store.Tx) error {
						return tx.Exec("UPDATE endpoint_stats SET event_count = $1 WHERE endpoint = $2", count, w.e.Num)
					})
					reading(t, db, func(v *store.View) error {
						l, err := v.Ledger(string(w.e.ID), w.from, w.to)
						if err != nil {
							return err
						}
						lines, _, err := v.LedgerLines(string(w.e.ID), w.from, w.to, 0, 10)
						if l.Stored != w.events || l.Kept != w.events || len(l.Consumers) != 1 || l.Consumers[0].Pending != w.events || int64(len(lines)) != w.events {
							t.Errorf("%v to %v, rolled up: %t, as one of %d: %d lines, want %d: %+v", w.from, w.to, rolled, count, len(lines), w.events, l)
						}
						return err
					})
				}
			}
		}
	})
}

// An endpoint has a tunnel in its ledger once a client was there. It owes what came while one was, or was away, and
// nothing of what came before the first.
func TestTheTunnelOwesWhatItsOwnClientsWereThereFor(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		none, there, away, reported := newEndpoint(t, db), newEndpoint(t, db), newEndpoint(t, db), newEndpoint(t, db)
		all := []hookglass.Endpoint{none, there, away, reported}
		arrive := func() (events []*hookglass.Event) {
			t.Helper()
			for _, e := range all {
				events = append(events, several(t, db, e, 1)...)
			}
			return events
		}
		lost := subscribed(t, db, "tsess_1", "node", away)
		writing(t, db, func(tx *store.Tx) error {
			return tx.EndTunnels([]store.TunnelEnd{{Session: lost, Lost: true, Since: tx.Now}})
		})
		first := arrive()
		subscribed(t, db, "tsess_2", "node", there)
		arrive()
		writing(t, db, func(tx *store.Tx) error {
			_, err := tx.RecordReport(string(reported.ID), string(first[3].ID), &hookglass.DeliveryReport{Version: 1, StatusCode: 200})
			return err
		})
		hour := time.Now().UTC().Truncate(time.Hour)
		reading(t, db, func(v *store.View) error {
			for i, want := range [][]hookglass.LedgerConsumer{nil, {{Pending: 1, Skipped: 1}}, {{Pending: 2}}, {{Delivered: 1, Skipped: 1}}} {
				l, err := v.Ledger(string(all[i].ID), hour.Add(-time.Hour), hour.Add(2*time.Hour))
				if err != nil {
					return err
				}
				for j := range want {
					want[j].Kind = hookglass.ConsumerTunnel
				}
				if !slices.Equal(l.Consumers, want) {
					t.Errorf("endpoint %d: %+v, want %+v", i, l.Consumers, want)
				}
				lines, _, err := v.LedgerLines(string(all[i].ID), hour.Add(-time.Hour), hour.Add(2*time.Hour), 0, 10)
				if err != nil {
					return err
				}
				n := map[hookglass.ConsumerState]int64{}
				for _, line := range lines {
					n[line.Tunnel]++
				}
				for _, c := range want {
					if n[hookglass.StatePending] != c.Pending || n[hookglass.StateSkipped] != c.Skipped || n[hookglass.StateDelivered] != c.Delivered {
						t.Errorf("endpoint %d: its lines are %v, want %+v", i, n, c)
					}
				}
			}
			return nil
		})
	})
}

// What was erased and refused before the books began is in no window that is asked for.
func TestTheBooksBeginWithTheirMigration(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		began := time.Now()
		rollUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.Exec("UPDATE rollup_cursor SET books_at = $1", began.UnixMicro()) })
		err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
			from, err := v.BooksFrom()
			if !from.Equal(began.Truncate(time.Microsecond)) {
				t.Errorf("they begin at %s", from)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
