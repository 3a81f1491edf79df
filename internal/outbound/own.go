package outbound

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	ownFresh = time.Second // how long an answer for a name of our own is used without asking again
	ownKept  = time.Hour   // how long an address it had stays shut: a name may give its addresses in turn
)

// ownName is a name at which something of this installation listens.
type ownName struct {
	host     host
	port     uint16
	resolver Resolver

	mu    sync.Mutex
	asked time.Time                // when the last answer came
	seen  map[netip.Addr]time.Time // addresses it had, and when last
}

// readOwn splits the hosts into addresses and names. It skips what it cannot parse: nothing can listen there.
func readOwn(hosts []string, resolver Resolver) (addrs []netip.AddrPort, names []*ownName) {
	for _, written := range hosts {
		name, digits, err := net.SplitHostPort(written)
		port, perr := parsePort(digits)
		if err != nil || perr != nil || name == "" {
			continue
		}
		bracketed := name
		if strings.Contains(name, ":") {
			bracketed = "[" + name + "]"
		}
		h, fault := readHost(bracketed)
		switch {
		case h.addr.IsValid():
			addrs = append(addrs, netip.AddrPortFrom(h.addr, port))
			continue
		case isLocalhost(h.name):
			for _, a := range loopbacks {
				addrs = append(addrs, netip.AddrPortFrom(a, port))
			}
			continue
		case fault != "":
			h.name = name // other resolvers may accept it
		}
		names = append(names, &ownName{host: h, port: port, resolver: resolver, seen: make(map[netip.Addr]time.Time)})
	}
	return addrs, names
}

// isOwnName reports whether something of this installation listens at this very name.
func (g *guard) isOwnName(name string, port uint16) bool {
	return slices.ContainsFunc(g.names, func(n *ownName) bool {
		return n.port == port && strings.TrimSuffix(n.host.name, ".") == name
	})
}

// withoutOwn removes the addresses that names of our own have now. It resolves only names with the same port. If one
// cannot be resolved, and never was, any address may be its own, so none may be dialled.
func (g *guard) withoutOwn(ctx context.Context, port uint16, list []netip.AddrPort) ([]netip.AddrPort, *Failure) {
	for _, n := range g.names {
		if n.port != port {
			continue
		}
		own, failure := n.addresses(ctx)
		if failure != nil {
			return nil, failure
		}
		list = slices.DeleteFunc(list, func(at netip.AddrPort) bool {
			return slices.ContainsFunc(own, func(a netip.Addr) bool { return leadsTo(a, at.Addr()) })
		})
	}
	return list, nil
}

// addresses returns the addresses that the name has now or had within ownKept.
func (n *ownName) addresses(ctx context.Context) ([]netip.Addr, *Failure) {
	n.mu.Lock()
	fresh := !n.asked.IsZero() && time.Since(n.asked) < ownFresh
	n.mu.Unlock()
	var found []netip.Addr
	var failure *Failure
	if !fresh {
		found, failure = addresses(ctx, n.resolver, n.host)
		if f := interrupted(ctx); f != nil {
			return nil, f
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if !fresh && failure == nil {
		n.asked = now
		maps.DeleteFunc(n.seen, func(_ netip.Addr, at time.Time) bool { return now.Sub(at) > ownKept })
		for _, a := range found {
			n.seen[a.Unmap()] = now
		}
	}
	if failure != nil && len(n.seen) == 0 {
		return nil, failed(CodeDNSError, "A host name of this service could not be resolved, so the target cannot be checked.")
	}
	return slices.AppendSeq(make([]netip.Addr, 0, len(n.seen)), maps.Keys(n.seen)), nil
}
