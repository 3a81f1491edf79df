package server_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass/internal/server"
	"hookglass/internal/store/storetest"
)

func TestADataDirectoryThatCannotBeMadeSaysWhy(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(filepath.Join(dir, "nowhere"), link)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{file, filepath.Join(file, "below"), link} {
		if _, err := server.New(config(at), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "name a directory by --data") {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// Linux's own words for it are "invalid argument".
func TestThePathOfASocketIsNotTooLong(t *testing.T) {
	cfg := config(filepath.Join(t.TempDir(), "data"))
	cfg.LMTPListen = "/" + strings.Repeat("l", 103)
	if _, err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "--lmtp-listen: the path of a socket has 103 bytes at most") {
		t.Error(err)
	}
	cfg.LMTPListen = cfg.LMTPListen[:103]
	if _, err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

func TestTooFewFilesAreRefused(t *testing.T) {
	if err := server.EnoughFiles(47, nil); err == nil || !strings.Contains(err.Error(), "raise ulimit -n") {
		t.Error(err)
	}
	if err := errors.Join(server.EnoughFiles(48, nil), server.EnoughFiles(0, errors.ErrUnsupported)); err != nil {
		t.Error(err)
	}
}

// awaited is a log that tells when a text stands in it.
type awaited struct {
	journal
	text  string
	once  sync.Once
	heard chan struct{}
}

func (a *awaited) Write(p []byte) (int, error) {
	n, err := a.journal.Write(p)
	if strings.Contains(a.String(), a.text) {
		a.once.Do(func() { close(a.heard) })
	}
	return n, err
}

// A standby takes writes once it is promoted, and a role once it may: the service waits, as for a server that is away.
func TestAServiceWaitsForADatabaseThatTakesWrites(t *testing.T) {
	dsn := storetest.NewCluster(t).DSN()
	do := func(statement string) {
		t.Helper()
		db, err := sql.Open("pgx", strings.Replace(dsn, "/postgres?", "/template1?", 1)) // which may be written to
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
			t.Fatal(err)
		}
	}
	do("ALTER DATABASE postgres SET default_transaction_read_only = on")
	cfg := config(filepath.Join(t.TempDir(), "data"))
	cfg.DatabaseURL = dsn
	if said := examined(t, cfg); said["database"] != "wrong" || said["rights"] != "" {
		t.Errorf("doctor: %v", said)
	}
	log := &awaited{text: "waiting for the database", heard: make(chan struct{})}
	s, err := server.New(cfg, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func(context.Context) error { close(ready); return nil }) }()
	select {
	case <-log.heard:
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	case <-time.After(patience):
		t.Fatal("it does not wait")
	}
	if !strings.Contains(log.String(), "RESET default_transaction_read_only") {
		t.Errorf("what there is to do is not said: %s", log.String())
	}
	resp, err := http.Get("http://" + s.Addr() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d without a database that takes writes", resp.StatusCode)
	}
	do("ALTER DATABASE postgres RESET default_transaction_read_only")
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	case <-time.After(patience):
		t.Fatal("it is not ready")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestDoctorSaysWhatADatabaseLacks(t *testing.T) {
	cluster := storetest.NewCluster(t)
	db, err := sql.Open("pgx", cluster.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{"CREATE DATABASE latin TEMPLATE template0 LOCALE 'C' ENCODING 'LATIN1'", "CREATE DATABASE few CONNECTION LIMIT 9", "CREATE ROLE r LOGIN", "ALTER DATABASE few OWNER TO r"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config(filepath.Join(t.TempDir(), "data"))
	cfg.DatabaseURL = strings.Replace(cluster.DSN(), "/postgres?", "/latin?", 1)
	if said := examined(t, cfg); said["encoding"] != "wrong" || said["connections"] != "ok" {
		t.Errorf("of an encoding: %v", said)
	}
	cfg.DatabaseURL = strings.Replace(strings.Replace(cluster.DSN(), "/postgres?", "/few?", 1), "user=hookglass", "user=r", 1)
	if said := examined(t, cfg); said["connections"] != "warning" || said["encoding"] != "" {
		t.Errorf("of few connections: %v", said)
	}
}
