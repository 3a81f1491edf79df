package server

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"hookglass/internal/outbound"
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
	own = append(own, databaseAddresses(c.DatabaseURL)...)
	return outbound.New(outbound.Config{Allow: c.allow, Own: own})
}

// databaseAddresses is where a PostgreSQL URL leads, as far as it names addresses: in its place for hosts, or as
// parameters, several with commas between them (PostgreSQL, "Connection URIs").
func databaseAddresses(database string) []netip.AddrPort {
	_, rest, _ := strings.Cut(database, "://")
	authority, query := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority = rest[:i]
		_, query, _ = strings.Cut(rest[i:], "?")
	}
	hosts := strings.Split(authority[strings.LastIndexByte(authority, '@')+1:], ",")
	var ports []string
	if parameters, err := url.ParseQuery(query); err == nil {
		if h := parameters.Get("host"); h != "" {
			hosts = strings.Split(h, ",")
		}
		if p := parameters.Get("port"); p != "" {
			ports = strings.Split(p, ",")
		}
	}
	var all []netip.AddrPort
	for i, host := range hosts {
		port := "5432"
		if len(ports) > 0 {
			port = ports[min(i, len(ports)-1)]
		}
		if h, p, err := net.SplitHostPort(host); err == nil {
			host, port = h, p
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			continue
		}
		addresses := []string{strings.Trim(host, "[]")}
		if host == "localhost" {
			addresses = []string{"127.0.0.1", "::1"}
		}
		for _, address := range addresses {
			if a, err := netip.ParseAddr(address); err == nil {
				all = append(all, netip.AddrPortFrom(a, uint16(n)))
			}
		}
	}
	return all
}
