// Package ingest receives webhooks and posted mail. It owns the HTTP/1.x connections of the listener, serves /hooks/...
// and /mail/... itself, and hands all other requests to a net/http server.
//
// It hides how requests are read from a socket and answers are written: framing, limits, slow and hostile senders,
// proxies, pipelining. It passes on a capture.Arrival with exactly what was sent (net/http would lose the spelling and
// the order of header lines) and receives a hookglass.Reply.
//
// # Wiring
//
//	front := ingest.New(ingest.Config{MaxBodyBytes: n, TrustedProxies: cidrs}, capturer, log)
//	listener, err := ingest.Listen(addr)
//	rest := &http.Server{Handler: front.Handler(mux), ReadHeaderTimeout: ..., ErrorLog: ...}
//	err := front.Serve(listener, nil, rest) // blocks; http.ErrServerClosed after Shutdown
//	...
//	err = front.Shutdown(ctx) // drains both; do not call rest.Shutdown as well
//
// Serve chains rest.ConnState, so set that first. Handler is the same reception as a plain http.Handler. It catches
// hook requests that reach net/http, because they come by HTTP/2 or their path is spelled with escapes, and must come
// before any mux that redirects. Endless streams (SSE) must end when rest's RegisterOnShutdown functions run, and the
// owner of hijacked connections (WebSockets) must end those: Shutdown does not wait for them.
//
// # One connection, two servers
//
// Each connection has a goroutine that reads heads and serves hooks. At the first other request the connection goes to
// net/http for good, but its Read knows where requests end. When net/http reads at such a boundary, after it has
// finished the previous answer (http.StateIdle), Read takes the next head from the socket itself, and serves it in
// place if it is a hook. So answers are never reordered and header order is never lost, however a client mixes requests
// on a connection.
//
// # What is answered by the front
//
// The front adds Date if the reply does not have it, Content-Length (except for 204 and 304, and for HEAD if the body
// is not known), and Connection if the protocol needs it. Refusals are {"error", "message"} as JSON; 429 and 503 carry
// Retry-After. Heads that are malformed or too large are refused so on all paths. After a refusal that leaves a body
// unread the connection lingers, so that the sender can read it.
package ingest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/intake"
	"hookglass/internal/memory"
)

// Capturer captures what is received. All methods must return soon after their context ends. The context does not end
// when the sender hangs up.
type Capturer interface {
	// Admit finds the endpoint before the body is read. Errors: not_found, gone, rate_limited, unavailable.
	Admit(ctx context.Context, ref string) (capture.Target, error)
	// Capture stores the arrival durably and returns the reply to its sender. Errors: unavailable, not_found if the
	// endpoint was deleted meanwhile, rate_limited.
	Capture(ctx context.Context, t capture.Target, a *capture.Arrival) (*hookglass.Reply, error)
	// AdmitMailbox is Admit for an email endpoint.
	AdmitMailbox(ctx context.Context, ref string) (capture.Target, error)
	// CapturePosted is Capture for a posted mail. Further errors: unsupported_media_type, invalid_json,
	// validation_failed.
	CapturePosted(ctx context.Context, t capture.Target, a *capture.Arrival) (*hookglass.Reply, error)
	// Answer converts a reply that awaits to the one to send. It may take half a minute, but returns soon after its
	// context ends.
	Answer(ctx context.Context, r *hookglass.Reply) *hookglass.Reply
	// Refuse counts an arrival that was refused for its size.
	Refuse(ctx context.Context, t capture.Target)
}

