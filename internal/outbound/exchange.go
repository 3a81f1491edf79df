package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hookglass"
)

// smallBody is the longest body that is sent in one write with the head.
const smallBody = 16 << 10

// atOnce is the largest request that fits into the buffers of any connection, so that writing it does not block.
const atOnce = 8 << 10

// afterAnswer is how long a target that has already answered may go on reading the request.
const afterAnswer = time.Second

// message is a request that is ready to be sent.
type message struct {
	method  string
	headers hookglass.Headers // with the computed ones
	head    []byte            // as sent; its memory is buffer
	buffer  *[]byte
	body    []byte
	maxBody int64
	keep    bool
}

// compose builds the head of a request.
func compose(r Request, t target) (message, *hookglass.Error) {
	m := message{method: r.Method, body: r.Body, maxBody: r.MaxResponseBytes, keep: r.Keep}
	if !hookglass.IsToken(r.Method) || r.Method == "CONNECT" {
		return m, hookglass.Invalid("method", "cannot be sent")
	}
	m.headers = append(make(hookglass.Headers, 0, len(r.Headers)+3), hookglass.Header{Name: "Host", Value: t.authority()})
	m.headers = appendSanitized(m.headers, r.Headers)
	for _, f := range m.headers[1:] {
		if !hookglass.IsToken(f.Name) {
			return m, hookglass.Invalid("headers", "hold a name that is not a header name")
		}
		if !hookglass.IsFieldValue(f.Value) {
			return m, hookglass.Invalid("headers", "hold a value with a line break or another control character")
		}
	}
	if len(r.Body) > 0 || r.Method == "POST" || r.Method == "PUT" || r.Method == "PATCH" { // RFC 9110, section 8.6
		m.headers = append(m.headers, hookglass.Header{Name: "Content-Length", Value: strconv.Itoa(len(r.Body))})
	}
	if !r.Keep { // without this field the connection stays open (RFC 9112, section 9.3)
		m.headers = append(m.headers, hookglass.Header{Name: "Connection", Value: "close"})
	}

	size := len(r.Method) + len(t.path) + 16
	for _, f := range m.headers {
		size += len(f.Name) + len(f.Value) + 4
	}
	if len(r.Body) <= smallBody {
		size += len(r.Body)
	}
	m.buffer = heads.Get().(*[]byte)
	b := append(slices.Grow((*m.buffer)[:0], size), r.Method...)
	b = append(b, ' ')
	b = append(b, t.path...)
	b = append(b, " HTTP/1.1\r\n"...)
	b = m.headers.AppendWire(b)
	b = append(b, "\r\n"...)
	if len(r.Body) <= smallBody {
		b, m.body = append(b, r.Body...), nil
	}
	m.head, *m.buffer = b, b
	return m, nil
}

// heads pools the buffers of heads: each request needs one, and only until its response is read.
var heads = sync.Pool{New: func() any { return new([]byte) }}

// release returns the buffer of the head to the pool. Nothing may use it any more.
func (m message) release() {
	if cap(*m.buffer) <= maxHeadBytes {
		heads.Put(m.buffer)
	}
}

// exchange sends the request over a connection and reads the response. It owns the connection, and closes it or keeps
// it for another request.
func (c *Client) exchange(ctx context.Context, began time.Time, l *line, m message) (*Response, *Failure) {
	defer func() {
		if l != nil {
			l.conn.Close()
		}
	}()
	conn := l.conn
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if f := interrupted(ctx); f != nil {
		return nil, f
	}

	before := l.wire.written.Load()
	sent := l.send(m)
	a := answer{in: l.in, lines: maxHeadLines, bytes: maxHeadBytes}
	resp, err := a.read(m.method, m.maxBody)
	if err == nil {
		resp.Duration = time.Since(began)
		resp.RequestHeaders = m.headers
		if sent.finish(ctx) && sent.whole && m.keep && a.delimited && lasting(resp) && l.in.Buffered() == 0 && stop() {
			c.kept.put(l)
			l = nil
			return resp, nil
		}
	}
	conn.Close()
	<-sent.done
	if err == nil {
		return resp, nil
	}
	var f *Failure
	if !errors.As(err, &f) {
		if f = interrupted(ctx); f == nil {
			f = cutOff(err)
		}
	}
	if l.wire.written.Load() > before {
		f.Sent = MaybeSent
	}
	return nil, f
}

