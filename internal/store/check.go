package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Verify reads an embedded database from end to end and returns an error if it is damaged.
func (db *DB) Verify(ctx context.Context) error {
	var found string
	if err := db.read.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return classify(err)
	}
	if found != "ok" {
		return fmt.Errorf("store: %w: %s", errDamaged, found)
	}
	return nil
}

// errDamaged is the error of Verify.
var errDamaged = errors.New("the database file is damaged")

// Damaged reports whether the file of an embedded database is damaged, or is not a database.
func Damaged(err error) bool {
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code()&0xff == sqlite3.SQLITE_CORRUPT || lite.Code()&0xff == sqlite3.SQLITE_NOTADB
	}
	return errors.Is(err, errDamaged)
}

// Clock returns how far the database's clock is ahead of this machine's, and when its newest event was received, zero
// if there is none.
func (db *DB) Clock(ctx context.Context) (ahead time.Duration, newest time.Time, err error) {
	if db.dialect == postgres {
		var us int64
		before := now()
		if err := db.read.QueryRowContext(ctx, "SELECT "+postgresClock).Scan(&us); err != nil {
			return 0, newest, classify(err)
		}
		ahead = apart(time.UnixMicro(us), before, now())
	}
	var us sql.NullInt64
	err = db.read.QueryRowContext(ctx, "SELECT received_at FROM events ORDER BY seq DESC LIMIT 1").Scan(&us)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return ahead, fromMicros(us), classify(err)
}

// apart returns how far a clock is ahead of this machine's, which showed one time before it was read and one after.
// What may be the time that reading it took is no difference.
func apart(clock, before, after time.Time) time.Duration {
	switch {
	case clock.Before(before):
		return clock.Sub(before)
	case clock.After(after):
		return clock.Sub(after)
	}
	return 0
}

// SealedSecret is a secret as it is stored. Where names its row; internal/seal binds the secret to it.
type SealedSecret struct {
	Where  string
	Sealed []byte
}

// SealedSecrets returns the newest secrets of each kind, up to limit, to find out whether a keyset opens them. A new
// kind of secret must be added here.
func (v *View) SealedSecrets(limit int) ([]SealedSecret, error) {
	var all []SealedSecret
	for _, kind := range []struct{ where, key, from, account, workspace, age string }{
		{"signature_configs:sealed:", "cast(s.endpoint AS text) || ':' || s.provider", "signature_configs s JOIN endpoints e ON e.num = s.endpoint", "e.account_id", "e.workspace_id", "s.id"},
		{"replay_cases:config:", "s.id", "replay_cases s JOIN endpoints e ON e.num = s.endpoint", "e.account_id", "e.workspace_id", "s.num"},
		{"action_secrets:value:", "s.id", "action_secrets s JOIN workspaces w ON w.id = s.workspace_id", "w.account_id", "w.id", "s.num"},
		{"notification_channels:sealed:", "s.id", "notification_channels s JOIN workspaces w ON w.id = s.workspace_id", "w.account_id", "w.id", "s.num"},
		{"forwarding_targets:sealed:", "cast(s.endpoint AS text)", "(SELECT * FROM forwarding_targets WHERE sealed IS NOT NULL) s JOIN endpoints e ON e.num = s.endpoint",
			"e.account_id", "e.workspace_id", "s.id"},
		{"acme:sealed:", "s.name", "acme s", "", "", "s.updated_at"}, // the installation's
	} {
		var a args
		scope := "1 = 1"
		if kind.account != "" {
			scope = v.accountScope(&a, kind.account, kind.workspace)
		}
		found, err := queryAll(v, func(scan func(...any) error) (s SealedSecret, err error) {
			err = scan(&s.Where, &s.Sealed)
			s.Where = kind.where + s.Where
			return s, err
		}, "SELECT "+kind.key+", s.sealed FROM "+kind.from+" WHERE "+scope+" ORDER BY "+kind.age+" DESC LIMIT "+a.add(limit), a.all()...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}
