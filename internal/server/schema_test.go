package server_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"hookglass/internal/server"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// older makes a database with the schema of an older program.
func older(t *testing.T, s server.Storage) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(s.Data, "hookglass.db"), URL: s.DatabaseURL})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.MigrateTo(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
}

func version(t *testing.T, s server.Storage) int64 {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{Path: filepath.Join(s.Data, "hookglass.db"), URL: s.DatabaseURL})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	have, _, err := db.SchemaVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return have
}

// An older program that serves the database could not be started again on what a command of a newer one had made of it.
func TestWhatOnlyLooksLeavesTheSchemaOfAnOlderProgram(t *testing.T) {
	for name, s := range map[string]server.Storage{"sqlite": {Data: t.TempDir()}, "postgres": {Data: t.TempDir(), DatabaseURL: storetest.Postgres(t)}} {
		t.Run(name, func(t *testing.T) {
			older(t, s)
			admin := &server.AdminCmd{Storage: s}
			terminal := &server.Terminal{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}
			lists := map[string]interface {
				Run(context.Context, *server.Terminal, *server.AdminCmd) error
			}{
				"user list": &server.UserListCmd{}, "account list": &server.AccountListCmd{}, "workspace list": &server.WorkspaceListCmd{Account: 1},
				"token list": &server.TokenListCmd{Email: "ada@example.com"},
			}
			for command, list := range lists {
				err := list.Run(t.Context(), terminal, admin)
				if err == nil || !strings.Contains(err.Error(), "version 10") || !strings.Contains(err.Error(), "run hookglass migrate") {
					t.Errorf("%s: %v", command, err)
				}
			}
			cfg := config(s.Data)
			cfg.DatabaseURL = s.DatabaseURL
			if found := examined(t, cfg); found["schema"] != "wrong" {
				t.Errorf("doctor: %v", found)
			}
			if got := version(t, s); got != 10 {
				t.Fatalf("who looked brought the schema to version %d", got)
			}
			if err := (&server.UserCreateCmd{Email: "ada@example.com"}).Run(t.Context(), terminal, admin); err != nil {
				t.Fatal(err)
			}
			for command, list := range lists {
				if err := list.Run(t.Context(), terminal, admin); err != nil {
					t.Errorf("%s, up to date: %v", command, err)
				}
			}
		})
	}
}

// The same command meets the same schema again.
func TestAMoveThatIsRefusedIsNotToBeRepeated(t *testing.T) {
	newer := func(t *testing.T, driver, source, applied string) {
		t.Helper()
		db, err := sql.Open(driver, source)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, "+applied+")"); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		prepare func(t *testing.T, from server.Storage, to string) (url string)
		says    string
	}{
		"an older source": {func(*testing.T, server.Storage, string) string { return "" }, "run hookglass migrate"},
		"a newer source": {func(t *testing.T, from server.Storage, _ string) string {
			newer(t, "sqlite", filepath.Join(from.Data, "hookglass.db"), "1")
			return ""
		}, "take that program"},
		"a newer destination": {func(t *testing.T, _ server.Storage, to string) string {
			older(t, server.Storage{DatabaseURL: to})
			newer(t, "pgx", to, "true")
			return ""
		}, "take that program"},
		"no right": {func(t *testing.T, from server.Storage, to string) string {
			db, err := sql.Open("pgx", to)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), "DO $$ BEGIN CREATE ROLE mover LOGIN; EXCEPTION WHEN duplicate_object THEN END $$; REVOKE ALL ON SCHEMA public FROM PUBLIC"); err != nil {
				t.Fatal(err)
			}
			if err := (&server.MigrateCmd{Storage: from}).Run(t.Context(), &server.Terminal{Out: io.Discard, Err: io.Discard}); err != nil {
				t.Fatal(err)
			}
			at, err := url.Parse(to)
			if err != nil {
				t.Fatal(err)
			}
			q := at.Query()
			q.Set("user", "mover")
			at.RawQuery = q.Encode()
			return at.String()
		}, "GRANT USAGE, CREATE ON SCHEMA public TO mover"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := server.Storage{Data: t.TempDir()}, storetest.Postgres(t)
			older(t, from)
			if other := row.prepare(t, from, to); other != "" {
				to = other
			}
			err := (&server.MigrateCmd{Storage: from, To: to}).Run(t.Context(), &server.Terminal{Out: io.Discard, Err: io.Discard})
			if err == nil || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "same command again") {
				t.Errorf("%v", err)
			}
			if name != "no right" {
				return
			}
			cfg := config(from.Data)
			cfg.DatabaseURL = to
			var out bytes.Buffer
			if err := (&server.DoctorCmd{Config: cfg}).Run(t.Context(), &server.Terminal{Out: &out, Err: io.Discard}); err == nil || !strings.Contains(out.String(), row.says) {
				t.Errorf("doctor: %v\n%s", err, out.String())
			}
		})
	}
}

