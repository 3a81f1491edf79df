package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	"hookglass/internal/action"
	"hookglass/internal/endpoint"
	"hookglass/internal/web"
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

// What is deleted among the newest makes room for older ones, and those that were loaded stay, marked as they are by now.
func TestAListOfWhichTheNewestAreDeletedGoesOn(t *testing.T) {
	s := newSite(t)
	var all []hookglass.EventID
	for range 130 {
		all = append(all, s.hook(sent{}))
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.until(`(document.querySelector("[data-more]")?.scrollIntoView(), document.querySelectorAll("#rows > li").length === 130)`)
	if _, err := s.captures.Tag(t.Context(), s.who, string(s.endpoint.ID), string(all[2]), "urgent"); err != nil {
		t.Fatal(err)
	}
	c.until(lists(all[2]) + `.textContent.includes("urgent")`)
	for _, id := range all[60:] {
		if err := s.captures.Delete(t.Context(), s.who, string(s.endpoint.ID), string(id)); err != nil {
			t.Fatal(err)
		}
	}
	c.until(`(document.querySelector("[data-more]")?.scrollIntoView(), document.querySelectorAll("#rows > li").length === 60)`)
	if got := eval[string](c, `[...document.querySelectorAll("#rows > li")].map((item) => item.id).join()`); got != joined(all[:60]) {
		t.Errorf("the list is %s", got)
	}
	c.silent()
}

// joined are ids from the last to the first.
func joined(ids []hookglass.EventID) string {
	var texts []string
	for _, id := range slices.Backward(ids) {
		texts = append(texts, string(id))
	}
	return strings.Join(texts, ",")
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

// Who goes back from a request, on a phone too, or reloads it, is in the list where it was opened.
func TestThePlaceInTheListIsKept(t *testing.T) {
	s := newSite(t)
	var all []hookglass.EventID
	for range 130 {
		all = append(all, s.hook(json(`{}`)))
	}
	far := all[10]
	const end = `document.querySelector("#rows").lastElementChild.scrollIntoView()`
	inSight := `(() => { const at = ` + lists(far) + `?.getBoundingClientRect(); return at?.height > 0 && at.top >= 0 && at.bottom <= innerHeight; })()`

	phone := s.chrome(390, 844)
	phone.open(s.link())
	phone.until(isLive)
	for _, id := range []hookglass.EventID{all[80], all[30], far} {
		eval[any](phone, end)
		phone.until(lists(id))
	}
	eval[any](phone, lists(far)+`.scrollIntoView({ block: "center" })`)
	phone.click("#" + string(far) + " a")
	phone.until(shows(far) + ` && scrollY === 0`)
	eval[any](phone, `history.back()`)
	phone.until(`!document.querySelector("[data-open]") && scrollY > 2000`)
	phone.until(inSight)
	phone.silent()

	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(far)))
	c.until(isLive + ` && ` + shows(far) + ` && !` + lists(far)) // who follows a link begins with the newest
	eval[any](c, `location.reload()`)
	c.until(lists(far) + `?.ariaCurrent === "true" && ` + inSight)
	c.silent()
}

// What comes and goes above the rows that one reads moves none of them, in a browser too that lets it, as Safari does.
func TestWhatIsReadInTheListStaysWhereItIs(t *testing.T) {
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		s := newSite(t)
		var all []hookglass.EventID
		for range 50 {
			all = append(all, s.hook(json(`{}`)))
		}
		c := s.chrome(size[0], size[1])
		c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `CSS.supports = () => false`})
			return err
		}))
		c.open(s.link())
		c.until(isLive)
		row := lists(all[20])
		eval[any](c, `(() => {
			for (const scrolled of [document.documentElement, document.querySelector(".requests")]) scrolled.style.overflowAnchor = "none";
			addEventListener("scroll", () => window.scrolled = true, { capture: true, once: true });
			`+row+`.scrollIntoView({ block: "center" });
		})()`)
		c.until(`window.scrolled`)
		at := eval[float64](c, row+`.getBoundingClientRect().top`)
		stays := func() {
			t.Helper()
			c.untilIn(soon, `Math.abs(`+row+`.getBoundingClientRect().top - `+strconv.FormatFloat(at, 'f', -1, 64)+`) <= 1`)
		}
		newest := s.hook(json(`{}`))
		c.until(lists(newest))
		stays()
		if err := s.captures.Delete(t.Context(), s.who, string(s.endpoint.ID), string(newest)); err != nil {
			t.Fatal(err)
		}
		c.until(`!` + lists(newest))
		stays()
		const bar = `document.querySelector(".bulk").checkVisibility()`
		c.click(`.pick[value="` + string(all[20]) + `"]`)
		c.until(bar)
		stays()
		c.click(`.pick[value="` + string(all[20]) + `"]`)
		c.until(`!` + bar)
		stays()
		c.silent()
	}
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

