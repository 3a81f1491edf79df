package ingest

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"hookglass"
	"hookglass/internal/capture"
)

// serveHook serves the request in c.head, whose body is unread, and reports whether the connection can serve another.
func (c *conn) serveHook() (keep bool) {
	c.responded = false
	defer func() {
		if v := recover(); v != nil {
			c.front.panicked(v)
			if keep = false; !c.responded {
				c.write(errInternal.reply(), true)
			}
		}
		c.lease.Release()
		c.body.conn = nil
	}()
	h := &c.head
	c.body.begin(c, h)
	reply, err := c.receive(h)
	if err != nil {
		return c.refuse(refusalOf(err))
	}
	if reply.Awaits != nil {
		c.lease.Release()
		reply = c.front.await(reply)
	}
	if reply.Unanswered() {
		c.lease.Release()
		c.responded = true
		c.front.hold(reply.Delay)
		c.reset()
		return false
	}
	if reply.Delay > 0 {
		c.lease.Release()
		c.front.giveLater(reply)
	}
	return c.write(reply, h.close) && !c.ends
}

func (f *Front) panicked(v any) {
	f.log.Error("panic in reception", "panic", v, "stack", string(debug.Stack()))
}

// receive reads the body, has the arrival captured and returns the reply.
func (c *conn) receive(h *head) (*hookglass.Reply, error) {
	f, began := c.front, time.Now()
	a := &capture.Arrival{
		Method:   h.method,
		RawQuery: h.query,
		Proto:    h.proto,
		Headers:  h.headers,
	}
	a.Target = h.target
	if h.authority != "" {
		a.Target = strings.TrimPrefix(h.target[strings.Index(h.target, "://")+len("://"):], h.authority)
	}
	kind, rest := f.reception(h.path)
	var ref string
	ref, a.Path = splitHook(rest)
	f.origin(a, c.peer, h.host, c.serving.tls != nil)

	expects := false
	if h.expect != "" && h.minor == 1 {
		if expects = strings.EqualFold(h.expect, "100-continue"); !expects {
			return nil, errExpectation
		}
	}
	store := f.newStorage(began, kind == mails)
	defer func() { store.cancel() }()
	t, err := store.admit(a, ref)
	if err != nil {
		return nil, err
	}
	if h.tooBig || h.length > f.cfg.MaxBodyBytes {
		f.capturer.Refuse(store.ctx, t)
		return nil, errTooLarge
	}
	if expects && !c.body.ended() && c.w == c.r {
		c.keepWriteBy(began)
		if _, err := io.WriteString(c.nc, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return nil, err
		}
	}
	c.body.expected = expects
	if c.body.ended() {
		return store.capture(t, a)
	}
	if n := int(h.length); n > 0 && n <= c.w-c.r { // the body came with the head
		a.Body = slices.Clone(c.buf[c.r : c.r+n])
		c.consume(n)
		c.body.left = 0
		return store.capture(t, a)
	}
	err = c.readBody(h, a, began)
	store.resume()
	if err != nil {
		if errors.Is(err, errTooLarge) {
			f.capturer.Refuse(store.ctx, t)
		}
		return nil, err
	}
	return store.capture(t, a)
}

// readBody reads the body of an arrival and its trailers.
func (c *conn) readBody(h *head, a *capture.Arrival, began time.Time) (err error) {
	size := h.length
	if h.chunked {
		size = -1
	}
	c.body.pace = c.front.newPace(began)
	if a.Body, err = c.front.collect(&c.body, size, &c.lease, &c.body.pace); err != nil {
		return err
	}
	a.Trailers, err = c.body.trailers()
	return err
}

// maxDelayed bounds the bytes of delayed answers. They are not charged to the budget, which they would exhaust. Beyond
// the bound, answers are not delayed.
const maxDelayed = 64 << 20

// keep counts an answer as waiting until forget is called, and reports whether it may wait.
func (f *Front) keep(r *hookglass.Reply) (forget func(), ok bool) {
	size := int64(len(r.Body))
	return func() { f.delayed.Add(-size) }, f.delayed.Add(size) <= maxDelayed
}

// giveLater waits for the delay of an answer.
func (f *Front) giveLater(r *hookglass.Reply) {
	forget, ok := f.keep(r)
	defer forget()
	if ok {
		f.delay(r.Delay)
	}
}

// delay waits for d, or until the front drains.
func (f *Front) delay(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.drain:
	}
}

// await converts a reply that awaits to the one to send. It stops waiting when the front drains, and does not wait if
// too much is waiting already. The event is stored, so if Answer panics, the sender gets the reply as if nothing had
// been awaited.
func (f *Front) await(r *hookglass.Reply) *hookglass.Reply {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	forget, ok := f.keep(r)
	defer forget()
	if !ok {
		cancel()
	}
	given := make(chan *hookglass.Reply, 1)
	go func() {
		own := *r
		own.Awaits = nil
		answer := &own
		defer func() {
			if v := recover(); v != nil {
				f.panicked(v)
			}
			given <- answer
		}()
		answer = f.capturer.Answer(ctx, r)
	}()
	select {
	case r := <-given:
		return r
	case <-f.drain:
		cancel()
		return <-given
	}
}
