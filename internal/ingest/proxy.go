package ingest

import (
	"net/netip"
	"strings"

	"hookglass"
	"hookglass/internal/capture"
)

// peer is the other end of a connection.
type peer struct {
	addr    netip.Addr
	trusted bool // a proxy whose word about senders is believed
}

func (f *Front) peerOf(addr netip.Addr) peer {
	addr = addr.Unmap()
	return peer{addr, f.trusts(addr)}
}

func (f *Front) trusts(addr netip.Addr) bool {
	for _, p := range f.cfg.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// origin says in the arrival who sent it, to which authority and by which scheme.
//
// A trusted proxy's X-Forwarded-For is read from the right, the end that proxies append to: the first hop
// that is not itself a trusted proxy is the sender. X-Forwarded-Host and -Proto are read at the same distance
// from the right, where they hold several values. Forwarded (RFC 7239) is read in the same manner, when
// there is no X-Forwarded-For: a proxy that sets one of the two and passes the other through would
// let the sender choose its address.
func (f *Front) origin(a *capture.Arrival, p peer, host string) {
	a.Client, a.Host, a.Scheme = p.addr, host, "http"
	if u := f.cfg.PublicURL; u != nil {
		if a.Host == "" {
			a.Host = u.Host
		}
		if strings.EqualFold(a.Host, u.Host) {
			a.Scheme = u.Scheme
		}
	}
	if !p.trusted {
		return
	}
	fwdHost, fwdProto := "", ""
	if hops := list(a.Headers, "X-Forwarded-For"); len(hops) > 0 {
		back := f.walk(a, hops)
		fwdHost = fromRight(list(a.Headers, "X-Forwarded-Host"), back)
		fwdProto = fromRight(list(a.Headers, "X-Forwarded-Proto"), back)
	} else if elements := list(a.Headers, "Forwarded"); len(elements) > 0 {
		hops := make([]string, len(elements))
		for i, e := range elements {
			hops[i] = parameter(e, "for")
		}
		e := fromRight(elements, f.walk(a, hops))
		fwdHost, fwdProto = parameter(e, "host"), parameter(e, "proto")
	} else {
		fwdHost = fromRight(list(a.Headers, "X-Forwarded-Host"), 0)
		fwdProto = fromRight(list(a.Headers, "X-Forwarded-Proto"), 0)
	}
	if validHost(fwdHost) {
		a.Host = fwdHost
	}
	if proto := strings.ToLower(fwdProto); proto == "http" || proto == "https" {
		a.Scheme = proto
	}
}

// walk goes from the right over hops that are trusted proxies and names the sender in the arrival. It
// returns how many hops from the right that one stands. A hop that is no address (unknown, a name) ends the
// walk at the proxy that reported it.
func (f *Front) walk(a *capture.Arrival, hops []string) (back int) {
	for i := len(hops) - 1; i >= 0; i-- {
		addr, ok := hopAddr(hops[i])
		if !ok {
			break
		}
		a.Client, back = addr, len(hops)-1-i
		if !f.trusts(addr) {
			break
		}
	}
	return back
}

// hopAddr reads an address with or without a port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1]:80.
func hopAddr(s string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")); err == nil {
		return addr.Unmap().WithZone(""), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	return netip.Addr{}, false
}

// list returns the elements of all fields of that name, in order (RFC 9110, section 5.6.1). A comma in a
// quoted string separates nothing.
func list(headers hookglass.Headers, name string) []string {
	var elements []string
	for i := range headers {
		if len(headers[i].Name) != len(name) || !strings.EqualFold(headers[i].Name, name) {
			continue
		}
		elements = splitUnquoted(elements, headers[i].Value, ',')
	}
	return elements
}

func splitUnquoted(dst []string, s string, sep byte) []string {
	quoted, from := false, 0
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == sep && !quoted {
			if part := trimBlank(s[from:i]); part != "" {
				dst = append(dst, part)
			}
			from = i + 1
			continue
		}
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
			if i == len(s) {
				return dst // the string never ends: nothing of it can be told
			}
		}
	}
	return dst
}

// fromRight returns the element so many places from the right, the leftmost when there are fewer.
func fromRight(elements []string, back int) string {
	if len(elements) == 0 {
		return ""
	}
	return elements[max(len(elements)-1-back, 0)]
}

// parameter returns the value of a parameter of one element of Forwarded (RFC 7239, section 4).
func parameter(element, name string) string {
	for _, pair := range splitUnquoted(nil, element, ';') {
		if k, v, ok := strings.Cut(pair, "="); ok && strings.EqualFold(k, name) {
			if len(v) >= 2 && v[0] == '"' && v[len(v)-1] == '"' {
				v = strings.ReplaceAll(v[1:len(v)-1], `\`, "")
			}
			return v
		}
	}
	return ""
}

func validHost(host string) bool {
	if host == "" {
		return false
	}
	for i := range len(host) {
		if !hostByte[host[i]] {
			return false
		}
	}
	return true
}