// Config holds the limits of reception. Zero values select the defaults.
type Config struct {
	MaxBodyBytes   int64         // larger bodies get 413; default 25 MiB (spec: decisions, section 2)
	MaxHeaderBytes int           // of the request line and header lines; more get 414 or 431; default 64 KiB
	MaxHeaders     int           // header lines; more get 431; default 256
	HeaderTimeout  time.Duration // for a head, and for the first byte of a connection; default 10 s
	IdleTimeout    time.Duration // between requests; default 2 min
	BodyGrace      time.Duration // how long a body may lag behind MinBodyRate; default 10 s
	MinBodyRate    int64         // bytes per second, 16 times that for a body that uses the budget; default 1 KiB
	WriteTimeout   time.Duration // for the sender to accept an answer; default 30 s
	MaxConns       int           // open connections of all kinds; more get 503; default 16,384
	InFlightBytes  int64         // memory for bodies until they are answered, shared by all; default 128 MiB, less where memory is short
	BudgetWait     time.Duration // for a share of InFlightBytes, then 503; default 30 s
	CaptureTimeout time.Duration // for Admit and Capture together, then 503; default 6 s
	TrustedProxies []netip.Prefix
	PublicURL      *url.URL // its scheme applies to its host, its host to requests without one; its path may prefix all
	OwnTLS         bool     // PublicURL leads to a listener with TLS: what comes without it was sent in the clear
}

func (c Config) withDefaults() Config {
	c.MaxBodyBytes = cmp.Or(c.MaxBodyBytes, 25<<20)
	c.MaxHeaderBytes = cmp.Or(c.MaxHeaderBytes, capture.MaxHeaderBytes)
	c.MaxHeaders = cmp.Or(c.MaxHeaders, capture.MaxHeaders)
	c.HeaderTimeout = cmp.Or(c.HeaderTimeout, 10*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 2*time.Minute)
	c.BodyGrace = cmp.Or(c.BodyGrace, 10*time.Second)
	c.MinBodyRate = cmp.Or(c.MinBodyRate, 1<<10)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)
	c.MaxConns = cmp.Or(c.MaxConns, 1<<14)
	c.InFlightBytes = cmp.Or(c.InFlightBytes, memory.Room(128<<20))
	c.BudgetWait = cmp.Or(c.BudgetWait, 30*time.Second)
	c.CaptureTimeout = cmp.Or(c.CaptureTimeout, 6*time.Second)
	return c
}

// Front receives webhooks. Its methods may be called at any time from any goroutine.
type Front struct {
	cfg      Config
	capturer Capturer
	log      *slog.Logger
	budget   *intake.Budget
	turns    *intake.Budget // of large bodies in the capturer
	full     intake.Telling // logs that there are too many connections
	crowded  intake.Telling // logs that the budget has no room for bodies
	queued   intake.Telling // logs that large bodies have no turn in time
	clock    clock
	base     string    // the path of PublicURL without a trailing slash
	readBufs sync.Pool // *readBuf
	outBufs  sync.Pool // *[]byte

	stored   atomic.Int64 // when an arrival was last stored, in ns
	draining atomic.Bool
	held     atomic.Int64  // senders that are kept waiting without an answer
	delayed  atomic.Int64  // bytes of delayed answers
	turned   chan struct{} // a semaphore for excess connections that are given a moment
	drain    chan struct{} // closed when draining starts

	mu      sync.Mutex
	serving []*serving
	conns   map[*conn]struct{}
	waited  int           // connections that Shutdown waits for: all except hijacked ones
	shut    bool          // draining, and all accepted connections are in conns
	drained chan struct{} // closed when shut is set and waited is 0
}

// serving is one listener with its net/http server.
type serving struct {
	ln      net.Listener
	tls     *tls.Config // nil: in the clear
	rest    *http.Server
	handoff *handoff
	ended   chan struct{} // closed when accepting has ended
}

// How long a listener continues to accept when the server stops. The system may have completed connections that were
// not accepted yet, whose requests are under way, and closing the listener would reset them. If new ones are kept out,
// those in progress get time to complete.
const (
	lastAccept     = 5 * time.Millisecond
	lastAcceptCall = 100 * time.Millisecond
)

// deadlined is a listener whose Accept may be bounded.
type deadlined interface{ SetDeadline(time.Time) error }

