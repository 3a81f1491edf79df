package storetest_test

import (
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv("STORETEST_DIE") != "" {
		dieWithCluster()
	}
	if os.Getenv("STORETEST_DIE_FILES") != "" {
		dieWithFiles()
	}
	storetest.Main(m)
}

var migrated = storetest.Template(func(dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(`create table rows (n int)`)
	return err
})

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func exec1(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

func query[T any](t *testing.T, db *sql.DB, text string) T {
	t.Helper()
	var v T
	if err := db.QueryRow(text).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	a, b := open(t, storetest.Postgres(t)), open(t, storetest.Postgres(t))
	exec1(t, a, `create table rows (n int)`)
	exec1(t, b, `create table rows (n int)`)
}

func TestTheServerIsDurable(t *testing.T) {
	db := open(t, storetest.Postgres(t))
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		if got := query[string](t, db, `show `+setting); got != "on" {
			t.Errorf("%s = %s, want on", setting, got)
		}
	}
}

func TestCopiesOfATemplateAreSeparate(t *testing.T) {
	for range 2 {
		db := open(t, migrated(t))
		if n := query[int](t, db, `select count(*) from rows`); n != 0 {
			t.Fatalf("a fresh copy holds %d rows", n)
		}
		exec1(t, db, `insert into rows values (1)`)
	}
}

func TestCommittedRowsOutliveKill9(t *testing.T) {
	c := storetest.NewCluster(t)
	dsn, err := c.CreateDatabase("")
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, dsn)
	exec1(t, db, `create table rows (n int)`)
	for round := 1; round <= 2; round++ {
		exec1(t, db, `insert into rows values (1)`)
		if err := c.Kill9(); err != nil {
			t.Fatal(err)
		}
		if err := db.Ping(); err == nil {
			t.Fatal("a killed server answers")
		}
		if err := c.Restart(); err != nil {
			t.Fatal(err)
		}
		if n := query[int](t, db, `select count(*) from rows`); n != round {
			t.Fatalf("round %d: %d rows", round, n)
		}
	}
}

// A new cluster is a copy of what initdb has made before, and one that does not start is made anew, for those who come
// later as well.
func TestWhatInitdbMadeIsKept(t *testing.T) {
	caches := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", caches)
	isCopy := func() bool {
		t.Helper()
		c := storetest.NewCluster(t)
		defer c.Shutdown()
		_, err := os.Stat(filepath.Join(c.Data(), "marked"))
		return err == nil
	}
	if isCopy() {
		t.Error("it is a copy of nothing")
	}
	kept, err := filepath.Glob(filepath.Join(caches, "hookglass", "storetest", "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept are %q, %v", kept, err)
	}
	mark := func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(kept[0], "marked"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mark()
	if !isCopy() {
		t.Error("it is no copy of what is kept")
	}
	if err := os.Truncate(filepath.Join(kept[0], "global", "pg_control"), 10); err != nil {
		t.Fatal(err)
	}
	if isCopy() {
		t.Error("it is a copy of what does not start")
	}
	mark()
	if !isCopy() {
		t.Error("what did not start is still kept")
	}
}

// The benchmarks measure a server as it comes, which has run for a while.
func TestAStockServerReusesTheFilesOfItsLog(t *testing.T) {
	c, err := storetest.StartStock("")
	if err != nil {
		storetest.Missing(t, err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	db := open(t, c.DSN())
	for setting, want := range map[string]string{"shared_buffers": "128MB", "max_wal_size": "1GB", "autovacuum_naptime": "1min"} {
		if got := query[string](t, db, `show `+setting); got != want {
			t.Errorf("%s = %s, want %s", setting, got, want)
		}
	}
	if n := query[int](t, db, `select count(*) from pg_ls_waldir() where name > pg_walfile_name(pg_current_wal_lsn())`); n < 30 {
		t.Errorf("%d files of the log are there to be written", n)
	}
}

func TestARunningServerIsNotStartedTwice(t *testing.T) {
	c := storetest.NewCluster(t)
	if err := c.Restart(); err == nil {
		t.Fatal("started twice")
	}
	if err := c.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if err := c.Kill9(); err == nil {
		t.Fatal("killed what does not run")
	}
	if err := c.Restart(); err != nil {
		t.Fatal(err)
	}
}

// dieWithCluster is the child of TestAKilledProcessLeavesNothing: it starts a cluster, says where, and is killed.
func dieWithCluster() {
	c, err := storetest.Start(os.Getenv("STORETEST_DIE"))
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString(c.DSN() + "\n")
	select {}
}

func TestAKilledProcessLeavesNothing(t *testing.T) {
	storetest.Postgres(t) // skips or fails when there is no PostgreSQL
	dir, err := os.MkdirTemp("/tmp", "storetest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "STORETEST_DIE="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, strings.TrimSpace(string(buf[:n])))
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("left behind: %v", left)
		case <-tick.C:
		}
	}
	if err := db.Ping(); err == nil {
		t.Fatal("the server of a killed process answers")
	}
}

// recorder is a testing.TB that notes how a test was ended.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Helper()     {}
func (r *recorder) Skip(...any) { r.skipped = true; panic(errEnded) }
func (r *recorder) Fatal(...any) {
	r.failed = true
	panic(errEnded)
}

var errEnded = errors.New("ended")

func TestWithoutPostgresATestSkipsButFailsInCI(t *testing.T) {
	for ci, want := range map[string]recorder{"": {skipped: true}, "true": {failed: true}} {
		t.Setenv("CI", ci)
		if r := ended(t, storetest.ErrNoPostgres); r.skipped != want.skipped || r.failed != want.failed {
			t.Errorf("CI=%q: skipped %t, failed %t", ci, r.skipped, r.failed)
		}
	}
}

// Another version than the named one would pass for it.
func TestWithoutTheNamedPostgresATestFails(t *testing.T) {
	t.Setenv("CI", "")
	named := t.TempDir()
	t.Setenv("PG_BIN", named)
	c, err := storetest.Start("")
	if err == nil {
		t.Fatal("another one started", c.Stop())
	}
	if r := ended(t, err); !r.failed || !strings.Contains(err.Error(), named) {
		t.Errorf("failed %t: %v", r.failed, err)
	}
}

// ended returns how a test ends that gets no cluster because of an error.
func ended(t *testing.T, err error) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != errEnded {
				panic(p)
			}
		}()
		storetest.Missing(r, err)
	}()
	return r
}
