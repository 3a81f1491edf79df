package ingest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// protocolHTTP2 is its name in ALPN (RFC 9113, section 3.2).
const protocolHTTP2 = "h2"

// watched is the socket below a connection under TLS. However that is closed, by us or by net/http, the connection is
// off the books.
type watched struct {
	net.Conn
	of *conn
}

// Close implements net.Conn.
func (w watched) Close() error {
	w.of.front.forget(w.of)
	return w.Conn.Close()
}

// secured is a conn under TLS as net/http sees it: that asks for the connection's state to fill Request.TLS.
type secured struct{ *conn }

// ConnectionState says what was agreed on in the handshake.
func (c secured) ConnectionState() tls.ConnectionState { return c.nc.(*tls.Conn).ConnectionState() }

func (c *conn) asNetConn() net.Conn {
	if c.serving.tls != nil {
		return secured{c}
	}
	return c
}

// secure shakes hands. It reports whether HTTP/1 follows; where something else does, or nothing, the connection is seen
// to.
func (c *conn) secure() bool {
	nc := c.nc.(*tls.Conn)
	ctx, cancel := context.WithTimeout(context.Background(), c.front.cfg.HeaderTimeout)
	defer cancel()
	if err := nc.HandshakeContext(ctx); err != nil {
		if e, ok := errors.AsType[tls.RecordHeaderError](err); ok && e.Conn != nil && inTheClear(e.RecordHeader) {
			c.mu.Lock()
			c.nc = c.socket
			c.mu.Unlock()
			c.answerMalformed(malformed("This port speaks HTTPS, and the request was sent by HTTP."))
		}
		c.Close()
		return false
	}
	c.mu.Lock()
	c.shaking = false
	c.mu.Unlock()
	switch nc.ConnectionState().NegotiatedProtocol {
	case "", "http/1.1", "http/1.0":
		return true
	case protocolHTTP2:
		c.startRaw()
		c.front.letGo(c) // net/http drains it
		if c.serving.handoff.give(nc) {
			return false
		}
	}
	c.Close() // the handshake was all: a challenge of ACME (RFC 8737)
	return false
}

// inTheClear reports whether what stands where a TLS record should begin is the beginning of a request line.
func inTheClear(header [5]byte) bool {
	for _, b := range header {
		if b != ' ' && b != '/' && (b < 'A' || b > 'Z') {
			return false
		}
	}
	return true
}
