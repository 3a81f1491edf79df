package outbound

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"hookglass/internal/neterr"
)

// maxAnswers bounds how many addresses of a name are tried.
const maxAnswers = 16

// dialer connects to addresses that the guard permits.
type dialer struct {
	guard
	resolver Resolver
	connect  func(ctx context.Context, d *net.Dialer, to netip.AddrPort) (net.Conn, error)
}

func connectTCP(ctx context.Context, d *net.Dialer, to netip.AddrPort) (net.Conn, error) {
	return d.DialTCP(ctx, "tcp", netip.AddrPort{}, to)
}

// dial resolves a host once and connects to the first of its permitted addresses that accepts. family is 4, 6, or 0 for
// both.
func (d *dialer) dial(ctx context.Context, h host, port uint16, family int, anyPort bool) (net.Conn, *Failure) {
	addrs, failure := addresses(ctx, d.resolver, h)
	if failure != nil {
		return nil, failure
	}
	var permitted []netip.AddrPort
	for _, a := range addrs {
		a = a.Unmap()
		if to := netip.AddrPortFrom(a, port); d.permits(to, anyPort) && (family == 0 || a.Is4() == (family == 4)) {
			permitted = append(permitted, to)
		}
	}
	if len(permitted) > 0 {
		if permitted, failure = d.withoutOwn(ctx, port, permitted); failure != nil {
			return nil, failure
		}
	}
	if len(permitted) == 0 {
		return nil, refuse(forbidden("url"))
	}
	permitted = permitted[:min(len(permitted), maxAnswers)]

	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var last error
	for i, to := range permitted {
		conn, err := d.attempt(ctx, to, len(permitted)-i, anyPort)
		if err == nil {
			return conn, nil
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, dialFailure(ctx, last)
}

// attempt connects to one address. It uses at most its share of the remaining time: n addresses are left, this one
// included.
func (d *dialer) attempt(ctx context.Context, to netip.AddrPort, n int, anyPort bool) (net.Conn, error) {
	if n > 1 {
		deadline, _ := ctx.Deadline()
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(time.Until(deadline)/time.Duration(n), time.Second))
		defer cancel()
	}
	nd := &net.Dialer{
		KeepAlive: -1,
		// The final check, on the address that the kernel is given.
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			if at, err := netip.ParseAddrPort(address); err != nil || !d.permits(at, anyPort) {
				return refuse(forbidden("url"))
			}
			return nil
		},
	}
	return d.connect(ctx, nd, to)
}

// addresses returns all addresses of a host, permitted or not.
func addresses(ctx context.Context, resolver Resolver, h host) ([]netip.Addr, *Failure) {
	if h.addr.IsValid() {
		return []netip.Addr{h.addr}, nil
	}
	if isLocalhost(h.name) {
		return loopbacks, nil
	}
	bounded, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	addrs, err := resolver.LookupNetIP(bounded, "ip", h.name)
	if f := interrupted(ctx); f != nil {
		return nil, f
	}
	var dns *net.DNSError
	switch {
	case bounded.Err() != nil, errors.As(err, &dns) && dns.IsTimeout:
		return nil, failed(CodeDNSError, "The name of the target was not resolved in time.")
	case err == nil && len(addrs) == 0, errors.As(err, &dns) && dns.IsNotFound:
		return nil, failed(CodeDNSError, "The name of the target has no address.")
	case err != nil:
		return nil, failed(CodeDNSError, "The name of the target could not be resolved.")
	}
	return addrs, nil
}

// interrupted returns the failure for a context that is done, or nil.
func interrupted(ctx context.Context) *Failure {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return failed(CodeTimeout, "The target did not answer in the time allowed.")
	default:
		return failed(CodeCanceled, "The request was canceled.")
	}
}

func dialFailure(ctx context.Context, err error) *Failure {
	if f := interrupted(ctx); f != nil {
		return f
	}
	var f *Failure
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &timeout) && timeout.Timeout():
		return failed(CodeTimeout, "The target did not answer in the time allowed.")
	case neterr.Refused(err):
		return failed(CodeConnectionRefused, "The target refused the connection.")
	default:
		return failed(CodeConnectionRefused, "The target cannot be reached.")
	}
}