// Firefox closes a stream without a word when a form leaves the page, also where its answer is a file and the page stays.
func TestAStreamThatWasClosedWithoutAWordIsOpenedAgain(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[bool](c, `window.EventSource = class extends EventSource { constructor(...all) { super(...all); window.stream = this; } }, true`)
	eval[bool](c, `dispatchEvent(new Event("online"))`) // makes a stream that the test can close
	c.until(`window.stream.readyState === EventSource.OPEN`)
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
	eval[bool](c, `window.EventSource = class extends EventSource { constructor(...all) { super(...all); window.stream = this; } }, true`)
	eval[bool](c, `dispatchEvent(new Event("online"))`) // makes a stream that the test can stop
	c.until(`window.stream.readyState === EventSource.OPEN`)
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
	c.press("c")
	c.until(`document.querySelector("[data-curl]").dataset.copied === "yes"`)
	c.click("#part-body .copy")
	c.until(`document.querySelector("#part-body .copy").dataset.copied === "yes"`)
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

func TestOlderRequestsAreLoadedIntoTheList(t *testing.T) {
	s := newSite(t)
	oldest := s.hook(sent{method: "GET", target: "/0"})
	for n := range 59 {
		s.hook(sent{method: "GET", target: "/" + strconv.Itoa(n+1)})
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	newer := s.hook(sent{target: "/newer"})
	c.until(lists(newer))
	c.click("[data-more]")
	c.until(lists(oldest) + ` && !document.querySelector("[data-more]")`)
	if n := eval[int](c, `document.querySelectorAll("a.row").length`); n != 61 {
		t.Errorf("%d rows, want 61", n)
	}
	c.silent()
}

func TestALongListGivesWayAndIsReadOn(t *testing.T) {
	s := newSite(t)
	oldest := s.hook(sent{target: "/oldest"})
	shown := s.hook(sent{target: "/shown"})
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.click("#" + string(shown) + " a")
	c.until(shows(shown))
	for n := range 1010 {
		s.hook(sent{target: "/" + strconv.Itoa(n)})
	}
	c.until(`document.querySelector("#count").textContent === "1,012" && document.querySelector("[data-more]")`)
	c.until(lists(shown) + ` && document.querySelectorAll("a.row").length === 1001`)
	c.click("[data-more]")
	c.until(lists(oldest))
	if n := eval[int](c, `document.querySelectorAll("a.row").length`); n != 1012 {
		t.Errorf("%d rows, want 1012", n)
	}
	if got := eval[string](c, `[...document.querySelectorAll("#rows > li[id]")].slice(-2).map((e) => e.id).join()`); got != string(shown)+","+string(oldest) {
		t.Errorf("the last are %s", got)
	}
	// Who reads the end of the list keeps it.
	eval[any](c, `document.getElementById("`+string(oldest)+`").scrollIntoView()`)
	newest := s.hook(sent{target: "/newest"})
	c.until(lists(newest) + ` && ` + lists(oldest))
	c.silent()
}

// What was asked for before the list gave way begins further down than where the list ends by then.
func TestAListThatGivesWayWhileItIsReadOnHasNoHole(t *testing.T) {
	s := newSite(t)
	for n := range 60 {
		s.hook(sent{target: "/" + strconv.Itoa(n)})
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[any](c, `(() => {
		const fetched = window.fetch, gate = new Promise((open) => { window.letThrough = open; });
		window.fetch = async (...what) => {
			const answer = await fetched(...what);
			await gate;
			return answer;
		};
	})()`)
	eval[any](c, `document.querySelector("[data-more]").click()`) // who presses it otherwise looks at the end of the list
	var newest hookglass.EventID
	for n := range 960 {
		newest = s.hook(sent{target: "/" + strconv.Itoa(60+n)})
	}
	c.untilIn(patience, lists(newest)+` && document.querySelectorAll("a.row").length <= 1001`)
	eval[any](c, `window.letThrough()`)
	c.untilIn(patience, `document.querySelectorAll("a.row").length >= 1010 && !document.querySelector("[data-more]")`)
	paths := eval[string](c, `[...document.querySelectorAll("a.row")].map((row) => row.dataset.title).join()`)
	var want []string
	for n := range 1020 {
		want = append(want, "POST /"+strconv.Itoa(1019-n))
	}
	if paths != strings.Join(want, ",") {
		t.Errorf("the list is %s", paths)
	}
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

// corpus would each run, load or hide something where they were taken for markup.
var corpus = []string{
	`<script>document.documentElement.dataset.ran=1</script>`,
	`"><img src=x onerror="document.documentElement.dataset.ran=1">`,
	`'-document.documentElement.setAttribute('data-ran',1)-'`,
	`</textarea></title></style></script><svg/onload=document.documentElement.dataset.ran=1>`,
	`<iframe srcdoc="<script>parent.document.documentElement.dataset.ran=1</script>"></iframe>`,
	`javascript:document.documentElement.dataset.ran=1`,
	`<a href="javascript:alert(1)">x</a><meta http-equiv=refresh content="0;url=//evil.test">`,
	`<link rel=stylesheet href=//evil.test/x.css><img src=//evil.test/x.png>`,
	`{{constructor.constructor('document.documentElement.dataset.ran=1')()}}${document.documentElement.dataset.ran=1}`,
	"\u202egpj.exe\u202c\u2028\u0000\x1b[2J\xff\xfe<b>",
	`--><!--<b>]]>`,
	"line\r\nevent: row\r\ndata: <img src=x onerror=alert(1)>\r\n\r\n",
}

func TestNothingThatASenderWroteIsEverMarkup(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	for _, hostile := range corpus {
		response := &hookglass.Response{Status: 202, Headers: map[string]string{"X-Answer": strings.Map(printable, hostile)}, Body: hostile}
		name := strings.Map(printable, hostile)
		if _, err := s.endpoints.Update(t.Context(), s.who, string(s.endpoint.ID), endpoint.Draft{Name: &name, Response: &response}); err != nil {
			t.Fatal(err)
		}
		c.open(s.page("")) // the endpoint's name is hostile from here on, and rows come by the stream
		c.until(isLive)
		quoted := strconv.QuoteToASCII(strings.ToValidUTF8(hostile, "?"))
		for _, r := range []sent{
			{target: "/" + hostile + "?" + hostile, body: hostile, headers: hookglass.Headers{
				{Name: "Content-Type", Value: hostile}, {Name: hostile, Value: hostile}, {Name: "X-GitHub-Event", Value: hostile}, {Name: "X-GitHub-Delivery", Value: hostile},
			}},
			{body: `{"type":` + quoted + `,` + quoted + `:[` + quoted + `,{"a":` + quoted + `}]}`, headers: hookglass.Headers{
				{Name: "Content-Type", Value: "application/json"}, {Name: "X-GitHub-Event", Value: hostile},
			}},
			{body: hostile, headers: hookglass.Headers{{Name: "Content-Type", Value: "text/html"}}},
			{body: "a=" + hostile + "&" + hostile + "=b", headers: hookglass.Headers{{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}}},
		} {
			event := s.hook(r)
			c.until(lists(event))
			eval[any](c, lists(event)+`.click()`)
			c.until(shows(event))
			eval[any](c, `document.querySelectorAll("[role=tab], .views input").forEach((e) => e.click())`)
			eval[any](c, `document.querySelectorAll("details").forEach((e) => e.open = true)`)
		}
		c.open(s.url + "/endpoints")
		c.open(s.page("/settings"))
		c.open(s.page("?q=" + strings.Map(printable, hostile)))
		if eval[bool](c, `document.documentElement.hasAttribute("data-ran") || document.querySelector("main iframe, main img, main script, main style, main meta, main link, main [onerror], main [onload]") !== null`) {
			t.Errorf("%q became markup", hostile)
		}
	}
	c.silent()
}

// printable is for places that take no control characters.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r == '\uFFFD' || r >= 0x80 {
		return -1
	}
	return r
}

func TestPagesFitPhonesAndDesksInLightAndDark(t *testing.T) {
	s := newSiteWith(t, func(d *web.Deps) { d.Addresses.PublicURL = "http://127.0.0.1:8080" })
	s.host = "127.0.0.1:8080"
	s.create("Stripe staging", hookglass.KindWebhook)
	s.create("Orders inbox", hookglass.KindEmail)
	s.secret("github", "swordfish-swordfish")
	for n := range 55 {
		s.hook(sent{method: "GET", target: "/health?n=" + strconv.Itoa(n), ago: 90*time.Minute - time.Duration(n)*time.Minute})
	}
	s.hook(sent{ago: 25 * time.Minute, method: "PUT", target: "/upload/a%2Fb.png", body: "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + strings.Repeat("\xff\x00\x8a", 99), headers: hookglass.Headers{{Name: "Content-Type", Value: "image/png"}}})
	s.hook(sent{ago: 19 * time.Minute, body: "token=gIkuvaNzQIHg97ATvDxqgjtO&command=%2Fweather&text=94070+%26+more", headers: hookglass.Headers{{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}}})
	s.hook(s.github("issues", "72d3162e-cc78-11e3-81ab-4c9367dc0958", `{"action":"opened","issue":{"number":1347}}`, "another secret").before(12 * time.Minute))
	s.hook(sent{ago: 11 * time.Minute, method: "DELETE", target: "/customers/cus_9s6XKzkNRiz8i3"})
	s.hook(json(`{"id":"evt_1MqqbKLt4dXK03v5qaIbiNCC","object":"event","api_version":"2024-06-20","created":1680064028,"type":"customer.created","data":{"object":{"id":"cus_1"}},"livemode":false,"pending_webhooks":1,"request":{"id":null}}`).before(9 * time.Minute))
	s.hook(sent{ago: 4 * time.Minute, method: "PATCH", target: "/" + strings.Repeat("a-long-segment/", 20), body: strings.Repeat("unbroken", 200), headers: hookglass.Headers{{Name: "Content-Type", Value: "text/plain"}, {Name: "X-" + strings.Repeat("Long", 30), Value: strings.Repeat("value", 100)}}})
	event := s.hook(s.github("pull_request", "5f7c1a0e-2f6d-11f0-9d41-0242ac120002", `{"action":"opened","number":2,"pull_request":{"id":279147437,"title":"Update the README with new information.","user":{"login":"Codertocat","id":21031067,"site_admin":false},"body":"This is a pretty simple change that we need to pull into main.","labels":[{"name":"documentation","color":"0075ca"}],"draft":false,"merged":null,"additions":1,"deletions":1,"changed_files":1},"repository":{"id":186853002,"full_name":"Codertocat/Hello-World","private":false},"sender":{"login":"Codertocat","type":"User"}}`, "swordfish-swordfish").before(38 * time.Second))
	note := "The first one since the hook was moved.\nAsk Mona whether the other repository is to have it too: " + strings.Repeat("long", 30)
	if err := s.captures.SetNote(t.Context(), s.who, string(s.endpoint.ID), string(event), note); err != nil {
		t.Fatal(err)
	}

	for _, look := range []struct {
		name          string
		width, height int64
		scheme        string
	}{
		{"light-1440", 1440, 900, "light"}, {"dark-1440", 1440, 900, "dark"}, {"light-390", 390, 844, "light"}, {"dark-390", 390, 844, "dark"}, {"light-900", 900, 700, "light"}, {"light-320", 320, 640, "light"},
	} {
		t.Run(look.name, func(t *testing.T) {
			outer := s.t
			s.t = t
			defer func() { s.t = outer }()
			c := s.chrome(look.width, look.height)
			c.prefer(look.scheme)
			check := func(page string) {
				t.Helper()
				c.picture(look.name + "-" + page)
				if wide := eval[int](c, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
					t.Errorf("%s: %d pixels stand out at the side", page, wide)
				}
				if small := eval[string](c, tooSmall); small != "" {
					t.Errorf("%s: targets below 24 pixels (WCAG 2.5.8): %s", page, small)
				}
				if pale := eval[string](c, tooPale); pale != "" {
					t.Errorf("%s: text below a contrast of 4.5 (WCAG 1.4.3): %s", page, pale)
				}
				if nameless := eval[string](c, withoutName); nameless != "" {
					t.Errorf("%s: controls without a name (WCAG 4.1.2): %s", page, nameless)
				}
			}
			c.open(s.url + "/sign-in")
			check("signin")
			c.open(s.link())
			c.until(isLive)
			check("list")
			c.click("#" + string(event) + " a")
			c.until(shows(event))
			check("detail")
			eval[bool](c, `document.querySelector("[data-mark=noted] details").open = true`)
			check("note")
			eval[bool](c, `document.querySelector("[data-mark=noted] details").open = false`)
			for _, tab := range []string{"headers", "query", "signature", "response"} {
				c.click("#tab-" + tab)
				check(tab)
			}
			eval[any](c, `document.querySelector("#delete-event").showPopover()`)
			check("delete")
			eval[any](c, `(document.querySelector("#delete-event").hidePopover(), document.querySelector("#more-actions").showPopover())`)
			check("more")
			eval[any](c, `document.querySelector("#more-actions").hidePopover()`)
			if look.scheme == "light" && look.width != 900 && look.width != 320 {
				for n, row := range eval[[]string](c, `[...document.querySelectorAll("a.row")].slice(1, 7).map((a) => a.getAttribute("href"))`) {
					c.open(s.url + row)
					check("row" + strconv.Itoa(n))
				}
			}
			c.open(s.url + "/endpoints")
			check("endpoints")
			c.open(s.page("/settings"))
			check("settings")
			c.open(s.page("?q=sig%3Abad"))
			check("fault")
			c.open(s.url + "/nowhere")
			check("problem")
			said := c.said()
			if len(said) == 1 && strings.Contains(said[0], "404") { // of the page that does not exist
				c.forget()
			}
			c.silent()
		})
	}
}

// The rules of WCAG 2.2 that can be looked at from outside, as expressions that name the offenders.
const (
	visible = `[...document.querySelectorAll("SELECTOR")].filter((e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !e.closest(".visually-hidden, .skip"))`
	name    = `(e) => e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 30)`
)

var (
	// A link among words of a sentence may be as small as they are. What is folded counts as well.
	tooSmall = `(document.querySelectorAll("details:not([name])").forEach((e) => e.open = true), ` + strings.Replace(visible, "SELECTOR", "button, a, input, select, textarea, summary", 1) + `)
		.filter((e) => !(e.tagName === "A" && getComputedStyle(e).display === "inline" && [...e.parentElement.childNodes].some((n) => n.nodeType === 3 && n.data.trim())))
		.filter((e) => { const b = (e.closest("label") ?? e).getBoundingClientRect(); return b.width > 0 && (b.width < 24 || b.height < 24); })
		.map(` + name + `).join("; ")`

	withoutName = strings.Replace(visible, "SELECTOR", "button, a, input:not([type=hidden]), [role=tab]", 1) + `
		.filter((e) => !(e.textContent.trim() || e.ariaLabel || e.labels?.length || e.title))
		.map(` + name + `).join("; ")`

	tooPale = `(() => {
		const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
		canvas.canvas.width = canvas.canvas.height = 1;
		const painted = new Map(); // a page has few colours, and painting takes long
		const over = (color, below) => {
			const both = color + " over " + below;
			if (!painted.has(both)) {
				canvas.fillStyle = "rgb(" + below.join(",") + ")"; canvas.fillRect(0, 0, 1, 1);
				canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
				painted.set(both, [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3));
			}
			return painted.get(both);
		};
		const behind = (e) => e === null ? [255, 255, 255] : over(getComputedStyle(e).backgroundColor, behind(e.parentElement));
		const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
		const found = new Set();
		const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let n; (n = walk.nextNode());) {
			const e = n.parentElement;
			if (!n.data.trim() || !e.checkVisibility() || e.closest(".visually-hidden, .skip, script")) continue;
			const back = behind(e);
			const [a, b] = [light(over(getComputedStyle(e).color, back)), light(back)].sort((x, y) => y - x);
			const ratio = (a + 0.05) / (b + 0.05);
			if (ratio < 4.5) found.add(e.tagName + "." + e.className + " " + n.data.trim().slice(0, 20) + " " + ratio.toFixed(2));
		}
		return [...found].join("; ");
	})()`
)
