package server

import (
	"net"
	"net/netip"

	"hookglass/internal/outbound"
	"hookglass/internal/store"
)

// outbound returns the client for outgoing requests. Private parts of this installation are blocked whatever is
// allowed: the metrics listener and the database.
func (s *Server) outbound() *outbound.Client {
	if s.private == nil {
		return s.cfg.outbound(nil)
	}
	return s.cfg.outbound(s.private.Addr())
}

// outbound returns the client for a service with the given metrics listener, if it has one.
func (c *checked) outbound(private net.Addr) *outbound.Client {
	var own []netip.AddrPort
	if tcp, ok := private.(*net.TCPAddr); ok {
		at := tcp.AddrPort().Addr().Unmap()
		if !at.IsValid() { // an unspecified address, which means all
			at = netip.IPv6Unspecified()
		}
		own = append(own, netip.AddrPortFrom(at, uint16(tcp.Port)))
	}
	return outbound.New(outbound.Config{Allow: c.allow, Own: own, OwnHosts: store.PostgresHosts(c.DatabaseURL)})
}
