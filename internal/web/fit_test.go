package web_test

import (
	"bytes"
	"fmt"
	"html"
	"image"
	"image/png"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"hookglass"
	"hookglass/internal/capture"
)

// Whatever does not scroll by a wheel or a bar must not be cut: who has a mouse would not come to it.
func TestEveryPartOfARequestIsInSight(t *testing.T) {
	s := newSite(t)
	event := s.hook(sent{target: "/?a=1", body: `{}`})
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(shows(event))
	for _, width := range []int64{1440, 1280, 768, 390, 320} {
		c.do(chromedp.EmulateViewport(width, 900))
		if cut := eval[string](c, `[...document.querySelectorAll("[role=tab]")].filter((tab) => {
			const box = tab.getBoundingClientRect(), around = document.querySelector("#detail").getBoundingClientRect();
			return box.left < around.left || box.right > around.right;
		}).map((tab) => tab.textContent).join(", ")`); cut != "" {
			t.Errorf("at %d pixels these are cut: %s", width, cut)
		}
	}
	c.silent()
}

// On a phone an open request says at once that its signature is bad. Its tabs are one row, which a finger pushes aside, and
// the id in its URL is whole.
func TestARequestOnAPhone(t *testing.T) {
	s := newSite(t)
	s.secret("github", "right")
	event := s.hook(s.github("push", "d", `{"a":{"b":1}}`, "wrong"))
	c := s.chrome(390, 844)
	c.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch))
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(shows(event))
	c.picture("phone")
	// The body is in sight, since what else is known is folded.
	if at := eval[float64](c, `document.querySelector("#part-body .tree").getBoundingClientRect().top`); at > 480 {
		t.Errorf("the body begins at %v of 844 pixels", at)
	}
	if !eval[bool](c, `["GitHub", "push"].every((said) => [...document.querySelectorAll(".facts:not(.lines) dd")].some((dd) => dd.textContent.trim() === said && dd.getBoundingClientRect().bottom < 320))`) {
		t.Error("who sent what is out of sight")
	}
	const fold = `document.querySelector("button[data-facts]").ariaExpanded === "%t" && document.querySelector(".facts.lines code").checkVisibility() === %[1]t`
	c.until(fmt.Sprintf(fold, false))
	c.click("button[data-facts]")
	c.until(fmt.Sprintf(fold, true))
	for what, holds := range map[string]string{
		"the bad signature is in sight":  `(() => { const badge = document.querySelector("#detail-title .bad").getBoundingClientRect(); return badge.top > 0 && badge.bottom < 250 && badge.right < 390; })()`,
		"the tabs are one row":           `new Set([...document.querySelectorAll("[role=tab]")].map((tab) => tab.getBoundingClientRect().top)).size === 1`,
		"the page is not wider":          `document.documentElement.scrollWidth <= 390`,
		"what folds a body is one row":   `new Set([...document.querySelectorAll("#part-body .tree-bar .tiny")].map((button) => button.getBoundingClientRect().top)).size === 1`,
		"the id in the URL is whole":     `(() => { const id = document.createRange(), text = [...document.querySelector(".facts .wide:last-child code").childNodes].find((n) => n.data?.startsWith("ep_")); id.selectNodeContents(text); return id.getClientRects().length === 1; })()`,
		"the last tab is shown if asked": `(document.querySelector("#tab-replays").click(), document.querySelector("#tab-replays").getBoundingClientRect().right <= 390)`,
	} {
		if !eval[bool](c, holds) {
			t.Errorf("not so: %s", what)
		}
	}
	c.silent()
}

// A mail has the most tabs. Beside the list of a small screen they are one row, and its subject has the line to itself.
func TestTheTabsOfAMailAreOneRow(t *testing.T) {
	s := newSite(t)
	inbox, mail := s.mailed("Content-Type: text/html\r\nSubject: Reset your password\r\n\r\n<p>hello</p>\r\n")
	c := s.chrome(1024, 768)
	c.open(s.link())
	c.open(s.url + "/endpoints/" + string(inbox.ID) + "/requests/" + string(mail))
	c.until(shows(mail))
	if rows := eval[float64](c, `new Set([...document.querySelectorAll("[role=tab]")].map((tab) => tab.getBoundingClientRect().top)).size`); rows != 1 {
		t.Errorf("the tabs are %v rows", rows)
	}
	if !eval[bool](c, `(() => { const path = document.querySelector(".row-path"); return path.scrollWidth <= path.clientWidth; })()`) {
		t.Error("the subject is cut in the list")
	}
	c.silent()
}

