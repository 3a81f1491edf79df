package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"hookglass/internal/web"
)

// coded asks for a page as a browser does that says it reads gzip, and returns how it came and what it says.
func (b *browser) coded(method, address string, form url.Values, header ...string) (coding, text string) {
	b.t.Helper()
	a := b.do(method, address, form, append(header, "Accept-Encoding", "gzip")...)
	if a.StatusCode >= 300 {
		b.t.Fatalf("%s %s: %d %s", method, address, a.StatusCode, a.body)
	}
	if coding = a.Header.Get("Content-Encoding"); coding == "" {
		return "", a.body
	}
	z, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		b.t.Fatal(err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		b.t.Fatal(err)
	}
	return coding, string(content)
}

// Who can have a browser ask for pages with texts of their choice reads by the length of what is compressed what else
// is there.
func TestWhatIsCompressedIsWhatAPersonWentTo(t *testing.T) {
	s := newSite(t)
	event := s.hook(json(`{"text":"` + strings.Repeat("again ", 1000) + `"}`))
	b := s.signedIn()
	one := s.page("/requests/" + string(event))
	asked := func(site, dest string) []string { return []string{"Sec-Fetch-Site", site, "Sec-Fetch-Dest", dest} }
	for _, c := range []struct {
		name, address string
		header        []string
		coding        string
	}{
		{"a link of the site", one, asked("same-origin", "document"), "gzip"},
		{"an address that was typed", one, asked("none", "document"), "gzip"},
		{"a link of another site", one, asked("cross-site", "document"), ""},
		{"a link of a neighbour", one, asked("same-site", "document"), ""},
		{"a list that a script asks for", s.page("/rows"), asked("same-origin", "empty"), ""},
		{"the panel", one + "/panel", asked("same-origin", "empty"), "gzip"},
		{"the panel of a search", one + "/panel?q=again", asked("same-origin", "empty"), ""},
		{"the panel, for another site", one + "/panel", asked("cross-site", "empty"), ""},
		{"a program, where nothing is hidden on the line", one, nil, "gzip"},
		{"the bytes of a body", one + "/body", asked("same-origin", "document"), ""},
		{"an export", s.page("/export?format=ndjson"), asked("same-origin", "document"), ""},
	} {
		coding, text := b.coded("GET", c.address, nil, c.header...)
		if coding != c.coding || !strings.Contains(text, "again again") && !strings.HasSuffix(c.address, "/rows") {
			t.Errorf("%s: coded %q, want %q; %d bytes", c.name, coding, c.coding, len(text))
		}
	}
	// The answer to a form may show a secret once; who has a link sees all there is.
	coding, page := b.coded("POST", one+"/share", url.Values{"expires": {"1h"}}, asked("same-origin", "document")...)
	if coding != "" {
		t.Errorf("a page with a secret is coded %q", coding)
	}
	_, link, _ := strings.Cut(page, `id="share-link">`)
	link, _, _ = strings.Cut(link, "<")
	if coding, text := s.visitor().coded("GET", link, nil, asked("cross-site", "document")...); coding != "gzip" || !strings.Contains(text, "again again") {
		t.Errorf("a shared request is coded %q", coding)
	}
}

func TestOverTLSAPageIsCompressedForBrowsersThatSayWhoAskedForIt(t *testing.T) {
	s := newSiteWith(t, func(d *web.Deps) { d.Addresses.PublicURL = "https://hooks.example.com" })
	b := s.visitor()
	long := "/sign-in?next=/" + strings.Repeat("x", 8<<10) // a page that is worth it
	if coding, _ := b.coded("GET", long, nil); coding != "" {
		t.Errorf("coded %q for a browser that does not", coding)
	}
	if coding, text := b.coded("GET", long, nil, "Sec-Fetch-Site", "none", "Sec-Fetch-Dest", "document"); coding != "gzip" || !strings.Contains(text, "Sign in") {
		t.Errorf("coded %q", coding)
	}
	if a := b.do("HEAD", long, nil, "Accept-Encoding", "gzip", "Sec-Fetch-Site", "none", "Sec-Fetch-Dest", "document"); a.Header.Get("Content-Encoding") != "gzip" || a.Header.Get("Vary") != "Accept-Encoding" || a.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %d %v", a.StatusCode, a.Header)
	}
}
