package ingest

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/intake"
)

// Handler returns a handler that receives hooks as net/http presents them and passes all other requests to next. Header
// lines are sorted by name and spelled as net/http does, or in lower case for HTTP/2; otherwise hooks are received as
// by the front. Over HTTP/2 what next answers comes after the body of the request.
func (f *Front) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, path, _ := splitTarget(r.RequestURI)
		kind, rest := f.reception(path)
		if kind == "" {
			// /%68ooks/ is /hooks/, too.
			if kind, rest = f.reception(r.URL.Path); kind == "" {
				if r.ProtoMajor > 1 && r.ContentLength != 0 {
					w = &afterBody{w, f, r}
				}
				next.ServeHTTP(w, r)
				return
			}
			path, before := r.URL.EscapedPath(), strings.TrimSuffix(r.URL.Path, rest)
			rest = path[indexNth(path, '/', strings.Count(before, "/")+1):]
		}
		f.serveFallback(w, r, kind, rest)
	})
}

// indexNth returns the offset of the n-th b in s, or the length of s.
func indexNth(s string, b byte, n int) int {
	for i := range len(s) {
		if s[i] == b {
			if n--; n == 0 {
				return i
			}
		}
	}
	return len(s)
}

func (f *Front) serveFallback(w http.ResponseWriter, r *http.Request, kind, rest string) {
	l := f.budget.Lease()
	defer l.Release()
	reply, err := f.receiveFallback(w, r, kind, rest, &l)
	if err != nil {
		refused := refusalOf(err)
		if r.ProtoMajor > 1 && refused != errSlow {
			l.Release()
			f.discardRest(w, r)
		}
		reply = refused.reply()
	} else if reply.Awaits != nil {
		l.Release()
		reply = f.await(reply)
	}
	if reply.Unanswered() {
		l.Release()
		f.hold(reply.Delay)
		panic(http.ErrAbortHandler) // makes net/http end the connection without an answer
	}
	if reply.Delay > 0 {
		l.Release()
		f.giveLater(reply)
	}
	header := w.Header()
	for _, h := range reply.Headers {
		if capture.Sendable(h) {
			header.Add(h.Name, h.Value)
		}
	}
	if date := reply.Headers.Get("Date"); len(date) == len(http.TimeFormat) {
		header.Set("Date", date)
	}
	if option := hookglass.Persistence(r.Proto, r.Header["Connection"]); option != "" {
		header.Set("Connection", option) // net/http may leave it out, but it is on record
	}
	if header["Content-Type"] == nil {
		header["Content-Type"] = nil // keeps net/http from guessing one
	}
	w.WriteHeader(reply.Status)
	if !neverBody(reply.Status) && r.Method != http.MethodHead {
		w.Write(reply.Body)
	}
}

// afterBody has an answer come after the body, see discardRest. http.ResponseController finds all else through Unwrap.
type afterBody struct {
	http.ResponseWriter
	f *Front
	r *http.Request
}

func (w *afterBody) WriteHeader(status int) {
	if status >= 200 {
		w.f.discardRest(w.ResponseWriter, w.r)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *afterBody) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// discardRest reads what a refused sender still sends, as linger does. In HTTP/2 the answer ends the stream, and some
// senders that are still sending then lose it, although they should not (RFC 9113, section 8.1): curl 7.88 reports a
// broken transfer, and httpx waits for its timeout. It comes before the answer, because a sender that waits to be told
// to continue is told so by the first read.
func (f *Front) discardRest(w http.ResponseWriter, r *http.Request) {
	d := lingerTime
	if f.draining.Load() {
		d = lingerShort
	}
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(d)) == nil {
		_, _ = io.CopyN(io.Discard, r.Body, lingerBytes)
	}
}

func (f *Front) receiveFallback(w http.ResponseWriter, r *http.Request, kind, rest string, l *intake.Lease) (reply *hookglass.Reply, err error) {
	defer func() {
		if v := recover(); v != nil {
			f.panicked(v)
			reply, err = nil, errInternal
		}
	}()
	began := time.Now()
	_, _, query := splitTarget(r.RequestURI)
	a := &capture.Arrival{
		Method:   r.Method,
		RawQuery: query,
		Target:   r.URL.RequestURI(),
		Proto:    r.Proto,
		Headers:  fallbackHeaders(r),
	}
	if strings.HasPrefix(r.RequestURI, "/") {
		a.Target = r.RequestURI
	}
	if len(a.Headers) > f.cfg.MaxHeaders {
		return nil, errHeadersTooLarge
	}
	var ref string
	ref, a.Path = splitHook(rest)
	var p peer
	if ap, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		p = f.peerOf(ap.Addr().WithZone(""))
	}
	f.origin(a, p, r.Host, r.TLS != nil)

	store := f.newStorage(began, kind == mails)
	defer func() { store.cancel() }()
	t, err := store.admit(a, ref)
	if err != nil {
		return nil, err
	}
	if r.ContentLength > f.cfg.MaxBodyBytes {
		f.capturer.Refuse(store.ctx, t)
		return nil, errTooLarge
	}
	if r.ContentLength != 0 {
		body := &fallbackBody{r: r.Body, control: http.NewResponseController(w), pace: f.newPace(began)}
		if a.Body, err = f.collect(body, r.ContentLength, l, &body.pace); err == nil {
			// Where the length is known, a stream of HTTP/2 still ends on its own, and its trailers come with the end.
			_, err = io.Copy(io.Discard, body)
		}
		store.resume()
		if err != nil {
			if errors.Is(err, errTooLarge) {
				f.capturer.Refuse(store.ctx, t)
			}
			return nil, err
		}
		body.control.SetReadDeadline(time.Time{})
		a.Trailers = flatten(r.Trailer, r.ProtoMajor)
	}
	return store.capture(t, a)
}

// flatten returns header lines sorted by name. From HTTP/2 on names are in lower case (RFC 9113, section 8.2).
func flatten(header http.Header, major int) hookglass.Headers {
	var fields hookglass.Headers
	for name, values := range header {
		if major > 1 {
			name = strings.ToLower(name)
		}
		for _, v := range values {
			fields = append(fields, hookglass.Header{Name: name, Value: v})
		}
	}
	slices.SortStableFunc(fields, func(a, b hookglass.Header) int { return cmp.Compare(a.Name, b.Name) })
	return fields
}

// fallbackHeaders returns the header lines of a request, with the host first. A Host field of HTTP/2 that says it again
// is left out: a client may send it in place of :authority (RFC 9113, section 8.3.1). Only HTTP/1.1 requires a host.
func fallbackHeaders(r *http.Request) hookglass.Headers {
	fields := slices.DeleteFunc(flatten(r.Header, r.ProtoMajor), func(f hookglass.Header) bool {
		return strings.EqualFold(f.Name, "Host") && f.Value == r.Host
	})
	if r.Host == "" && r.Proto != "HTTP/1.1" {
		return fields
	}
	return append(hookglass.Headers{{Name: "Host", Value: r.Host}}, fields...)
}

// fallbackBody reads a body from net/http. It enforces the same pace as for other bodies.
type fallbackBody struct {
	r       io.Reader
	control *http.ResponseController
	pace    intake.Pace
}

func (b *fallbackBody) Read(p []byte) (int, error) {
	b.control.SetReadDeadline(b.pace.Due())
	n, err := b.r.Read(p)
	b.pace.Came(n, time.Now())
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case isTimeout(err):
		return n, errSlow
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, errCutShort
	}
	return n, malformed("The body is malformed.")
}
