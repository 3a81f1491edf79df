package store

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"time"

	"hookglass"
)

// SessionKind says what a session's secret allows its holder to do.
type SessionKind string

// The kinds.
const (
	SessionBrowser SessionKind = "browser" // to act as a signed in user
	SessionLink    SessionKind = "link"    // to sign in once
	SessionCode    SessionKind = "code"    // to get a token for a command line once
)

// CreateSession stores a session by the SHA-256 of its secret.
func (tx *Tx) CreateSession(kind SessionKind, hash []byte, user int64, expires time.Time) error {
	_, err := tx.exec("INSERT INTO sessions (hash, kind, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)",
		hash, string(kind), user, micros(tx.Now), micros(expires))
	return err
}

// DescribeSession records how the browser of a session described itself.
func (tx *Tx) DescribeSession(hash []byte, client string) error {
	return tx.change("session", "UPDATE sessions SET client = $2 WHERE hash = $1", hash, nullString(client))
}

// BrowserSessions lists the browsers that a user is signed in with at the given time, newest first.
//
// "expires_at + 0" keeps the index on the expiry out, here and below: nearly all sessions have not expired.
func (v *View) BrowserSessions(user int64, now time.Time) ([]hookglass.BrowserSession, error) {
	return queryAll(v, func(scan func(...any) error) (s hookglass.BrowserSession, err error) {
		var hash []byte
		var client sql.NullString
		var created, expires sql.NullInt64
		err = scan(&hash, &client, &created, &expires)
		s = hookglass.BrowserSession{ID: SessionID(hash), Client: client.String, CreatedAt: fromMicros(created), ExpiresAt: fromMicros(expires)}
		return s, err
	}, "SELECT hash, client, created_at, expires_at FROM sessions WHERE user_id = $1 AND kind = $2 AND expires_at + 0 > $3 ORDER BY created_at DESC, hash",
		user, string(SessionBrowser), micros(now))
}

// SessionID returns the public id of a session: a part of its hash, which grants nothing.
func SessionID(hash []byte) string { return hex.EncodeToString(hash[:8]) }

// EndSessions ends browser sessions of a user, except the one with the hash but: the one with the ID or, if that is
// empty, all of them, together with the links and codes that could begin new ones.
func (tx *Tx) EndSessions(user int64, id string, but []byte) error {
	tx.Announce(TopicTokens)
	hashes, err := queryAll(&tx.View, func(scan func(...any) error) (hash []byte, err error) {
		err = scan(&hash)
		return hash, err
	}, "SELECT hash FROM sessions WHERE user_id = $1 AND (kind = $2 OR $3)", user, string(SessionBrowser), id == "")
	if err != nil {
		return err
	}
	for _, hash := range hashes {
		if bytes.Equal(hash, but) || id != "" && SessionID(hash) != id {
			continue
		}
		if _, err := tx.exec("DELETE FROM sessions WHERE hash = $1", hash); err != nil {
			return err
		}
	}
	return nil
}

// SessionUser returns the user of a session of this kind that has not expired at the given time.
func (v *View) SessionUser(kind SessionKind, hash []byte, now time.Time) (hookglass.User, error) {
	a := args{[]any{hash, string(kind), micros(now)}}
	return one(v, "session", scanUser, "SELECT "+userColumns+` FROM sessions s JOIN users u ON u.id = s.user_id + 0
		WHERE s.hash = $1 AND s.kind = $2 AND s.expires_at + 0 > $3`, &a)
}

// TakeSession deletes a session and returns its user. If two callers try, only one succeeds.
func (tx *Tx) TakeSession(kind SessionKind, hash []byte) (user int64, err error) {
	err = tx.queryRow("session", "DELETE FROM sessions WHERE hash = $1 AND kind = $2 AND expires_at + 0 > $3 RETURNING user_id",
		[]any{hash, string(kind), micros(tx.Now)}, &user)
	return user, err
}

// DeleteSession ends a session. It is no error if there is none.
func (tx *Tx) DeleteSession(hash []byte) error {
	tx.Announce(TopicTokens)
	_, err := tx.exec("DELETE FROM sessions WHERE hash = $1", hash)
	return err
}

// DeleteSessionsOf ends all sessions of a user.
func (tx *Tx) DeleteSessionsOf(user int64) error {
	tx.Announce(TopicTokens)
	_, err := tx.exec("DELETE FROM sessions WHERE user_id = $1", user)
	return err
}

// purgeSessions bounds the sessions that one transaction purges.
const purgeSessions = 500

// PurgeSessions deletes some of the sessions that have expired, and reports whether there may be more.
func (tx *Tx) PurgeSessions() (more bool, err error) {
	n, err := tx.exec("DELETE FROM sessions WHERE "+tx.dialect.picked("hash", "SELECT hash FROM sessions WHERE expires_at <= $1 LIMIT $2"), micros(tx.Now), purgeSessions)
	return n == purgeSessions, err
}
