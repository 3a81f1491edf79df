package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// tenant is a user with an account of two workspaces and a token in each place.
type tenant struct {
	user                     hookglass.User
	account                  hookglass.Account
	first, second            hookglass.Workspace
	wide, inFirst, inSecond  hookglass.Token
	everywhere, firstAllowed hookglass.Principal
}

func newTenant(t *testing.T, db *store.DB, email string) tenant {
	t.Helper()
	var n tenant
	err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		n = tenant{
			user:    hookglass.User{Email: email, Name: "Ada"},
			account: hookglass.Account{Name: email, Plan: hookglass.PlanPro, Subscription: hookglass.SubscriptionTrialing, PaymentMethod: true, Retention: 90e9},
		}
		if err := tx.CreateUser(&n.user, ""); err != nil {
			return err
		}
		if err := tx.CreateAccount(&n.account, n.user.ID); err != nil {
			return err
		}
		n.first, n.second = hookglass.Workspace{AccountID: n.account.ID, Name: "first"}, hookglass.Workspace{AccountID: n.account.ID, Name: "second"}
		for _, w := range []*hookglass.Workspace{&n.first, &n.second} {
			if err := tx.CreateWorkspace(w); err != nil {
				return err
			}
		}
		n.wide = hookglass.Token{Level: hookglass.LevelAccount, Scopes: []hookglass.Scope{hookglass.ScopeRead, hookglass.ScopeTunnel}, Name: "ci", Hint: "hg_abc", ExpiresAt: tx.Now.Add(1e9)}
		n.inFirst = hookglass.Token{Level: hookglass.LevelWorkspace, WorkspaceID: n.first.ID, Scopes: []hookglass.Scope{hookglass.ScopeWrite}}
		n.inSecond = hookglass.Token{Level: hookglass.LevelWorkspace, WorkspaceID: n.second.ID, Scopes: []hookglass.Scope{hookglass.ScopeWrite}}
		for i, tok := range []*hookglass.Token{&n.wide, &n.inFirst, &n.inSecond} {
			tok.UserID, tok.AccountID = n.user.ID, n.account.ID
			if err := tx.CreateToken(tok, []byte(email+string(rune('0'+i)))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n.everywhere = hookglass.Principal{Account: n.account.ID, User: n.user.ID}
	n.firstAllowed = hookglass.Principal{Account: n.account.ID, User: n.user.ID, Workspace: n.first.ID}
	return n
}

func view(t *testing.T, db *store.DB, who hookglass.Principal, fn func(*store.View)) {
	t.Helper()
	if err := db.View(t.Context(), who, func(v *store.View) error { fn(v); return nil }); err != nil {
		t.Fatal(err)
	}
}

// same compares what was read with what was written.
func same[T any](t *testing.T, what string, got T, err error, want T) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	} else if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func missing[T any](t *testing.T, what string, got T, err error) {
	t.Helper()
	if !hookglass.Is(err, hookglass.CodeNotFound) {
		t.Errorf("%s: got %+v, %v; want not_found", what, got, err)
	}
}

func TestAccountsReadBackAsWritten(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		view(t, db, hookglass.System, func(v *store.View) {
			has, err := v.HasUsers()
			same(t, "users of a new database", has, err, false)
		})
		n := newTenant(t, db, "ada@example.com")
		view(t, db, hookglass.System, func(v *store.View) {
			has, err := v.HasUsers()
			same(t, "users", has, err, true)
			user, err := v.User(n.user.ID)
			same(t, "user", user, err, n.user)
			user, err = v.UserByEmail("ada@example.com")
			same(t, "user by email", user, err, n.user)
			hash, err := v.PasswordHash(n.user.ID)
			same(t, "password", hash, err, "")
			account, err := v.Account(n.account.ID)
			same(t, "account", account, err, n.account)
			accounts, err := v.AccountsOf(n.user.ID)
			same(t, "accounts", accounts, err, []hookglass.Account{n.account})
			workspaces, err := v.Workspaces(n.account.ID)
			same(t, "workspaces", workspaces, err, []hookglass.Workspace{n.first, n.second})
			token, err := v.Token(n.wide.ID)
			same(t, "token", token, err, n.wide)
			token, err = v.TokenByHash([]byte("ada@example.com1"))
			same(t, "token by hash", token, err, n.inFirst)
		})

		n.account.Plan, n.account.Subscription, n.account.PaymentMethod, n.account.Retention = hookglass.PlanTeam, hookglass.SubscriptionCanceled, false, 0
		err := db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
			if err := tx.SetPasswordHash(n.user.ID, "secret"); err != nil {
				return err
			}
			n.wide.LastUsedAt, n.wide.RevokedAt = tx.Now, tx.Now
			if err := tx.TouchToken(n.wide.ID); err != nil {
				return err
			}
			if err := tx.RevokeToken(n.wide.ID); err != nil {
				return err
			}
			return tx.UpdateAccount(n.account)
		})
		if err != nil {
			t.Fatal(err)
		}
		view(t, db, hookglass.System, func(v *store.View) {
			hash, err := v.PasswordHash(n.user.ID)
			same(t, "password", hash, err, "secret")
			account, err := v.Account(n.account.ID)
			same(t, "account", account, err, n.account)
			token, err := v.Token(n.wide.ID)
			same(t, "token", token, err, n.wide)
		})
	})
}

