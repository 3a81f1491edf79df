package store_test

import (
	"context"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// What is wrong with an address is said, and nothing of its password.
func TestAnAddressThatCannotBeReadSaysWhy(t *testing.T) {
	for _, name := range []string{"PGHOST", "PGPORT", "PGSSLMODE", "PGSERVICE", "PGPASSFILE"} {
		t.Setenv(name, "")
	}
	for address, want := range map[string]string{
		"postgres://u:s3cret@h/d":                                  "",
		"postgres://u:s3cret%40%3A%2F%3F%23@a,b:6000/d":            "",
		"postgres://u:s3cret@h/d?pool_max_conns=7":                 "",
		"postgres://u:s3cret@h/d?sslmode=maybe":                    "sslmode",
		"postgres://u:s3cret@h/d?sslmode=require&sslrootcert=/n/x": "/n/x",
		"postgres://u:s3cret@h/d?pool_max_conns=many":              "pool_max_conns",
		"postgres://u:s3cret@h/d?target_session_attrs=best":        "target_session_attrs",
		"postgres://u:s3cret@h:99999/d":                            "a port is a number",
		"postgres://u:s3cret/x@h/d":                                "/ %2F",
		"postgres://u:x@s3cret@h/d":                                "@ is written %40",
		"postgres://u:s3cret%zz@h/d":                               "% %25",
		"postgres://u:s3cret@h/d\n":                                "line break",
	} {
		err := store.CheckURL(address)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the password is in the error: %v", address, err)
		}
	}
}

// nothing is a job.
type nothing struct{}

func (nothing) Kind() string { return "nothing" }

// People copy what a driver is told before a pooler of transactions, with which our values would not arrive.
func TestAnAddressThatSaysHowStatementsAreSent(t *testing.T) {
	for _, mode := range []string{"default_query_exec_mode=simple_protocol", "default_query_exec_mode=exec", "statement_cache_capacity=0"} {
		t.Run(mode, func(t *testing.T) {
			db := storetest.Open(t, store.Config{URL: storetest.Postgres(t) + "&pool_max_conns=9&" + mode})
			if err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := db.Capture(t.Context(), 0, newEvent(newEndpoint(t, db), "{}")); err != nil {
				t.Error(err)
			}
			workers := river.NewWorkers()
			river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[nothing]) error { return nil }))
			jobs, err := db.NewWorkers(&river.Config{Queues: map[string]river.QueueConfig{"default": {MaxWorkers: 1}}, Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			if err := jobs.Start(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			if err := jobs.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
