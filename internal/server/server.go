package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"hookglass"
	"hookglass/internal/account"
	"hookglass/internal/action"
	"hookglass/internal/alert"
	"hookglass/internal/capture"
	"hookglass/internal/declare"
	"hookglass/internal/delivery"
	"hookglass/internal/diagnosis"
	"hookglass/internal/drift"
	"hookglass/internal/endpoint"
	"hookglass/internal/flow"
	"hookglass/internal/httpd"
	"hookglass/internal/ingest"
	"hookglass/internal/outbound"
	"hookglass/internal/release"
	"hookglass/internal/replay"
	"hookglass/internal/retries"
	"hookglass/internal/share"
	"hookglass/internal/smtpd"
	"hookglass/internal/store"
	"hookglass/internal/tunnel"
)

const (
	exitTimeout  = 29 * time.Second // from the signal to the end (30 s by spec: decisions, section 14)
	drainTimeout = 20 * time.Second // for requests under way when the server stops
	cutOffAfter  = 18 * time.Second // then requests that wait for others, such as replays, are given up and answered
	databaseFile = "hookglass.db"
	lockFile     = "lock"     // of the data directory
	devFile      = "dev.json" // what dev remembers
)

// Server is one node. New binds its listeners, Run serves until its context ends.
type Server struct {
	cfg      *checked
	log      *slog.Logger
	metrics  *metrics
	gate     *gate
	front    *ingest.Front
	http     *http.Server
	listener net.Listener
	private  net.Listener // --metrics-listen, nil without
	clear    net.Listener // --http-listen, nil without
	clearTo  *http.Server // behind it
	tls      *tls.Config  // of the listener, or nil
	mail     *smtpd.Server
	release  func() // unlocks the data directory
	draining chan struct{}
	hangup   chan os.Signal  // SIGHUP: read the endpoints file again
	requests context.Context // of all requests except those that front handles alone
	cutOff   context.CancelFunc
	public   *url.URL

	certificates certificates // by ACME

	smtpListener net.Listener // nil: none
	lmtpListener net.Listener // nil: none

	// Set when the database is open.
	db        *store.DB
	accounts  *account.Service
	endpoints *endpoint.Service
	captures  *capture.Service
	shares    *share.Service
	replays   *replay.Service
	releases  *release.Service
	alerts    *alert.Service
	actions   *action.Service
	tunnels   *tunnel.Service
	flows     *flow.Service
	diagnoses *diagnosis.Service
	declares  *declare.Service
	retries   *retries.Service
	drift     *drift.Service
}

// New validates the configuration, locks the data directory and binds the listeners.
func New(cfg Config, log *slog.Logger) (*Server, error) {
	c, err := cfg.Validate()
	if err != nil {
		return nil, err
	}
	if err := enoughFiles(fileLimit()); err != nil {
		return nil, err
	}
	tuneMemory()
	draining := make(chan struct{})
	s := &Server{cfg: c, log: log, gate: newGate(draining, courtesy), release: func() {}, draining: draining, hangup: make(chan os.Signal, 1)}
	s.requests, s.cutOff = context.WithCancel(context.Background())
	s.metrics = newMetrics(func() bool { return s.readiness(context.Background()).Status == "ready" }, func() bool { return s.gate.ready.Load() && s.db.OnReserve() })
	if err := c.makeDirectory(); err != nil {
		return nil, err
	}
	sweep(c.Data, freshPrefix)
	if c.DatabaseURL == "" {
		if s.release, err = lockData(c.Data); err != nil {
			return nil, err
		}
		if err := c.restored(); err != nil {
			s.release()
			return nil, err
		}
	}
	if err := s.bind(); err != nil {
		s.unbind()
		return nil, err
	}
	s.mail = s.newMail()
	s.public = s.publicAddress()
	conns, _ := connections(fileLimit())
	s.front = ingest.New(ingest.Config{
		MaxBodyBytes: c.MaxBodyBytes, TrustedProxies: c.proxies, PublicURL: s.public, OwnTLS: c.secure(), MaxConns: conns,
	}, s.gate, log.With("part", "ingest"))
	config, challenges := s.newTLS()
	root := s.fromBelow(s.root())
	s.tls, s.http = config, s.newHTTP(root)
	if config != nil {
		s.http.TLSNextProto = nil // let net/http serve HTTP/2 when TLS negotiated it
	}
	s.http.RegisterOnShutdown(func() { close(s.draining) })
	if s.clear != nil {
		s.clearTo = s.newHTTP(challenges(s.inTheClear(root)))
	}
	return s, nil
}

