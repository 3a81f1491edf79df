package ingest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// protocolHTTP2 is the ALPN id of HTTP/2 (RFC 9113, section 3.2).
const protocolHTTP2 = "h2"

// watched is the socket below a TLS connection. It removes the connection from the front however it is closed, by us or
// by net/http.
type watched struct {
	net.Conn
	of *conn
}

// Close implements net.Conn.
func (w watched) Close() error {
	w.of.front.forget(w.of)
	return w.Conn.Close()
}

// secured is a TLS conn as net/http sees it, which fills Request.TLS from ConnectionState.
type secured struct{ *conn }

// ConnectionState returns the result of the handshake.
func (c secured) ConnectionState() tls.ConnectionState { return c.nc.(*tls.Conn).ConnectionState() }

func (c *conn) asNetConn() net.Conn {
	if c.serving.tls != nil {
		return secured{c}
	}
	return c
}

// secure does the TLS handshake and reports whether HTTP/1 follows. Otherwise it has handed over or closed the
// connection.
func (c *conn) secure() bool {
	nc := c.nc.(*tls.Conn)
	ctx, cancel := context.WithTimeout(context.Background(), c.front.cfg.HeaderTimeout)
	defer cancel()
	if err := nc.HandshakeContext(ctx); err != nil {
		if e, ok := errors.AsType[tls.RecordHeaderError](err); ok && e.Conn != nil && inTheClear(e.RecordHeader) {
			c.mu.Lock()
			c.nc = c.socket
			c.mu.Unlock()
			c.answerUnserved(malformed("This port speaks HTTPS, and the request was sent by HTTP."))
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
		c.front.letGo(c) // net/http drains it itself
		if c.serving.handoff.give(nc) {
			return false
		}
	}
	c.Close() // the handshake was everything: an ACME challenge (RFC 8737)
	return false
}

// inTheClear reports whether the bytes in place of a TLS record header look like the start of a request line.
func inTheClear(header [5]byte) bool {
	for _, b := range header {
		if b != ' ' && b != '/' && (b < 'A' || b > 'Z') {
			return false
		}
	}
	return true
}
