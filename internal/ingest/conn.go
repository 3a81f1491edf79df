package ingest

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"hookglass/internal/intake"
)

const (
	readBufSize = 8 << 10
	stashSize   = 512 // how many bytes of a head may be kept without a buffer
)

type readBuf struct{ b [readBufSize]byte }

// conn is one connection. Its goroutine is run until it is handed off; after that it is a net.Conn of the net/http
// server, see relay.go. Only one goroutine reads at a time, in either role.
type conn struct {
	front   *Front
	serving *serving
	nc      net.Conn
	socket  net.Conn // below TLS; without TLS the same as nc
	peer    peer
	wait    waiter

	// buf[r:w] are bytes read but not used yet. buf is slot's array, or a larger one if a head needs it. While parked
	// it is nil, and the bytes are in stash.
	slot  *readBuf
	buf   []byte
	r, w  int
	stash []byte
	scan  int // offset from r up to which the end of the head has been searched

	head      head
	headLen   int
	body      bodyReader
	lease     intake.Lease
	readBy    time.Time // the current deadline for our own reads
	writeBy   time.Time
	responded bool
	ends      bool // the sender was told so with the last answer

	relay  relayState
	unread atomic.Bool // the body of the request that net/http was given is not fully read

	mu        sync.Mutex
	busy      bool // serving a request: from its first byte to the end of its answer
	nudged    bool // told to end while idle
	looked    bool // has read once more after that
	lingering bool // has sent its last answer, while the sender continues
	shaking   bool // in the TLS handshake
	leaning   bool // reading for itself inside net/http's Read
	closing   bool // net/http closed it while leaning and busy
	deadline  time.Time
	wake      chan struct{} // signals a change of the deadline, or the end
	gone      bool

	letGo bool // no longer waited for by Shutdown; guarded by front.mu
}

func newConn(f *Front, s *serving, nc net.Conn) *conn {
	c := &conn{front: f, serving: s, nc: nc, socket: nc, wake: make(chan struct{}, 1)}
	if s.tls != nil {
		c.shaking = true
		c.nc = tls.Server(watched{nc, c}, s.tls)
	}
	if ap, err := netip.ParseAddrPort(nc.RemoteAddr().String()); err == nil {
		c.peer = f.peerOf(ap.Addr().WithZone(""))
	}
	c.lease = f.budget.Lease()
	c.wait.init(c)
	return c
}

// run serves hooks until the connection ends or is handed off.
func (c *conn) run() {
	if c.serving.tls != nil && !c.secure() {
		return
	}
	if c.serveHooks(c.front.cfg.HeaderTimeout) == nil {
		if c.serving.handoff.give(c.asNetConn()) {
			return
		}
		c.answerUnserved(errStopping)
	}
	c.Close()
}

// serveHooks serves hooks until the buffer begins with another request, when it returns nil, or until the connection
// ends.
func (c *conn) serveHooks(idle time.Duration) error {
	for {
		err := c.nextHead(idle)
		if err != nil {
			if r, ok := errors.AsType[*refusal](err); ok {
				c.answerUnserved(r)
			}
			return io.EOF
		}
		text := string(c.buf[c.r : c.r+c.headLen])
		if r := c.head.parse(text, c.front.cfg.MaxHeaders); r != nil {
			c.answerUnserved(r)
			return io.EOF
		}
		if c.head.method != "CONNECT" && !c.front.isHook(c.head.path) {
			if r := c.head.unpassable(); r != nil {
				c.answerUnserved(r)
				return io.EOF
			}
			c.startPass()
			return nil
		}
		c.consume(c.headLen)
		if !c.serveHook() || !c.rest() {
			if c.w > c.r {
				c.linger(lingerShort)
			}
			return io.EOF
		}
		idle = c.front.cfg.IdleTimeout
	}
}

// nextHead waits until the buffer begins with a complete head. It returns a refusal if a head has begun but is too
// large or too slow.
func (c *conn) nextHead(idle time.Duration) error {
	c.scan, c.headLen = 0, 0
	if c.w == c.r {
		c.keepReadBy(time.Now(), idle)
	}
	begun := false
	for {
		for c.scan == 0 && c.r < c.w && (c.buf[c.r] == '\r' || c.buf[c.r] == '\n') {
			c.consume(1) // empty lines before the request line (RFC 9112, section 2.2)
		}
		if c.w > c.r {
			if !c.busy {
				c.setBusy(true)
			}
			if err := c.findHead(); err != nil || c.headLen > 0 {
				return err
			}
			if !begun {
				begun = true
				c.setReadBy(time.Now().Add(c.front.cfg.HeaderTimeout))
			}
		}
		n, err := c.wait.fill()
		c.w += n
		switch {
		case err == nil:
		case !isTimeout(err):
			return err
		case c.w > c.r:
			return errSlow
		case !c.lookAgain():
			return err
		}
	}
}

