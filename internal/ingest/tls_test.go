package ingest_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/ingest"
)

// authority is a certificate for 127.0.0.1 that its own client trusts.
func authority(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	pair := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}, &tls.Config{RootCAs: roots}
}

func (sv *service) dialTLS(client *tls.Config) (net.Conn, *bufio.Reader) {
	sv.t.Helper()
	nc, err := tls.Dial("tcp", sv.addr, client)
	if err != nil {
		sv.t.Fatal(err)
	}
	sv.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	return nc, bufio.NewReader(nc)
}

// seen answers what net/http saw, with the version of TLS and HTTP.
func seen(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s tls=%v", r.Proto, r.URL.Path, body, r.TLS != nil && r.TLS.HandshakeComplete)
}

func TestHeadersAreKeptUnderTLSAndRequestsMixOnOneConnection(t *testing.T) {
	server, client := authority(t)
	s := new(stub)
	sv := startOn(t, server, ingest.Config{}, s, http.HandlerFunc(seen))
	nc, r := sv.dialTLS(client)
	head := lines("POST "+hook("//a/%2F/../b?q=1")+" HTTP/1.1", "hOsT: h:1", "X-b: 1", "x-A: 2", "X-b: 3", "CONTENT-LENGTH: 3")
	text := head + "\r\nabc" + post("/api", "def") + head + "\r\nabc"
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`{"received":true,"id":"req_1"}`, "HTTP/1.1 /api def tls=true", `{"received":true,"id":"req_2"}`} {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		body, err := io.ReadAll(res.Body)
		if res.StatusCode != 200 || string(body) != want || err != nil {
			t.Errorf("answer %d: %d %s %v, want %s", i, res.StatusCode, body, err, want)
		}
	}
	for _, a := range s.all() {
		_, want, _ := strings.Cut(head, "\r\n")
		if got := wire(a.Headers); got != want || string(a.Body) != "abc" || a.Path != "//a/%2F/../b" {
			t.Errorf("captured %q with %q at %s, want the headers %q", got, a.Body, a.Path, want)
		}
		if a.Scheme != "https" || a.Host != "h:1" {
			t.Errorf("captured from %s://%s", a.Scheme, a.Host)
		}
	}
}

func TestLargeBodiesComeAndGoUnderTLS(t *testing.T) {
	server, client := authority(t)
	large := strings.Repeat("x", 3<<20)
	s := &stub{capture: func(_ context.Context, _ capture.Target, a *capture.Arrival) (*hookglass.Reply, error) {
		if len(a.Body) != len(large) {
			t.Errorf("%d bytes were captured", len(a.Body))
		}
		return jsonReply(large), nil
	}}
	sv := startOn(t, server, ingest.Config{}, s, nil)
	nc, r := sv.dialTLS(client)
	go io.WriteString(nc, post(hook(""), large))
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != large {
		t.Errorf("%d bytes came back, %v", len(body), err)
	}
}

func TestHTTP2IsSpokenToWhoAsksForIt(t *testing.T) {
	server, client := authority(t)
	s := new(stub)
	sv := startOn(t, server, ingest.Config{}, s, http.HandlerFunc(seen))
	transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirected") }}
	call := func(path, want string) {
		t.Helper()
		req, err := http.NewRequest("POST", "https://"+sv.addr, strings.NewReader("abc"))
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Opaque = "//" + sv.addr + path
		req.Header.Set("X-Custom-Header", "1")
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); err != nil || string(body) != want {
			t.Errorf("%s answered %s, %v; want %s", path, body, err, want)
		}
	}
	call(hook("//a/../b"), `{"received":true,"id":"req_1"}`)
	call("/api", "HTTP/2.0 /api abc tls=true")
	a := s.one(t)
	if a.Path != "//a/../b" || string(a.Body) != "abc" || a.Proto != "HTTP/2.0" || a.Scheme != "https" {
		t.Errorf("captured %s %s %s %q", a.Proto, a.Scheme, a.Path, a.Body)
	}
	if got := wire(a.Headers); !strings.Contains(got, "x-custom-header: 1\r\n") {
		t.Errorf("the headers are %q; names are of lower case in HTTP/2", got)
	}
	// One such connection is open and idle: it does not keep the service from stopping.
	if err := <-sv.shutdown(); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestTrailersOverHTTP2AreKeptWithAndWithoutALength(t *testing.T) {
	server, client := authority(t)
	s := new(stub)
	sv := startOn(t, server, ingest.Config{}, s, nil)
	transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	for _, length := range []int64{-1, 3} {
		req, err := http.NewRequest("POST", "https://"+sv.addr+hook(""), strings.NewReader("abc"))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		req.Trailer = http.Header{"X-Sum": {"1", "2"}}
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		all := s.all()
		if a := all[len(all)-1]; string(a.Body) != "abc" || wire(a.Trailers) != lines("x-sum: 1", "x-sum: 2") {
			t.Errorf("of a length of %d: captured %q, trailers %q", length, a.Body, wire(a.Trailers))
		}
	}
}

