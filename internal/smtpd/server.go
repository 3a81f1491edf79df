// Package smtpd receives mail for email endpoints by SMTP and LMTP (RFC 5321, RFC 2033). It never relays: a recipient
// that is not an address of a live email endpoint is refused or, for a client that has signed in to an inbox, caught
// there.
//
// It hides how a message is read from a socket: commands, transparency, chunks, TLS, proxies, limits, slow and hostile
// senders. It produces a capture.Mail with exactly the bytes that were sent, and replies 250 only after they are on
// disk.
//
// A connection has a goroutine of its own. Only CR LF ends a line, and only CR LF . CR LF ends a message.
package smtpd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/httpd"
	"hookglass/internal/intake"
	"hookglass/internal/memory"
)

// Capturer stores the received mail. Its methods must return soon after their context ends.
type Capturer interface {
	// AdmitMail finds the endpoint of a local part in lower case, before the message is read. Errors: not_found, gone,
	// rate_limited, unavailable.
	AdmitMail(ctx context.Context, localPart string) (capture.Target, error)
	// AnswerRecipient returns the answer of a script to a recipient, nil if no script answers. Errors: unavailable.
	AnswerRecipient(ctx context.Context, t capture.Target, from, to string) (*hookglass.Reply, error)
	// CaptureMail durably stores the mail, once for each endpoint, and returns the result for each recipient. Their
	// errors: unavailable, rate_limited, and not_found if the endpoint was deleted meanwhile.
	CaptureMail(ctx context.Context, m *capture.Mail) []capture.Delivered
	// Refuse counts an arrival that was refused for its size.
	Refuse(ctx context.Context, t capture.Target)
}

// Config holds the settings and limits. Zero values of limits mean the defaults.
type Config struct {
	Domain         string      // of the addresses; the name in the greeting
	TLS            *tls.Config // nil: no STARTTLS
	TrustedProxies httpd.Proxies
	SignIn         bool // clients may sign in to an inbox, which catches what they send to other addresses

	MaxMessageBytes int64         // larger messages are 552; default 25 MiB (spec: decisions, section 2)
	MaxRecipients   int           // of one message, beyond it 452; default 100, the least that RFC 5321 allows (section 4.5.3.1.8)
	MaxConns        int           // beyond it 421; default 1,024
	MaxConnsPerAddr int           // open connections from one address, beyond it 421; default 128
	CommandTimeout  time.Duration // for the next command; default 2 min
	BodyGrace       time.Duration // how long a message may be slower than MinBodyRate; default 30 s
	MinBodyRate     int64         // bytes a second, 16 times that once a message takes from the budget; default 1 KiB
	WriteTimeout    time.Duration // for replies to be taken; default 30 s
	InFlightBytes   int64         // memory for messages until they are stored; default 64 MiB, less where memory is short
	BudgetWait      time.Duration // for a share of InFlightBytes, then 451; default 30 s
	CaptureTimeout  time.Duration // for each call of the capturer, then 451; more for large mail; default 10 s

	// Refused is called for each refusal, for metrics; it may be nil.
	Refused func(reason string)
}

func (c Config) withDefaults() Config {
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, 25<<20)
	c.MaxRecipients = cmp.Or(c.MaxRecipients, 100)
	c.MaxConns = cmp.Or(c.MaxConns, 1<<10)
	c.MaxConnsPerAddr = cmp.Or(c.MaxConnsPerAddr, 128)
	c.CommandTimeout = cmp.Or(c.CommandTimeout, 2*time.Minute)
	c.BodyGrace = cmp.Or(c.BodyGrace, 30*time.Second)
	c.MinBodyRate = cmp.Or(c.MinBodyRate, 1<<10)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)
	c.InFlightBytes = cmp.Or(c.InFlightBytes, memory.Room(64<<20))
	c.BudgetWait = cmp.Or(c.BudgetWait, 30*time.Second)
	c.CaptureTimeout = cmp.Or(c.CaptureTimeout, 10*time.Second)
	if c.Refused == nil {
		c.Refused = func(string) {}
	}
	return c
}

// ErrClosed is the error of Serve after Shutdown.
var ErrClosed = errors.New("the mail server is closed")

