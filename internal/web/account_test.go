package web_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/web"
)

func TestAVisitorKeepsATemporaryEndpointAfterSigningIn(t *testing.T) {
	s := newSite(t)
	b := s.visitor()
	home := b.want(303, "POST", "/temporary", url.Values{}).Header.Get("Location")
	event := s.capture(hookglass.Endpoint{ID: hookglass.EndpointID(strings.TrimPrefix(home, "/endpoints/"))}, json(`{}`))
	b.want(200, "GET", home, nil).holds(t, "Sign in to keep it")
	for _, path := range []string{"/bulk", "/searches", "/requests/" + string(event) + "/replay", "/requests/" + string(event) + "/tags", "/requests/" + string(event) + "/note", "/requests/" + string(event) + "/share"} {
		b.want(403, "POST", home+path, url.Values{"id": {string(event)}, "do": {"tag"}, "tag": {"x"}, "expires": {"1h"}})
	}
	b.want(303, "POST", "/sign-in", url.Values{"email": {"ada@example.com"}, "password": {s.password()}})
	b.want(200, "GET", home, nil).holds(t, "Keep this endpoint")
	b.want(200, "GET", "/endpoints", nil).holds(t, "Your temporary endpoint")
	b.want(303, "POST", home+"/claim", url.Values{})
	b.want(200, "GET", home+"/requests/"+string(event), nil).holds(t, "/cases/new?event="+string(event))
	b.want(404, "POST", home+"/claim", url.Values{})
}

func TestASignUpIsOpenWhereItIsSaid(t *testing.T) {
	s := newSite(t)
	s.visitor().want(404, "GET", "/sign-up", nil)
	s = newSiteWith(t, func(d *web.Deps) { d.Signup = true })
	b := s.visitor()
	b.want(200, "GET", "/sign-in", nil).holds(t, "Create an account")
	b.want(422, "POST", "/sign-up", url.Values{"email": {"ada@example.com"}, "password": {"long enough"}}).holds(t, "Email is in use already")
	b.want(422, "POST", "/sign-up", url.Values{"email": {"grace@example.com"}, "password": {"short"}}).holds(t, "Password must have")
	b.want(303, "POST", "/sign-up", url.Values{"email": {"grace@example.com"}, "password": {"long enough"}})
	b.want(200, "GET", "/account", nil).holds(t, "grace@example.com", "Business")
}

func TestTheAccountTellsHowLongRequestsAreKept(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(200, "GET", "/account", nil).holds(t, "<dd>1 hour</dd>")
	week := 7 * 24 * time.Hour
	if _, err := s.accounts.SetAccount(t.Context(), s.who.Account, account.Change{Retention: &week}); err != nil {
		t.Fatal(err)
	}
	b.want(200, "GET", "/account", nil).holds(t, "<dd>7 days</dd>")
}

func TestTokensSessionsAndThePasswordAreOnesOwn(t *testing.T) {
	s := newSite(t)
	password := s.password()
	b, other := s.signedIn(), s.signedIn()
	page := b.want(201, "POST", "/account/tokens", url.Values{"name": {"CI"}, "scopes": {"read"}, "level": {"workspace"}, "expires": {"30"}})
	token := regexp.MustCompile(`id="made-token">([^<]+)<`).FindStringSubmatch(page.body)[1]
	who, err := s.accounts.Authenticate(t.Context(), token)
	if err != nil || who.Workspace == 0 || len(who.Scopes) != 1 {
		t.Fatalf("the token is %+v, %v", who, err)
	}
	list := b.want(200, "GET", "/account/tokens", nil)
	if strings.Contains(list.body, token) {
		t.Error("the token is shown again")
	}
	b.want(422, "POST", "/account/tokens", url.Values{"name": {"none"}, "level": {"account"}}).holds(t, "Scopes must name")
	b.want(422, "POST", "/account/tokens", url.Values{"scopes": {"read"}, "level": {"odd"}}).holds(t, "Level must be account or workspace")
	for _, days := range []string{"0", "-1", "3651", "soon"} { // none of them makes a token without end
		b.want(422, "POST", "/account/tokens", url.Values{"scopes": {"read"}, "level": {"account"}, "expires": {days}})
	}
	revoke := regexp.MustCompile(`action="(/account/tokens/\d+/revoke)"`).FindStringSubmatch(list.body)[1]
	b.want(303, "POST", revoke, url.Values{})
	if _, err := s.accounts.Authenticate(t.Context(), token); !hookglass.Is(err, hookglass.CodeUnauthorized) {
		t.Errorf("a revoked token: %v", err)
	}
	b.want(200, "GET", "/account/sessions", nil).holds(t, "this browser", "End all other sessions")
	b.want(303, "POST", "/account/sessions/end", url.Values{})
	other.want(303, "GET", "/account", nil)
	b.want(200, "GET", "/account", nil)
	b.want(422, "POST", "/account/password", url.Values{"current_password": {"wrong"}, "password": {"another password"}}).holds(t, "Current password is not your password")
	b.want(303, "POST", "/account/password", url.Values{"current_password": {password}, "password": {"another password"}})
	b.want(200, "GET", "/account/password?done=password", nil).holds(t, "The password was saved.")
	s.visitor().want(303, "POST", "/sign-in", url.Values{"email": {"ada@example.com"}, "password": {"another password"}})
	b.want(303, "POST", "/account/workspaces", url.Values{"name": {"Staging"}})
	b.want(200, "GET", "/account/workspaces", nil).holds(t, "Staging", "ada@example.com")
}