// bind binds the listeners.
func (s *Server) bind() (err error) {
	if s.listener, err = ingest.Listen(s.cfg.Listen); err != nil {
		return bindFailure("listen", err)
	}
	if s.cfg.MetricsListen != "" {
		if s.private, err = net.Listen("tcp", s.cfg.MetricsListen); err != nil {
			return bindFailure("metrics-listen", err)
		}
	}
	if s.cfg.HTTPListen != "" {
		if s.clear, err = ingest.Listen(s.cfg.HTTPListen); err != nil {
			return bindFailure("http-listen", err)
		}
	}
	return s.bindMail(s.cfg.anySMTPPort)
}

// unbind closes what bind has bound, and unlocks the data directory.
func (s *Server) unbind() {
	for _, ln := range []net.Listener{s.listener, s.private, s.clear, s.smtpListener, s.lmtpListener} {
		if ln != nil {
			ln.Close()
		}
	}
	s.release()
}

// publicAddress returns --public-url, or what follows from the listener and its certificate.
func (s *Server) publicAddress() *url.URL {
	at := reachable(s.Addr())
	switch {
	case s.cfg.publicURL != nil:
		return s.cfg.publicURL
	case len(s.cfg.ACMEDomain) > 0:
		host := s.cfg.ACMEDomain[0]
		if _, port, err := net.SplitHostPort(at); err == nil && port != "443" {
			host = net.JoinHostPort(host, port)
		}
		return &url.URL{Scheme: "https", Host: host}
	case s.cfg.secure():
		return &url.URL{Scheme: "https", Host: at}
	}
	return &url.URL{Scheme: "http", Host: at}
}

// newHTTP returns the HTTP server behind reception.
func (s *Server) newHTTP(root http.Handler) *http.Server {
	return &http.Server{
		Handler:           s.front.Handler(root),
		BaseContext:       func(net.Listener) context.Context { return s.requests },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.With("part", "http").Handler(), slog.LevelDebug),
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2 in the clear
	}
}

// URL is the address of the service for people, without a slash at its end.
func (s *Server) URL() string { return s.public.String() }

// Addr is the address in use for HTTP.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// hearHangups handles SIGHUP. With an endpoints file it rereads that. Otherwise it stops a process with a terminal,
// which was closed, and is ignored by a daemon, which has nothing to reread, or under nohup(1).
func (s *Server) hearHangups(ctx context.Context) (context.Context, context.CancelFunc) {
	switch {
	case s.cfg.EndpointsFile != "":
		signal.Notify(s.hangup, syscall.SIGHUP)
		return ctx, func() { signal.Stop(s.hangup) }
	case signal.Ignored(syscall.SIGHUP):
	case hasTerminal():
		return signal.NotifyContext(ctx, syscall.SIGHUP)
	default:
		signal.Ignore(syscall.SIGHUP)
		return ctx, func() { signal.Reset(syscall.SIGHUP) }
	}
	return ctx, func() {}
}

// hasTerminal reports whether a terminal controls this process, wherever its output goes.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// Run serves until ctx ends and everything that was accepted is answered and stored. opened is called once, when the
// database is open and requests are served; it may be nil.
func (s *Server) Run(ctx context.Context, opened func(context.Context) error) error {
	defer s.release()
	ctx, heard := s.hearHangups(ctx)
	defer heard()
	run, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var parts sync.WaitGroup
	background := func(name string, f func(context.Context) error) {
		parts.Go(func() {
			if err := f(run); err != nil && run.Err() == nil {
				stop(fmt.Errorf("%s: %w", name, err))
			}
		})
	}

	serving := make(chan error, 2)
	s.serve(serving)
	s.serveMail(func(err error) { stop(err) })
	if s.private != nil {
		defer s.serveMetrics()()
	}

	err := remedied(s.open(ctx, background))
	if err == nil && opened != nil {
		err = opened(ctx)
	}
	if err == nil {
		select {
		case <-ctx.Done():
			s.log.Info("stopping")
		case <-run.Done():
			err = context.Cause(run)
		case err = <-serving:
		}
	} else if ctx.Err() != nil {
		err = nil // stopped while starting, so an interrupted step is not an error
	}

	// Clear readiness first, so that load balancers look elsewhere; then the listeners drain, then background work
	// stops, and the database closes last.
	over := time.Now().Add(exitTimeout)
	notify("STOPPING=1")
	s.gate.ready.Store(false)
	defer s.cutOff()
	defer time.AfterFunc(cutOffAfter, s.cutOff).Stop()
	s.drain()
	stop(nil)
	return errors.Join(err, s.settle(&parts, over))
}

