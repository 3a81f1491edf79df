package ingest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/capture"
)

const (
	discardBytes = 64 << 10  // what of an unread body is read away to keep the connection
	lingerBytes  = 128 << 20 // what is read away so that the sender gets to read a refusal
	lingerTime   = 10 * time.Second
	lingerShort  = 500 * time.Millisecond // for a sender that was too slow already
	joinBytes    = 16 << 10               // bodies up to here are copied behind their header and written with it
)

// serveHook serves the request in c.head, whose body is still unread. It reports whether the connection can
// serve another.
func (c *conn) serveHook() (keep bool) {
	c.responded = false
	defer func() {
		if v := recover(); v != nil {
			c.front.panicked(v)
			if keep = false; !c.responded {
				c.write(errInternal.reply(), true)
			}
		}
		c.lease.release()
		c.body.conn = nil
	}()
	h := &c.head
	c.body.begin(c, h)
	reply, err := c.receive(h)
	if err != nil {
		return c.refuse(refusalOf(err))
	}
	if reply.Delay > 0 {
		c.lease.release()
		c.front.delay(reply.Delay)
	}
	if !c.write(reply, h.close) {
		return false
	}
	return c.keepAlive()
}

func (f *Front) panicked(v any) {
	f.log.Error("panic in reception", "panic", v, "stack", string(debug.Stack()))
}

// receive reads the body, has the arrival captured and returns the reply to it.
func (c *conn) receive(h *head) (*hookglass.Reply, error) {
	f := c.front
	a := &capture.Arrival{
		Method:   h.method,
		RawQuery: h.query,
		HasQuery: h.hasQuery,
		Proto:    h.proto,
		Headers:  h.headers,
		At:       time.Now(),
	}
	a.Target = h.target
	if h.authority != "" {
		a.Target = strings.TrimPrefix(h.target[strings.Index(h.target, "://")+len("://"):], h.authority)
	}
	var ref string
	ref, a.Path = splitHook(h.path)
	f.origin(a, c.peer, h.host)

	expects := false
	if h.expect != "" && h.minor == 1 {
		if expects = strings.EqualFold(h.expect, "100-continue"); !expects {
			return nil, errExpectation
		}
	}
	store := f.newStorage(a.At)
	defer func() { store.end() }()
	t, err := store.admit(a.Method, ref)
	if err != nil {
		return nil, err
	}
	if h.tooBig || h.length > f.cfg.MaxBodyBytes {
		f.capturer.Refuse(store.ctx, t)
		return nil, errTooLarge
	}
	if expects && !c.body.ended() && c.w == c.r {
		c.keepWriteBy(a.At)
		if _, err := io.WriteString(c.nc, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return nil, err
		}
	}
	c.body.expected = expects
	switch n := int(h.length); {
	case c.body.ended():
	case h.length > 0 && n <= c.w-c.r:
		a.Body = slices.Clone(c.buf[c.r : c.r+n])
		c.consume(n)
		c.body.left = 0
	default:
		size := h.length
		if h.chunked {
			size = -1
		}
		c.body.pace = f.newPace(a.At)
		if a.Body, err = f.collect(&c.body, size, &c.lease, c.body.waited); err != nil {
			if err == error(errTooLarge) {
				store.resume()
				f.capturer.Refuse(store.ctx, t)
			}
			return nil, err
		}
		if a.Trailers, err = c.body.trailers(); err != nil {
			return nil, err
		}
		store.resume()
	}
	return store.capture(t, a)
}

// refuse writes a refusal and reports whether the connection can go on.
func (c *conn) refuse(r *refusal) bool {
	if _, told := errors.AsType[*refusal](c.body.broken); c.body.broken != nil && !told {
		return false // the socket failed: nobody is there to be told
	}
	rest := c.body.rest()
	closing := r.close || rest > discardBytes || c.head.close || c.front.draining.Load() || c.body.broken != nil
	if rest > 0 && c.head.expect != "" && !c.body.expected {
		closing = true // a sender that was not told to continue may send the body or may not
	}
	if !c.write(r.reply(), closing) {
		return false
	}
	switch {
	case closing && (rest > 0 || r.close || c.w > c.r):
		c.linger(lingering(r))
		return false
	case closing:
		return false
	}
	c.body.pace = c.front.newPace(time.Now())
	_, err := io.Copy(io.Discard, &c.body)
	return err == nil && c.keepAlive()
}

