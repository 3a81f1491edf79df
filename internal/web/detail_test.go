package web_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/capture"
	"hookglass/internal/endpoint"
	"hookglass/internal/outbound"
	"hookglass/internal/store"
	"hookglass/internal/web"
)

// echo is a network in which every target answers with what it was sent: with 200, and at /broken with 500.
type echo struct{}

func (echo) Check(field, rawURL string) error {
	return outbound.New(outbound.Config{}).Check(field, rawURL)
}

func (echo) Turn(context.Context, string, int64) (*outbound.Turn, error) { return nil, nil }

func (echo) Do(_ context.Context, r outbound.Request) (*outbound.Response, error) {
	status := 200
	if strings.HasSuffix(r.URL, "/broken") {
		status = 500
	}
	return &outbound.Response{Status: status, Body: r.Body, RequestHeaders: r.Headers}, nil
}

func TestARequestIsReplayedAndEditedFromItsPage(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{"amount":1}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(isLive)
	again := func(target, edit string) {
		t.Helper()
		c.press("r")
		c.until(`document.querySelector("#replay-form").open && document.activeElement.name === "target_url"`)
		if !eval[bool](c, `document.activeElement.selectionStart === 0 && document.activeElement.selectionEnd === document.activeElement.value.length`) {
			t.Error("what is typed does not take the place of the target that is offered")
		}
		eval[any](c, `document.activeElement.value = "`+target+`"; `+edit)
		c.click("#replay-form [type=submit]")
	}
	again("https://app.example.com/broken", "0")
	c.until(`document.querySelector("#part-replays[data-shown] .outcome .badge.bad")?.textContent.trim() === "500"`)
	again("https://app.example.com/hook", "0")
	c.until(`document.querySelectorAll("#part-replays .outcome").length === 2 && document.querySelector("#part-replays .outcome .badge.good")?.textContent.trim() === "200"`)
	again("https://app.example.com/broken", `document.querySelector("#replay-form [name=body]").value = '{"amount":2}'`)
	c.until(`document.querySelectorAll("#part-replays .outcome").length === 3 && document.querySelector("#part-replays .outcome .raw").textContent === '{"amount":2}'`)
	if !strings.Contains(eval[string](c, `document.querySelector("#part-replays .outcome").textContent`), "still failing") {
		t.Error("the replay is not compared with the one before")
	}
	again("ftp://nowhere", "0")
	c.until(`document.querySelector("#replay-form .fault").checkVisibility()`)
	if got := eval[string](c, `document.querySelector("#replay-form .fault").textContent`); got != "The target URL must begin with http:// or https://." {
		t.Errorf("the form is refused with %q", got)
	}
	c.forget() // of the refusal
}

// What becomes of a request goes on after it was opened.
func TestDeliveriesOfTheOpenRequestAreKeptFresh(t *testing.T) {
	t.Parallel() // it waits for most of its time
	s := newSite(t)
	b := s.signedIn()
	target := func(form url.Values, below string) { b.want(303, "POST", s.page("/targets"+below), form) }
	app := url.Values{"name": {"App"}, "url": {"https://app.example.com/hook"}, "timeout_seconds": {"5"}, "retry_count": {"0"}}
	target(app, "")
	event := s.hook(json(`{}`))
	targets := b.want(200, "GET", s.page("/settings"), nil).found(t, `action="[^"]+(/targets/\d+)/delete"`)
	id := targets[len("/targets"):]

	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event) + "#part-deliveries"))
	c.until(isLive)
	const shown = `document.querySelector("#part-deliveries[data-shown]")`
	c.until(shown + `.textContent.includes("pending") && document.querySelector("#tab-deliveries .count").textContent === "1"`)
	eval[any](c, shown+`.querySelector("summary").focus()`)
	c.press("\r")
	c.until(shown + `.querySelector("details").open`)
	app.Set("name", "Renamed")
	target(app, id)
	c.untilIn(patience, shown+`.textContent.includes("Renamed")`)
	if !eval[bool](c, shown+`.querySelector("details").open && document.activeElement === `+shown+`.querySelector("summary")`) {
		t.Error("what was opened is closed, or the focus is lost")
	}
	target(nil, id+"/delete")
	c.untilIn(patience, shown+`.textContent.includes("No deliveries yet") && !document.querySelector("#tab-deliveries .count")`)
	c.silent()
}

func TestAMailThatIsReadShowsItsAuthenticationOnceItIsKnown(t *testing.T) {
	s := newSite(t)
	inbox, mail := s.mailed("From: Shop <shop@example.com>\r\nSubject: Your code\r\n\r\nHello\r\n")
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.url + "/endpoints/" + string(inbox.ID) + "/requests/" + string(mail) + "#part-signature")
	c.until(isLive)
	const shown = `document.querySelector("#part-signature[data-shown]")`
	c.until(shown + `.textContent.includes("Looking up DNS records") && ` + shown + `.textContent.includes("shop@example.com")`)
	err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		return tx.SetVerdicts([]store.Verdict{{
			EndpointNum: inbox.Num, EventSeq: s.seq(inbox, mail), Results: hookglass.Authentication{SPF: "pass", DKIM: "none", DMARC: "fail"},
			Details: []byte(`{"spf":{"result":"pass","domain":"mail.example.net"}}`),
		}})
	})
	if err != nil {
		t.Fatal(err)
	}
	c.untilIn(patience, shown+`.textContent.includes("mail.example.net") && !`+shown+`.textContent.includes("Looking up") && !document.querySelector("#authentication[data-every]:not([data-every=''])")`)
	c.silent()
}

func TestARequestThatIsReadShowsALaterVerdictOnItsSignature(t *testing.T) {
	s := newSite(t)
	event := s.hook(s.github("push", "d", `{}`, "secret"))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event) + "#part-signature"))
	c.until(isLive)
	const shown = `document.querySelector("#part-signature[data-shown]")`
	c.until(shown + `.textContent.includes("Add a secret") && !document.querySelector("#tab-signature .count")`)
	s.secret("github", "secret")
	b := s.signedIn()
	judge := b.want(200, "GET", s.page("/settings"), nil).found(t, `action="[^"]+(/signatures/[^"/]+)/rejudge"`)
	b.want(303, "POST", s.page(judge+"/rejudge"), nil)
	c.until(shown + `.textContent.includes("genuine") && !` + shown + `.textContent.includes("Add a secret") && document.querySelector("#tab-signature .count").textContent === "verified"`)
	c.until(`document.querySelector("#` + string(event) + ` .badge.good")`)
	c.silent()
}

func TestAPublishedKeyThatCouldNotBeFetchedIsNoMissingSecret(t *testing.T) {
	s := newSite(t)
	event := s.hook(sent{})
	err := s.db.Update(t.Context(), hookglass.System, func(tx *store.Tx) error {
		return tx.JudgeSignatures(store.SignatureVerdict{EndpointNum: s.endpoint.Num, EventSeq: s.seq(s.endpoint, event), Status: hookglass.SignatureUnchecked, Reason: "key_unavailable"})
	})
	if err != nil {
		t.Fatal(err)
	}
	page := s.signedIn().want(200, "GET", s.page("/requests/"+string(event)), nil)
	page.holds(t, "public key could not be fetched", "Check captured requests again</a> in a minute")
	page.lacks(t, "Add a secret", "no secret is configured")
}

func TestARequestThatTakesLongToOpenSaysSo(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	for _, width := range []int64{1440, 390} {
		c := s.chrome(width, 900)
		c.open(s.link())
		c.open(s.page(""))
		c.until(isLive)
		eval[any](c, `(window.quick = fetch, window.fetch = async (...of) => { await new Promise((go) => window.go = go); return quick(...of); }, 0)`)
		c.click("#" + string(event) + " a")
		c.until(`document.querySelector("#detail[aria-busy=true][data-slow]") && document.querySelector("#announce").textContent === "Loading"`)
		c.picture("slow" + strconv.FormatInt(width, 10))
		eval[any](c, `go()`)
		c.until(shows(event) + ` && document.querySelector("#detail[aria-busy=false]:not([data-slow])")`)
		c.silent()
	}
}

