package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

func TestTheStreamComesBackAfterTheConnectionBroke(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	before := s.hook(sent{target: "/before"})
	c.until(lists(before))
	s.server.CloseClientConnections()
	missed := s.hook(sent{target: "/missed"})
	c.until(lists(missed) + " && " + isLive)
	if n := eval[int](c, `document.querySelectorAll("a.row").length`); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

// A browser opens six connections to a site without TLS.
func TestTabsInTheBackgroundLeaveTheirConnectionsToTheOneInFront(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	for range 6 {
		c.tabInTheBackground()
	}
	last := c.tab()
	last.open(s.page(""))
	last.until(isLive)
	last.hide()
	first := s.hook(sent{target: "/first"})
	last.until(lists(first) + ` && document.title.startsWith("(1) ")`)
	second := s.hook(sent{target: "/second"})
	last.show()
	last.untilIn(soon, lists(second)+` && document.querySelectorAll("a.row").length === 2`)
}

func TestManyWindowsSideBySideLeaveConnectionsToOneAnother(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	windows := []*chrome{c}
	for range 7 {
		window := c.tab()
		window.open(s.page(""))
		window.until(isLive)
		windows = append(windows, window)
	}
	for _, target := range []string{"/1", "/2"} {
		event := s.hook(sent{target: target})
		for _, window := range windows {
			window.until(lists(event) + " && " + isLive)
		}
	}
	// Each can still load what else it needs.
	for _, window := range windows {
		window.click("#rows a.row")
		window.until(isShown)
	}
}

// hide has the tab take itself for one in the background.
func (c *chrome) hide() {
	c.t.Helper()
	eval[bool](c, hidden+` && document.dispatchEvent(new Event("visibilitychange"))`)
}

const hidden = `Object.defineProperty(document, "hidden", { configurable: true, get: () => true })`

// show undoes hide.
func (c *chrome) show() {
	c.t.Helper()
	eval[bool](c, `delete document.hidden && document.dispatchEvent(new Event("visibilitychange"))`)
}

func (c *chrome) tabInTheBackground() *chrome {
	c.t.Helper()
	tab := c.tab()
	tab.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: hidden})
		return err
	}))
	tab.open(c.page(""))
	tab.until(isLive)
	return tab
}

func TestThreeTabsInTheBackgroundStayLive(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	taken := func(n int) {
		t.Helper()
		c.until(fmt.Sprintf(`navigator.locks.query().then((all) => all.held.filter((lock) => lock.name.startsWith("hidden ")).length === %d)`, n))
	}
	var live []*chrome
	for n := range 3 {
		live = append(live, c.tabInTheBackground())
		taken(n + 1)
	}
	other := c.tabInTheBackground()
	sent1 := s.hook(sent{target: "/1"})
	for _, tab := range live {
		tab.untilIn(soon, lists(sent1))
	}
	other.until(lists(sent1))

	live[0].show()
	taken(3) // the other has it now
	sent2 := s.hook(sent{target: "/2"})
	for _, tab := range append(live, other) {
		tab.untilIn(soon, lists(sent2)+` && document.querySelectorAll("a.row").length === 2`)
	}

	live[1].do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, page.Close, cdp.Empty{})
		return err
	}))
	taken(2)
}

// What has ended is not asked for again by who goes from tab to tab, and keeps no place.
func TestAStreamThatHasEndedIsLeftAloneByTabsThatComeAndGo(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.hide()
	c.until(`navigator.locks.query().then(({ held }) => held.length === 1 && held[0].name.startsWith("hidden "))`)
	if _, err := s.endpoints.Delete(t.Context(), s.who, string(s.endpoint.ID)); err != nil {
		t.Fatal(err)
	}
	c.until(`navigator.locks.query().then(({ held }) => document.querySelector("#live").dataset.state === "ended" && held.length === 0)`)
	c.until(`document.querySelector("#trouble").checkVisibility() && document.querySelector("#trouble").textContent.startsWith("This page is no longer live")`)
	eval[bool](c, `window.made = 0, window.EventSource = class extends EventSource { constructor(...all) { super(...all); window.made++; } }, true`)
	c.show()
	c.hide()
	c.show()
	if n := eval[int](c, `navigator.locks.query().then((all) => window.made + all.held.length)`); n != 0 {
		t.Errorf("%d connections were made, or places taken", n)
	}
}

// holdStream makes the page open its stream anew, as window.stream.
func (c *chrome) holdStream() {
	c.t.Helper()
	eval[bool](c, `window.EventSource = class extends EventSource { constructor(...all) { super(...all); window.stream = this; } }, true`)
	eval[bool](c, `dispatchEvent(new Event("online"))`)
	c.until(`window.stream.readyState === EventSource.OPEN`)
}

// Firefox closes a stream without a word when a form leaves the page, also where its answer is a file and the page stays.
func TestAStreamThatWasClosedWithoutAWordIsOpenedAgain(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.holdStream()
	eval[any](c, `window.stream.close()`)
	first := s.hook(sent{target: "/1"})
	c.untilIn(soon, lists(first))
	c.until(isLive)
	second := s.hook(sent{target: "/2"})
	c.untilIn(soon, lists(second))
	c.silent()
}