// findHead looks for the end of the head that the buffer begins with, and sets headLen if it is there. It returns a
// refusal of what cannot become a head.
func (c *conn) findHead() error {
	if !token[c.buf[c.r]] { // such as TLS, which has no end of a line
		return malformed("The request method is malformed.")
	}
	most := c.front.cfg.MaxHeaderBytes
	c.headLen, c.scan = endOfHead(c.buf[c.r:c.w], c.scan)
	switch {
	case c.headLen > most:
		return errHeadersTooLarge
	case c.headLen > 0 || c.w-c.r < most:
		return nil
	case c.scan == 0:
		return errURITooLong
	default:
		return errHeadersTooLarge
	}
}

// rest ends a request and reports whether another may follow. After an answer that did not end the connection, its
// sender may have sent one already, so if the front drains by now, the connection ends like an idle one.
func (c *conn) rest() bool {
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
	c.setBusy(false)
	if c.front.draining.Load() {
		c.nudge()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closing
}

// ready makes buf hold the unused bytes, with room for more. Its callers bound its growth: nextHead by the limits of
// heads, all others by emptying a full buffer first.
func (c *conn) ready() {
	if c.buf == nil {
		c.slot, _ = c.front.readBufs.Get().(*readBuf)
		if c.slot == nil {
			c.slot = new(readBuf)
		}
		c.buf = c.slot.b[:]
		c.r, c.w = 0, copy(c.buf, c.stash)
	}
	if c.w < len(c.buf) {
		return
	}
	if c.r > 0 {
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
		return
	}
	buf := make([]byte, 2*len(c.buf))
	copy(buf, c.buf)
	c.dropSlot()
	c.buf = buf
}

func (c *conn) space() []byte { return c.buf[c.w:] }

// park returns the buffer to the pool if the unused bytes fit in the stash.
func (c *conn) park() {
	n := c.w - c.r
	if n > stashSize {
		return
	}
	c.stash = append(c.stash[:0], c.buf[c.r:c.w]...)
	c.dropSlot()
	c.buf, c.r, c.w = nil, 0, n
}

func (c *conn) dropSlot() {
	if c.slot != nil {
		c.front.readBufs.Put(c.slot)
		c.slot = nil
	}
}

func (c *conn) consume(n int) {
	if c.r += n; c.r == c.w {
		c.r, c.w = 0, 0
	}
}

// setBusy marks the start or the end of a request, for Shutdown.
func (c *conn) setBusy(busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = busy
	if busy && c.nudged {
		c.nudged = false
		c.readBy = time.Now().Add(c.front.cfg.HeaderTimeout)
		c.nc.SetReadDeadline(c.readBy)
	}
}

// nudge tells an idle connection to end, and a lingering one to end soon. A request that is just arriving is still
// answered.
func (c *conn) nudge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lingering {
		c.nc.SetReadDeadline(time.Now().Add(lingerShort))
		return
	}
	if !c.busy && !c.relay.owned && !c.nudged {
		c.nudged = true
		grace := nudgeGrace
		if c.shaking {
			grace = shakeGrace
		}
		c.nc.SetReadDeadline(time.Now().Add(grace))
	}
}

const (
	nudgeGrace = 100 * time.Millisecond
	shakeGrace = time.Second // a handshake takes several round trips
	lastLook   = 10 * time.Millisecond
)

// lookAgain lets a connection that was told to end read once more, and reports whether it may. A deadline that passed
// hides what came before this goroutine ran again, which a sender would then see reset. So the last read of a socket
// does not wait, and the connection ends right after it.
func (c *conn) lookAgain() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.nudged || c.looked {
		return false
	}
	c.looked, c.wait.last = true, true
	c.nc.SetReadDeadline(time.Now().Add(lastLook))
	return true
}

func (c *conn) setReadBy(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nudged {
		return
	}
	c.readBy = t
	c.nc.SetReadDeadline(t)
}

// keepReadBy ensures a read deadline of about d from now. Moving a deadline is costly, so one that is near enough
// stays.
func (c *conn) keepReadBy(now time.Time, d time.Duration) {
	if left := c.readBy.Sub(now); left < d/2 || left > d {
		c.setReadBy(now.Add(d))
	}
}

// keepWriteBy does the same for the deadline for writing an answer.
func (c *conn) keepWriteBy(now time.Time) {
	d := c.front.cfg.WriteTimeout
	if left := c.writeBy.Sub(now); left < d/2 {
		c.writeBy = now.Add(d)
		c.nc.SetWriteDeadline(c.writeBy)
	}
}

// kill closes the socket regardless of what is in progress.
func (c *conn) kill() { c.socket.Close() }
