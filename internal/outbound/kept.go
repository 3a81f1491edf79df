package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"time"
)

// Bounds of idle connections. keptFor is far below the idle timeouts of servers, so that few close a connection just
// when it is reused; keptUntil makes sure that names are resolved and judged anew.
const (
	keptFor    = time.Second
	keptUntil  = 10 * time.Second // since the connection was made
	keptOfLine = 64
	keptInAll  = 256
)

// line is a connection to a target, ready for a request.
type line struct {
	lineKey
	conn   net.Conn // as dialled
	wire   *meter
	stream net.Conn // the wire, or TLS over it
	in     *bufio.Reader
	since  time.Time
	expiry *time.Timer // while it is idle
}

// lineKey is what requests must have in common to share a connection. Tenants never share one: one could get a response
// meant for the other.
type lineKey struct {
	tenant    string
	authority string
	tls       bool
}

func (t target) lineKey(tenant string) lineKey { return lineKey{tenant, t.authority(), t.tls} }

// open makes a dialled connection ready for requests, with TLS if needed. It owns conn, and closes it on failure.
func (c *Client) open(ctx context.Context, conn net.Conn, t target, key lineKey) (*line, *Failure) {
	wire := &meter{Conn: conn}
	l := &line{lineKey: key, conn: conn, wire: wire, stream: wire, since: time.Now()}
	if t.tls {
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		secured := tls.Client(wire, c.tlsConfig(t.host))
		if err := secured.HandshakeContext(ctx); err != nil {
			conn.Close()
			if f := interrupted(ctx); f != nil {
				return nil, f
			}
			return nil, failed(CodeTLSError, tlsReason(err))
		}
		l.stream = secured
	}
	l.in = bufio.NewReaderSize(l.stream, 4<<10)
	return l, nil
}

// kept holds the idle connections.
type kept struct {
	mu    sync.Mutex
	lines map[lineKey][]*line
	n     int
}

// take returns the connection that became idle last and is still usable, or nil.
func (k *kept) take(key lineKey) *line {
	for {
		k.mu.Lock()
		waiting := k.lines[key]
		if len(waiting) == 0 {
			k.mu.Unlock()
			return nil
		}
		l := waiting[len(waiting)-1]
		k.drop(l)
		k.mu.Unlock()
		if quiet(l.conn) && time.Since(l.since) < keptUntil {
			return l
		}
		l.conn.Close()
	}
}

// put keeps a connection for another request, or closes it if too many are idle.
func (k *kept) put(l *line) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n >= keptInAll || len(k.lines[l.lineKey]) >= keptOfLine || time.Since(l.since) >= keptUntil {
		l.conn.Close()
		return
	}
	k.n++
	k.lines[l.lineKey] = append(k.lines[l.lineKey], l)
	l.expiry = time.AfterFunc(keptFor, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.drop(l) {
			l.conn.Close()
		}
	})
}

// drop removes an idle connection, and reports whether it was still there.
func (k *kept) drop(l *line) bool {
	waiting := k.lines[l.lineKey]
	rest := remove(waiting, l)
	if len(rest) == len(waiting) {
		return false
	}
	l.expiry.Stop()
	k.n--
	if k.lines[l.lineKey] = rest; len(rest) == 0 {
		delete(k.lines, l.lineKey)
	}
	return true
}

// lasting reports whether the connection may serve another request after this response (RFC 9112, section 9.3). The
// caller has checked that the end of the body was marked.
func lasting(r *Response) bool {
	if r.Truncated || r.Proto != "HTTP/1.1" {
		return false
	}
	for _, v := range r.Headers.Values("Connection") {
		for option := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.Trim(option, " \t"), "close") {
				return false
			}
		}
	}
	return true
}
