package web_test

import (
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"hookglass/internal/action"
)

func TestWhatIsShownOnceIsNotMadeAnewByReloading(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.url + "/account/tokens")
	c.click("form[action='/account/tokens'] button[type=submit]")
	c.until(`document.querySelector("#made-token") && document.readyState === "complete"`) // the scripts have run by then
	c.do(chromedp.Reload())
	c.until(`!document.querySelector("#made-token") && document.querySelectorAll("table.list tbody tr").length === 1`)
}

// What answered a form is a page like any other in the history: Back and Reload show it as it is stored.
func TestAPageThatAnsweredAFormIsOpenedAgainWithoutTheForm(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/settings"))
	c.click(`#response [value=preview]`)
	c.until(`document.querySelector("#response .preview") && document.readyState === "complete"`)
	c.click(`.bar-nav a[href="/activity"]`)
	c.until(`location.pathname === "/activity" && document.readyState === "complete"`)
	c.do(chromedp.NavigateBack())
	c.until(`location.pathname === "` + s.path("/settings") + `" && document.querySelector("#response") && !document.querySelector("#response .preview")`)
}

func TestAPageThatAnswersAFormSaysWhereItIsOpenedAgain(t *testing.T) {
	w := newWatched(t)
	b := w.signedIn()
	opens := func(status int, form, at string, typed url.Values) {
		t.Helper()
		b.want(status, "POST", form, typed).holds(t, ` data-again="`+at+`"`)
		b.want(200, "GET", at, nil).lacks(t, "data-again")
	}
	for _, form := range []string{"/response_rules", "/targets", "/settings"} {
		opens(422, w.page(form), w.path("/settings"), url.Values{"when": {"tag:a"}})
	}
	opens(422, w.path("/alerts"), w.path("/alerts"), nil)
	opens(422, "/account/workspaces", "/account/workspaces", nil)
	event := w.hook(json(`{}`))
	opens(422, w.path("/cases"), w.path("/cases/new?event="+string(event)), url.Values{"event": {string(event)}})
	w.visitor().want(401, "POST", "/sign-in", url.Values{"email": {"nobody@example.com"}, "password": {"wrong"}, "next": {"/tags"}}).
		holds(t, ` data-again="/sign-in?next=%2Ftags"`)

	b.want(303, "POST", "/channels", url.Values{"name": {"On call"}, "kind": {"slack"}, "webhook_url": {"https://hooks.slack.com/services/T0/B0/x"}})
	channel := b.want(200, "GET", "/channels", nil).found(t, `href="(/channels/chan_[^"]+)"`)
	opens(200, channel+"/test", channel, nil)
	ping := "Ping"
	if _, err := w.actions.Create(t.Context(), w.who, string(w.endpoint.ID), action.Draft{
		Name: &ping, Steps: &[]action.StepDraft{{Type: "notify", Config: []byte(`{"channel":"On call"}`)}},
	}); err != nil {
		t.Fatal(err)
	}
	opens(200, channel+"/delete", "/channels", nil)
	// What went wrong says itself what reloading it does.
	b.want(404, "POST", channel+"/test", nil).lacks(t, "data-again")
}

func TestWhatAFormDidIsToldOnce(t *testing.T) {
	s := newSite(t)
	s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.open(s.page("?q=method%3APOST"))
	c.until(isLive)
	if eval[bool](c, `[...document.querySelectorAll("details.searches")].some((part) => part.open)`) {
		t.Error("a search unfolds what nobody asked for")
	}
	c.click(".searches summary")
	c.do(chromedp.SendKeys(`.searches [name="name"]`, "posts"+kb.Enter))
	c.until(`document.querySelector(".saved")?.textContent === "Saved." && document.readyState === "complete"`)
	c.do(chromedp.Reload())
	c.until(isLive + ` && !document.querySelector(".saved") && location.search === "?q=method%3APOST" && document.querySelector(".searches summary").textContent.includes("Saved searches")`)
	c.open(s.page("/settings"))
	c.click(`[aria-label="Save the response"]`)
	c.until(`document.querySelector("#response .saved") && location.search === "" && location.hash === "#response"`)
	c.silent()
}