// Server receives mail. Its methods may be called at any time from any goroutine.
type Server struct {
	cfg      Config
	capturer Capturer
	log      *refusalLog
	budget   *intake.Budget
	draining atomic.Bool
	drain    chan struct{} // closed when draining begins
	delayed  atomic.Int64  // connections whose answer waits, because a script says so

	mu        sync.Mutex
	listeners []net.Listener
	conns     map[*conn]struct{}
	byAddr    map[netip.Addr]int
	serving   sync.WaitGroup
}

// New returns a server that passes mail to the capturer.
func New(cfg Config, capturer Capturer, log *slog.Logger) *Server {
	cfg = cfg.withDefaults()
	return &Server{
		cfg: cfg, capturer: capturer, log: &refusalLog{log: log, told: cfg.Refused},
		budget: intake.NewBudget(cfg.InFlightBytes, cfg.MaxMessageBytes),
		drain:  make(chan struct{}),
		conns:  make(map[*conn]struct{}), byAddr: make(map[netip.Addr]int),
	}
}

// Serve accepts SMTP connections until Shutdown, and then answers ErrClosed.
func (s *Server) Serve(ln net.Listener) error { return s.serve(ln, false) }

// ServeLMTP accepts LMTP connections until Shutdown, and then answers ErrClosed.
func (s *Server) ServeLMTP(ln net.Listener) error { return s.serve(ln, true) }

func (s *Server) serve(ln net.Listener, lmtp bool) error {
	s.mu.Lock()
	if s.draining.Load() {
		s.mu.Unlock()
		ln.Close()
		return ErrClosed
	}
	s.listeners = append(s.listeners, ln)
	s.mu.Unlock()
	var accepting intake.Accepting
	for {
		nc, err := ln.Accept()
		if s.draining.Load() {
			if err == nil {
				nc.Close()
			}
			return ErrClosed
		}
		if err != nil {
			pause, again := accepting.Failed(err, s.log.log)
			if !again {
				return err
			}
			time.Sleep(pause)
			continue
		}
		accepting.Went()
		c := newConn(s, nc, lmtp)
		if reason := s.begin(c); reason != "" {
			// The greeting fits into the socket's empty buffer, so this does not delay accepting other connections.
			nc.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = nc.Write([]byte("421 4.3.2 " + s.cfg.Domain + " " + reason + "\r\n"))
			nc.Close()
			s.log.refused("connections", "client", addrText(c.client))
		}
	}
}

// begin registers the connection and serves it, or returns why not. The two are atomic, because Shutdown waits for all
// registered connections.
func (s *Server) begin(c *conn) (refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining.Load():
		return "is stopping; try again later"
	case len(s.conns) >= s.cfg.MaxConns:
		return "has too many connections; try again later"
	case !c.uncounted && !s.countAddr(c.client):
		return "has too many connections from this address; try again later"
	}
	s.conns[c] = struct{}{}
	s.serving.Go(c.run)
	return ""
}

// countAddr counts a connection from an address, and reports whether it is allowed. Unix sockets have no address and
// are not counted.
func (s *Server) countAddr(a netip.Addr) bool {
	if !a.IsValid() {
		return true
	}
	if s.byAddr[a] >= s.cfg.MaxConnsPerAddr {
		return false
	}
	s.byAddr[a]++
	return true
}

// named records the client that a trusted proxy names, and reports whether it may have another connection.
func (s *Server) named(c *conn, client netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.client = client
	c.uncounted = !s.countAddr(client) // forget must not subtract what was not counted
	return !c.uncounted
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if c.uncounted || !c.client.IsValid() {
		return
	}
	if s.byAddr[c.client]--; s.byAddr[c.client] == 0 {
		delete(s.byAddr, c.client)
	}
}

// Shutdown stops accepting, ends connections that wait for a command (421), and lets messages under way be stored and
// answered. If ctx ends before that, it closes the rest and returns the context's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.draining.Swap(true) {
		close(s.drain)
	}
	for _, ln := range s.listeners {
		ln.Close()
	}
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.nudge()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.serving.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	for _, c := range conns {
		c.kill()
	}
	return ctx.Err()
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
