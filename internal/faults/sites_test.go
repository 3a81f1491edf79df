//go:build linux

package faults_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"hookglass/internal/store/storetest"
)

// original is a site that the administration commands made once for all tests of the process; each gets a copy. Making
// one takes two processes and every migration.
type original struct{ dir, token string }

func makeOriginal(name, dsn string) (o original, err error) {
	o.dir = filepath.Join(scratch, name)
	if err = os.Mkdir(o.dir, 0o700); err == nil {
		o.token, err = makeSite(o.dir, dsn)
	}
	return o, err
}

var onSQLite = sync.OnceValues(func() (original, error) { return makeOriginal("sqlite", "") })

// onPostgres is set before postgresCopy gives out the first copy of its database.
var (
	onPostgres   original
	postgresCopy = storetest.Template(func(dsn string) (err error) {
		onPostgres, err = makeOriginal("postgres", dsn)
		return err
	})
)

// makeSite makes a database with a user and a token of it, by the administration commands.
func makeSite(dir, dsn string) (token string, err error) {
	flags := storage(filepath.Join(dir, "data0"), dsn, dir)
	var made struct {
		Token string `json:"token"`
	}
	err = command(nil, "", administration(flags, "user", "create", "--email", "owner@example.com")...)
	if err == nil {
		err = command(&made, "", administration(flags, "token", "create", "--email", "owner@example.com")...)
	}
	if err == nil && made.Token == "" {
		err = errors.New("token create printed no token")
	}
	return made.Token, err
}

// sqliteSite is a site on SQLite, in a directory that a test gives which wants a certain disk.
func sqliteSite(t *testing.T, dir string) *site {
	t.Helper()
	o, err := onSQLite()
	if err != nil {
		t.Fatal(err)
	}
	return o.copy(t, dir, "")
}

// postgresSite is a site on a database of its own in the PostgreSQL of all tests.
func postgresSite(t *testing.T) *site {
	t.Helper()
	dsn := postgresCopy(t)
	return onPostgres.copy(t, t.TempDir(), dsn)
}

func (o original) copy(t *testing.T, dir, dsn string) *site {
	t.Helper()
	err := filepath.WalkDir(o.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, path[len(o.dir):])
		if d.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return &site{t: t, dir: dir, dsn: dsn, token: o.token}
}