// Safari stops a stream when a form leaves the page, also where its answer is a file, and goes on to say that it is open.
func TestAStreamThatOnlySaysItIsOpenIsOpenedAgain(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.holdStream()
	eval[any](c, `(window.stream.close(), Object.defineProperty(window.stream, "readyState", { value: EventSource.OPEN }), 0)`)
	first := s.hook(sent{target: "/1"})
	eval[bool](c, `dispatchEvent(new Event("beforeunload"))`)
	c.untilIn(soon, lists(first))
	c.silent()
}

// On the way back to a page, Safari opens a stream again that the page has closed, beside the one in its place.
func TestAStreamThatTheBrowserOpensAgainIsClosed(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[bool](c, `window.streams = [], window.EventSource = class extends EventSource {
		constructor(...all) { super(...all); window.streams.push(this); this.closings = 0; }
		close() { super.close(); this.closings++; }
	}, true`)
	eval[bool](c, `dispatchEvent(new Event("online"))`) // makes a stream that the test knows
	c.until(`window.streams[0].readyState === EventSource.OPEN`)
	c.comeBack()
	c.until(`window.streams[0].closings === 1 && window.streams[1].readyState === EventSource.OPEN && ` + isLive)
	eval[bool](c, `window.streams[0].dispatchEvent(new Event("error"))`) // with which a browser begins to open one again
	if n := eval[int](c, `window.streams[0].closings`); n != 2 || !eval[bool](c, isLive) || eval[int](c, `window.streams.length`) != 2 {
		t.Errorf("the stream was closed %d times, and the page is %s", n, eval[string](c, `document.querySelector("#live").dataset.state`))
	}
	c.silent()
}

// On one's own machine the service is there without any network.
func TestABrowserWithoutANetworkSaysSoUnlessTheServerAnswers(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[any](c, `(window.quick = fetch, window.answered = 0, window.fetch = (...of) => quick(...of).finally(() => window.answered++), window.line = false,
		Object.defineProperty(navigator, "onLine", { get: () => window.line }), dispatchEvent(new Event("offline")), 0)`)
	c.until(`window.answered > 0`)
	if !eval[bool](c, `document.querySelector("#offline").hidden`) {
		t.Error("it says that it is offline, and the server answers")
	}
	eval[any](c, `(window.fetch = () => Promise.reject(new TypeError("no network")), dispatchEvent(new Event("offline")), 0)`)
	c.until(`document.querySelector("#offline").checkVisibility() && document.querySelector("#announce").textContent === "You are offline"`)
	eval[any](c, `(window.fetch = quick, window.line = true, dispatchEvent(new Event("online")), 0)`)
	c.until(`document.querySelector("#offline").hidden`)
	c.silent()
}

// The stream may outlive what went wrong: then nothing but its next beat tells that the server answers.
func TestARequestThatCouldNotBeLoadedComesThoughTheStreamGoesOn(t *testing.T) {
	t.Parallel() // it waits for most of its time
	s := newSite(t)
	event := s.hook(sent{target: "/wanted"})
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	for name, restored := range map[string]string{"the browser is online again": `dispatchEvent(new Event("online"))`, "the stream goes on": `true`} {
		c.open(s.page(""))
		c.until(isLive)
		eval[any](c, `(window.quick = fetch, window.fetch = () => Promise.reject(new TypeError("no network")), 0)`)
		c.click("#" + string(event) + " a")
		c.until(`document.querySelector("#detail [data-again]").checkVisibility()`)
		eval[any](c, `(document.querySelector("[data-again]").focus(), dispatchEvent(new Event("online")), 0)`)
		c.until(`document.querySelector("#detail").ariaBusy === "false"`)
		if !eval[bool](c, `document.activeElement === document.querySelector("[data-again]")`) {
			t.Errorf("%s: the focus is lost where it fails again", name)
		}
		eval[any](c, `(window.fetch = quick, `+restored+`, 0)`)
		c.untilIn(patience, shows(event)+` && !document.querySelector("#detail [data-again]")`)
	}
}

func TestARequestThatCouldNotBeLoadedComesWhenTheServerIsBack(t *testing.T) {
	t.Parallel() // it waits for most of its time
	for _, width := range []int64{1440, 390} {
		s := newSite(t)
		old := s.hook(sent{target: "/old"})
		event := s.hook(sent{target: "/wanted"})
		c := s.chrome(width, 900)
		c.open(s.link())
		c.until(isLive)
		eval[bool](c, `window.same = true`)
		s.away.Store(true)
		s.server.CloseClientConnections()
		c.click("#" + string(event) + " a")
		c.until(`document.querySelector("#detail [data-again]").checkVisibility() && window.same`)
		c.click("[data-again]")
		c.until(`document.querySelector("#detail").ariaBusy === "false" && document.querySelector("[data-again]").checkVisibility()`)
		missed := s.hook(sent{target: "/missed"})
		s.away.Store(false)
		c.untilIn(patience, shows(event)+" && "+lists(missed)+" && "+lists(old)+` && window.same && !document.querySelector("#detail [data-again]")`)
		if got := eval[string](c, `document.title + " " + location.pathname`); !strings.HasPrefix(got, "POST /wanted") || !strings.HasSuffix(got, string(event)) {
			t.Errorf("at %d pixels the page is %s", width, got)
		}
	}
}
