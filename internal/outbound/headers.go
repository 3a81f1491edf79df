package outbound

import (
	"strings"

	"hookglass"
)

// perConnection are the fields that belong to one connection and not to the message (RFC 9110, section 7.6.1; Proxy-*
// fields are matched by prefix), and those that Do computes or never sends. Lower case.
var perConnection = map[string]bool{
	"connection": true, "keep-alive": true, "te": true, "trailer": true, "trailers": true, "transfer-encoding": true, "upgrade": true, "http2-settings": true,
	"host": true, "content-length": true, "expect": true,
}

// Sanitize returns a copy of h without the hop-by-hop fields, the fields that Connection names, and Host,
// Content-Length and Expect, which Do computes or never sends. It keeps the order and spelling of the rest. Do applies
// it to every request; a caller that shows what will be sent applies it too.
func Sanitize(h hookglass.Headers) hookglass.Headers {
	return appendSanitized(make(hookglass.Headers, 0, len(h)+4), h) // callers add some
}

func appendSanitized(dst, h hookglass.Headers) hookglass.Headers {
	var named map[string]bool
	for _, v := range h.Values("Connection") {
		for option := range strings.SplitSeq(v, ",") {
			if named == nil {
				named = map[string]bool{}
			}
			named[strings.ToLower(strings.Trim(option, " \t"))] = true
		}
	}
	for _, f := range h {
		if !ofConnection(f.Name) && (named == nil || !named[strings.ToLower(f.Name)]) {
			dst = append(dst, f)
		}
	}
	return dst
}

// ofConnection reports whether a field is in perConnection, in any spelling, or begins with Proxy-.
func ofConnection(name string) bool {
	const proxy = "proxy-"
	if len(name) >= len(proxy) && strings.EqualFold(name[:len(proxy)], proxy) {
		return true
	}
	var lower [len("transfer-encoding")]byte // fits the longest name; no allocation, as every header field comes here
	if len(name) > len(lower) {
		return false
	}
	for i := range len(name) {
		b := name[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	return perConnection[string(lower[:len(name)])]
}

// without returns a copy of h that lacks the fields whose name matches, with room for one more.
func without(h hookglass.Headers, match func(name string) bool) hookglass.Headers {
	out := make(hookglass.Headers, 0, len(h)+1)
	for _, f := range h {
		if !match(f.Name) {
			out = append(out, f)
		}
	}
	return out
}
