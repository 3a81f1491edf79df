package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"hookglass"
	"hookglass/internal/httpd"
	"hookglass/internal/outbound"
	"hookglass/internal/seal"
	"hookglass/internal/store"
)

// certificate is a pair of files that may be replaced while the service runs.
type certificate struct {
	certFile, keyFile string

	mu      sync.Mutex
	current *tls.Certificate
	changed [2]time.Time // of the files when they were read
	looked  time.Time
	unfit   time.Time // since when the files have been unusable; zero: they are usable
	told    bool      // that was logged
	worry   string    // what was logged last about the certificate's age, and when
	worried time.Time
	log     *slog.Logger
}

// certificateGrain is how often the files are checked.
const certificateGrain = time.Second

// renewalTime is longer than a renewal takes to replace both files: files that are unusable for longer are an error.
const renewalTime = 10 * time.Second

func loadCertificate(certFile, keyFile string) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: slog.New(slog.DiscardHandler)}
	return c, c.load(time.Now())
}

func (c *certificate) load(now time.Time) error {
	c.looked = now
	var changed [2]time.Time // compare for equality: a new file may have an older time
	for i, file := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		changed[i] = info.ModTime()
	}
	if c.current != nil && changed == c.changed {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.current, c.changed = &pair, changed
	return nil
}

// get is for tls.Config. While files are unreadable, as during a renewal, it returns the previous certificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.at(time.Now()), nil
}

func (c *certificate) at(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) >= certificateGrain {
		c.note(now, c.load(now))
		c.judge(now)
	}
	return c.current
}

// note logs once that files are unusable: the previous certificate is still in use, and nobody would notice until it
// expires.
func (c *certificate) note(now time.Time, err error) {
	switch {
	case err == nil:
		c.unfit, c.told = time.Time{}, false
	case c.unfit.IsZero():
		c.unfit = now
	case !c.told && now.Sub(c.unfit) >= renewalTime:
		c.told = true
		c.log.Warn("a certificate that was changed cannot be used; the one before is shown on", "file", c.certFile, "error", err)
	}
}

// judge logs, once a day, that the certificate in use is not valid or ends soon: clients that refuse it leave no other
// trace here.
func (c *certificate) judge(now time.Time) {
	leaf, worry := c.current.Leaf, ""
	switch {
	case now.Before(leaf.NotBefore):
		worry = "the certificate is not valid yet, clients refuse it"
	case !now.Before(leaf.NotAfter):
		worry = "the certificate has ended, clients refuse it"
	case leaf.NotAfter.Sub(now) < renewalDue(leaf):
		worry = "the certificate ends soon"
	}
	if worry == c.worry && now.Sub(c.worried) < 24*time.Hour {
		return
	}
	c.worry, c.worried = worry, now
	if worry == "" {
		return
	}
	c.log.Warn(worry, "file", c.certFile, "from", leaf.NotBefore.UTC(), "until", leaf.NotAfter.UTC())
}

// renewalDue is how long before its end a certificate should have been renewed: two weeks, or a sixth of a shorter
// life. Authorities have theirs renewed when a third of it is left.
func renewalDue(leaf *x509.Certificate) time.Duration {
	return min(renewSoon, leaf.NotAfter.Sub(leaf.NotBefore)/6)
}

// secure reports whether --listen speaks TLS.
func (c *checked) secure() bool { return c.pair != nil || len(c.ACMEDomain) > 0 }

// newTLS returns the TLS configuration of --listen, and a handler for ACME's HTTP challenges; nil without TLS.
func (s *Server) newTLS() (config *tls.Config, challenges func(http.Handler) http.Handler) {
	config = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1", "http/1.0"}}
	challenges = func(next http.Handler) http.Handler { return next }
	switch {
	case !s.cfg.secure():
		return nil, challenges
	case s.cfg.pair != nil:
		s.cfg.pair.log = s.log.With("part", "tls")
		config.GetCertificate = s.cfg.pair.get
	default:
		manager := s.newACME()
		config.GetCertificate = s.logged(manager)
		config.NextProtos = append(config.NextProtos, acme.ALPNProto)
		challenges = manager.HTTPHandler
	}
	return config, challenges
}