// The search and what pauses the list stay in sight of a long list, and cover no row that the keyboard comes to. Where
// requests are selected, their bar takes that place.
func TestTheSearchStaysInSightOfALongList(t *testing.T) {
	s := newSite(t)
	for range 30 {
		s.hook(json(`{}`))
	}
	c := s.chrome(1366, 768)
	c.open(s.link())
	c.until(isLive)
	const inSight = `(selector) => {
		const e = document.querySelector(selector), { x, y, width, height } = e.getBoundingClientRect();
		return [y + 2, y + height - 2].every((at) => e.contains(document.elementFromPoint(x + width / 2, at)));
	}`
	eval[bool](c, `window.inSight = `+inSight+`, document.querySelector(".requests").scrollTop = 600, true`)
	c.until(`document.querySelector(".requests").scrollTop === 600 && inSight("#q") && inSight("#live")`)
	c.press("/")
	if got := eval[float64](c, `document.activeElement.id === "q" ? document.querySelector(".requests").scrollTop : -1`); got != 600 {
		t.Errorf("to search moves the list to %v", got)
	}
	eval[any](c, `document.querySelectorAll("a.row")[20].focus()`)
	for range 15 {
		c.press("k")
		c.until(`inSight("a.row:focus")`)
	}
	c.press("x")
	for range 10 {
		c.press("j")
	}
	c.until(`inSight(".bulk") && !inSight("#q")`)
	for range 10 {
		c.press("k")
		c.until(`inSight("a.row:focus")`)
	}
	c.silent()

	// At 200 % zoom the page itself scrolls.
	c = s.chrome(683, 384)
	c.open(s.link())
	c.until(isLive)
	eval[any](c, `(window.inSight = `+inSight+`, document.querySelectorAll("a.row")[20].focus(), document.activeElement.scrollIntoView())`)
	c.press("x")
	for range 10 {
		c.press("k")
		c.until(`inSight("a.row:focus")`)
	}
	c.silent()
}

func TestTagsHaveTheirColours(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	const name = `a "quoted\\" tag]`
	b.want(303, "POST", "/tags", url.Values{"name": {name}, "color": {"#c2410c"}})
	b.want(303, "POST", "/tags", url.Values{"name": {"plain"}})
	event := s.hook(json(`{}`))
	for _, tag := range []string{name, "plain"} {
		if _, err := s.captures.Tag(t.Context(), s.who, string(s.endpoint.ID), string(event), tag); err != nil {
			t.Fatal(err)
		}
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(shows(event))
	got := eval[string](c, `[...document.querySelectorAll(".badge.tag")].map((e) => {
		const { content, backgroundColor } = getComputedStyle(e, "::before");
		return content === "none" ? "none" : backgroundColor;
	}).join(" ")`)
	if want := "rgb(194, 65, 12) none rgb(194, 65, 12) none"; got != want {
		t.Errorf("the tags of the list and of the request are %s, not %s", got, want)
	}
	c.silent()
}

// A browser scrolls the faulty field that has the focus to the edge of the screen, where what is wrong with it is below.
func TestWhatIsWrongWithAFieldIsInSight(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1366, 768)
	c.open(s.link())
	c.open(s.page("/settings"))
	eval[any](c, `((form) => {
		form.noValidate = true;
		form.elements.name.value = "Staging";
		form.elements.url.value = "nowhere";
		form.requestSubmit();
	})(document.querySelector("form[action$='/targets']"))`)
	c.until(`(() => {
		const field = document.activeElement, fault = document.getElementById(field.getAttribute("aria-describedby").split(" ").at(-1));
		const { x, y, bottom } = fault.getBoundingClientRect();
		return field.name === "url" && scrollY > 0 && bottom <= innerHeight && fault.contains(document.elementFromPoint(x + 2, y + 2));
	})()`)

	// What the browser itself refuses may be in a part that is folded, where it would say nothing.
	eval[any](c, `((rule) => {
		rule.querySelector("[name=when]").value = "path:/a";
		rule.querySelector("[name=delay_ms]").value = "30001";
		document.querySelector("#rules .primary").click();
	})(document.querySelector("#rules details:not([open])"))`)
	c.until(`document.activeElement.matches("#rules details[open] [name=delay_ms]")`)
}