// A page does not wait for a search of many requests; what it finds later replaces what was said at first.
func TestASearchThatGoesOnSaysWhatItFound(t *testing.T) {
	s := newSite(t)
	s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	goOn := func(query string) {
		t.Helper()
		c.open(s.page("?q=path:/none"))
		c.until(isLive)
		eval[any](c, `(document.querySelector("#none").textContent = "No matches among the newest requests.",
			document.querySelector("#rows").innerHTML = '<li class="more"><a href="#" data-more="`+s.page("/rows")+query+`">Load more</a></li>',
			document.querySelector("#rows a").click())`)
	}
	goOn("?q=path:/none")
	c.until(`document.querySelector("#none").checkVisibility() && document.querySelector("#none").textContent === "No requests match yet."`)
	goOn("")
	c.until(`document.querySelector("#rows a.row") && !document.querySelector("#none").checkVisibility()`)
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

func TestTagsAndIgnoringShowAtOnce(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(isLive)
	c.press("t")
	c.until(`document.activeElement.name === "tag"`)
	c.press("billing\r")
	c.until(lists(event) + `.querySelector(".tag")?.textContent.trim() === "billing" && document.querySelector(".facts .tag")`)
	c.press("i")
	c.until(lists(event) + `.textContent.includes("ignored")`)
	c.press("i")
	c.until(`!` + lists(event) + `.textContent.includes("ignored")`)
	c.silent()
}

// The detail is loaded again when a form of it was sent, and a button is disabled meanwhile; who works by keys goes on
// from where the form was opened.
func TestTheFocusComesBackFromTheFormsOfAnInspector(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(isLive)
	eval[any](c, `document.querySelector("[data-replay]").focus()`)
	c.press("\r")
	c.until(`document.querySelector("#replay-form").open && document.activeElement.name === "target_url"`)
	c.press("https://app.example.com/hook\r")
	c.until(`document.querySelector("#part-replays[data-shown] .outcome") && document.activeElement.matches("[data-replay]")`)

	eval[any](c, `document.querySelector("[popovertarget=more-actions]").focus()`)
	c.press("\r")
	c.until(`document.querySelector("#more-actions").matches(":popover-open")`)
	eval[any](c, `document.querySelector("#more-actions [name=tag]").focus()`)
	c.press("billing\r")
	c.until(`document.querySelector(".facts .tag") && document.activeElement.matches("[popovertarget=more-actions]")`)

	// What is closed once it is done with is gone on from where it is opened.
	eval[any](c, `(document.querySelector(".noted summary").click(), document.querySelector(".noted textarea").focus())`)
	c.press("looked at")
	eval[any](c, `document.querySelector(".noted [type=submit]").focus()`)
	c.press("\r")
	c.until(`document.querySelector(".noted-text") && document.activeElement.matches(".noted summary")`)

	eval[any](c, `document.querySelector("[data-test] button").focus()`)
	c.press("\r")
	c.until(`document.querySelectorAll("#rows a.row").length === 2 && document.activeElement.matches("[data-test] button")`)
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

func TestWhoGoesOnWhileAFormIsUnderWayStaysThere(t *testing.T) {
	s := newSite(t)
	first, second := s.hook(json(`{"n":1}`)), s.hook(json(`{"n":2}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.click("#" + string(first) + " a")
	c.until(shows(first))
	eval[bool](c, `Boolean(window.sent = window.fetch) && Boolean(window.fetch = async (to, how) => {
		if (how?.method === "POST") await new Promise((go) => window.go = go);
		return window.sent(to, how);
	})`)
	eval[any](c, `document.querySelector("[data-ignore]").click()`)
	c.until(`window.go`)
	c.click("#" + string(second) + " a")
	c.until(shows(second))
	eval[any](c, `window.go()`)
	c.until(lists(first) + `.textContent.includes("ignored") && document.querySelector("#announce").textContent === "Done"`)
	if !eval[bool](c, `Boolean(`+shows(second)+`) && document.querySelector("#rows [aria-current]").parentElement.id === "`+string(second)+`"`) {
		t.Error("the request that was left came back")
	}
	c.silent()
}

func TestAShortTagKeepsItsWidthBesideALongOne(t *testing.T) {
	s := newSite(t)
	event := s.hook(s.github("pull_request_review_comment", "d1", `{"action":"opened"}`, "x"))
	for _, tag := range []string{"billing", "an-integration-of-the-warehouse"} {
		if _, err := s.captures.Tag(t.Context(), s.who, string(s.endpoint.ID), string(event), tag); err != nil {
			t.Fatal(err)
		}
	}
	for _, width := range []int64{390, 1440} {
		c := s.chrome(width, 900)
		c.open(s.link())
		cut := eval[map[string]bool](c, `Object.fromEntries([...document.querySelectorAll(".row-tags .tag")].map((e) => [e.textContent, e.scrollWidth > e.clientWidth]))`)
		if len(cut) != 2 || cut["billing"] || !cut["an-integration-of-the-warehouse"] {
			t.Errorf("at %d pixels these tags are cut: %v", width, cut)
		}
		if eval[bool](c, `document.querySelector(".row-sub").scrollWidth > document.querySelector(".row-sub").clientWidth`) {
			t.Errorf("at %d pixels the row stands out", width)
		}
		c.picture("tags-" + strconv.FormatInt(width, 10))
	}
}

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

func TestWhilePausedRequestsWait(t *testing.T) {
	s := newSite(t)
	s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.press("l")
	c.until(`document.querySelector("#live").textContent === "Paused"`)
	second, third := s.hook(json(`{}`)), s.hook(json(`{}`))
	c.until(`document.querySelector("#new").textContent === "2 new"`)
	if eval[bool](c, lists(second)+` !== null`) {
		t.Error("a request came into a list that is paused")
	}
	c.click("#live")
	c.until(lists(second) + ` && ` + lists(third) + ` && !document.querySelector("#new").checkVisibility() && document.querySelector("#live").textContent === "Live"`)
	c.silent()
}

// A list that is paused under load keeps no more in memory than it shows; what was passed is read on from the table.
func TestWhilePausedAFloodWaitsInBounds(t *testing.T) {
	s := newSite(t)
	before := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.press("l")
	c.until(`document.querySelector("#live").textContent === "Paused"`)
	passed := s.hook(sent{target: "/passed"})
	for n := range 1010 {
		s.hook(sent{target: "/" + strconv.Itoa(n)})
	}
	c.untilIn(patience, `document.querySelector("#new").textContent === "1,011 new"`)
	c.click("#new")
	c.untilIn(patience, `document.querySelectorAll("a.row").length === 1000 && document.querySelector("[data-more]")`)
	if eval[bool](c, lists(passed)+` !== null || `+lists(before)+` !== null`) {
		t.Error("requests are missing in the middle of the list")
	}
	c.click("[data-more]")
	c.until(lists(before))
	paths := eval[string](c, `[...document.querySelectorAll("a.row")].map((row) => row.dataset.title).join()`)
	var want []string
	for n := range 1010 {
		want = append(want, "POST /"+strconv.Itoa(1009-n))
	}
	if paths != strings.Join(append(want, "POST /passed", "POST /"), ",") {
		t.Errorf("the list is %s", paths)
	}
	c.silent()
}

// A person pauses the list to read it: no flood, and nothing that changes meanwhile, takes what is there away.
func TestAPausedListKeepsItsRequestsInAFlood(t *testing.T) {
	s := newSite(t)
	first, second, deleted := s.hook(json(`{}`)), s.hook(json(`{}`)), s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(second)))
	c.until(isLive)
	c.press("l")
	c.until(`document.querySelector("#live").textContent === "Paused"`)
	for range 1100 { // more than the list reads
		s.hook(json(`{}`))
	}
	c.untilIn(patience, `document.querySelector("#new").textContent === "1,100 new"`)
	eval[any](c, `performance.clearResourceTimings() ?? true`)
	if err := s.captures.Delete(t.Context(), s.who, string(s.endpoint.ID), string(deleted)); err != nil {
		t.Fatal(err)
	}
	// The marks of the open request are read after the list.
	c.untilIn(patience, `performance.getEntriesByType("resource").some((r) => r.name.endsWith("/marks"))`)
	if !eval[bool](c, lists(first)+` !== null && `+lists(second)+` !== null && document.querySelectorAll("a.row").length <= 3`) {
		t.Errorf("the paused list has %d requests and not the ones that it had", eval[int](c, `document.querySelectorAll("a.row").length`))
	}
	// What was deleted is gone when it goes on.
	c.click("#live")
	c.untilIn(patience, `document.querySelectorAll("a.row").length >= 1000 && `+lists(deleted)+` === null`)
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

func TestSeveralRequestsAreTaggedComparedAndDeleted(t *testing.T) {
	s := newSite(t)
	first, second := s.hook(json(`{"n":1,"same":true}`)), s.hook(json(`{"n":2,"same":true}`))
	b := s.signedIn()
	both := url.Values{"id": {string(second), string(first)}}
	do := func(what string, more ...string) url.Values {
		form := url.Values{"id": both["id"], "do": {what}}
		for i := 0; i+1 < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		return form
	}
	b.want(303, "POST", s.page("/bulk"), do("tag", "tag", "noise"))
	b.want(200, "GET", s.page("?q=tag%3Anoise"), nil).holds(t, string(first), string(second))
	b.want(200, "GET", b.want(303, "POST", s.page("/bulk"), do("compare")).Header.Get("Location"), nil).holds(t, "/n", "<del>1</del>", "<ins>2</ins>")
	a := b.want(200, "POST", s.page("/bulk"), do("export"))
	if strings.Count(a.body, "\n") != 2 || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("exported %v\n%s", a.Header, a.body)
	}
	// A file whose length is told begins when the search has ended.
	if a := b.want(200, "GET", s.page("/export?q=method%3APUT"), nil); a.body != "" || a.ContentLength >= 0 {
		t.Errorf("exported %v\n%s", a.Header, a.body)
	}
	b.want(303, "POST", s.page("/bulk"), do("ignore"))
	if body := b.want(200, "GET", s.page(""), nil).body; strings.Contains(body, string(first)) {
		t.Error("an ignored request is listed")
	}
	batch := b.want(303, "POST", s.page("/bulk"), do("replay", "target_url", "https://app.example.com/")).Header.Get("Location")
	b.want(200, "GET", batch, nil).holds(t, "https://app.example.com/", ">POST /</a>", string(first), string(second), "0 of 2 sent")
	only := b.want(303, "POST", s.page("/bulk?q=method%3APOST"), url.Values{"do": {"replay"}, "target_url": {"https://app.example.com/"}, "id": {string(first)}}).Header.Get("Location")
	b.want(200, "GET", only, nil).holds(t, "https://app.example.com/", `value="method:POST"`)
	// What was deleted meanwhile, as in another window, is passed over; of nothing else nothing is said to be done.
	gone := hookglass.NewEventID(hookglass.EventWebhook, time.Now())
	to := b.want(303, "POST", s.page("/bulk"), url.Values{"do": {"replay"}, "target_url": {"https://app.example.com/"}, "id": {string(first), string(gone)}}).Header.Get("Location")
	b.want(200, "GET", to, nil).holds(t, "https://app.example.com/")
	b.want(404, "POST", s.page("/bulk"), url.Values{"do": {"tag"}, "tag": {"noise"}, "id": {string(gone)}}).holds(t, "None of the selected requests exists any more. Reload the page.")
	b.want(303, "POST", s.page("/bulk"), url.Values{"do": {"delete"}, "id": {string(gone)}})
	b.want(303, "POST", s.page("/bulk"), do("delete"))
	b.want(200, "GET", batch, nil).holds(t, string(first), "deleted")
	b.want(404, "GET", s.page("/requests/"+string(first)), nil)
	b.want(404, "GET", s.page("/requests/"+string(first)+"/share"), nil).holds(t, "Back to requests", `href="/endpoints/`+string(s.endpoint.ID)+`"`)
	b.want(422, "POST", s.page("/bulk"), url.Values{"do": {"delete"}})
}

func TestWhatIsDoneInASearchLeadsBackToIt(t *testing.T) {
	s := newSite(t)
	first, second := s.hook(sent{target: "/paid"}), s.hook(sent{target: "/paid"})
	s.hook(sent{target: "/other"})
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("?q=path%3A%2Fpaid"))
	c.until(isLive)
	c.click("#" + string(first) + " .pick")
	c.do(chromedp.SendKeys("#bulk [name=tag]", "seen"))
	c.click("#bulk [value=tag]")
	c.until(`document.querySelector(".saved")?.textContent === "Tagged." && document.querySelector("#q").value === "path:/paid" && ` + lists(first) + `.textContent.includes("seen")`)
	c.click("#" + string(second) + " a")
	c.until(shows(second))
	c.clickText("Delete")
	c.click("#delete-event .solid")
	c.until(`document.querySelector("#q").value === "path:/paid" && document.querySelectorAll("a.row").length === 1`)
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

func TestTheSearchCompletesAQuotedValue(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	event := s.hook(json(`{}`))
	b.want(303, "POST", s.page("/requests/"+string(event)+"/tags"), url.Values{"tag": {"needs care"}})
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	for typed, want := range map[string]string{
		`is:webhook tag:"needs c`: `is:webhook tag:"needs care" `,
		`-tag:"needs c`:           `-tag:"needs care" `,
		`"tag:x me`:               `"tag:x me`,
		`"a \" b" me`:             `"a \" b" method:`,
		`path:/a"b  me`:           `path:/a"b  method:`,
		`body./a:"b c" method:po`: `body./a:"b c" method:POST `,
	} {
		c.until(`(() => { const q = document.querySelector("#q"); q.blur(); q.value = ""; q.focus(); return true })()`)
		c.press(typed)
		c.press(kb.ArrowDown)
		c.press(kb.Tab)
		if got := eval[string](c, `document.querySelector("#q").value`); got != want {
			t.Errorf("%s became %s, want %s", typed, got, want)
		}
	}
	c.silent()
}

func TestAComparisonSpeaksAsThePageOfARequestDoes(t *testing.T) {
	s := newSite(t)
	left, right := s.hook(s.github("push", "d-1", `1`, "")), s.hook(json(`[2]`))
	page := s.signedIn().want(200, "GET", s.page("/compare?left="+string(left)+"&right="+string(right)), nil)
	page.holds(t, ">Provider</th>", ">Event</th>", ">Delivery id</th>", ">whole body</th>", "compared as JSON.")
	page.lacks(t, "detected_provider", "delivery_id", `<th scope="row"></th>`)
	left, right = s.hook(sent{body: "one"}), s.hook(sent{body: "two"})
	s.signedIn().want(200, "GET", s.page("/compare?left="+string(left)+"&right="+string(right)), nil).holds(t, "--- first\n", "+++ second\n")
	var query strings.Builder
	for i := range 101 {
		query.WriteString("&a" + strings.Repeat("b", i) + "=1")
	}
	right = s.hook(sent{target: "/?x" + query.String(), body: "one"})
	s.signedIn().want(200, "GET", s.page("/compare?left="+string(left)+"&right="+string(right)), nil).holds(t, "There are more differences.")
}

// A list that scrolls would be a stop of its own, which is gone as soon as it has the focus.
func TestTheKeyboardGoesOnFromTheSearch(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive + ` && ` + lists(event))
	c.press("/")
	c.until(`document.activeElement.id === "q" && document.querySelector("#q-list").checkVisibility()`)
	c.press(kb.Tab)
	c.until(`document.activeElement.matches(".searches > summary")`)
	c.silent()
}

// What was found out about a request is told without looking for it.
func TestTheTabOfASignatureTellsItsVerdict(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	s.secret("github", "swordfish")
	for _, secret := range []string{"swordfish", "other"} {
		event := s.hook(s.github("push", "d-"+secret, `{}`, secret))
		want := map[string]string{"swordfish": `count">verified`, "other": `count bad">failed`}[secret]
		page := b.want(200, "GET", s.page("/requests/"+string(event)), nil)
		if !regexp.MustCompile(`(?s)id="tab-signature"[^>]*>\s*Signature\s*<span class="` + want + `</span>`).MatchString(page.body) {
			t.Errorf("signed with %s, the tab does not say that it is %s", secret, want)
		}
	}
	plain := s.hook(json(`{}`))
	b.want(200, "GET", s.page("/requests/"+string(plain)), nil).lacks(t, `<span class="count">unchecked</span>`)
}

func TestARequestIsComparedWithThePreviousOneOfItsKind(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	only := s.hook(s.github("push", "a", `{"n":1}`, "x"))
	b.want(404, "GET", "/endpoints/"+string(s.endpoint.ID)+"/compare?left="+string(only), nil).holds(t, "There is no earlier request")
	s.hook(s.github("ping", "b", `{"n":2}`, "x"))
	last := s.hook(s.github("push", "c", `{"n":3}`, "x"))
	b.want(200, "GET", "/endpoints/"+string(s.endpoint.ID)+"/compare?left="+string(last)+"&right=", nil).holds(t, "/requests/"+string(only))
	other := s.hook(sent{target: "/other"})
	b.want(200, "GET", "/endpoints/"+string(s.endpoint.ID)+"/compare?left="+string(other), nil).holds(t, "/requests/"+string(last))
}

func TestARequestFromBeforeTheSecretSaysHowItIsChecked(t *testing.T) {
	s := newSite(t)
	event := s.hook(s.github("push", "d", `{}`, "swordfish"))
	b := s.signedIn()
	path := "/endpoints/" + string(s.endpoint.ID) + "/requests/" + string(event)
	b.want(200, "GET", path, nil).holds(t, "Add a secret")
	s.secret("github", "swordfish")
	page := b.want(200, "GET", path, nil)
	page.holds(t, "It came before the secret.", "Check captured requests again")
	page.lacks(t, "Add a secret")
}

// Bytes that are no text cannot be copied: they are there as a file.
func TestABodyThatCanNotBeCopiedIsAFile(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	bytes, text := s.hook(sent{body: "\x00\xff\xfe"}), s.hook(json(`{}`))
	const file = `<a class="button tiny" href="`
	b.want(200, "GET", s.page("/requests/"+string(bytes)), nil).holds(t, file+"/endpoints/"+string(s.endpoint.ID)+"/requests/"+string(bytes)+`/body" download>`)
	b.want(200, "GET", s.page("/requests/"+string(text)), nil).lacks(t, file)
}

func TestAPictureIsLookedAtAndComparedWithItsBytes(t *testing.T) {
	s := newSite(t)
	png := "\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\x00\x00\x00\x0aIDATx\x9cch\x00\x00\x00\x82\x00\x81w\xcdr\xb6\x00\x00\x00\x00IEND\xaeB`\x82"
	event := s.hook(sent{body: png, headers: hookglass.Headers{{Name: "Content-Type", Value: "text/html"}}}) // what it claims does not count
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(`document.querySelector(".view-picture img")?.naturalWidth === 1 && !document.querySelector(".view-hex").checkVisibility()`)
	eval[any](c, `document.querySelector('input[value="hex"]').click()`)
	c.until(`!document.querySelector(".view-picture").checkVisibility() && document.querySelector(".view-hex").checkVisibility()`)
	c.silent()

	b := s.signedIn()
	a := b.want(200, "GET", s.page("/requests/"+string(event)+"/picture"), nil)
	if a.body != png || a.Header.Get("Content-Type") != "image/png" || a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
		t.Errorf("%v %q", a.Header, a.body)
	}
	for _, body := range []string{`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`, "<h1>no</h1>\x00\xff", ""} {
		other := s.hook(sent{body: body, headers: hookglass.Headers{{Name: "Content-Type", Value: "image/png"}}})
		b.want(200, "GET", s.page("/requests/"+string(other)), nil).lacks(t, "view-picture")
		b.want(404, "GET", s.page("/requests/"+string(other)+"/picture"), nil)
	}
	s.stranger().want(404, "GET", s.page("/requests/"+string(event)+"/picture"), nil)
}

func TestShiftSelectsAllBetweenTwo(t *testing.T) {
	s := newSite(t)
	for range 6 {
		s.hook(json(`{}`))
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive + ` && document.querySelectorAll(".pick").length === 6`)
	shift := func(n int, held bool, chosen string) {
		t.Helper()
		at := `document.querySelectorAll(".pick-box")[` + strconv.Itoa(n) + `]`
		eval[any](c, at+`.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey: `+strconv.FormatBool(held)+` }))`)
		c.until(`[...document.querySelectorAll(".pick")].map((box) => Number(box.checked)).join("") === "` + chosen + `"`)
	}
	shift(4, true, "000010") // there is nothing before it
	shift(1, true, "011110")
	c.until(`document.querySelector("#bulk-count").textContent === "4 selected"`)
	shift(3, false, "011010")
	shift(1, true, "000010")
	shift(5, false, "000011")
	c.until(`document.querySelector("#bulk-count").textContent === "2 selected"`)
}

func TestWhatIsDoneWithSeveralRequestsIsWhatWasMeant(t *testing.T) {
	s := newSite(t)
	for range 3 {
		s.hook(json(`{}`))
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[bool](c, `window.same = true`)
	for n, can := range []bool{false, true, false} {
		eval[any](c, `document.querySelectorAll(".pick")[`+strconv.Itoa(n)+`].click()`)
		c.until(`document.querySelector("#bulk [value=compare]").disabled === ` + strconv.FormatBool(!can))
	}
	c.click("#bulk-none")
	eval[any](c, `document.querySelectorAll(".pick").forEach((box, n) => n > 0 && box.click()) ?? true`)
	const chosen = `[...document.querySelectorAll(".pick")].map((box) => box.checked).join() === "false,true,true"`
	c.until(chosen)
	for _, back := range []string{`history.back()`, `document.querySelector(".crumb").click()`} {
		c.click("#bulk [value=compare]")
		c.until(`location.pathname.endsWith("/compare") && document.readyState === "complete"`)
		eval[any](c, `setTimeout(() => `+back+`) && true`)
		c.until(isLive + ` && ` + chosen + ` && document.querySelector("#bulk-count").textContent === "2 selected" && !location.hash`)
	}
	c.open(s.page(""))
	c.until(isLive + ` && !document.querySelector(".pick:checked")`)
	eval[any](c, `(window.same = true, document.querySelectorAll(".pick").forEach((box) => box.click()) ?? true)`)
	c.click("#bulk [value=tag]") // without one
	c.until(`document.activeElement.name === "tag"`)
	c.clickText("Replay selected")
	c.until(`document.activeElement.name === "target_url"`)
	c.press(kb.Enter) // without one
	if !eval[bool](c, `window.same && document.activeElement.name === "target_url"`) {
		t.Error("a form that lacks something was sent")
	}
	c.press("app.example.com" + kb.Enter) // is refused
	c.until(`window.same && document.querySelector("#bulk-replay .fault").checkVisibility() && document.querySelector("#bulk-replay .fault").textContent.includes("http://")`)
	if !eval[bool](c, `document.activeElement.value === "app.example.com" && document.querySelectorAll(".pick:checked").length === 3`) {
		t.Error("what was chosen and typed is gone")
	}
	if !eval[bool](c, `dispatchEvent(new Event("beforeunload", { cancelable: true }))`) {
		t.Error("the page asks before it loses a selection")
	}
	c.forget()
	// It is sent once, however long the answer and the next page take to come.
	eval[bool](c, `(window.really = fetch, window.sent = 0, window.fetch = (to, how) => how?.method === "POST" ? (sent++, new Promise((_, no) => window.refuse = no)) : really(to, how), true)`)
	c.press(kb.Enter)
	c.until(`sent === 1`)
	if n := eval[int](c, `(document.querySelector("#bulk [value=replay]").click(), sent)`); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	eval[bool](c, `(refuse(new TypeError()), window.fetch = really, true)`)
	c.until(`document.querySelector("#bulk-replay .fault").checkVisibility() && document.querySelector("#bulk-replay .fault").textContent.includes("could not be reached")`)
	eval[bool](c, `document.querySelector("#bulk-replay [name=target_url]").value = "", true`)
	c.do(chromedp.SendKeys("#bulk-replay [name=target_url]", "https://app.example.com/"+kb.Enter))
	c.until(`document.querySelectorAll("#batch-state tbody a").length === 3`)
	c.silent()
}

// A body is looked through for credentials as it is read: without its compression.
func TestASharedRequestWhoseBodyIsCompressedIsReadWithoutItsSecrets(t *testing.T) {
	s := newSite(t)
	s.secret("github", "swordfish-swordfish")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(`{"password":"hunter2","total":5,"echo":"swordfish-swordfish"}`)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	event := s.hook(sent{body: packed.String(), headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "Content-Encoding", Value: "gzip"}}})
	if err := s.captures.SetNote(t.Context(), s.who, string(s.endpoint.ID), string(event), "among ourselves"); err != nil {
		t.Fatal(err)
	}
	page := s.signedIn().want(201, "POST", s.page("/requests/"+string(event)+"/share"), url.Values{"expires": {"1h"}})
	a := s.visitor().want(200, "GET", regexp.MustCompile(`id="share-link">([^<]+)<`).FindStringSubmatch(page.body)[1], nil)
	a.holds(t, "total", "[redacted]")
	a.lacks(t, "hunter2", "swordfish", "among ourselves")
}

