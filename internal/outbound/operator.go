package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"
)

// Operator returns a client for an address that the operator of the service configured, such as an ACME authority. It
// may be on the local network or behind a proxy from the environment; no guard applies. Nothing that a tenant wrote may
// choose the address. roots verify its certificates; nil means those of the system.
func Operator(roots *x509.CertPool) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	transport.ResponseHeaderTimeout = time.Minute
	return &http.Client{Transport: transport, Timeout: 2 * time.Minute}
}

// Watch calls look with each response to a client of [Operator], or with the error, before the caller sees it. look may
// read the body and replace it.
func Watch(c *http.Client, look func(*http.Request, *http.Response, error)) {
	c.Transport = watched{c.Transport, look}
}

type watched struct {
	http.RoundTripper
	look func(*http.Request, *http.Response, error)
}

func (w watched) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := w.RoundTripper.RoundTrip(req)
	w.look(req, res, err)
	return res, err
}
