package web_test

import (
	"regexp"
	"strings"
	"testing"
)

// While nodes are replaced one after another, a page of one asks another for the files of its own version.
func TestAFileOfAnotherVersionIsAnsweredWithTheOneHere(t *testing.T) {
	b := newSite(t).visitor()
	page := b.want(200, "GET", "/sign-in", nil).body
	here := regexp.MustCompile(`/assets/app\.[0-9a-v]{16}\.css`).FindString(page)
	other := b.want(200, "GET", "/assets/app.0123456789abcdef.css", nil)
	if other.body != b.want(200, "GET", here, nil).body || other.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d bytes, %v", len(other.body), other.Header)
	}
	b.want(404, "GET", "/assets/none.0123456789abcdef.css", nil)
	b.want(404, "GET", "/assets/app.0123456789abcdef.js", nil)
}

// Browsers ask for it on pages that name no icon of their own.
func TestTheIconIsFoundByItsUsualName(t *testing.T) {
	b := newSite(t).visitor()
	to := b.want(303, "GET", "/favicon.ico", nil).Header.Get("Location")
	if icon := b.want(200, "GET", to, nil); icon.Header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(icon.body, "<svg") {
		t.Errorf("%s is %v", to, icon.Header)
	}
}

// WebKit takes a container for as wide as on the screen and a pixel for what it is without zoom, so a zoomed page would
// have the columns that it has no room for (WCAG 1.4.10).
func TestContainersAreNotMeasuredInPixels(t *testing.T) {
	b := newSite(t).visitor()
	here := regexp.MustCompile(`/assets/app\.[0-9a-v]{16}\.css`).FindString(b.want(200, "GET", "/sign-in", nil).body)
	queries := regexp.MustCompile(`@container [^{]*`).FindAllString(b.want(200, "GET", here, nil).body, -1)
	if len(queries) == 0 {
		t.Fatal("no container is measured")
	}
	for _, query := range queries {
		if regexp.MustCompile(`\dpx`).MatchString(query) {
			t.Error(query)
		}
	}
}
