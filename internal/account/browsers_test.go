package account_test

import (
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/store"
)

// signIn signs a user in with a password.
func signIn(t *testing.T, s *account.Service, email, password string) (account.Session, hookglass.Principal) {
	t.Helper()
	session, err := s.SignIn(t.Context(), email, password, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	who, _, err := s.Resume(t.Context(), session.Secret)
	if err != nil {
		t.Fatal(err)
	}
	return session, who
}

func TestSigningUp(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		session, err := s.SignUp(t.Context(), "Ada@Example.com", password, "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		who, user, err := s.Resume(t.Context(), session.Secret)
		if err != nil || user.Email != "ada@example.com" || who.User != user.ID || who.Account == 0 || who.System {
			t.Errorf("signed up as %+v, %+v, %v", who, user, err)
		}
		if has, err := s.HasPassword(t.Context(), who); err != nil || !has {
			t.Errorf("a password: %t, %v", has, err)
		}
		signIn(t, s, "ada@example.com", password)

		for name, r := range map[string][2]string{
			"an address that is taken": {"ada@example.com", "another password"},
			"no password":              {"eve@example.com", ""},
			"a short password":         {"eve@example.com", "1234567"},
		} {
			session, err := s.SignUp(t.Context(), r[0], r[1], "192.0.2.1")
			wantCode(t, err, hookglass.CodeValidationFailed)
			if session.Secret != "" {
				t.Errorf("%s: there is a session", name)
			}
		}
		signIn(t, s, "ada@example.com", password) // it is as it was
		_, err = s.UserByEmail(t.Context(), "eve@example.com")
		wantCode(t, err, hookglass.CodeNotFound)
	})
}

func TestSigningUpIsThrottledByAddress(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		tries, began := 0, time.Now()
		for ; tries < 100; tries++ {
			_, err := s.SignUp(t.Context(), "ada@example.com", "", "192.0.2.1")
			if hookglass.Is(err, hookglass.CodeRateLimited) {
				break
			}
			wantCode(t, err, hookglass.CodeValidationFailed)
		}
		if !allowed(tries, 40, 40, began) {
			t.Errorf("%d from one address, want 40", tries)
		}
		if _, err := s.SignUp(t.Context(), "ada@example.com", password, "192.0.2.1"); time.Since(began) < 20*time.Second { // then the next is allowed
			wantCode(t, err, hookglass.CodeRateLimited)
		}
		if _, err := s.SignUp(t.Context(), "eve@example.com", password, "192.0.2.2"); err != nil {
			t.Errorf("from another address: %v", err)
		}
	})
}

// Who found a browser that is signed in does not find the password with it.
func TestGuessingTheCurrentPasswordIsThrottled(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		register(t, s, "ada@example.com")
		began := time.Now()
		session, who := signIn(t, s, "ada@example.com", password)
		guesses := 0
		for ; guesses < 100; guesses++ {
			err := s.ChangePassword(t.Context(), who, "a guess", "another password", session.Secret)
			if hookglass.Is(err, hookglass.CodeRateLimited) {
				break
			}
			wantCode(t, err, hookglass.CodeValidationFailed)
		}
		if !allowed(guesses, 19, 20, began) { // of 20 attempts, the first of which was to sign in
			t.Errorf("%d guesses, want 19", guesses)
		}
		if err := s.ChangePassword(t.Context(), who, password, "another password", session.Secret); time.Since(began) < 20*time.Second { // then the next is allowed
			wantCode(t, err, hookglass.CodeRateLimited)
		}
	})
}

func TestAUserWithoutAPasswordSetsOne(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		made, err := s.Register(t.Context(), account.Registration{Email: "ada@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		link, err := s.LoginLink(t.Context(), made.User.ID)
		if err != nil {
			t.Fatal(err)
		}
		session, err := s.FollowLink(t.Context(), link)
		if err != nil {
			t.Fatal(err)
		}
		who := hookglass.Principal{Account: made.Account.ID, User: made.User.ID}
		if has, err := s.HasPassword(t.Context(), who); err != nil || has {
			t.Errorf("a password: %t, %v", has, err)
		}
		if err := s.ChangePassword(t.Context(), who, "", password, session.Secret); err != nil {
			t.Fatal(err)
		}
		signIn(t, s, "ada@example.com", password)
		wantCode(t, s.ChangePassword(t.Context(), who, "", "another password", session.Secret), hookglass.CodeValidationFailed)
		signIn(t, s, "ada@example.com", password)
	})
}

