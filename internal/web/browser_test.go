package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"hookglass"
)

const (
	isLive  = `document.querySelector("#live").dataset.state === "live"`
	isShown = `document.querySelector("[data-panel]")`
)

func shows(id hookglass.EventID) string {
	return `document.querySelector("[data-panel='` + string(id) + `']")`
}
func lists(id hookglass.EventID) string {
	return `document.querySelector("#rows > #` + string(id) + ` a.row")`
}

func TestRequestsArriveLiveAndTheFirstOpensItself(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	if !eval[bool](c, `document.querySelector("#waiting").checkVisibility()`) {
		t.Error("the page does not say that it waits")
	}
	eval[bool](c, `window.same = true`) // lost by a reload

	first := s.hook(json(`{"number":1}`))
	c.untilIn(soon, lists(first))
	c.untilIn(soon, shows(first))
	c.until(`document.querySelector("#announce").textContent === "New request: POST /"`)
	c.until(`!document.querySelector("#waiting").checkVisibility() && document.querySelector("#count").textContent === "1"`)

	second := s.hook(sent{method: "DELETE", target: "/thing?b=2"})
	c.untilIn(soon, lists(second))
	if eval[string](c, `document.querySelector("#rows a.row").parentElement.id`) != string(second) {
		t.Error("the newest is not first")
	}
	c.until(`["1 more new request", "New request: DELETE /thing?b=2"].includes(document.querySelector("#announce").textContent)`)
	if !eval[bool](c, `window.same && Boolean(`+shows(first)+`)`) {
		t.Error("a second request took the place of the one shown, or the page was loaded again")
	}
	if got := eval[string](c, `location.pathname`); got != "/endpoints/"+string(s.endpoint.ID)+"/requests/"+string(first) {
		t.Errorf("the address is %s", got)
	}
	c.silent()
}

// Text has the same size whatever the browser's default font size is, and so have the columns.
func TestTheListAndARequestStandSideBySideWhateverTheDefaultFontSize(t *testing.T) {
	s := newSite(t)
	id := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	for _, size := range []int64{9, 16, 24} {
		c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, page.SetFontSizes, page.SetFontSizesParams{FontSizes: &page.FontSizes{Standard: size}})
			return err
		}))
		for width, want := range map[int64]bool{1440: true, 760: false} {
			c.do(chromedp.EmulateViewport(width, 900))
			c.open(s.url + "/endpoints/" + string(s.endpoint.ID) + "/requests/" + string(id))
			if got := eval[bool](c, `document.querySelector(".requests").checkVisibility() && document.querySelector("#detail").checkVisibility()`); got != want {
				t.Errorf("with a default of %d px, on %d px: side by side is %t", size, width, got)
			}
		}
	}
}

