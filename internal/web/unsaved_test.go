package web_test

import (
	"strings"
	"testing"

	"hookglass"
)

// answers makes the page's questions be answered, and counts them.
const answers = `window.asked = 0; window.answer = false; window.confirm = () => { asked++; return answer; }`

// leaving reports whether the browser asks before it leaves the page.
const leaving = `!dispatchEvent(new Event("beforeunload", { cancelable: true }))`

func (c *chrome) asks(want int, then string) {
	c.t.Helper()
	if asked := eval[int](c, `asked`); asked != want {
		c.t.Errorf("%s: %d questions, want %d", then, asked, want)
	}
}

func TestAHalfFilledFormIsNotLeftWithoutAQuestion(t *testing.T) {
	s := newWorkshop(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	fill := func(name, value string) {
		t.Helper()
		eval[any](c, `(() => {
			const field = document.querySelector('form[aria-labelledby="create-target-title"] [name=`+name+`]');
			field.value = "`+value+`";
			field.dispatchEvent(new Event("input", { bubbles: true }));
		})()`)
	}
	c.open(s.page("/settings"))
	eval[any](c, answers)
	if eval[bool](c, leaving) {
		t.Error("a page in which nothing was typed is held")
	}
	fill("name", "CRM")
	if !eval[bool](c, leaving) {
		t.Error("what was typed is lost with the tab")
	}
	const away = `document.querySelector('.bar-nav a[href="/activity"]').click()`
	eval[any](c, `document.querySelector('.jump a[href="#danger"]').click()`)
	c.asks(0, "a place of the page")
	eval[any](c, away)
	c.asks(1, "a link")
	if at := eval[string](c, `location.pathname`); at != s.below("/settings") {
		t.Fatalf("the page is left for %s", at)
	}
	fill("name", "")
	if eval[bool](c, leaving) {
		t.Error("what was taken back is asked about")
	}

	// What was refused is no more stored than what was never sent.
	fill("name", "CRM")
	fill("url", "ftp://nowhere")
	eval[any](c, `document.querySelector('form[aria-labelledby="create-target-title"] [type=submit]').click()`)
	c.until(`document.readyState === "complete" && document.querySelector("#forwarding-url-fault")`)
	eval[any](c, answers)
	eval[any](c, away)
	c.asks(1, "a refused form")
	eval[any](c, `answer = true`)
	eval[any](c, away)
	c.until(`location.pathname === "/activity"`)
	if said := c.said(); len(said) != 1 || !strings.Contains(said[0], "422") { // of the refused form
		t.Errorf("the console: %q", said)
	}
}

// A form that a button of it changed, or that was only tried, is stored nowhere.
func TestAFormThatAButtonChangedIsNotLeftWithoutAQuestion(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/settings"))
	const preview = `document.querySelector("#response [value=preview]").click()`
	eval[any](c, preview)
	c.until(`document.readyState === "complete" && document.querySelector("#response .preview")`)
	c.until(`document.activeElement.matches("#response .preview") && document.activeElement.getBoundingClientRect().top < innerHeight`)
	if eval[bool](c, leaving) {
		t.Error("nothing was typed, and the page is held")
	}
	eval[any](c, `document.querySelector("#response [name=body]").value = "typed"`)
	eval[any](c, preview)
	c.until(`document.readyState === "complete" && document.querySelector("#response .preview").textContent.includes("typed")`)
	if !eval[bool](c, leaving) {
		t.Error("what was typed is lost with the page")
	}
	c.silent()
}

// Which request an action is tried with is not a part of the action.
func TestAPreviewIsLeftWithoutAQuestion(t *testing.T) {
	s := newWorkshop(t)
	event := s.hook(json(`{"n":1}`))
	made := s.makeTricky()
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/actions/" + made.ID))
	choose := func(field, value string) {
		t.Helper()
		eval[any](c, `(() => {
			const field = document.querySelector("#builder").elements.namedItem("`+field+`");
			field.value = "`+value+`";
			field.dispatchEvent(new Event("input", { bubbles: true }));
		})()`)
	}
	choose("event", string(event))
	choose("q", "method:POST")
	c.until(`document.querySelector("#tried").textContent`)
	if eval[bool](c, leaving) {
		t.Error("nothing of the action was changed, and the page is held")
	}
	choose("name", "Another")
	if !eval[bool](c, leaving) {
		t.Error("a changed name is lost with the page")
	}
}

func TestAFormBesideAListIsNotReplacedWithoutAQuestion(t *testing.T) {
	s := newWorkshop(t)
	first, second := s.hook(json(`{"n":1}`)), s.hook(json(`{"n":2}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(first)))
	c.until(`document.querySelector("form[data-part=replays] [name=target_url]")`)
	eval[any](c, answers)
	eval[any](c, `(() => {
		const field = document.querySelector("form[data-part=replays] [name=target_url]");
		field.value = "`+"http://app.example.com/"+`";
		field.dispatchEvent(new Event("input", { bubbles: true }));
	})()`)
	const other = `document.querySelector("#`
	row := other + string(second) + ` a.row").click()`
	eval[any](c, row)
	c.asks(1, "another request")
	if at := eval[string](c, `location.pathname`); at != s.below("/requests/"+string(first)) {
		t.Errorf("%s is open", at)
	}
	eval[any](c, `answer = true`)
	eval[any](c, row)
	c.until(`document.querySelector("[data-panel='` + string(second) + `']")`)
	eval[any](c, other+string(first)+` a.row").click()`)
	c.until(`document.querySelector("[data-panel='` + string(first) + `']")`)
	c.asks(2, "nothing typed")
	c.silent()
}

// A place of the page, such as the one that the keyboard skips to, is no other page in the browser's history.
func TestSkippingToTheContentOpensNothing(t *testing.T) {
	s := newWorkshop(t)
	event := s.hook(json(`{"n":1}`))
	s.hook(json(`{"n":2}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page(""))
	c.until(isLive)
	const skip = `document.querySelector(".skip").click()`
	eval[any](c, `document.activeElement.blur() ?? `+skip)
	eval[any](c, `new Promise((resolve) => setTimeout(resolve))`) // the browser tells of a place in a task of its own
	if at := eval[string](c, `document.activeElement.id`); at != "main" {
		t.Errorf("the focus is on %q", at)
	}
	c.open(s.page("/requests/" + string(event)))
	eval[any](c, answers)
	eval[any](c, `(() => {
		const field = document.querySelector("form[data-part=replays] [name=target_url]");
		field.value = "http://app.example.com/";
		field.dispatchEvent(new Event("input", { bubbles: true }));
	})()`)
	eval[any](c, skip)
	eval[any](c, `new Promise((resolve) => setTimeout(resolve))`)
	c.asks(0, "the content")
	if typed := eval[string](c, `document.querySelector("form[data-part=replays] [name=target_url]").value`); typed != "http://app.example.com/" {
		t.Errorf("%q is left of what was typed", typed)
	}
}

// A phone has the palette too, and its tables have no column out of sight.
func TestAPhoneHasThePaletteAndWholeTables(t *testing.T) {
	s := newWorkshop(t)
	event := s.hook(sent{body: `{"id":"evt_1","object":"event","type":"invoice.payment_succeeded"}`, headers: hookglass.Headers{{Name: "Stripe-Signature", Value: "t=1,v1=a"}}})
	s.hook(sent{body: `{"id":"evt_1","object":"event","type":"invoice.payment_succeeded"}`, headers: hookglass.Headers{{Name: "Stripe-Signature", Value: "t=2,v1=b"}}})
	c := s.chrome(390, 900)
	c.open(s.link())
	for _, page := range []string{"/requests/" + string(event) + "?tab=deliveries", "/metrics", "/retries", "/schemas", "/ledger", "/settings", "/alerts", "/cases", "/actions", "/tunnel"} {
		c.open(s.page(page))
		if wide := eval[string](c, `(() => {
			for (const details of document.querySelectorAll("main details")) details.open = true;
			return [...document.querySelectorAll("main :has(> table)")].filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.innerText.slice(0, 60)).join(" | ");
		})()`); wide != "" {
			t.Errorf("%s has a table that is wider than the phone: %s", page, wide)
		}
	}
	c.open(s.page("/metrics"))
	c.until(`document.querySelector("[data-palette]").checkVisibility()`)
	c.click("[data-palette]")
	c.press("activity")
	c.until(`document.querySelectorAll("#palette-list li").length === 1`)
	c.click("#palette-list li")
	c.until(`location.pathname === "/activity"`)
	c.until(`document.readyState === "complete"`)
	c.click("[data-palette]")
	c.until(`document.querySelector("#palette").open`)
	c.click("#palette button")
	c.until(`!document.querySelector("#palette").open`)
	c.silent()
}
