package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hookglass/internal/server"
	"hookglass/internal/store/storetest"
)

// authority signs certificates for tests.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t), pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// write makes a certificate for a name and 127.0.0.1 that is valid until a time, in two files.
func (a *authority) write(t *testing.T, dir string, serial int64, name string, until time.Time) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// freePort is one that nothing listens on, and that nobody else is given until the test ends.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	storetest.HoldPort(t, ln)
	return ln.Addr().String()
}

func TestServesHTTPSByFilesAndSendsPeopleThere(t *testing.T) {
	ca := newAuthority(t)
	cfg := config(filepath.Join(t.TempDir(), "data"))
	cfg.TLSCert, cfg.TLSKey = ca.write(t, t.TempDir(), 1, "hooks.example", time.Now().Add(time.Hour))
	cfg.HTTPListen = freePort(t)
	d, _ := start(t, cfg)
	if !strings.HasPrefix(d.WebhookURL, "https://127.0.0.1:") {
		t.Fatalf("the webhook URL is %s", d.WebhookURL)
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.pool}, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	ask := func(method, url string, header ...string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(body)
	}
	res, body := ask("POST", d.WebhookURL+"/a//b")
	if res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Errorf("by https: %s %d %s", res.Proto, res.StatusCode, body)
	}
	for _, proto := range []string{"http/1.1", "http/1.0"} {
		at, _, _ := strings.Cut(strings.TrimPrefix(d.WebhookURL, "https://"), "/")
		old, err := tls.Dial("tcp", at, &tls.Config{RootCAs: ca.pool, NextProtos: []string{proto}})
		if err != nil {
			t.Errorf("who speaks %s alone: %v", proto, err)
			continue
		}
		if got := old.ConnectionState().NegotiatedProtocol; got != proto {
			t.Errorf("who speaks %s alone is spoken to by %q", proto, got)
		}
		old.Close()
	}
	if res, _ := ask("GET", d.API+"/auth/verify", "Authorization", "Bearer "+d.Token); res.StatusCode != 200 || res.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("the API answers %d %v", res.StatusCode, res.Header)
	}

	clear := "http://" + cfg.HTTPListen
	hook := "/hooks/" + d.EndpointID
	for _, row := range []struct {
		method, path string
		header       []string
		status       int
		location     string
	}{
		{"GET", "/endpoints?x=1", nil, 308, strings.TrimSuffix(d.Web, "/") + "/endpoints?x=1"},
		{"HEAD", "/", nil, 308, d.Web},
		{"GET", "/api/v1/endpoints", []string{"Authorization", "Bearer " + d.Token}, 403, ""},
		{"POST", "/api/v1/endpoints", nil, 403, ""},
		{"GET", "/healthz", nil, 200, ""},
		{"GET", "/readyz", nil, 200, ""},
		{"GET", "/metrics", nil, 308, d.Web + "metrics"},
		{"POST", hook, nil, 200, ""},
		{"GET", hook + "//x/../y", nil, 200, ""},
		{"GET", "/hooks/nobody", nil, 404, ""},
		{"GET", "/.well-known/acme-challenge/x", nil, 308, d.Web + ".well-known/acme-challenge/x"},
	} {
		res, body := ask(row.method, clear+row.path, row.header...)
		if res.StatusCode != row.status || res.Header.Get("Location") != row.location {
			t.Errorf("%s %s in the clear: %d to %q, want %d to %q: %s", row.method, row.path, res.StatusCode, res.Header.Get("Location"), row.status, row.location, body)
		}
	}
	_, body = ask("GET", d.API+"/endpoints/"+d.EndpointID+"/requests/export?format=ndjson", "Authorization", "Bearer "+d.Token)
	if n := strings.Count(body, `"url":"http://`); n != 2 || strings.Count(body, `"url":"https://`) != 1 {
		t.Errorf("%d requests are said to have come in the clear: %s", n, body)
	}
}