// A menu is whole on a low screen, which is also what 200 % zoom makes of a desk, and the keyboard stays in it.
func TestAMenuFitsALowScreenAndKeepsTheKeyboard(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	c := s.chrome(720, 400)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(shows(event))
	for _, id := range []string{"copy-as", "more-actions"} {
		c.click(`.detail-actions [popovertarget="` + id + `"]`)
		menu := `document.getElementById("` + id + `")`
		c.until(menu + `.matches(":popover-open") && ` + menu + `.contains(document.activeElement)`)
		if box := eval[map[string]float64](c, `(() => { const { top, bottom } = `+menu+`.getBoundingClientRect(); return { top, bottom }; })()`); box["top"] < 0 || box["bottom"] > 400 {
			t.Errorf("%s is from %v to %v of 400 pixels", id, box["top"], box["bottom"])
		}
		for range 30 {
			c.press(kb.Tab)
			if !eval[bool](c, menu+`.contains(document.activeElement)`) {
				t.Fatalf("the focus left %s for what is behind it", id)
			}
		}
		c.press(kb.Escape)
		c.until(`!` + menu + `.matches(":popover-open") && document.activeElement.matches('[popovertarget="` + id + `"]')`)
	}

	// Its first button may be in what its reader folded.
	const copies = `document.getElementById("copy-as")`
	c.click(`.detail-actions [popovertarget="copy-as"]`)
	c.click(`#copy-as details:nth-of-type(2) summary`)
	c.press(kb.Escape)
	c.click(`.detail-actions [popovertarget="copy-as"]`)
	c.until(copies + `.matches(":popover-open") && document.activeElement.ariaLabel === "Copy as HTTPie"`)
	c.silent()
}

// mailed makes an inbox with a mail.
func (s *site) mailed(raw string) (hookglass.Endpoint, hookglass.EventID) {
	s.t.Helper()
	inbox := s.create("inbox", hookglass.KindEmail)
	target, err := s.captures.AdmitMailbox(s.t.Context(), string(inbox.ID))
	if err != nil {
		s.t.Fatal(err)
	}
	stored := s.captures.CaptureMail(s.t.Context(), &capture.Mail{
		From: "shop@example.com", To: []capture.Recipient{{Address: inbox.EmailLocalPart + "@mail.test", Target: target}}, Protocol: "ESMTP", At: time.Now(), Raw: []byte(raw),
	})
	if stored[0].Err != nil {
		s.t.Fatal(stored[0].Err)
	}
	return inbox, stored[0].Event
}

// In a list, an event type is whole beside the verdict on its signature.
func TestAnEventTypeIsWholeInTheList(t *testing.T) {
	s := newSite(t)
	s.secret("github", "secret")
	sent := s.github("pull_request_review_thread", "d", `{}`, "secret")
	sent.target = "/hooks"
	event := s.hook(sent)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page(""))
	c.until(lists(event))
	for _, width := range []int64{1440, 390} {
		c.do(chromedp.EmulateViewport(width, 900))
		if !eval[bool](c, `(() => {
			const what = document.querySelector(".row-what"), type = document.createRange();
			type.setStart(what.firstChild, 0);
			type.setEnd(what.firstChild, "pull_request_review_thread".length);
			return what.textContent.startsWith("pull_request_review_thread") && type.getBoundingClientRect().right <= what.getBoundingClientRect().right;
		})()`) {
			t.Errorf("at %d pixels the event type is cut", width)
		}
	}
}