func TestAPrincipalSeesItsOwnAccountAndNoOther(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		mine, theirs := newTenant(t, db, "ada@example.com"), newTenant(t, db, "eve@example.com")
		view(t, db, mine.everywhere, func(v *store.View) {
			user, err := v.User(mine.user.ID)
			same(t, "my user", user, err, mine.user)
			user, err = v.User(theirs.user.ID)
			missing(t, "their user", user, err)
			user, err = v.UserByEmail(theirs.user.Email)
			missing(t, "their user by email", user, err)
			hash, err := v.PasswordHash(theirs.user.ID)
			missing(t, "their password", hash, err)
			account, err := v.Account(theirs.account.ID)
			missing(t, "their account", account, err)
			accounts, err := v.Accounts()
			same(t, "accounts", accounts, err, []hookglass.Account{mine.account})
			accounts, err = v.AccountsOf(theirs.user.ID)
			same(t, "their accounts", accounts, err, []hookglass.Account{})
			workspace, err := v.Workspace(theirs.first.ID)
			missing(t, "their workspace", workspace, err)
			workspaces, err := v.Workspaces(theirs.account.ID)
			same(t, "their workspaces", workspaces, err, []hookglass.Workspace{})
			token, err := v.Token(theirs.wide.ID)
			missing(t, "their token", token, err)
			tokens, err := v.Tokens(theirs.user.ID)
			same(t, "their tokens", tokens, err, []hookglass.Token{})
			tokens, err = v.Tokens(mine.user.ID)
			same(t, "my tokens", tokens, err, []hookglass.Token{mine.inSecond, mine.inFirst, mine.wide})
		})
		for name, write := range map[string]func(*store.Tx) error{
			"revoke their token": func(tx *store.Tx) error { return tx.RevokeToken(theirs.wide.ID) },
			"set their account":  func(tx *store.Tx) error { return tx.UpdateAccount(theirs.account) },
			"add a workspace to it": func(tx *store.Tx) error {
				return tx.CreateWorkspace(&hookglass.Workspace{AccountID: theirs.account.ID})
			},
			"revoke one there is not":  func(tx *store.Tx) error { return tx.RevokeToken(1 << 40) },
			"set one that there isn't": func(tx *store.Tx) error { return tx.UpdateAccount(hookglass.Account{ID: 1 << 40}) },
		} {
			missing(t, name, "nothing", db.Update(t.Context(), mine.everywhere, write))
		}
	})
}

func TestAPrincipalOfAWorkspaceSeesItAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		view(t, db, n.firstAllowed, func(v *store.View) {
			workspace, err := v.Workspace(n.first.ID)
			same(t, "its workspace", workspace, err, n.first)
			workspace, err = v.Workspace(n.second.ID)
			missing(t, "its sibling", workspace, err)
			workspaces, err := v.Workspaces(n.account.ID)
			same(t, "workspaces", workspaces, err, []hookglass.Workspace{n.first})
			tokens, err := v.Tokens(n.user.ID)
			same(t, "tokens", tokens, err, []hookglass.Token{n.inFirst})
			account, err := v.Account(n.account.ID)
			same(t, "the account, whose plan it lives under", account, err, n.account)
		})
		err := db.Update(t.Context(), n.firstAllowed, func(tx *store.Tx) error { return tx.RevokeToken(n.inSecond.ID) })
		missing(t, "revoke a sibling's token", "nothing", err)
	})
}

func TestNobodyAndAnEndpointsKeySeeNoAccount(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		for _, who := range []hookglass.Principal{{}, {Endpoint: hookglass.NewEndpointID()}} {
			view(t, db, who, func(v *store.View) {
				account, err := v.Account(n.account.ID)
				missing(t, "account", account, err)
				user, err := v.User(n.user.ID)
				missing(t, "user", user, err)
				workspace, err := v.Workspace(n.first.ID)
				missing(t, "workspace", workspace, err)
				token, err := v.Token(n.wide.ID)
				missing(t, "token", token, err)
				accounts, err := v.Accounts()
				same(t, "accounts", accounts, err, []hookglass.Account{})
			})
		}
	})
}

func TestRevokingATokenIsAnnounced(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		heard := db.Listen(store.TopicTokens)
		defer heard.Close()
		if err := db.Update(t.Context(), n.everywhere, func(tx *store.Tx) error { return tx.RevokeToken(n.wide.ID) }); err != nil {
			t.Fatal(err)
		}
		select {
		case <-heard.C:
		case <-t.Context().Done():
			t.Error("nothing was heard")
		}
	})
}