// sending is a request that is being written in the background.
type sending struct {
	done  chan struct{} // closed when writing has ended
	whole bool          // valid then: all of it was written
}

// written is a done channel that is already closed.
var written = func() chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}()

// send writes a request. A request larger than atOnce is written while the response is read: a target may answer, and
// close, before it has read everything. A write error is not reported: it shows as a response that does not come.
func (l *line) send(m message) *sending {
	if len(m.head) <= atOnce && len(m.body) == 0 {
		_, err := l.stream.Write(m.head)
		return &sending{done: written, whole: err == nil}
	}
	s := &sending{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		_, err := l.stream.Write(m.head)
		if err == nil && len(m.body) > 0 {
			_, err = l.stream.Write(m.body)
		}
		s.whole = err == nil
	}()
	return s
}

// finish waits a moment for the rest of a request that was answered early, and reports whether it was written.
func (s *sending) finish(ctx context.Context) bool {
	select {
	case <-s.done:
		return true
	default:
	}
	moment := time.NewTimer(afterAnswer)
	defer moment.Stop()
	select {
	case <-s.done:
		return true
	case <-moment.C:
	case <-ctx.Done():
	}
	return false
}

func (c *Client) tlsConfig(h host) *tls.Config {
	name := strings.TrimSuffix(h.name, ".")
	if h.addr.IsValid() {
		name = h.addr.String() // verified, but not sent: crypto/tls sends no address as SNI
	}
	return &tls.Config{ServerName: name, RootCAs: c.roots, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
}

// cutOff says why there is no whole answer. Under TLS 1.3 a target judges the client's certificate after the client has
// ended its handshake, so that its refusal comes where the answer would.
func cutOff(err error) *Failure {
	if alerted(err, alertCertificateRequired, alertBadCertificate) {
		return failed(CodeTLSError, "The target demands a certificate of its client, and none is sent.")
	}
	return failed(CodeReset, "The target closed the connection before its answer was complete.")
}

// The alerts with which a target refuses a client that has no certificate: certificate_required of TLS 1.3 (RFC 8446,
// section 6.2), and bad_certificate, which some send instead of it. And the one of a target that does not speak
// HTTP/1.1 (RFC 7301, section 3.2).
const (
	alertBadCertificate        tls.AlertError = 42
	alertCertificateRequired   tls.AlertError = 116
	alertNoApplicationProtocol tls.AlertError = 120
)

// alerted reports whether the target sent one of the alerts.
func alerted(err error, alerts ...tls.AlertError) bool {
	var alert *net.OpError // crypto/tls has no exported type for an alert that it received, but its text
	return errors.As(err, &alert) && alert.Op == "remote error" &&
		slices.ContainsFunc(alerts, func(a tls.AlertError) bool { return alert.Err.Error() == a.Error() })
}

// tlsReason says why a handshake failed, without quoting the certificate.
func tlsReason(err error) string {
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "The certificate of the target is not signed by an authority that is trusted."
	case errors.As(err, new(x509.HostnameError)):
		return "The certificate of the target is for another name."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "The certificate of the target has expired or is not yet valid."
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "The certificate of the target is not valid."
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return "The target speaks HTTP without TLS: its URL must begin with http://."
	case errors.As(err, &record):
		return "The target does not speak TLS."
	case alerted(err, alertNoApplicationProtocol):
		return "The target does not speak HTTP/1.1."
	default:
		return "The TLS handshake with the target failed."
	}
}

// meter counts the bytes written to a connection.
type meter struct {
	net.Conn
	written atomic.Int64
}

func (m *meter) Write(b []byte) (int, error) {
	n, err := m.Conn.Write(b)
	m.written.Add(int64(n))
	return n, err
}