// Most senders send everything to one URL, where a path tells nothing: there the event type is the title of a request.
func TestAtTheBareURLARequestIsCalledByItsEventType(t *testing.T) {
	s := newSite(t)
	s.secret("github", "secret")
	event := s.hook(s.github("pull_request_review_thread", "d", `{}`, "secret"))
	with := s.github("push", "e", `{}`, "secret")
	with.target = "/?page=2"
	queried, plain := s.hook(with), s.hook(sent{target: "/", body: `{}`})
	for _, width := range []int64{1440, 390} {
		c := s.chrome(width, 900)
		c.open(s.link())
		c.open(s.page(""))
		c.until(lists(event))
		title := func(event hookglass.EventID) string {
			return eval[string](c, `document.getElementById("`+string(event)+`").querySelector(".row-path").textContent`)
		}
		if got := title(event) + " " + title(queried) + " " + title(plain); got != "pull_request_review_thread /?page=2 /" {
			t.Errorf("the titles are %s", got)
		}
		if !eval[bool](c, `(() => {
			const row = document.getElementById("`+string(event)+`"), title = row.querySelector(".row-path");
			return title.scrollWidth <= title.clientWidth && row.querySelector(".row-what").textContent === "GitHub" && row.querySelector(".row-size") !== null;
		})()`) {
			t.Errorf("at %d pixels the event type is cut, or what stands below it is not its sender and size", width)
		}
		c.open(s.page("/requests/" + string(event)))
		c.until(shows(event))
		if got := eval[string](c, `document.querySelector(".detail-path").textContent + "|" + document.title.split(" · ")[0]`); got != "pull_request_review_thread|POST pull_request_review_thread" {
			t.Errorf("the open request is called %s", got)
		}
		c.silent()
	}
}

// An image that is shown whole is not said to be cut off, only its hexadecimal view is.
func TestAWholeImageIsNotSaidToBeCut(t *testing.T) {
	s := newSite(t)
	var picture bytes.Buffer
	if err := png.Encode(&picture, noise(100, 100)); err != nil {
		t.Fatal(err)
	}
	event := s.hook(sent{body: picture.String(), headers: hookglass.Headers{{Name: "Content-Type", Value: "image/png"}}})
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(shows(event))
	note := `document.querySelector("#part-body .note").checkVisibility()`
	if eval[bool](c, note) || !eval[bool](c, `document.querySelector("#part-body .body-bar [download]") !== null`) {
		t.Error("the image is said to be cut off, or cannot be downloaded")
	}
	eval[any](c, `document.querySelector('#part-body [value="hex"]').click()`)
	c.until(note)
	c.silent()
}

// noise is an image that a PNG holds in no fewer bytes.
func noise(width, height int) image.Image {
	all, source := image.NewNRGBA(image.Rect(0, 0, width, height)), rand.New(rand.NewPCG(1, 2))
	for i := range all.Pix {
		all.Pix[i] = byte(source.Uint32())
	}
	return all
}

// A search that finds nothing, or cannot be read, shows what can be searched for, and each example can be followed.
func TestASearchWithoutResultsShowsWhatToSearchFor(t *testing.T) {
	s := newSite(t)
	s.hook(sent{body: `{}`})
	inbox := s.create("inbox", hookglass.KindEmail)
	b := s.signedIn()
	for _, base := range []string{s.page(""), s.url + "/endpoints/" + string(inbox.ID)} {
		path := strings.TrimPrefix(base, s.url)
		if page := b.want(200, "GET", path, nil); strings.Contains(page.body, "What you can search for") {
			t.Error("examples of searches stand where nothing was searched for")
		}
		for _, q := range []string{"nothing-has-this", "status:abc"} {
			page := b.do("GET", path+"?q="+q, nil)
			page.holds(t, "What you can search for")
			examples := regexp.MustCompile(`<dt><a href="([^"]+)"`).FindAllStringSubmatch(page.body, -1)
			if len(examples) < 6 {
				t.Errorf("%d examples", len(examples))
			}
			for _, example := range examples {
				b.want(200, "GET", html.UnescapeString(example[1]), nil)
			}
		}
	}
}

// What a sender makes long does not push away what else is known of the request.
func TestALongURLLeavesTheTabsInSight(t *testing.T) {
	s := newSite(t)
	event := s.hook(sent{target: "/" + strings.Repeat("long/", 1800), body: `{}`})
	for _, width := range []int64{1280, 390} {
		c := s.chrome(width, 900)
		c.open(s.link())
		c.open(s.page("/requests/" + string(event)))
		c.until(shows(event))
		if at := eval[float64](c, `document.querySelector("[role=tab]").getBoundingClientRect().top`); at > 850 {
			t.Errorf("at %d pixels the tabs are %v pixels below", width, at)
		}
		eval[any](c, `document.querySelector("button[data-facts]").click()`) // on a phone it is folded
		if !eval[bool](c, `(() => {
			const url = document.querySelector(".facts code[tabindex]");
			return url.textContent.length > 9000 && url.scrollHeight > url.clientHeight && getComputedStyle(url).overflowY === "auto";
		})()`) {
			t.Errorf("at %d pixels the URL is not there whole", width)
		}
		c.picture("url" + strconv.FormatInt(width, 10))
		c.silent()
	}
}

