package server

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A service may stand below a path of its host: --public-url https://example.com/hookglass. A proxy may cut that path
// from what it passes on or leave it; both are understood, which needs that no path of ours begins as it does.

// basePattern is what such a path may look like: nothing that is escaped, or that a proxy might spell otherwise.
var basePattern = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

// ownSegments begin paths of ours.
var ownSegments = []string{
	"hooks", "mail", "api", "docs", "mcp", "cable", "healthz", "readyz", "metrics", "assets", "openapi.json", "openapi.yaml",
	"account", "activity", "auth", "channels", "endpoints", "secrets", "setup", "shared", "sign-in", "sign-out", "sign-up", "tags", "temporary",
}

// parsePublicURL reads --public-url.
func parsePublicURL(value string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(value, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || !isPort(u.Port()) {
		return nil, fmt.Errorf("%q is not an http or https address", value)
	}
	if u.Path == "" {
		return u, nil
	}
	if !basePattern.MatchString(u.Path) || u.RawPath != "" {
		return nil, fmt.Errorf("the path of %q may hold letters, digits and - . _ ~ alone", value)
	}
	if first := strings.Split(u.Path, "/")[1]; slices.Contains(ownSegments, first) {
		return nil, fmt.Errorf("the path of %q may not begin with /%s, as paths of the service do", value, first)
	}
	return u, nil
}

// below is a path, which may be escaped, without that of the public address.
func (s *Server) below(path string) string {
	rest, ok := strings.CutPrefix(path, s.public.Path)
	switch {
	case !ok || rest != "" && rest[0] != '/':
		return path
	case rest == "":
		return "/"
	}
	return rest
}

// fromBelow gives next its requests without the path of the public address.
func (s *Server) fromBelow(next http.Handler) http.Handler {
	if s.public.Path == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := *r
		u := *r.URL
		u.Path = s.below(r.URL.Path)
		if u.RawPath != "" {
			u.RawPath = s.below(r.URL.RawPath)
		}
		inner.URL, inner.RequestURI = &u, u.RequestURI()
		next.ServeHTTP(w, &inner)
	})
}
