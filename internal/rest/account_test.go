package rest_test

import (
	"strings"
	"testing"

	"hookglass"
	"hookglass/api"
)

// code is a one-time code that the owner has approved.
func (s *site) code() string {
	s.t.Helper()
	who := hookglass.Principal{Account: s.owner.Account.ID, User: s.owner.User.ID, Scopes: []hookglass.Scope{hookglass.ScopeRead, hookglass.ScopeWrite, hookglass.ScopeTunnel}}
	code, err := s.accounts.CommandLineCode(s.t.Context(), who)
	if err != nil {
		s.t.Fatal(err)
	}
	return code
}

func TestACodeSignsACommandLineInOnce(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		code := s.code()
		if len(code) != 14 || strings.Count(code, "-") != 2 {
			t.Errorf("the code is %q", code)
		}
		var got api.One[api.SignedIn]
		// As a person types it, and with what older clients send besides.
		s.wantAs("", 200, "POST", "/cli_auth/exchange", `{"code":" `+strings.ToLower(strings.ReplaceAll(code, "-", " "))+`","client":"x"}`, &got)
		if got.Data.User.Email != "ada@example.com" || got.Data.Account.ID != s.owner.Account.ID {
			t.Errorf("signed in as %+v", got.Data)
		}
		var who api.Verification
		s.wantAs(got.Data.Token, 200, "GET", "/auth/verify", "", &who)
		// Command-line tokens reach the whole account, with every scope (spec, "Authentication").
		s.wantAs(got.Data.Token, 201, "POST", "/endpoints", `{"endpoint":{"name":"New"}}`, nil)
		for _, wrong := range []string{code, "AAAA-BBBB-CCCC", "short", strings.Repeat("A", 4000)} {
			if res, text := s.call("", "POST", "/cli_auth/exchange", `{"code":"`+wrong+`"}`); res.StatusCode != 401 || !strings.Contains(text, "unauthorized") {
				t.Errorf("%.20q: %d %s", wrong, res.StatusCode, text)
			}
		}
		s.wantAs("", 422, "POST", "/cli_auth/exchange", `{}`, nil)
		s.wantAs("", 422, "POST", "/cli_auth/exchange", `{"code":7}`, nil)
	})
}

func TestATokenIsExchangedForItself(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		var got api.One[api.SignedIn]
		for range 2 {
			s.wantAs("", 200, "POST", "/cli_auth/exchange", `{"code":"`+s.token+`"}`, &got)
			if got.Data.Token != s.token || got.Data.User.Email != "ada@example.com" || got.Data.Account.ID != s.owner.Account.ID {
				t.Errorf("signed in as %+v", got.Data)
			}
		}
		for _, wrong := range []string{s.token + "x", s.token[:len(s.token)-1], "hg_", "hg_" + strings.Repeat("a", 4000)} {
			s.wantAs("", 401, "POST", "/cli_auth/exchange", `{"code":"`+wrong+`"}`, nil)
		}
	})
}

func TestCodesCanNotBeTriedOut(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		for i := range 11 {
			want := 401
			if i == 10 {
				want = 429
			}
			if res, text := s.call("", "POST", "/cli_auth/exchange", `{"code":"AAAA-BBBB-CCCC"}`); res.StatusCode != want {
				t.Errorf("try %d: %d %s", i, res.StatusCode, text)
			}
		}
	})
}