// What a request announces is cut before a short tag is, not even by the part of a pixel that makes it an ellipsis.
func TestAShortTagIsWholeInTheList(t *testing.T) {
	s := newSite(t)
	sent := s.github("pull_request_review_comment", "d", `{}`, "secret")
	sent.target = "/hooks"
	event := s.hook(sent)
	if _, err := s.captures.Tag(t.Context(), s.who, string(s.endpoint.ID), string(event), "vip"); err != nil {
		t.Fatal(err)
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(lists(event))
	for width := 210; width <= 225; width++ {
		if !eval[bool](c, `(() => {
			const tag = document.querySelector(".row-tags .tag"), what = document.querySelector(".row-what"), whole = document.createRange();
			document.querySelector(".row-sub").style.width = "`+strconv.Itoa(width)+`px";
			whole.selectNodeContents(tag);
			const style = getComputedStyle(tag), room = tag.getBoundingClientRect().width - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
			return what.scrollWidth > what.clientWidth && whole.getBoundingClientRect().width <= room;
		})()`) {
			t.Errorf("in a row of %d pixels the tag is cut", width)
		}
	}
	c.silent()
}

// A subject has room beside what can be done with the mail, or the width to itself.
func TestALongSubjectIsNotSqueezed(t *testing.T) {
	s := newSite(t)
	inbox, mail := s.mailed("Subject: " + strings.Repeat("a long subject ", 6) + "\r\n\r\nhello\r\n")
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.url + "/endpoints/" + string(inbox.ID) + "/requests/" + string(mail))
	c.until(shows(mail))
	if !eval[bool](c, `document.querySelector(".detail-path").getBoundingClientRect().bottom <= document.querySelector(".detail-actions").getBoundingClientRect().top`) {
		t.Error("the subject is squeezed beside the buttons")
	}
	c.silent()
}

func TestTheURLOfAnEndpointIsInSight(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.url) // a temporary endpoint, whose head has the most in it
	for _, width := range []int64{1440, 1180, 1024, 900, 390} {
		c.do(chromedp.EmulateViewport(width, 900))
		if !eval[bool](c, `[...document.querySelectorAll(".head-address code, .head h1")].every((of) => of.scrollWidth <= of.clientWidth)`) {
			t.Errorf("at %d pixels the name or the URL is cut", width)
		}
		c.picture("head" + strconv.FormatInt(width, 10))
	}
	c.silent()
	for _, name := range []string{"Orders", "Orders of the old shop"} { // nothing beside which there would be more room than it needs
		inbox := s.create(name, hookglass.KindEmail)
		c := s.chrome(1440, 900)
		c.open(s.link())
		c.open(s.url + "/endpoints/" + string(inbox.ID))
		if !eval[bool](c, `[...document.querySelectorAll(".head-address code, .head h1")].every((of) => of.scrollWidth <= of.clientWidth)`) {
			t.Errorf("of an endpoint that is kept the name %q or the address is cut", name)
		}
	}
}

// Several tags have a line of their own, so that none of them is cut for what else the row tells, and of those that are
// not there it tells how many there are.
func TestSeveralTagsAreWholeInTheList(t *testing.T) {
	s := newSite(t)
	event := s.hook(s.github("pull_request_review_comment", "d", `{}`, "secret"))
	for _, tag := range []string{"vip", "billing", "later", "a name that is longer than there is room for in a row", "zebra"} {
		if _, err := s.captures.Tag(t.Context(), s.who, string(s.endpoint.ID), string(event), tag); err != nil {
			t.Fatal(err)
		}
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page(""))
	c.until(lists(event))
	for _, width := range []int64{1440, 390} {
		c.do(chromedp.EmulateViewport(width, 900))
		if got := eval[string](c, `[...document.querySelectorAll(".row-tags > *")].map((tag) => tag.textContent).join("|")`); got != "a name that is longer than there is room for in a row|billing|later|+2" {
			t.Errorf("the tags are %q", got)
		}
		if got := eval[string](c, `document.querySelector(".row-tags > :last-child").title`); got != "vip, zebra" {
			t.Errorf("the others are %q", got)
		}
		if cut := eval[string](c, `[...document.querySelectorAll(".row-tags > :not(:first-child)")].filter((tag) => tag.scrollWidth > tag.clientWidth).map((tag) => tag.textContent).join()`); cut != "" {
			t.Errorf("at %d pixels these are cut: %s", width, cut)
		}
		if !eval[bool](c, `document.querySelector(".row-tags").getBoundingClientRect().top >= document.querySelector(".row-what").getBoundingClientRect().bottom &&
			document.querySelector(".row-size").getBoundingClientRect().top < document.querySelector(".row-what").getBoundingClientRect().bottom`) {
			t.Errorf("at %d pixels the tags do not stand below the rest", width)
		}
	}
	c.silent()
}

