package account_test

import (
	"context"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/store"
)

func TestAPasswordThatWasReplacedMeanwhileOpensNothing(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		made := register(t, s, "ada@example.com")
		before, err := s.SignIn(t.Context(), "ada@example.com", password, "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		who, _, err := s.Resume(t.Context(), before.Secret)
		if err != nil {
			t.Fatal(err)
		}
		stored := func() (hash string) {
			err := db.View(t.Context(), hookglass.System, func(v *store.View) (err error) { hash, err = v.PasswordHash(made.User.ID); return err })
			if err != nil {
				t.Fatal(err)
			}
			return hash
		}
		// Someone who knows the password has it looked at; an administrator sets another before they go on.
		known := stored()
		if err := s.SetPassword(t.Context(), made.User.ID, "another password"); err != nil {
			t.Fatal(err)
		}
		set := stored()
		session, err := account.Open(t.Context(), s, made.User.ID, known)
		wantCode(t, err, hookglass.CodeUnauthorized)
		if session.Secret != "" {
			t.Error("there is a session all the same")
		}
		err = account.ReplacePassword(t.Context(), s, who, known, known, before.Secret)
		wantCode(t, err, hookglass.CodeValidationFailed)
		if now := stored(); now != set {
			t.Error("the password that was set is gone")
		}
		if _, err := s.SignIn(t.Context(), "ada@example.com", "another password", "192.0.2.1"); err != nil {
			t.Error(err)
		}
	})
}

func TestAChangedPasswordEndsWhatWouldBeginASession(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		register(t, s, "ada@example.com")
		current := password
		for _, end := range []func(who hookglass.Principal, secret string) error{
			func(who hookglass.Principal, secret string) error {
				err := s.ChangePassword(t.Context(), who, current, "another password", secret)
				current = "another password"
				return err
			},
			func(who hookglass.Principal, secret string) error { return s.EndSessions(t.Context(), who, "", secret) },
		} {
			session, err := s.SignIn(t.Context(), "ada@example.com", current, "192.0.2.1")
			if err != nil {
				t.Fatal(err)
			}
			who, _, err := s.Resume(t.Context(), session.Secret)
			if err != nil {
				t.Fatal(err)
			}
			code, err := s.CommandLineCode(t.Context(), who)
			if err != nil {
				t.Fatal(err)
			}
			link, err := s.LoginLink(t.Context(), who.User)
			if err != nil {
				t.Fatal(err)
			}
			if err := end(who, session.Secret); err != nil {
				t.Fatal(err)
			}
			_, _, _, err = s.ExchangeCode(t.Context(), code)
			wantCode(t, err, hookglass.CodeUnauthorized)
			_, err = s.FollowLink(t.Context(), link)
			wantCode(t, err, hookglass.CodeUnauthorized)
			if _, _, err := s.Resume(t.Context(), session.Secret); err != nil {
				t.Errorf("the session that did it: %v", err)
			}
		}
	})
}

// breaking is a context that ends when its deadline is asked for the nth time, as each transaction does.
type breaking struct {
	context.Context
	end   context.CancelFunc
	still *int
}

func (b breaking) Deadline() (time.Time, bool) {
	if *b.still--; *b.still == 0 {
		b.end()
	}
	return b.Context.Deadline()
}

// Who could not sign up or sign in because the storage was away does it again, wherever it broke off.
func TestWhatBreaksOffIsDoneAgain(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		register(t, s, "ada@example.com")
		_, who := signIn(t, s, "ada@example.com", password)
		code, err := s.CommandLineCode(t.Context(), who)
		if err != nil {
			t.Fatal(err)
		}
		for name, do := range map[string]func(context.Context) error{
			"a sign-up": func(ctx context.Context) error {
				_, err := s.SignUp(ctx, "eve@example.com", password, "192.0.2.1")
				return err
			},
			"a command line": func(ctx context.Context) error {
				token, _, _, err := s.ExchangeCode(ctx, code)
				if err == nil {
					_, err = s.Authenticate(t.Context(), token)
				}
				return err
			},
		} {
			t.Run(name, func(t *testing.T) {
				for n := 1; ; n++ {
					ctx, end := context.WithCancel(t.Context())
					still := n
					err := do(breaking{ctx, end, &still})
					broke := ctx.Err() != nil
					end()
					if err == nil && n > 1 {
						break
					}
					if !broke {
						t.Fatalf("the %dth time: %v", n, err)
					}
				}
			})
		}
	})
}
