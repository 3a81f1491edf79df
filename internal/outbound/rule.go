package outbound

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Rule opens a network to outbound requests, on all ports or on some. The zero value opens nothing.
type Rule struct {
	prefix      netip.Prefix
	first, last uint16 // ports; 0, 0: all that the port policy allows
}

// ParseRule parses a network or an address, optionally with a port or a range of ports:
//
//	10.0.0.0/8    10.1.2.3    10.1.2.3/32:9000    10.1.2.3:9000-9010    fd00::/8    fd00::/8:443    [fd00::1]:443
//
// A rule that names ports opens them even against the port policy.
func ParseRule(s string) (Rule, error) {
	network, ports := s, ""
	if slash := strings.IndexByte(s, '/'); slash >= 0 {
		if colon := strings.IndexByte(s[slash:], ':'); colon >= 0 {
			network, ports = s[:slash+colon], s[slash+colon+1:]
			if ports == "" {
				return Rule{}, errors.New("a colon with no port behind it")
			}
		}
	} else if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return Rule{}, errors.New("a bracket that is not closed")
		}
		network = s[1:end]
		if rest := s[end+1:]; rest != "" {
			if rest[0] != ':' || rest == ":" {
				return Rule{}, errors.New("no port behind the bracket")
			}
			ports = rest[1:]
		}
	} else if strings.Count(s, ":") == 1 {
		network, ports, _ = strings.Cut(s, ":")
		if ports == "" {
			return Rule{}, errors.New("a colon with no port behind it")
		}
	}
	var r Rule
	if a, err := netip.ParseAddr(network); err == nil {
		r.prefix = netip.PrefixFrom(a.WithZone(""), a.BitLen())
		if a.Zone() != "" {
			return Rule{}, errors.New("an address with a zone")
		}
	} else if r.prefix, err = netip.ParsePrefix(network); err != nil {
		return Rule{}, errors.New("not a network such as 10.0.0.0/8 or 10.1.2.3/32:9000")
	}
	if r.prefix.Addr().Is4In6() {
		return Rule{}, errors.New("an IPv4 network is written as IPv4")
	}
	r.prefix = r.prefix.Masked()
	if ports == "" {
		return r, nil
	}
	first, last, ranged := strings.Cut(ports, "-")
	if !ranged {
		last = first
	}
	var err1, err2 error
	r.first, err1 = parsePort(first)
	r.last, err2 = parsePort(last)
	if err1 != nil || err2 != nil || r.last < r.first {
		return Rule{}, errors.New("ports are a number from 1 to 65535, or two with a dash")
	}
	return r, nil
}

// Everywhere returns rules that open every network, on the ports from first to last.
func Everywhere(first, last uint16) []Rule {
	return []Rule{{netip.PrefixFrom(netip.IPv4Unspecified(), 0), first, last}, {netip.PrefixFrom(netip.IPv6Unspecified(), 0), first, last}}
}

// Network returns the network that the rule opens, and whether it opens only some ports.
func (r Rule) Network() (network netip.Prefix, ports bool) { return r.prefix, r.first != 0 }

// String returns the rule in the form that ParseRule accepts.
func (r Rule) String() string {
	switch {
	case r.first == 0:
		return r.prefix.String()
	case r.first == r.last:
		return fmt.Sprintf("%s:%d", r.prefix, r.first)
	default:
		return fmt.Sprintf("%s:%d-%d", r.prefix, r.first, r.last)
	}
}

// opens reports whether the rule covers this address and port. An IPv4 address inside IPv6 is covered only by a rule
// for the IPv6 network, except in the mapped form, which the caller has unmapped.
func (r Rule) opens(at netip.AddrPort) bool {
	return r.prefix.Contains(at.Addr()) && (r.first == 0 || r.names(at.Port()))
}

// names reports whether the rule names this port.
func (r Rule) names(port uint16) bool { return r.first != 0 && r.first <= port && port <= r.last }

// parsePort parses a port in plain decimal digits.
func parsePort(s string) (uint16, error) {
	if s == "" || len(s) > 5 || strings.Trim(s, "0123456789") != "" {
		return 0, errors.New("not a port")
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err == nil && n == 0 {
		err = errors.New("port 0")
	}
	return uint16(n), err
}
