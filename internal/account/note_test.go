package account_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// journal is a log that a test reads while it is written.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// has fails the test for what is not in a line of its own.
func (j *journal) has(t *testing.T, parts ...string) {
	t.Helper()
	for line := range strings.Lines(j.String()) {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(line, part)
		}
		if found {
			return
		}
	}
	t.Errorf("no line has %q in\n%s", parts, j)
}

func TestTheLogSaysWhoChangedWhatAndNoSecret(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var log journal
		s := account.New(db, slog.New(slog.NewTextHandler(&log, nil)))
		made := register(t, s, "ada@example.com")
		log.has(t, `"a user was created, with an account"`, "user=1", "email=ada@example.com", "account=1")
		who := hookglass.Principal{Account: made.Account.ID, User: made.User.ID, Scopes: all}

		secret, tok, err := s.CreateToken(t.Context(), who, account.TokenRequest{
			User: made.User.ID, Level: hookglass.LevelWorkspace, Scopes: []hookglass.Scope{hookglass.ScopeRead, hookglass.ScopeTunnel},
		})
		if err != nil {
			t.Fatal(err)
		}
		log.has(t, `"a token was created"`, "by_user=1", "token=1", "user=1", "workspace=1", "scopes=read,tunnel")
		if err := s.RevokeToken(t.Context(), who, tok.ID); err != nil {
			t.Fatal(err)
		}
		log.has(t, `"a token was revoked"`, "by_user=1", "token=1")
		if _, err := s.CreateWorkspace(t.Context(), who, made.Account.ID, "Other"); err != nil {
			t.Fatal(err)
		}
		log.has(t, `"a workspace was created"`, "by_user=1", "workspace=2", "account=1")
		plan := hookglass.PlanFree
		if _, err := s.SetAccount(t.Context(), made.Account.ID, account.Change{Plan: &plan}); err != nil {
			t.Fatal(err)
		}
		log.has(t, `"an account was changed"`, "account=1", "plan=free")

		if _, err := s.SignIn(t.Context(), "ada@example.com", "a wrong password", "addr"); err == nil {
			t.Fatal("signed in")
		}
		log.has(t, `"a sign-in failed"`, "level=WARN", `reason="the email address or the password is wrong"`, "user=1")
		if _, err := s.SignIn(t.Context(), "typed-into-the-wrong-field", password, "addr"); err == nil {
			t.Fatal("signed in")
		}
		session, err := s.SignIn(t.Context(), "ada@example.com", password, "addr")
		if err != nil {
			t.Fatal(err)
		}
		log.has(t, `"a user signed in"`, "user=1")
		if err := s.ChangePassword(t.Context(), who, "not this one", "another password", session.Secret); err == nil {
			t.Fatal("changed")
		}
		log.has(t, `"a sign-in failed"`, `reason="a wrong current password"`, "user=1")
		if err := s.ChangePassword(t.Context(), who, password, "another password", session.Secret); err != nil {
			t.Fatal(err)
		}
		log.has(t, `"a user's password was set"`, "by_user=1", "user=1")
		if _, err := s.FollowLink(t.Context(), "nolinkatall"); err == nil {
			t.Fatal("followed")
		}
		log.has(t, `"a sign-in failed"`, "a link that was used")
		if _, _, _, err := s.ExchangeCode(t.Context(), "ABCDEFGHIJKL"); err == nil {
			t.Fatal("exchanged")
		}
		log.has(t, `"a sign-in failed"`, "a one-time code")

		for _, said := range []string{secret, tok.Hint, password, "a wrong password", "another password", "not this one", session.Secret, "typed-into", "nolinkatall", "ABCDEFGHIJKL"} {
			if strings.Contains(log.String(), said) {
				t.Errorf("the log has %q:\n%s", said, &log)
			}
		}
	})
}

func TestACodeThatIsATokenOfNobodyIsAFailedSignIn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var log journal
		s := account.New(db, slog.New(slog.NewTextHandler(&log, nil)))
		if _, _, _, err := s.ExchangeCode(t.Context(), "hg_ofnobody"); !hookglass.Is(err, hookglass.CodeUnauthorized) {
			t.Errorf("answered %v", err)
		}
		log.has(t, `"a sign-in failed"`, "a one-time code")
		if strings.Contains(log.String(), "ofnobody") {
			t.Errorf("the log has the token:\n%s", &log)
		}
	})
}

func TestWhoGuessesDoesNotFloodTheLog(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var log journal
		s := account.New(db, slog.New(slog.NewTextHandler(&log, nil)))
		const guesses = 200
		for range guesses {
			if _, _, _, err := s.ExchangeCode(t.Context(), "no"); err == nil {
				t.Fatal("exchanged")
			}
		}
		account.EndSpate(s)
		lines := strings.Count(log.String(), "\n")
		if lines > 30 || lines < 2 {
			t.Errorf("%d lines for %d guesses", lines, guesses)
		}
		log.has(t, `"more sign-ins failed"`, "failed=180")
	})
}
