package outbound

import (
	"net"
	"net/netip"
	"slices"
)

// guard decides which addresses may be reached.
type guard struct {
	allow []Rule
	own   []netip.AddrPort
	hosts []netip.AddrPort // the addresses in Config.OwnHosts
	names []*ownName       // the names in it
}

// permits reports whether a connection may be made to an address. With anyPort the port policy does not apply, for
// protocols other than HTTP; this installation's own listeners stay shut.
func (g *guard) permits(at netip.AddrPort, anyPort bool) bool {
	a, port := at.Addr().Unmap(), at.Port()
	at = netip.AddrPortFrom(a, port)
	if a.IsUnspecified() || a.Zone() != "" || port == 0 || // to connect to 0.0.0.0 is to connect to loopback
		isMetadata(a) || g.isOwn(at) {
		return false
	}
	opened, named := false, false
	for _, r := range g.allow {
		if r.opens(at) {
			opened, named = true, named || r.names(port)
		}
	}
	return (opened || public(a)) && (anyPort || named || !slices.Contains(shutPorts, port))
}

// isOwn reports whether something of this installation listens at the address. A listener on the unspecified address is
// at every address of this machine.
func (g *guard) isOwn(at netip.AddrPort) bool {
	for _, own := range g.own {
		if own.Port() != at.Port() {
			continue
		}
		if own.Addr().Unmap() == at.Addr() || own.Addr().IsUnspecified() && onThisMachine(at.Addr()) {
			return true
		}
	}
	return slices.ContainsFunc(g.hosts, func(own netip.AddrPort) bool {
		return own.Port() == at.Port() && leadsTo(own.Addr(), at.Addr())
	})
}

// leadsTo reports whether what listens at one of our own addresses may be reached at a. A process on this machine may
// listen on more of its addresses than the one in the configuration.
func leadsTo(own, a netip.Addr) bool {
	return own == a || onThisMachine(own) && onThisMachine(a)
}

func onThisMachine(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true // cannot tell: assume so
	}
	return slices.ContainsFunc(list, func(i net.Addr) bool {
		n, ok := i.(*net.IPNet)
		return ok && n.IP.Equal(a.AsSlice())
	})
}
