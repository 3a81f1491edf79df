// Package httpd is the base of every HTTP edge: where a request comes from, who makes it, how errors are answered, and
// what is logged. It hides the mapping of codes to statuses and the reading of bearer tokens and proxy headers, and
// knows no resource.
//
// [Stack.Wrap] wraps all edges at once; inside, [From] returns what is known about a request.
package httpd

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
	"hookglass/internal/fair"
)

// Config says how requests reach the service.
type Config struct {
	Log     *slog.Logger
	Proxies Proxies // trusted to name the sender
}

// Stack is the middleware that all edges share.
type Stack struct {
	log     *slog.Logger
	proxies Proxies
	zips    *zips
}

// New returns the stack.
func New(cfg Config) *Stack { return &Stack{cfg.Log, cfg.Proxies, newZips()} }

// Request is what is known about a request besides its bytes.
type Request struct {
	ID     string // sent to the caller as X-Request-Id, and logged
	Client netip.Addr
	Host   string // the authority that the caller used
	Scheme string // http or https, as the caller used it
	Who    hookglass.Principal

	log    *slog.Logger
	zips   *zips
	unread atomic.Bool // a part of the answer could not be sent
}

type requestKey struct{}

// From returns what is known about the request of this context. Outside of [Stack.Wrap] that is nothing.
func From(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return r
	}
	return &Request{log: slog.New(slog.DiscardHandler)}
}

// Caller identifies the caller for rate limits: by token or, without one, by address. An IPv6 /64, which is usually one
// customer's, counts as one address.
func (r *Request) Caller() string {
	switch {
	case r.Who.Token != 0:
		return "token:" + strconv.FormatInt(r.Who.Token, 10)
	case r.Who.Endpoint != "":
		return "key:" + string(r.Who.Endpoint)
	}
	addr := r.Client
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			addr = p.Addr()
		}
	}
	return "addr:" + addr.String()
}

// Wrap gives each request an id and its caller's address, sets security headers, bounds the time that the reader may
// take for each piece of the answer, answers a panic with 500, and logs the request at level debug: by its route, not
// by its path, query or headers, which hold ids that are capabilities, tickets and tokens.
func (s *Stack) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		known := s.meet(r)
		out := &response{ResponseWriter: w, control: http.NewResponseController(w), known: known}
		out.allow(time.Time{}) // clear what the previous answer on the connection set
		guard(out.Header(), known)
		r = r.WithContext(fair.Recallable(context.WithValue(r.Context(), requestKey{}, known), func() bool {
			broken := out.breakOff()
			if broken {
				s.log.Warn("an answer was broken off: others waited for the memory that its slow reader held", "request", known.ID, "client", known.Client)
			}
			return broken
		}))
		defer out.end()
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				s.log.Error("panic while answering", "panic", p, "request", known.ID, "route", r.Pattern, "stack", string(debug.Stack()))
				if out.status != 0 {
					panic(http.ErrAbortHandler) // an incomplete answer must not look complete
				}
				WriteError(out, r, ErrInternal)
			}
			s.log.DebugContext(r.Context(), "request", "method", r.Method, "route", r.Pattern, "status", out.status, "bytes", out.bytes,
				"took", time.Since(began), "request", known.ID, "client", known.Client, "token", known.Who.Token)
		}()
		next.ServeHTTP(out, r)
		out.rest()
	})
}

func (s *Stack) meet(r *http.Request) *Request {
	peer := netip.Addr{}
	if ap, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		peer = ap.Addr()
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	origin := s.proxies.Origin(peer, r.Host, scheme, func(name string) []string { return r.Header[name] })
	return &Request{ID: hookglass.NewRandomID("rq"), Client: origin.Client, Host: origin.Host, Scheme: origin.Scheme, log: s.log, zips: s.zips}
}

// guard sets the default headers of an answer; an edge may replace them, as pages do with the policy.
func guard(h http.Header, r *Request) {
	h.Set("X-Request-Id", r.ID)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Scheme == "https" {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

const (
	// readerTime is how long a reader may take for a piece of an answer before the connection is closed. On Linux a
	// blocked writer continues only when a third of the connection's buffer is free, and that grows to 4 MiB (tcp(7),
	// tcp_wmem): a steady reader at 64 kbit/s takes 175 s for that.
	readerTime = 3 * time.Minute
	// pieceBytes is the size of a piece, so that readerTime applies to this much and not to all of a long answer.
	pieceBytes = 64 << 10
)

// response records the answer. It gives the reader time for each piece, however much is written at once: a slow reader
// gets all of a long answer, and one that takes nothing does not keep it in memory. http.ResponseController finds
// everything else through Unwrap.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	known   *Request
	status  int
	bytes   int64

	mu     sync.Mutex // of what follows, and of the deadline
	begun  bool       // something was written
	ended  bool       // the handler is done
	broken bool       // the rest must not be written
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (written int, err error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	// Clear the deadline between writes: over HTTP/2 it would end the stream even if nothing is being written.
	defer w.allow(time.Time{})
	for {
		w.allow(time.Now().Add(readerTime))
		w.begins()
		n, err := w.ResponseWriter.Write(p[written:min(len(p), written+pieceBytes)])
		w.bytes += int64(n)
		if err != nil {
			w.known.unread.Store(true)
		}
		if written += n; err != nil || written == len(p) {
			return written, err
		}
	}
}

// allow sets the deadline for writes.
func (w *response) allow(until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		until = time.Unix(1, 0)
	}
	_ = w.control.SetWriteDeadline(until) // test recorders have none; a closed connection fails on the next write
}

func (w *response) begins() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = true
}

func (w *response) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// breakOff ends an answer that was partly written, together with its connection, so that the reader does not take the
// part for the whole. It reports whether there was such an answer. It may be called from any goroutine.
func (w *response) breakOff() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun || w.ended || w.broken {
		return false
	}
	w.broken = true
	_ = w.control.SetWriteDeadline(time.Unix(1, 0))
	return true
}

// rest gives the reader time for what is still buffered when the handler is done.
func (w *response) rest() {
	if w.bytes > 0 { // otherwise the connection may have been hijacked
		w.allow(time.Now().Add(readerTime))
	}
}

// FlushError implements the interface that http.ResponseController looks for.
func (w *response) FlushError() error {
	w.status = cmp.Or(w.status, http.StatusOK) // the headers are sent
	defer w.allow(time.Time{})
	w.allow(time.Now().Add(readerTime))
	err := w.control.Flush()
	if err != nil {
		w.known.unread.Store(true)
	}
	return err
}

// Flush is for libraries that only look for http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
