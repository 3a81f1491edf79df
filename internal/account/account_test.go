package account_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const password = "correct horse battery"

var all = []hookglass.Scope{hookglass.ScopeRead, hookglass.ScopeWrite, hookglass.ScopeTunnel}

// each runs the test with a service on each database.
func each(t *testing.T, test func(t *testing.T, s *account.Service, db *store.DB)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		test(t, account.New(db, slog.New(slog.DiscardHandler)), db)
	})
}

func register(t *testing.T, s *account.Service, email string) account.Registered {
	t.Helper()
	made, err := s.Register(t.Context(), account.Registration{Email: email, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func token(t *testing.T, s *account.Service, r account.TokenRequest) (string, hookglass.Token) {
	t.Helper()
	if r.Level == "" {
		r.Level = hookglass.LevelAccount
	}
	if r.Scopes == nil {
		r.Scopes = all
	}
	secret, made, err := s.CreateToken(t.Context(), hookglass.System, r)
	if err != nil {
		t.Fatal(err)
	}
	return secret, made
}

func wantCode(t *testing.T, err error, code hookglass.Code) {
	t.Helper()
	if !hookglass.Is(err, code) {
		t.Errorf("got error %v, want %s", err, code)
	}
}

func TestRegistrationMakesAUserWithAnAccountThatHasEveryRightAndAWorkspace(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		made, err := s.Register(t.Context(), account.Registration{Email: " Ada@Example.COM ", AccountName: "Engines"})
		if err != nil {
			t.Fatal(err)
		}
		if made.User.Email != "ada@example.com" || made.User.Name != "ada" || made.User.ID == 0 {
			t.Errorf("user %+v", made.User)
		}
		a := made.Account
		if a.Name != "Engines" || a.Plan != hookglass.PlanBusiness || a.Subscription != hookglass.SubscriptionActive || !a.PaymentMethod || a.Retention != 0 {
			t.Errorf("account %+v", a)
		}
		if made.Workspace.AccountID != a.ID || made.Workspace.ID == 0 {
			t.Errorf("workspace %+v", made.Workspace)
		}
		_, err = s.Register(t.Context(), account.Registration{Email: "ADA@example.com"})
		wantCode(t, err, hookglass.CodeValidationFailed)
		if found, err := s.UserByEmail(t.Context(), "aDa@example.com"); err != nil || found.ID != made.User.ID {
			t.Errorf("found %+v, %v", found, err)
		}
	})
}

func TestWhoJoinsAnAccountSharesAllOfIt(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		first := register(t, s, "ada@example.com")
		joined, err := s.Register(t.Context(), account.Registration{Email: "grace@example.com", Password: password, Join: &first.Account.ID})
		if err != nil || joined.Account.ID != first.Account.ID || joined.Workspace.ID != first.Workspace.ID || joined.User.ID == first.User.ID {
			t.Fatalf("%+v, %v", joined, err)
		}
		session, err := s.SignIn(t.Context(), "grace@example.com", password, "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		if who, _, err := s.Resume(t.Context(), session.Secret); err != nil || who.Account != first.Account.ID {
			t.Errorf("signed in as %+v, %v", who, err)
		}
		secret, _ := token(t, s, account.TokenRequest{User: joined.User.ID})
		if who, err := s.Authenticate(t.Context(), secret); err != nil || who.Account != first.Account.ID || who.User != joined.User.ID {
			t.Errorf("the token is %+v, %v", who, err)
		}
		var members []hookglass.User
		_ = db.View(t.Context(), hookglass.System, func(v *store.View) (err error) {
			members, err = v.Members(first.Account.ID)
			return err
		})
		if len(members) != 2 {
			t.Errorf("members %+v", members)
		}

		nowhere := first.Account.ID + 100
		_, err = s.Register(t.Context(), account.Registration{Email: "eve@example.com", Join: &nowhere})
		wantCode(t, err, hookglass.CodeNotFound)
		_, err = s.UserByEmail(t.Context(), "eve@example.com")
		wantCode(t, err, hookglass.CodeNotFound)
		_, err = s.Register(t.Context(), account.Registration{Email: "eve@example.com", AccountName: "Engines", Join: &first.Account.ID})
		wantCode(t, err, hookglass.CodeValidationFailed)
	})
}

