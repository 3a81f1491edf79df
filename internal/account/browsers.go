package account

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"hookglass"
	"hookglass/internal/store"
)

// maxClient bounds what is kept of what a browser says of itself.
const maxClient = 300

// DescribeSession notes what the browser of a session says of itself, so that its user can tell sessions apart.
func (s *Service) DescribeSession(ctx context.Context, secret, client string) error {
	client = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, client)
	client = strings.ToValidUTF8(client[:min(len(client), maxClient)], "")
	return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.DescribeSession(digest(secret), client) })
}

// Sessions lists the browsers that a user is signed in with, newest first, and which of them is the one with the
// secret.
func (s *Service) Sessions(ctx context.Context, who hookglass.Principal, secret string) (all []hookglass.BrowserSession, current string, err error) {
	err = s.db.View(ctx, hookglass.System, func(v *store.View) error {
		all, err = v.BrowserSessions(who.User, s.db.Now())
		return err
	})
	return all, store.SessionID(digest(secret)), err
}

// EndSessions ends the session of a user with the id, or all but the one with the secret where id is empty.
func (s *Service) EndSessions(ctx context.Context, who hookglass.Principal, id, secret string) error {
	var but []byte
	if id == "" {
		but = digest(secret)
	}
	return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.EndSessions(who.User, id, but) })
}

// ChangePassword replaces a user's password and ends the user's other sessions. It answers validation_failed for a
// wrong current password, and for a new one out of bounds; rate_limited after too many attempts. A user without a
// password, who signs in by links, names none.
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

// replacePassword sets the hash of a password in place of the one that was known, and ends the other sessions. One that
// was replaced meanwhile, by an administrator say, is not the user's to change any more.
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

// notCurrent notes an attempt to change a password without knowing it, and says so.
func (s *Service) notCurrent(ctx context.Context, user int64) error {
	s.failed(ctx, "a wrong current password", user)
	return hookglass.Invalid("current_password", "is not your password")
}

// SignUp registers a new user and starts a session. It answers validation_failed, and rate_limited after too many from
// the peer's address.
func (s *Service) SignUp(ctx context.Context, email, password, peer string) (Session, error) {
	if err := s.allowPeer(ctx, peer); err != nil {
		s.refused(ctx, err, 0)
		return Session{}, err
	}
	if password == "" {
		return Session{}, hookglass.Invalid("password", "must have %d characters to %d bytes", minPassword, maxPassword)
	}
	made, err := s.Register(ctx, Registration{Email: email, Password: password})
	if err != nil {
		return Session{}, err
	}
	var session Session
	err = s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error {
		session, err = newSession(tx, store.SessionBrowser, made.User.ID, sessionLife)
		return err
	})
	return session, err
}

// HasPassword reports whether a user can sign in by a password.
func (s *Service) HasPassword(ctx context.Context, who hookglass.Principal) (has bool, err error) {
	err = s.db.View(ctx, hookglass.System, func(v *store.View) error {
		hash, err := v.PasswordHash(who.User)
		has = hash != ""
		return err
	})
	return has, err
}
