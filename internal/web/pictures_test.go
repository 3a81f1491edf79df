package web_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"hookglass"
)

func TestPictures(t *testing.T) {
	if os.Getenv("HOOKGLASS_PICTURES") == "" {
		return
	}
	s := newSite(t)
	s.create("Stripe staging", hookglass.KindWebhook)
	s.create("Orders inbox", hookglass.KindEmail)
	s.secret("github", "swordfish-swordfish")
	for i := range 60 {
		s.hook(sent{method: "GET", target: "/health?n=" + strconv.Itoa(i)})
	}
	s.hook(sent{method: "GET", target: "/verify?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=meatyhamhock"})
	s.hook(sent{method: "PUT", target: "/upload/a%2Fb.png", body: "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00" + strings.Repeat("\xff\x00\x8a", 99), headers: hookglass.Headers{{Name: "Content-Type", Value: "image/png"}}})
	s.hook(sent{body: "token=gIkuvaNzQIHg97ATvDxqgjtO&team_id=T0001&command=%2Fweather&text=94070+%26+more", headers: hookglass.Headers{{Name: "Content-Type", Value: "application/x-www-form-urlencoded"}}})
	s.hook(s.github("issues", "72d3162e-cc78-11e3-81ab-4c9367dc0958", `{"action":"opened","issue":{"number":1347}}`, "another secret"))
	s.hook(sent{method: "DELETE", target: "/customers/cus_9s6XKzkNRiz8i3", headers: hookglass.Headers{{Name: "Authorization", Value: "Bearer x"}}})
	s.hook(json(`{"id":"evt_1MqqbKLt4dXK03v5qaIbiNCC","object":"event","api_version":"2024-06-20","created":1680064028,"type":"customer.created","data":{"object":{"id":"cus_1"}},"livemode":false,"pending_webhooks":1,"request":{"id":null}}`))
	s.hook(sent{method: "PATCH", target: "/" + strings.Repeat("very-long-segment/", 20), body: "plain text, not much of it", headers: hookglass.Headers{{Name: "Content-Type", Value: "text/plain"}}})
	main := s.hook(s.github("pull_request", "5f7c1a0e-2f6d-11f0-9d41-0242ac120002", `{"action":"opened","number":2,"pull_request":{"id":279147437,"title":"Update the README with new information.","user":{"login":"Codertocat","id":21031067,"site_admin":false},"body":"This is a pretty simple change that we need to pull into master.","labels":[{"name":"documentation","color":"0075ca"}],"draft":false,"merged":null,"additions":1,"deletions":1,"changed_files":1},"repository":{"id":186853002,"full_name":"Codertocat/Hello-World","private":false},"sender":{"login":"Codertocat","type":"User"}}`, "swordfish-swordfish"))

	for _, look := range []struct {
		name          string
		width, height int64
		scheme        string
	}{
		{"light-1440", 1440, 900, "light"}, {"dark-1440", 1440, 900, "dark"}, {"light-390", 390, 844, "light"}, {"dark-390", 390, 844, "dark"}, {"light-900", 900, 700, "light"},
	} {
		c := s.chrome(look.width, look.height)
		c.do(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.scheme}},
			})
			return err
		}))
		c.open(s.url + "/")
		c.picture(look.name + "-signin")
		c.open(s.link())
		c.until(`document.querySelector("#live").dataset.state === "live"`)
		c.picture(look.name + "-list")
		c.click(`#` + string(main) + ` a`)
		c.until(`document.querySelector("[data-panel]")`)
		c.picture(look.name + "-detail")
		for _, tab := range []string{"headers", "signature", "response"} {
			c.click("#tab-" + tab)
			c.picture(look.name + "-" + tab)
		}
		c.click(`.detail-actions .danger`)
		c.picture(look.name + "-delete")
		c.open(s.url + "/endpoints")
		c.picture(look.name + "-endpoints")
		c.open(s.page("?q=" + "sig%3Abad"))
		c.picture(look.name + "-fault")
		c.silent()
	}
}
