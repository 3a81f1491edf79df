package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A page that keeps itself up to date says when it does not any more, and goes on once it can.
func TestAPageSaysWhyItStaysAsItIs(t *testing.T) {
	t.Parallel() // it waits for most of its time
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.url + "/activity")
	const trouble = `document.querySelector("#trouble")`
	s.away.Store(true)
	c.untilIn(patience, trouble+`.checkVisibility() && `+trouble+`.textContent.startsWith("The server cannot be reached.")`)
	s.away.Store(false)
	c.untilIn(patience, `!`+trouble+`.checkVisibility()`)
	other := c.tab()
	other.open(s.url + "/account")
	other.do(chromedp.Click(`main form[action="/sign-out"] button`))
	other.until(`location.pathname === "/sign-in"`)
	c.untilIn(patience, trouble+`.checkVisibility() && `+trouble+`.textContent.startsWith("You are signed out.")`)
	other.open(s.link())
	c.untilIn(patience, `!`+trouble+`.checkVisibility()`)
}

// A list goes on as well, without a gap, once its reader has signed in again.
func TestAListOfWhoIsSignedOutGoesOnOnceTheySignInAgain(t *testing.T) {
	s := newSite(t)
	s.hook(sent{target: "/before"})
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	other := c.tab()
	other.open(s.url + "/account")
	other.do(chromedp.Click(`main form[action="/sign-out"] button`))
	other.until(`location.pathname === "/sign-in"`)
	const trouble = `document.querySelector("#trouble")`
	c.until(`document.querySelector("#live").textContent === "Signed out" && ` + trouble + `.checkVisibility() && ` + trouble + `.textContent.startsWith("You are signed out.")`)
	missed := s.hook(sent{target: "/missed"})
	other.open(s.link())
	c.untilIn(patience, isLive+` && `+lists(missed)+` && !`+trouble+`.checkVisibility()`)
	later := s.hook(sent{target: "/later"})
	c.until(lists(later) + ` && document.querySelectorAll("#rows > li").length === 3`)
	c.silent()
}

// What was typed into a form of a request that is open is sent once more after signing in elsewhere.
func TestAFormThatStaysSaysHowItGoesOnOnceSignedOut(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(shows(event))
	c.click("[data-replay]")
	c.until(`document.querySelector("#replay-form").open`)
	eval[any](c, `document.querySelector("#replay-form [name=target_url]").value = "https://app.example.com/hook"`)
	other := c.tab()
	other.open(s.url + "/account")
	other.do(chromedp.Click(`main form[action="/sign-out"] button`))
	other.until(`location.pathname === "/sign-in"`)
	c.click("#replay-form [type=submit]")
	c.until(`document.querySelector("#replay-form .fault").textContent.startsWith("You are signed out. Sign in again, for example in another tab")`)
	other.open(s.link())
	c.click("#replay-form [type=submit]")
	c.until(`!document.querySelector("#replay-form").open && document.querySelector("#part-replays .outcome")`)

	// The menu covers the page, so it tells of its forms itself.
	c.click(".detail-actions [popovertarget=more-actions]")
	eval[any](c, `document.querySelector("#more-actions [name=tag]").value = "typed"`)
	s.away.Store(true)
	c.click("#more-actions form[action$='/tags'] [type=submit]")
	c.until(`document.querySelector("#more-actions .fault").checkVisibility() && document.querySelector("#more-actions [name=tag]").value === "typed"`)
	s.away.Store(false)
}

// A form that cannot be sent stays with what was typed, says why, and is sent once it can be.
func TestAFormStaysWhileTheServerIsAwayOrTheSessionHasEnded(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.url + "/tags")
	eval[any](c, `document.querySelector("form[action='/tags'] [name=name]").value = "typed"`)
	const send, says = `form[action="/tags"] [type=submit]`, `document.querySelector("form[action='/tags'] [name=name]").value === "typed" && document.querySelector("[data-unsent][role=alert]").textContent.startsWith(%q)`
	s.away.Store(true)
	c.click(send)
	c.until(fmt.Sprintf(says, "The server could not be reached, so nothing was sent."))
	s.away.Store(false)
	other := c.tab()
	other.open(s.url + "/account")
	other.do(chromedp.Click(`main form[action="/sign-out"] button`))
	other.until(`location.pathname === "/sign-in"`)
	c.click(send)
	c.until(fmt.Sprintf(says, "You are signed out, so nothing was sent."))
	other.open(s.link())
	c.click(send)
	c.until(`document.querySelector(".saved") && document.body.textContent.includes("typed")`)
}

// What is done with several requests has one message: the last.
func TestTheBarOfSeveralRequestsSaysOnlyWhyItWasRefusedLast(t *testing.T) {
	s := newSite(t)
	s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[any](c, `document.querySelector(".pick").click()`)
	c.clickText("Replay selected")
	c.until(`document.activeElement.name === "target_url"`)
	c.press("app.example.com" + kb.Enter)
	const says = `[...document.querySelectorAll("#bulk .fault")].filter((e) => e.checkVisibility()).map((e) => e.textContent).join()`
	c.until(says + `.includes("http://")`)
	other := c.tab()
	other.open(s.url + "/account")
	other.do(chromedp.Click(`main form[action="/sign-out"] button`))
	other.until(`location.pathname === "/sign-in"`)
	c.click("#bulk-replay [value=replay]")
	c.until(says + ` === "You are signed out. Sign in again, for example in another tab, then try again."`)
	s.away.Store(true)
	c.click("#bulk-replay [value=replay]")
	c.until(says + ` === "The server could not be reached. Try again."`)
	s.away.Store(false)
}

func TestAStepThatCanNotBeAddedIsNotLeftOutInSilence(t *testing.T) {
	w := newWorkshop(t)
	c := w.chrome(1440, 900)
	c.open(w.link())
	c.open(w.page("/actions/new"))
	const trouble = `document.querySelector("#trouble")`
	w.away.Store(true)
	c.click(`[value=add-step]`)
	c.until(trouble + `.checkVisibility() && ` + trouble + `.textContent.startsWith("The server could not be reached.")`)
	w.away.Store(false)
	c.click(`[value=add-step]`)
	c.until(`document.activeElement.name === "steps[0].name" && !` + trouble + `.checkVisibility()`)
}

// What a form held is not lost with the session that it was opened in.
func TestAFormThatIsSentSignedOutSaysHowItGoesOn(t *testing.T) {
	s := newSite(t)
	const how = "then reload this page. The browser then submits the form again"
	s.visitor().want(http.StatusUnauthorized, "POST", "/flows/new", url.Values{"name": {"typed"}}).holds(t, how, `target="_blank"`, "/sign-in?next=%2Fflows%2Fnew")
	s.visitor().want(http.StatusUnauthorized, "GET", "/auth/link/none", nil).lacks(t, how)
}