// stop closes the listener after accepting the connections that are there.
func (s *serving) stop() {
	last := lastAccept
	if lastCall(s.ln) {
		last = lastAcceptCall
	}
	if ln, ok := s.ln.(deadlined); ok && ln.SetDeadline(time.Now().Add(last)) == nil {
		<-s.ended
	}
	s.ln.Close()
	<-s.ended
}

// acceptLast accepts once more after the deadline of stop has passed, which failed Accept with err: a deadline that
// passed while the process did not run hides the connections that are there. It returns nil if there are none.
func (s *serving) acceptLast(err error) net.Conn {
	ln, ok := s.ln.(deadlined)
	if !ok || !isTimeout(err) || ln.SetDeadline(time.Now().Add(lastAccept)) != nil {
		return nil
	}
	nc, err := s.ln.Accept()
	if err != nil {
		return nil
	}
	return nc
}

// The storage writes one group of captures after the other, and what comes behind them waits for all that it was given.
// So bodies that are a group of their own have turns: turnBytes at a time, and one body besides (docs/decisions/0053).
// Smaller ones share groups, which would be emptier if they had turns.
const (
	turnsFrom = 4 << 20
	turnBytes = 8 << 20
)

// New returns a front that passes arrivals to the capturer.
func New(cfg Config, capturer Capturer, log *slog.Logger) *Front {
	cfg = cfg.withDefaults()
	base := ""
	if cfg.PublicURL != nil {
		base = strings.TrimRight(cfg.PublicURL.Path, "/")
	}
	return &Front{
		base:     base,
		cfg:      cfg,
		capturer: capturer,
		log:      log,
		budget:   intake.NewBudget(cfg.InFlightBytes, cfg.MaxBodyBytes),
		turns:    intake.NewTurns(turnBytes),
		drain:    make(chan struct{}),
		turned:   make(chan struct{}, max(1, min(mostTurned, cfg.MaxConns/8))),
		conns:    make(map[*conn]struct{}),
		drained:  make(chan struct{}),
	}
}

// Listen binds an address for Serve, which can stop such a listener without resetting connections. It uses plain TCP,
// because multipath TCP, the default of net.Listen, supports no socket filter on Linux.
func Listen(addr string) (net.Listener, error) {
	var cfg net.ListenConfig
	cfg.SetMultipathTCP(false)
	return cfg.Listen(context.Background(), "tcp", addr)
}

// Serve accepts connections until Shutdown, and then returns http.ErrServerClosed. Requests other than hooks go to
// rest, whose ConnState it chains. Without cfg they come in the clear; with it by TLS, and those connections that
// negotiate HTTP/2 (ALPN "h2") go to rest entirely, which receives hooks by [Front.Handler].
func (f *Front) Serve(ln net.Listener, cfg *tls.Config, rest *http.Server) error {
	s := &serving{ln, cfg, rest, newHandoff(ln.Addr()), make(chan struct{})}
	then := rest.ConnState
	rest.ConnState = func(nc net.Conn, state http.ConnState) {
		if c, ok := nc.(interface{ connState(http.ConnState) }); ok {
			c.connState(state)
		}
		if then != nil {
			then(nc, state)
		}
	}
	f.mu.Lock()
	if f.draining.Load() {
		f.mu.Unlock()
		ln.Close()
		return http.ErrServerClosed
	}
	f.serving = append(f.serving, s)
	f.mu.Unlock()

	rested := make(chan struct{})
	go func() {
		defer close(rested)
		if err := rest.Serve(s.handoff); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			f.log.Error("the server behind reception stopped", "error", err)
		}
	}()
	err := f.accept(s)
	close(s.ended)
	if !f.draining.Load() {
		s.handoff.Close()
	}
	<-rested
	return err
}

