package web_test

import (
	"testing"
)

func TestLook(t *testing.T) {
	s := newSite(t)
	s.create("Stripe staging", "webhook")
	s.create("inbox", "email")
	c := s.chrome(1440, 900)
	c.open(s.url + "/")
	c.picture("signin")
	c.open(s.link())
	c.until(`document.querySelector("#live").dataset.state === "live"`)
	c.picture("waiting")
	s.hook(json(`{"hello":"world","n":1.0,"list":[1,2,{"a":null}],"deep":{"a":{"b":{"c":{"d":true}}}}}`))
	c.until(`document.querySelector("[data-panel]")`)
	c.picture("first")
	c.open(s.url + "/endpoints")
	c.picture("endpoints")
	c.open(s.page("/settings"))
	c.picture("settings")
	c.silent()
}
