package ingest

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"hookglass/internal/intake"
)

const (
	readBufSize = 8 << 10
	stashSize   = 512 // what of a head may wait outside a buffer
)

type readBuf struct{ b [readBufSize]byte }

// conn is one connection. Until it is handed off its goroutine is run; after that it is a net.Conn of the
// net/http server, see relay.go. One goroutine reads at a time, whichever owns it then.
type conn struct {
	front   *Front
	serving *serving
	nc      net.Conn
	socket  net.Conn // below TLS; nc without
	peer    peer
	wait    waiter

	// buf[r:w] are bytes read and not used yet. buf is slot's, larger and its own when a head needs it, or nil
	// while parked, with what there was in stash.
	slot  *readBuf
	buf   []byte
	r, w  int
	stash []byte
	scan  int // offset from r up to which the end of the head has been looked for

	head      head
	headLen   int
	body      bodyReader
	lease     intake.Lease
	readBy    time.Time // the deadline in force for reads of our own
	writeBy   time.Time
	responded bool

	relay  relayState
	unread atomic.Bool // something is left of the body of the request that net/http was given

	mu        sync.Mutex
	busy      bool // with a request: between its first byte and the end of its answer
	nudged    bool // told to end while idle
	lingering bool // answered for the last time, while the sender goes on
	shaking   bool // hands, under TLS: nothing else was heard yet
	leaning   bool // reading for itself inside net/http's Read
	closing   bool // net/http closed it while busy leaning
	deadline  time.Time
	wake      chan struct{} // after each change of the deadline, or the end
	gone      bool

	letGo bool // guarded by front.mu
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
	switch err := c.serveHooks(c.front.cfg.HeaderTimeout); err {
	case nil:
		if !c.serving.handoff.give(c.asNetConn()) {
			c.answerUnavailable()
			c.Close()
		}
	default:
		c.Close()
	}
}

// serveHooks serves hook after hook until another request stands at the front of the buffer, in which case
// it answers nil, or until the connection is at its end.
func (c *conn) serveHooks(idle time.Duration) error {
	for {
		err := c.nextHead(idle)
		if err != nil {
			if r, ok := errors.AsType[*refusal](err); ok {
				if path := claimed(c.buf[c.r:c.w]); r != errSlow && !c.front.isHook(path) && !c.front.isAPI(path) {
					c.startRaw()
					return nil
				}
				c.answerMalformed(r)
			}
			return io.EOF
		}
		text := string(c.buf[c.r : c.r+c.headLen])
		if r := c.head.parse(text, c.front.cfg.MaxHeaders); r != nil {
			if !r.misframed() && !c.front.isHook(claimed(c.buf[c.r:c.r+c.headLen])) {
				c.startRaw()
				return nil
			}
			c.answerMalformed(r)
			return io.EOF
		}
		if c.head.method != "CONNECT" && !c.front.isHook(c.head.path) {
			if _, err := url.ParseRequestURI(c.head.target); err != nil && c.front.isAPI(c.head.path) {
				c.answerMalformed(malformed("The request target is malformed."))
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

// nextHead waits until a complete head stands at the front of the buffer. It fails with a refusal when one
// has begun and is too large or too slow.
func (c *conn) nextHead(idle time.Duration) error {
	c.scan, c.headLen = 0, 0
	if c.w == c.r {
		c.keepReadBy(time.Now(), idle)
	}
	begun := false
	for {
		for c.scan == 0 && c.r < c.w && (c.buf[c.r] == '\r' || c.buf[c.r] == '\n') {
			c.consume(1) // empty lines before a request line (RFC 9112, section 2.2)
		}
		if c.w > c.r {
			if !c.busy {
				c.setBusy(true)
			}
			if c.headLen, c.scan = endOfHead(c.buf[c.r:c.w], c.scan); c.headLen > 0 {
				if c.headLen > c.front.cfg.MaxHeaderBytes {
					return errHeadersTooLarge
				}
				return nil
			}
			if c.w-c.r >= c.front.cfg.MaxHeaderBytes {
				if c.scan == 0 {
					return errURITooLong
				}
				return errHeadersTooLarge
			}
			if !begun {
				begun = true
				c.setReadBy(time.Now().Add(c.front.cfg.HeaderTimeout))
			}
		}
		n, err := c.wait.fill()
		c.w += n
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() && c.w > c.r {
				return errSlow
			}
			return err
		}
	}
}

// rest ends a request. It reports whether another may follow.
func (c *conn) rest() bool {
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
	c.setBusy(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closing && !c.front.draining.Load()
}

// ready makes buf hold what there is, with room for more. The room is bounded by its callers: by the limits
// of heads in nextHead, and by a full buffer being emptied first everywhere else.
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

// park gives the buffer back when what there is is short enough to wait elsewhere.
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

// setBusy marks the start and the end of a request, for Shutdown.
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

// nudge tells an idle connection to end, and one that lingers to end soon. One whose request is on its way at this
// moment still has it answered.
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
	shakeGrace = time.Second // a handshake takes turns
)

func (c *conn) setReadBy(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nudged {
		return
	}
	c.readBy = t
	c.nc.SetReadDeadline(t)
}

// keepReadBy sees to a deadline of about d from now. Moving one costs, so one that is near enough stays.
func (c *conn) keepReadBy(now time.Time, d time.Duration) {
	if left := c.readBy.Sub(now); left < d/2 || left > d {
		c.setReadBy(now.Add(d))
	}
}

// keepWriteBy sees to a deadline for writing an answer in the same way.
func (c *conn) keepWriteBy(now time.Time) {
	d := c.front.cfg.WriteTimeout
	if left := c.writeBy.Sub(now); left < d/2 {
		c.writeBy = now.Add(d)
		c.nc.SetWriteDeadline(c.writeBy)
	}
}

// kill closes the socket under whatever goes on.
func (c *conn) kill() { c.socket.Close() }