func (f *Front) accept(s *serving) error {
	var accepting intake.Accepting
	for {
		nc, err := s.ln.Accept()
		if err != nil && f.draining.Load() {
			if nc = s.acceptLast(err); nc == nil {
				return http.ErrServerClosed
			}
			err = nil
		}
		if err != nil {
			pause, again := accepting.Failed(err, f.log)
			if !again {
				return err
			}
			select {
			case <-time.After(pause):
			case <-f.drain:
			}
			continue
		}
		accepting.Went()
		c := newConn(f, s, nc)
		if !f.admitConn(c) {
			f.full.Tell(f.log.Warn, "connections are refused: as many are open as may be", "open", f.cfg.MaxConns)
			f.turnAway(s, nc)
			continue
		}
		go c.run()
	}
}

// Bounds on excess connections: how many are given a moment at a time, for how long, and for how many bytes.
const (
	mostTurned = 64
	leaveTime  = time.Second
	leaveBytes = 1 << 20
)

// turnAway tells a sender that there are too many connections. It must not block the accept loop; the answer fits in
// the socket's empty buffer. With TLS it says nothing, because a handshake would cost what is scarce.
func (f *Front) turnAway(s *serving, nc net.Conn) {
	if s.tls != nil {
		nc.Close()
		return
	}
	nc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	r := refuse(http.StatusServiceUnavailable, hookglass.CodeUnavailable, "There are too many connections.").reply()
	nc.Write(appendReply(nil, r, replyForm{minor: 1, close: true, date: f.clock.date(time.Now())}))
	select {
	case f.turned <- struct{}{}:
		go func() {
			leave(nc)
			<-f.turned
		}()
	default: // the sender may still receive it
		nc.Close()
	}
}

// leave closes a connection once its sender has closed it, or had a moment to read the answer. It reads meanwhile, so
// that a sender that is still sending is not reset.
func leave(nc net.Conn) {
	defer nc.Close()
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	nc.SetReadDeadline(time.Now().Add(leaveTime))
	io.CopyN(io.Discard, nc, leaveBytes) // errors do not matter
}

func (f *Front) admitConn(c *conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.conns) >= f.cfg.MaxConns {
		return false
	}
	f.conns[c] = struct{}{}
	f.waited++
	return true
}

// forget removes a closed connection.
func (f *Front) forget(c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.conns[c]; !ok {
		return
	}
	delete(f.conns, c)
	f.unwait(c)
}

// letGo stops waiting for a hijacked connection. It counts against MaxConns until it is closed.
func (f *Front) letGo(c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unwait(c)
}

func (f *Front) unwait(c *conn) {
	if c.letGo {
		return
	}
	c.letGo = true
	f.waited--
	if f.waited == 0 && f.shut {
		close(f.drained)
	}
}

// Shutdown stops accepting, closes idle connections, lets requests that have begun be answered (each answer closes its
// connection), and shuts down the net/http servers. If ctx ends first, it closes the remaining connections and returns
// the context's error.
func (f *Front) Shutdown(ctx context.Context) error {
	f.mu.Lock()
	if f.draining.Load() {
		f.mu.Unlock()
		return nil
	}
	f.draining.Store(true)
	close(f.drain)
	serving := f.serving
	f.mu.Unlock()
	f.endIdle()
	var listeners sync.WaitGroup
	for _, s := range serving {
		listeners.Go(s.stop)
	}
	listeners.Wait()

	f.mu.Lock()
	f.shut = true
	if f.waited == 0 {
		close(f.drained)
	}
	f.mu.Unlock()
	conns := f.endIdle()

	var rests sync.WaitGroup
	errs := make([]error, len(serving))
	for i, s := range serving {
		rests.Go(func() { errs[i] = s.rest.Shutdown(ctx) })
	}
	var err error
	select {
	case <-f.drained:
	case <-ctx.Done():
		err = ctx.Err()
		for _, c := range conns {
			c.kill()
		}
	}
	rests.Wait()
	return errors.Join(append(errs, err)...)
}

// endIdle tells idle connections to end, and returns all connections.
func (f *Front) endIdle() []*conn {
	f.mu.Lock()
	conns := slices.Collect(maps.Keys(f.conns))
	f.mu.Unlock()
	for _, c := range conns {
		c.nudge()
	}
	return conns
}