func TestAChangeOfOneUserOrAccountLeavesTheOthers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ada, eve := newTenant(t, db, "ada@example.com"), newTenant(t, db, "eve@example.com")
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.SetPasswordHash(ada.user.ID, "Ada's"); err != nil {
				return err
			}
			ada.account.Name, ada.account.Plan = "changed", hookglass.PlanFree
			if err := tx.UpdateAccount(ada.account); err != nil {
				return err
			}
			if err := tx.TouchToken(ada.wide.ID); err != nil {
				return err
			}
			return tx.RevokeToken(ada.inFirst.ID)
		})
		view(t, db, hookglass.System, func(v *store.View) {
			hash, err := v.PasswordHash(eve.user.ID)
			same(t, "the password of another", hash, err, "")
			account, err := v.Account(eve.account.ID)
			same(t, "another account", account, err, eve.account)
			tokens, err := v.Tokens(eve.user.ID)
			same(t, "the tokens of another", tokens, err, []hookglass.Token{eve.inSecond, eve.inFirst, eve.wide})
			token, err := v.Token(ada.inSecond.ID)
			same(t, "another token of the same user", token, err, ada.inSecond)
		})
	})
}

// A session that is resumed is of the oldest account, and what names no workspace goes into the oldest of the account.
func TestAccountsWorkspacesAndMembersComeOldestFirst(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		eve, ada := newTenant(t, db, "eve@example.com"), newTenant(t, db, "ada@example.com")
		// Who came last became a member first, and of the newer account first.
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.AddMember(eve.account.ID, ada.user.ID); err != nil {
				return err
			}
			if err := tx.Exec("DELETE FROM members WHERE user_id = $1 AND account_id = $2", eve.user.ID, eve.account.ID); err != nil {
				return err
			}
			return tx.AddMember(eve.account.ID, eve.user.ID)
		})
		// A row that was changed last is read last, unless an order is asked for.
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.Exec("UPDATE accounts SET name = name WHERE id = $1", eve.account.ID); err != nil {
				return err
			}
			return tx.Exec("UPDATE workspaces SET name = name WHERE id = $1", eve.first.ID)
		})
		view(t, db, hookglass.System, func(v *store.View) {
			accounts, err := v.Accounts()
			same(t, "accounts", accounts, err, []hookglass.Account{eve.account, ada.account})
			accounts, err = v.AccountsOf(ada.user.ID)
			same(t, "accounts of one user", accounts, err, []hookglass.Account{eve.account, ada.account})
			members, err := v.Members(eve.account.ID)
			same(t, "members", members, err, []hookglass.User{eve.user, ada.user})
			workspaces, err := v.Workspaces(eve.account.ID)
			same(t, "workspaces", workspaces, err, []hookglass.Workspace{eve.first, eve.second})
		})
	})
}

func TestATokenIsOfUseWhileItsUserIsAMemberOfItsAccount(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ada, eve := newTenant(t, db, "ada@example.com"), newTenant(t, db, "eve@example.com")
		hash := []byte("the hash of Eve's token at Ada's")
		token := hookglass.Token{UserID: eve.user.ID, AccountID: ada.account.ID, Level: hookglass.LevelAccount}
		writing(t, db, func(tx *store.Tx) error {
			if err := tx.AddMember(ada.account.ID, eve.user.ID); err != nil {
				return err
			}
			return tx.CreateToken(&token, hash)
		})
		view(t, db, hookglass.System, func(v *store.View) {
			found, err := v.TokenByHash(hash)
			same(t, "the token of a member", found, err, token)
		})
		writing(t, db, func(tx *store.Tx) error {
			return tx.Exec("DELETE FROM members WHERE user_id = $1 AND account_id = $2", eve.user.ID, ada.account.ID)
		})
		view(t, db, hookglass.System, func(v *store.View) {
			found, err := v.TokenByHash(hash)
			missing(t, "the token of who is no member any more", found, err)
			_, err = v.TokenByHash([]byte("ada@example.com0"))
			if err != nil {
				t.Errorf("the token of who is one still: %v", err)
			}
			_, err = v.TokenByHash([]byte("eve@example.com0"))
			if err != nil {
				t.Errorf("a token at an account where its user is a member still: %v", err)
			}
		})
	})
}

func TestNobodyHasANameThatIsNoText(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		newTenant(t, db, "ada@example.com")
		view(t, db, hookglass.System, func(v *store.View) {
			for _, email := range []string{"ada@example.com\x00", "ada\xff@example.com"} {
				user, err := v.UserByEmail(email)
				missing(t, "a user", user, err)
			}
		})
	})
}

// Servers keep what they know of an account's rights until they hear of a change.
func TestAChangeOfAnAccountIsAnnounced(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		n := newTenant(t, db, "ada@example.com")
		account, endpoints := db.Listen(store.TopicAccount(n.account.ID)), db.Listen(store.TopicEndpoints)
		defer account.Close()
		defer endpoints.Close()
		drain(account)
		drain(endpoints)
		n.account.Plan = hookglass.PlanFree
		writing(t, db, func(tx *store.Tx) error { return tx.UpdateAccount(n.account) })
		heard(t, "the account's topic", account)
		heard(t, "the topic of endpoints", endpoints)
	})
}

func heard(t *testing.T, what string, s *store.Subscription) {
	t.Helper()
	select {
	case <-s.C:
	case <-time.After(time.Minute):
		t.Errorf("nothing was heard by %s", what)
	}
}
