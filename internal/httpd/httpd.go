// Package httpd is what every HTTP edge stands on: who a request comes from, who asks by it, how an error is
// answered, and what is noted of it. It hides the mapping of codes to statuses, the reading of bearer tokens
// and of proxies' headers, and knows no resource.
//
// [Stack.Wrap] goes around all edges at once; behind it [From] finds what is known of a request.
package httpd

import (
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
	Proxies Proxies // whose word about senders is believed
}

// Stack is the middleware that all edges share.
type Stack struct {
	log     *slog.Logger
	proxies Proxies
	zips    *zips
}

// New returns the stack.
func New(cfg Config) *Stack { return &Stack{cfg.Log, cfg.Proxies, newZips()} }

// Request is what is known of a request besides its bytes.
type Request struct {
	ID     string // shown to the caller as X-Request-Id, noted in the log
	Client netip.Addr
	Host   string // the authority that the caller used
	Scheme string // http or https, as the caller used it
	Who    hookglass.Principal

	log    *slog.Logger
	zips   *zips
	unread atomic.Bool // a part of the answer was not taken
}

type requestKey struct{}

// From returns what is known of the request of this context. Outside of [Stack.Wrap] it knows nothing.
func From(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestKey{}).(*Request); ok {
		return r
	}
	return &Request{log: slog.New(slog.DiscardHandler)}
}

// Caller names who asks, for rate limits: the token or, where there is none, the address. A network that is
// given to one customer, an IPv6 /64, counts as one address.
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

// Wrap gives each request an id and its caller's address, sets the headers that keep a browser from doing
// harm with an answer, gives the reader of an answer time for each piece of it, answers a panic with 500, and notes the
// request in the log at level debug: by its route, never by its path, query or headers, which hold ids that are
// capabilities, tickets and tokens.
func (s *Stack) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		known := s.meet(r)
		out := &response{ResponseWriter: w, control: http.NewResponseController(w), known: known}
		out.allow(time.Time{}) // what an answer before set, on the same connection
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
					panic(http.ErrAbortHandler) // half an answer is out: it must not look whole
				}
				WriteError(out, r, hookglass.Errorf(hookglass.CodeInternal, "%s", internalMessage))
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

// guard sets what an answer has unless its edge says otherwise: pages set a policy of their own.
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
	// readerTime is how long a reader may take to take a piece of an answer before it is given up. Linux has a writer
	// wait until a third of the connection's buffer is free, which grows to 4 MiB (tcp(7), tcp_wmem): one that reads
	// 64 kbit/s all the time takes 175 s for that.
	readerTime = 3 * time.Minute
	// pieceBytes is the length of a piece, so that the time is for this much and not for all of a long answer.
	pieceBytes = 64 << 10
)

// response notes what was answered. It gives the reader time for each piece, however much is written at once: a slow
// one gets all of a long answer, and one that takes nothing does not keep it in memory. What else the connection can
// do, http.ResponseController finds by Unwrap.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	known   *Request
	status  int
	bytes   int64

	mu     sync.Mutex // of what follows, and of the deadline
	begun  bool       // something was written, and waits for the reader or was taken
	ended  bool       // the handler is done with it
	broken bool       // the rest is not to be written
}

func (w *response) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) Write(p []byte) (written int, err error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	// A handler may take its time until it writes more: over HTTP/2 a stream ends with its deadline, whether anything
	// is to be written then or not.
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

// allow sets when what is written must be taken.
func (w *response) allow(until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		until = time.Unix(1, 0)
	}
	_ = w.control.SetWriteDeadline(until) // what is no connection has none, and one that is gone says so when it is written to
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

// breakOff ends an answer of which the reader has begun to take: what is still to be written is not, and the connection
// ends, so that nobody takes a part for the whole. It reports whether there is such an answer. Others may call it.
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

// rest gives the reader time for what is still to be written of the answer when its handler is done.
func (w *response) rest() {
	if w.bytes > 0 { // a connection that was taken over is no longer one of ours
		w.allow(time.Now().Add(readerTime))
	}
}

// FlushError is for http.ResponseController.
func (w *response) FlushError() error {
	defer w.allow(time.Time{})
	w.allow(time.Now().Add(readerTime))
	err := w.control.Flush()
	if err != nil {
		w.known.unread.Store(true)
	}
	return err
}

// Flush is for libraries that look for http.Flusher alone.
func (w *response) Flush() { _ = w.FlushError() }

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
