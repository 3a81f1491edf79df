package outbound

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"hookglass"
)

// maxURL equals the bound of an incoming request's head, so that no captured path is too long to be sent on.
const maxURL = 64 << 10

// target is a parsed URL.
type target struct {
	tls  bool
	host host
	port uint16
	path string // the request target: path and query as written
}

// host is a host in the canonical form that is sent and dialled.
type host struct {
	name string     // ASCII, lower case, perhaps with a final dot; empty for an address
	addr netip.Addr // unmapped; not valid for a name
}

// parseTarget parses a URL and judges it as spelled. Before it refuses a spelling as invalid, it judges what a more
// lenient reader would make of it: a forbidden target is called forbidden however it is spelled.
func (g *guard) parseTarget(field, raw string) (target, *hookglass.Error) {
	t, named, fault := readTarget(raw)
	switch {
	case named && g.forbids(t.host, t.port):
		return t, forbidden(field)
	case fault != "":
		return t, hookglass.Invalid(field, "%s", fault)
	}
	return t, nil
}

// AsSent returns a URL as the receiver of a request to it sees it in the request line and the Host field: a name in
// lower-case ASCII, no default port, at least a slash for a path, no fragment, and no bytes that a request line cannot
// hold. A URL to which no request can be sent is returned as it is.
func AsSent(url string) string {
	t, _, fault := readTarget(url)
	if fault != "" {
		return url
	}
	scheme := "http://"
	if t.tls {
		scheme = "https://"
	}
	return scheme + t.authority() + t.path
}

