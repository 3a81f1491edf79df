package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Connections keep their statements. That nobody may notice it but by the time it takes is what these tests are about.
func TestKeptStatements(t *testing.T) {
	db := storetest.SQLite(t)
	ints := func(tx *store.Tx, query string, args ...any) []int64 {
		t.Helper()
		all, err := tx.Ints(query, args...)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	update := func(fn func(tx *store.Tx)) {
		t.Helper()
		if err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { fn(tx); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	const count = "SELECT value FROM generated WHERE value >= $1 ORDER BY value"
	update(func(tx *store.Tx) {
		if err := tx.Exec("CREATE TABLE generated (value integer); INSERT INTO generated VALUES (1), (2), (3)"); err != nil { // a script
			t.Fatal(err)
		}
		for least := int64(1); least <= 4; least++ { // the arguments of one use are gone at the next
			if got := ints(tx, count, least); len(got) != int(4-least) {
				t.Errorf("at least %d: %v", least, got)
			}
		}
	})

	t.Run("in use already", func(t *testing.T) {
		update(func(tx *store.Tx) {
			var pairs []string
			err := tx.EachInt(count, []any{1}, func(outer int64) error {
				return tx.EachInt(count, []any{2}, func(inner int64) error {
					pairs = append(pairs, fmt.Sprint(outer, inner))
					return nil
				})
			})
			if err != nil || fmt.Sprint(pairs) != "[1 2 1 3 2 2 2 3 3 2 3 3]" {
				t.Error(pairs, err)
			}
		})
	})

	t.Run("more than are kept, while one is in use", func(t *testing.T) {
		update(func(tx *store.Tx) {
			var seen []int64
			err := tx.EachInt(count, []any{1}, func(n int64) error {
				seen = append(seen, n)
				for i := range 2 * store.KeptStatements {
					if got := ints(tx, fmt.Sprintf("SELECT %d", i)); got[0] != int64(i) {
						return fmt.Errorf("SELECT %d: %v", i, got)
					}
				}
				return nil
			})
			if err != nil || fmt.Sprint(seen) != "[1 2 3]" {
				t.Error(seen, err)
			}
		})
	})

	t.Run("another schema", func(t *testing.T) {
		update(func(tx *store.Tx) {
			if err := tx.Exec("DROP TABLE generated"); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Ints(count, 1); err == nil {
				t.Error("a table that is gone was read")
			}
			if err := tx.Exec("CREATE TABLE generated (other text, value integer)"); err != nil {
				t.Fatal(err)
			}
			if err := tx.Exec("INSERT INTO generated (value) VALUES (7)"); err != nil {
				t.Fatal(err)
			}
			if got := ints(tx, count, 1); len(got) != 1 || got[0] != 7 {
				t.Error(got)
			}
		})
	})

	t.Run("an error, and then none", func(t *testing.T) {
		const insert = "INSERT INTO keyed (value) VALUES ($1)"
		update(func(tx *store.Tx) {
			if err := tx.Exec("CREATE TABLE keyed (value integer PRIMARY KEY)"); err != nil {
				t.Fatal(err)
			}
			for i, value := range []int{1, 1, 2} {
				if err := tx.Exec(insert, value); (err != nil) != (i == 1) {
					t.Errorf("insert %d of %d: %v", i, value, err)
				}
			}
		})
	})

	t.Run("rolled back", func(t *testing.T) {
		no := errors.New("no")
		for range 2 {
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				if err := tx.Exec("INSERT INTO keyed (value) VALUES (100)"); err != nil {
					return err
				}
				return no
			})
			if !errors.Is(err, no) {
				t.Error(err)
			}
		}
	})

	t.Run("given up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.View(ctx, hookglass.System, func(v *store.View) error {
			return v.EachInt("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", nil, func(int64) error { cancel(); return nil })
		})
		if err == nil {
			t.Error("it came to an end")
		}
		if err := db.View(t.Context(), hookglass.System, func(v *store.View) error { _, err := v.Ints(count, 1); return err }); err != nil {
			t.Error("afterwards:", err)
		}
	})
}
