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