func TestACertificateThatIsRenewedIsUsedWithoutARestart(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	serial := func(c *tls.Certificate) int64 {
		t.Helper()
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.Int64()
	}
	certFile, keyFile := ca.write(t, dir, 1, "hooks.example", time.Now().Add(time.Hour))
	at, err := server.Certificate(certFile, keyFile, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ca.write(t, dir, 2, "hooks.example", time.Now().Add(time.Hour))
	later := time.Now().Add(time.Hour)
	for _, file := range []string{certFile, keyFile} {
		if err := os.Chtimes(file, later, later); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	if got := serial(at(now.Add(time.Second))); got != 2 {
		t.Errorf("a second later: %d", got)
	}
	// In the middle of a renewal the two files do not fit: what was there is used on, and the new one once both are
	// written.
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	ca.write(t, dir, 3, "hooks.example", time.Now().Add(time.Hour))
	third, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	put := func(content []byte, mtime time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(keyFile, content, 0o600), os.Chtimes(keyFile, mtime, mtime)); err != nil {
			t.Fatal(err)
		}
	}
	put(key, later.Add(time.Minute))
	if got := serial(at(now.Add(2 * time.Second))); got != 2 {
		t.Errorf("half renewed: %d", got)
	}
	put(third, later.Add(2*time.Minute))
	if got := serial(at(now.Add(3 * time.Second))); got != 3 {
		t.Errorf("renewed: %d", got)
	}
	// A certificate for the same key that was copied with its time, which is before that of the key.
	fourth, _ := ca.write(t, t.TempDir(), 4, "hooks.example", time.Now().Add(time.Hour))
	for from, to := range map[string]string{fourth: certFile, filepath.Join(filepath.Dir(fourth), filepath.Base(keyFile)): keyFile} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		times := later.Add(2 * time.Minute) // the key's stays
		if to == certFile {
			times = later.Add(-time.Minute)
		}
		if err := errors.Join(os.WriteFile(to, content, 0o600), os.Chtimes(to, times, times)); err != nil {
			t.Fatal(err)
		}
	}
	if got := serial(at(now.Add(4 * time.Second))); got != 4 {
		t.Errorf("renewed with an older time: %d", got)
	}
}

// What was read before is shown on, so nobody would notice before it ends.
func TestTheLogSaysOfARenewedCertificateThatItCanNotBeUsed(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	certFile, keyFile := ca.write(t, dir, 1, "hooks.example", time.Now().Add(time.Hour))
	var log strings.Builder
	at, err := server.Certificate(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	lines := func(after time.Duration) int {
		t.Helper()
		if at(now.Add(after)) == nil {
			t.Fatalf("after %v: there is no certificate", after)
		}
		return strings.Count(log.String(), "cannot be used")
	}
	set := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(keyFile, content, 0o600); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour) // of the file, and of what follows
		if err := os.Chtimes(keyFile, now, now); err != nil {
			t.Fatal(err)
		}
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		set([]byte("half a key"))
		if got := lines(time.Second) + lines(9*time.Second); got != 2*round {
			t.Errorf("round %d: a renewal may take some seconds: %s", round, log.String())
		}
		if got := lines(12*time.Second) + lines(time.Minute) + lines(10*time.Minute); got != 3*(round+1) {
			t.Errorf("round %d: it is told once: %s", round, log.String())
		}
		set(key)
		if got := lines(time.Second); got != round+1 {
			t.Errorf("round %d: mended: %s", round, log.String())
		}
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), certFile) {
		t.Errorf("the log: %s", log.String())
	}
}

