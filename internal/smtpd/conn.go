package smtpd

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"hookglass/internal/intake"
)

// Bounds of a connection between two messages that were stored.
const (
	maxErrors   = 20    // lines that are not a command, or are out of order
	maxRefusals = 200   // refused recipients
	maxCommands = 2_500 // of any kind; a message to 100 recipients takes 103
)

// handshakeTimeout bounds the TLS handshake after STARTTLS.
const handshakeTimeout = 15 * time.Second

// errEnd ends a connection without another reply.
var errEnd = errors.New("the connection ends")

// conn is one connection. Its goroutine is run.
type conn struct {
	server    *Server
	lmtp      bool
	nc        net.Conn
	in        *bufio.Reader
	out       *bufio.Writer
	peer      netip.Addr // the other end of the socket
	client    netip.Addr // the peer, or the client that a trusted proxy names
	uncounted bool       // not counted under its address

	paced bool // a message is being read, so its pace applies
	pace  intake.Pace
	lease intake.Lease

	secure  bool
	helo    string
	greeted string // the protocol of the greeting: SMTP, ESMTP or LMTP; empty before it
	inbox
	envelope

	errors, refusals, commands int
	pending                    string // a command that was read between chunks
	hasPending                 bool

	mu      sync.Mutex
	waiting bool // for a command
	nudged  bool
}

func newConn(s *Server, nc net.Conn, lmtp bool) *conn {
	c := &conn{server: s, nc: nc, lmtp: lmtp, lease: s.budget.Lease()}
	if ap, err := netip.ParseAddrPort(nc.RemoteAddr().String()); err == nil {
		c.peer = ap.Addr().Unmap().WithZone("")
	}
	c.client = c.peer
	c.uncounted = !c.peer.IsValid() || s.cfg.TrustedProxies.Trusts(c.peer)
	c.in = bufio.NewReaderSize(socket{c}, 8<<10)
	c.out = bufio.NewWriterSize(socket{c}, 2<<10)
	return c
}

// socket reads and writes the connection with the deadlines that apply at the time.
type socket struct{ *conn }

func (s socket) Read(p []byte) (int, error) {
	if s.paced {
		s.nc.SetReadDeadline(s.pace.Due())
	}
	n, err := s.nc.Read(p)
	if s.paced {
		s.pace.Came(n, time.Now())
	}
	return n, err
}

func (s socket) Write(p []byte) (int, error) {
	s.nc.SetWriteDeadline(time.Now().Add(s.server.cfg.WriteTimeout))
	return s.nc.Write(p)
}

// run serves the connection to its end.
func (c *conn) run() {
	defer c.server.forget(c)
	defer func() { c.nc.Close() }() // not c.nc.Close: STARTTLS replaces nc
	defer func() {
		c.lease.Release()
		if v := recover(); v != nil {
			c.server.log.log.Error("panic in mail reception", "panic", v, "stack", string(debug.Stack()))
			c.last(replyInternal)
		}
	}()
	protocol := " ESMTP"
	if c.lmtp {
		protocol = " LMTP"
	}
	c.say(reply{code: 220, text: c.server.cfg.Domain + protocol + " hookglass"})
	if !c.meetProxy() {
		return
	}
	for {
		line, err := c.readCommand()
		if err != nil {
			c.farewell(err)
			return
		}
		if err := c.command(line); err != nil {
			c.farewell(err)
			return
		}
	}
}

// meetProxy reads a trusted proxy's header with the client's address, and reports whether the connection goes on.
func (c *conn) meetProxy() bool {
	if !c.server.cfg.TrustedProxies.Trusts(c.peer) {
		return true
	}
	var client netip.Addr
	var found bool
	err := c.await(func() (err error) {
		client, found, err = readProxy(c.in)
		return err
	})
	switch {
	case err == errProxy:
		c.last(replyProxy)
		return false
	case err != nil:
		c.farewell(err)
		return false
	case found && client.IsValid() && !c.server.named(c, client):
		c.server.log.refused("connections", "client", addrText(client))
		c.last(replyConns)
		return false
	}
	return true
}

