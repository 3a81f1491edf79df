package server

import (
	"context"
	"crypto/tls"
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

// certificate is a pair of files that may be renewed while the service runs.
type certificate struct {
	certFile, keyFile string

	mu      sync.Mutex
	current *tls.Certificate
	changed [2]time.Time // of the files when they were read
	looked  time.Time
	unfit   time.Time // since when what the files hold cannot be used; zero: it can
	told    bool      // that it cannot
	log     *slog.Logger
}

// certificateGrain is how often the files are looked at.
const certificateGrain = time.Second

// renewalTime is longer than two files are half renewed: what cannot be used for so long is nobody's renewal any more.
const renewalTime = 10 * time.Second

func loadCertificate(certFile, keyFile string) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: slog.New(slog.DiscardHandler)}
	return c, c.load(time.Now())
}

func (c *certificate) load(now time.Time) error {
	c.looked = now
	var changed [2]time.Time // a file may be put there with its time, which need not be later
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

// get is for tls.Config. Files that cannot be read now, as in the middle of a renewal, leave the certificate as it is.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.at(time.Now()) }

func (c *certificate) at(now time.Time) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) >= certificateGrain {
		c.note(now, c.load(now))
	}
	return c.current, nil
}

// note says once of files that cannot be used that they cannot: what was read before is shown on, and nobody would
// notice until it ends.
func (c *certificate) note(now time.Time, err error) {
	switch {
	case err == nil:
		c.unfit, c.told = time.Time{}, false
	case c.unfit.IsZero():
		c.unfit = now
	case !c.told && now.Sub(c.unfit) >= renewalTime:
		c.told = true
		c.log.Warn("a certificate that was changed can not be used; the one before is shown on", "file", c.certFile, "error", err)
	}
}

// secure reports whether --listen speaks TLS.
func (c *checked) secure() bool { return c.pair != nil || len(c.ACMEDomain) > 0 }

// newTLS is the TLS of --listen, and what answers ACME's challenges by HTTP; nil without.
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
	outbound.Watch(authority, (&acmeLog{log: s.log.With("part", "acme")}).look)
	return &autocert.Manager{
		Prompt: autocert.AcceptTOS, // who names a domain asks for its certificate, on the authority's terms
		Cache:  &s.certificates,
		// By HTTP the name may come with a port, where the authority's way leads through one that is forwarded.
		HostPolicy: func(ctx context.Context, host string) error { return names(ctx, hostOf(host)) },
		Email:      s.cfg.ACMEEmail,
		Client:     &acme.Client{DirectoryURL: s.cfg.ACMEDirectory, UserAgent: "hookglass/" + hookglass.Version, HTTPClient: authority},
	}
}

// logged is the manager's way to a certificate, saying why there is none: who connects is not told.
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

// certificates keeps what autocert wants kept in the database, sealed, so that the nodes of an installation share one
// certificate, and any of them answers a challenge. Until the database is open it fails, and so do handshakes: none may
// order a certificate that is there.
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
	var sealed []byte
	err := at.db.View(ctx, hookglass.System, func(v *store.View) (err error) {
		sealed, err = v.ACME(name)
		return err
	})
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

// inTheClear serves --http-listen, behind reception: health, and the way to https for whoever reads a page. A call that
// bears a token or changes something is refused instead: a client that followed would send its token in the clear
// before each call, and nobody would notice.
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

// secureAddress is the address of a request by https: below the public URL, or a name of our own that the request used.
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

// hostOf is an authority without its port.
func hostOf(authority string) string {
	if host, _, err := net.SplitHostPort(authority); err == nil {
		return host
	}
	return authority
}
