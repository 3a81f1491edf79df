package web_test

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"hookglass/internal/rest"
)

// The description of the API is a page that people read, though another edge serves it.
func TestTheDescriptionOfTheAPIFitsNarrowWindows(t *testing.T) {
	server := httptest.NewServer(rest.New(rest.Deps{}))
	t.Cleanup(server.Close)
	s := &site{t: t, url: server.URL}
	c := s.chrome(1440, 640)
	c.open(s.url + "/docs")
	eval[any](c, `document.querySelectorAll("details").forEach((d) => d.open = true)`)
	for _, width := range []int64{320, 390, 480, 481, 900, 1440} {
		c.do(chromedp.EmulateViewport(width, 640))
		c.until(fmt.Sprintf("innerWidth === %d", width))
		if wide := eval[int](c, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("at %d pixels %d stand out at the side", width, wide)
		}
	}
}