func TestASharedRequestInAnotherCharsetIsReadWithoutItsSecrets(t *testing.T) {
	s := newSite(t)
	body := []byte{0xff, 0xfe}
	for _, r := range `{"password":"hunter2","total":"fünf"}` {
		body = append(body, byte(r), 0)
	}
	event := s.hook(sent{body: string(body), headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}}})
	page := s.signedIn().want(201, "POST", s.page("/requests/"+string(event)+"/share"), url.Values{"expires": {"1h"}})
	a := s.visitor().want(200, "GET", regexp.MustCompile(`id="share-link">([^<]+)<`).FindStringSubmatch(page.body)[1], nil)
	a.holds(t, "fünf", "[redacted]")
	a.lacks(t, "hunter2", "h.u.n.t.e.r.2", "68 00 75 00") // as a dump of the bytes tells it
}

func TestASharedRequestIsReadByAnybodyWithoutItsSecrets(t *testing.T) {
	s := newSite(t)
	s.secret("github", "swordfish-swordfish")
	event := s.hook(sent{target: "/pay?token=t0psecret&Key=k3ysecret&key=s3cond&monkey=seen", body: `{"password":"hunter2","total":5,"echo":"swordfish-swordfish"}`, headers: hookglass.Headers{
		{Name: "Content-Type", Value: "application/json"}, {Name: "Authorization", Value: "Bearer abcdefgh"}, {Name: "X-Kept", Value: "kept"},
	}})
	b := s.signedIn()
	page := b.want(201, "POST", s.page("/requests/"+string(event)+"/share"), url.Values{"expires": {"1h"}})
	link := regexp.MustCompile(`id="share-link">([^<]+)<`).FindStringSubmatch(page.body)[1]
	stranger := s.visitor()
	a := stranger.want(200, "GET", link, nil)
	a.holds(t, "kept", "total", "[redacted]", "seen")
	level := byte('0')
	for _, heading := range regexp.MustCompile(`<h(\d)`).FindAllStringSubmatch(regexp.MustCompile(`(?s)<dialog.*?</dialog>`).ReplaceAllString(a.body, ""), -1) {
		if heading[1][0] > level+1 {
			t.Errorf("a heading of level %s follows one of level %c", heading[1], level)
		}
		level = heading[1][0]
	}
	for _, secret := range []string{"abcdefgh", "hunter2", "swordfish", "t0psecret", "k3ysecret", "s3cond", string(s.endpoint.ID)} {
		if strings.Contains(a.body, secret) {
			t.Errorf("a stranger reads %q", secret)
		}
	}
	if found := regexp.MustCompile(`<form[^>]*>`).FindString(a.body); found != "" {
		t.Errorf("a stranger is offered %s", found)
	}
	configs, err := s.endpoints.SignatureConfigs(t.Context(), s.who, string(s.endpoint.ID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.endpoints.UpdateSignatureConfig(t.Context(), s.who, string(s.endpoint.ID), configs[0].ID, endpoint.SignatureDraft{Enabled: new(bool)}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stranger.want(200, "GET", link, nil).body, "swordfish") {
		t.Error("a stranger reads the secret of a config that is disabled")
	}
	revoke := regexp.MustCompile(`action="([^"]+/revoke)"`).FindStringSubmatch(page.body)[1]
	stranger.want(303, "GET", s.page("/requests/"+string(event)+"/share"), nil)
	page.holds(t, "Revoke this link?")
	b.want(303, "POST", revoke, url.Values{})
	b.want(200, "GET", s.page("/requests/"+string(event)+"/share?done=unshared"), nil).holds(t, "The link was revoked.")
	stranger.want(404, "GET", link, nil).holds(t, "it expired, was revoked, or the request was deleted")
	b.want(422, "POST", s.page("/requests/"+string(event)+"/share"), url.Values{"expires": {"8760h"}})
}

func TestSearchesAreSavedUnderNames(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(303, "POST", s.page("/searches"), url.Values{"name": {"Failures <b>"}, "q": {"sig:failed"}})
	page := b.want(200, "GET", s.page(""), nil)
	page.holds(t, "Failures &lt;b&gt;", "?q=sig%3Afailed")
	b.want(422, "POST", s.page("/searches"), url.Values{"name": {"Wrong"}, "q": {"sig:sometimes"}})
	gone := regexp.MustCompile(`action="([^"]+/searches/\d+/delete)"`).FindStringSubmatch(page.body)[1]
	b.want(303, "POST", gone, url.Values{})
	b.want(404, "POST", gone, url.Values{})
}

func TestAVisitorKeepsATemporaryEndpointAfterSigningIn(t *testing.T) {
	s := newSite(t)
	b := s.visitor()
	home := b.want(303, "POST", "/temporary", url.Values{}).Header.Get("Location")
	event := s.capture(hookglass.Endpoint{ID: hookglass.EndpointID(strings.TrimPrefix(home, "/endpoints/"))}, json(`{}`))
	b.want(200, "GET", home, nil).holds(t, "Sign in to keep it")
	for _, path := range []string{"/bulk", "/searches", "/requests/" + string(event) + "/replay", "/requests/" + string(event) + "/tags", "/requests/" + string(event) + "/note", "/requests/" + string(event) + "/share"} {
		b.want(403, "POST", home+path, url.Values{"id": {string(event)}, "do": {"tag"}, "tag": {"x"}, "expires": {"1h"}})
	}
	b.want(303, "POST", "/sign-in", url.Values{"email": {"ada@example.com"}, "password": {s.password()}})
	b.want(200, "GET", home, nil).holds(t, "Keep this endpoint")
	b.want(200, "GET", "/endpoints", nil).holds(t, "Your temporary endpoint")
	b.want(303, "POST", home+"/claim", url.Values{})
	b.want(200, "GET", home+"/requests/"+string(event), nil).holds(t, "/cases/new?event="+string(event))
	b.want(404, "POST", home+"/claim", url.Values{})
}

func TestAWideBodyIsUsable(t *testing.T) {
	s := newSite(t)
	var body strings.Builder
	body.WriteString(`{"rows":[`)
	for body.Len() < 10<<20 {
		body.WriteString(`{"id":12345678,"name":"a row like any other","more":[true,null,1.5e3]},`)
	}
	body.WriteString(`{"needle":"found me"}]}`)
	event := s.hook(json(body.String()))
	c := s.chrome(1440, 900)
	c.open(s.link())
	began := time.Now()
	c.open(s.page("/requests/" + string(event)))
	c.until(shows(event) + ` && document.querySelector(".tree [data-n]")`)
	if took := time.Since(began); took > time.Minute { // a second, where nothing else runs
		t.Errorf("10 MiB in one line took %v", took)
	}
	eval[any](c, `document.querySelector(".tree-search input").value = "found me"; document.querySelector(".tree-search input").dispatchEvent(new Event("input", { bubbles: true }))`)
	c.until(`document.querySelector(".found-place")?.textContent.endsWith("/needle")`)
	c.silent()
}

func TestATreeTellsPointersAndValues(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{"a/b":[{"x":1.50},{"y~":"text"}]}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(`document.querySelector(".tree")`)
	eval[any](c, `[...document.querySelectorAll(".tree .j-name")].find((e) => e.textContent.includes("y~")).click()`)
	c.until(`document.querySelector("[data-pointer-copy]").dataset.copy === "/a~1b/1/y~0"`)
	if got := eval[string](c, `document.querySelector("[data-value-copy]").dataset.copy`); got != `"text"` {
		t.Errorf("the value is %s", got)
	}
	eval[any](c, `document.querySelector(".tree").focus()`)
	c.press(kb.ArrowUp + kb.ArrowUp)
	c.until(`document.querySelector("[data-pointer-copy]").dataset.copy === "/a~1b/0/x"`)
	if got := eval[string](c, `document.querySelector("[data-value-copy]").dataset.copy`); got != "1.50" {
		t.Errorf("the number is %s", got)
	}
	c.silent()
}

// A name that turns the letters round is shown as what it is, and copied as it came.
func TestATreeTellsThePointerOfAHostileName(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{"\u202eevil\u2066\u0007":1}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(event)))
	c.until(`document.querySelector(".tree")`)
	eval[any](c, `document.querySelector(".tree .j-name").click()`)
	c.until(`document.querySelector("[data-pointer-copy]").dataset.copy === "/\u202eevil\u2066\u0007"`)
	if got := eval[string](c, `document.querySelector("[data-pointer]").textContent`); got != "/⟨U+202E⟩evil⟨U+2066⟩␇" {
		t.Errorf("it is shown as %q", got)
	}
	c.silent()
}

