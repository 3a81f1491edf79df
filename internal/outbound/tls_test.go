package outbound_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hookglass/internal/outbound"
)

func TestTLS(t *testing.T) {
	served := make(chan *http.Request, 10)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served <- r
		io.WriteString(w, "over TLS")
	})
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	s.Config.ErrorLog = silent()
	s.StartTLS()
	defer s.Close()
	port := s.Listener.Addr().(*net.TCPAddr).Port
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	loopback := answers{netip.MustParseAddr("127.0.0.1")}

	trusting := outbound.New(outbound.Config{Allow: rules(t, "127.0.0.0/8"), RootCAs: roots, Resolver: loopback})
	for _, host := range []string{"127.0.0.1", "example.com", "EXAMPLE.com."} { // the names of httptest's certificate
		resp, err := trusting.Do(t.Context(), outbound.Request{Method: "POST", URL: fmt.Sprintf("https://%s:%d/", host, port), Body: bytes.Repeat([]byte("x"), 100<<10)})
		if err != nil || string(resp.Body) != "over TLS" || resp.Proto != "HTTP/1.1" {
			t.Fatal(resp, err)
		}
		r := <-served
		wantName := strings.TrimSuffix(strings.ToLower(host), ".")
		if host == "127.0.0.1" {
			wantName = ""
		}
		if r.TLS.ServerName != wantName || r.TLS.NegotiatedProtocol != "http/1.1" {
			t.Errorf("%s: SNI %q, ALPN %q", host, r.TLS.ServerName, r.TLS.NegotiatedProtocol)
		}
	}

	old := httptest.NewUnstartedServer(h)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11}
	old.Config.ErrorLog = silent()
	old.StartTLS()
	defer old.Close()
	expired := httptest.NewUnstartedServer(h)
	expired.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, time.Now().Add(-time.Hour))}}
	expired.Config.ErrorLog = silent()
	expired.StartTLS()
	defer expired.Close()
	roots.AddCert(expired.Certificate())
	http2 := httptest.NewUnstartedServer(h)
	http2.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: http2.TLS.Certificates, NextProtos: []string{"h2-alone"}}, nil // with "h2", crypto/tls lets HTTP/1.1 pass
	}}
	http2.Config.ErrorLog = silent()
	http2.StartTLS()
	defer http2.Close()
	var messages []string
	for _, c := range []struct {
		name   string
		client *outbound.Client
		url    string
	}{
		{"expired", trusting, expired.URL},
		{"unknown authority", outbound.New(outbound.Config{Allow: rules(t, "127.0.0.0/8"), RootCAs: x509.NewCertPool()}), s.URL},
		{"another name", trusting, fmt.Sprintf("https://other.example:%d/", port)},
		{"no TLS", trusting, "https://" + serve(t, func(c net.Conn) { c.Read(make([]byte, 1)); io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }).addr},
		{"garbage", trusting, "https://" + serve(t, func(c net.Conn) { io.WriteString(c, "garbage garbage garbage") }).addr},
		{"closed", trusting, "https://" + serve(t, func(c net.Conn) {}).addr},
		{"TLS 1.1", trusting, old.URL},
		{"HTTP/2 alone", trusting, http2.URL},
	} {
		_, err := c.client.Do(t.Context(), outbound.Request{Method: "GET", URL: c.url})
		if f := failure(t, err); f.Code != outbound.CodeTLSError || f.Sent != outbound.NotSent {
			t.Errorf("%s: %v, %v", c.name, f, f.Sent)
		}
		messages = append(messages, err.Error())
	}
	want := []string{
		"tls_error: The certificate of the target has expired or is not yet valid.", "tls_error: The certificate of the target is not signed by an authority that is trusted.", "tls_error: The certificate of the target is for another name.",
		"tls_error: The target speaks HTTP without TLS: its URL must begin with http://.", "tls_error: The target does not speak TLS.", "tls_error: The TLS handshake with the target failed.", "tls_error: The TLS handshake with the target failed.",
		"tls_error: The target does not speak HTTP/1.1.",
	}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Error(diff)
	}
	alerting := serve(t, func(c net.Conn) { c.Read(make([]byte, 4096)); io.WriteString(c, "\x15\x03\x01\x00\x02\x02\x46") }).addr
	_, err := trusting.Do(t.Context(), outbound.Request{Method: "GET", URL: "http://" + alerting})
	if f := failure(t, err); f.Code != outbound.CodeProtocolError || f.Message != "The target speaks TLS: its URL must begin with https://." {
		t.Error(f)
	}
	select {
	case r := <-served:
		t.Errorf("%s was served", r.URL)
	default:
	}
}

// Under TLS 1.3 such a target says so after the handshake, where an answer would be; before, the handshake fails.
func TestATargetThatDemandsACertificate(t *testing.T) {
	for version, want := range map[uint16]string{
		tls.VersionTLS12: "tls_error: The TLS handshake with the target failed., not sent",
		tls.VersionTLS13: "tls_error: The target demands a certificate of its client, and none is sent., maybe sent",
	} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was served") }))
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: version, MaxVersion: version}
		s.Config.ErrorLog = silent()
		s.StartTLS()
		defer s.Close()
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		client := outbound.New(outbound.Config{Allow: rules(t, "127.0.0.0/8"), RootCAs: roots})
		_, err := client.Do(t.Context(), outbound.Request{Method: "POST", URL: s.URL, Body: []byte("x")})
		if f := failure(t, err); fmt.Sprintf("%v, %v", f, f.Sent) != want {
			t.Errorf("%s: %v, %v", tls.VersionName(version), f, f.Sent)
		}
	}
}

// certificate is one for 127.0.0.1, signed by itself.
func certificate(t *testing.T, until time.Time) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour), NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
