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

// failing makes a target and n deliveries to it, of which each third has failed, a minute after one another and the
// last now. An event of each is not there.
func failing(t *testing.T, db *store.DB, e hookglass.Endpoint, n int, now time.Time) (target hookglass.ForwardingTarget) {
	t.Helper()
	target = hookglass.ForwardingTarget{EndpointNum: e.Num, EndpointID: e.ID, Name: "n", URL: "https://a.example.com", Enabled: true, Timeout: time.Second}
	writing(t, db, func(tx *store.Tx) error {
		if err := tx.CreateForwardingTarget(&target); err != nil {
			return err
		}
		return tx.Exec(`INSERT INTO forwards (target, endpoint, event, state, claim, lost, attempts, created_at, finished_at)
			WITH RECURSIVE n (i) AS (SELECT cast(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i < cast($4 AS bigint))
			SELECT cast($1 AS bigint), cast($2 AS bigint), i, CASE WHEN i % 3 = 0 THEN 'failed' ELSE 'delivered' END, 7, 6, $5,
				cast($3 AS bigint) - (cast($4 AS bigint) - i) * 60000000, cast($3 AS bigint) FROM n`,
			target.ID, e.Num, now.UnixMicro(), n, []byte(`[{"At":"2026-11-20T10:00:00Z","StatusCode":500},{"At":"2026-11-20T10:00:01Z","StatusCode":503}]`))
	})
	return target
}

// walk goes through what failed in pieces, each in a transaction of its own that do has the piece of.
func walk(t *testing.T, db *store.DB, target hookglass.ForwardingTarget, r store.FailedRange, do func(tx *store.Tx, found []hookglass.Forward) error) (events []int64, pieces int) {
	t.Helper()
	for !r.Done {
		pieces++
		writing(t, db, func(tx *store.Tx) error {
			found, left, err := tx.FailedForwards(target, r)
			if err != nil {
				return err
			}
			r = left
			for _, f := range found {
				events = append(events, f.EventSeq)
			}
			if do == nil {
				return nil
			}
			return do(tx, found)
		})
	}
	return events, pieces
}

func TestWhatFailedIsPutInLineInPieces(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, now := newEndpoint(t, db), time.Now().Truncate(time.Microsecond)
		failing(t, db, newEndpoint(t, db), 30, now) // another's, of the same events
		target := failing(t, db, e, 30, now)
		failing(t, db, newEndpoint(t, db), 30, now)

		for name, c := range map[string]struct {
			r    store.FailedRange
			want []int64
		}{
			"all":                {store.FailedRange{}, []int64{3, 6, 9, 12, 15, 18, 21, 24, 27, 30}},
			"after":              {store.FailedRange{After: now.Add(-9 * time.Minute)}, []int64{24, 27, 30}},
			"before":             {store.FailedRange{Before: now.Add(-21 * time.Minute)}, []int64{3, 6}},
			"between":            {store.FailedRange{After: now.Add(-22 * time.Minute), Before: now.Add(-17 * time.Minute)}, []int64{9, 12}},
			"before all":         {store.FailedRange{Before: now.Add(-48 * time.Hour)}, nil},
			"after all":          {store.FailedRange{After: now.Add(48 * time.Hour)}, nil},
			"nothing in between": {store.FailedRange{After: now, Before: now.Add(-time.Minute)}, nil},
		} {
			if got, _ := walk(t, db, target, c.r.InSteps(4, 9), nil); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}

		// Each that is put in line fails again at once, and others come meanwhile: the walk ends all the same.
		writing(t, db, func(tx *store.Tx) error {
			return tx.Exec("UPDATE endpoint_stats SET floor_seq = 5 WHERE endpoint = $1", e.Num)
		})
		got, pieces := walk(t, db, target, store.FailedRange{}.InSteps(4, 9), func(tx *store.Tx, found []hookglass.Forward) error {
			for _, f := range found {
				if len(f.Attempts) != 2 || f.State != hookglass.ForwardFailed || f.TargetID != target.ID {
					t.Errorf("%+v", f)
				}
			}
			if err := tx.ResendForwards(found); err != nil {
				return err
			}
			claimed, err := tx.ClaimForwards(target.ID, tx.Now, 100, time.Minute)
			if err != nil {
				return err
			}
			if len(claimed) != len(found) {
				t.Errorf("%d of %d are due", len(claimed), len(found))
			}
			for i := range claimed {
				c := &claimed[i]
				if c.Spent != 2 || c.Lost != 0 || len(c.Attempts) != 2 {
					t.Errorf("claimed %+v", c)
				}
				c.State, c.FinishedAt = hookglass.ForwardFailed, tx.Now
			}
			if _, err := tx.SettleForwards(claimed); err != nil {
				return err
			}
			return tx.Exec("INSERT INTO forwards (target, endpoint, event, state, claim, lost, created_at) SELECT target, endpoint, max(event) + 1, 'failed', 0, 0, max(created_at) FROM forwards WHERE target = $1 GROUP BY target, endpoint", target.ID)
		})
		if want := []int64{6, 9, 12, 15, 18, 21, 24, 27, 30}; !slices.Equal(got, want) || pieces != 3 {
			t.Errorf("%v in %d pieces, want %v in 3", got, pieces, want)
		}
		reading(t, db, func(v *store.View) error {
			n, err := v.CountFailedForwards(target, 100)
			if most, err := v.CountFailedForwards(target, 5); n != 12 || most != 5 || err != nil {
				t.Errorf("%d have failed, %d of 5 at most, %v", n, most, err)
			}
			return err
		})
	})
}

