package server

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"hookglass"
	"hookglass/internal/seal"
	"hookglass/internal/store"
)

// open opens the database, waiting for PostgreSQL to answer, and then admits requests.
func (s *Server) open(ctx context.Context, background func(string, func(context.Context) error)) error {
	keys, err := s.openDatabase(ctx)
	if err != nil {
		return err
	}
	out := s.outbound()
	s.build(keys, out)
	if err := s.work(background, out); err != nil {
		return err
	}
	s.certificates.open.Store(&certificateStore{s.db, keys})
	if s.cfg.EndpointsFile != "" {
		file := &declaration{path: s.cfg.EndpointsFile, db: s.db, service: s.declares, ok: s.metrics.applied, hangup: s.hangup, log: s.log.With("part", "endpoints file")}
		if err := file.start(ctx); err != nil {
			return err
		}
		background("endpoints file", file.run)
	}
	s.gate.open(s.handler(), s.captures)
	s.log.Info("ready")
	background("watchdog", s.watchdog)
	notify("READY=1\nSTATUS=Serving " + s.URL())
	return nil
}

// openDatabase opens the database once it answers.
func (s *Server) openDatabase(ctx context.Context) (*seal.Keys, error) {
	cfg := store.Config{
		Path: filepath.Join(s.cfg.Data, databaseFile), URL: s.cfg.DatabaseURL,
		Log: s.log.With("part", "store"), OnCapture: s.metrics.captureGroup, Reserve: true,
	}
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		db, keys, err := s.openReady(ctx, cfg)
		if err == nil {
			s.db = db
			return keys, nil
		}
		passes := hookglass.Is(err, hookglass.CodeUnavailable) || errors.As(err, new(*store.NotWritable))
		if !passes || store.Damaged(err) { // a damaged database does not mend itself
			return nil, err
		}
		s.log.Warn("waiting for the database", "error", remedied(err), "retry_in", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// openReady opens a database that takes writes, migrates its schema, requeues the work that a dead process held, and
// opens the keyset. Each of these steps may need another connection, which PostgreSQL may refuse.
func (s *Server) openReady(ctx context.Context, cfg store.Config) (db *store.DB, keys *seal.Keys, err error) {
	if db, err = openWritable(ctx, cfg); err != nil {
		return nil, nil, err
	}
	for _, step := range []func(context.Context) error{
		db.Migrate, func(ctx context.Context) error { return filled(ctx, db) }, db.EndLeases,
		func(ctx context.Context) (err error) { keys, err = s.cfg.openKeys(ctx, db); return err },
	} {
		if err := step(ctx); err != nil {
			return nil, nil, errors.Join(err, db.Close())
		}
	}
	return db, keys, nil
}

// openWritable waits until the database takes writes: a standby after its promotion, a read-only setting once it is
// changed for new sessions.
func openWritable(ctx context.Context, cfg store.Config) (*store.DB, error) {
	db, err := store.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := db.Writable(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