func TestABrowserEndsTheSessionsOfItsUserAlone(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		register(t, s, "ada@example.com")
		register(t, s, "eve@example.com")
		mine, ada := signIn(t, s, "ada@example.com", password)
		other, _ := signIn(t, s, "ada@example.com", password)
		third, _ := signIn(t, s, "ada@example.com", password)
		eves, eve := signIn(t, s, "eve@example.com", password)
		said := "Fire\x1b[2Jfox\n\ufffd " + strings.Repeat("é", 200)
		if err := s.DescribeSession(t.Context(), mine.Secret, said); err != nil {
			t.Fatal(err)
		}
		list, current, err := s.Sessions(t.Context(), ada, mine.Secret)
		if err != nil || len(list) != 3 {
			t.Fatalf("%+v, %v; want 3", list, err)
		}
		for _, b := range list {
			want := ""
			if b.ID == current {
				want = "Fire[2Jfox " + strings.Repeat("é", 144) // 300 bytes, and no half of a character
			}
			if b.Client != want {
				t.Errorf("a browser says of itself %q, want %q", b.Client, want)
			}
		}
		_, id, err := s.Sessions(t.Context(), ada, other.Secret)
		if err != nil {
			t.Fatal(err)
		}
		is := func(what string, session account.Session, on bool) {
			t.Helper()
			if _, _, err := s.Resume(t.Context(), session.Secret); (err == nil) != on {
				t.Errorf("%s: %v, want it signed in: %t", what, err, on)
			}
		}
		if err := s.EndSessions(t.Context(), eve, id, eves.Secret); err != nil {
			t.Fatal(err)
		}
		is("one that another user names", other, true)
		if err := s.EndSessions(t.Context(), ada, id, mine.Secret); err != nil {
			t.Fatal(err)
		}
		is("the one that is named", other, false)
		is("one that is not", third, true)
		if err := s.EndSessions(t.Context(), ada, "", mine.Secret); err != nil {
			t.Fatal(err)
		}
		is("any other", third, false)
		is("the browser's own", mine, true)
		is("another user's", eves, true)
		if err := s.SignOut(t.Context(), mine.Secret); err != nil {
			t.Fatal(err)
		}
		is("the browser's own, signed out", mine, false)
		is("another user's", eves, true)
	})
}

// A user who joined an account and has one besides has tokens of either, and of none where the user is no member.
func TestATokenOfWhoHasSeveralAccountsIsOfTheOldestUnlessItIsNamed(t *testing.T) {
	each(t, func(t *testing.T, s *account.Service, db *store.DB) {
		ada, bob, eve := register(t, s, "ada@example.com"), register(t, s, "bob@example.com"), register(t, s, "eve@example.com")
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error { return tx.AddMember(ada.Account.ID, bob.User.ID) })
		if err != nil {
			t.Fatal(err)
		}
		newer, err := s.CreateWorkspace(t.Context(), hookglass.System, bob.Account.ID, "Newer")
		if err != nil {
			t.Fatal(err)
		}
		of := func(r account.TokenRequest) (hookglass.Token, error) {
			r.User, r.Scopes = bob.User.ID, all
			_, made, err := s.CreateToken(t.Context(), hookglass.System, r)
			return made, err
		}
		for name, c := range map[string]struct {
			r                  account.TokenRequest
			account, workspace int64
		}{
			"nothing named":                    {account.TokenRequest{Level: hookglass.LevelAccount}, ada.Account.ID, 0},
			"nothing named, of a workspace":    {account.TokenRequest{Level: hookglass.LevelWorkspace}, ada.Account.ID, ada.Workspace.ID},
			"the newer account":                {account.TokenRequest{Level: hookglass.LevelAccount, Account: bob.Account.ID}, bob.Account.ID, 0},
			"a workspace of the newer account": {account.TokenRequest{Level: hookglass.LevelWorkspace, Account: bob.Account.ID}, bob.Account.ID, bob.Workspace.ID},
			"a workspace":                      {account.TokenRequest{Level: hookglass.LevelWorkspace, Workspace: &newer.ID}, bob.Account.ID, newer.ID},
			"an account and its workspace":     {account.TokenRequest{Level: hookglass.LevelWorkspace, Account: bob.Account.ID, Workspace: &newer.ID}, bob.Account.ID, newer.ID},
		} {
			if made, err := of(c.r); err != nil || made.AccountID != c.account || made.WorkspaceID != c.workspace {
				t.Errorf("%s: %+v, %v; want account %d and workspace %d", name, made, err, c.account, c.workspace)
			}
		}
		for name, r := range map[string]account.TokenRequest{
			"an account and another's workspace":  {Level: hookglass.LevelWorkspace, Account: ada.Account.ID, Workspace: &newer.ID},
			"an account of others":                {Level: hookglass.LevelAccount, Account: eve.Account.ID},
			"a workspace of an account of others": {Level: hookglass.LevelWorkspace, Account: eve.Account.ID},
			"a workspace of others":               {Level: hookglass.LevelWorkspace, Workspace: &eve.Workspace.ID},
		} {
			made, err := of(r)
			if !hookglass.Is(err, hookglass.CodeNotFound) {
				t.Errorf("%s: %+v, %v; want not_found", name, made, err)
			}
		}
		_, who := signIn(t, s, "bob@example.com", password)
		if who.Account != ada.Account.ID {
			t.Errorf("signed in at account %d, want the oldest, %d", who.Account, ada.Account.ID)
		}
		code, err := s.CommandLineCode(t.Context(), who)
		if err != nil {
			t.Fatal(err)
		}
		if _, user, acct, err := s.ExchangeCode(t.Context(), " "+strings.ToLower(code)); err != nil || user.ID != bob.User.ID || acct.ID != ada.Account.ID {
			t.Errorf("the command line is of user %d at account %d, %v", user.ID, acct.ID, err)
		}
	})
}
