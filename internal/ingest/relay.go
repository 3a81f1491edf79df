package ingest

import (
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// This file is the connection as net/http sees it after the first request that is not a hook: a net.Conn whose Read
// passes one request and then, at its end, serves hooks itself until the next request for net/http.
//
// net/http reads in three situations, each of which needs different treatment:
//
//   - the head and the body of a request: bytes are passed, up to its end and no further;
//   - one byte in the background while a handler runs, to notice that the client is gone: this is at the boundary and
//     before http.StateIdle; nothing is passed, what arrives stays in the buffer, and the end is reported;
//   - the next request, after http.StateIdle: the previous answer is written, so hooks may be answered.

// relayState is what Read knows about the request that it passes.
type relayState struct {
	owned  bool     // by net/http; guarded by conn.mu
	raw    bool     // pass everything: hijacked, or the boundaries are unknown
	idle   bool     // net/http has finished the last answer
	head   int      // bytes of the head left to pass
	body   int64    // bytes of a body with a length left to pass
	chunks *chunked // the state of a chunked body that is being passed
}

// startPass prepares to pass the request in c.head, which is in the buffer.
func (c *conn) startPass() {
	c.own(relayState{owned: true, head: c.headLen, body: max(c.head.length, 0)})
	if c.head.chunked {
		// net/http bounds trailers itself.
		c.relay.chunks = &chunked{maxTrail: c.front.cfg.MaxHeaderBytes}
	}
	c.unread.Store(c.relay.body > 0 || c.relay.chunks != nil)
	c.head = head{}
}

// startRaw hands the connection over for good, including buffered bytes.
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

// connState tracks the connection's state in net/http.
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

// take copies at most limit bytes from the buffer.
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

// passChunks passes a chunked body unchanged. A malformed one is left for net/http to refuse.
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

// halfGrace is how long a handler goes on for a client that sends no more. It may be gone, or may have closed only its
// half of the connection and read the answer, as nc -N does: nothing tells which before something is written.
const halfGrace = time.Second

// watch waits, while a handler runs, until the client is gone or net/http stops waiting. What the client sends
// meanwhile stays in the buffer. After that its end goes unnoticed, as with net/http alone.
func (c *conn) watch() error {
	var end time.Time
	for c.w == c.r && end.IsZero() {
		n, err := c.wait.fill()
		c.w += n
		switch {
		case err == io.EOF:
			end = time.Now().Add(halfGrace)
		case err != nil:
			return err
		}
	}
	for {
		c.mu.Lock()
		by, gone := c.deadline, c.gone
		c.mu.Unlock()
		then := os.ErrDeadlineExceeded
		if !end.IsZero() && (by.IsZero() || end.Before(by)) {
			by, then = end, io.EOF
		}
		var due <-chan time.Time
		switch left := time.Until(by); {
		case gone:
			return net.ErrClosed
		case by.IsZero():
		case left <= 0:
			return then
		default:
			due = time.After(left)
		}
		select {
		case <-c.wake:
		case <-due:
		}
	}
}

// lean serves hooks until the buffer begins with a request for net/http.
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
		// net/http is shutting down and would drop it silently.
		c.answerUnserved(errStopping)
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

// Close implements net.Conn. If net/http closes a connection that it believes to be idle, a hook being served on it is
// answered first. If a body is unread, the connection lingers, so that the client can read the answer; but not while
// the front drains, because then another goroutine than the connection's own may be closing it.
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

// CloseWrite is called by net/http before Close in some cases in which it leaves a body unread. net/http then only
// waits half a second, which is too short for a client with much to send.
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

// SetReadDeadline implements net.Conn. While hooks are served, the deadline is only stored.
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
