package server

import (
	"net/netip"
	"net/url"
	"strconv"

	"hookglass/internal/outbound"
)

// outbound is the way out. What belongs to this installation and is not for the public stays shut, whatever is allowed:
// the listener for metrics and the database.
func (s *Server) outbound() *outbound.Client {
	var own []netip.AddrPort
	if s.private != nil {
		if at, err := netip.ParseAddrPort(s.private.Addr().String()); err == nil {
			own = append(own, at)
		}
	}
	own = append(own, databaseAddresses(s.cfg.DatabaseURL)...)
	return outbound.New(outbound.Config{Allow: s.cfg.allow, Own: own})
}

// databaseAddresses is where a PostgreSQL URL leads, as far as it names an address.
func databaseAddresses(database string) []netip.AddrPort {
	u, err := url.Parse(database)
	if err != nil || u.Host == "" {
		return nil
	}
	port := uint64(5432)
	if u.Port() != "" {
		if port, err = strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return nil
		}
	}
	hosts := []string{u.Hostname()}
	if u.Hostname() == "localhost" {
		hosts = []string{"127.0.0.1", "::1"}
	}
	var all []netip.AddrPort
	for _, h := range hosts {
		if a, err := netip.ParseAddr(h); err == nil {
			all = append(all, netip.AddrPortFrom(a, uint16(port)))
		}
	}
	return all
}
