package web_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"hookglass"
	"hookglass/internal/endpoint"
)

func TestThePaletteFindsAnyEndpoint(t *testing.T) {
	s := newSite(t)
	// More than the list beside a page holds, of which the palette knows without asking.
	for range 205 {
		s.create("shop", hookglass.KindWebhook)
	}
	name, id, kind := "Far <b>behind</b>", "far-away", hookglass.KindWebhook
	far, err := s.endpoints.Create(t.Context(), s.who, endpoint.Draft{Name: &name, CustomID: &id, Kind: &kind})
	if err != nil {
		t.Fatal(err)
	}
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	for _, typed := range []string{"behind far", "FAR-away", string(far.ID)} {
		c.open(s.url + "/endpoints")
		c.until(`document.readyState === "complete"`)
		eval[any](c, `document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true }))`)
		c.until(`document.querySelector("#palette").open`)
		c.press(typed)
		c.until(`document.querySelector("#palette-list [aria-selected=true]")?.firstChild.data === "Far <b>behind</b>"`)
		c.press("\r")
		c.until(`location.pathname === "/endpoints/` + string(far.ID) + `"`)
	}
	c.open(s.url + "/endpoints")
	c.until(`document.readyState === "complete"`)
	eval[any](c, `document.querySelector("[data-palette]").click()`)
	c.press("shop")
	// The first 50 of the page's own, and what of the server's 50 is not among them.
	c.until(`document.querySelectorAll("#palette-list li").length === 50`)
	c.press("x")
	c.until(`document.querySelector("#palette-none").textContent === "No results." && !document.querySelector("#palette-none").hidden`)
	c.open(s.url + "/account")
	c.until(`document.readyState === "complete"`)
	eval[any](c, `document.querySelector("[data-palette]").click()`)
	c.press("new endp\r")
	c.until(`location.pathname + location.hash === "/endpoints#create"`)
	c.silent()
}

func TestASearchForEndpointsIsBounded(t *testing.T) {
	s := newSite(t)
	b := s.signedIn()
	b.want(200, "GET", "/endpoint-names?text=default", nil).holds(t, `href="/endpoints/`+string(s.endpoint.ID)+`"`)
	for _, text := range []string{"", "%20", strings.Repeat("a", 201), strings.Repeat("a+", 11)} {
		b.want(422, "GET", "/endpoint-names?text="+text, nil)
	}
	b.want(200, "GET", "/endpoint-names?text="+strings.Repeat("%25", 200), nil)
	s.visitor().want(401, "GET", "/endpoint-names?text=default", nil, "Sec-Fetch-Dest", "empty")
}

// holding has the palette's search for a text wait for free. It begins with begun.
func (s *site) holding(text string) (begun chan bool, free func()) {
	pages, begun, release := s.server.Config.Handler, make(chan bool, 1), make(chan bool)
	free = sync.OnceFunc(func() { close(release) })
	s.t.Cleanup(free)
	s.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/endpoint-names" && r.FormValue("text") == text {
			begun <- true
			<-release
		}
		pages.ServeHTTP(w, r)
	})
	return begun, free
}

// What the server finds comes while something of the list is being pressed.
func TestWhatIsPressedInThePaletteStays(t *testing.T) {
	s := newSite(t)
	near := s.create("far-away", hookglass.KindWebhook)
	name, id, kind := "Other", "far-away", hookglass.KindWebhook
	if _, err := s.endpoints.Create(t.Context(), s.who, endpoint.Draft{Name: &name, CustomID: &id, Kind: &kind}); err != nil {
		t.Fatal(err)
	}
	begun, free := s.holding("far-away")
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	eval[any](c, `document.querySelector("[data-palette]").click()`)
	c.press("far-away")
	<-begun
	at := eval[struct{ X, Y float64 }](c, `(({ x, y }) => ({ X: x, Y: y }))(document.querySelector("#palette-list li").getBoundingClientRect())`)
	mouse := func(what input.DispatchMouseEventType) {
		c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, input.DispatchMouseEvent, input.DispatchMouseEventParams{
				Type: what, X: at.X + 5, Y: at.Y + 5, Button: input.MouseButtonLeft, ClickCount: 1,
			})
			return err
		}))
	}
	mouse(input.DispatchMouseEventTypeMousePressed)
	free()
	c.until(`document.querySelectorAll("#palette-list li").length === 2`)
	mouse(input.DispatchMouseEventTypeMouseReleased)
	c.until(`location.pathname === "/endpoints/` + string(near.ID) + `"`)
	c.silent()
}

// What the server finds for a text that is no longer there is not offered.
func TestThePaletteForgetsWhatItWasClosedWith(t *testing.T) {
	s := newSite(t)
	s.create("Far", hookglass.KindWebhook)
	begun, free := s.holding("far")
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.url + "/account")
	c.until(`document.readyState === "complete"`)
	const open = `document.querySelector("[data-palette]").click()`
	eval[any](c, open)
	c.press("far")
	<-begun
	c.press(kb.Escape)
	c.until(`!document.querySelector("#palette").open`)
	eval[any](c, open)
	offered := `document.querySelector("#palette-list").textContent`
	before := eval[string](c, offered)
	free()
	// Its answer is there before that of a later question.
	c.until(`performance.getEntriesByType("resource").some((r) => r.name.endsWith("/endpoint-names?text=far") && r.responseEnd)`)
	eval[string](c, `fetch("/endpoint-names?text=none").then((answer) => answer.text())`)
	if after := eval[string](c, offered); after != before {
		t.Errorf("%q is offered, and %q was", after, before)
	}
	c.silent()
}

// Dictation and unsteady hands press single keys by accident (WCAG 2.1.4).
func TestSingleKeysCanBeTurnedOff(t *testing.T) {
	s := newSite(t)
	s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	const keys, at = `document.querySelector("#keys").open`, `document.activeElement`
	c.press("?")
	c.until(keys + ` && ` + at + `.textContent === "Close"`)
	c.click("#keys [name=single]")
	c.press(kb.Escape)
	c.until(`!` + keys)
	c.do(chromedp.Reload())
	c.until(isLive)
	c.press("/l?")
	if eval[bool](c, keys+` || `+at+`.id === "q" || !(`+isLive+`)`) {
		t.Error("a key did something")
	}
	eval[any](c, `(document.querySelector("#rows a.row").focus(), document.querySelector("[data-palette]").click())`)
	c.press("select\r")
	c.until(`document.querySelector(".pick").checked && ` + at + `.matches("a.row")`)
	eval[any](c, `document.querySelector("[data-palette]").click()`)
	c.press("keyboard\r")
	c.until(keys)
	c.click("#keys [name=single]")
	c.press(kb.Escape)
	c.until(`!` + keys + ` && ` + at + `.matches("a.row")`)
	c.press("/")
	c.until(at + `.id === "q"`)
	c.silent()
}
