package web_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// A person prints what is open: nothing of it is behind a scroll bar or a tab, and nothing on paper can be pressed.
func TestOnPaperARequestIsWhole(t *testing.T) {
	s := newSite(t)
	event := s.hook(sent{body: strings.Repeat("a line of it\n", 60) + "the last"})
	if err := s.captures.SetNote(t.Context(), s.who, string(s.endpoint.ID), string(event), strings.Repeat("noted\n", 40)); err != nil {
		t.Fatal(err)
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.url + "/endpoints/" + string(s.endpoint.ID) + "/requests/" + string(event))
	c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return err
	}))
	for expression, want := range map[string]string{
		`[...document.querySelectorAll(".requests, .detail, .noted-text")].filter((e) => e.scrollHeight > e.clientHeight).map((e) => e.className).join()`: "",
		`[...document.querySelectorAll(".part")].filter((e) => !e.checkVisibility()).map((e) => e.id).join()`:                                             "",
		`[...document.querySelectorAll("button, nav, .row, .noted summary")].filter((e) => e.checkVisibility()).map((e) => e.outerHTML).join()`:           "",
		`String(document.documentElement.scrollHeight > 900 && document.querySelector(".part > h3").getBoundingClientRect().height > 10)`:                 "true",
		`String(document.querySelector(".detail").innerText.includes("the last"))`:                                                                        "true",
	} {
		if got := eval[string](c, expression); got != want {
			t.Errorf("%s is %.300s, want %q", expression, got, want)
		}
	}
	c.picture("paper")
	c.silent()
}

// "9m ago" means nothing to whoever reads the paper later.
func TestOnPaperAListSaysWhenNotHowLongAgo(t *testing.T) {
	s := newSite(t)
	s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.url + "/endpoints/" + string(s.endpoint.ID))
	const age = `document.querySelector(".row-time")`
	if shown := eval[string](c, age+`.innerText`); shown != "just now" && !strings.HasSuffix(shown, " ago") {
		t.Errorf("on the screen it says %q", shown)
	}
	c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return err
	}))
	if size := eval[string](c, `getComputedStyle(`+age+`).fontSize`); size != "0px" {
		t.Errorf("the age is printed, %s high", size)
	}
	if got, want := eval[string](c, `getComputedStyle(`+age+`, "::after").content`), eval[string](c, `JSON.stringify(`+age+`.title)`); got != want {
		t.Errorf("%s is printed, want %s", got, want)
	}
	c.picture("paper-list")
}
