package store

import (
	"time"

	"hookglass"
)

// SessionKind says what the holder of a session's secret may do with it.
type SessionKind string

// The kinds.
const (
	SessionBrowser SessionKind = "browser" // is signed in
	SessionLink    SessionKind = "link"    // may sign in once
	SessionCode    SessionKind = "code"    // may get a token for a command line once
)

// CreateSession stores a session by the SHA-256 of its secret.
func (tx *Tx) CreateSession(kind SessionKind, hash []byte, user int64, expires time.Time) error {
	_, err := tx.exec("INSERT INTO sessions (hash, kind, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)",
		hash, string(kind), user, micros(tx.Now), micros(expires))
	return err
}

// SessionUser returns the user of a session of this kind that has not expired at the given time.
func (v *View) SessionUser(kind SessionKind, hash []byte, now time.Time) (hookglass.User, error) {
	a := args{[]any{hash, string(kind), micros(now)}}
	return one(v, "session", scanUser, "SELECT "+userColumns+` FROM sessions s JOIN users u ON u.id = s.user_id
		WHERE s.hash = $1 AND s.kind = $2 AND s.expires_at > $3`, &a)
}

// TakeSession deletes a session and returns its user: of two who try, one gets it.
func (tx *Tx) TakeSession(kind SessionKind, hash []byte) (user int64, err error) {
	err = tx.queryRow("session", "DELETE FROM sessions WHERE hash = $1 AND kind = $2 AND expires_at > $3 RETURNING user_id",
		[]any{hash, string(kind), micros(tx.Now)}, &user)
	return user, err
}

// DeleteSession ends a session; one that does not exist has ended already.
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

// PurgeSessions deletes sessions that have expired.
func (tx *Tx) PurgeSessions() error {
	_, err := tx.exec("DELETE FROM sessions WHERE expires_at <= $1", micros(tx.Now))
	return err
}
