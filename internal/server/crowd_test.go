package server_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hookglass/internal/server"
	"hookglass/internal/store/storetest"
)

// A server that gives out no more connections is waited for, whichever of the connections that a start takes it refuses
// first.
func TestAServiceWaitsForConnections(t *testing.T) {
	cluster := storetest.NewCluster(t)
	do := func(statement string) {
		t.Helper()
		db, err := sql.Open("pgx", cluster.DSN())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
			t.Fatal(err)
		}
	}
	do("CREATE ROLE r LOGIN")
	// Opening takes 8 connections, and making the schema takes others beside them.
	for _, limit := range []int{1, 7, 8, 9, 10, 11} {
		name := fmt.Sprintf("few%d", limit)
		do(fmt.Sprintf("CREATE DATABASE %s OWNER r CONNECTION LIMIT %d", name, limit))
		cfg := config(filepath.Join(t.TempDir(), "data"))
		cfg.DatabaseURL = strings.Replace(strings.Replace(cluster.DSN(), "/postgres?", "/"+name+"?", 1), "user=hookglass", "user=r", 1)
		log := &awaited{text: "waiting for the database", heard: make(chan struct{})}
		s, err := server.New(cfg, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ready, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- s.Run(ctx, func(context.Context) error { close(ready); return nil }) }()
		select {
		case <-ready:
			t.Logf("%d connections are enough to begin", limit)
		case <-log.heard:
			t.Logf("%d connections: %s", limit, log.String())
			do(fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT 60", name))
			select {
			case <-ready:
			case err := <-ended:
				t.Fatalf("%d: it ended: %v", limit, err)
			case <-time.After(patience):
				t.Fatalf("%d: it is not ready: %s", limit, log.String())
			}
		case err := <-ended:
			t.Errorf("with %d connections it ended: %v", limit, err)
			stop()
			continue
		case <-time.After(patience):
			t.Fatalf("%d: it neither waits nor is ready: %s", limit, log.String())
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%d: %v", limit, err)
		}
	}
}
