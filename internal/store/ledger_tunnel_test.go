package store_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Of a client that comes and goes there are hundreds of outages. The ledger reads the events that fell into them, and
// asks no event for each of them; what it counts is what single events say, with runs and replays as well.
func TestTheLedgerCountsOutagesByTheirRanges(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for seed := range uint64(3) {
			countOutages(t, db, rand.New(rand.NewPCG(seed, 7)))
		}
	})
}

func countOutages(t *testing.T, db *store.DB, rnd *rand.Rand) {
	exec := func(text string, args ...any) {
		t.Helper()
		update(t, db, func(tx *store.Tx) error { return tx.Exec(text, args...) })
	}
	e, other := newEndpoint(t, db), newEndpoint(t, db)
	now := time.Now().UTC().Truncate(time.Microsecond)
	var seqs []int64
	const many = 120
	for i := range many {
		event := newEvent(e, "x")
		event.ReceivedAt = now.Add(-150*time.Minute + time.Duration(i)*150*time.Minute/many + time.Duration(rnd.IntN(240))*time.Second)
		events := capture(t, db, event)
		seqs = append(seqs, events[0].Seq)
		if rnd.IntN(3) == 0 {
			several(t, db, other, 1)
		}
	}
	rollUp(t, db)
	for i, seq := range seqs {
		if rnd.IntN(4) == 0 {
			delivered := any(nil)
			if rnd.IntN(2) == 0 {
				delivered = 1
			}
			exec("INSERT INTO tunnel_events (event, endpoint, reported_at, delivered_at, reports) VALUES ($1, $2, 1, $3, 1)", seq, e.Num, delivered)
		}
		if rnd.IntN(3) == 0 {
			exec(`INSERT INTO action_runs (id, endpoint, action, action_id, event, event_id, rerun, status, claim, created_at) VALUES ($1, $2, 1, 'act_1', $3, 'req_1', $4, $5, 0, 1)`,
				fmt.Sprintf("arun_%d_%d", e.Num, i), e.Num, seq, rnd.IntN(2), []string{"completed", "failed", "stopped"}[rnd.IntN(3)])
		}
		if rnd.IntN(5) == 0 {
			exec("INSERT INTO replays (id, endpoint, event, event_id, target_url, passed, replayed_at, record) VALUES ($1, $2, $3, 'req_1', '', $4, 1, $5)",
				fmt.Sprintf("rply_%d_%d", e.Num, i), e.Num, seq, rnd.IntN(2), []byte("{}"))
		}
	}
	const gaps = 30
	for i := range gaps { // some lie within others, and one ends behind all events
		from := rnd.IntN(many - 5)
		exec(`INSERT INTO tunnel_gaps (id, endpoint, state, from_seq, to_seq, started_at, detected_at, reconnected_at, target_url, hostname, recovered_gone, expired_gone)
			VALUES ($1, $2, 'reconnected', $3, $4, 1, 2, 3, '', '', 0, 0)`, fmt.Sprintf("tgap_%d_%d", e.Num, i), e.Num, seqs[from], seqs[from]+int64(rnd.IntN(4)))
	}
	exec(`INSERT INTO tunnel_gaps (id, endpoint, state, from_seq, started_at, detected_at, target_url, hostname, recovered_gone, expired_gone)
		VALUES ($1, $2, 'open', $3, 1, 2, '', '', 0, 0)`, fmt.Sprintf("tgap_%d_open", e.Num), e.Num, seqs[many-3])
	hour := now.Truncate(time.Hour)
	for _, w := range [][2]time.Time{
		{hour.Add(-3 * time.Hour), hour.Add(2 * time.Hour)}, {hour.Add(-time.Hour), hour},
		{now.Add(-100 * time.Minute).Truncate(time.Minute), now.Add(-17 * time.Minute).Truncate(time.Minute)},
	} {
		var seen []statement
		read := func(count int) (l hookglass.Ledger) {
			exec("UPDATE endpoint_stats SET event_count = $1 WHERE endpoint = $2", count, e.Num)
			reading(t, db, func(v *store.View) (err error) {
				v.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
				l, err = v.Ledger(string(e.ID), w[0], w[1])
				return err
			})
			return l
		}
		few, large := read(many), read(1_000_000)
		if !reflect.DeepEqual(few, large) {
			t.Errorf("%s to %s:\nfew  %+v\nmany %+v", w[0], w[1], few, large)
		}
		want := map[hookglass.ConsumerState]int64{}
		reading(t, db, func(v *store.View) error {
			lines, next, err := v.LedgerLines(string(e.ID), w[0], w[1], 0, many)
			for _, line := range lines {
				want[line.Tunnel]++
			}
			if next != 0 {
				t.Errorf("%d lines are not all", len(lines))
			}
			return err
		})
		tunnels := 0
		for _, c := range large.Consumers {
			if c.Kind != hookglass.ConsumerTunnel {
				continue
			}
			tunnels++
			if c.Delivered != want[hookglass.StateDelivered] || c.Failed != want[hookglass.StateFailed] || c.Pending != want[hookglass.StatePending] || c.Skipped != want[hookglass.StateSkipped] {
				t.Errorf("%s to %s: %+v, of single events %v", w[0], w[1], c, want)
			}
		}
		if tunnels != 1 {
			t.Errorf("%d tunnels", tunnels)
		}
		ranges := 0
		for _, s := range seen {
			if !strings.Contains(s.text, "events w") {
				continue
			}
			ranges++
			plan, err := db.Plan(t.Context(), s.text, s.args...)
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(plan, "\n")
			if strings.Contains(s.text, "tunnel_gaps") || strings.Contains(all, "SCAN w") || strings.Contains(all, "SCAN t") || strings.Contains(all, "Seq Scan") || strings.Contains(all, "Hash") ||
				db.Postgres() && !betweenSeqs.MatchString(all) {
				t.Errorf("%s\n%s", s.text, all)
			}
		}
		if ranges == 0 {
			t.Error("no range was read")
		}
	}
}

