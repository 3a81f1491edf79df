package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// What one target has waiting, however much, is not read for the sake of another.
func TestTheQueueIsReadByItsIndexes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		now := time.Now()
		var targets []hookglass.ForwardingTarget
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			for range 3 {
				target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "n", URL: "https://a.example.com", Enabled: true, Timeout: time.Second}
				if err := tx.CreateForwardingTarget(&target); err != nil {
					return err
				}
				targets = append(targets, target)
			}
			// A long queue before a short one and behind it, and many deliveries that are done.
			return tx.Exec(`INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, created_at)
				WITH RECURSIVE n (i) AS (SELECT cast(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
				SELECT CASE WHEN i <= 10 THEN cast($2 AS bigint) WHEN i % 3 = 0 THEN cast($3 AS bigint) ELSE cast($1 AS bigint) END, cast($4 AS bigint), i,
					CASE WHEN i % 2 = 0 AND i > 10 THEN 'delivered' ELSE 'pending' END, CASE WHEN i % 2 = 0 AND i > 10 THEN NULL ELSE cast($5 AS bigint) + i END, 0, 0, i FROM n`,
				targets[0].ID, targets[1].ID, targets[2].ID, e.Num, now.Add(-time.Hour).UnixMicro())
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		var seen []statement
		record := func(text string, args []any) { seen = append(seen, statement{text, args}) }
		err = db.View(t.Context(), hookglass.System, func(v *store.View) error {
			v.Record(record)
			queues, err := v.ForwardQueues()
			if err != nil {
				return err
			}
			if len(queues) != 3 || queues[1].TargetID != targets[1].ID || queues[1].FirstAt.UnixMicro() != now.Add(-time.Hour).UnixMicro()+1 || queues[1].Gone {
				t.Errorf("%+v", queues)
			}
			_, err = v.Forwards(string(e.ID), targets[0].ID, 50_000, 25)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			tx.Record(record)
			claimed, err := tx.ClaimForwards(targets[1].ID, now, 7, time.Minute)
			if err != nil || len(claimed) != 7 {
				t.Errorf("%d claimed, %v", len(claimed), err)
			}
			if claimed, err = tx.ClaimForwards(targets[1].ID, now, 7, time.Minute); err != nil || len(claimed) != 3 {
				t.Errorf("%d claimed then, %v", len(claimed), err)
			}
			n, err := tx.SkipForwards(targets[2].ID, now, 500)
			if err == nil && n != 500 {
				t.Errorf("%d skipped", n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range seen {
			plan, err := db.Plan(t.Context(), s.text, s.args...)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range plan {
				if strings.Contains(line, "Seq Scan on forwards") || (strings.HasPrefix(line, "SCAN forwards") || strings.HasPrefix(line, "SCAN f ")) && !strings.Contains(line, "INDEX forwards_due") {
					t.Errorf("%s\n%s", s.text, strings.Join(plan, "\n"))
					break
				}
			}
		}
		began := time.Now()
		for range 20 {
			if err := db.View(t.Context(), hookglass.System, func(v *store.View) error { _, err := v.ForwardQueues(); return err }); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("the queues are found in %v", time.Since(began)/20)
	})
}

// A crash of the database can take a claim back, which nobody waited for the disk with. What the one who had it makes
// of the delivery is not taken for that of the next claim, also when both are written down together.
func TestAClaimThatWasTakenBackIsNotTheNext(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		now := time.Now()
		var target hookglass.ForwardingTarget
		claim := func() (c store.ClaimedForward) {
			t.Helper()
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				now = now.Add(time.Second)
				found, err := tx.ClaimForwards(target.ID, now, 1, time.Minute)
				if err == nil && len(found) == 1 {
					c = found[0]
				}
				return err
			})
			if err != nil || c.Num == 0 {
				t.Fatalf("nothing was claimed: %v", err)
			}
			return c
		}
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			target = hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "n", URL: "https://a.example.com", Enabled: true, Timeout: time.Second}
			return tx.CreateForwardingTarget(&target)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.CaptureWith(t.Context(), 0, newEvent(e, "x"), store.Work{Forward: true}); err != nil {
			t.Fatal(err)
		}
		lost := claim()
		err = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			return tx.Exec("UPDATE forwards SET state = 'pending', claim = 0, due_at = 0 WHERE num = $1", lost.Num)
		})
		if err != nil {
			t.Fatal(err)
		}
		next := claim()
		lost.State, lost.NextAt = hookglass.ForwardPending, now // handed back
		next.State, next.FinishedAt, next.StatusCode = hookglass.ForwardDelivered, now, 200
		next.Attempts = []hookglass.ForwardAttempt{{At: now, StatusCode: 200}}
		for _, both := range [][]store.ClaimedForward{{lost, next}, {next, lost}} {
			err = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				written, err := tx.SettleForwards(both)
				if err != nil {
					return err
				}
				for i, c := range both {
					if written[i] != (c.Claim == next.Claim) {
						t.Errorf("of claims %d and %d, the latter the row's, %v was written", both[0].Claim, both[1].Claim, written)
					}
				}
				return tx.Exec("UPDATE forwards SET state = 'sending' WHERE num = $1", next.Num) // for the other order
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What became of deliveries is stored alike for few and for many together, which statements take in different forms.
func TestDeliveriesAreSettledInAnyNumber(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		now := time.Now()
		target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "n", URL: "https://a.example.com", Enabled: true, Timeout: time.Second}
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 2, 8, 9, 40} {
			var events []*hookglass.Event
			for range n {
				ev := newEvent(e, "body")
				if err := db.CaptureWith(t.Context(), 0, ev, store.Work{Forward: true}); err != nil {
					t.Fatal(err)
				}
				events = append(events, ev)
			}
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				claimed, err := tx.ClaimForwards(target.ID, now.Add(time.Hour), 100, time.Minute)
				if err != nil || len(claimed) != n {
					t.Fatalf("%d claimed of %d, %v", len(claimed), n, err)
				}
				slices.SortFunc(claimed, func(a, b store.ClaimedForward) int { return int(a.EventSeq - b.EventSeq) })
				for i := range claimed {
					c := &claimed[i]
					c.State, c.FinishedAt = hookglass.ForwardDelivered, now
					if i%2 == 1 {
						c.State, c.FinishedAt, c.NextAt = hookglass.ForwardPending, time.Time{}, now.Add(24*time.Hour)
					}
					c.StatusCode = 200 + i%2*300
					c.Attempts = []hookglass.ForwardAttempt{{At: now, StatusCode: c.StatusCode, Duration: time.Millisecond}}
					c.Evidence = &hookglass.ForwardEvidence{Attempt: 1, Request: hookglass.SentRequest{Method: "POST", URL: "http://localhost/\xff", Headers: hookglass.Headers{{Name: "X", Value: "caf\xe9 \"'\\"}}, Body: []byte{0, 0xff, '\''}}}
				}
				stored, err := tx.SettleForwards(claimed)
				for i, ok := range stored {
					if !ok {
						t.Errorf("the %d. of %d is not stored", i+1, n)
					}
				}
				if err == nil {
					err = tx.AddForwardEvidence(claimed)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			err = db.View(t.Context(), hookglass.System, func(v *store.View) error {
				for i, ev := range events {
					f, evidence, err := v.Forward(string(e.ID), target.ID, ev.ID)
					if err != nil {
						return err
					}
					want := hookglass.ForwardDelivered
					if i%2 == 1 {
						want = hookglass.ForwardPending
					}
					if f.State != want || f.StatusCode != 200+i%2*300 || f.NextAt.IsZero() != (i%2 == 0) || f.FinishedAt.IsZero() != (i%2 == 1) || len(f.Attempts) != 1 {
						t.Errorf("the %d. of %d: %+v", i+1, n, f)
					}
					if len(evidence) != 1 || evidence[0].Request.URL != "http://localhost/\xff" || evidence[0].Request.Headers[0].Value != "caf\xe9 \"'\\" || string(evidence[0].Request.Body) != "\x00\xff'" {
						t.Errorf("the evidence of the %d. of %d: %+v", i+1, n, evidence)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			err = db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.Exec("UPDATE forwards SET state = 'skipped', due_at = NULL") })
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An event is deleted while what became of its delivery is written down: nothing of what was sent stays behind.
func TestNothingOfADeliveryOutlivesItsEvent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e := newEndpoint(t, db)
		target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "n", URL: "https://a.example.com", Enabled: true, Timeout: time.Second}
		writing(t, db, func(tx *store.Tx) error { return tx.CreateForwardingTarget(&target) })
		ev := newEvent(e, "body")
		if err := db.CaptureWith(t.Context(), 0, ev, store.Work{Forward: true}); err != nil {
			t.Fatal(err)
		}
		deleted := make(chan error, 1)
		writing(t, db, func(tx *store.Tx) error {
			now := time.Now()
			claimed, err := tx.ClaimForwards(target.ID, now.Add(time.Hour), 1, time.Minute)
			if err != nil || len(claimed) != 1 {
				t.Fatalf("%d claimed, %v", len(claimed), err)
			}
			c := &claimed[0]
			c.State, c.FinishedAt, c.Attempts = hookglass.ForwardDelivered, now, []hookglass.ForwardAttempt{{At: now, StatusCode: 200}}
			c.Evidence = &hookglass.ForwardEvidence{Attempt: 1, Request: hookglass.SentRequest{Method: "POST", Body: []byte("body")}}
			if stored, err := tx.SettleForwards(claimed); err != nil || !stored[0] {
				t.Fatalf("settled: %v, %v", stored, err)
			}
			go func() {
				deleted <- db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.DeleteEvent(string(e.ID), string(ev.ID)) })
			}()
			for waits := !db.Postgres(); !waits; { // an embedded database has one writer
				behind, err := tx.Ints(`SELECT count(*) FROM pg_locks w JOIN pg_locks l ON l.transactionid = w.transactionid
					WHERE NOT w.granted AND l.granted AND l.pid = pg_backend_pid()`)
				if err != nil {
					return err
				}
				waits = behind[0] > 0
			}
			return tx.AddForwardEvidence(claimed)
		})
		if err := <-deleted; err != nil {
			t.Fatal(err)
		}
		reading(t, db, func(v *store.View) error {
			for _, table := range []string{"forwards", "forward_evidence"} {
				if left, err := v.Ints("SELECT event FROM " + table); err != nil || len(left) > 0 {
					t.Errorf("%s has rows of the events %v, %v", table, left, err)
				}
			}
			return nil
		})
	})
}

