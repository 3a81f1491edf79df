package ingest

import (
	"errors"
	"io"
	"net"
	"time"

	"hookglass"
)

const (
	discardBytes = 64 << 10  // how much of an unread body is read to keep the connection
	lingerBytes  = 128 << 20 // how much is read so that the sender can read a refusal
	lingerTime   = 10 * time.Second
	lingerShort  = 500 * time.Millisecond // for a sender that was too slow already
	joinBytes    = 16 << 10               // bodies up to this size are copied behind their header, for a single write
)

// refuse writes a refusal and reports whether the connection can continue.
func (c *conn) refuse(r *refusal) bool {
	if _, told := errors.AsType[*refusal](c.body.broken); c.body.broken != nil && !told {
		return false // the socket failed, so nobody would receive it
	}
	rest := c.body.rest()
	closing := r.close || rest > discardBytes || c.head.close || c.front.draining.Load() || c.body.broken != nil
	if rest > 0 && c.head.expect != "" && !c.body.expected {
		closing = true // a sender that was not told to continue may or may not send the body
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
	return err == nil && !c.ends
}

// answerUnserved refuses what is not served, and after which nothing is: it is no request, or cannot be handed over.
func (c *conn) answerUnserved(r *refusal) {
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

// write sends an answer and reports whether the socket accepted it.
func (c *conn) write(r *hookglass.Reply, closing bool) bool {
	c.responded = true
	now := time.Now()
	form := replyForm{
		minor: c.head.minor,
		head:  c.head.method == "HEAD",
		close: closing || c.front.draining.Load(),
		date:  c.front.clock.date(now),
	}
	c.ends = form.close
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

// linger gives a sender that is still sending time to read the answer: closing a socket with unread bytes resets the
// connection, which discards the answer (RFC 9112, section 9.6).
func (c *conn) linger(d time.Duration) {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.lingerFor(d)
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

// lingerFor sets the deadline for lingering. While the server stops, which waits for it, the deadline is short; if the
// server stops later, nudge shortens it.
func (c *conn) lingerFor(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lingering = true
	if c.front.draining.Load() {
		d = min(d, lingerShort)
	}
	c.readBy = time.Now().Add(d)
	c.nc.SetReadDeadline(c.readBy)
}
