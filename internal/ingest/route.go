package ingest

import (
	"net/url"
	"strings"
)

// splitTarget splits a request target in origin or absolute form (RFC 9112, section 3.2). Other forms have no path.
func splitTarget(target string) (authority, path, query string) {
	rest := target
	if rest != "" && rest[0] != '/' {
		i := strings.Index(rest, "://")
		if i <= 0 {
			return "", "", ""
		}
		rest = rest[i+len("://"):]
		j := strings.IndexAny(rest, "/?")
		if j < 0 {
			j = len(rest)
		}
		authority, rest = rest[:j], rest[j:]
	}
	path, query, _ = strings.Cut(rest, "?")
	return authority, path, query
}

// Path prefixes of the two receptions.
const (
	hooks = "/hooks"
	mails = "/mail"
)

// reception returns the reception to which a path belongs, or "", and the rest of the path. The path may start with
// that of the public address, or a proxy may have removed it. This is unambiguous, because no public address starts
// like a reception.
func (f *Front) reception(path string) (kind, rest string) {
	path, _ = cutPath(path, f.base)
	for _, kind := range []string{hooks, mails} {
		if rest, ok := cutPath(path, kind); ok {
			return kind, rest
		}
	}
	return "", ""
}

// cutPath removes whole leading segments from a path.
func cutPath(path, segments string) (rest string, ok bool) {
	if rest, ok := strings.CutPrefix(path, segments); ok && (rest == "" || rest[0] == '/') {
		return rest, true
	}
	return path, false
}

// isHook reports whether a path, as received, belongs to a reception.
func (f *Front) isHook(path string) bool {
	kind, _ := f.reception(path)
	return kind != ""
}

// splitHook splits the path of a hook, without its reception, into the endpoint's id and the rest, as received. The id
// is "" if it cannot be one.
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

// maxRef exceeds the length of any id or custom id (spec: decisions, section 5).
const maxRef = 64

var refByte = bytesOf("-_", alphanumeric)
