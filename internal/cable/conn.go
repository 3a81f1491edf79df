package cable

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"hookglass"
	"hookglass/internal/tunnel"
)

const (
	// stall is how long a socket may take nothing, and how long a client may take to answer a ping (spec: decisions,
	// section 10).
	stall = 10 * time.Second
	// piece is what is given to a socket at a time: a slow one that moves takes many, each in time.
	piece = 64 << 10
	// farewell is for the other side to answer the end of a socket.
	farewell = 2 * time.Second
)

// guard gives the WebSocket library a connection that stands still for a while at most.
type guard struct {
	http.ResponseWriter
	conn    *steady
	refused bool // the handshake was; how that is told is not the library's to say
}

// WriteHeader implements http.ResponseWriter.
func (g *guard) WriteHeader(status int) {
	if g.refused = status != http.StatusSwitchingProtocols; !g.refused {
		g.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (g *guard) Write(p []byte) (int, error) {
	if g.refused {
		return len(p), nil
	}
	return g.ResponseWriter.Write(p)
}

// Hijack implements http.Hijacker.
func (g *guard) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, brw, err := http.NewResponseController(g.ResponseWriter).Hijack()
	if err != nil {
		return nc, brw, err
	}
	_ = nc.SetDeadline(time.Time{}) // what the server set for requests
	early, _ := brw.Reader.Peek(brw.Reader.Buffered())
	g.conn = &steady{Conn: nc, early: bytes.Clone(early)}
	return g.conn, bufio.NewReadWriter(bufio.NewReaderSize(g.conn, readBuffer), bufio.NewWriterSize(g.conn, writeBuffer)), nil
}

// Buffers of a socket. Clients say little; what they are sent mostly fits and goes in one piece.
const (
	readBuffer  = 512
	writeBuffer = 1 << 10
)

// steady writes with a deadline for each piece.
type steady struct {
	net.Conn
	early []byte       // came with the request
	moved atomic.Int64 // when the last piece of a large message was taken, in nanoseconds
}

func (s *steady) Read(p []byte) (int, error) {
	if len(s.early) > 0 {
		n := copy(p, s.early)
		s.early = s.early[n:]
		return n, nil
	}
	return s.Conn.Read(p)
}

func (s *steady) Write(p []byte) (n int, err error) {
	for {
		next := p[n:min(n+piece, len(p))]
		_ = s.Conn.SetWriteDeadline(time.Now().Add(stall))
		m, err := s.Conn.Write(next)
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
		s.moved.Store(time.Now().UnixNano())
	}
}

// moving reports whether a large message is on its way.
func (s *steady) moving() bool { return time.Since(time.Unix(0, s.moved.Load())) < stall }

// conn is one socket as its session needs it.
type conn struct {
	ws  *websocket.Conn
	net *steady
}

func (c *conn) send(ctx context.Context, text string) error {
	return c.write(ctx, []byte(text))
}

// write sends one message. The context ends nothing in the middle of it, which would break the socket for the others;
// deadlines do.
func (c *conn) write(ctx context.Context, text []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.ws.Write(context.WithoutCancel(ctx), websocket.MessageText, text)
}

// Confirm implements tunnel.Conn.
func (c *conn) Confirm(ctx context.Context, key string) error {
	return c.write(ctx, append(identified(key, 0), `"type":"confirm_subscription"}`...))
}

// Reject implements tunnel.Conn.
func (c *conn) Reject(ctx context.Context, key string) error {
	return c.write(ctx, append(identified(key, 0), `"type":"reject_subscription"}`...))
}

// Deliver implements tunnel.Conn.
func (c *conn) Deliver(ctx context.Context, key string, message []byte) error {
	text := append(identified(key, len(message)), `"message":`...)
	return c.write(ctx, append(append(text, message...), '}'))
}

// identified begins a message on a subscription. Its identifier goes back as it came: clients compare it as text.
func identified(key string, room int) []byte {
	quoted, _ := json.Marshal(key) // of a string it never fails
	text := make([]byte, 0, len(quoted)+room+64)
	return append(append(append(text, `{"identifier":`...), quoted...), ',')
}

// Beat implements tunnel.Conn.
func (c *conn) Beat(ctx context.Context, now time.Time) error {
	return c.write(ctx, append(strconv.AppendInt([]byte(`{"type":"ping","message":`), now.Unix(), 10), '}'))
}

// Ping implements tunnel.Conn. While a large message is on its way an answer cannot be expected.
func (c *conn) Ping(ctx context.Context) error {
	for {
		asked, cancel := context.WithTimeout(ctx, stall)
		err := c.ws.Ping(asked)
		cancel()
		if err == nil || ctx.Err() != nil || errors.Is(err, net.ErrClosed) || !c.net.moving() {
			return err
		}
	}
}

// Disconnect implements tunnel.Conn.
func (c *conn) Disconnect(reason string, reconnect bool) {
	go c.disconnect(reason, reconnect)
}

func (c *conn) disconnect(reason string, reconnect bool) {
	last := time.AfterFunc(farewell, c.cut)
	defer last.Stop()
	code := websocket.StatusPolicyViolation
	if reconnect {
		code = websocket.StatusServiceRestart
	}
	if c.send(context.Background(), `{"type":"disconnect","reason":"`+reason+`","reconnect":`+strconv.FormatBool(reconnect)+`}`) == nil {
		_ = c.ws.Close(code, reason)
	}
	c.Abort()
}

// violated ends a socket whose client does not keep to the protocol, and tells it so.
func (c *conn) violated(code websocket.StatusCode, why string) {
	last := time.AfterFunc(farewell, c.cut)
	defer last.Stop()
	_ = c.ws.Close(code, why) // there is nobody else to tell
}

// Abort implements tunnel.Conn.
func (c *conn) Abort() { _ = c.ws.CloseNow() }

// cut ends a socket whose client does not answer its end. CloseNow would wait for that answer beside Close, 5 s long.
func (c *conn) cut() { _ = c.net.Close() }

// refuse tells a client why it gets no session, and closes.
func (c *conn) refuse(err error) {
	if hookglass.Is(err, hookglass.CodeUnauthorized) {
		c.disconnect(tunnel.ReasonUnauthorized, false)
		return
	}
	c.disconnect(tunnel.ReasonRestart, true)
}
