package account

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

const (
	sessionLife = 30 * 24 * time.Hour
	linkLife    = 10 * time.Minute
)

// Bounds of sign-in attempts, successful or not. The bound per address stops one guesser, the bound per user many.
const (
	signInPeriod     = 15 * time.Minute
	signInsByAddress = 40
	signInsByUser    = 20
)

// Session is a signed in browser. Its secret is only for the browser's cookie.
type Session struct {
	Secret    string
	ExpiresAt time.Time
}

// SignIn starts a session with a password. For a wrong password and an unknown address it answers unauthorized, with
// the same message after the same time. It answers rate_limited after too many attempts from the peer's address or for
// the user.
func (s *Service) SignIn(ctx context.Context, email, password, peer string) (Session, error) {
	canonical, err := canonicalEmail(email)
	if err != nil {
		canonical = "" // no user has it
	}
	if err := s.allowPeer(ctx, peer); err != nil {
		s.refused(ctx, err, 0)
		return Session{}, err
	}
	if err := s.allowUser(ctx, canonical); err != nil {
		s.refused(ctx, err, 0)
		return Session{}, err
	}
	var user hookglass.User
	var stored string
	err = s.db.View(ctx, hookglass.System, func(v *store.View) error {
		if user, err = v.UserByEmail(canonical); err != nil {
			return err
		}
		stored, err = v.PasswordHash(user.ID)
		return err
	})
	if err != nil && !hookglass.Is(err, hookglass.CodeNotFound) {
		return Session{}, err
	}
	ok, err := s.hasher.matches(ctx, stored, password)
	if err != nil {
		return Session{}, err
	}
	if !ok {
		return Session{}, s.wrongPassword(ctx, user.ID)
	}
	return s.open(ctx, user.ID, stored)
}

// open starts the browser session of a user whose password matched the stored hash. The check takes a while; if the
// password was replaced meanwhile, which ended all sessions, no new one is started.
func (s *Service) open(ctx context.Context, user int64, stored string) (Session, error) {
	var session Session
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		if err = stillHas(tx, user, stored); err != nil {
			return err
		}
		session, err = newSession(tx, store.SessionBrowser, user, sessionLife)
		return err
	})
	if errors.Is(err, errReplaced) {
		return Session{}, s.wrongPassword(ctx, user)
	}
	s.signedIn(ctx, err, user)
	return session, err
}

// errReplaced says that the password was replaced after it was checked.
var errReplaced = errors.New("the password was replaced meanwhile")

// stillHas returns errReplaced if a user's password hash is not the given one any more; otherwise it locks the hash
// until the transaction ends.
func stillHas(tx *store.Tx, user int64, stored string) error {
	now, err := tx.PasswordHashToChange(user)
	if err == nil && now != stored {
		err = errReplaced
	}
	return err
}

// wrongPassword logs a failed sign-in and returns the error, which does not reveal whether the user exists.
func (s *Service) wrongPassword(ctx context.Context, user int64) error {
	s.failed(ctx, "the email address or the password is wrong", user)
	return hookglass.Errorf(hookglass.CodeUnauthorized, "The email address or the password is wrong.")
}

// signedIn logs a successful sign-in.
func (s *Service) signedIn(ctx context.Context, err error, user int64) {
	if err == nil {
		s.log.InfoContext(ctx, "a user signed in", "user", user)
	}
}

// refused logs a sign-in that was not tried because there were too many.
func (s *Service) refused(ctx context.Context, err error, user int64) {
	if hookglass.Is(err, hookglass.CodeRateLimited) {
		s.failed(ctx, "too many attempts", user)
	}
}

// allowPeer and allowUser count an attempt. The bucket names are hashed to keep them short, and because personal
// addresses should not be keys.
func (s *Service) allowPeer(ctx context.Context, peer string) error {
	return s.db.AllowEvenly(ctx, "signin-from:"+hex.EncodeToString(digest(peer)), signInsByAddress, signInPeriod)
}

func (s *Service) allowUser(ctx context.Context, canonical string) error {
	return s.db.AllowEvenly(ctx, "signin-as:"+hex.EncodeToString(digest(canonical)), signInsByUser, signInPeriod)
}

// LoginLink returns the secret of a link with which a user can sign in once, within ten minutes.
func (s *Service) LoginLink(ctx context.Context, user int64) (string, error) {
	var link Session
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		link, err = newSession(tx, store.SessionLink, user, linkLife)
		return err
	})
	return link.Secret, err
}

// FollowLink starts a session with a link's secret. It answers unauthorized for a link that is wrong, used or expired.
func (s *Service) FollowLink(ctx context.Context, secret string) (Session, error) {
	var session Session
	var user int64
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		if user, err = tx.TakeSession(store.SessionLink, digest(secret)); err != nil {
			return err
		}
		session, err = newSession(tx, store.SessionBrowser, user, sessionLife)
		return err
	})
	if hookglass.Is(err, hookglass.CodeNotFound) {
		s.failed(ctx, "a link that was used, has expired or never was", 0)
		return Session{}, hookglass.Errorf(hookglass.CodeUnauthorized, "This link was used already or has expired. hookglass dev prints a new one each time that it starts.")
	}
	s.signedIn(ctx, err, user)
	return session, err
}

// Resume returns the principal of a browser session: its user, with all scopes on the user's oldest account. It answers
// unauthorized if the session has ended.
func (s *Service) Resume(ctx context.Context, secret string) (hookglass.Principal, hookglass.User, error) {
	var who hookglass.Principal
	var user hookglass.User
	err := s.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		if user, err = v.SessionUser(store.SessionBrowser, digest(secret), v.Now); err != nil {
			return err
		}
		accounts, err := v.AccountsOf(user.ID)
		if err != nil {
			return err
		}
		if len(accounts) == 0 {
			return hookglass.NotFound("account")
		}
		who = hookglass.Principal{Account: accounts[0].ID, User: user.ID, Scopes: hookglass.Scopes}
		return nil
	})
	if hookglass.Is(err, hookglass.CodeNotFound) {
		err = hookglass.Errorf(hookglass.CodeUnauthorized, "Sign in to go on.")
	}
	return who, user, err
}

// SignOut ends a session at once, on all nodes.
func (s *Service) SignOut(ctx context.Context, secret string) error {
	return s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.DeleteSession(digest(secret)) })
}

func newSession(tx *store.Tx, kind store.SessionKind, user int64, life time.Duration) (Session, error) {
	s := Session{Secret: newSecret(), ExpiresAt: tx.Now.Add(life)}
	return s, tx.CreateSession(kind, digest(s.Secret), user, s.ExpiresAt)
}
