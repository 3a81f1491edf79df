package cli_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/seal"
	"hookglass/internal/store"
)

// statuses is what doctor finds, by what it looked at.
func statuses(t testing.TB, s storage) (code int, found map[string]string) {
	t.Helper()
	r := run(t, "", s.args("doctor", "--json")...)
	found = make(map[string]string)
	for _, f := range member(t, decode(t, r.out), "findings").([]any) {
		name, status := member(t, f, "name").(string), member(t, f, "status").(string)
		if found[name] != "wrong" {
			found[name] = status
		}
	}
	return r.code, found
}

func TestDoctorFindsNothingWrongWithAHealthyInstallation(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		install(t, s)
		code, found := statuses(t, s)
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
		for _, name := range []string{"data directory", "disk space", "schema", "database", "clock", "keyset"} {
			if found[name] != "ok" && !(name == "disk space" && found[name] == "warning") {
				t.Errorf("%s is %q", name, found[name])
			}
		}
		want := ""
		if s.config().URL == "" { // of the files of PostgreSQL nothing is read
			want = "ok"
		}
		if found["integrity"] != want {
			t.Errorf("integrity is %q, want %q", found["integrity"], want)
		}
	})
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		harm func(t *testing.T, dir string)
		what string
	}{
		"others may enter the directory": {func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o755)) }, "data directory"},
		"others may read the keys":       {func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, "keys.json"), 0o644)) }, "keyset"},
		"the keyset is lost":             {func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "keys.json"))) }, "keyset"},
		"the keyset is damaged":          {func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, "keys.json"), 50)) }, "keyset"},
		"the keyset is another's": {func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "keys.json")))
			_, err := seal.LoadOrCreate(filepath.Join(dir, "keys.json"))
			must(t, err)
		}, "keyset"},
		"others may read dev's token": {func(t *testing.T, dir string) { must(t, os.WriteFile(filepath.Join(dir, "dev.json"), nil, 0o644)) }, "data directory"},
		"the lock cannot be opened": {func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, "lock")))
			must(t, os.Mkdir(filepath.Join(dir, "lock"), 0o700)) // which root may not open either, as others may not root's file
		}, "data directory"},
		"the log of the database cannot be written": {func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, "hookglass.db-wal"), 0o700))
		}, "data directory"},
		"the database is no database": {func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "hookglass.db"), []byte(strings.Repeat("junk", 4096)), 0o600))
		}, "database"},
		"a page is damaged": {func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, "hookglass.db"), os.O_RDWR, 0)
			must(t, err)
			for page := int64(3); page < 25; page++ { // of 8 KiB; some are in use
				_, err = f.WriteAt([]byte(strings.Repeat("\x7f", 64)), page*8192)
				must(t, err)
			}
			must(t, f.Close())
		}, "integrity"},
		"there is nothing": {func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }, "database"},
	} {
		t.Run(name, func(t *testing.T) {
			i := install(t, freshSQLite(t))
			c.harm(t, i.dir)
			code, found := statuses(t, i.storage)
			if code != 1 || found[c.what] != "wrong" {
				t.Errorf("exit code %d, found %v; want %s to be wrong", code, found, c.what)
			}
		})
	}
}

// Each finding goes on to say what there is to do.
func TestDoctorSaysWhatThereIsToDoAboutADamagedDatabase(t *testing.T) {
	for name, harm := range map[string]func(*os.File) error{
		"no database": func(f *os.File) error { _, err := f.WriteAt([]byte(strings.Repeat("junk", 1024)), 0); return err },
		"cut off":     func(f *os.File) error { return f.Truncate(100_000) },
	} {
		i := install(t, freshSQLite(t))
		f, err := os.OpenFile(filepath.Join(i.dir, "hookglass.db"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(harm(f), f.Close()); err != nil {
			t.Fatal(err)
		}
		if r := run(t, "", i.args("doctor")...); r.code != 1 || !strings.Contains(r.out, "hookglass restore --force") {
			t.Errorf("%s: %+v", name, r)
		}
		fails(t, 1, "hookglass restore --force", i.args("admin", "account", "list")...)
	}
}

// Where the file opens and what is read of it is damaged, the storage is said not to answer: people must not try again.
func TestWhatMeetsADamagedPageSaysWhatThereIsToDo(t *testing.T) {
	i := install(t, freshSQLite(t))
	path := filepath.Join(i.dir, "hookglass.db")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 8192
	for at := 10 * page; at < 30*page; at += page { // the first are read when the file is opened
		copy(file[at:], strings.Repeat("\x7f", 64))
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"backup", filepath.Join(t.TempDir(), "x")}, {"serve", "--listen", "127.0.0.1:0", "--smtp-listen", "off"}} {
		if r := run(t, "", i.args(command...)...); r.code != 1 || !strings.Contains(r.err, "hookglass restore --force") {
			t.Errorf("%s: %+v", command[0], r)
		}
	}
}

// What anything else writes into the destination of a move differs from the source in the end.
func TestADatabaseThatIsBeingFilledIsLeftAlone(t *testing.T) {
	i := install(t, freshPostgres(t))
	db, err := sql.Open("pgx", i.flags[3])
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "DELETE FROM rate_limits; INSERT INTO moves (id, source, state, started_at) VALUES (1, '', 'copying', 1)"); err != nil {
		t.Fatal(err)
	}
	if code, found := statuses(t, i.storage); code != 1 || found["database"] != "wrong" {
		t.Errorf("doctor: exit code %d, %v", code, found)
	}
	fails(t, 1, "being filled", i.args("admin", "user", "create", "--email", "eve@example.com")...)
	fails(t, 1, "being filled", i.args("backup", filepath.Join(t.TempDir(), "backup"))...)
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM rate_limits) + (SELECT count(*) FROM users) - 1").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows were written, %v", n, err)
	}
}

