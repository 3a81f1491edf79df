package storetest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// migrated returns a copy of a database that is migrated once for all tests of the process.
var migrated = Template(func(dsn string) error {
	db, err := store.Open(context.Background(), store.Config{URL: dsn, Connect: time.Minute})
	if err != nil {
		return err
	}
	return errors.Join(db.Migrate(context.Background()), db.Close())
})

// isMigrated holds the DSNs that Migrated gave.
var isMigrated sync.Map

// Migrated returns the DSN of a fresh, migrated database on PostgreSQL, to which nothing is connected.
func Migrated(tb testing.TB) string {
	tb.Helper()
	dsn := migrated(tb)
	isMigrated.Store(dsn, true)
	return dsn
}

// embedded is the file of an embedded database that is migrated once for all tests of the process: parsing every
// migration takes longer than most tests.
var embedded = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "storetest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "hookglass.db")
	db, err := store.Open(context.Background(), store.Config{Path: path})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(db.Migrate(context.Background()), db.Close()); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		return nil, errors.New("storetest: the template of the embedded database is not in one file")
	}
	return os.ReadFile(path)
})

// Each runs the test on a fresh, migrated database of each kind.
func Each(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Open(t, store.Config{URL: Migrated(t)})) })
}

// files returns the directory of the embedded databases of this test process: in memory where a cluster's would be, so
// that no commit waits for a disk. It is removed when the process has ended, however that happens.
var files = sync.OnceValues(func() (string, error) {
	parent := fastDir()
	if parent == "/tmp" {
		parent = "" // where tests have all their files
	}
	dir, err := os.MkdirTemp(parent, "storetest")
	if err != nil {
		return "", err
	}
	keeper := exec.Command("/bin/sh", "-c", `trap '' INT TERM HUP; cat >/dev/null; rm -rf "$1"`, "keeper", dir)
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	_, err = keeper.StdinPipe() // stays open as long as the process
	if err == nil {
		err = keeper.Start()
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	keepers = append(keepers, keeper)
	return dir, nil
})

// keepers are not forgotten, because the pipe of one that is would be closed.
var keepers []*exec.Cmd

// SQLite returns a fresh, migrated embedded database.
func SQLite(tb testing.TB) *store.DB {
	tb.Helper()
	parent, err := files()
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	content, err := embedded()
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(dir, "hookglass.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	return opened(tb, store.Config{Path: path})
}

// Open opens and migrates a database and closes it when the test ends. A machine that stands still for some seconds may
// be about to connect: the test goes on afterwards. In a database that Migrated gave it does not look for what is to be
// migrated, which takes longer than most tests.
func Open(tb testing.TB, cfg store.Config) *store.DB {
	tb.Helper()
	db := opened(tb, cfg)
	if _, is := isMigrated.Load(cfg.URL); is {
		return db
	}
	if err := repeat(func() error { return db.Migrate(context.Background()) }); err != nil {
		tb.Fatal(err)
	}
	return db
}

func opened(tb testing.TB, cfg store.Config) *store.DB {
	tb.Helper()
	if cfg.Connect == 0 {
		cfg.Connect = time.Minute
	}
	db, err := open(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

func open(cfg store.Config) (db *store.DB, err error) {
	err = repeat(func() (err error) {
		db, err = store.Open(context.Background(), cfg)
		return err
	})
	return db, err
}

// repeat does again what fails because the database does not answer in time: the machine may be busy.
func repeat(do func() error) (err error) {
	for range 5 {
		if err = do(); !hookglass.Is(err, hookglass.CodeUnavailable) {
			return err
		}
	}
	return err
}