// Actions mark what came a moment before, and people delete in another tab.
func TestTheListShowsWhatBecameOfItsRequests(t *testing.T) {
	t.Parallel() // it waits for most of its time
	s := newSite(t)
	endpoint := string(s.endpoint.ID)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tag := func(id hookglass.EventID) {
		t.Helper()
		_, err := s.captures.Tag(t.Context(), s.who, endpoint, string(id), "urgent")
		must(err)
	}
	var old []hookglass.EventID
	for range 60 { // more than are loaded at first
		old = append(old, s.hook(sent{target: "/old"}))
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	search := c.tab()
	search.open(s.page("?q=tag:urgent"))
	search.until(isLive)
	if !eval[bool](search, `document.querySelector("#none").checkVisibility()`) {
		t.Error("the search finds what is not there")
	}

	noise, marked := s.hook(sent{target: "/noise"}), s.hook(sent{target: "/marked"})
	tag(marked)
	tag(old[58])
	must(s.captures.Ignore(t.Context(), s.who, endpoint, string(noise), "noise"))
	for _, id := range []hookglass.EventID{marked, old[58]} {
		c.until(lists(id) + `.textContent.includes("urgent")`)
		search.until(lists(id))
	}
	found := func(says string) {
		t.Helper()
		search.until(`document.querySelector("#requests-title .count").textContent.trim().replace(/\s+/g, " ") === "` + says + `"`)
	}
	found("2 of 62")
	c.until(`!` + lists(noise))
	if eval[bool](search, `document.querySelector("#none").checkVisibility() || document.querySelector("#rows a.row").parentElement.id !== "`+string(marked)+`"`) {
		t.Error("the search says that it found nothing, or has the newest not first")
	}
	must(s.captures.Unignore(t.Context(), s.who, endpoint, string(noise)))
	c.until(lists(noise) + `.parentElement.nextElementSibling.id === "` + string(old[59]) + `"`)

	// What is read stays until something else is.
	c.click("#" + string(noise) + " a")
	c.until(shows(noise))
	must(s.captures.Delete(t.Context(), s.who, endpoint, string(noise)))
	must(s.captures.Delete(t.Context(), s.who, endpoint, string(old[59])))
	c.until(`!` + lists(old[59]) + ` && document.querySelector("#count").textContent === "60"`)
	if !eval[bool](c, shows(noise)+` && `+lists(noise)+`.ariaCurrent === "true"`) {
		t.Error("what was read is gone")
	}
	c.click("#" + string(marked) + " a")
	c.until(`!` + lists(noise))

	// What waits while the list is paused comes as it is by then.
	c.click("#live")
	waits := s.hook(sent{target: "/waits"})
	c.until(`document.querySelector("#new").textContent === "1 new"`)
	tag(waits)
	search.until(lists(waits))
	found("3 of 61")
	search.click("#live")
	tag(s.hook(sent{target: "/unlisted"}))
	found("3+ of 62")
	search.click("#live")
	found("4 of 62")
	if eval[bool](c, `Boolean(`+lists(waits)+`)`) {
		t.Error("a list that is paused got something new")
	}
	c.click("#live")
	c.until(lists(waits) + `.textContent.includes("urgent")`)

	if _, err := s.captures.DeleteRange(t.Context(), s.who, endpoint, time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	c.until(`document.querySelectorAll("#rows > li").length === 1 && document.querySelector("#count").textContent === "0"`)
	c.press("\u001b")
	c.until(`document.querySelector("#waiting").checkVisibility() && document.querySelector("#rows").childElementCount === 0`)
	search.until(`document.querySelector("#none").checkVisibility()`)
	found("0 of 0")
	again := s.hook(sent{target: "/again"})
	c.until(lists(again) + ` && !document.querySelector("#waiting").checkVisibility()`)
	c.silent()
}

func TestANoteIsWrittenBesideTheRequest(t *testing.T) {
	s := newSite(t)
	endpoint := string(s.endpoint.ID)
	event := s.hook(json(`{"a":1}`))
	path := s.page("/requests/" + string(event))
	b := s.signedIn()
	page := b.want(200, "GET", path, nil)
	page.holds(t, "Add a note")
	empty := page.found(t, `name="seen" value="(\w+)"`)
	b.want(303, "POST", path+"/note", url.Values{"seen": {empty}, "note": {"one\r\n<b>two</b> \u202e"}})
	page = b.want(200, "GET", path, nil)
	page.holds(t, "one\n&lt;b&gt;two&lt;/b&gt;", ">note</span>")
	page.lacks(t, "Add a note")
	b.want(409, "POST", path+"/note", url.Values{"seen": {empty}, "note": {"mine"}}).holds(t, "Somebody else changed this note.")
	b.want(303, "POST", path+"/note", url.Values{"note": {" "}})
	b.want(200, "GET", path, nil).lacks(t, ">note</span>")
	s.visitor().want(401, "POST", path+"/note", url.Values{"note": {"mine"}})

	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.open(path)
	c.until(isLive + ` && ` + shows(event))
	const noted = `document.querySelector("[data-mark=noted]")`
	eval[bool](c, `(`+noted+`.querySelector("summary").click(), `+noted+`.querySelector("textarea").focus(), true)`)
	c.press("seen by me")
	eval[bool](c, `(`+noted+`.querySelector("button").click(), true)`)
	c.until(noted + `.querySelector(".noted-text")?.textContent === "seen by me" && !` + noted + `.querySelector("details").open`)
	c.until(lists(event) + `.querySelector(".badge[title='seen by me']") !== null`)

	// What others write comes by itself, but not over what is being written.
	note := func(text string) {
		t.Helper()
		if err := s.captures.SetNote(t.Context(), s.who, endpoint, string(event), text); err != nil {
			t.Fatal(err)
		}
	}
	note("theirs")
	c.until(noted + `.querySelector(".noted-text")?.textContent === "theirs"`)
	eval[bool](c, `(`+noted+`.querySelector("summary").click(), `+noted+`.querySelector("textarea").value = "half", true)`)
	note("again theirs")
	c.until(lists(event) + `.querySelector(".badge[title='again theirs']") !== null`)
	eval[bool](c, `(`+noted+`.querySelector("button").click(), true)`)
	c.until(noted + `.querySelector(".fault").textContent.startsWith("Somebody else changed this note")`)
	if got := eval[string](c, noted+`.querySelector("textarea").value`); got != "half" {
		t.Errorf("what was written is %q", got)
	}
}

// A request that is open shows what others make of it, also where it is not in the list, and leaves alone what its
// reader does meanwhile.
func TestTheRequestThatIsOpenShowsWhatOthersMakeOfIt(t *testing.T) {
	t.Parallel() // it waits for most of its time
	s := newSite(t)
	endpoint := string(s.endpoint.ID)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	old := s.hook(json(`{"a":1}`))
	for range 60 { // more than are loaded at first
		s.hook(sent{target: "/new"})
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.open(s.page("/requests/" + string(old)))
	c.until(isLive + ` && ` + shows(old) + ` && !` + lists(old))
	tag := func(name string) {
		t.Helper()
		_, err := s.captures.Tag(t.Context(), s.who, endpoint, string(old), name)
		must(err)
	}
	const (
		tags    = `document.querySelector("[data-mark=tagged]")`
		ignored = `document.querySelector("[data-mark=ignored]")`
	)
	if eval[bool](c, tags+`.checkVisibility() || `+ignored+`.checkVisibility()`) {
		t.Error("marks are shown that there are not")
	}
	eval[bool](c, `(document.querySelector("[data-replay]").click(), document.querySelector("#replay-form [name=target_url]").value = "half typed", true)`)
	tag("urgent")
	c.until(tags + `.checkVisibility() && ` + tags + `.textContent.includes("urgent")`)
	if !eval[bool](c, `document.querySelector("#replay-form").open && document.activeElement.value === "half typed"`) {
		t.Error("the form that is filled in is gone")
	}
	eval[bool](c, `(document.querySelector("#replay-form").close(), document.querySelector("[data-mark=tagged] button").focus(), true)`)
	tag("second")
	c.until(tags + `.textContent.includes("second") && document.activeElement.ariaLabel === "Remove the tag urgent" || document.activeElement.ariaLabel === "Remove the tag second"`)
	must(s.captures.Ignore(t.Context(), s.who, endpoint, string(old), "noise"))
	c.until(ignored + `.checkVisibility() && ` + ignored + `.textContent.includes("noise")`)
	if n := eval[int](c, `document.querySelectorAll("[data-ignore]").length`); n != 1 {
		t.Errorf("%d ways to ignore it or not", n)
	}
	c.press("i")
	c.until(`!` + ignored + `.checkVisibility() && document.querySelectorAll("[data-ignore]").length === 1`)
	must(s.captures.Delete(t.Context(), s.who, endpoint, string(old)))
	c.until(`document.querySelector("[data-mark=gone]").checkVisibility()`)
	if !eval[bool](c, `Boolean(`+shows(old)+`)`) {
		t.Error("what was read is gone")
	}
	c.silent()
}

func TestADetailOpensBesideTheListAndHistoryWorks(t *testing.T) {
	s := newSite(t)
	first, second := s.hook(json(`{"number":1}`)), s.hook(sent{target: "/second?x=1", headers: hookglass.Headers{{Name: "X-Mark", Value: "yes"}}})
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.click("#" + string(first) + " a")
	c.until(shows(first))
	c.click("#tab-headers")
	c.click("#" + string(second) + " a")
	c.until(shows(second) + ` && location.pathname.endsWith("` + string(second) + `") && location.hash === "#part-headers"`)
	if eval[string](c, `document.querySelector("#rows [aria-current]").parentElement.id`) != string(second) || !strings.HasPrefix(eval[string](c, `document.title`), "POST /second?x=1 ·") {
		t.Error("the row or the title does not say which is shown")
	}
	eval[any](c, `document.querySelector("[data-panel]").old = true`)
	c.click("#" + string(second) + " a") // again, which is no further entry of the history
	c.until(shows(second) + ` && !document.querySelector("[data-panel]").old`)
	c.click("#tab-headers")
	c.until(`document.querySelector("#part-headers").checkVisibility() && !document.querySelector("#part-body").checkVisibility()`)
	c.press(kb.ArrowRight)
	c.until(`document.activeElement.id === "tab-query" && document.querySelector("#part-query").checkVisibility()`)
	c.do(chromedp.NavigateBack())
	c.until(shows(first) + ` && location.hash === "#part-headers" && document.querySelector("#part-headers").checkVisibility()`)
	c.do(chromedp.NavigateBack())
	c.until(`!` + isShown)
	c.do(chromedp.NavigateForward())
	c.until(shows(first))
	c.do(chromedp.Reload())
	c.until(shows(first) + " && " + isLive)
	c.click("#tab-response")
	c.until(`location.hash === "#part-response"`)
	c.do(chromedp.Reload())
	c.until(shows(first) + ` && location.hash === "#part-response" && document.querySelector("#part-response").checkVisibility() && !document.querySelector("#part-body").checkVisibility()`)
	c.silent()
}

// On a slow line, who walks through a list does not wait for the requests that were passed.
func TestARequestThatIsPassedIsNotLoadedAnyMore(t *testing.T) {
	s := newSite(t)
	first, second, third := s.hook(json(`{"number":1}`)), s.hook(json(`{"number":2}`)), s.hook(json(`{"number":3}`))
	pages, begun, ended := s.server.Config.Handler, make(chan string, 10), make(chan string, 10)
	s.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, slow := range []hookglass.EventID{first, third} {
			if strings.HasSuffix(r.URL.Path, string(slow)+"/panel") {
				begun <- string(slow)
				<-r.Context().Done()
				ended <- string(slow)
				return
			}
		}
		pages.ServeHTTP(w, r)
	})
	wait := func(heard chan string, want hookglass.EventID) {
		t.Helper()
		select {
		case id := <-heard:
			if id != string(want) {
				t.Fatalf("heard of %s, want %s", id, want)
			}
		case <-time.After(patience):
			t.Fatalf("nothing is heard of %s", want)
		}
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.click("#" + string(first) + " a.row")
	wait(begun, first)
	c.click("#" + string(second) + " a.row")
	c.until(shows(second) + ` && document.querySelector("#detail").ariaBusy === "false"`)
	wait(ended, first)
	c.click("#" + string(third) + " a.row")
	wait(begun, third)
	c.press(kb.Escape)
	wait(ended, third)
	c.until(`!` + isShown + ` && document.querySelector("#detail").ariaBusy === "false"`)
	c.silent()
}

// Safari refuses an address once a page has had a hundred within ten seconds, as where the key for the next request is
// held.
func TestARequestIsOpenedThoughTheBrowserRefusesItsAddress(t *testing.T) {
	s := newSite(t)
	first, second := s.hook(json(`{"number":1}`)), s.hook(sent{target: "/second"})
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.click("#" + string(first) + " a")
	c.until(shows(first))
	eval[any](c, `(() => {
		const push = history.pushState;
		history.pushState = () => { window.refused = true; throw new DOMException("", "SecurityError"); };
		window.accept = () => { history.pushState = push; };
	})()`)
	c.click("#" + string(second) + " a")
	c.untilIn(soon, shows(second)+` && window.refused && document.title.startsWith("POST /second ·") && !document.querySelector("[data-unread]")`)
	eval[any](c, `window.accept()`)
	c.until(`location.pathname.endsWith("` + string(second) + `")`)
	c.do(chromedp.NavigateBack())
	c.until(shows(first))
	c.silent()
}

// A file comes without the page being left, so the button that asked for it does not stay busy.
func TestTheSelectedRequestsCanBeExportedTwice(t *testing.T) {
	s := newSite(t)
	first := s.hook(sent{target: "/1"})
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[any](c, `(window.sent = 0, addEventListener("submit", (event) => window.sent += event.defaultPrevented ? 0 : 1), 0)`)
	c.click(`.pick[value="` + string(first) + `"]`)
	for n := 1; n <= 2; n++ {
		c.click(`#bulk [value="export"]`)
		c.until(fmt.Sprintf(`window.sent === %d && !document.querySelector("[aria-busy=true]")`, n))
	}
	second := s.hook(sent{target: "/2"})
	c.untilIn(soon, lists(second))
}

func TestWhoMustSignInAgainComesBackToWhatWasToBeOpened(t *testing.T) {
	s := newSite(t)
	wanted, shown := s.hook(sent{target: "/wanted"}), s.hook(sent{target: "/shown"})
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.click("#" + string(shown) + " a")
	c.until(shows(shown))
	c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, network.ClearBrowserCookies, cdp.Empty{})
		return err
	}))
	c.click("#" + string(wanted) + " a")
	c.until(`location.pathname === "/sign-in" && new URLSearchParams(location.search).get("next").endsWith("/requests/` + string(wanted) + `")`)
}

