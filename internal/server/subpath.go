package server

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A service may be at a path of its host: --public-url https://example.com/hookglass. A proxy may strip that path or
// pass it on. Both work, as long as none of our own paths begins like it.

// basePattern matches such a path: without escapes or anything else that a proxy might rewrite.
var basePattern = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

// ownSegments are the first segments of our own paths.
var ownSegments = []string{
	"hooks", "mail", "api", "docs", "mcp", "cable", "healthz", "readyz", "metrics", "assets", "favicon.ico", "openapi.json", "openapi.yaml",
	"account", "activity", "auth", "channels", "endpoint-list", "endpoint-names", "endpoints", "flows", "secrets", "session", "setup",
	"shared", "tags", "temporary", "sign-in", "sign-out", "sign-up", "login", "signin", "signup",
}

// parsePublicURL reads --public-url.
func parsePublicURL(value string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(value, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil || !isPort(u.Port()) {
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

// below returns a path, which may be escaped, without the path of the public URL.
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

// fromBelow calls next with requests without the path of the public URL.
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