func TestWhatRegistrationRefuses(t *testing.T) {
	s := account.New(storetest.SQLite(t), slog.New(slog.DiscardHandler))
	for name, r := range map[string]account.Registration{
		"no address":          {},
		"not an address":      {Email: "ada"},
		"an address and name": {Email: "Ada <ada@example.com>"},
		"two lines":           {Email: "ada@example.com\nbcc: eve@example.com"},
		"255 bytes":           {Email: strings.Repeat("a", 243) + "@example.com"},
		"a short password":    {Email: "ada@example.com", Password: "1234567"},
		"a huge password":     {Email: "ada@example.com", Password: strings.Repeat("p", 513)},
		"a nameless account":  {Email: "ada@example.com", AccountName: " "},
		"a long account name": {Email: "ada@example.com", AccountName: strings.Repeat("n", 101)},
		"a control character": {Email: "ada@example.com", AccountName: "a\x1b[2J"},
	} {
		if _, err := s.Register(t.Context(), r); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, r := range map[string]account.Registration{
		"a password of 8":         {Email: "a@example.com", Password: "12345678"},
		"a password of 512":       {Email: "b@example.com", Password: strings.Repeat("p", 512)},
		"an account name of 100":  {Email: "c@example.com", AccountName: strings.Repeat("ñ", 100)},
		"an address of 254 bytes": {Email: strings.Repeat("a", 242) + "@example.com"},
	} {
		if _, err := s.Register(t.Context(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who sees what is stored does not see who has the same password, nor can look it up in a table made before.
func TestTheSamePasswordIsStoredInAnotherWayForEach(t *testing.T) {
	db := storetest.SQLite(t)
	s := account.New(db, slog.New(slog.DiscardHandler))
	stored := make(map[string]bool)
	for _, email := range []string{"ada@example.com", "eve@example.com"} {
		made := register(t, s, email)
		err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
			hash, err := v.PasswordHash(made.User.ID)
			stored[hash] = true
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(stored) != 2 {
		t.Errorf("two users with one password have the same hash: %v", stored)
	}
}

func TestATokenIsShownOnceAndIsWhoItWasMadeFor(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		made := register(t, s, "ada@example.com")
		other, err := s.CreateWorkspace(t.Context(), hookglass.System, made.Account.ID, "Other")
		if err != nil {
			t.Fatal(err)
		}

		secret, tok := token(t, s, account.TokenRequest{User: made.User.ID, Name: "ci", Scopes: []hookglass.Scope{hookglass.ScopeRead}})
		if rest, ok := strings.CutPrefix(secret, "hg_"); !ok || len(rest) < 26 || !strings.HasPrefix(secret, tok.Hint) || len(tok.Hint) > 8 {
			t.Errorf("token %q, hint %q", secret, tok.Hint)
		}
		who, err := s.Authenticate(t.Context(), secret)
		if err != nil || who.Account != made.Account.ID || who.Workspace != 0 || who.User != made.User.ID || who.Token != tok.ID || who.System {
			t.Errorf("account token is %+v, %v", who, err)
		}
		if who.May(hookglass.ScopeRead) != nil || who.May(hookglass.ScopeWrite) == nil {
			t.Errorf("scopes %v", who.Scopes)
		}

		secret, _ = token(t, s, account.TokenRequest{User: made.User.ID, Level: hookglass.LevelWorkspace})
		if who, err = s.Authenticate(t.Context(), secret); err != nil || who.Workspace != made.Workspace.ID {
			t.Errorf("a workspace token without a workspace is of %d (%v), want the oldest, %d", who.Workspace, err, made.Workspace.ID)
		}
		secret, _ = token(t, s, account.TokenRequest{User: made.User.ID, Level: hookglass.LevelWorkspace, Workspace: &other.ID})
		if who, err = s.Authenticate(t.Context(), secret); err != nil || who.Workspace != other.ID || who.Account != made.Account.ID {
			t.Errorf("workspace token is %+v, %v", who, err)
		}
		user, acct, err := s.Verify(t.Context(), who)
		if err != nil || user != made.User || acct.ID != made.Account.ID {
			t.Errorf("verified %+v, %+v, %v", user, acct, err)
		}
	})
}

func TestWhateverIsWrongWithATokenTheAnswerIsTheSame(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		made := register(t, s, "ada@example.com")
		revoked, tok := token(t, s, account.TokenRequest{User: made.User.ID})
		if err := s.RevokeToken(t.Context(), hookglass.System, tok.ID); err != nil {
			t.Fatal(err)
		}
		if err := s.RevokeToken(t.Context(), hookglass.System, tok.ID); err != nil {
			t.Errorf("revoked again: %v", err)
		}
		expired, _ := token(t, s, account.TokenRequest{User: made.User.ID, ExpiresIn: time.Nanosecond})
		good, _ := token(t, s, account.TokenRequest{User: made.User.ID, ExpiresIn: time.Hour})
		if _, err := s.Authenticate(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		said := map[string]bool{}
		for _, bearer := range []string{"", "junk", "hg_", revoked, expired, good[:len(good)-1], good + "x", " " + good, strings.ToUpper(good),
			hookglass.NewRandomID("hg"), hookglass.NewRandomID("tk"), "\x00", "hg_\xff", strings.Repeat("h", 1<<20), "' OR 1=1 --"} {
			who, err := s.Authenticate(t.Context(), bearer)
			if !hookglass.Is(err, hookglass.CodeUnauthorized) || who.Account != 0 || who.System || who.Scopes != nil {
				t.Errorf("%.40q is %+v, %v", bearer, who, err)
				continue
			}
			said[err.Error()] = true
		}
		if len(said) != 1 {
			t.Errorf("different answers: %v", said)
		}
	})
}

func TestNobodyMakesATokenWithMoreRightsThanTheirOwn(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		ada, bob := register(t, s, "ada@example.com"), register(t, s, "bob@example.com")
		adas := hookglass.Principal{Account: ada.Account.ID, User: ada.User.ID, Scopes: all}
		inWorkspace := adas
		inWorkspace.Workspace = ada.Workspace.ID
		reading := adas
		reading.Scopes = []hookglass.Scope{hookglass.ScopeRead}

		for name, c := range map[string]struct {
			who  hookglass.Principal
			r    account.TokenRequest
			code hookglass.Code
		}{
			"another user's":             {adas, account.TokenRequest{User: bob.User.ID, Level: hookglass.LevelAccount, Scopes: all}, hookglass.CodeForbidden},
			"another account":            {adas, account.TokenRequest{User: ada.User.ID, Account: bob.Account.ID, Level: hookglass.LevelAccount, Scopes: all}, hookglass.CodeNotFound},
			"another's workspace":        {adas, account.TokenRequest{User: ada.User.ID, Workspace: &bob.Workspace.ID, Level: hookglass.LevelWorkspace, Scopes: all}, hookglass.CodeNotFound},
			"workspace 0":                {adas, account.TokenRequest{User: ada.User.ID, Workspace: new(int64), Level: hookglass.LevelWorkspace, Scopes: all}, hookglass.CodeNotFound},
			"another's, by admin":        {hookglass.System, account.TokenRequest{User: ada.User.ID, Workspace: &bob.Workspace.ID, Level: hookglass.LevelWorkspace, Scopes: all}, hookglass.CodeNotFound},
			"the account of a workspace": {inWorkspace, account.TokenRequest{User: ada.User.ID, Level: hookglass.LevelAccount, Scopes: all}, hookglass.CodeForbidden},
			"a scope more":               {reading, account.TokenRequest{User: ada.User.ID, Level: hookglass.LevelAccount, Scopes: all}, hookglass.CodeInsufficientScope},
			"no level":                   {adas, account.TokenRequest{User: ada.User.ID, Scopes: all}, hookglass.CodeValidationFailed},
			"no scope":                   {adas, account.TokenRequest{User: ada.User.ID, Level: hookglass.LevelAccount}, hookglass.CodeValidationFailed},
			"account with a workspace":   {adas, account.TokenRequest{User: ada.User.ID, Level: hookglass.LevelAccount, Workspace: &ada.Workspace.ID, Scopes: all}, hookglass.CodeValidationFailed},
			"expired before it began":    {adas, account.TokenRequest{User: ada.User.ID, Level: hookglass.LevelAccount, Scopes: all, ExpiresIn: -1}, hookglass.CodeValidationFailed},
			"nobody's":                   {hookglass.System, account.TokenRequest{User: 999, Level: hookglass.LevelAccount, Scopes: all}, hookglass.CodeNotFound},
		} {
			if secret, _, err := s.CreateToken(t.Context(), c.who, c.r); !hookglass.Is(err, c.code) || secret != "" {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
		}
		_, err := s.CreateWorkspace(t.Context(), inWorkspace, ada.Account.ID, "More")
		wantCode(t, err, hookglass.CodeForbidden)
		_, err = s.CreateWorkspace(t.Context(), adas, bob.Account.ID, "More")
		wantCode(t, err, hookglass.CodeNotFound)
		_, tok := token(t, s, account.TokenRequest{User: bob.User.ID})
		wantCode(t, s.RevokeToken(t.Context(), adas, tok.ID), hookglass.CodeNotFound)
	})
}

func TestTheKeyOfATemporaryEndpointIsThatEndpointAlone(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		for _, c := range []struct {
			name    string
			expires time.Duration
			ok      bool
		}{{"lives", time.Hour, true}, {"expired", -time.Hour, false}} {
			key := hookglass.NewRandomID(hookglass.PrefixTunnelKey)
			id := hookglass.NewEndpointID()
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				hash := sha256.Sum256([]byte(key))
				return tx.CreateEndpoint(&hookglass.Endpoint{ID: id, Kind: hookglass.KindWebhook, ExpiresAt: time.Now().Add(c.expires)}, hash[:])
			})
			if err != nil {
				t.Fatal(err)
			}
			who, err := s.Authenticate(t.Context(), key)
			if !c.ok {
				wantCode(t, err, hookglass.CodeUnauthorized)
				continue
			}
			if err != nil || who.Endpoint != id || who.Account != 0 || who.System ||
				who.May(hookglass.ScopeRead) != nil || who.May(hookglass.ScopeWrite) != nil || who.May(hookglass.ScopeTunnel) != nil {
				t.Errorf("%s: %+v, %v", c.name, who, err)
			}
			_, _, err = s.Verify(t.Context(), who)
			wantCode(t, err, hookglass.CodeForbidden)
		}
	})
}

