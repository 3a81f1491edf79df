package store_test

import (
	"fmt"
	"testing"

	"hookglass/internal/store"
)

// A database is found where its driver finds it: in its URL, or in what the environment adds.
func TestPostgresHosts(t *testing.T) {
	for _, name := range []string{"PGHOST", "PGPORT", "PGSSLMODE", "PGSERVICE"} {
		t.Setenv(name, "")
	}
	for database, want := range map[string]string{
		"":                                       "[]",
		"postgres://127.0.0.1/db":                "[127.0.0.1:5432]",
		"postgres://u:p@127.0.0.1:6000/db":       "[127.0.0.1:6000]",
		"postgres://[::1]:6000/db?sslmode=allow": "[[::1]:6000]",
		"postgres://[::1]":                       "[[::1]:5432]",
		"postgresql://localhost:6000":            "[localhost:6000]",
		"postgres://127.0.0.1:6000,127.0.0.2/x":  "[127.0.0.1:6000 127.0.0.2:5432]",
		"postgres:///db?host=127.0.0.1":          "[127.0.0.1:5432]",
		"postgres://u@/db?host=127.0.0.1,%3A%3A1&port=6000,6001": "[127.0.0.1:6000 [::1]:6001]",
		"postgres:///db?host=127.0.0.1,127.0.0.2&port=6000":      "[127.0.0.1:6000 127.0.0.2:6000]",
		"postgres:///db?host=/var/run/postgresql&port=6000":      "[localhost:6000]",
		"postgres://a.internal:6000,b.internal:6001/db":          "[a.internal:6000 b.internal:6001]",
		"postgres://127.0.0.1:many/db":                           "[]",
	} {
		if got := fmt.Sprint(store.PostgresHosts(database)); got != want {
			t.Errorf("%s: %s, want %s", database, got, want)
		}
	}
	t.Setenv("PGHOST", "db.internal")
	t.Setenv("PGPORT", "6000")
	if got := fmt.Sprint(store.PostgresHosts("postgres:///db")); got != "[db.internal:6000]" {
		t.Errorf("of the environment: %s", got)
	}
}
