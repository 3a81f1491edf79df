package web_test

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"hookglass"
)

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
		// The event of a scroll before comes in the frame in which the bar goes, and earlier than what observes the bar.
		eval[any](c, `(document.querySelector('.pick[value="`+string(all[20])+`"]').click(), dispatchEvent(new Event("scroll")))`)
		c.until(`!` + bar)
		stays()
		c.silent()
	}
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

func TestTheRowOfTheRequestInTheAddressIsInSight(t *testing.T) {
	s := newSite(t)
	first := s.hook(json(`{}`))
	for range 30 {
		s.hook(json(`{}`))
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(first)))
	c.until(isLive)
	const inSight = `.getBoundingClientRect().bottom <= document.querySelector(".requests").getBoundingClientRect().bottom`
	if !eval[bool](c, lists(first)+inSight) {
		t.Error("the row is out of sight")
	}
	if eval[float64](c, `scrollY`) != 0 {
		t.Error("the page is scrolled, not the list")
	}
	c.silent()
}

func TestARowThatIsShownAgainStaysSelectedAndFocused(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.click("#" + string(event) + " a")
	c.until(shows(event))
	c.click("#" + string(event) + " .pick")
	eval[any](c, lists(event)+`.focus()`)
	eval[any](c, `document.querySelector("[data-ignore]").click()`)
	c.until(lists(event) + `.textContent.includes("ignored")`)
	if !eval[bool](c, `document.querySelector(".pick").checked && document.activeElement === `+lists(event)) {
		t.Error("the selection or the focus is lost")
	}
	c.silent()
}

// A list under load that is read further down does not grow for ever, and what is read stays where it is.
func TestAFloodWaitsWhereTheListIsReadBelow(t *testing.T) {
	s := newSite(t)
	for range 50 {
		s.hook(json(`{}`))
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[any](c, `window.read = document.querySelectorAll("#rows > li")[20]; document.querySelector(".requests").scrollTop = read.offsetTop - 200`)
	const top = `read.getBoundingClientRect().top`
	at := eval[float64](c, top)
	eval[any](c, `window.said = []; new MutationObserver(() => said.push(document.querySelector("#announce").textContent)).observe(document.querySelector("#announce"), { childList: true, characterData: true, subtree: true })`)
	for range 2100 {
		s.hook(json(`{}`))
	}
	c.untilIn(patience, `document.querySelector("#live").textContent === "Paused" && said.includes("Paused. New requests wait until you resume")`)
	for range 500 {
		s.hook(json(`{}`))
	}
	c.untilIn(patience, `document.querySelector("#count").textContent === "2,650"`)
	if listed := eval[int](c, `document.querySelectorAll("a.row").length`); listed < 1000 || listed > 2150 {
		t.Errorf("%d requests are listed", listed)
	}
	if now := eval[float64](c, top); math.Abs(now-at) > 2 {
		t.Errorf("what is read went from %v to %v pixels", at, now)
	}
	c.click("#new")
	c.untilIn(patience, `document.querySelectorAll("a.row").length >= 1000 && document.querySelector("#new").hidden`)
	c.click("#live")
	c.until(isLive)
	c.silent()
}

// A page that was away while many requests came shows the newest, and reads on behind them.
func TestAPageThatMissedMuchHasNoHole(t *testing.T) {
	for _, paused := range []bool{false, true} {
		s := newSite(t)
		before := s.hook(json(`{}`))
		c := s.chrome(1440, 900)
		c.open(s.link())
		c.until(isLive)
		if paused {
			c.press("l")
			c.until(`document.querySelector("#live").textContent === "Paused"`)
		}
		s.away.Store(true)
		s.server.CloseClientConnections()
		for n := range 1010 {
			s.hook(sent{target: "/" + strconv.Itoa(n)})
		}
		s.away.Store(false)
		if paused {
			c.untilIn(patience, `document.querySelector("#new").textContent === "1,000+ new"`)
			if !eval[bool](c, lists(before)+` !== null`) {
				t.Error("a paused list was changed")
			}
			c.click("#new")
		}
		c.untilIn(patience, lists(before)+` === null && document.querySelectorAll("a.row").length >= 1000`)
		c.untilIn(patience, `(document.querySelector("[data-more]")?.click(), `+lists(before)+`)`)
		paths := eval[string](c, `[...document.querySelectorAll("a.row")].map((row) => row.dataset.title).join()`)
		var want []string
		for n := range 1010 {
			want = append(want, "POST /"+strconv.Itoa(1009-n))
		}
		if paths != strings.Join(append(want, "POST /"), ",") {
			t.Errorf("the list is %s", paths)
		}
	}
}
