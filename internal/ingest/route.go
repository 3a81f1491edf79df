package ingest

import (
	"net/url"
	"strings"
)

// splitTarget cuts a request target in origin or absolute form (RFC 9112, section 3.2). Any other form has
// no path.
func splitTarget(target string) (authority, path, query string, hasQuery bool) {
	rest := target
	if rest != "" && rest[0] != '/' {
		i := strings.Index(rest, "://")
		if i <= 0 {
			return "", "", "", false
		}
		rest = rest[i+len("://"):]
		j := strings.IndexAny(rest, "/?")
		if j < 0 {
			j = len(rest)
		}
		authority, rest = rest[:j], rest[j:]
	}
	path, query, hasQuery = strings.Cut(rest, "?")
	return authority, path, query, hasQuery
}

// The receptions, by the beginning of their paths.
const (
	hooks = "/hooks"
	mails = "/mail"
)

// reception returns the one that a path, as received, belongs to, or "".
func reception(path string) string {
	for _, prefix := range []string{hooks, mails} {
		if rest, ok := strings.CutPrefix(path, prefix); ok && (rest == "" || rest[0] == '/') {
			return prefix
		}
	}
	return ""
}

// isHook reports whether a path, as received, is one of reception.
func isHook(path string) bool { return reception(path) != "" }

// claimsHook reports whether a head that may be malformed or incomplete asks for a hook.
func claimsHook(text []byte) bool {
	line, _, _ := strings.Cut(string(text[:min(len(text), 512)]), "\n")
	_, rest, ok := strings.Cut(line, " ")
	if !ok {
		return false
	}
	target, _, _ := strings.Cut(rest, " ")
	_, path, _, _ := splitTarget(strings.TrimSuffix(target, "\r"))
	return isHook(path)
}

// splitHook cuts the path of a hook behind its reception into the endpoint's id and what follows it, as received. The id is ""
// where none can exist that is written so.
func splitHook(path string) (ref, sub string) {
	rest := strings.TrimPrefix(path, "/")
	ref, sub = rest, "/"
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		ref, sub = rest[:i], rest[i:]
	}
	if len(ref) > 3*maxRef {
		return "", sub
	}
	if strings.IndexByte(ref, '%') >= 0 {
		ref, _ = url.PathUnescape(ref) // "" on error
	}
	if len(ref) > maxRef {
		return "", sub
	}
	for i := range len(ref) {
		if !refByte[ref[i]] {
			return "", sub
		}
	}
	return ref, sub
}

// maxRef is more than any id or custom id has (decisions, section 5).
const maxRef = 64

var refByte = bytesOf("-_", alphanumeric)
