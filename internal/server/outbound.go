package server

import (
	"net"
	"net/netip"

	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

// outbound is the way out. What belongs to this installation and is not for the public stays shut, whatever is allowed:
// the listener for metrics and the database.
func (s *Server) outbound() *outbound.Client {
	if s.private == nil {
		return s.cfg.outbound(nil)
	}
	return s.cfg.outbound(s.private.Addr())
}

// outbound is the way out of a service whose listener for metrics has an address, if it has one.
func (c *checked) outbound(private net.Addr) *outbound.Client {
	var own []netip.AddrPort
	if tcp, ok := private.(*net.TCPAddr); ok {
		at := tcp.AddrPort().Addr().Unmap()
		if !at.IsValid() { // none is named, which is all of them
			at = netip.IPv6Unspecified()
		}
		own = append(own, netip.AddrPortFrom(at, uint16(tcp.Port)))
	}
	return outbound.New(outbound.Config{Allow: c.allow, Own: own, OwnHosts: store.PostgresHosts(c.DatabaseURL)})
}
