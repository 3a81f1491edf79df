package web_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"hookglass"
	"hookglass/internal/web"
)

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
