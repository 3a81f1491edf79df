package outbound

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"hookglass"
)

// Bounds of one request and of a client. DNS and connect follow smokescreen's.
const (
	defaultTimeout          = 30 * time.Second // spec: decisions, section 13, "Replay"
	DefaultMaxResponseBytes = 1 << 20          // spec: decisions, section 13, "Replay"

	dnsTimeout     = 5 * time.Second
	connectTimeout = 10 * time.Second
)

// Resolver turns a name into addresses, as net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config configures a Client. The zero value reaches public addresses only.
type Config struct {
	Allow []Rule // opens addresses that are not public; never those of cloud metadata
	// Own are the listeners of this installation, which stay shut even if Allow opens them. An unspecified address
	// stands for every address of this machine.
	Own []netip.AddrPort
	// OwnHosts are other servers of this installation, such as its database, as host:port. They stay shut likewise, one
	// on this machine at all of its addresses. A name is resolved when its port is about to be dialled.
	OwnHosts []string
	Resolver Resolver       // nil: the system's, read by Go itself
	RootCAs  *x509.CertPool // nil: the system's

	MaxInFlight       int // concurrent requests; default 256
	MaxInFlightPerKey int // concurrent requests with one Key; default 64
}

// Request is one request to send.
type Request struct {
	Method           string
	URL              string
	Headers          hookglass.Headers // sent in this order and spelling, after Sanitize
	Body             []byte
	Timeout          time.Duration // for everything, from the call of Do to the last byte read; 0: 30 s
	MaxResponseBytes int64         // of the body, which is cut there; 0: DefaultMaxResponseBytes
	Key              string        // the tenant, whose concurrent requests are bounded
	Turn             *Turn         // of that Key, taken before; nil: Do waits for one, within Timeout
	// Keep lets further requests of this Key with Keep to the same target use the connection. It is for requests that
	// may arrive more than once: a target that closes the connection just as a request comes may have handled it, and
	// the request fails, as any may. It is never resent.
	Keep bool
}

// Response is a complete response, whatever its status.
type Response struct {
	Status         int
	Proto          string            // HTTP/1.1 or HTTP/1.0
	Headers        hookglass.Headers // as received; trailers are left out
	Body           []byte            // as received, without its chunked framing
	Truncated      bool              // the body was longer than MaxResponseBytes
	Duration       time.Duration     // from resolving the name to reading the last byte
	RequestHeaders hookglass.Headers // as sent
}

// Client sends requests. Create it with New.
type Client struct {
	dialer
	turns *turns
	kept  kept
	roots *x509.CertPool
}

// New creates a client.
func New(cfg Config) *Client {
	theirs := cfg.Resolver // for our own names: the resolver that this installation connects to them with
	if cfg.Resolver == nil {
		cfg.Resolver = &net.Resolver{PreferGo: true} // whatever GODEBUG says, and within our timeouts
		theirs = net.DefaultResolver
	}
	hosts, names := readOwn(cfg.OwnHosts, theirs)
	return &Client{
		dialer: dialer{guard{cfg.Allow, cfg.Own, hosts, names}, cfg.Resolver, connectTCP},
		turns:  newTurns(cmp.Or(cfg.MaxInFlight, 256), cmp.Or(cfg.MaxInFlightPerKey, 64)),
		kept:   kept{lines: make(map[lineKey][]*line)},
		roots:  cfg.RootCAs,
	}
}

// Check judges a URL without using the network, for when it is saved. field is its wire name, for the error:
// validation_failed if Do could not send to the URL, target_not_allowed if it is forbidden as spelled. A name may still
// resolve to a forbidden address; that is judged at every dial.
func (c *Client) Check(field, rawURL string) error {
	if _, err := c.parseTarget(field, rawURL); err != nil {
		return err
	}
	return nil
}

// Do sends one request, once, and reads the response. Its error is always a *Failure.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	resp, failure := c.do(ctx, r)
	if failure != nil {
		return nil, failure
	}
	return resp, nil
}

func (c *Client) do(ctx context.Context, r Request) (_ *Response, failure *Failure) {
	if r.Timeout <= 0 {
		r.Timeout = defaultTimeout
	}
	if r.MaxResponseBytes <= 0 {
		r.MaxResponseBytes = DefaultMaxResponseBytes
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	t, invalid := c.parseTarget("url", r.URL)
	if invalid != nil {
		return nil, refuse(invalid)
	}
	m, invalid := compose(r, t)
	if invalid != nil {
		return nil, refuse(invalid)
	}
	defer m.release()
	defer func() {
		if failure != nil {
			failure.RequestHeaders = m.headers
		}
	}()
	if r.Turn == nil {
		turn, failure := c.turn(ctx, r.Key, 0)
		if failure != nil {
			return nil, failure
		}
		defer turn.End()
	}
	began := time.Now()
	key := t.lineKey(r.Key)
	var l *line
	if r.Keep {
		l = c.kept.take(key)
	}
	if l == nil {
		conn, failure := c.dial(ctx, t.host, t.port, 0, false)
		if failure != nil {
			return nil, failure
		}
		if l, failure = c.open(ctx, conn, t, key); failure != nil {
			return nil, failure
		}
	}
	return c.exchange(ctx, began, l, m)
}

// Turn is the right to have one request in flight.
type Turn struct{ end func() }

// End gives the turn back, once. A nil Turn may be ended.
func (t *Turn) End() {
	if t != nil {
		t.end()
	}
}

// Turn waits for a turn of a key until ctx is done. It is for callers that must do something between taking the turn
// and sending, or whose target is to have all of the request's time. line divides what the key has, such as by endpoint
// of a tenant: a line whose targets never answer leaves turns to the others. Its error is always a *Failure.
func (c *Client) Turn(ctx context.Context, key string, line int64) (*Turn, error) {
	turn, failure := c.turn(ctx, key, line)
	if failure != nil {
		return nil, failure
	}
	return turn, nil
}

func (c *Client) turn(ctx context.Context, key string, line int64) (*Turn, *Failure) {
	switch err := c.turns.take(ctx, key, line); {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, failed(CodeBusy, "Too many requests are under way, and none ended in the time allowed.")
	case err != nil:
		return nil, interrupted(ctx)
	}
	return &Turn{func() { c.turns.give(key, line) }}, nil
}

// DialContext connects for a protocol other than HTTP under the same guard, without the port policy. network is tcp,
// tcp4 or tcp6, and address is a host and a port number. Its error is always a *Failure.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	family, ok := map[string]int{"tcp": 0, "tcp4": 4, "tcp6": 6}[network]
	written, digits, err := net.SplitHostPort(address)
	port, perr := parsePort(digits)
	if !ok || err != nil || perr != nil {
		return nil, refuse(hookglass.Invalid("address", "is not a host and a port"))
	}
	if strings.Contains(written, ":") {
		written = "[" + written + "]"
	}
	h, fault := readHost(written)
	if h.addr.IsValid() && !c.permits(netip.AddrPortFrom(h.addr, port), true) {
		return nil, refuse(forbidden("address"))
	}
	if fault != "" {
		return nil, refuse(hookglass.Invalid("address", "%s", fault))
	}
	conn, failure := c.dial(ctx, h, port, family, true)
	if failure != nil {
		return nil, failure
	}
	return conn, nil
}
