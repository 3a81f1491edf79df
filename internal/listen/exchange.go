package listen

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"hookglass/api"
	"hookglass/internal/neterr"
)

const (
	// idleLimit is how long an idle connection is kept. Servers close idle ones after 2 s (gunicorn) or more; closing
	// earlier avoids sending a request into a connection that is just being closed.
	idleLimit = time.Second
	maxIdle   = 64       // idle connections, for all targets
	inline    = 64 << 10 // a body up to this is sent before the answer is read; a larger one concurrently
	maxAnswer = 64 << 20 // bytes of an answer that are read; then the connection is closed
	maxHead   = 1 << 20  // bytes of an answer before its body, as net/http's servers take of a request
	maxInform = 32       // 1xx responses before the final one
)

// answer is the result of a request.
type answer struct {
	status   int // 0: none came
	reason   string
	header   http.Header
	body     []byte // the part that is kept
	observed int64  // bytes of the body that came
	declared int64  // Content-Length; -1: none
	whole    bool   // body holds all of it
	cut      string // why it is not whole
	lost     error  // what broke off the body; for a delivery the status still counts
	took     time.Duration

	failure string // category, if there was no answer
	problem string // and the reason, for people; also why a command failed
	maySent bool   // bytes of the request may have reached the target
	foreign bool   // the target has a certificate that this machine does not trust

	exit      int    // code of a command; -1: it was ended
	complaint string // and the end of what it wrote to stderr
}

// taken reports whether an event that was answered by a status counts as delivered (spec: decisions, section 10).
func taken(status int) bool { return status >= 200 && status < 300 }

// carrier sends requests over pooled connections. It is safe for concurrent use.
type carrier struct {
	insecure bool
	limit    time.Duration // to connect and, with TLS, to shake hands
	mu       sync.Mutex
	idle     []*link // the last used last
	sweep    *time.Timer
}

// link is a connection to a target.
type link struct {
	net.Conn
	raw    net.Conn
	in     *bufio.Reader
	head   *headBound // bounds what in reads
	to     string
	parked time.Time
}

// headBound bounds the bytes of an answer's head: a target may never end it.
type headBound struct {
	from io.Reader
	left int // bytes allowed; negative: no bound, the body is read
}

func (b *headBound) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errHead
	}
	if b.left > 0 {
		p = p[:min(len(p), b.left)]
	}
	n, err := b.from.Read(p)
	if b.left > 0 {
		b.left -= n
	}
	return n, err
}

// send sends a request once and reads its answer, of whose body it keeps at most keep bytes. begun is called once, when
// the request was sent or will never be. ctx bounds the exchange.
func (c *carrier) send(ctx context.Context, o outgoing, keep int, begun func()) (a answer) {
	started := time.Now()
	var once sync.Once
	begin := func() { once.Do(begun) }
	defer begin()
	defer func() { a.took = time.Since(started) }()
	conn, err := c.connect(ctx, o.to)
	if err != nil {
		return failed(ctx, err, false)
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	wrote := make(chan error, 1)
	put := func() {
		_, err := conn.Write(o.head)
		if err == nil && len(o.body) > 0 {
			_, err = conn.Write(o.body)
		}
		wrote <- err
	}
	if len(o.body) <= inline {
		o.head = append(o.head[:len(o.head):len(o.head)], o.body...)
		o.body = nil
		put()
	} else {
		go put()
	}
	begin()
	a, reusable, err := read(conn, o.method, keep)
	if !stop() || err != nil {
		reusable = false
	}
	select {
	case werr := <-wrote:
		if reusable = reusable && werr == nil; err != nil && werr != nil && errors.Is(err, io.EOF) {
			err = werr
		}
		wrote <- nil
	default: // answered before the request was written completely
		reusable = false
	}
	if reusable {
		c.park(conn)
	} else {
		conn.Close()
		<-wrote
	}
	if err != nil {
		return failed(ctx, err, true)
	}
	return a
}

// read reads the answer to one request.
func read(conn *link, method string, keep int) (a answer, reusable bool, err error) {
	var res *http.Response
	conn.head.left = maxHead
	if start, _ := conn.in.Peek(2); string(start) == "\x15\x03" { // the alert of a port that speaks TLS (RFC 8446, section 5.1)
		return a, false, errSecure
	}
	for i := 0; ; i++ {
		res, err = http.ReadResponse(conn.in, &http.Request{Method: method})
		if err != nil {
			return a, false, err
		}
		if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			break
		}
		if i == maxInform {
			return a, false, errors.New("malformed HTTP response: too many informational answers")
		}
	}
	defer res.Body.Close()
	conn.head.left = -1
	if res.StatusCode > 599 { // RFC 9110, section 15: there is no such status
		return a, false, fmt.Errorf("malformed HTTP response: %w of %d", errStatus, res.StatusCode)
	}
	_, reason, _ := strings.Cut(res.Status, " ")
	a = answer{status: res.StatusCode, reason: reason, header: res.Header, declared: res.ContentLength}
	a.body, err = io.ReadAll(io.LimitReader(res.Body, int64(keep)+1))
	a.observed = int64(len(a.body))
	if len(a.body) > keep {
		a.body, a.cut = a.body[:keep], "body_limit"
		var more int64
		if err == nil {
			more, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer-a.observed))
		}
		a.observed += more
	}
	if err != nil {
		a.cut, a.lost = "connection_lost", err
		return a, false, nil
	}
	a.whole = a.cut == ""
	return a, !res.Close && a.observed < maxAnswer && res.StatusCode != http.StatusSwitchingProtocols && conn.in.Buffered() == 0, nil
}