// betweenSeqs is a step that reads an index between two seqs.
var betweenSeqs = regexp.MustCompile(`Index Cond: .*\bseq > .*\bseq < |\(endpoint=\? AND (seq|rowid)>\? AND (seq|rowid)<\?\)`)

// An outage in the midst of many events is counted from where it began to where it ended, and not on to the newest.
func TestAnOutageIsCountedToItsEnd(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		flood(t, db, e, time.Now().Add(-time.Hour), 3_000)
		writing(t, db, func(tx *store.Tx) error {
			return tx.Exec(`INSERT INTO tunnel_gaps (id, endpoint, state, from_seq, to_seq, started_at, detected_at, reconnected_at, target_url, hostname, recovered_gone, expired_gone)
				VALUES ('tgap_1', $1, 'reconnected', 10, 20, 1, 2, 3, '', '', 0, 0)`, e.Num)
		})
		look := func(when string) {
			t.Helper()
			var seen []statement
			reading(t, db, func(v *store.View) error {
				v.Record(func(text string, args []any) {
					if strings.Contains(text, "FROM events") {
						seen = append(seen, statement{text, args})
					}
				})
				gaps, err := v.Gaps([]int64{e.Num}, 0, 10)
				if len(gaps) != 1 || gaps[0].Counts.Pending != 10 {
					t.Errorf("%s: %+v", when, gaps)
				}
				return err
			})
			if len(seen) != 1 {
				t.Fatalf("%d statements on events", len(seen))
			}
			plan, err := db.Plan(t.Context(), seen[0].text, seen[0].args...)
			if text := strings.Join(plan, "\n"); err != nil || !betweenSeqs.MatchString(text) {
				t.Errorf("%s: %v\n%s", when, err, text)
			}
		}
		look("before anything is known")
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		look("when all is known")
	})
}
