package web_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"hookglass"
)

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