func TestTheLastUseOfATokenIsNotedOnceAMinute(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		made := register(t, s, "ada@example.com")
		secret, tok := token(t, s, account.TokenRequest{User: made.User.ID})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()

		lastUsed := func() time.Time {
			var used time.Time
			err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
				tok, err := v.Token(tok.ID)
				used = tok.LastUsedAt
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return used
		}
		var first time.Time
		for first.IsZero() && t.Context().Err() == nil {
			if _, err := s.Authenticate(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			first = lastUsed()
		}
		for range 20 {
			if _, err := s.Authenticate(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if again := lastUsed(); !again.Equal(first) {
			t.Errorf("noted at %v and again at %v", first, again)
		}
	})
}

func TestSigningIn(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		made := register(t, s, "ada@example.com")
		session, err := s.SignIn(t.Context(), "ADA@example.com", password, "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		who, user, err := s.Resume(t.Context(), session.Secret)
		if err != nil || user != made.User || who.User != made.User.ID || who.Account != made.Account.ID || who.Token != 0 || len(who.Scopes) != 3 {
			t.Errorf("signed in as %+v, %v", who, err)
		}
		if again, err := s.SignIn(t.Context(), "ada@example.com", password, "192.0.2.1"); err != nil || again.Secret == session.Secret {
			t.Errorf("a second sign-in: %v", err)
		}

		_, wrong := s.SignIn(t.Context(), "ada@example.com", "wrong", "192.0.2.1")
		_, unknown := s.SignIn(t.Context(), "eve@example.com", password, "192.0.2.1")
		_, junk := s.SignIn(t.Context(), "\x00", strings.Repeat("p", 1<<16), "192.0.2.1")
		for _, err := range []error{wrong, unknown, junk} {
			if !hookglass.Is(err, hookglass.CodeUnauthorized) || err.Error() != wrong.Error() {
				t.Errorf("refused with %v, want always %v", err, wrong)
			}
		}

		if err := s.SetPassword(t.Context(), made.User.ID, "another password"); err != nil {
			t.Fatal(err)
		}
		_, _, err = s.Resume(t.Context(), session.Secret)
		wantCode(t, err, hookglass.CodeUnauthorized)
		_, err = s.SignIn(t.Context(), "ada@example.com", password, "192.0.2.1")
		wantCode(t, err, hookglass.CodeUnauthorized)
		session, err = s.SignIn(t.Context(), "ada@example.com", "another password", "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SignOut(t.Context(), session.Secret); err != nil {
			t.Fatal(err)
		}
		_, _, err = s.Resume(t.Context(), session.Secret)
		wantCode(t, err, hookglass.CodeUnauthorized)
	})
}

