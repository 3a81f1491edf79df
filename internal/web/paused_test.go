package web_test

import (
	"strconv"
	"strings"
	"testing"
)

func TestWhilePausedRequestsWait(t *testing.T) {
	s := newSite(t)
	s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.press("l")
	c.until(`document.querySelector("#live").textContent === "Paused"`)
	second, third := s.hook(json(`{}`)), s.hook(json(`{}`))
	c.until(`document.querySelector("#new").textContent === "2 new"`)
	if eval[bool](c, lists(second)+` !== null`) {
		t.Error("a request came into a list that is paused")
	}
	c.click("#live")
	c.until(lists(second) + ` && ` + lists(third) + ` && !document.querySelector("#new").checkVisibility() && document.querySelector("#live").textContent === "Live"`)
	c.silent()
}

// A list that is paused under load keeps no more in memory than it shows; what was passed is read on from the table.
func TestWhilePausedAFloodWaitsInBounds(t *testing.T) {
	s := newSite(t)
	before := s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.until(isLive)
	c.press("l")
	c.until(`document.querySelector("#live").textContent === "Paused"`)
	passed := s.hook(sent{target: "/passed"})
	for n := range 1010 {
		s.hook(sent{target: "/" + strconv.Itoa(n)})
	}
	c.untilIn(patience, `document.querySelector("#new").textContent === "1,011 new"`)
	c.click("#new")
	c.untilIn(patience, `document.querySelectorAll("a.row").length === 1000 && document.querySelector("[data-more]")`)
	if eval[bool](c, lists(passed)+` !== null || `+lists(before)+` !== null`) {
		t.Error("requests are missing in the middle of the list")
	}
	c.click("[data-more]")
	c.until(lists(before))
	paths := eval[string](c, `[...document.querySelectorAll("a.row")].map((row) => row.dataset.title).join()`)
	var want []string
	for n := range 1010 {
		want = append(want, "POST /"+strconv.Itoa(1009-n))
	}
	if paths != strings.Join(append(want, "POST /passed", "POST /"), ",") {
		t.Errorf("the list is %s", paths)
	}
	c.silent()
}

// A person pauses the list to read it: no flood, and nothing that changes meanwhile, takes what is there away.
func TestAPausedListKeepsItsRequestsInAFlood(t *testing.T) {
	s := newSite(t)
	first, second, deleted := s.hook(json(`{}`)), s.hook(json(`{}`)), s.hook(json(`{}`))
	c := s.chrome(1440, 900)
	c.open(s.link())
	c.open(s.page("/requests/" + string(second)))
	c.until(isLive)
	c.press("l")
	c.until(`document.querySelector("#live").textContent === "Paused"`)
	for range 1100 { // more than the list reads
		s.hook(json(`{}`))
	}
	c.untilIn(patience, `document.querySelector("#new").textContent === "1,100 new"`)
	eval[any](c, `performance.clearResourceTimings() ?? true`)
	if err := s.captures.Delete(t.Context(), s.who, string(s.endpoint.ID), string(deleted)); err != nil {
		t.Fatal(err)
	}
	// The marks of the open request are read after the list.
	c.untilIn(patience, `performance.getEntriesByType("resource").some((r) => r.name.endsWith("/marks"))`)
	if !eval[bool](c, lists(first)+` !== null && `+lists(second)+` !== null && document.querySelectorAll("a.row").length <= 3`) {
		t.Errorf("the paused list has %d requests and not the ones that it had", eval[int](c, `document.querySelectorAll("a.row").length`))
	}
	// What was deleted is gone when it goes on.
	c.click("#live")
	c.untilIn(patience, `document.querySelectorAll("a.row").length >= 1000 && `+lists(deleted)+` === null`)
	c.silent()
}