// Whoever knows the address of a mailbox can send to it, so a stranger does not read it, wherever in a mail it stands
// and however that is encoded.
func TestASharedMailDoesNotTellItsAddress(t *testing.T) {
	s := newSite(t)
	inbox := s.create("inbox", hookglass.KindEmail)
	target, err := s.captures.AdmitMailbox(t.Context(), string(inbox.ID))
	if err != nil {
		t.Fatal(err)
	}
	local, b := inbox.EmailLocalPart, s.signedIn()
	address, quoted := local+"+tag@mail.test", `"`+local+`+a b"@mail.test`
	encoded := base64.StdEncoding.EncodeToString
	text := encoded([]byte("<p>We&#39;re glad, " + strings.ToUpper(address) + "</p>"))
	const typed = "\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n"
	for _, tt := range []struct {
		name, sender, to, raw string
		holds                 []string
	}{
		{"plain and in base64", "shop@example.com", address, "From: Shop <shop@example.com>\r\nTo: Me <" + address + ">, other@mail.test\r\nReceived: from x for <" + address +
			">\r\nDate: Mon, 02 Mar 2026 10:00:00 +0000\r\nMessage-ID: <1." + local + "=mail.test@example.com>\r\nSubject: Dear " + address + typed + text + "\r\n",
			[]string{"shop@example.com", "other@mail.test", "We&#39;re glad, [redacted]", "Dear [redacted]", "from x for &lt;[redacted]&gt;", "Mon, 02 Mar 2026 10:00:00 +0000",
				"Message-ID", "&lt;1.[redacted]@example.com&gt;", "text/html"}},
		{"in links", "shop@example.com", address, "From: shop@example.com\r\nList-Unsubscribe: <https://example.com/h?e=" + local + "%2btag%40mail.test>\r\n\r\n" +
			"one https://example.com/u?email=" + local + "%40mail.test\r\ntwo https://example.com/u?email=" + local + "%252Btag%2540mail.test\r\nthree " + local + "=40mail.test\r\n" +
			"four https://example.com/" + encoded([]byte("u=1&e="+local+"@mail.test&x=2")) + "\r\nfive " + encoded([]byte(address)) + "\r\nsix " + hex.EncodeToString([]byte(address)) + "\r\nseven other@mail.test\r\n",
			[]string{"one https://example.com/u?email=[redacted]\n", "two https://example.com/u?email=[redacted]\n", "three [redacted]\n", "h?e=[redacted]&gt;", "six [redacted]", "seven other@mail.test"}},
		{"in the sender of bounces", "bounces+12-" + local + "=mail.test@em.example.com", address, "Subject: x\r\n\r\nhello\r\n", []string{"bounces+12-[redacted]@em.example.com"}},
		{"in quotes", "shop@example.com", quoted, "To: " + quoted + "\r\nSubject: for " + quoted + "\r\n\r\nDear " + quoted + "!\r\n", []string{"shop@example.com", "[redacted]!"}},
		{"beside a blank text", "shop@example.com", address, "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n \r\n\r\n--b" + typed + text +
			"\r\n--b--\r\n", []string{"We&#39;re glad, [redacted]", "multipart/alternative"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stored := s.captures.CaptureMail(t.Context(), &capture.Mail{From: tt.sender, To: []capture.Recipient{{Address: tt.to, Target: target}}, Protocol: "ESMTP", Raw: []byte(tt.raw), At: time.Now()})
			if stored[0].Err != nil {
				t.Fatal(stored[0].Err)
			}
			page := b.want(201, "POST", s.url+"/endpoints/"+string(inbox.ID)+"/requests/"+string(stored[0].Event)+"/share", url.Values{"expires": {"1h"}})
			a := s.visitor().want(200, "GET", regexp.MustCompile(`id="share-link">([^<]+)<`).FindStringSubmatch(page.body)[1], nil)
			a.holds(t, tt.holds...)
			for _, told := range []string{local, hex.EncodeToString([]byte(local)), encoded([]byte(local[:len(local)/3*3]))} {
				if strings.Contains(strings.ToLower(a.body), strings.ToLower(told)) {
					t.Errorf("a stranger reads the address %s as %s:\n%s", tt.to, told, a.body)
				}
			}
		})
	}
}