// An index of a large table waits for transactions that were begun before, of which one may have been forgotten. Whoever
// migrates, restores or administers by hand is told so, as the log of a server tells it.
func TestACommandThatWaitsForOthersToChangeTheSchemaSaysSo(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "archive")
	source := server.Storage{Data: t.TempDir()}
	quiet := &server.Terminal{Out: io.Discard, Err: io.Discard}
	for _, command := range []interface {
		Run(context.Context, *server.Terminal) error
	}{&server.MigrateCmd{Storage: source}, &server.BackupCmd{Storage: source, File: archive}} {
		if err := command.Run(t.Context(), quiet); err != nil {
			t.Fatal(err)
		}
	}
	for name, command := range map[string]func(s server.Storage) func(context.Context, *server.Terminal) error{
		"migrate": func(s server.Storage) func(context.Context, *server.Terminal) error {
			return (&server.MigrateCmd{Storage: s}).Run
		},
		"restore": func(s server.Storage) func(context.Context, *server.Terminal) error {
			return (&server.RestoreCmd{Storage: s, File: archive}).Run
		},
		"migrate --to": func(s server.Storage) func(context.Context, *server.Terminal) error {
			return (&server.MigrateCmd{Storage: source, To: s.DatabaseURL}).Run
		},
		"migrate --to --json": func(s server.Storage) func(context.Context, *server.Terminal) error {
			c := &server.MigrateCmd{Storage: source, To: s.DatabaseURL}
			c.JSON = true
			return c.Run
		},
		"admin": func(s server.Storage) func(context.Context, *server.Terminal) error {
			return func(ctx context.Context, t *server.Terminal) error {
				return (&server.UserCreateCmd{Email: "ada@example.com"}).Run(ctx, t, &server.AdminCmd{Storage: s})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := server.Storage{Data: t.TempDir(), DatabaseURL: storetest.Postgres(t)}
			db, err := sql.Open("pgx", s.DatabaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			forgotten, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
			if err != nil {
				t.Fatal(err)
			}
			defer forgotten.Rollback()
			if _, err := forgotten.ExecContext(t.Context(), "SELECT count(*) FROM pg_class"); err != nil {
				t.Fatal(err)
			}
			told, tell := io.Pipe()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			done := make(chan error, 1)
			go func() {
				done <- command(s)(ctx, &server.Terminal{Out: io.Discard, Err: tell})
				tell.Close()
			}()
			lines := bufio.NewScanner(told)
			for lines.Scan() && !strings.Contains(lines.Text(), "still preparing the schema") {
			}
			if !strings.Contains(lines.Text(), "while others use its tables") {
				t.Errorf("it ended with %q", lines.Text())
			}
			if name == "migrate --to --json" && !json.Valid(lines.Bytes()) { // as its progress is
				t.Errorf("%q is no JSON", lines.Text())
			}
			go io.Copy(io.Discard, told)
			forgotten.Rollback()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// Whoever stops a migration that waits for others is not told that the database stopped it.
func TestAMigrationThatIsStoppedSaysSo(t *testing.T) {
	s := server.Storage{Data: t.TempDir(), DatabaseURL: storetest.Postgres(t)}
	older(t, s)
	db, err := sql.Open("pgx", s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	reader, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	if _, err := reader.ExecContext(t.Context(), "LOCK forwarding_targets, payloads, replays IN ACCESS SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	told, tell := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- (&server.MigrateCmd{Storage: s}).Run(ctx, &server.Terminal{Out: io.Discard, Err: tell})
		tell.Close()
	}()
	lines := bufio.NewScanner(told)
	for lines.Scan() && !strings.Contains(lines.Text(), "still preparing the schema") {
	}
	go io.Copy(io.Discard, told)
	stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "it was stopped; run the same command again") {
		t.Errorf("%v", err)
	}
}