func TestKeysMoveThroughRequests(t *testing.T) {
	s := newSite(t)
	oldest, newest := s.hook(json(`{"number":1}`)), s.hook(json(`{"number":2}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.press("j")
	c.until(shows(newest))
	c.press("j")
	c.until(shows(oldest))
	c.press("j") // there is no older one
	c.press("k")
	c.until(shows(newest))
	c.press("29") // there is no ninth tab
	c.until(`location.hash === "#part-headers" && document.querySelector("#part-headers").dataset.shown !== undefined && document.querySelector("#announce").textContent.startsWith("Headers")`)
	c.press("1")
	c.until(`document.querySelector("#part-body").dataset.shown !== undefined`)
	c.copies("[data-curl]", func() { c.press("c") })
	c.copies("#part-body .copy", func() { c.click("#part-body .copy") })
	c.press("?")
	c.until(`document.querySelector("#keys").open`)
	c.press("j") // belongs to the dialog now
	c.press(kb.Escape)
	c.until(`!document.querySelector("#keys").open && ` + shows(newest))
	c.press(kb.Escape)
	c.until(`!` + isShown)
	c.press("/")
	c.until(`document.activeElement.id === "q"`)
	c.press("j/k?method:GET")
	if got := eval[string](c, `document.querySelector("#q").value`); got != "j/k?method:GET" || eval[bool](c, `document.querySelector("#keys").open`) {
		t.Errorf("typed into the search: %q", got)
	}
	c.open(s.page("/requests/" + string(oldest) + "?q=method:POST")) // the list is another page than this
	c.until(shows(oldest))
	c.press(kb.Escape)
	c.until(`!` + isShown + ` && location.pathname === "/endpoints/` + string(s.endpoint.ID) + `" && location.search === "?q=method%3APOST"`)
	c.silent()
}

func TestATestRequestIsSentWithoutLeavingThePage(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[bool](c, `window.same = true`)
	c.click("[data-test] > button")
	c.untilIn(soon, isShown+` && window.same`)
	c.silent()

	c.click("[data-command=\"Send a sample\"]")
	eval[bool](c, `(document.querySelector("#sample-form textarea").value = "customer=cus_1", true)`)
	c.click("#sample-form [type=submit]")
	c.until(`document.querySelector("#sample-form .fault").checkVisibility() && window.same`)
	eval[bool](c, `(document.querySelector("#sample-form textarea").value = "/mine=1", true)`)
	c.click("#sample-form [type=submit]")
	c.untilIn(soon, `document.querySelectorAll(".row").length === 2 && window.same`)
	c.until(`document.activeElement.matches("[popovertarget=sample-form]")`)

	s.away.Store(true)
	eval[any](c, `document.querySelector("#live").dataset.state = "lost"`)
	c.click("[data-test] > button")
	c.until(`document.querySelector("#trouble").textContent.startsWith("The server could not be reached.") && window.same`)
	s.away.Store(false)
	s.hook(json(`{}`))
	c.untilIn(soon, `document.querySelectorAll(".row").length === 3 && window.same`)
	c.until(`!document.querySelector("#trouble").checkVisibility()`)
}

func TestTheListOfEndpointsIsAlive(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.url + "/endpoints")
	eval[bool](c, `document.querySelector("#endpoint-list .copy").focus(), window.same = true`)
	s.hook(json(`{}`))
	c.until(`document.querySelector("#endpoint-list").textContent.includes("1 request") && window.same`)
	c.until(`document.activeElement.matches("#endpoint-list .copy")`)
	c.silent()
}

// What is shown is marked by a word: an empty aria-current means that it is not shown, for screen readers and for what is next.
func TestWhatIsShownIsMarkedForScreenReadersAndForTheNextKey(t *testing.T) {
	s := newSite(t)
	var events []hookglass.EventID
	for range 3 {
		events = append(events, s.hook(json(`{}`)))
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(events[1])))
	c.until(isLive + ` && ` + shows(events[1]))
	got := eval[string](c, `[...document.querySelectorAll("[aria-current]")].map((e) => e.closest("nav, ol").ariaLabel + ": " + e.ariaCurrent).join()`)
	if want := "Endpoints: true,Endpoint: page,Requests, newest first: true"; got != want {
		t.Errorf("marked are %s, not %s", got, want)
	}
	c.press("j")
	c.until(shows(events[0]))
	c.silent()
}

func TestThePageOneIsOnIsInSightOfTheNavigation(t *testing.T) {
	s := newSite(t)
	c := s.chrome(390, 844)
	c.open(s.link())
	for _, address := range []string{s.url + "/setup", s.page("/settings"), s.page("/tunnel"), s.url + "/endpoints"} {
		c.open(address)
		c.until(`[...document.querySelectorAll("nav [aria-current]")].every((here) => {
			const nav = here.closest("nav").getBoundingClientRect(), at = here.getBoundingClientRect();
			return at.left >= nav.left && at.right <= nav.right;
		})`)
	}
}

func TestADeletionIsConfirmed(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(isLive)
	c.click(".detail-actions .danger")
	c.until(`document.querySelector("#delete-event").matches(":popover-open") && document.activeElement.textContent === "Cancel"`)
	c.press(kb.Escape)
	c.until(`!document.querySelector("#delete-event").matches(":popover-open")`)
	c.click(".detail-actions .danger")
	c.click("#delete-event .solid")
	c.until(`document.readyState === "complete" && document.querySelector("#waiting")?.checkVisibility()`)
	c.silent()
}

func TestAVisitorCatchesARequestWithoutAClick(t *testing.T) {
	s := newSite(t)
	c := s.chrome(390, 844)
	c.open(s.url + "/")
	c.until(isLive)
	address := eval[string](c, `document.querySelector("#address").textContent`)
	id := address[strings.LastIndexByte(address, '/')+1:]
	event := s.capture(hookglass.Endpoint{ID: hookglass.EndpointID(id)}, json(`{"caught":true}`))
	c.untilIn(soon, lists(event))
	c.click("#" + string(event) + " a") // on a phone the detail takes the place of the list
	c.until(shows(event) + ` && !document.querySelector(".requests").checkVisibility()`)
	c.click("a.back")
	c.until(`document.querySelector(".requests").checkVisibility() && !document.querySelector("#detail").checkVisibility()`)
	c.silent()
}

func TestWithoutScriptsEverythingCanBeRead(t *testing.T) {
	s := newSite(t)
	event := s.hook(sent{target: "/a?b=c", body: `{"deep":{"down":"here"}}`, headers: hookglass.Headers{{Name: "X-Mark", Value: "seen"}}})
	c := s.chrome(390, 844)
	c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	c.open(s.link())
	c.do(chromedp.WaitVisible("#" + string(event)))
	c.open(s.page("/requests/" + string(event)))
	text, err := chromedp.Run(c.ctx, chromedp.Text("#detail", chromedp.NodeVisible))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"deep"`, `"here"`, "X-Mark", "seen", "b", "c", "unchecked", `"received"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the detail lacks %q:\n%s", want, text)
		}
	}
	c.picture("without-scripts")
	if strings.Contains(text, "Copy as curl") {
		t.Error("a button that needs scripts is shown")
	}
}