// Clients that refuse a certificate end the handshake, which is no line of the log.
func TestTheLogSaysThatTheCertificateEndsOrHasEnded(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	now := time.Now()
	certFile, keyFile := ca.write(t, dir, 1, "hooks.example", now.Add(6*24*time.Hour)) // its life is a week, a sixth 28 hours
	var log strings.Builder
	at, err := server.Certificate(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	lines := func(after time.Duration, text string) int {
		t.Helper()
		if at(now.Add(after)) == nil {
			t.Fatalf("after %v: there is no certificate", after)
		}
		return strings.Count(log.String(), text)
	}
	const day = 24 * time.Hour
	if lines(time.Minute, "the certificate"); log.Len() > 0 {
		t.Errorf("there is time yet: %s", log.String())
	}
	if got := lines(5*day-2*time.Hour, "ends soon") + lines(5*day, "ends soon"); got != 2 {
		t.Errorf("it is told once a day: %s", log.String())
	}
	if got := lines(6*day+time.Minute, "has ended") + lines(6*day+time.Hour, "has ended"); got != 2 {
		t.Errorf("that it has ended is told at once, and once a day: %s", log.String())
	}
	if got := lines(7*day+2*time.Hour, "has ended"); got != 2 {
		t.Errorf("the day after: %s", log.String())
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), certFile) {
		t.Errorf("the log: %s", log.String())
	}

	log.Reset()
	if at, err = server.Certificate(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	ca.write(t, dir, 2, "hooks.example", now.Add(365*day))
	later := now.Add(7 * day)
	if err := errors.Join(os.Chtimes(certFile, later, later), os.Chtimes(keyFile, later, later)); err != nil {
		t.Fatal(err)
	}
	if lines(7*day, ""); log.Len() > 0 {
		t.Errorf("it was renewed: %s", log.String())
	}
}

func TestConfigurationOfTLSIsRefusedWhereItCanNotWork(t *testing.T) {
	certFile, keyFile := newAuthority(t).write(t, t.TempDir(), 1, "hooks.example", time.Now().Add(time.Hour))
	for _, row := range []struct {
		change func(*server.Config)
		want   string
	}{
		{func(c *server.Config) { c.TLSCert = certFile }, "--tls-cert: goes with --tls-key"},
		{func(c *server.Config) { c.TLSCert, c.TLSKey = keyFile, certFile }, "--tls-cert: cannot be used"},
		{func(c *server.Config) { c.HTTPListen = "127.0.0.1:0" }, "--http-listen: goes with"},
		{func(c *server.Config) { c.ACMEEmail = "a@example.com" }, "--acme-email: goes with --acme-domain"},
		{func(c *server.Config) { c.ACMEDomain, c.ACMEEmail = []string{"a.example.com"}, "nobody" }, `--acme-email: "nobody" is not a mail address`},
		{func(c *server.Config) { c.ACMEDomain = []string{"*.example.com"} }, `"*.example.com" is not a full domain name`},
		{func(c *server.Config) { c.ACMEDomain = []string{"127.0.0.1"} }, "is not a full domain name"},
		{func(c *server.Config) { c.ACMEDomain = []string{"localhost"} }, "is not a full domain name"},
		{func(c *server.Config) {
			c.ACMEDomain, c.ACMEDirectory = []string{"a.example"}, "http://localhost"
		}, "--acme-directory"},
		{func(c *server.Config) {
			c.ACMEDomain, c.TLSCert, c.TLSKey = []string{"a.example"}, certFile, keyFile
		}, "--acme-domain: does not go with --tls-cert"},
		{func(c *server.Config) {
			c.TLSCert, c.TLSKey, c.PublicURL = certFile, keyFile, "http://hooks.example"
		}, "--public-url: must begin with https://"},
		{func(c *server.Config) { c.PublicURL = "https://hooks.example/a%2Fb" }, "--public-url: the path"},
		{func(c *server.Config) { c.PublicURL = "https://hooks.example/a/../b" }, "--public-url: the path"},
		{func(c *server.Config) { c.PublicURL = "https://hooks.example/a//b" }, "--public-url: the path"},
		{func(c *server.Config) { c.PublicURL = "https://hooks.example/hooks/x" }, "may not begin with /hooks"},
		{func(c *server.Config) { c.PublicURL = "https://hooks.example/#x" }, "is not an http or https address"},
	} {
		cfg := config(t.TempDir())
		cfg.ACMEDirectory = "https://acme.example/directory"
		row.change(&cfg)
		if _, err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v, want %q", err, row.want)
		}
	}
}

// TestTheServiceManagerIsTold plays systemd: sd_notify(3).
func TestTheServiceManagerIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal("no unix sockets here")
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "60000000")
	t.Setenv("WATCHDOG_PID", "")
	s, err := server.New(config(filepath.Join(t.TempDir(), "data")), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, nil) }()
	buffer := make([]byte, 4096)
	seen := ""
	for _, want := range []string{"READY=1", "WATCHDOG=1", "STOPPING=1"} {
		if want == "STOPPING=1" {
			stop()
		}
		for !strings.Contains(seen, want) {
			if err := socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			n, err := socket.Read(buffer)
			if err != nil {
				t.Fatalf("%s did not come: %v; %q did", want, err, seen)
			}
			seen += string(buffer[:n]) + "\n"
			if strings.Contains(string(buffer[:n]), "READY=1") {
				if status, _ := call(t, "GET", s.URL()+"/readyz", "", ""); status != 200 {
					t.Errorf("ready was said, and /readyz answers %d", status)
				}
			}
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWhatClosesItsConnectionsIsNotFrozen: a listener that turns everyone away is busy, and one that does nothing with a
// connection is frozen.
func TestWhatClosesItsConnectionsIsNotFrozen(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if server.Answering(ln.Addr().String(), 10*time.Millisecond) {
		t.Error("nobody took the connection, and that passes for an answer")
	}
	taking := make(chan struct{})
	go func() {
		defer close(taking)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			nc.Close()
		}
	}()
	if !server.Answering(ln.Addr().String(), patience) {
		t.Error("a listener that closes its connections passes for a frozen one")
	}
	ln.Close()
	<-taking
	if server.Answering(ln.Addr().String(), patience) {
		t.Error("a listener that is gone passes for one that answers")
	}
}
