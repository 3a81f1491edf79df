package ingest

import (
	"net"
	"net/http"
	"os"
	"time"
)

// This file is the connection as net/http sees it, once a request that is no hook has come: a net.Conn
// whose Read hands over one request and then, at the boundary behind it, serves hooks by itself until the
// next request for net/http stands there.
//
// net/http reads in three manners, and must be answered differently in each:
//
//   - the head and the body of a request: bytes are passed, up to its end and not beyond;
//   - one byte in the background while a handler runs, to notice that the client is gone: at the boundary
//     and before http.StateIdle; nothing is passed, what comes stays in the buffer, an end is reported;
//   - for the next request, after http.StateIdle: the answer before it is written, so hooks may be answered.

// relayState is what Read knows about the request that it hands over.
type relayState struct {
	owned  bool     // by net/http; guarded by conn.mu
	raw    bool     // pass everything: hijacked, or nothing is known about boundaries
	idle   bool     // net/http has finished the answer to the last request
	head   int      // bytes of the head still to pass
	body   int64    // bytes of a body with a length still to pass
	chunks *chunked // the body still to pass, when it is chunked
}

// startPass prepares to hand over the request in c.head, which stands in the buffer.
func (c *conn) startPass() {
	c.own(relayState{owned: true, head: c.headLen, body: max(c.head.length, 0)})
	switch {
	case c.head.tooBig:
		c.relay.raw = true // net/http refuses it
	case c.head.chunked:
		// net/http limits trailers by itself.
		c.relay.chunks = &chunked{maxTrail: c.front.cfg.MaxHeaderBytes}
	}
	c.unread.Store(c.relay.body > 0 || c.relay.chunks != nil)
	c.head = head{}
}

// startRaw hands the connection over for good, with what has been read of it.
func (c *conn) startRaw() { c.own(relayState{owned: true, raw: true}) }

func (c *conn) own(state relayState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.relay.owned {
		c.deadline = time.Time{}
	}
	c.relay = state
	c.leaning = false
	c.readBy, c.writeBy = time.Time{}, time.Time{}
	c.nc.SetReadDeadline(c.deadline)
	c.nc.SetWriteDeadline(time.Time{})
}

// connState follows net/http's view of the connection.
func (c *conn) connState(state http.ConnState) {
	switch state {
	case http.StateIdle:
		c.relay.idle = true
	case http.StateHijacked:
		c.relay.raw = true
		c.unread.Store(false)
		c.front.letGo(c)
	}
}

// Read implements net.Conn for net/http and for whoever hijacks the connection.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		switch {
		case c.relay.raw:
			return c.readRaw(p)
		case c.relay.head > 0:
			n := c.take(p, int64(c.relay.head))
			c.relay.head -= n
			return n, nil
		case c.relay.body > 0:
			n, err := c.readUpTo(p, c.relay.body)
			if c.relay.body -= int64(n); c.relay.body == 0 {
				c.unread.Store(false)
			}
			return n, err
		case c.relay.chunks != nil && !c.relay.chunks.done():
			return c.passChunks(p)
		case !c.relay.idle:
			if err := c.watch(); err != nil {
				return 0, err
			}
		default:
			if err := c.lean(); err != nil {
				return 0, err
			}
		}
	}
}

// take passes at most limit bytes from the buffer.
func (c *conn) take(p []byte, limit int64) int {
	n := copy(p[:min(int64(len(p)), limit)], c.buf[c.r:c.w])
	c.consume(n)
	return n
}

func (c *conn) readRaw(p []byte) (int, error) {
	if c.w > c.r {
		c.ready()
		return c.take(p, int64(len(p))), nil
	}
	if c.buf != nil {
		c.dropSlot()
		c.buf, c.r, c.w, c.stash = nil, 0, 0, nil
	}
	return c.nc.Read(p)
}

func (c *conn) readUpTo(p []byte, limit int64) (int, error) {
	if c.w > c.r {
		c.ready()
		return c.take(p, limit), nil
	}
	return c.nc.Read(p[:min(int64(len(p)), limit)])
}

// passChunks passes a chunked body as it is. One that is malformed is net/http's to refuse.
func (c *conn) passChunks(p []byte) (int, error) {
	if c.w == c.r {
		n, err := c.wait.fill()
		c.w += n
		if err != nil {
			return 0, err
		}
	}
	c.ready()
	run := c.buf[c.r:min(c.w, c.r+len(p))]
	n := 0
	for n < len(run) && !c.relay.chunks.done() {
		k, _, err := c.relay.chunks.step(run[n:])
		if err != nil {
			c.relay.raw = true
			return c.readRaw(p)
		}
		n += k
	}
	c.unread.Store(!c.relay.chunks.done())
	return c.take(p, int64(n)), nil
}

// watch waits, while a handler runs, for the client to be gone or for net/http to stop waiting. What the
// client sends meanwhile stays in the buffer; from then on its end is not noticed, as with net/http alone.
func (c *conn) watch() error {
	for c.w == c.r {
		n, err := c.wait.fill()
		c.w += n
		if err != nil {
			return err
		}
	}
	for {
		c.mu.Lock()
		deadline, gone := c.deadline, c.gone
		c.mu.Unlock()
		var due <-chan time.Time
		switch left := time.Until(deadline); {
		case gone:
			return net.ErrClosed
		case deadline.IsZero():
		case left <= 0:
			return os.ErrDeadlineExceeded
		default:
			due = time.After(left)
		}
		select {
		case <-c.wake:
		case <-due:
		}
	}
}

// lean serves hooks until the next request for net/http stands in the buffer.
func (c *conn) lean() error {
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		return net.ErrClosed
	}
	c.leaning, c.busy = true, false
	c.mu.Unlock()
	c.readBy, c.writeBy = time.Time{}, time.Time{}

	err := c.serveHooks(c.front.cfg.IdleTimeout)
	if err == nil && c.front.draining.Load() {
		// net/http would drop it without a word: it is shutting down.
		c.answerUnavailable()
		err = net.ErrClosed
	}
	c.mu.Lock()
	c.leaning = false
	closing := c.closing
	c.mu.Unlock()
	if closing {
		c.Close()
	}
	return err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) { return c.nc.Write(p) }

// Close implements net.Conn. When net/http closes what it believes to be an idle connection, a hook
// that is being served on it is answered first. Where it leaves a body unread, the client gets to read the answer;
// but not while the front drains, when it is not the connection's own goroutine that closes.
func (c *conn) Close() error {
	c.mu.Lock()
	if c.leaning && c.busy {
		c.closing = true
		c.mu.Unlock()
		return nil
	}
	gone := c.gone
	c.gone = true
	c.mu.Unlock()
	if gone {
		return net.ErrClosed
	}
	c.signal()
	if c.unread.Load() && !c.front.draining.Load() {
		c.linger(lingerTime)
	}
	c.front.forget(c)
	return c.nc.Close()
}

// CloseWrite is called by net/http before Close in some of the cases where it leaves a body unread. All that it does
// about it is to wait half a second then, in which a client with much to send does not come to an end.
func (c *conn) CloseWrite() error {
	c.unread.Store(false)
	c.linger(lingerTime)
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.nc.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn. While hooks are served it is kept for later.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	if c.leaning {
		return nil
	}
	c.signal()
	return c.nc.SetReadDeadline(t)
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.nc.SetWriteDeadline(t) }

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
