package ingest

import (
	"net/netip"
	"strings"

	"hookglass/internal/capture"
	"hookglass/internal/httpd"
)

// peer is the other end of a connection.
type peer struct {
	addr    netip.Addr
	trusted bool // a proxy whose word about senders is believed
}

func (f *Front) peerOf(addr netip.Addr) peer {
	addr = addr.Unmap()
	return peer{addr, httpd.Proxies(f.cfg.TrustedProxies).Trusts(addr)}
}

// origin says in the arrival who sent it, to which address and by which scheme; see httpd.Proxies.
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

// restore puts back into the target of an arrival what a proxy cut from its path: the sender used the public address.
func (f *Front) restore(a *capture.Arrival) {
	if f.base == "" || !strings.EqualFold(a.Host, f.cfg.PublicURL.Host) {
		return
	}
	if _, below := cutPath(a.Target, f.base); !below {
		a.Target = f.base + a.Target
	}
}
