package outbound_test

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hookglass/internal/outbound"
)

const (
	lastingAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	chunkedAnswer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
)

// always answers each request of a connection with the same bytes.
func always(answer string) func(net.Conn) {
	return func(c net.Conn) {
		for {
			if _, _, err := readRequest(c); err != nil {
				return
			}
			io.WriteString(c, answer)
		}
	}
}

// Requests that may arrive twice share a connection where they ask for it and have target and tenant in common, and the
// answers allow it.
func TestConnectionsThatAreKept(t *testing.T) {
	keep := outbound.Request{Method: "POST", Body: []byte("x"), Keep: true, MaxResponseBytes: 100}
	with := func(change func(r *outbound.Request, n int)) func(int) outbound.Request {
		return func(n int) outbound.Request {
			r := keep
			change(&r, n)
			return r
		}
	}
	same := with(func(*outbound.Request, int) {})
	for name, c := range map[string]struct {
		answer      string
		request     func(n int) outbound.Request
		connections int
	}{
		"a length":               {lastingAnswer, same, 1},
		"chunks":                 {chunkedAnswer, same, 1},
		"no content":             {noContent, same, 1},
		"HEAD":                   {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", with(func(r *outbound.Request, _ int) { r.Method, r.Body = "HEAD", nil }), 1},
		"nobody asks for it":     {lastingAnswer, with(func(r *outbound.Request, _ int) { r.Keep = false }), 3},
		"other tenants":          {lastingAnswer, with(func(r *outbound.Request, n int) { r.Key = strings.Repeat("k", n) }), 3},
		"the target will close":  {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x, Close\r\n\r\nok", same, 3},
		"HTTP/1.0":               {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", same, 3},
		"more than the answer":   {lastingAnswer + lastingAnswer, same, 3},
		"a length and chunks":    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", same, 3},
		"longer than is read":    {"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n" + strings.Repeat("z", 101), same, 3},
		"an error of the target": {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", same, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := serve(t, always(c.answer)), local(t)
			for n := range 3 {
				r := c.request(n)
				r.URL = s.url("/")
				resp, err := client.Do(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := resp.RequestHeaders.Get("Connection"), map[bool]string{true: "", false: "close"}[r.Keep]; got != want {
					t.Errorf("Connection: %q, want %q", got, want)
				}
			}
			if s.count() != c.connections {
				t.Errorf("%d connections, want %d", s.count(), c.connections)
			}
		})
	}
}

// A connection that its target has closed meanwhile is not used again.
func TestAKeptConnectionThatWasClosedIsNotUsed(t *testing.T) {
	closed := make(chan struct{}, 3)
	s := serve(t, func(c net.Conn) {
		if _, _, err := readRequest(c); err == nil {
			io.WriteString(c, lastingAnswer)
		}
		c.Close()
		closed <- struct{}{}
	})
	client := local(t)
	for range 3 {
		if _, err := client.Do(t.Context(), outbound.Request{Method: "POST", URL: s.url("/"), Keep: true}); err != nil {
			t.Fatal(err)
		}
		<-closed
	}
	if s.count() != 3 {
		t.Errorf("%d connections", s.count())
	}
}

// What dies with a kept connection is told, and not sent again.
func TestWhatDiesWithAKeptConnectionIsNotSentAgain(t *testing.T) {
	var requests atomic.Int64
	s := serve(t, func(c net.Conn) {
		for {
			if _, _, err := readRequest(c); err != nil || requests.Add(1) > 1 {
				return
			}
			io.WriteString(c, lastingAnswer)
		}
	})
	client := local(t)
	r := outbound.Request{Method: "POST", URL: s.url("/"), Body: []byte("x"), Keep: true}
	if _, err := client.Do(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	_, err := client.Do(t.Context(), r)
	if f := failure(t, err); f.Code != outbound.CodeReset || f.Sent != outbound.MaybeSent {
		t.Errorf("%+v", f)
	}
	if requests.Load() != 2 || s.count() != 1 {
		t.Errorf("%d requests in %d connections", requests.Load(), s.count())
	}
}

func TestATLSConnectionIsKept(t *testing.T) {
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	client := outbound.New(outbound.Config{Allow: rules(t, "127.0.0.0/8"), RootCAs: roots})
	for range 3 {
		if _, err := client.Do(t.Context(), outbound.Request{Method: "POST", URL: s.URL, Keep: true}); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A name is resolved and judged anew before long, however many requests come to it.
func TestAnOldConnectionIsNotUsedAgain(t *testing.T) {
	s, client := serve(t, always(lastingAnswer)), local(t)
	for n := range 3 {
		client.Age(10 * time.Second)
		if _, err := client.Do(t.Context(), outbound.Request{Method: "GET", URL: s.url("/"), Keep: true}); err != nil {
			t.Fatal(err)
		}
		if s.count() != n+1 {
			t.Errorf("%d connections for %d requests that are far apart", s.count(), n+1)
		}
	}
}