func (s *Server) newACME() *autocert.Manager {
	names := autocert.HostWhitelist(s.cfg.ACMEDomain...)
	authority := outbound.Operator(s.cfg.acmeRoots)
	outbound.Watch(authority, (&acmeLog{log: s.log.With("part", "acme"), told: make(map[string]string)}).look)
	return &autocert.Manager{
		Prompt: autocert.AcceptTOS, // setting the flag accepts the authority's terms
		Cache:  &s.certificates,
		// Over HTTP the name may have a port, if the authority's request is forwarded from another port.
		HostPolicy: func(ctx context.Context, host string) error { return names(ctx, hostOf(host)) },
		Email:      s.cfg.ACMEEmail,
		Client:     &acme.Client{DirectoryURL: s.cfg.ACMEDirectory, UserAgent: "hookglass/" + hookglass.Version, HTTPClient: authority},
	}
}

// logged returns a GetCertificate that logs errors: the client is not told the reason.
func (s *Server) logged(manager *autocert.Manager) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	log := s.log.With("part", "acme")
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		cert, err := manager.GetCertificate(hello)
		switch {
		case err == nil:
		case slices.Contains(s.cfg.ACMEDomain, strings.ToLower(hello.ServerName)) && !errors.Is(err, errCertificatesNotYet):
			log.Error("there is no certificate", "domain", strings.ToLower(hello.ServerName), "error", err)
		default:
			log.Debug("a handshake without a certificate", "error", err)
		}
		return cert, err
	}
}

// certificates stores autocert's data in the database, sealed, so that the nodes of an installation share one
// certificate and any of them can answer a challenge. It fails until the database is open, and so do handshakes: a node
// must not order a certificate that exists already.
type certificates struct {
	open atomic.Pointer[certificateStore]
}

type certificateStore struct {
	db   *store.DB
	keys *seal.Keys
}

var errCertificatesNotYet = errors.New("the database is not open yet")

func sealedAs(name string) string { return "acme:sealed:" + name }

// Get implements autocert.Cache.
func (c *certificates) Get(ctx context.Context, name string) ([]byte, error) {
	at := c.open.Load()
	if at == nil {
		return nil, errCertificatesNotYet
	}
	sealed, err := store.Read(ctx, at.db, hookglass.System, func(v *store.View) ([]byte, error) { return v.ACME(name) })
	if hookglass.Is(err, hookglass.CodeNotFound) {
		return nil, autocert.ErrCacheMiss
	}
	if err != nil {
		return nil, err
	}
	return at.keys.Open(sealed, sealedAs(name))
}

// Put implements autocert.Cache.
func (c *certificates) Put(ctx context.Context, name string, data []byte) error {
	at := c.open.Load()
	if at == nil {
		return errCertificatesNotYet
	}
	sealed, err := at.keys.Seal(data, sealedAs(name))
	if err != nil {
		return err
	}
	return at.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.PutACME(name, sealed) })
}

// Delete implements autocert.Cache.
func (c *certificates) Delete(ctx context.Context, name string) error {
	at := c.open.Load()
	if at == nil {
		return errCertificatesNotYet
	}
	return at.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.DeleteACME(name) })
}

// inTheClear serves --http-listen except for reception: health, and redirects to https for pages. It refuses calls with
// a token or that change something instead of redirecting them: a client that follows would keep sending its token
// unencrypted, and nobody would notice.
func (s *Server) inTheClear(root http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := s.below(r.URL.Path)
		switch reads := r.Method == http.MethodGet || r.Method == http.MethodHead; {
		case path == "/healthz" || path == "/readyz":
			root.ServeHTTP(w, r)
		case reads && r.Header.Get("Authorization") == "" && r.Header.Get("Upgrade") == "":
			w.Header().Set("Location", s.secureAddress(r))
			w.WriteHeader(http.StatusPermanentRedirect)
		default:
			httpd.WriteError(w, r, hookglass.Errorf(hookglass.CodeForbidden, "This is answered by https alone, at %s.", s.URL()))
		}
	})
}

// secureAddress returns the https URL of a request: below the public URL, or at a name of ours that the request used.
func (s *Server) secureAddress(r *http.Request) string {
	host := s.public.Host
	if name := hostOf(r.Host); slices.Contains(s.cfg.ACMEDomain, strings.ToLower(name)) {
		host = name
		if port := s.public.Port(); port != "" {
			host = net.JoinHostPort(name, port)
		}
	}
	address := "https://" + host + s.public.Path + s.below(r.URL.EscapedPath())
	if r.URL.RawQuery != "" {
		address += "?" + r.URL.RawQuery
	}
	return address
}

// hostOf returns an authority without its port.
func hostOf(authority string) string {
	if host, _, err := net.SplitHostPort(authority); err == nil {
		return host
	}
	return authority
}