func TestMailIsShownInASandbox(t *testing.T) {
	s := newSite(t)
	inbox := s.create("inbox", hookglass.KindEmail)
	target, err := s.captures.AdmitMailbox(t.Context(), string(inbox.ID))
	if err != nil {
		t.Fatal(err)
	}
	raw := strings.ReplaceAll(`From: Shop <shop@example.com>
To: in@mail.test
Subject: Your code
Message-ID: <1@example.com>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/html

<h1>Hello</h1><p>Your verification code is 482913</p><script>top.document.title='x'</script><img src="https://tracker.test/x.png" onerror="alert(1)"><a href="https://example.com/verify?c=1">Verify</a>
--b
Content-Type: text/plain
Content-Disposition: attachment; filename="note.txt"

a note
--b--
`, "\n", "\r\n")
	stored := s.captures.CaptureMail(t.Context(), &capture.Mail{From: "shop@example.com", To: []capture.Recipient{{Address: "in@mail.test", Target: target}}, Protocol: "ESMTP", Raw: []byte(raw), At: time.Now()})
	if stored[0].Err != nil {
		t.Fatal(stored[0].Err)
	}
	base := s.url + "/endpoints/" + string(inbox.ID) + "/requests/" + string(stored[0].Event)
	b := s.signedIn()
	a := b.want(200, "GET", base+"/html", nil)
	a.holds(t, "Hello")
	for header, want := range map[string]string{"Content-Security-Policy": "sandbox; default-src 'none'", "Content-Type": "text/html", "X-DNS-Prefetch-Control": "off"} {
		if !strings.HasPrefix(a.Header.Get(header), want) {
			t.Errorf("%s: %s", header, a.Header.Get(header))
		}
	}
	if strings.Contains(a.body, "<script") || strings.Contains(a.body, ` src="https://tracker.test`) {
		t.Errorf("the HTML is\n%s", a.body)
	}
	b.want(200, "GET", base+"/html?remote=1", nil).holds(t, `src="https://tracker.test/x.png"`)
	if a := b.want(200, "GET", base+"/attachments/0", nil); a.body != "a note" || !strings.Contains(a.Header.Get("Content-Disposition"), "note.txt") {
		t.Errorf("the attachment is %q, %v", a.body, a.Header)
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(base)
	c.until(isLive)
	for _, text := range []string{"482913", "https://example.com/verify?c=1", "note.txt"} {
		if !strings.Contains(eval[string](c, `document.querySelector("#detail").textContent`), text) {
			t.Errorf("the page does not name %s", text)
		}
	}
	c.click("#tab-attachments")
	if room := eval[float64](c, `(() => {
		const button = document.querySelector("#part-attachments a.button"), text = document.createRange();
		text.selectNodeContents(button);
		return text.getBoundingClientRect().left - button.getBoundingClientRect().left;
	})()`); room < 8 {
		t.Errorf("a word stands %v pixels from the edge of its button", room)
	}
	c.silent()
}

func TestThePaletteAndLettersGoToPages(t *testing.T) {
	s := newSite(t)
	s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[any](c, `document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }))`)
	c.until(`document.querySelector("#palette").open`)
	c.press("settings\r")
	c.until(`location.pathname.endsWith("/settings") && document.readyState === "complete"`)
	c.press("ge")
	c.until(`location.pathname === "/endpoints" && document.readyState === "complete"`)
	c.press("?")
	c.until(`document.querySelector("#keys").open`)
	c.press(kb.Escape)
	eval[any](c, `document.querySelector("[name=name]").focus()`)
	c.press("ge?") // text in a field
	if got := eval[string](c, `document.querySelector("[name=name]").value`); got != "ge?" {
		t.Errorf("typed %q", got)
	}
	c.silent()
}

func TestASignUpIsOpenWhereItIsSaid(t *testing.T) {
	s := newSite(t)
	s.visitor().want(404, "GET", "/sign-up", nil)
	s = newSiteWith(t, func(d *web.Deps) { d.Signup = true })
	b := s.visitor()
	b.want(200, "GET", "/sign-in", nil).holds(t, "Create an account")
	b.want(422, "POST", "/sign-up", url.Values{"email": {"ada@example.com"}, "password": {"long enough"}}).holds(t, "Email is in use already")
	b.want(422, "POST", "/sign-up", url.Values{"email": {"grace@example.com"}, "password": {"short"}}).holds(t, "Password must have")
	b.want(303, "POST", "/sign-up", url.Values{"email": {"grace@example.com"}, "password": {"long enough"}})
	b.want(200, "GET", "/account", nil).holds(t, "grace@example.com", "Business")
}

func TestTheAccountTellsHowLongRequestsAreKept(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(200, "GET", "/account", nil).holds(t, "<dd>1 hour</dd>")
	week := 7 * 24 * time.Hour
	if _, err := s.accounts.SetAccount(t.Context(), s.who.Account, account.Change{Retention: &week}); err != nil {
		t.Fatal(err)
	}
	b.want(200, "GET", "/account", nil).holds(t, "<dd>7 days</dd>")
}

func TestTokensSessionsAndThePasswordAreOnesOwn(t *testing.T) {
	s := newSite(t)
	password := s.password()
	b, other := s.signedIn(), s.signedIn()
	page := b.want(201, "POST", "/account/tokens", url.Values{"name": {"CI"}, "scopes": {"read"}, "level": {"workspace"}, "expires": {"30"}})
	token := regexp.MustCompile(`id="made-token">([^<]+)<`).FindStringSubmatch(page.body)[1]
	who, err := s.accounts.Authenticate(t.Context(), token)
	if err != nil || who.Workspace == 0 || len(who.Scopes) != 1 {
		t.Fatalf("the token is %+v, %v", who, err)
	}
	list := b.want(200, "GET", "/account/tokens", nil)
	if strings.Contains(list.body, token) {
		t.Error("the token is shown again")
	}
	b.want(422, "POST", "/account/tokens", url.Values{"name": {"none"}, "level": {"account"}}).holds(t, "Scopes must name")
	b.want(422, "POST", "/account/tokens", url.Values{"scopes": {"read"}, "level": {"odd"}}).holds(t, "Level must be account or workspace")
	for _, days := range []string{"0", "-1", "3651", "soon"} { // none of them makes a token without end
		b.want(422, "POST", "/account/tokens", url.Values{"scopes": {"read"}, "level": {"account"}, "expires": {days}})
	}
	revoke := regexp.MustCompile(`action="(/account/tokens/\d+/revoke)"`).FindStringSubmatch(list.body)[1]
	b.want(303, "POST", revoke, url.Values{})
	if _, err := s.accounts.Authenticate(t.Context(), token); !hookglass.Is(err, hookglass.CodeUnauthorized) {
		t.Errorf("a revoked token: %v", err)
	}
	b.want(200, "GET", "/account/sessions", nil).holds(t, "this browser", "End all other sessions")
	b.want(303, "POST", "/account/sessions/end", url.Values{})
	other.want(303, "GET", "/account", nil)
	b.want(200, "GET", "/account", nil)
	b.want(422, "POST", "/account/password", url.Values{"current_password": {"wrong"}, "password": {"another password"}}).holds(t, "Current password is not your password")
	b.want(303, "POST", "/account/password", url.Values{"current_password": {password}, "password": {"another password"}})
	b.want(200, "GET", "/account/password?done=password", nil).holds(t, "The password was saved.")
	s.visitor().want(303, "POST", "/sign-in", url.Values{"email": {"ada@example.com"}, "password": {"another password"}})
	b.want(303, "POST", "/account/workspaces", url.Values{"name": {"Staging"}})
	b.want(200, "GET", "/account/workspaces", nil).holds(t, "Staging", "ada@example.com")
}

func TestAnEndpointIsSettledWhole(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(303, "POST", s.page("/settings"), url.Values{"complete": {"1"}, "name": {"Orders"}, "custom_id": {"orders"}, "provider": {"github"}, "enabled": {"true"}, "tunnel": {"true"}})
	page := b.want(200, "GET", s.page("/settings"), nil)
	page.holds(t, `value="orders"`, `<option value="github" selected>`)
	b.want(422, "POST", s.page("/settings"), url.Values{"complete": {"1"}, "name": {"Orders"}, "custom_id": {"Not this"}}).holds(t, "The custom id must be", `value="Not this"`)

	answer := url.Values{"status": {"202"}, "headers": {"X-Id: {{request.header.x-id}}\r\nContent-Type: text/plain"}, "body": {"Got {{request.body/n}}"}, "delay_ms": {"0"}}
	s.hook(sent{body: `{"n":7}`, headers: hookglass.Headers{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Id", Value: "abc"}}})
	answer.Set("do", "preview")
	b.want(200, "POST", s.page("/response"), answer).holds(t, "Got 7", "X-Id: abc", "Nothing is saved yet")
	page = b.want(200, "POST", s.page("/response"), url.Values{"do": {"preview"}, "status": {"204"}, "headers": {"Content-Type: text/html"}, "body": {"<p>Got it</p>"}})
	page.holds(t, "Content-Security-Policy: sandbox")
	if preview := page.body[strings.Index(page.body, `aria-label="Preview"`):]; strings.Contains(preview[:strings.Index(preview, "</div>")], "Got it") {
		t.Error("the preview of a 204 has a body, which nobody is sent")
	}
	answer.Del("do")
	b.want(303, "POST", s.page("/response"), answer)
	b.want(200, "GET", s.page("/settings"), nil).holds(t, "Got {{request.body/n}}", "Use the default")
	b.want(422, "POST", s.page("/response"), url.Values{"status": {"42"}}).holds(t, "The status must be")
	b.want(303, "POST", s.page("/response"), url.Values{"do": {"default"}})

	rules := url.Values{
		"when": {"path:/a", " ", "signature:failed"}, "was": {"path:/a", "path:/b", ""}, "status": {"204", "1", "401"}, "headers": {"", "", "X-Why: <no>\r\n"}, "body": {"", "", "a\r\nb"}, "delay_ms": {"0", "", "5"},
	}
	b.want(303, "POST", s.page("/response_rules"), rules)
	b.want(200, "GET", s.page("/settings"), nil).holds(t, "<code>path:/a</code> responds 204", "<code>signature:failed</code> responds 401", "X-Why: &lt;no&gt;", "a\nb", "?q=signature%3Afailed", "Add a rule")
	rules["status"] = []string{"204", "", "42"} // of what is the second when it is saved
	b.want(422, "POST", s.page("/response_rules"), rules).holds(t, `id="rule-1-status-fault"`, "The status must be")
	rules["status"], rules["when"][2] = []string{"204", "", "x"}, "tag:a"
	b.want(422, "POST", s.page("/response_rules"), rules).holds(t, `id="rule-1-status-fault"`, "The status must be a number")
	rules["status"][2] = "401"
	b.want(422, "POST", s.page("/response_rules"), rules).holds(t, "The condition cannot use status, tag")
	b.want(422, "POST", s.page("/response_rules"), url.Values{"when": slices.Repeat([]string{"path:/a"}, 21), "status": slices.Repeat([]string{"200"}, 21)}).holds(t, "The response rules may have 20 entries")
	forgotten := url.Values{ // as a browser sends the form: the condition of the new rule was forgotten
		"when": {"path:/a", ""}, "was": {"path:/a", ""}, "status": {"204", "418"}, "headers": {"", "Content-Type: application/json\r\n"}, "body": {"", `{"received":true}`}, "delay_ms": {"0", "0"},
	}
	b.want(422, "POST", s.page("/response_rules"), forgotten).holds(t, `id="rule-1-when-fault"`, "The condition must say which webhooks", `value="418"`)
	forgotten["status"][1] = "200" // nothing was typed
	b.want(303, "POST", s.page("/response_rules"), forgotten)
	b.want(303, "POST", s.page("/response_rules"), url.Values{"when": {""}})
	b.want(200, "GET", s.page("/settings"), nil).lacks(t, "responds 204")

	typed := url.Values{"do": {"try"}, "when": {"header.x-id:<abc>", "header.x-id:abc"}, "status": {"400", "207"}, "headers": {"", ""}, "body": {"", ""}, "delay_ms": {"0", "0"}, "seen": {"of long ago"}}
	b.want(200, "POST", s.page("/response_rules"), typed).holds(t, "Rules would answer 1 of the last 1 request.", "Rule 2: <code>header.x-id:abc</code>", "207", `value="header.x-id:&lt;abc&gt;"`, "POST /")
	// The focus is where the rule is moved on, as far as it goes, then where it is moved back.
	moved := func(do, held, focus string) {
		t.Helper()
		page := b.want(200, "POST", s.page("/response_rules"), url.Values{ // the second was cleared
			"do": {do}, "when": {"path:/1", "", "path:/3", "path:/4", ""}, "was": {"path:/1", "path:/2", "path:/3", "path:/4", ""}, "status": {"201", "202", "", "204", ""}, "seen": {"of long ago"},
		})
		var order []string
		for _, rule := range regexp.MustCompile(`name="when" value="path:(/\d)"`).FindAllStringSubmatch(page.body, -1) {
			order = append(order, rule[1])
		}
		if got := strings.Join(order, ""); got != held {
			t.Errorf("%s: %s, want %s", do, got, held)
		}
		page.holds(t, `value="of long ago"`, "data-unsaved")
		var focused []string
		for _, button := range regexp.MustCompile(`autofocus aria-label="Move ([^"]+)"`).FindAllStringSubmatch(page.body, -1) {
			focused = append(focused, button[1])
		}
		if got := strings.Join(focused, ", "); got != focus {
			t.Errorf("%s: the focus is on %q, want %q", do, got, focus)
		}
	}
	moved("up 2", "/3/1/4", "down rule 1")
	moved("up 3", "/1/4/3", "up rule 2")
	moved("down 0", "/3/1/4", "down rule 2")
	moved("down 2", "/1/4/3", "up rule 3")
	moved("down 3", "/1/3/4", "") // is the last one
	moved("up 0", "/1/3/4", "")
	moved("up 1", "/1/3/4", "") // was cleared
	moved("up 99", "/1/3/4", "")
	b.want(200, "POST", s.page("/response_rules"), url.Values{"do": {"try"}, "when": {""}}).holds(t, "Rules would answer 0 of the last 1 request.", "the default response")
	page = b.want(422, "POST", s.page("/response_rules"), url.Values{"do": {"try"}, "when": {"tag:a"}, "status": {"200"}})
	page.holds(t, "The condition cannot use status, tag")
	page.lacks(t, "would answer")
	b.want(200, "GET", s.page("/settings"), nil).lacks(t, "responds 207", "would answer")
	b.want(200, "POST", "/endpoints/"+string(s.create("Empty", hookglass.KindWebhook).ID)+"/response_rules", url.Values{"do": {"try"}}).holds(t, "No requests yet.")
	delete(typed, "do")
	typed["when"][0] = "path:/a"
	typed.Del("seen")
	b.want(303, "POST", s.page("/response_rules"), typed)
	ruled := s.hook(sent{headers: hookglass.Headers{{Name: "X-Id", Value: "abc"}}})
	b.want(200, "GET", s.page("/requests/"+string(ruled)), nil).holds(t, "2: <code>header.x-id:abc</code>")
	page = b.want(201, "POST", s.page("/requests/"+string(ruled)+"/share"), url.Values{"expires": {"1h"}})
	s.visitor().want(200, "GET", regexp.MustCompile(`id="share-link">([^<]+)<`).FindStringSubmatch(page.body)[1], nil).lacks(t, "header.x-id:abc")
	b.want(303, "POST", s.page("/response_rules"), url.Values{"when": {""}})

	b.want(303, "POST", s.page("/signatures"), url.Values{"provider": {"github"}, "secret": {"swordfish"}})
	page = b.want(200, "GET", s.page("/settings"), nil)
	if strings.Contains(page.body, "swordfish") {
		t.Error("a secret is shown")
	}
	b.want(422, "POST", s.page("/signatures"), url.Values{"provider": {"github"}, "secret": {"swordfish"}}).holds(t, "already has a secret here")
	config := regexp.MustCompile(`action="([^"]+/signatures/\d+)/delete"`).FindStringSubmatch(page.body)[1]
	for _, do := range []string{"toggle", "rejudge", "secret", "delete"} {
		b.want(303, "POST", config+"/"+do, url.Values{"secret": {"another"}})
	}

	b.want(303, "POST", s.page("/targets"), url.Values{"name": {"App"}, "url": {"https://app.example.com/hook"}, "timeout_seconds": {"5"}, "retry_count": {"0"}})
	b.want(422, "POST", s.page("/targets"), url.Values{"name": {"App"}, "url": {"http://127.0.0.1/"}})
	page = b.want(200, "GET", s.page("/settings"), nil)
	page.holds(t, "https://app.example.com/hook")
	target := regexp.MustCompile(`action="([^"]+/targets/\d+)/delete"`).FindStringSubmatch(page.body)[1]
	b.want(303, "POST", target, url.Values{"enabled": {"false"}})
	b.want(303, "POST", target+"/delete", url.Values{})
	b.want(303, "POST", s.page("/clear"), url.Values{})
	b.want(200, "GET", s.page(""), nil).holds(t, "Waiting for the first request")
}
