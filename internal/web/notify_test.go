package web_test

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// desk stands for the browser's notifications, which are not shown without a desk, and says yes to who is asked. The
// pause between two of them ends when pauses.shift() is called.
const desk = `
	window.noted = [];
	window.pauses = [];
	const timeout = window.setTimeout;
	window.setTimeout = (then, after, ...of) => after === 5000 ? window.pauses.push(then) : timeout(then, after, ...of);
	window.Notification = class extends EventTarget {
		static permission = sessionStorage.getItem("may") ?? "default";
		static async requestPermission() {
			sessionStorage.setItem("may", "granted");
			return this.permission = "granted";
		}
		constructor(title, { body }) {
			super();
			window.noted.push(title + ": " + body);
			window.note = this;
		}
		close() {}
	}`

func TestWhoAsksIsNotifiedWhileThePageIsInTheBackground(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: desk})
		return err
	}))
	const pressed = `document.querySelector("#notify").ariaPressed === "true"`
	c.open(s.link())
	c.until(isLive + ` && document.querySelector("#notify").checkVisibility() && !(` + pressed + `)`)
	c.hide()
	unasked := s.hook(json(`{}`))
	c.until(lists(unasked))
	if eval[int](c, `noted.length`) != 0 {
		t.Error("it notifies who did not ask")
	}
	c.show()
	c.click("#notify")
	c.until(pressed)
	seen := s.hook(json(`{}`))
	c.until(lists(seen))
	if eval[int](c, `noted.length`) != 0 {
		t.Error("it notifies of what is seen")
	}
	c.hide()
	s.hook(json(`{}`))
	c.until(`noted.length === 1 && noted[0].startsWith("` + s.endpoint.Name + `: POST /")`)
	for range 2 {
		c.until(lists(s.hook(json(`{}`))))
	}
	if eval[int](c, `noted.length`) != 1 {
		t.Error("it notifies without a pause")
	}
	eval[any](c, `pauses.shift()()`)
	if noted := eval[[]string](c, `noted`); len(noted) != 2 || noted[1] != s.endpoint.Name+": 2 new requests" {
		t.Errorf("noted: %q", noted)
	}
	c.show()

	eval[any](c, `location.reload()`)
	c.until(isLive + ` && ` + pressed) // it is remembered
	c.hide()
	last := s.hook(json(`{}`))
	c.until(`noted.length === 1`)
	if eval[bool](c, "Boolean("+shows(last)+")") {
		t.Error("it was open before")
	}
	eval[bool](c, `note.dispatchEvent(new Event("click"))`)
	c.until(shows(last))
	c.show()
	c.click("#notify")
	c.until(`!(` + pressed + `)`)
	c.hide()
	silent := s.hook(json(`{}`))
	c.until(lists(silent))
	if eval[int](c, `noted.length`) != 1 {
		t.Error("it notifies who asked it to stop")
	}
	c.silent()
}
