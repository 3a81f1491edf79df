package web_test

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// comeBack does what Safari does on the way back to a page: without TLS it shows the page as it was left, whatever its
// headers say, and resets the fields that are not to be completed.
func (c *chrome) comeBack() {
	c.t.Helper()
	eval[any](c, `((fields) => {
		for (const field of fields) [field.checked, field.value] = [field.defaultChecked, field.defaultValue];
		dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
	})(document.querySelectorAll("input[autocomplete=off]"))`)
}

func TestAPageThatComesBackAfterItsSessionShowsNothingAnyMore(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1280, 900)
	c.open(s.link())
	c.until(isLive)
	c.open(s.url + "/tags")
	c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, network.ClearBrowserCookies, cdp.Empty{})
		return err
	}))
	c.comeBack()
	c.until(`location.pathname === "/sign-in"`)
}

func TestAPageIsLeftWithoutWhatItShowsOnce(t *testing.T) {
	s := newWatched(t)
	request := s.page("/requests/" + string(s.hook(json(`{}`))))
	c := s.chrome(1280, 900)
	c.open(s.link())
	for secret, at := range map[string]struct{ page, fill string }{
		"#made-token": {s.url + "/account/tokens", `document.querySelector("form[action='/account/tokens']")`},
		"#share-link": {request + "/share", `document.querySelector("form[action$='/share']")`},
		"#secret": {s.url + "/channels", `((form) => {
			[form.name.value, form.kind.value, form.url.value] = ["Mine", "webhook", "https://app.example.com/"];
			return form;
		})(document.querySelector("form[action='/channels']"))`},
	} {
		c.open(at.page)
		eval[any](c, `((form) => { form.noValidate = true; form.requestSubmit(form.querySelector("[type=submit]:not([name])")); })(`+at.fill+`)`)
		c.until(`document.querySelector("` + secret + `")?.textContent && document.readyState === "complete"`)
		eval[any](c, `dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }))`)
		c.comeBack()
		c.until(`!document.querySelector("` + secret + `")`)
	}
}

func TestAListThatComesBackHasAsManySelectedAsItSays(t *testing.T) {
	s := newSite(t)
	s.hook(json(`{"number":1}`))
	s.hook(json(`{"number":2}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	const picked, count = `document.querySelectorAll(".pick:checked").length`, `document.querySelector("#bulk-count").textContent`
	c.click("#rows li:nth-child(1) .pick")
	c.click("#rows li:nth-child(2) .pick")
	c.until(count + ` === "2 selected"`)
	c.comeBack()
	c.until(picked + ` === 0 && ` + count + ` === "0 selected"`)

	// From a comparison, the two are selected again.
	c.click("#rows li:nth-child(1) .pick")
	c.click("#rows li:nth-child(2) .pick")
	eval[any](c, `addEventListener("submit", (event) => event.preventDefault(), { capture: true, once: true })`)
	c.click("#bulk [value=compare]")
	c.comeBack()
	c.until(picked + ` === 2 && ` + count + ` === "2 selected"`)
	c.silent()
}