// readTarget parses a URL. It parses strictly, so that no other reader can understand the URL differently. A fault says
// what is wrong with the spelling; the host may be judged if it was named.
func readTarget(raw string) (t target, named bool, fault string) {
	scheme, rest, ok := strings.Cut(raw, "://")
	t.tls = strings.EqualFold(scheme, "https")
	switch {
	case len(raw) > maxURL:
		return t, false, fmt.Sprintf("is longer than %d bytes", maxURL)
	case !ok || !t.tls && !strings.EqualFold(scheme, "http"):
		return t, false, "must begin with http:// or https://"
	}
	for i := range len(raw) {
		if raw[i] <= ' ' || raw[i] == 0x7f {
			return t, false, "holds a space or a control character, which a URL may not"
		}
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	userinfo := strings.LastIndexByte(authority, '@')
	written, port := authority[userinfo+1:], ""
	if i := strings.LastIndexByte(written, ':'); i >= 0 && !strings.Contains(written[i:], "]") {
		written, port = written[:i], written[i:]
	}
	t.port = 80
	if t.tls {
		t.port = 443
	}
	if port != "" {
		p, err := parsePort(port[1:])
		if err != nil {
			return t, false, "has a port that is not a number from 1 to 65535"
		}
		t.port = p
	}
	t.host, fault = readHost(written)
	switch {
	case fault != "":
	case userinfo >= 0:
		fault = "must not hold a user name or a password; send an Authorization header instead"
	case strings.HasPrefix(path, `\`):
		fault = `has a backslash behind its host`
	}
	t.path = requestTarget(path)
	return t, true, fault
}

// forbids reports whether a host is forbidden whatever it resolves to.
func (g *guard) forbids(h host, port uint16) bool {
	switch name := strings.TrimSuffix(h.name, "."); {
	case h.addr.IsValid():
		return !g.permits(netip.AddrPortFrom(h.addr, port), false)
	case isLocalhost(h.name):
		return !slices.ContainsFunc(loopbacks, func(a netip.Addr) bool { return g.permits(netip.AddrPortFrom(a, port), false) })
	case metadataNames[name], g.isOwnName(name, port):
		return true
	}
	return slices.Contains(shutPorts, port) && !slices.ContainsFunc(g.allow, func(r Rule) bool { return r.names(port) })
}

// loopbacks are the addresses of localhost, which is never resolved (RFC 6761, section 6.3).
var loopbacks = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

func isLocalhost(name string) bool {
	name = strings.TrimSuffix(name, ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// lookup maps internationalized names as browsers and resolvers do (UTS 46), which also maps the many forms of digits
// and dots to plain ones.
var lookup = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.BidiRule())

// readHost parses a host as it stands in a URL, without its port. A fault says what is wrong with the spelling; the
// host is then the most lenient reading, to be judged but not used.
func readHost(written string) (h host, fault string) {
	const notName = "has a host that is not a name or an address"
	if strings.HasPrefix(written, "[") || strings.Count(written, ":") > 0 {
		return readHost6(written)
	}
	s := written
	if strings.Contains(s, "%") {
		fault = "has a host with a percent sign"
		var err error
		if s, err = url.PathUnescape(s); err != nil {
			return host{}, fault
		}
	}
	if !isASCII(s) {
		if !utf8.ValidString(s) {
			return host{}, notName
		}
		var err error
		if s, err = lookup.ToASCII(s); err != nil {
			return host{}, notName
		}
	}
	s = strings.ToLower(s)
	bare := strings.TrimRight(s, ".")
	if bare == "" || len(s)-len(bare) > 1 {
		s, fault = bare, notName
	}
	if last := bare[strings.LastIndexByte(bare, '.')+1:]; isNumber(last) {
		a, ok := readIPv4(bare)
		if !ok {
			return host{}, notName
		}
		if a.String() != written {
			fault = "has an IPv4 address that is not written as four decimal numbers"
		}
		return host{addr: a}, fault
	}
	if fault == "" && !isName(bare) {
		fault = notName
	}
	return host{name: s}, fault
}

// readHost6 parses an IPv6 address in brackets.
func readHost6(written string) (host, string) {
	const fault = "has an IPv6 address that is not written as such in brackets"
	s, closed := strings.CutSuffix(strings.TrimPrefix(written, "["), "]")
	bare, _, zoned := strings.Cut(s, "%")
	a, err := netip.ParseAddr(bare)
	switch {
	case err != nil:
		return host{}, fault
	case zoned: // a zone names an interface of this machine: forbidden with any address
		return host{addr: netip.IPv6Unspecified()}, fault
	case !closed || written[0] != '[' || a.Is4():
		return host{addr: a.Unmap()}, fault
	}
	return host{addr: a.Unmap()}, ""
}

// readIPv4 parses an address in any form that inet_aton accepts: one to four numbers, decimal, octal or hexadecimal, of
// which the last fills the remaining bytes.
func readIPv4(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, p := range parts {
		n, ok := readNumber(p)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if !ok || n>>bits != 0 {
			return netip.Addr{}, false
		}
		sum = sum<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}

func readNumber(s string) (uint64, bool) {
	base := 10
	switch {
	case strings.HasPrefix(s, "0x"):
		s, base = s[2:], 16
		if s == "" {
			return 0, true // as inet_aton and browsers do
		}
	case len(s) > 1 && s[0] == '0':
		s, base = s[1:], 8
	}
	n, err := strconv.ParseUint(s, base, 64)
	return n, err == nil
}

// isNumber reports whether a label can end only an IPv4 address, never a name (WHATWG URL, "ends in a number").
func isNumber(label string) bool {
	if label == "" {
		return false
	}
	if strings.Trim(label, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(label, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// isName reports whether s is a name in lower-case ASCII without a final dot (RFC 1035, with the underscore that many
// private names have).
func isName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// requestTarget builds the target of a request line from what follows the authority: it cuts the fragment and
// percent-encodes bytes that a request line cannot hold. Nothing else changes.
func requestTarget(s string) string {
	s, _, _ = strings.Cut(s, "#")
	if !strings.HasPrefix(s, "/") {
		s = "/" + s
	}
	if isASCII(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < 0x80 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// authority returns the value of the Host field.
func (t target) authority() string {
	s := t.host.name
	if a := t.host.addr; a.Is4() {
		s = a.String()
	} else if a.Is6() {
		s = "[" + a.String() + "]"
	}
	if t.tls && t.port == 443 || !t.tls && t.port == 80 {
		return s
	}
	return s + ":" + strconv.Itoa(int(t.port))
}