// One that is being deleted, or that another puts in line, is not waited for.
func TestWhatAnotherHasInHandIsPassedOver(t *testing.T) {
	db := storetest.Open(t, store.Config{URL: storetest.Migrated(t)})
	e := newEndpoint(t, db)
	target := failing(t, db, e, 12, time.Now())
	writing(t, db, func(tx *store.Tx) error {
		if err := tx.Exec("DELETE FROM forwards WHERE target = $1 AND event = 6", target.ID); err != nil {
			return err
		}
		if got, _ := walk(t, db, target, store.FailedRange{}, nil); !slices.Equal(got, []int64{3, 9, 12}) {
			t.Errorf("%v", got)
		}
		return nil
	})
}

// However much a target was sent and however little of it failed, and however much failed long ago, no more is read.
func TestWhatFailedIsFoundByItsIndex(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		e, now := newEndpoint(t, db), time.Now().Truncate(time.Microsecond)
		target := failing(t, db, e, 20_000, now)
		failing(t, db, newEndpoint(t, db), 2_000, now)
		if err := db.Analyze(t.Context()); err != nil {
			t.Fatal(err)
		}
		var seen []statement
		writing(t, db, func(tx *store.Tx) error {
			tx.Record(func(text string, args []any) {
				if strings.Contains(text, "forwards") {
					seen = append(seen, statement{text, args})
				}
			})
			if _, err := tx.FailedForwardsOf(string(e.ID), target.ID, 15_000, 25); err != nil {
				return err
			}
			if _, err := tx.CountFailedForwards(target, 100); err != nil {
				return err
			}
			found, left, err := tx.FailedForwards(target, store.FailedRange{After: now.Add(-time.Hour), Before: now.Add(-time.Minute)})
			if err != nil {
				return err
			}
			if len(found) != 20 || !left.Done {
				t.Errorf("%d were found, %+v", len(found), left)
			}
			return tx.ResendForwards(found)
		})
		if len(seen) < 20 || len(seen) > 45 {
			t.Errorf("%d statements", len(seen))
		}
		for _, s := range seen {
			plan, err := db.Plan(t.Context(), s.text, s.args...)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(plan, "\n")
			if strings.HasPrefix(s.text, "UPDATE") {
				if strings.Contains(text, "Seq Scan on forwards") || strings.Contains(text, "SCAN forwards") {
					t.Errorf("%s\n%s", s.text, text)
				}
				continue
			}
			// Of a piece between two numbers, which are not many, PostgreSQL may sort what it finds.
			sorts := strings.Contains(text, "TEMP B-TREE") || strings.Contains(text, "Sort") && !strings.Contains(s.text, "(f.target, f.num) <=")
			if !strings.Contains(text, "forwards_failed") || sorts {
				t.Errorf("%s\n%s", s.text, text)
			}
		}
	})
}
