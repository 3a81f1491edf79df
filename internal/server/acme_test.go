package server_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass/internal/server"
	"hookglass/internal/store/storetest"
)

// acmeAuthority is as much of an ACME server (RFC 8555) as a client needs for one name: it believes every signature,
// and proves control of the name by the one way that it offers.
type acmeAuthority struct {
	*authority
	*httptest.Server
	challenge string // http-01 or tls-alpn-01
	at        string // where the name leads to
	refusal   string // why no name is verified, where none is to be

	mu     sync.Mutex
	orders int
	valid  bool
	tried  bool // the challenge of the last order was answered
	failed error
	issued []byte
}

func newACME(t *testing.T, challenge, at string) *acmeAuthority {
	t.Helper()
	a := &acmeAuthority{authority: newAuthority(t), challenge: challenge, at: at}
	certFile, keyFile := a.write(t, t.TempDir(), 7, "localhost", time.Now().Add(time.Hour))
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(a.serve))
	a.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

// payload is what a signed request says.
func payload(r *http.Request) []byte {
	var signed struct{ Payload string }
	_ = json.NewDecoder(r.Body).Decode(&signed)
	text, _ := base64.RawURLEncoding.DecodeString(signed.Payload)
	return text
}

func (a *acmeAuthority) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	status := map[bool]string{false: "pending", true: "valid"}
	var refused any
	if a.refusal != "" {
		status[false], refused = "invalid", map[string]string{"type": "urn:ietf:params:acme:error:connection", "detail": a.refusal}
		if r.URL.Path == "/authorization" && !a.tried {
			status[false], refused = "pending", nil
		}
	}
	order := func() map[string]any {
		o := map[string]any{"status": map[bool]string{false: "pending", true: "ready"}[a.valid], "authorizations": []string{a.URL + "/authorization"}, "finalize": a.URL + "/finalize"}
		if a.issued != nil {
			o["status"], o["certificate"] = "valid", a.URL+"/certificate"
		}
		return o
	}
	w.Header().Set("Replay-Nonce", "nonce")
	switch r.URL.Path {
	case "/directory":
		answer(200, map[string]any{"newNonce": a.URL + "/nonce", "newAccount": a.URL + "/account", "newOrder": a.URL + "/new-order"})
	case "/nonce":
	case "/account":
		w.Header().Set("Location", a.URL+"/account/1")
		answer(201, map[string]any{"status": "valid"})
	case "/new-order":
		a.orders, a.valid, a.tried, a.issued = a.orders+1, false, false, nil
		w.Header().Set("Location", a.URL+"/order")
		answer(201, order())
	case "/order":
		answer(200, order())
	case "/authorization":
		answer(200, map[string]any{
			"status": status[a.valid], "identifier": map[string]string{"type": "dns", "value": "hooks.example"},
			"challenges": []any{map[string]any{"type": a.challenge, "url": a.URL + "/challenge", "token": "token", "status": status[a.valid], "error": refused}},
		})
	case "/challenge":
		a.failed, a.tried = a.prove(), true
		a.valid = a.failed == nil && a.refusal == ""
		answer(200, map[string]any{"type": a.challenge, "url": a.URL + "/challenge", "token": "token", "status": status[a.valid]})
	case "/finalize":
		var asked struct{ CSR string }
		_ = json.Unmarshal(payload(r), &asked)
		a.issue(asked.CSR)
		w.Header().Set("Location", a.URL+"/order")
		answer(200, order())
	case "/certificate":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, _ = w.Write(a.issued)
	default:
		answer(404, map[string]string{"type": "urn:ietf:params:acme:error:malformed"})
	}
}

// prove asks the name for what the challenge wants to see there.
func (a *acmeAuthority) prove() error {
	if a.challenge == "http-01" {
		req, err := http.NewRequest("GET", "http://"+a.at+"/.well-known/acme-challenge/token", nil)
		if err != nil {
			return err
		}
		req.Host = "hooks.example"
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err == nil && !strings.HasPrefix(string(text), "token.") {
			err = fmt.Errorf("%s: %s", res.Status, text)
		}
		return err
	}
	nc, err := tls.Dial("tcp", a.at, &tls.Config{ServerName: "hooks.example", NextProtos: []string{"acme-tls/1"}, InsecureSkipVerify: true}) //nolint:gosec // a challenge's certificate signs itself (RFC 8737)
	if err != nil {
		return err
	}
	defer nc.Close()
	if state := nc.ConnectionState(); state.NegotiatedProtocol != "acme-tls/1" || state.PeerCertificates[0].VerifyHostname("hooks.example") != nil {
		return fmt.Errorf("by %q it shows %v", state.NegotiatedProtocol, state.PeerCertificates[0].DNSNames)
	}
	return nil
}

