package server_test

import (
	"fmt"
	"testing"

	"hookglass/internal/server"
)

func TestTheDatabaseIsFoundInItsURL(t *testing.T) {
	for database, want := range map[string]string{
		"":                                      "[]",
		"postgres://127.0.0.1/db":               "[127.0.0.1:5432]",
		"postgres://u:p@127.0.0.1:6000/db":      "[127.0.0.1:6000]",
		"postgres://[::1]:6000/db?sslmode=none": "[[::1]:6000]",
		"postgres://[::1]":                      "[[::1]:5432]",
		"postgresql://localhost:6000":           "[127.0.0.1:6000 [::1]:6000]",
		"postgres://127.0.0.1:6000,127.0.0.2/x": "[127.0.0.1:6000 127.0.0.2:5432]",
		"postgres:///db?host=127.0.0.1":         "[127.0.0.1:5432]",
		"postgres://u@/db?host=127.0.0.1,%3A%3A1&port=6000,6001": "[127.0.0.1:6000 [::1]:6001]",
		"postgres:///db?host=127.0.0.1,127.0.0.2&port=6000":      "[127.0.0.1:6000 127.0.0.2:6000]",
		"postgres:///db?host=/var/run/postgresql":                "[]",
		"postgres://db.internal:6000/db":                         "[]",
		"postgres://127.0.0.1:many/db":                           "[]",
	} {
		if got := fmt.Sprint(server.DatabaseAddresses(database)); got != want {
			t.Errorf("%s: %s, want %s", database, got, want)
		}
	}
}
