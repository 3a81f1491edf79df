package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Verify reads an embedded database from end to end and answers what is damaged in it. PostgreSQL checks its
// pages itself when they carry checksums.
func (db *DB) Verify(ctx context.Context) error {
	if db.dialect == postgres {
		return nil
	}
	var found string
	if err := db.read.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return classify(err)
	}
	if found != "ok" {
		return fmt.Errorf("store: %w: %s", errDamaged, found)
	}
	return nil
}

// errDamaged is what Verify found.
var errDamaged = errors.New("the database file is damaged")

// Damaged reports whether the file of an embedded database is, or is none.
func Damaged(err error) bool {
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code()&0xff == sqlite3.SQLITE_CORRUPT || lite.Code()&0xff == sqlite3.SQLITE_NOTADB
	}
	return errors.Is(err, errDamaged)
}

// Clock is the time by the database, and the time at which its newest event came, zero when there is none.
func (db *DB) Clock(ctx context.Context) (clock, newest time.Time, err error) {
	clock = now()
	if db.dialect == postgres {
		var us int64
		if err := db.read.QueryRowContext(ctx, "SELECT cast(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)").Scan(&us); err != nil {
			return clock, newest, classify(err)
		}
		clock = time.UnixMicro(us).UTC()
	}
	var us sql.NullInt64
	err = db.read.QueryRowContext(ctx, "SELECT received_at FROM events ORDER BY seq DESC LIMIT 1").Scan(&us)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return clock, fromMicros(us), classify(err)
}

// SealedSecret is a secret as it is stored. Where names its row, and is what internal/seal binds it to.
type SealedSecret struct {
	Where  string
	Sealed []byte
}

// SealedSecrets returns up to limit secrets of every kind, the newest of each, for finding out whether a keyset
// opens them. Whoever seals a new kind adds it here.
func (v *View) SealedSecrets(limit int) ([]SealedSecret, error) {
	var a args
	query := "SELECT s.endpoint, s.provider, s.sealed FROM signature_configs s JOIN endpoints e ON e.num = s.endpoint WHERE " +
		v.accountScope(&a, "e.account_id", "e.workspace_id") + " ORDER BY s.id DESC LIMIT " + a.add(limit)
	secrets, err := queryAll(v, func(scan func(...any) error) (s SealedSecret, err error) {
		var endpoint int64
		var provider string
		err = scan(&endpoint, &provider, &s.Sealed)
		s.Where = fmt.Sprintf("signature_configs:sealed:%d:%s", endpoint, provider)
		return s, err
	}, query, a.values...)
	if err != nil {
		return nil, err
	}
	var b args
	query = "SELECT c.id, c.sealed FROM replay_cases c JOIN endpoints e ON e.num = c.endpoint WHERE " +
		v.accountScope(&b, "e.account_id", "e.workspace_id") + " ORDER BY c.num DESC LIMIT " + b.add(limit)
	cases, err := queryAll(v, func(scan func(...any) error) (s SealedSecret, err error) {
		var id string
		err = scan(&id, &s.Sealed)
		s.Where = "replay_cases:config:" + id
		return s, err
	}, query, b.values...)
	if err != nil {
		return nil, err
	}
	var c args
	query = "SELECT s.id, s.sealed FROM action_secrets s JOIN workspaces w ON w.id = s.workspace_id WHERE " +
		v.accountScope(&c, "w.account_id", "w.id") + " ORDER BY s.num DESC LIMIT " + c.add(limit)
	values, err := queryAll(v, func(scan func(...any) error) (s SealedSecret, err error) {
		var id string
		err = scan(&id, &s.Sealed)
		s.Where = "action_secrets:value:" + id
		return s, err
	}, query, c.values...)
	if err != nil {
		return nil, err
	}
	var d args
	query = "SELECT c.id, c.sealed FROM notification_channels c JOIN workspaces w ON w.id = c.workspace_id WHERE " +
		v.accountScope(&d, "w.account_id", "w.id") + " ORDER BY c.num DESC LIMIT " + d.add(limit)
	channels, err := queryAll(v, func(scan func(...any) error) (s SealedSecret, err error) {
		var id string
		err = scan(&id, &s.Sealed)
		s.Where = "notification_channels:sealed:" + id
		return s, err
	}, query, d.values...)
	if err != nil {
		return nil, err
	}
	acme, err := queryAll(v, func(scan func(...any) error) (s SealedSecret, err error) {
		var name string
		err = scan(&name, &s.Sealed)
		s.Where = "acme:sealed:" + name
		return s, err
	}, "SELECT name, sealed FROM acme ORDER BY updated_at DESC LIMIT $1", limit)
	return slices.Concat(secrets, cases, values, channels, acme), err
}