func (a *acmeAuthority) issue(request string) {
	der, _ := base64.RawURLEncoding.DecodeString(request)
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return
	}
	cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(int64(100 + a.orders)), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(90 * 24 * time.Hour), DNSNames: csr.DNSNames,
	}, a.cert, csr.PublicKey, a.key)
	if err != nil {
		return
	}
	a.issued = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
}

// journal is a log that may be read while it is written: autocert cleans up after a node has ended.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// serveACME runs a node until the test ends or stop is called, which returns what it logged of what went wrong.
func serveACME(t *testing.T, cfg server.Config) (stop func() string) {
	t.Helper()
	var log journal
	s, err := server.New(cfg, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func(context.Context) error { close(ready); return nil }) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	stop = sync.OnceValue(func() string {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(log.String())
		}
		return log.String()
	})
	t.Cleanup(func() { stop() })
	return stop
}

// shown is the serial number of the certificate that a node shows for the name.
func (a *acmeAuthority) shown(t *testing.T, at, name string) (int64, error) {
	t.Helper()
	nc, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", at, &tls.Config{ServerName: name, RootCAs: a.pool})
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	return nc.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

func TestACMEGivesACertificateThatIsKeptAndShared(t *testing.T) {
	for _, challenge := range []string{"tls-alpn-01", "http-01"} {
		t.Run(challenge, func(t *testing.T) {
			first := config(filepath.Join(t.TempDir(), "data"))
			first.DatabaseURL = storetest.Migrated(t)
			first.Listen, first.HTTPListen = freePort(t), freePort(t)
			first.ACMEDomain = []string{"hooks.example"}
			second := first
			second.Data = t.TempDir()
			second.SecretKeyFile = filepath.Join(first.Data, "keys.json")
			second.Listen, second.HTTPListen = freePort(t), freePort(t)

			// The name leads to the second node, and the first is the one that is asked for a certificate: the
			// challenge is answered through the database.
			at := second.Listen
			if challenge == "http-01" {
				at = second.HTTPListen
			}
			ca := newACME(t, challenge, at)
			roots := filepath.Join(t.TempDir(), "roots.pem")
			if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}), 0o600); err != nil {
				t.Fatal(err)
			}
			first.ACMEDirectory, second.ACMEDirectory = ca.URL+"/directory", ca.URL+"/directory"
			first.ACMERoots, second.ACMERoots = roots, roots
			stop := serveACME(t, first)
			serveACME(t, second)

			serial, err := ca.shown(t, first.Listen, "hooks.example")
			if err != nil || serial != 101 {
				t.Fatalf("the first node shows %d, %v; the authority found %v", serial, err, ca.failed)
			}
			if serial, err := ca.shown(t, second.Listen, "hooks.example"); err != nil || serial != 101 {
				t.Errorf("the second node shows %d, %v", serial, err)
			}
			stop()
			serveACME(t, first)
			if serial, err := ca.shown(t, first.Listen, "hooks.example"); err != nil || serial != 101 {
				t.Errorf("started again it shows %d, %v", serial, err)
			}
			if _, err := ca.shown(t, first.Listen, "other.example"); err == nil {
				t.Error("there is a certificate for any name")
			}
			if ca.orders != 1 {
				t.Errorf("%d certificates were ordered, want 1", ca.orders)
			}
		})
	}
}

// autocert says of a challenge that failed only that no other is left, and of a renewal nothing at all.
func TestTheLogSaysWhatTheAuthorityRefuses(t *testing.T) {
	cfg := config(filepath.Join(t.TempDir(), "data"))
	cfg.Listen, cfg.HTTPListen = freePort(t), freePort(t)
	cfg.ACMEDomain = []string{"hooks.example"}
	ca := newACME(t, "http-01", cfg.HTTPListen)
	ca.refusal = "192.0.2.7: Connection refused"
	cfg.ACMERoots = filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(cfg.ACMERoots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for directory, want := range map[string]string{
		ca.URL + "/directory":                   `msg="the ACME authority could not verify a name" part=acme domain=hooks.example challenge=http-01 type=urn:ietf:params:acme:error:connection detail="192.0.2.7: Connection refused"`,
		ca.URL + "/nothing":                     `status=404 type=urn:ietf:params:acme:error:malformed`,
		"https://" + freePort(t) + "/directory": `msg="the ACME authority cannot be asked" part=acme url=`,
	} {
		cfg.ACMEDirectory = directory
		stop := serveACME(t, cfg)
		if serial, err := ca.shown(t, cfg.Listen, "hooks.example"); err == nil {
			t.Errorf("it shows %d", serial)
		}
		if log := stop(); strings.Count(log, want) != 1 || !strings.Contains(log, `"there is no certificate"`) {
			t.Errorf("%s: the log has no line with %s, or several:\n%s", directory, want, log)
		}
	}
}