// After a clock that went back, everything that waits may be due too late. Captures stand behind what brings it back.
func TestDeliveriesAreRecalledInPieces(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, now := newEndpoint(t, db), time.Now().Truncate(time.Microsecond)
		beyond := now.Add(10 * time.Minute)
		const each = 1_800
		var targets []hookglass.ForwardingTarget
		writing(t, db, func(tx *store.Tx) error {
			for range 2 {
				target := hookglass.ForwardingTarget{EndpointNum: e.Num, Name: "n", URL: "https://a.example.com", Enabled: true, Timeout: time.Second}
				if err := tx.CreateForwardingTarget(&target); err != nil {
					return err
				}
				targets = append(targets, target)
				// A third is due soon, a third far too late, and a third when its target asked for it. Many are due at one time.
				err := tx.Exec(`INSERT INTO forwards (target, endpoint, event, state, due_at, claim, lost, attempts, created_at)
					WITH RECURSIVE n (i) AS (SELECT cast(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < cast($3 AS bigint))
					SELECT cast($1 AS bigint), cast($2 AS bigint), i, 'pending', CASE i % 3 WHEN 0 THEN cast($4 AS bigint) WHEN 1 THEN cast($5 AS bigint) + 3600000000000 ELSE cast($5 AS bigint) + i END,
						0, 0, $6, cast($4 AS bigint) - 1 FROM n`,
					target.ID, e.Num, each, now.UnixMicro(), beyond.UnixMicro(), []byte(`[]`))
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		var recalls []store.ForwardRecall
		find := func(v *store.View) (err error) { recalls, err = v.ForwardRecalls(beyond); return err }
		if err := db.View(t.Context(), hookglass.System, find); err != nil {
			t.Fatal(err)
		}
		if len(recalls) != 2 || recalls[0].TargetID != targets[0].ID || recalls[1].TargetID != targets[1].ID {
			t.Fatalf("to be recalled: %+v", recalls)
		}
		var seen []statement
		record := func(text string, args []any) { seen = append(seen, statement{text, args}) }
		for _, r := range recalls {
			var asked int64
			for pieces := 0; ; pieces++ {
				var late []int64
				reading(t, db, func(v *store.View) (err error) {
					v.Record(record)
					late, r, err = v.LateForwards(r, beyond)
					return err
				})
				if len(late) == 0 {
					break
				}
				if len(late) > 500 || pieces > 10 {
					t.Fatalf("piece %d is of %d", pieces, len(late))
				}
				writing(t, db, func(tx *store.Tx) error {
					if pieces == 0 { // one that was sent meanwhile, and whose target asked for a time
						asked = late[0]
						if err := tx.Exec("UPDATE forwards SET due_at = $2 WHERE num = $1", asked, beyond.UnixMicro()+1); err != nil {
							return err
						}
					}
					tx.Record(record)
					return tx.RecallForwards(late, now, beyond)
				})
			}
			reading(t, db, func(v *store.View) error {
				left, err := v.Ints("SELECT num FROM forwards WHERE target = $1 AND due_at > $2", r.TargetID, beyond.UnixMicro())
				if len(left) != each/3+1 || !slices.Contains(left, asked) {
					t.Errorf("%d are due later, want the %d that were asked for", len(left), each/3+1)
				}
				return err
			})
		}
		for _, s := range seen {
			plan, err := db.Plan(t.Context(), s.text, s.args...)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range plan {
				if strings.Contains(line, "Seq Scan on forwards") || strings.HasPrefix(line, "SCAN f") {
					t.Errorf("%s\n%s", s.text, strings.Join(plan, "\n"))
				}
			}
		}
	})
}
