package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"hookglass"
)

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
	event := s.hook(json(`{"Message":"{\"held\":[\"é\"]}","a/b":[{"x":1.50},{"y~":"text"}]}`))
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
	eval[any](c, `[...document.querySelectorAll(".tree .j-name")].find((e) => e.textContent.includes("held")).click()`)
	c.until(`document.querySelector("[data-pointer-copy]").dataset.copy === "/Message"`) // nowhere does one go on in a string
	if got := eval[string](c, `document.querySelector("[data-value-copy]").dataset.copy`); got != "[\n  \"é\"\n]" {
		t.Errorf("the array is %s", got)
	}
	eval[any](c, `document.querySelector(".tree summary").click()`)
	c.until(`document.querySelector("[data-pointer-copy]").dataset.copy === ""`)
	if got := eval[string](c, `JSON.stringify(JSON.parse(JSON.parse(document.querySelector("[data-value-copy]").dataset.copy).Message))`); got != `{"held":["é"]}` {
		t.Errorf("the string holds %s", got)
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
