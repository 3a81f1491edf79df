// Package storetest gives tests their own PostgreSQL. It starts a private, throw-away cluster from the installed server
// programs, so that no test depends on a running server. It hides how the cluster is created, where it is stored, as
// which user it runs and how it is removed: with the process, however that ends.
//
// The first test that asks starts the cluster of its test process, and all tests share it; each gets its own database.
// Postgres and Template may be called from any goroutine that may fail its test.
package storetest

import (
	"errors"
	"os"
	"sync"
	"testing"
)

// shared is the cluster of this test process. It is global because a process's tests share nothing else.
var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Main runs a package's tests and removes the cluster that they shared. Without it, the cluster is removed a moment
// after the process ends.
//
//	func TestMain(m *testing.M) { storetest.Main(m) }
func Main(m *testing.M) {
	code := m.Run()
	shared.once.Do(func() { shared.err = errors.New("storetest: the tests are over") })
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Postgres returns the DSN of a fresh, empty database, which is dropped when the test ends. Without
// PostgreSQL's programs the test is skipped, or fails where the environment says CI=true.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return database(tb, sharedCluster(tb), "")
}

// PostgresWith is Postgres for a database that is created with more options of CREATE DATABASE, as "ENCODING 'LATIN1'".
func PostgresWith(tb testing.TB, options string) string {
	tb.Helper()
	return database(tb, sharedCluster(tb), "", options)
}

// Template returns a function that gives each test a copy of one database, which migrate fills before the first copy. A
// copy costs a few dozen milliseconds, whatever the migration costs. migrate must have closed its connections when it
// returns. Like Postgres, the function skips or fails the test without PostgreSQL.
//
//	var migrated = storetest.Template(func(dsn string) error { ... })
//
//	func TestX(t *testing.T) { dsn := migrated(t); ... }
func Template(migrate func(dsn string) error) func(tb testing.TB) string {
	var (
		once   sync.Once
		source string
		err    error
	)
	return func(tb testing.TB) string {
		tb.Helper()
		c := sharedCluster(tb)
		once.Do(func() {
			if source, err = c.CreateDatabase(""); err == nil {
				err = migrate(source)
			}
		})
		if err != nil {
			tb.Fatalf("storetest: the template database: %v", err)
		}
		return database(tb, c, source)
	}
}

// NewCluster starts a cluster for one test, which may kill and restart it; it is removed when the test ends.
// Without PostgreSQL's programs the test is skipped, or fails where the environment says CI=true.
func NewCluster(tb testing.TB) *Cluster {
	tb.Helper()
	c, err := Start("")
	if err != nil {
		missing(tb, err)
	}
	tb.Cleanup(func() {
		if err := c.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

func sharedCluster(tb testing.TB) *Cluster {
	tb.Helper()
	shared.once.Do(func() { shared.cluster, shared.err = Start("") })
	if shared.err != nil {
		missing(tb, shared.err)
	}
	return shared.cluster
}

func database(tb testing.TB, c *Cluster, template string, options ...string) string {
	tb.Helper()
	dsn, err := c.CreateDatabase(template, options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.dropDatabase(dsn); err != nil {
			tb.Error(err)
		}
	})
	return dsn
}

// missing ends a test that got no cluster. It skips the test only if programs are missing, and not in CI, where a
// skipped test would count as passed.
func missing(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, ErrNoPostgres) && os.Getenv("CI") != "true" {
		tb.Skip(err)
	}
	tb.Fatal(err)
}
