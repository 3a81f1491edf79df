package httpd

import (
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of proxies that are trusted to name the sender.
type Proxies []netip.Prefix

// Trusts reports whether an address is a proxy's.
func (p Proxies) Trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(prefix netip.Prefix) bool { return prefix.Contains(addr) })
}

// Origin is the real client of a request, and the address that it used.
type Origin struct {
	Client netip.Addr
	Host   string
	Scheme string // http or https
}

// Origin returns who sent a request, and the authority and scheme that they used. values returns the field values of a
// canonical header name, in order.
//
// X-Forwarded-For from a trusted proxy is read from the right, the end that proxies append to: the first hop that is
// not itself a trusted proxy is the sender. X-Forwarded-Host and -Proto are read at the same distance from the right,
// if they have several values. Forwarded (RFC 7239) is read the same way, but only without X-Forwarded-For: if a proxy
// sets one of the two and passes the other on, the sender could choose its address.
func (p Proxies) Origin(peer netip.Addr, host, scheme string, values func(name string) []string) Origin {
	o := Origin{peer.Unmap().WithZone(""), host, scheme}
	if !p.Trusts(o.Client) {
		return o
	}
	fwdHost, fwdProto := "", ""
	if hops := words(values("X-Forwarded-For")); len(hops) > 0 {
		back := p.walk(&o, hops)
		fwdHost = fromRight(words(values("X-Forwarded-Host")), back)
		fwdProto = fromRight(words(values("X-Forwarded-Proto")), back)
	} else if forwarded := elements(values("Forwarded")); len(forwarded) > 0 {
		hops := make([]string, len(forwarded))
		for i, e := range forwarded {
			hops[i] = parameter(e, "for")
		}
		e := fromRight(forwarded, p.walk(&o, hops))
		fwdHost, fwdProto = parameter(e, "host"), parameter(e, "proto")
	} else {
		fwdHost = fromRight(words(values("X-Forwarded-Host")), 0)
		fwdProto = fromRight(words(values("X-Forwarded-Proto")), 0)
	}
	if validHost(fwdHost) {
		o.Host = fwdHost
	}
	if proto := strings.ToLower(fwdProto); proto == "http" || proto == "https" {
		o.Scheme = proto
	}
	return o
}

// walk walks from the right over hops that are trusted proxies to the sender, and returns its distance from the right.
// A hop that is not an address (unknown, a name) ends the walk at the proxy that reported it.
func (p Proxies) walk(o *Origin, hops []string) (back int) {
	for i := len(hops) - 1; i >= 0; i-- {
		addr, ok := hopAddr(hops[i])
		if !ok {
			break
		}
		o.Client, back = addr, len(hops)-1-i
		if !p.Trusts(addr) {
			break
		}
	}
	return back
}

// hopAddr parses an address with or without a port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1]:80.
func hopAddr(s string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")); err == nil {
		return addr.Unmap().WithZone(""), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	return netip.Addr{}, false
}

// words returns the members of the X-Forwarded fields, in order. Quotes have no meaning in them.
func words(values []string) []string {
	var all []string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.Trim(part, " \t"); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

// elements returns the members of a list-valued field, in order (RFC 9110, section 5.6.1). A comma in a quoted string
// does not separate members.
func elements(values []string) []string {
	var all []string
	for _, v := range values {
		all = append(all, splitUnquoted(v, ',')...)
	}
	return all
}

// splitUnquoted works from the right: a quote that a sender leaves open must not swallow what proxies append.
func splitUnquoted(s string, sep byte) (parts []string) {
	quoted, end := false, len(s)
	for i := len(s) - 1; i >= -1; i-- {
		switch {
		case i < 0 || s[i] == sep && !quoted:
			if part := strings.Trim(s[i+1:end], " \t"); part != "" {
				parts = append(parts, part)
			}
			end = i
		case s[i] == '"':
			if escapes := i - len(strings.TrimRight(s[:i], `\`)); escapes%2 == 0 {
				quoted = !quoted
			}
		}
	}
	slices.Reverse(parts)
	return parts
}

// fromRight returns the element at a distance from the right, or the leftmost if there are fewer.
func fromRight(elements []string, back int) string {
	if len(elements) == 0 {
		return ""
	}
	return elements[max(len(elements)-1-back, 0)]
}

// parameter returns the value of a parameter of one element of Forwarded (RFC 7239, section 4).
func parameter(element, name string) string {
	for _, pair := range splitUnquoted(element, ';') {
		if k, v, ok := strings.Cut(pair, "="); ok && strings.EqualFold(k, name) {
			if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
				v = strings.ReplaceAll(v[1:len(v)-1], `\`, "")
			}
			return v
		}
	}
	return ""
}

// validHost reports whether a text has only characters of names, addresses and ports.
func validHost(host string) bool {
	if host == "" || len(host) > 255 {
		return false
	}
	for i := range len(host) {
		c := host[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._:[]", c) >= 0) {
			return false
		}
	}
	return true
}
