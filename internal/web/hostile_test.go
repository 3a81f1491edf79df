package web_test

import (
	"strconv"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/endpoint"
)

// corpus would each run, load or hide something where they were taken for markup.
var corpus = []string{
	`<script>document.documentElement.dataset.ran=1</script>`,
	`"><img src=x onerror="document.documentElement.dataset.ran=1">`,
	`'-document.documentElement.setAttribute('data-ran',1)-'`,
	`</textarea></title></style></script><svg/onload=document.documentElement.dataset.ran=1>`,
	`<iframe srcdoc="<script>parent.document.documentElement.dataset.ran=1</script>"></iframe>`,
	`javascript:document.documentElement.dataset.ran=1`,
	`<a href="javascript:alert(1)">x</a><meta http-equiv=refresh content="0;url=//evil.test">`,
	`<link rel=stylesheet href=//evil.test/x.css><img src=//evil.test/x.png>`,
	`{{constructor.constructor('document.documentElement.dataset.ran=1')()}}${document.documentElement.dataset.ran=1}`,
	"\u202egpj.exe\u202c\u2028\u0000\x1b[2J\xff\xfe<b>",
	`--><!--<b>]]>`,
	"line\r\nevent: row\r\ndata: <img src=x onerror=alert(1)>\r\n\r\n",
}

func TestNothingThatASenderWroteIsEverMarkup(t *testing.T) {
	s := newSite(t)
	c := s.chrome(1440, 900)
	c.open(s.link())
	for _, hostile := range corpus {
		response := &hookglass.Response{Status: 202, Headers: map[string]string{"X-Answer": strings.Map(printable, hostile)}, Body: hostile}
		name := strings.Map(printable, hostile)
		if _, err := s.endpoints.Update(t.Context(), s.who, string(s.endpoint.ID), endpoint.Draft{Name: &name, Response: &response}); err != nil {
			t.Fatal(err)
		}
		c.open(s.page("")) // the endpoint's name is hostile from here on, and rows come by the stream
		c.until(isLive)
		quoted := strconv.QuoteToASCII(strings.ToValidUTF8(hostile, "?"))
		for _, r := range []sent{
			{target: "/" + hostile + "?" + hostile, body: hostile, headers: hookglass.Headers{
				{Name: "Content-Type", Value: hostile}, {Name: hostile, Value: hostile}, {Name: "X-GitHub-Event", Value: hostile}, {Name: "X-GitHub-Delivery", Value: hostile},
			}},
			{body: `{"type":` + quoted + `,` + quoted + `:[` + quoted + `,{"a":` + quoted + `}]}`, headers: hookglass.Headers{
				{Name: "Content-Type", Value: "application/json"}, {Name: "X-GitHub-Event", Value: hostile},
			}},
			{body: hostile, headers: hookglass.Headers{{Name: "Content-Type", Value: "text/html"}}},
			{body: "a=" + hostile + "&" + hostile + "=b", headers: hookglass.Headers{{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}}},
		} {
			event := s.hook(r)
			c.until(lists(event))
			eval[any](c, lists(event)+`.click()`)
			c.until(shows(event))
			eval[any](c, `document.querySelectorAll("[role=tab], .views input").forEach((e) => e.click())`)
			eval[any](c, `document.querySelectorAll("details").forEach((e) => e.open = true)`)
		}
		c.open(s.url + "/endpoints")
		c.open(s.page("/settings"))
		c.open(s.page("?q=" + strings.Map(printable, hostile)))
		if eval[bool](c, `document.documentElement.hasAttribute("data-ran") || document.querySelector("main iframe, main img, main script, main style, main meta, main link, main [onerror], main [onload]") !== null`) {
			t.Errorf("%q became markup", hostile)
		}
	}
	c.silent()
}

// printable is for places that take no control characters.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r == '\uFFFD' || r >= 0x80 {
		return -1
	}
	return r
}
