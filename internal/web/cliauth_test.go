package web_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

func TestACommandLineIsApprovedByItsUser(t *testing.T) {
	s := newSite(t)
	const state = "abc._~-9+/=&'%#"
	asked := "/auth/cli?callback_port=4711&state=" + url.QueryEscape(state)
	visitor := s.visitor()
	if to := visitor.want(303, "GET", asked, nil).Header.Get("Location"); to != "/sign-in?next="+url.QueryEscape(asked) {
		t.Errorf("a visitor is sent to %s", to)
	}
	visitor.want(401, "POST", "/auth/cli", url.Values{"callback_port": {"4711"}, "state": {"abc"}})

	b := s.signedIn()
	a := b.want(200, "GET", asked, nil)
	a.holds(t, ">Approve</button>", "ada@example.com", "port 4711", `name="state" value="`+html.EscapeString(state)+`"`)
	if found := inline.FindString(a.body); found != "" {
		t.Errorf("the page holds %q", found)
	}
	if policy := a.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self' http://127.0.0.1:4711;") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the policy is %s", policy)
	}
	form := url.Values{"callback_port": {"4711"}, "state": {state}}
	for _, foreign := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.test"}, {"Origin", "null"}} {
		b.want(403, "POST", "/auth/cli", form, foreign...)
	}
	to, err := url.Parse(b.want(303, "POST", "/auth/cli", form, "Origin", s.url).Header.Get("Location"))
	if err != nil || to.Scheme+"://"+to.Host+to.Path != "http://127.0.0.1:4711/callback" || to.Query().Get("state") != state {
		t.Fatalf("approved, and sent to %v, %v", to, err)
	}
	who, err := s.accounts.Authenticate(t.Context(), to.Query().Get("token"))
	if err != nil || who.User != s.user.ID || who.Workspace != 0 || len(who.Scopes) != 3 {
		t.Errorf("the token is of %+v, %v", who, err)
	}
	// Command lines that expect a code exchange it, and get the same token.
	token, user, _, err := s.accounts.ExchangeCode(t.Context(), to.Query().Get("code"))
	if err != nil || token != to.Query().Get("token") || user.ID != s.user.ID {
		t.Errorf("the code is good for a token of %+v, %v", user, err)
	}
}

func TestACommandLineElsewhereGetsACode(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(200, "GET", "/auth/cli", nil).holds(t, ">Approve</button>", "You get a code")
	page := b.want(200, "POST", "/auth/cli", url.Values{})
	code := regexp.MustCompile(`<code id="cli-code">([A-Z2-7]{4}-[A-Z2-7]{4}-[A-Z2-7]{4})</code>`).FindStringSubmatch(page.body)
	if code == nil {
		t.Fatalf("no code in\n%s", page.body)
	}
	token, user, _, err := s.accounts.ExchangeCode(t.Context(), code[1])
	if err != nil || user.ID != s.user.ID || token == "" {
		t.Errorf("%+v, %v", user, err)
	}
	if _, _, _, err := s.accounts.ExchangeCode(t.Context(), code[1]); err == nil {
		t.Error("the code was good twice")
	}
	// A code signs no browser in.
	s.visitor().want(401, "GET", "/auth/link/"+code[1], nil)
}

func TestACommandLineCanNotSendItsTokenElsewhere(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	for _, query := range []string{
		"callback_port=0&state=a", "callback_port=65536&state=a", "callback_port=80%40evil.test&state=a", "callback_port=+80&state=a", "callback_port=080&state=a", "callback_port=x&state=a",
		"callback_port=80", "callback_port=80&state=", "callback_port=80&state=a%0d%0ab", "callback_port=80&state=%3Cb%3E", "callback_port=80&state=a+b", "callback_port=80&state=%22", "callback_port=80&state=%5C", "callback_port=80&state=" + strings.Repeat("a", 201),
	} {
		b.want(422, "GET", "/auth/cli?"+query, nil)
		form, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		b.want(422, "POST", "/auth/cli", form)
	}
}
