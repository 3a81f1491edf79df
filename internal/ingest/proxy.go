package ingest

import (
	"net/netip"
	"strings"

	"hookglass/internal/capture"
	"hookglass/internal/httpd"
)

// peer is the remote end of a connection.
type peer struct {
	addr    netip.Addr
	trusted bool // a proxy whose forwarding headers are trusted
}

func (f *Front) peerOf(addr netip.Addr) peer {
	addr = addr.Unmap()
	return peer{addr, httpd.Proxies(f.cfg.TrustedProxies).Trusts(addr)}
}

// origin sets the sender, host and scheme of an arrival; see httpd.Proxies.
func (f *Front) origin(a *capture.Arrival, p peer, host string, secure bool) {
	a.Client, a.Host, a.Scheme = p.addr, host, "http"
	defer f.restore(a)
	if u := f.cfg.PublicURL; u != nil {
		if a.Host == "" {
			a.Host = u.Host
		}
		if strings.EqualFold(a.Host, u.Host) && !f.cfg.OwnTLS {
			a.Scheme = u.Scheme
		}
	}
	if secure {
		a.Scheme = "https"
	}
	if !p.trusted {
		return
	}
	o := httpd.Proxies(f.cfg.TrustedProxies).Origin(p.addr, a.Host, a.Scheme, a.Headers.Values)
	a.Client, a.Host, a.Scheme = o.Client, o.Host, o.Scheme
}

// restore restores the path prefix that a proxy removed from an arrival's target: the sender used the public address.
func (f *Front) restore(a *capture.Arrival) {
	if f.base == "" || !strings.EqualFold(a.Host, f.cfg.PublicURL.Host) {
		return
	}
	if _, below := cutPath(a.Target, f.base); !below {
		a.Target = f.base + a.Target
	}
}
