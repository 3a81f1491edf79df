package server

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// answer is the answer of a hookglass server.
type answer struct {
	status int
	body   []byte
	tls    *tls.ConnectionState // nil: without TLS
}

// maxProbe bounds an answer; the description of the API is the longest that is requested.
const maxProbe = 8 << 20

// ask makes one GET without redirects, proxies or caches, so that doctor sees the server itself.
func ask(ctx context.Context, u *url.URL, config *tls.Config) (a answer, err error) {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	nc, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return a, err
	}
	defer func() { nc.Close() }()
	defer within(ctx, nc, 10*time.Second)()
	if u.Scheme == "https" {
		config = config.Clone()
		config.ServerName = cmp.Or(config.ServerName, u.Hostname())
		secure := tls.Client(nc, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return a, err
		}
		state := secure.ConnectionState()
		nc, a.tls = secure, &state
	}
	if _, err := fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: hookglass\r\nConnection: close\r\n\r\n", u.RequestURI(), u.Host); err != nil {
		return a, err
	}
	res, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	a.status = res.StatusCode
	a.body, err = io.ReadAll(io.LimitReader(res.Body, maxProbe))
	return a, err
}

// within makes a connection fail when the time is over, and when ctx ends before stop is called.
func within(ctx context.Context, nc net.Conn, most time.Duration) (stop func() bool) {
	_ = nc.SetDeadline(time.Now().Add(most))
	return context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
}

// HealthCmd is `hookglass health`, for the health check of a container that holds nothing but this program.
type HealthCmd struct {
	Listen  string `env:"HOOKGLASS_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDR" help:"The address that the service was given (default: ${default})."`
	TLSCert string `name:"tls-cert" env:"HOOKGLASS_TLS_CERT" hidden:""`
	// With ACME the server must be asked by one of its names; any will do, and the certificate need not be verified.
	ACMEDomain []string `name:"acme-domain" env:"HOOKGLASS_ACME_DOMAIN" hidden:""`
}

func (c *HealthCmd) Run(ctx context.Context, t *Terminal) error {
	if !isAddress(c.Listen) {
		return UsageError{fmt.Errorf("--listen: %q is not host:port", c.Listen)}
	}
	u := &url.URL{Scheme: "http", Host: reachable(c.Listen), Path: "/readyz"}
	config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // this machine, and the answer is public
	if c.TLSCert != "" || len(c.ACMEDomain) > 0 {
		u.Scheme = "https"
		if len(c.ACMEDomain) > 0 {
			config.ServerName = c.ACMEDomain[0]
		}
	}
	a, err := ask(ctx, u, config)
	if err != nil {
		return fmt.Errorf("the service does not answer at %s, the address of --listen: %w", u.Host, err)
	}
	if _, err := t.Out.Write(a.body); err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return errors.New("the service is not ready")
	}
	return nil
}
