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

// Attempts to sign in, right or wrong. The bound of an address stops one guesser, that of a user many.
const (
	signInPeriod     = 15 * time.Minute
	signInsByAddress = 40
	signInsByUser    = 20
)

// Session is a browser that is signed in. Its secret is for the browser's cookie alone.
type Session struct {
	Secret    string
	ExpiresAt time.Time
}

// SignIn starts a session for who knows the password. It answers unauthorized, the same and after the same
// time, for a wrong password and an unknown address, and rate_limited after too many attempts from the peer's
// address or for the user.
func (s *Service) SignIn(ctx context.Context, email, password, peer string) (Session, error) {
	canonical, err := canonicalEmail(email)
	if err != nil {
		canonical = "" // nobody's
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

// open begins the browser session of a user whose password was found to be that of the stored hash. Finding out takes a
// while, more where many sign in: a password that was replaced meanwhile, which ended all sessions, opens no new one.
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

// errReplaced is of a password that is another by now than the one that was looked at.
var errReplaced = errors.New("the password was replaced meanwhile")

// stillHas answers errReplaced when a user's password is not that of the stored hash any more, and keeps it as it is
// until the transaction ends.
func stillHas(tx *store.Tx, user int64, stored string) error {
	now, err := tx.PasswordHashToChange(user)
	if err == nil && now != stored {
		err = errReplaced
	}
	return err
}

// wrongPassword notes a sign-in that failed and says so, the same to whom there is and whom there is not.
func (s *Service) wrongPassword(ctx context.Context, user int64) error {
	s.failed(ctx, "the email address or the password is wrong", user)
	return hookglass.Errorf(hookglass.CodeUnauthorized, "The email address or the password is wrong.")
}

// signedIn tells of a session that began.
func (s *Service) signedIn(ctx context.Context, err error, user int64) {
	if err == nil {
		s.log.InfoContext(ctx, "a user signed in", "user", user)
	}
}

// refused tells of a sign-in that was not tried, for there were too many.
func (s *Service) refused(ctx context.Context, err error, user int64) {
	if hookglass.Is(err, hookglass.CodeRateLimited) {
		s.failed(ctx, "too many attempts", user)
	}
}

// allowPeer and allowUser count an attempt. The names of the rows are hashed, because a key should be short whatever
// was sent, and addresses of people are no names for rows.
func (s *Service) allowPeer(ctx context.Context, peer string) error {
	return s.db.AllowEvenly(ctx, "signin-from:"+hex.EncodeToString(digest(peer)), signInsByAddress, signInPeriod)
}

func (s *Service) allowUser(ctx context.Context, canonical string) error {
	return s.db.AllowEvenly(ctx, "signin-as:"+hex.EncodeToString(digest(canonical)), signInsByUser, signInPeriod)
}

// LoginLink returns the secret of a link that signs a user in once, within ten minutes.
func (s *Service) LoginLink(ctx context.Context, user int64) (string, error) {
	var link Session
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) (err error) {
		link, err = newSession(tx, store.SessionLink, user, linkLife)
		return err
	})
	return link.Secret, err
}

// FollowLink starts a session by a link's secret. A link that was followed, has expired or never was answers
// unauthorized.
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

// Resume finds who a browser's session is: its user, in the user's oldest account, with every scope. It
// answers unauthorized when the session has ended.
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
		who = hookglass.Principal{Account: accounts[0].ID, User: user.ID, Scopes: []hookglass.Scope{hookglass.ScopeRead, hookglass.ScopeWrite, hookglass.ScopeTunnel}}
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