func TestHeaderLinesAreBoundedOverHTTP2(t *testing.T) {
	server, client := authority(t)
	s := new(stub)
	const most = 10
	sv := startOn(t, server, ingest.Config{MaxHeaders: most}, s, nil)
	transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	for n := range most + 1 {
		req, err := http.NewRequest("POST", "https://"+sv.addr+hook(""), strings.NewReader("abc"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header["X-Line"] = slices.Repeat([]string{"1"}, n)
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		others := len(s.all()[0].Headers) // with none of ours
		want := http.StatusOK
		if others+n > most {
			want = http.StatusRequestHeaderFieldsTooLarge
		}
		if res.StatusCode != want || res.ProtoMajor != 2 {
			t.Errorf("%d lines: %s %d %s, want %d", others+n, res.Proto, res.StatusCode, text, want)
		}
	}
}

// Some senders lose an answer that ends a stream of HTTP/2 while they are still sending, so a refusal comes after the
// body.
func TestARefusalOverHTTP2ComesAfterTheBody(t *testing.T) {
	server, client := authority(t)
	sv := startOn(t, server, ingest.Config{MaxBodyBytes: 1000}, new(stub), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/read" {
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
		}
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "payload_too_large")
	}))
	transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	const size = 4 << 20 // more than fits into the window of a stream that is not read
	for name, sent := range map[string]struct {
		path   string
		length int64
	}{
		"a hook's length that is too large":    {hook(""), size},
		"a hook's body that becomes too large": {hook(""), -1},
		"what is refused unread":               {"/api/unread", size},
		"what is refused while it is read":     {"/api/read", -1},
	} {
		body := &counted{r: strings.NewReader(strings.Repeat("a", size))}
		req, err := http.NewRequest("POST", "https://"+sv.addr+sent.path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = sent.length
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		res.Body.Close()
		if res.ProtoMajor != 2 || res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(answer), "payload_too_large") || err != nil || body.n.Load() < size {
			t.Errorf("%s: %s %d %s, %v; %d bytes were taken", name, res.Proto, res.StatusCode, answer, err, body.n.Load())
		}
	}
}