// settle waits for the background work, and closes the database. It waits no longer when the time is over: a database
// that hangs would hold the process for a minute. What is then not stored is done again, as after a crash.
func (s *Server) settle(parts *sync.WaitGroup, over time.Time) error {
	closed := make(chan error, 1)
	go func() {
		parts.Wait()
		if s.db == nil {
			closed <- nil
			return
		}
		closed <- s.db.Close()
	}()
	select {
	case err := <-closed:
		return err
	case <-time.After(time.Until(over)):
		s.log.Warn("the service ends before its work does: the storage does not answer; what is not stored is done again")
		return nil
	}
}

// serve starts to serve HTTP on the bound listeners, and reports when that ends.
func (s *Server) serve(ended chan<- error) {
	go func() { ended <- s.front.Serve(s.listener, s.tls, s.http) }()
	s.log.Info("listening", "http", s.Addr(), "url", s.URL(), "version", hookglass.Version)
	if s.clear != nil {
		go func() { ended <- s.front.Serve(s.clear, nil, s.clearTo) }()
		s.log.Info("listening without TLS", "http", s.clear.Addr().String())
	}
}

// serveMetrics starts to serve --metrics-listen, and returns what stops that.
func (s *Server) serveMetrics() (end func()) {
	figures := &http.Server{
		Handler: s.metrics.private(), ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(s.log.With("part", "metrics").Handler(), slog.LevelDebug),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := figures.Serve(s.private); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("metrics are served no longer", "error", err)
		}
	}()
	s.log.Info("listening for metrics", "http", s.private.Addr().String())
	return func() {
		figures.Close()
		<-ended
	}
}

// drain accepts no more connections, and waits until the open ones have their answers or the time is over.
func (s *Server) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	var draining sync.WaitGroup
	for _, shutdown := range []func(context.Context) error{s.front.Shutdown, s.mail.Shutdown} {
		draining.Go(func() {
			if err := shutdown(ctx); err != nil {
				s.log.Warn("connections were cut off", "error", err)
			}
		})
	}
	draining.Wait()
}

// root serves what must answer without a database, and everything else through the gate. It is not an http.ServeMux,
// which would redirect an unclean path before the API or the web app could answer it.
func (s *Server) root() http.Handler {
	figures, behind := s.metrics.handler(), s.metrics.counted(s.gate)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch path := r.URL.Path; {
		case (path == "/healthz" || path == "/readyz") && !reads:
			w.Header().Set("Allow", "GET, HEAD")
			httpd.WriteError(w, r, httpd.ErrMethod)
		case path == "/healthz":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"status":"ok"}`+"\n")
		case path == "/readyz":
			s.readyz(w, r)
		case path == "/metrics" && reads && s.private == nil && fromLoopback(r):
			figures.ServeHTTP(w, r)
		default:
			behind.ServeHTTP(w, r)
		}
	})
}

// fromLoopback reports whether the request was made on this machine by something other than a proxy or this service
// itself, which may send to loopback if that is allowed: replays and forwards name their event and actions count their
// hops, in headers that users cannot remove.
func fromLoopback(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() &&
		!slices.ContainsFunc([]string{"X-Forwarded-For", "Forwarded", delivery.HeaderOriginal, outbound.HopHeader}, func(name string) bool { return r.Header.Get(name) != "" })
}

// reachable turns the address of a listener, which may mean all that the machine has, into one that can be opened.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.Unmap().IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
