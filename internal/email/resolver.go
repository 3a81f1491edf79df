package email

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	"golang.org/x/net/idna"
)

// Resolver is the part of the DNS that authentication uses; *net.Resolver and Zone implement it. Errors are
// *net.DNSError: IsNotFound for a name or record that does not exist; anything else counts as temporary.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	LookupAddr(ctx context.Context, addr string) (names []string, err error)
}

// inquiry is the DNS for one authentication: it normalises names and errors, and looks up each TXT record once.
type inquiry struct {
	Resolver
	ctx context.Context // the libraries' hooks take none
	mu  sync.Mutex      // signatures are verified side by side
	txt map[string]answer
}

type answer struct {
	records []string
	err     error
}

func (q *inquiry) LookupTXT(ctx context.Context, name string) ([]string, error) {
	name, err := asciiName(name)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	a, known := q.txt[name]
	q.mu.Unlock()
	if !known {
		a.records, a.err = q.Resolver.LookupTXT(ctx, name)
		a.err = dnsError(name, a.err)
		q.mu.Lock()
		q.txt[name] = a
		q.mu.Unlock()
	}
	return a.records, a.err
}

// lookupTXT is LookupTXT for libraries without contexts.
func (q *inquiry) lookupTXT(name string) ([]string, error) { return q.LookupTXT(q.ctx, name) }

func (q *inquiry) LookupMX(ctx context.Context, name string) ([]*net.MX, error) {
	name, err := asciiName(name)
	if err != nil {
		return nil, err
	}
	records, err := q.Resolver.LookupMX(ctx, name)
	return records, dnsError(name, err)
}

func (q *inquiry) LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error) {
	name, err := asciiName(host)
	if err != nil {
		return nil, err
	}
	addresses, err := q.Resolver.LookupIPAddr(ctx, name)
	return addresses, dnsError(name, err)
}

func (q *inquiry) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	names, err := q.Resolver.LookupAddr(ctx, addr)
	return names, dnsError(addr, err)
}

// asciiName returns a name in the form of the DNS: ASCII, and absolute, so that no search list is tried.
func asciiName(name string) (string, error) {
	ascii, err := idna.Punycode.ToASCII(strings.ToLower(strings.TrimSuffix(name, ".")))
	if err != nil || ascii == "" || len(ascii) > 253 || strings.Contains(ascii, "..") {
		return "", &net.DNSError{Err: "no domain name", Name: name, IsNotFound: true}
	}
	return ascii + ".", nil
}

// dnsError makes every failure a *net.DNSError that is either not found or temporary.
func dnsError(name string, err error) error {
	if err == nil {
		return nil
	}
	if known := (*net.DNSError)(nil); errors.As(err, &known) && known.IsNotFound {
		return known
	}
	return &net.DNSError{Err: "no answer", Name: name, IsTemporary: true, IsTimeout: errors.Is(err, context.DeadlineExceeded)}
}