// A file that a server would not start with is found before it is started, and nothing of it is kept.
func TestDoctorTriesTheEndpointsFile(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		i := install(t, s)
		for text, want := range map[string]string{
			"endpoints: [{custom_id: tried, name: T}]": "file.yaml can be applied",
			"version: 2":          "file.yaml:1: version must be 1",
			"account: somebody's": "file.yaml:1: account is no account",
			"endpoints:\n- {custom_id: tried, name: T, forwarding_targets: [{name: a, url: 'http://10.0.0.1/'}]}": "file.yaml:2: endpoints.0.forwarding_targets.0.url is not a public address",
			// What is this installation's own stays shut, whatever is allowed.
			"endpoints:\n- {custom_id: tried, name: T, forwarding_targets: [{name: a, url: 'http://127.0.0.1:9090/'}]}": "file.yaml:2: endpoints.0.forwarding_targets.0.url is not a public address",
			"endpoints:\n- {custom_id: tried, name: T, forwarding_targets: [{name: b, url: 'http://127.0.0.1:9091/'}]}": "file.yaml can be applied",
		} {
			file := filepath.Join(t.TempDir(), "file.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			r := run(t, "", i.args("doctor", "--endpoints-file", file, "--outbound-allow", "127.0.0.1:9000-9100", "--metrics-listen", "127.0.0.1:9090")...)
			if well := strings.HasSuffix(want, "applied"); !strings.Contains(r.out, want) || well != (r.code == 0) {
				t.Errorf("%q: exit code %d, %s", text, r.code, r.out)
			}
		}
		db := open(t, s)
		defer db.Close()
		if err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
			all, err := v.Endpoints(0, 0)
			if len(all) != 1 {
				t.Errorf("there are %d endpoints, and there was one", len(all))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// Whoever may not look into a directory is not told that nothing is there; a file in its place stands for that here,
// because root may look everywhere.
func TestADatabaseThatCanNotBeLookedAtIsNotSaidToBeMissing(t *testing.T) {
	s := freshSQLite(t)
	if err := os.WriteFile(s.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"doctor"}, {"backup", filepath.Join(t.TempDir(), "backup")}} {
		if r := run(t, "", s.args(args...)...); r.code != 1 || strings.Contains(r.out+r.err, "there is no") {
			t.Errorf("%s: %+v", args[0], r)
		}
	}
}

func TestDoctorSaysEachThingInOneLine(t *testing.T) {
	s := freshSQLite(t)
	r := run(t, "", "doctor", "--data", s.dir, "--database-url", "postgres://u@127.0.0.1:1/none")
	for i, line := range strings.Split(strings.TrimSpace(r.out), "\n") {
		if status, _, _ := strings.Cut(line, " "); i > 0 && status != "ok" && status != "warning" && status != "wrong" {
			t.Errorf("a line is no finding: %q", line)
		}
	}
}

// A backup of a database that lacks something is restored to one that has all.
func TestDoctorFindsWhatWasRemovedFromTheSchema(t *testing.T) {
	each(t, func(t *testing.T, s storage) {
		i := install(t, s)
		driver, name := "sqlite", s.config().Path
		if s.config().URL != "" {
			driver, name = "pgx", s.config().URL
		}
		db, err := sql.Open(driver, name)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, statement := range []string{"DROP TABLE flows", "DROP INDEX forwards_failed", "DROP TABLE river_job"} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		r := run(t, "", s.args("doctor")...)
		if r.code != 1 || !strings.Contains(r.out, "index forwards_failed") || !strings.Contains(r.out, "table flows") || !strings.Contains(r.out, "table river_job") {
			t.Errorf("%+v", r)
		}
		file := filepath.Join(t.TempDir(), "all.backup")
		object(t, "", s.args("backup", file)...)
		other := freshSQLite(t)
		object(t, "", other.args("restore", file)...)
		i.whole(t, other)
		if r := run(t, "", other.args("doctor")...); r.code != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestDoctorShowsNoSecretAndMakesNothing(t *testing.T) {
	s := freshSQLite(t)
	if r := run(t, "", s.args("doctor")...); r.code != 1 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was made: %v", err)
	}
	r := run(t, "", "doctor", "--data", s.dir, "--database-url", "postgres://u:canary@127.0.0.1:1/none")
	if r.code != 1 || strings.Contains(r.out+r.err, "canary") {
		t.Errorf("%+v", r)
	}
}
