package outbound_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hookglass/internal/outbound"
)

// answers is a resolver that says the same for every name.
type answers []netip.Addr

func (a answers) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return a, nil }

// resolverFunc is a resolver.
type resolverFunc func(ctx context.Context, host string) ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	return f(ctx, host)
}

// noResolver fails the test that asks it.
type noResolver struct{ t testing.TB }

func (r noResolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	r.t.Errorf("%q was looked up", host)
	return nil, errors.New("no")
}

func noConnect(t testing.TB) func(context.Context, netip.AddrPort) (net.Conn, error) {
	return func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
		t.Errorf("connected to %s", to)
		return nil, errors.New("no")
	}
}

func failure(t testing.TB, err error) *outbound.Failure {
	t.Helper()
	var f *outbound.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v is not a Failure", err)
	}
	return f
}

// sink is a server on loopback that hands every connection to a function and counts them.
type sink struct {
	addr string
	mu   sync.Mutex
	hits int
}

func (s *sink) url(path string) string { return "http://" + s.addr + path }

func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits
}

// serve starts a sink, which ends with the test.
func serve(t testing.TB, handle func(net.Conn)) *sink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{addr: l.Addr().String()}
	var conns sync.WaitGroup
	done, stop := context.WithCancel(context.Background())
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.hits++
			s.mu.Unlock()
			conns.Go(func() {
				defer c.Close()
				defer context.AfterFunc(done, func() { c.Close() })()
				handle(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		stop()
		conns.Wait()
	})
	return s
}

// readRequest reads the raw bytes of one request whose body, if any, has a Content-Length.
func readRequest(c net.Conn) (head string, body []byte, err error) {
	br := bufio.NewReader(c)
	var b bytes.Buffer
	length := 0
	for {
		line, err := br.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			return b.String(), nil, err
		}
		if name, v, _ := strings.Cut(line, ":"); strings.EqualFold(name, "Content-Length") {
			length, _ = strconv.Atoi(strings.TrimSpace(v))
		}
		if line == "\r\n" {
			break
		}
	}
	body = make([]byte, length)
	_, err = io.ReadFull(br, body)
	return b.String(), body, err
}

// answering reads one request, keeps it for the test, and answers with the bytes.
func answering(response string) (handle func(net.Conn), got func() (head string, body []byte)) {
	type request struct {
		head string
		body []byte
	}
	ch := make(chan request, 100)
	return func(c net.Conn) {
			head, body, err := readRequest(c)
			if err != nil {
				return
			}
			ch <- request{head, body}
			io.WriteString(c, response)
		}, func() (string, []byte) {
			r := <-ch
			return r.head, r.body
		}
}

// local is a client that may reach loopback.
func local(t testing.TB) *outbound.Client {
	return outbound.New(outbound.Config{Allow: rules(t, "127.0.0.0/8", "::1")})
}

func silent() *log.Logger { return log.New(io.Discard, "", 0) }
