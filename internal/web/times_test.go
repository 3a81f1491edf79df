package web_test

import (
	"context"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"hookglass"
)

func (c *chrome) zone(name string) {
	c.t.Helper()
	c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
		return err
	}))
}

// clock sets the browser's clock apart from the true one, in the pages that are opened from now on.
func (c *chrome) clock(apart time.Duration) {
	c.t.Helper()
	apartBy := strconv.FormatInt(apart.Milliseconds(), 10)
	script := `{
		const Real = Date;
		globalThis.Date = class extends Real {
			constructor(...of) { of.length ? super(...of) : super(Real.now() + ` + apartBy + `); }
			static now() { return Real.now() + ` + apartBy + `; }
		};
	}`
	c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
}

// Ages, and what is unread, are told by the clock that dates requests, whatever that of the browser says.
func TestAgesAreTrueWhereTheBrowsersClockIsWrong(t *testing.T) {
	for _, apart := range []time.Duration{time.Hour, -time.Hour} {
		s := newSite(t)
		old := s.hook(json(`{}`))
		c := s.chrome(1440, 900)
		c.clock(apart)
		c.open(s.link())
		c.until(isLive)
		event := s.hook(json(`{}`))
		c.until(lists(event))
		const ages = `document.dispatchEvent(new Event("visibilitychange")); [...document.querySelectorAll("#rows time")].map((time) => time.textContent).join()`
		if told := eval[string](c, ages); !regexp.MustCompile(`^(just now|\d+[sm] ago),(just now|\d+[sm] ago)$`).MatchString(told) {
			t.Errorf("with a clock that is %s ahead, requests of now are told to be of %s", apart, told)
		}
		if !eval[bool](c, `Date.now() - Date.parse(document.querySelector("#rows time").dateTime) > 0 === `+strconv.FormatBool(apart > 0)) {
			t.Error("the browser's clock is right")
		}
		if !eval[bool](c, lists(event)+`.parentElement.matches("[data-unread]") && !`+lists(old)+`.parentElement.matches("[data-unread]")`) {
			t.Errorf("with a clock that is %s ahead, what came since is not what is unread", apart)
		}
		c.silent()
	}
}

// A browser remembers no more than 500 opened requests. With another, the oldest of them does not become unread again.
func TestWhatWasOpenedStaysRead(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	first, second, third := s.hook(json(`{"n":1}`)), s.hook(json(`{"n":2}`)), s.hook(json(`{"n":3}`))
	c.until(lists(third))
	eval[any](c, `(() => {
		const memory = Object.keys(localStorage).find((key) => key.startsWith("hookglass:seen:"));
		const known = JSON.parse(localStorage.getItem(memory));
		known.ids = ["`+string(first)+`", ...Array.from({ length: 498 }, (_, n) => "req_z" + n)];
		localStorage.setItem(memory, JSON.stringify(known));
	})()`)
	c.open(s.page(""))
	c.until(isLive)
	unread := func(id hookglass.EventID) bool {
		t.Helper()
		return eval[bool](c, lists(id)+`.parentElement.matches("[data-unread]")`)
	}
	if unread(first) || !unread(second) || !unread(third) {
		t.Fatal("what was opened is not what is read")
	}
	for _, id := range []hookglass.EventID{third, second} {
		c.click("#" + string(id) + " a")
		c.until(lists(id) + `.parentElement.matches(":not([data-unread])")`)
	}
	if unread(first) || unread(third) {
		t.Error("what was opened is unread again")
	}
	c.silent()
}

func TestTimesSayTheirZoneAndWhatTheyAreHere(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.zone("Asia/Kolkata")
	c.open(s.link())
	c.until(isLive)
	c.click("#" + string(event) + " a.row")
	// Half an hour and five hours after UTC, whatever the minute
	const right = `((utc, here) => new Date(utc).getTime() + 330 * 60000 === new Date(here.replace(" ", "T") + "Z").getTime())`
	const beside = `document.querySelector(".facts time").nextElementSibling.textContent`
	c.until(beside + `.endsWith(" GMT+5:30 here")`)
	eval[any](c, `document.querySelector(".facts time").dispatchEvent(new PointerEvent("pointerover", { bubbles: true }))`)
	const told = `document.querySelector(".facts time").title`
	if !eval[bool](c, right+`(document.querySelector(".facts time").dateTime.slice(0, 19) + "Z", `+told+`.slice(0, 19))`) {
		t.Errorf("%s UTC is said to be %s", eval[string](c, `document.querySelector(".facts time").dateTime`), eval[string](c, told))
	}
	if !eval[bool](c, told+`.endsWith(`+beside+`)`) {
		t.Errorf("beside it stands %q, and told is %q", eval[string](c, beside), eval[string](c, told))
	}
	eval[any](c, `document.querySelector(".row-time").dispatchEvent(new PointerEvent("pointerover", { bubbles: true }))`)
	eval[any](c, `document.querySelector(".row-time").dispatchEvent(new PointerEvent("pointerover", { bubbles: true }))`)
	if told := eval[string](c, `document.querySelector(".row-time").title`); !regexp.MustCompile(`^[-0-9]+ [0-9:.]+ UTC\n[-0-9]+ [0-9:]+ GMT\+5:30 here$`).MatchString(told) {
		t.Errorf("a time that is pointed at tells %q", told)
	}
	const anyHour = `[...Array(24).keys()].map((hour) => {
		const time = document.body.appendChild(document.createElement("time"));
		time.dateTime = new Date(Date.UTC(2026, 0, 31, hour, 5, 9)).toISOString();
		time.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
		time.remove();
		return ` + right + `(time.dateTime, time.title.slice(0, 19)) ? "" : time.dateTime + " is " + time.title;
	}).join("")`
	if wrong := eval[string](c, anyHour); wrong != "" {
		t.Error(wrong)
	}
	c.silent()

	c = s.chrome(1440, 900)
	c.zone("UTC")
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(isLive + " && " + shows(event))
	if eval[bool](c, `document.querySelector(".here") !== null`) {
		t.Error("in UTC a time is told twice")
	}
}

