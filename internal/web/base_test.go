package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"hookglass/internal/web"
)

// below is a site below a path of its host, behind a proxy that cuts the path.
func below(t *testing.T, path string) *site {
	t.Helper()
	s := newSiteWith(t, func(d *web.Deps) { d.Addresses.PublicURL += path })
	s.server.Config.Handler = http.StripPrefix(path, s.server.Config.Handler)
	s.url += path
	return s
}

func TestTheAppIsAliveBelowAPath(t *testing.T) {
	s := below(t, "/some/path")
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	first := s.hook(json(`{"number":1}`))
	c.untilIn(soon, lists(first)+" && "+shows(first))
	if got := eval[string](c, `location.pathname`); got != "/some/path/endpoints/"+string(s.endpoint.ID)+"/requests/"+string(first) {
		t.Errorf("the address is %s", got)
	}
	second := s.hook(json(`{"number":2}`))
	c.untilIn(soon, lists(second))
	c.click("#" + string(second) + " a.row")
	c.until(shows(second))
	c.do(chromedp.NavigateBack())
	c.until(shows(first))
	c.do(chromedp.Reload())
	c.until(shows(first) + " && " + isLive)

	// A form, its redirect, and the session that is still there.
	c.click(".detail-actions .danger")
	c.click("#delete-event .solid")
	c.until(`document.readyState === "complete" && location.pathname === "/some/path/endpoints/` + string(s.endpoint.ID) + `" && !` + lists(first))
	c.open(s.url + "/sign-in")
	c.open(s.page("/settings"))
	c.until(`document.querySelector("form[action^='/some/path/endpoints/']")`)
	c.silent()
}

func TestTheSessionBelowAPathIsForThatPath(t *testing.T) {
	s := below(t, "/some/path")
	b := s.visitor()
	a := b.want(http.StatusSeeOther, "GET", s.url+"/account", nil)
	if got := a.Header.Get("Location"); got != "/some/path/sign-in?next=%2Faccount" {
		t.Errorf("a visitor is sent to %s", got)
	}
	for _, line := range b.do("GET", s.link(), nil).Header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		if err != nil || c.Path != "/some/path" {
			t.Errorf("cookie %s: %v", line, err)
		}
	}
}

func TestACommandLineIsSentItsTokenFromBelowAPath(t *testing.T) {
	s := below(t, "/some/path")
	b := s.visitor()
	b.want(http.StatusSeeOther, "GET", s.link(), nil)
	form := url.Values{"callback_port": {"4711"}, "state": {"abc"}}
	to := b.want(http.StatusSeeOther, "POST", s.url+"/auth/cli", form).Header.Get("Location")
	if !strings.HasPrefix(to, "http://127.0.0.1:4711/callback?") || !strings.Contains(to, "&state=abc&token=hg_") {
		t.Errorf("approved, and sent to %s", to)
	}
}
