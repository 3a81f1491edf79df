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
