package account

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"hookglass"
	"hookglass/internal/store"
)

// maxClient bounds the stored user agent.
const maxClient = 300

// DescribeSession records the user agent of a session's browser, so that its user can tell sessions apart.
func (s *Service) DescribeSession(ctx context.Context, secret, client string) error {
	client = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, client)
	client = hookglass.Beginning(client, maxClient)
	return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.DescribeSession(digest(secret), client) })
}

// Sessions lists the browser sessions of a user, newest first, and returns the id of the one with the secret.
func (s *Service) Sessions(ctx context.Context, who hookglass.Principal, secret string) (all []hookglass.BrowserSession, current string, err error) {
	all, err = store.Read(ctx, s.db, hookglass.System, func(v *store.View) ([]hookglass.BrowserSession, error) {
		return v.BrowserSessions(who.User, s.db.Now())
	})
	return all, store.SessionID(digest(secret)), err
}

// EndSessions ends a user's session with the id or, if id is empty, all except the one with the secret.
func (s *Service) EndSessions(ctx context.Context, who hookglass.Principal, id, secret string) error {
	var but []byte
	if id == "" {
		but = digest(secret)
	}
	return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.EndSessions(who.User, id, but) })
}

// ChangePassword replaces a user's password and ends the user's other sessions. It answers validation_failed for a
// wrong current password or a new one out of bounds, and rate_limited after too many attempts. A user without a
// password, who signs in by links, gives no current one.
func (s *Service) ChangePassword(ctx context.Context, who hookglass.Principal, current, password, secret string) error {
	user := ""
	var stored string
	err := s.db.View(ctx, hookglass.System, func(v *store.View) error {
		u, err := v.User(who.User)
		if err != nil {
			return err
		}
		user = u.Email
		stored, err = v.PasswordHash(who.User)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.allowUser(ctx, user); err != nil {
		s.refused(ctx, err, who.User)
		return err
	}
	if stored != "" {
		ok, err := s.hasher.matches(ctx, stored, current)
		if err != nil {
			return err
		}
		if !ok {
			return s.notCurrent(ctx, who.User)
		}
	}
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return err
	}
	return s.replacePassword(ctx, who, stored, hash, secret)
}

// replacePassword sets a password hash and ends the other sessions, unless the hash is no longer the known one. A
// password that was replaced meanwhile, for example by an administrator, must not be overwritten.
func (s *Service) replacePassword(ctx context.Context, who hookglass.Principal, known, hash, secret string) error {
	err := s.change(ctx, hookglass.System, func(tx *store.Tx) (string, []hookglass.Fact, error) {
		if err := stillHas(tx, who.User, known); err != nil {
			return "", nil, err
		}
		if err := tx.SetPasswordHash(who.User, hash); err != nil {
			return "", nil, err
		}
		return passwordWasSet, append(s.author(who), number("user", who.User)), tx.EndSessions(who.User, "", digest(secret))
	})
	if errors.Is(err, errReplaced) {
		return s.notCurrent(ctx, who.User)
	}
	return err
}

// notCurrent logs an attempt to change a password without knowing it, and returns the error.
func (s *Service) notCurrent(ctx context.Context, user int64) error {
	s.failed(ctx, "a wrong current password", user)
	return hookglass.Invalid("current_password", "is not your password")
}

// SignUp registers a new user and starts a session. It answers validation_failed, and rate_limited after too many calls
// from the peer's address.
func (s *Service) SignUp(ctx context.Context, email, password, peer string) (Session, error) {
	if err := s.allowPeer(ctx, peer); err != nil {
		s.refused(ctx, err, 0)
		return Session{}, err
	}
	if password == "" {
		return Session{}, hookglass.Invalid("password", "must have %d characters to %d bytes", minPassword, maxPassword)
	}
	var session Session
	_, err := s.register(ctx, Registration{Email: email, Password: password}, func(tx *store.Tx, user hookglass.User) (err error) {
		session, err = newSession(tx, store.SessionBrowser, user.ID, sessionLife)
		return err
	})
	return session, err
}

// HasPassword reports whether a user can sign in with a password.
func (s *Service) HasPassword(ctx context.Context, who hookglass.Principal) (bool, error) {
	hash, err := store.Read(ctx, s.db, hookglass.System, func(v *store.View) (string, error) { return v.PasswordHash(who.User) })
	return hash != "", err
}