// connect takes an idle connection, or makes one.
func (c *carrier) connect(ctx context.Context, t Target) (*link, error) {
	key := t.Scheme + " " + t.address()
	for {
		waiting := c.take(key)
		if waiting == nil {
			break
		}
		if usable(waiting.raw) {
			return waiting, nil
		}
		waiting.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	raw, err := dial(ctx, t)
	if err != nil {
		return nil, err
	}
	conn := raw
	if t.Scheme == "https" {
		secured := tls.Client(raw, &tls.Config{ServerName: t.hostname(), InsecureSkipVerify: c.insecure, NextProtos: []string{"http/1.1"}})
		if err := secured.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, fmt.Errorf("%w: %w", errTLS, err)
		}
		conn = secured
	}
	head := &headBound{from: conn, left: -1}
	return &link{Conn: conn, raw: raw, in: bufio.NewReader(head), head: head, to: key}, nil
}

// dial connects to a target. For a name of this machine it tries both loopback addresses: a handler may listen on only
// one of them, and a resolver may return the other, or nothing.
func dial(ctx context.Context, t Target) (net.Conn, error) {
	d := new(net.Dialer)
	conn, err := d.DialContext(ctx, "tcp", t.address())
	if err == nil || !t.thisMachine() {
		return conn, err
	}
	_, port, _ := net.SplitHostPort(t.address())
	for _, host := range []string{"127.0.0.1", "::1"} {
		conn, other := d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
		if other == nil {
			return conn, nil
		}
		if _, ok := errors.AsType[*net.DNSError](err); ok && host == "127.0.0.1" {
			err = other // not a DNS error: the name does mean this machine
		}
	}
	return nil, err
}

// errTLS marks a failed TLS handshake.
var errTLS = errors.New("TLS")

// errSecure marks an answer in TLS to a request without it.
var errSecure = errors.New("it speaks TLS: its URL must begin with https://")

// errHead marks an answer whose head is too long.
var errHead = errors.New("the head of the answer is too long")

// errStatus marks an answer with a status that HTTP does not have.
var errStatus = errors.New("status")

func (c *carrier) take(key string) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire()
	for i := len(c.idle) - 1; i >= 0; i-- {
		if l := c.idle[i]; l.to == key {
			c.idle = slices.Delete(c.idle, i, i+1)
			return l
		}
	}
	return nil
}

func (c *carrier) park(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.parked = time.Now()
	c.idle = append(c.idle, l)
	c.expire()
}

// expire closes connections that were idle too long or are too many, and schedules the closing of the others: a server
// that serves one connection at a time is blocked by an idle one.
func (c *carrier) expire() {
	for len(c.idle) > 0 && (len(c.idle) > maxIdle || time.Since(c.idle[0].parked) >= idleLimit) {
		c.idle[0].Close()
		c.idle = c.idle[1:]
	}
	if len(c.idle) == 0 {
		return
	}
	left := idleLimit - time.Since(c.idle[0].parked)
	if c.sweep != nil {
		c.sweep.Reset(left)
		return
	}
	c.sweep = time.AfterFunc(left, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.expire()
	})
}

// close closes the idle connections.
func (c *carrier) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.idle {
		l.Close()
	}
	c.idle = nil
}

// failed returns the answer for a request without one.
func failed(ctx context.Context, err error, sent bool) answer {
	a := answer{declared: -1, maySent: sent, failure: api.FailureUnknown, problem: plain(err)}
	var dns *net.DNSError
	var network net.Error
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		a.failure, a.problem = api.FailureTimeout, "no answer in time"
	case ctx.Err() != nil:
		a.problem = "stopped before an answer came"
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		a.failure, a.problem = api.FailureTLS, "it speaks HTTP without TLS: its URL must begin with http://"
	case errors.As(err, &certificate) || errors.Is(err, errTLS) || errors.As(err, &authority):
		a.failure, a.foreign = api.FailureTLS, certificate != nil
	case errors.As(err, &dns):
		a.failure, a.problem = api.FailureDNS, "the name "+dns.Name+" is not known"
	case neterr.Refused(err):
		a.failure, a.problem = api.FailureConnectionRefused, "connection refused"
	case errors.As(err, &network) && network.Timeout():
		a.failure, a.problem = api.FailureTimeout, "no connection in time"
	case sent && closed(err):
		a.failure, a.problem = api.FailureHTTP, "the connection was closed before an answer came"
	case errors.Is(err, errSecure):
		a.failure = api.FailureHTTP
	case errors.Is(err, errHead):
		a.failure, a.problem = api.FailureHTTP, fmt.Sprintf("the head of the answer is longer than %d bytes", maxHead)
	case errors.Is(err, errStatus):
		a.failure, a.problem = api.FailureHTTP, "the answer has a status that HTTP does not have"
	case sent && (strings.Contains(err.Error(), "malformed") || strings.Contains(err.Error(), "Content-Length") || strings.Contains(err.Error(), "transfer encoding")):
		a.failure, a.problem = api.FailureHTTP, "the answer is not HTTP"
	}
	return a
}

// closed reports whether the other end closed the connection.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || neterr.Closed(err)
}

// entire returns the answer for a replay, where only a complete one counts (spec: decisions, section 13).
func (a answer) entire(ctx context.Context) answer {
	if a.lost == nil {
		return a
	}
	broken := failed(ctx, a.lost, true)
	if broken.failure == api.FailureHTTP && closed(a.lost) {
		broken.problem = "the connection was closed before the answer was complete"
	}
	broken.took = a.took
	return broken
}

// plain returns the text of an error without the addresses that net puts before it.
func plain(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}
