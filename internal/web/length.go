package web

import (
	"context"
	"net/http"

	"hookglass/internal/httpd"
)

// The length of a compressed page reveals whether a text occurs in it twice. An attacker who watches a TLS connection,
// and makes a browser request a page with texts of their choice, could find out what else the page contains (BREACH).
// So only pages that the user navigated to are compressed: see docs/decisions/0041-what-is-compressed.md.

type zipKey struct{}

// zips lets the handlers of a request know whether its page may be compressed.
func (a *app) zips(r *http.Request) *http.Request {
	may := a.wentTo(r)
	return r.WithContext(context.WithValue(r.Context(), zipKey{}, &may))
}

// wentTo reports whether the user navigated to a page by typing its URL, or by a link or form of this site.
func (a *app) wentTo(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false // the answer to a form may contain a secret
	}
	if r.Header.Get("Sec-Fetch-Site") == "" { // a program, an old browser, or one without TLS
		return !a.overTLS(r)
	}
	dest := r.Header.Get("Sec-Fetch-Dest") // scripts request parts of a page by themselves, with the query of its URL
	return (dest == "document" || dest == "iframe") && fromHere(r)
}

// fromHere reports whether, according to the browser, no other site caused the request.
func fromHere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "same-origin" || site == "none"
}

// mayZip allows compression of a page, whoever caused the request.
func mayZip(r *http.Request) { *r.Context().Value(zipKey{}).(*bool) = true }

// answer writes a page that is in memory.
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
