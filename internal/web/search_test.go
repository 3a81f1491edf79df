package web_test

import (
	"net/url"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

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