// await runs a read from the client that a shutdown may interrupt.
func (c *conn) await(read func() error) error {
	if err := c.flush(); err != nil {
		return err
	}
	c.mu.Lock()
	if c.nudged {
		c.mu.Unlock()
		return replyStopping
	}
	c.waiting = true
	c.nc.SetReadDeadline(time.Now().Add(c.server.cfg.CommandTimeout))
	c.mu.Unlock()
	err := read()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = false
	if err != nil && c.nudged {
		return replyStopping
	}
	return err
}

// flush sends the queued replies, unless another complete command is already there: then its reply is sent with them
// (RFC 2920).
func (c *conn) flush() error {
	if there, _ := c.in.Peek(c.in.Buffered()); bytes.IndexByte(there, '\n') >= 0 {
		return nil
	}
	return c.out.Flush()
}

// nudge ends a connection that waits for a command; a busy one ends before its next command.
func (c *conn) nudge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nudged = true
	if c.waiting {
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// kill closes a connection, whatever it is doing.
func (c *conn) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc.Close()
}

// cut ends the connection by a reset, so that the client sees it broken (RFC 9293, section 3.10.7.4).
func (c *conn) cut() {
	nc := c.nc
	if secured, ok := nc.(*tls.Conn); ok {
		nc = secured.NetConn() // without a close_notify
	}
	if tcp, ok := nc.(interface{ SetLinger(seconds int) error }); ok {
		tcp.SetLinger(0) // if it fails, the connection is still closed
	}
	nc.Close()
}

// Error makes a reply an error: the reply with which the connection ends.
func (r reply) Error() string { return r.text }

// readCommand reads a line without its end. It replies to malformed lines and reads on.
func (c *conn) readCommand() (line string, err error) {
	if c.hasPending {
		c.hasPending = false
		return c.pending, nil
	}
	for {
		var raw []byte
		err := c.await(func() (err error) {
			raw, err = c.in.ReadSlice('\n')
			return err
		})
		switch {
		case err == bufio.ErrBufferFull || err == nil && len(raw) > maxLine:
			return "", replyLineLength
		case err != nil:
			return "", err
		case !wellFormed(raw):
			if err := c.fault(replyLineEnd); err != nil {
				return "", err
			}
			continue
		}
		return string(raw[:len(raw)-2]), nil
	}
}

// wellFormed reports whether a line ends with CR LF and holds no other control character.
func wellFormed(line []byte) bool {
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return false
	}
	for _, b := range line[:len(line)-2] {
		if b < ' ' || b == 0x7f {
			return false
		}
	}
	return true
}

// say queues a reply.
func (c *conn) say(r reply) {
	_, _ = c.out.Write(r.append(c.out.AvailableBuffer())) // the writer keeps an error, and flush returns it
}

// fault replies to a client's error, and ends the connection after too many of them.
func (c *conn) fault(r reply) error {
	c.say(r)
	if c.errors++; c.errors >= maxErrors {
		return replyErrors
	}
	return nil
}

// farewell tells the client why the connection ends, if that is possible.
func (c *conn) farewell(err error) {
	var r reply
	switch {
	case err == errReset:
		_ = c.out.Flush()
		c.cut()
	case errors.As(err, &r):
		c.last(r)
	case isTimeout(err):
		c.last(replyIdle)
	default:
		_ = c.out.Flush()
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// last sends a reply after which the connection is closed. It then discards input for a moment: closing a socket with
// unread data resets the connection, and the client may lose the reply.
func (c *conn) last(r reply) {
	c.say(r)
	if c.out.Flush() != nil {
		return
	}
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.paced = false
	c.nc.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c.nc, lingerBytes)
}

const (
	lingerTime  = time.Second
	lingerBytes = 16 << 20
)

// startTLS serves STARTTLS. Data that was sent after it in the clear is dropped: anyone could have injected it (RFC
// 3207, section 4.2).
func (c *conn) startTLS() error {
	c.say(reply{220, "2.0.0", "Ready to start TLS"})
	c.in.Discard(c.in.Buffered())
	if err := c.out.Flush(); err != nil {
		return err
	}
	secured := tls.Server(c.nc, c.server.cfg.TLS)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		c.server.log.log.Debug("TLS handshake failed", "client", addrText(c.client), "error", err)
		return errEnd
	}
	c.mu.Lock()
	c.nc = secured
	c.mu.Unlock()
	c.secure, c.helo, c.greeted = true, "", ""
	c.reset()
	return nil
}
