package httpd

import (
	"net/http"
	"path"
	"strings"
)

// Mux routes by method and path as http.ServeMux does, and answers unknown ones in JSON: 404, or 405 with Allow. It
// never redirects: an unclean path does not exist.
type Mux struct{ mux *http.ServeMux }

// NewMux returns an empty Mux.
func NewMux() *Mux {
	m := &Mux{http.NewServeMux()}
	m.mux.HandleFunc("/", m.unknown)
	return m
}

// HandleFunc registers a handler for a pattern of http.ServeMux, with a method.
func (m *Mux) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	m.mux.HandleFunc(pattern, handler)
}

// ServeHTTP implements http.Handler.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The escaped path: an escaped slash or dot is part of a name.
	if p := r.URL.EscapedPath(); !Clean(p) {
		m.unknown(w, r)
		return
	}
	m.mux.ServeHTTP(w, r)
}

// Clean reports whether http.ServeMux takes a path, escaped as received, without a redirect. A sender of webhooks would
// follow that without its body.
func Clean(p string) bool {
	cleaned := path.Clean(p)
	return strings.HasPrefix(p, "/") && (p == cleaned || cleaned != "/" && p == cleaned+"/")
}

var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// unknown answers 405 for a method that the path does not have, and 404 for a path that does not exist.
func (m *Mux) unknown(w http.ResponseWriter, r *http.Request) {
	allowed := Allowed(m.mux, r)
	if len(allowed) == 0 || path.Clean(r.URL.EscapedPath()) != r.URL.EscapedPath() {
		WriteError(w, r, ErrNowhere)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	WriteError(w, r, ErrMethod)
}

// Allowed returns the methods that a mux has for the path of a request. Its pattern "/" must be the one for unknown
// paths.
func Allowed(mux *http.ServeMux, r *http.Request) (allowed []string) {
	for _, method := range methods {
		probe := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := mux.Handler(probe); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	return allowed
}