// A name comes before its value, in whatever direction the two are written.
func TestNamesFromRightToLeftStandBeforeTheirValues(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{"مفتاح":"قيمة"}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(shows(event))
	if !eval[bool](c, `document.querySelector(".tree .j-name").getBoundingClientRect().right <= document.querySelector(".tree .j-string").getBoundingClientRect().left`) {
		t.Error("the value stands before its name")
	}
}

func TestEveryPageIsInSightInTheBar(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/settings"))
	for _, width := range []int64{1440, 1100, 1024, 900, 768} {
		c.do(chromedp.EmulateViewport(width, 900))
		if cut := eval[string](c, `[...document.querySelectorAll(".bar-nav, .subnav")].filter((nav) => nav.scrollWidth > nav.clientWidth).map((nav) => nav.className).join(", ")`); cut != "" {
			t.Errorf("at %d pixels links are cut in: %s", width, cut)
		}
	}
}

func TestAValueWithoutANameSaysSo(t *testing.T) {
	s := newSite(t)
	event := s.hook(sent{target: "/?=1"})
	s.signedIn().want(200, "GET", s.page("/requests/"+string(event)), nil).holds(t, "<em>no name</em>")
}

// Who goes from page to page finds each where the one before was, as wide as it.
func TestPagesAreAsWideAsEachOther(t *testing.T) {
	s := newWorkshop(t)
	event := s.hook(json(`{}`))
	pages := []string{
		"/endpoints", "/activity", "/flows", "/flows/new", "/tags", "/secrets", "/setup", "/account", "/account/tokens",
		s.below("/requests/" + string(event) + "/share"), s.below("/cases"), s.below("/actions"), s.below("/actions/new"), s.below("/alerts"), s.below("/tunnel"), s.below("/metrics"),
		s.below("/settings"), s.below("/schemas"), s.below("/retries"), s.below("/ledger"),
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	wide := map[int64]float64{} // the first page
	for _, page := range pages {
		c.open(s.url + page)
		for _, width := range []int64{1440, 1024, 768, 390} {
			c.do(chromedp.EmulateViewport(width, 900))
			got := eval[float64](c, `document.querySelector("main .page").getBoundingClientRect().width`)
			if page == pages[0] {
				wide[width] = got
			} else if got != wide[width] {
				t.Errorf("at %d pixels %s is %v pixels wide, and %s %v", width, page, got, pages[0], wide[width])
			}
		}
	}
}

// A phone shows of names what it has room for, and of a table that scrolls no row that is high for what is out of sight.
func TestAPhoneHasRoomForNamesAndTables(t *testing.T) {
	s := newSite(t)
	s.create(strings.Repeat("a long name ", 8), hookglass.KindWebhook)
	first := sent{body: `{}`, headers: hookglass.Headers{{Name: "X-GitHub-Event", Value: "push"}, {Name: "X-GitHub-Delivery", Value: "d-1"}}}
	s.hook(first)
	first.headers = append(first.headers, hookglass.Header{Name: "X-" + strings.Repeat("Name-", 40), Value: "1"})
	s.hook(first)
	c := s.chrome(390, 900)
	c.open(s.link())
	c.open(s.url + "/endpoints")
	c.until(`document.querySelectorAll(".endpoint-name").length === 2`)
	if width := eval[float64](c, `document.querySelectorAll(".endpoint-name")[1].getBoundingClientRect().width`); width < 270 {
		t.Errorf("a long name has %v pixels", width)
	}
	c.open(s.page("/retries"))
	c.until(`document.querySelector(".retries-changed")`)
	if height := eval[float64](c, `Math.max(...[...document.querySelectorAll(".retries tr")].map((row) => row.getBoundingClientRect().height))`); height > 300 {
		t.Errorf("a row is %v pixels high", height)
	}
	c.do(chromedp.EmulateViewport(360, 900))
	c.open(s.page(""))
	if !eval[bool](c, `new Set([...document.querySelectorAll(".head-actions > :is(button, form)")].map((action) => action.getBoundingClientRect().top)).size === 1`) {
		t.Error("what can be sent is not one row")
	}
	c.silent()
}

// What is wrong with one field of a line does not move the field beside it.
func TestFieldsOfALineStayBesideEachOther(t *testing.T) {
	s := newWorkshop(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/actions/new"))
	c.until(`document.readyState === "complete"`)
	c.click(".builder-end .primary")
	c.until(`document.querySelector("#name-fault:not([hidden])")`)
	if apart := eval[float64](c, `Math.abs(document.querySelector("[name=name]").getBoundingClientRect().top - document.querySelector("[name=failure_policy]").getBoundingClientRect().top)`); apart > 1 {
		t.Errorf("the fields are %v pixels apart", apart)
	}
}

// What a field of a step is called takes one line, so that fields of a line begin together.
func TestFieldsOfAStepBeginTogether(t *testing.T) {
	s := newWorkshop(t)
	at := s.page("/actions/" + s.makeTricky().ID)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(at)
	c.until(`document.querySelector(".step .field input")`)
	for _, width := range []int64{1440, 1024, 768} {
		c.do(chromedp.EmulateViewport(width, 900))
		if apart := eval[float64](c, `(() => {
			return Math.max(...[...document.querySelectorAll(".step")].map((step) => {
				const tops = [...step.querySelector(".columns").querySelectorAll("input, select")].map((field) => field.getBoundingClientRect().top);
				return Math.max(...tops) - Math.min(...tops);
			}));
		})()`); apart > 1 {
			t.Errorf("at %d pixels the fields of a step are %v pixels apart", width, apart)
		}
	}
}

// The button that exports what is selected stands beside the format that it takes.
func TestAnExportStandsBesideItsFormat(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page(""))
	c.until(lists(event))
	c.click(".pick-box")
	for _, width := range []int64{1440, 1024, 390} {
		c.do(chromedp.EmulateViewport(width, 900))
		if apart := eval[float64](c, `(() => {
			const [format, button] = ["#bulk-format", "[value=export]"].map((one) => document.querySelector("#bulk").querySelector(one).getBoundingClientRect());
			return Math.abs((format.top + format.bottom - button.top - button.bottom) / 2);
		})()`); apart > 4 {
			t.Errorf("at %d pixels they are %v pixels apart", width, apart)
		}
	}
	c.silent()
}

// Safari paints a list of choices in its own way, taller than the fields beside it, unless the page does.
func TestListsOfChoicesLookLikeFields(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1024, 900)
	c.open(s.link())
	c.open(s.page("/actions/new"))
	if odd := eval[string](c, `[...document.querySelectorAll("main select")].filter((select) => {
		const style = getComputedStyle(select);
		return style.appearance !== "none" || style.overflowX === "visible" || !style.backgroundImage.includes("gradient")
			|| select.offsetHeight !== document.querySelector("input[name=name]").offsetHeight;
	}).map((select) => select.name).join(", ")`); odd != "" {
		t.Errorf("not like the other fields: %s", odd)
	}
	c.silent()
}

// A body with a character that is shown as its number has a download in place of the button that copies it.
func TestTheDownloadOfABodyIsNotUnderItsSearch(t *testing.T) {
	s := newSite(t)
	event := s.hook(json("{\"a\":\"\u202e\"}"))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(shows(event))
	if !eval[bool](c, `(() => {
		const box = document.querySelector("#part-body .body-bar a").getBoundingClientRect();
		return document.elementFromPoint(box.left + 3, box.top + 3).matches(".body-bar a") && document.elementFromPoint(box.right - 3, box.bottom - 3).matches(".body-bar a");
	})()`) {
		t.Error("something covers the link")
	}
	c.silent()
}