func TestAUserWithoutAPasswordDoesNotSignInByOne(t *testing.T) {
	s := account.New(storetest.SQLite(t), slog.New(slog.DiscardHandler))
	if _, err := s.Register(t.Context(), account.Registration{Email: "ada@example.com"}); err != nil {
		t.Fatal(err)
	}
	for _, guess := range []string{"", password, strings.Repeat("\x00", 32)} {
		_, err := s.SignIn(t.Context(), "ada@example.com", guess, "192.0.2.1")
		wantCode(t, err, hookglass.CodeUnauthorized)
	}
}

// allowed reports whether there were so many tries of what is allowed so often in a quarter of an hour, which is more
// where it took a while: the machine may be slow.
func allowed(tries, want, often int, began time.Time) bool {
	return tries >= want && tries <= want+int(time.Since(began)/(15*time.Minute/time.Duration(often)))
}

func TestGuessingIsThrottledByUserAndByAddress(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		began := time.Now()
		register(t, s, "ada@example.com")
		tries := func(email, peer string) int {
			for n := range 100 {
				_, err := s.SignIn(t.Context(), email, "", peer)
				var coded *hookglass.Error
				if errors.As(err, &coded) && coded.Code == hookglass.CodeRateLimited {
					if coded.RetryAfter <= 0 || coded.RetryAfter > 15*time.Minute {
						t.Errorf("retry after %v", coded.RetryAfter)
					}
					return n
				}
				wantCode(t, err, hookglass.CodeUnauthorized)
			}
			return 100
		}
		if n := tries("ada@example.com", "192.0.2.1"); !allowed(n, 20, 20, began) {
			t.Errorf("%d guesses at one user", n)
		}
		if n := tries("eve@example.com", "192.0.2.1"); !allowed(n, 19, 40, began) { // 20 and the refused one came before
			t.Errorf("%d more guesses from one address", n)
		}
		_, err := s.SignIn(t.Context(), "bob@example.com", "", "192.0.2.2")
		wantCode(t, err, hookglass.CodeUnauthorized)
	})
}

