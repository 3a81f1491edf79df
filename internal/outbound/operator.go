package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"
)

// Operator returns a client for an address that whoever runs the service named, such as an ACME authority: it may be on
// the local network and behind a proxy of the environment, and none of the guards are for it. Nothing that a tenant
// wrote may choose where it goes. roots are what its answers are trusted by; nil is the system's.
func Operator(roots *x509.CertPool) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	transport.ResponseHeaderTimeout = time.Minute
	return &http.Client{Transport: transport, Timeout: 2 * time.Minute}
}

// Watch has look see each answer to a client of [Operator] before who asked for it, or why there is none. It may put
// another body in the place of the one that it reads.
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
