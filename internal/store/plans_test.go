package store_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// PostgreSQL plans a statement once for many times, at first while its tables are empty. What is planned then must do
// when they have grown.
func TestPlansOfAnEmptyDatabaseGoByIndexes(t *testing.T) {
	dsn := storetest.Postgres(t)
	db := storetest.Open(t, store.Config{URL: dsn})
	e := newEndpoint(t, db)
	type statement struct {
		text string
		args []any
	}
	var seen []statement
	err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		tx.Record(func(text string, args []any) { seen = append(seen, statement{text, args}) })
		now := time.Now()
		for _, do := range []func() error{
			func() error { _, err := tx.ForwardQueues(); return err },
			func() error { _, err := tx.ClaimForwards(1, now, 7, time.Minute); return err },
			func() error {
				_, err := tx.SettleForwards([]store.ClaimedForward{{Forward: hookglass.Forward{Num: 1, State: hookglass.ForwardDelivered}, Claim: 1}})
				return err
			},
			func() error { _, err := tx.SkipForwards(1, now, 7); return err },
			func() error { _, err := tx.TaskQueues(store.TaskActions); return err },
			func() error { _, err := tx.ClaimTasks(store.TaskActions, e.Num, 7, time.Minute); return err },
			func() error { return tx.EndTasks([]store.Task{{Num: 1, Claim: 1}}) },
			func() error { return tx.MarkEvents([]store.EventMark{{Endpoint: e, Seq: 1, Tags: []string{"a"}}}) },
			func() error { _, err := tx.RollUp(); return err },
			func() error { _, err := tx.PurgeFigures(); return err },
			func() error { _, err := tx.NewestOfAll(); return err },
		} {
			if err := do(); err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	large := regexp.MustCompile(`Scan.* on (forwards|event_tasks|outcomes|events)\b`)
	looked := 0
	look := func(known string) {
		for _, s := range seen {
			plan, err := db.Plan(t.Context(), s.text, s.args...)
			if err != nil {
				t.Fatalf("%s: %v", s.text, err)
			}
			for i, line := range plan {
				if !large.MatchString(line) || strings.Contains(line, "Bitmap Index Scan") {
					continue
				}
				looked++
				first := i > 0 && strings.Contains(plan[i-1], "Limit ") // only as far as it is wanted
				if strings.Contains(line, "Seq Scan") || !first && (i+1 == len(plan) || !strings.Contains(plan[i+1], "Cond: ")) {
					t.Errorf("%s:\n%s\n%s", known, s.text, strings.Join(plan, "\n"))
				}
			}
		}
	}
	look("before anything is known of the tables")
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "ANALYZE"); err != nil {
		t.Fatal(err)
	}
	look("when the tables are known to be empty")
	if looked < 30 {
		t.Errorf("only %d scans were looked at", looked)
	}
}