// counted counts what is read from it.
type counted struct {
	r io.Reader
	n atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func TestShutdownAnswersWhatHasBegunOverHTTP2(t *testing.T) {
	server, client := authority(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	s := &stub{capture: func(context.Context, capture.Target, *capture.Arrival) (*hookglass.Reply, error) {
		entered <- struct{}{}
		<-leave
		return nil, nil
	}}
	sv := startOn(t, server, ingest.Config{}, s, nil)
	transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	answered := make(chan error, 1)
	go func() {
		res, err := (&http.Client{Transport: transport}).Post("https://"+sv.addr+hook(""), "text/plain", strings.NewReader("abc"))
		if err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		answered <- err
	}()
	<-entered
	down := sv.shutdown()
	<-sv.done // it accepts no more
	close(leave)
	if err := <-answered; err != nil {
		t.Errorf("the request that had begun: %v", err)
	}
	if err := <-down; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestShutdownLetsHandsBeShaken(t *testing.T) {
	server, client := authority(t)
	client.ServerName = "127.0.0.1"
	synctest.Test(t, func(t *testing.T) {
		s := new(stub)
		b := inBubble(t, server, ingest.Config{}, s)
		plain, silent := b.dial(), b.dial()
		synctest.Wait() // both are accepted
		down := make(chan struct{})
		go func() {
			defer close(down)
			b.stop()
		}()
		time.Sleep(150 * time.Millisecond) // longer than an idle connection has
		nc := tls.Client(plain.nc, client)
		if _, err := io.WriteString(nc, get(hook(""))); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != http.StatusOK || len(s.all()) != 1 {
			t.Errorf("answered %d, %d arrivals", res.StatusCode, len(s.all()))
		}
		plain.nc.Close()
		silent.end()
		<-down
	})
}

func TestWhoSpeaksHTTPToAnHTTPSPortIsTold(t *testing.T) {
	server, _ := authority(t)
	sv := startOn(t, server, ingest.Config{}, new(stub), nil)
	c := sv.dial()
	c.send(post(hook(""), "abc"))
	if a := c.want(400); !strings.Contains(a.body, "HTTPS") {
		t.Errorf("answered %s", a.body)
	}
	c.wantEnd()
}

func TestAHandshakeThatIsNotFinishedEnds(t *testing.T) {
	server, client := authority(t)
	sv := startOn(t, server, ingest.Config{HeaderTimeout: 50 * time.Millisecond}, new(stub), nil)
	sv.dial().wantEnd()
	other := client.Clone()
	other.NextProtos = []string{"acme-tls/1"}
	asked := server.Clone()
	asked.NextProtos = append(asked.NextProtos, "acme-tls/1")
	sv = startOn(t, asked, ingest.Config{}, new(stub), nil)
	nc, r := sv.dialTLS(other)
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("after the handshake of a challenge: %v, want the end of %v", err, nc.RemoteAddr())
	}
}

func TestReceptionBelowAPath(t *testing.T) {
	public, _ := url.Parse("https://hooks.example/some/path")
	for _, row := range []struct{ name, target, host, path, url string }{
		{"as the sender wrote it", "/some/path" + hook("/x//y?q"), "hooks.example", "/x//y", "/some/path" + hook("/x//y?q")},
		{"cut by a proxy", hook("/x?q"), "hooks.example", "/x", "/some/path" + hook("/x?q")},
		{"past the proxy", hook("/x"), "10.0.0.1:8080", "/x", hook("/x")},
		{"past the proxy with the path", "/some/path" + hook(""), "10.0.0.1:8080", "/", "/some/path" + hook("")},
		{"the path within the path", "/some/path" + hook("/some/path"), "hooks.example", "/some/path", "/some/path" + hook("/some/path")},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := new(stub)
			c := start(t, ingest.Config{PublicURL: public}, s, nil).dial()
			c.send("POST " + row.target + " HTTP/1.1\r\nHost: " + row.host + "\r\nContent-Length: 0\r\n\r\n")
			c.want(200)
			if a := s.one(t); a.Path != row.path || a.Target != row.url {
				t.Errorf("path %s of %s, want %s of %s", a.Path, a.Target, row.path, row.url)
			}
		})
	}
	for _, target := range []string{"/some/pathhooks/" + knownRef, "/other" + hook(""), "/some/path/some/path" + hook(""), "/path" + hook("")} {
		c := start(t, ingest.Config{PublicURL: public}, new(stub), nil).dial()
		c.send(get(target))
		if a := c.want(200); a.body != "GET "+target+" " {
			t.Errorf("%s was answered %s, want it to go to net/http", target, a.body)
		}
	}
	s := new(stub)
	c := start(t, ingest.Config{PublicURL: public}, s, nil).dial()
	c.send(get("/some/path/%68ooks/" + knownRef + "/%2Fx"))
	c.want(200)
	if a := s.one(t); a.Path != "/%2Fx" {
		t.Errorf("an escaped name of reception: path %s", a.Path)
	}
}

func TestWhatIsSentInTheClearBesideTLSIsSaidToBe(t *testing.T) {
	public, _ := url.Parse("https://hooks.example")
	s := new(stub)
	c := start(t, ingest.Config{PublicURL: public, OwnTLS: true}, s, nil).dial()
	c.send("GET " + hook("") + " HTTP/1.1\r\nHost: hooks.example\r\n\r\n")
	c.want(200)
	if a := s.one(t); a.Scheme != "http" {
		t.Errorf("captured as %s", a.Scheme)
	}
}