// What a page says is a day or a moment says its zone, or is an element that does.
func TestNoTimeIsToldWithoutItsZone(t *testing.T) {
	s := newSite(t)
	first, second := s.hook(json(`{}`)), s.hook(json(`{}`))
	b := s.signedIn()
	element := regexp.MustCompile(`<(time|input|textarea|pre)[^>]*>[^<]*`)
	tag := regexp.MustCompile(`<[^>]*>`)
	moment := regexp.MustCompile(`\d{4}-\d\d-\d\d([T ][0-9:.]+( UTC|Z)?)?`)
	for _, path := range []string{
		"/account", "/account/tokens", "/account/sessions", "/account/workspaces", "/activity", "/endpoints", s.page(""), s.page("/settings"), s.page("/ledger"),
		s.page("/requests/" + string(first)), s.page("/compare?left=" + string(first) + "&right=" + string(second)),
	} {
		text := tag.ReplaceAllString(element.ReplaceAllString(b.want(200, "GET", path, nil).body, ""), "")
		for _, found := range moment.FindAllString(text, -1) {
			if !strings.HasSuffix(found, "UTC") && !strings.HasSuffix(found, "Z") {
				t.Errorf("%s: %s", path, found)
			}
		}
	}
}

// A word of a sentence and the time that it leads to, or that leads to it, have a space between them, for the eye.
func TestWordsStandApartFromTimes(t *testing.T) {
	s := newSite(t)
	step := url.Values{"name": {"n"}, "order": {"any"}, "timeout_seconds": {"60"}, "steps.0.endpoint_id": {string(s.endpoint.ID)}, "steps.0.how": {"never"}}
	flow := s.signedIn().want(303, "POST", "/flows/new", step).Header.Get("Location")
	glued := func(c *chrome) string {
		return eval[string](c, `[...document.querySelectorAll("main time")].flatMap((time) => {
			const box = time.getBoundingClientRect();
			const space = (node, edge, apart) => {
				if (node?.nodeType !== Node.TEXT_NODE || !/\w/.test(node.data[edge(node.data)])) return true;
				const range = document.createRange();
				range.setStart(node, edge(node.data));
				range.setEnd(node, edge(node.data) + 1);
				const there = range.getBoundingClientRect();
				return there.bottom <= box.top || there.top >= box.bottom || apart(there) > 2;
			};
			const before = space(time.previousSibling, (text) => text.trimEnd().length - 1, (there) => box.left - there.right);
			const after = space(time.nextSibling, (text) => text.search(/\S/), (there) => there.left - box.right);
			return before && after ? [] : [time.parentElement.textContent];
		}).join(", ")`)
	}
	visitor := s.chrome(1440, 900)
	visitor.open(s.url + "/")
	visitor.until(isLive + ` && document.querySelector(".badge time")`)
	if text := glued(visitor); text != "" {
		t.Error(text)
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	for path, there := range map[string]string{s.page("/ledger"): ".ledger-counts", s.url + flow: "#flow time"} {
		c.open(path)
		c.until(`document.querySelector("` + there + `")`)
		if text := glued(c); text != "" {
			t.Error(path, text)
		}
	}
}

// Windows side by side remember together what was read.
func TestWhatWasReadInOneWindowIsReadInTheOthers(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	first := s.hook(json(`{}`)) // opens by itself
	c.until(shows(first))
	other := c.tab()
	other.open(s.page(""))
	other.until(isLive)
	second, third := s.hook(json(`{}`)), s.hook(json(`{}`))
	for window, event := range map[*chrome]hookglass.EventID{c: second, other: third} {
		window.until(lists(event))
		eval[any](window, lists(event)+`.click()`)
		window.until(shows(event))
	}
	c.open(s.page(""))
	c.until(isLive + ` && document.querySelectorAll("#rows > li").length === 3 && !document.querySelector("[data-unread]")`)
}
