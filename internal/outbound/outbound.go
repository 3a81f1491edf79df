package outbound

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"time"

	"hookglass"
)

// Bounds of one request and of a client. DNS and connect follow smokescreen's.
const (
	DefaultTimeout          = 30 * time.Second // decisions, section 13, "Replay"
	DefaultMaxResponseBytes = 1 << 20          // decisions, section 13, "Replay"

	dnsTimeout     = 5 * time.Second
	connectTimeout = 10 * time.Second
)

// Resolver turns a name into addresses, as net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config is what a Client is made of. The zero value reaches public addresses alone.
type Config struct {
	Allow    []Rule           // opens addresses that are not public; never those of cloud metadata
	Own      []netip.AddrPort // shut whatever Allow says: the listeners and the database of this installation; an unspecified address means every address of this machine
	Resolver Resolver         // nil: the system's, read by Go itself
	RootCAs  *x509.CertPool   // nil: the system's

	MaxInFlight       int // requests at the same time; default 512
	MaxInFlightPerKey int // of them with one Key; default 64
}

// Request is one request to send.
type Request struct {
	Method           string
	URL              string
	Headers          hookglass.Headers // sent in this order and spelling, after Sanitize
	Body             []byte
	Timeout          time.Duration // for everything, from the call of Do to the last byte of the answer; 0: DefaultTimeout
	MaxResponseBytes int64         // of the body, which is cut there; 0: DefaultMaxResponseBytes
	Key              string        // the tenant, whose requests at the same time are bounded
}

// Response is a complete answer, whatever its status.
type Response struct {
	Status         int
	Proto          string            // HTTP/1.1 or HTTP/1.0
	Headers        hookglass.Headers // as received; trailers are left out
	Body           []byte            // as received, without its chunked framing
	Truncated      bool              // the body was longer than MaxResponseBytes
	Duration       time.Duration     // from the resolution of the name to the last byte read
	RequestHeaders hookglass.Headers // as sent
}

// Client sends requests. Make it with New.
type Client struct{ cfg Config }

// New makes a client.
func New(cfg Config) (*Client, error) { return &Client{cfg: cfg}, nil }

// Check judges a URL without asking the network, for when it is saved. The field is its wire name, for the error:
// validation_failed for what is not a URL that Do would send to, target_not_allowed for one that is forbidden as it is spelled.
// A name may still resolve to a forbidden address; that is judged each time when it is dialled.
func (c *Client) Check(field, rawURL string) error { return nil }

// Do sends one request, once, and reads its answer. Its error is always a *Failure.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	return nil, failed(CodeDNSError, "")
}

// DialContext connects for another protocol than HTTP under the same guard. The network is tcp, tcp4 or tcp6. Its error is always a *Failure.
func (c *Client) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return nil, failed(CodeDNSError, "")
}