func (c *conn) keepAlive() bool { return !c.head.close && !c.front.draining.Load() }

// answerMalformed refuses what never became a request.
func (c *conn) answerMalformed(r *refusal) {
	c.head = head{minor: 1, close: true}
	c.body.conn = nil
	if c.write(r.reply(), true) {
		c.linger(lingering(r))
	}
}

func lingering(r *refusal) time.Duration {
	if r == errSlow {
		return lingerShort
	}
	return lingerTime
}

// answerUnavailable refuses a request that can not be handed to net/http any more.
func (c *conn) answerUnavailable() {
	c.head = head{minor: 1, close: true}
	if c.write(refuse(http.StatusServiceUnavailable, hookglass.CodeUnavailable, "The service is stopping.").reply(), true) {
		c.linger(lingerTime)
	}
}

// write sends an answer and reports whether the sender's socket took it.
func (c *conn) write(r *hookglass.Reply, closing bool) bool {
	c.responded = true
	now := time.Now()
	form := replyForm{
		minor: c.head.minor,
		head:  c.head.method == "HEAD",
		close: closing || c.front.draining.Load(),
		date:  c.front.clock.date(now),
	}
	form.keepAlive = !form.close && c.head.minor == 0
	if r.Status < 200 || r.Status > 999 {
		c.front.log.Error("a reply has an impossible status", "status", r.Status)
		r = errInternal.reply()
	}
	c.keepWriteBy(now)
	out, _ := c.front.outBufs.Get().(*[]byte)
	if out == nil {
		out = new([]byte)
	}
	defer c.front.outBufs.Put(out)
	var err error
	if len(r.Body) <= joinBytes {
		*out = appendReply((*out)[:0], r, form)
		_, err = c.nc.Write(*out)
		return err == nil
	}
	*out = appendReplyHead((*out)[:0], r, form)
	parts := net.Buffers{*out}
	if !form.head && !neverBody(r.Status) {
		parts = append(parts, r.Body)
	}
	_, err = parts.WriteTo(c.nc)
	return err == nil
}

// linger lets the sender read an answer although it goes on sending: closing a socket with unread bytes
// resets it, and a reset takes the answer away (RFC 9112, section 9.6).
func (c *conn) linger(d time.Duration) {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if c.front.draining.Load() {
		d = min(d, lingerShort)
	}
	c.setReadBy(time.Now().Add(d))
	for read := 0; read < lingerBytes; {
		c.r, c.w = 0, 0
		n, err := c.wait.fill()
		if err != nil {
			break
		}
		read += n
	}
	c.r, c.w = 0, 0
}

// delay waits as a reply asks, or until the front drains.
func (f *Front) delay(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.drain:
	}
}

// storage is the time that one arrival may ask of the capturer, which is not the time that its body takes.
type storage struct {
	front  *Front
	ctx    context.Context
	cancel context.CancelFunc
	since  time.Time
	used   time.Duration
}

func (f *Front) newStorage(now time.Time) storage {
	s := storage{front: f, since: now}
	s.ctx, s.cancel = context.WithTimeout(context.Background(), f.cfg.CaptureTimeout)
	return s
}

func (s *storage) end() { s.cancel() }

// resume starts counting again after the body was read.
func (s *storage) resume() {
	s.cancel()
	s.ctx, s.cancel = context.WithTimeout(context.Background(), s.front.cfg.CaptureTimeout-s.used)
}

func (s *storage) admit(method, ref string) (capture.Target, error) {
	if !slices.Contains(hookglass.Methods, method) {
		return capture.Target{}, errMethod
	}
	if ref == "" {
		return capture.Target{}, errNotFound
	}
	t, err := s.front.capturer.Admit(s.ctx, ref)
	s.used = time.Since(s.since)
	return t, s.told(err)
}

func (s *storage) capture(t capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
	reply, err := s.front.capturer.Capture(s.ctx, t, a)
	return reply, s.told(err)
}

// told logs what the sender is not told, and takes an end of the time for storage that can not answer.
func (s *storage) told(err error) error {
	if err == nil {
		return nil
	}
	late := s.ctx.Err() != nil
	if late {
		s.front.budget.refuseWaiting()
	}
	if !hookglass.Is(err, hookglass.CodeInternal) {
		return err
	}
	if late {
		return &hookglass.Error{Code: hookglass.CodeUnavailable, Err: err}
	}
	s.front.log.Error("an arrival was not captured", "error", err)
	return err
}
