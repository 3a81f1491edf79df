package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// The app may be at a path of its host (--public-url https://example.com/hookglass). Inside, every path is written and
// routed as if it were at the root; the path is added to everything that leaves: URLs in markup, redirects and cookies.

// base is the path of the app. nil is the root.
type base struct {
	path   string // without a slash at its end
	markup *strings.Replacer
}

// addressed are the attributes that contain a URL.
var addressed = []string{"href", "src", "action", "formaction", "data-again", "data-ask", "data-base", "data-check", "data-copy-link", "data-find", "data-fresh", "data-more", "data-session", "data-stream", "data-times"}

func newBase(publicURL string) *base {
	u, err := url.Parse(publicURL)
	if err != nil || strings.Trim(u.Path, "/") == "" {
		return nil
	}
	b := &base{path: strings.TrimRight(u.Path, "/")}
	// Quotation marks in texts and values are escaped, so what looks like an attribute is one.
	var pairs []string
	for _, name := range addressed {
		begin := " " + name + `="`
		pairs = append(pairs, begin+"/", begin+b.path+"/")
	}
	b.markup = strings.NewReplacer(pairs...)
	return b
}

type baseKey struct{}

// within passes the base to the handlers of a request.
func (b *base) within(next http.Handler) http.Handler {
	if b == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), baseKey{}, b)))
	})
}

func baseOf(ctx context.Context) *base {
	b, _ := ctx.Value(baseKey{}).(*base)
	return b
}

// address puts the base before a path of the app.
func (b *base) address(path string) string {
	if b == nil {
		return path
	}
	return b.path + path
}

// page puts the base before the addresses in markup.
func (b *base) page(markup []byte) []byte {
	if b == nil {
		return markup
	}
	return []byte(b.markup.Replace(string(markup)))
}