func TestALoginLinkWorksOnce(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		made := register(t, s, "ada@example.com")
		link, err := s.LoginLink(t.Context(), made.User.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = s.Resume(t.Context(), link)
		wantCode(t, err, hookglass.CodeUnauthorized) // a link is no session

		var wg sync.WaitGroup
		sessions := make(chan account.Session, 8)
		for range cap(sessions) {
			wg.Go(func() {
				if session, err := s.FollowLink(t.Context(), link); err == nil {
					sessions <- session
				} else if !hookglass.Is(err, hookglass.CodeUnauthorized) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(sessions) != 1 {
			t.Fatalf("%d of %d who followed the link got in", len(sessions), cap(sessions))
		}
		session := <-sessions
		if _, user, err := s.Resume(t.Context(), session.Secret); err != nil || user != made.User {
			t.Errorf("signed in as %+v, %v", user, err)
		}
		_, err = s.FollowLink(t.Context(), session.Secret)
		wantCode(t, err, hookglass.CodeUnauthorized) // a session is no link
		if err := s.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Resume(t.Context(), session.Secret); err != nil {
			t.Errorf("a purge ended a session that has not expired: %v", err)
		}
	})
}

// Tokens may be made by the thousand, for a job each: those that ended long ago are in nobody's list for ever.
func TestTokensThatEndedLongAgoAreForgotten(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		made := register(t, s, "ada@example.com")
		const day = 24 * time.Hour
		now := time.Now()
		create := func(name string, expires time.Time, revoked bool) {
			token := hookglass.Token{UserID: made.User.ID, AccountID: made.Account.ID, Name: name, Level: hookglass.LevelAccount, Scopes: []hookglass.Scope{hookglass.ScopeRead}, ExpiresAt: expires}
			err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
				if err := tx.CreateToken(&token, []byte(name)); err != nil || !revoked {
					return err
				}
				tx.Now = now.Add(-91 * day)
				return tx.RevokeToken(token.ID)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		create("without end", time.Time{}, false)
		create("valid", now.Add(day), false)
		create("expired lately", now.Add(-89*day), false)
		create("expired long ago", now.Add(-91*day), false)
		create("revoked long ago", now.Add(day), true)
		secret, _ := token(t, s, account.TokenRequest{User: made.User.ID, Name: "revoked lately"})
		lately, err := s.Authenticate(t.Context(), secret)
		if err != nil {
			t.Fatal(err)
		}
		names := func() (names []string) {
			err := db.View(t.Context(), hookglass.System, func(v *store.View) error {
				tokens, err := v.Tokens(made.User.ID)
				for _, t := range tokens {
					names = append(names, t.Name)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(names)
			return names
		}
		if err := s.RevokeToken(t.Context(), hookglass.System, lately.Token); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := names(), []string{"expired lately", "revoked lately", "valid", "without end"}; !slices.Equal(got, want) {
				t.Errorf("%q are kept, want %q", got, want)
			}
		}
	})
}

func TestSettingAnAccount(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		made := register(t, s, "ada@example.com")
		id := made.Account.ID
		got, err := s.SetAccount(t.Context(), id, account.Change{Plan: new(hookglass.PlanFree), Retention: new(time.Minute)})
		if err != nil || got.Plan != hookglass.PlanFree || got.Retention != time.Minute || !got.PaymentMethod || got.Subscription != hookglass.SubscriptionActive {
			t.Errorf("set to %+v, %v", got, err)
		}
		got, err = s.SetAccount(t.Context(), id, account.Change{Subscription: new(hookglass.SubscriptionTrialing), PaymentMethod: new(false), Retention: new(time.Duration(0))})
		if err != nil || got.Plan != hookglass.PlanFree || got.Retention != 0 || got.PaymentMethod || got.Subscription != hookglass.SubscriptionTrialing {
			t.Errorf("set to %+v, %v", got, err)
		}
		for name, c := range map[string]account.Change{
			"a plan there is not":         {Plan: new(hookglass.Plan("gold"))},
			"a subscription there is not": {Subscription: new(hookglass.Subscription("maybe"))},
			"a retention under a minute":  {Retention: new(time.Minute - 1)},
			"a negative retention":        {Retention: new(-time.Hour)},
		} {
			if _, err := s.SetAccount(t.Context(), id, c); !hookglass.Is(err, hookglass.CodeValidationFailed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err = s.SetAccount(t.Context(), id+1, account.Change{Plan: new(hookglass.PlanPro)})
		wantCode(t, err, hookglass.CodeNotFound)
	})
}

func FuzzStoredPassword(f *testing.F) {
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Add("$argon2id$v=19$m=4294967295,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if written, ok := account.ReadPHC(s); ok && written != s {
			t.Errorf("%q is read as %q", s, written)
		}
	})
}

func TestChangesOfAnAccountAtOnceAreAllKept(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		made := register(t, s, "ada@example.com")
		for i := range 20 {
			retention, payment := time.Duration(i+1)*time.Hour, i%2 == 0
			var changes sync.WaitGroup
			for _, c := range []account.Change{{Retention: &retention}, {PaymentMethod: &payment}} {
				changes.Go(func() {
					if _, err := s.SetAccount(t.Context(), made.Account.ID, c); err != nil {
						t.Error(err)
					}
				})
			}
			changes.Wait()
			var now hookglass.Account
			err := db.View(t.Context(), hookglass.System, func(v *store.View) (err error) { now, err = v.Account(made.Account.ID); return err })
			if err != nil || now.Retention != retention || now.PaymentMethod != payment {
				t.Fatalf("after change %d: %v, %t; %v", i, now.Retention, now.PaymentMethod, err)
			}
		}
	})
}
