package web

import (
	"context"
	"net/http"

	"hookglass/internal/httpd"
)

// A compressed page tells by its length whether a text stands in it twice. Who listens on a line with TLS, and has a
// browser ask for a page with one text of their choice after another, would find out what else stands there (BREACH).
// So what is compressed is what a person went to by themselves: see docs/decisions/0041-what-is-compressed.md.

type zipKey struct{}

// zips lets what answers a request know whether its page may be compressed.
func (a *app) zips(r *http.Request) *http.Request {
	may := a.wentTo(r)
	return r.WithContext(context.WithValue(r.Context(), zipKey{}, &may))
}

// wentTo reports whether a person went to a page by an address that they typed, or by a link or form of this site.
func (a *app) wentTo(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false // the answer to a form may show a secret, once
	}
	if r.Header.Get("Sec-Fetch-Site") == "" { // a program, a browser of old, or one that is not asked to keep a secret
		return !a.overTLS(r)
	}
	dest := r.Header.Get("Sec-Fetch-Dest") // a script asks for the parts of a page by itself, with the query of its address
	return (dest == "document" || dest == "iframe") && fromHere(r)
}

// fromHere reports whether a browser says that no other site had it ask.
func fromHere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "same-origin" || site == "none"
}

// mayZip says that a page may be compressed, whoever had the browser ask for it.
func mayZip(r *http.Request) { *r.Context().Value(zipKey{}).(*bool) = true }

// answer writes a page that is held whole.
func answer(w http.ResponseWriter, r *http.Request, status int, page []byte) {
	if may, known := r.Context().Value(zipKey{}).(*bool); !known || !*may {
		w.WriteHeader(status)
		_, _ = w.Write(page) // nobody is left to tell
		return
	}
	z := httpd.NewZip(w, r, status)
	_, _ = z.Write(page)
	_ = z.Close()
}
