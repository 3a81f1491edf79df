package outbound_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hookglass"
	"hookglass/internal/outbound"
)

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"

// What arrives is what was given, byte for byte: order, spelling, duplicates, empty values, bytes that are not UTF-8,
// and nothing added but framing.
func TestHeadersArriveAsGiven(t *testing.T) {
	body := make([]byte, 256)
	for i := range body {
		body[i] = byte(i)
	}
	handle, got := answering(noContent)
	s := serve(t, handle)
	resp, err := local(t).Do(t.Context(), outbound.Request{
		Method: "POST",
		URL:    s.url("/a//b/../c%2Fd?z=1&a=2&z=3&&e"),
		Headers: hookglass.Headers{
			{Name: "x-lower", Value: "1"}, {Name: "X-UPPER", Value: "2"}, {Name: "Accept", Value: "*/*"}, {Name: "x-Dup", Value: "a"}, {Name: "X-dup", Value: "b"},
			{Name: "Content-Type", Value: "application/json"}, {Name: "x-dup", Value: "a"}, {Name: "X-Empty", Value: ""}, {Name: "X-Latin", Value: "caf\xe9"}, {Name: "X-Tab", Value: "a\tb"},
			{Name: "Content-Encoding", Value: "gzip"}, {Name: "X-Long", Value: strings.Repeat("v", 8<<10)},
		},
		Body: body,
	})
	if err != nil {
		t.Fatal(err)
	}
	head, arrived := got()
	want := "POST /a//b/../c%2Fd?z=1&a=2&z=3&&e HTTP/1.1\r\nHost: " + s.addr + "\r\n" +
		"x-lower: 1\r\nX-UPPER: 2\r\nAccept: */*\r\nx-Dup: a\r\nX-dup: b\r\nContent-Type: application/json\r\nx-dup: a\r\nX-Empty: \r\nX-Latin: caf\xe9\r\nX-Tab: a\tb\r\n" +
		"Content-Encoding: gzip\r\nX-Long: " + strings.Repeat("v", 8<<10) + "\r\nContent-Length: 256\r\nConnection: close\r\n\r\n"
	if diff := cmp.Diff(want, head); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(arrived, body) {
		t.Errorf("the body arrived as %q", arrived)
	}
	_, sent, _ := strings.Cut(want, "\r\n")
	if diff := cmp.Diff(sent, string(resp.RequestHeaders.AppendWire(nil))+"\r\n"); diff != "" {
		t.Error("RequestHeaders:", diff)
	}
}

func TestRequestLines(t *testing.T) {
	handle, got := answering(noContent)
	s := serve(t, handle)
	c := local(t)
	for _, r := range []struct{ method, path, line string }{
		{"GET", "", "GET / HTTP/1.1"},
		{"GET", "?", "GET /? HTTP/1.1"},
		{"GET", "/a?", "GET /a? HTTP/1.1"},
		{"GET", "?b=1", "GET /?b=1 HTTP/1.1"},
		{"HEAD", "/a#fragment", "HEAD /a HTTP/1.1"},
		{"get", "/%zz;a=b?%zz", "get /%zz;a=b?%zz HTTP/1.1"},
		{"PURGE", "/é?ü=\xff", "PURGE /%C3%A9?%C3%BC=%FF HTTP/1.1"},
		{"OPTIONS", `/{a}|"b"<c>\^`, `OPTIONS /{a}|"b"<c>\^ HTTP/1.1`},
		{"GET", "//x/http://y", "GET //x/http://y HTTP/1.1"},
	} {
		if _, err := c.Do(t.Context(), outbound.Request{Method: r.method, URL: s.url(r.path)}); err != nil {
			t.Fatal(err)
		}
		head, _ := got()
		if want := r.line + "\r\nHost: " + s.addr + "\r\nConnection: close\r\n\r\n"; head != want {
			t.Errorf("%s %s: %q, want %q", r.method, r.path, head, want)
		}
	}
}

// Content-Length is sent with every body, and without one where a method is expected to have one.
func TestFraming(t *testing.T) {
	handle, got := answering(noContent)
	s := serve(t, handle)
	c := local(t)
	for _, r := range []struct {
		method, body, length string
	}{
		{"GET", "", ""}, {"HEAD", "", ""}, {"DELETE", "", ""}, {"OPTIONS", "", ""},
		{"POST", "", "0"}, {"PUT", "", "0"}, {"PATCH", "", "0"},
		{"GET", "x", "1"}, {"DELETE", "xy", "2"}, {"POST", strings.Repeat("x", 16<<10), "16384"}, {"POST", strings.Repeat("x", 16<<10+1), "16385"}, {"PUT", strings.Repeat("x", 3<<20), "3145728"},
	} {
		if _, err := c.Do(t.Context(), outbound.Request{Method: r.method, URL: s.url("/"), Body: []byte(r.body)}); err != nil {
			t.Fatal(err)
		}
		head, body := got()
		h := hookglass.ParseWire([]byte(head[strings.Index(head, "\r\n")+2:]))
		if string(body) != r.body || h.Get("Content-Length") != r.length || h.Has("Transfer-Encoding") {
			t.Errorf("%s with %d bytes: %q, %d bytes arrived", r.method, len(r.body), head, len(body))
		}
	}
}

func TestSanitize(t *testing.T) {
	in := hookglass.Headers{
		{Name: "HOST", Value: "evil"}, {Name: "Connection", Value: "close, X-Nominated"}, {Name: "connection", Value: " x-second ,, upgrade"}, {Name: "A", Value: "1"}, {Name: "x-nominated", Value: "no"},
		{Name: "X-Second", Value: "no"}, {Name: "Keep-Alive", Value: "timeout=5"}, {Name: "Proxy-Authorization", Value: "secret"}, {Name: "proxy-connection", Value: "x"}, {Name: "Proxy-Authenticate", Value: "x"}, {Name: "Proxy-Whatever", Value: "x"},
		{Name: "TE", Value: "trailers"}, {Name: "Trailer", Value: "X"}, {Name: "Transfer-Encoding", Value: "chunked"}, {Name: "UPGRADE", Value: "websocket"}, {Name: "HTTP2-Settings", Value: "x"},
		{Name: "Content-Length", Value: "999"}, {Name: "content-length", Value: "7"}, {Name: "Expect", Value: "100-continue"}, {Name: "b", Value: "2"}, {Name: "A", Value: "1"}, {Name: "Te-st", Value: "kept"}, {Name: "Via", Value: "kept"},
	}
	before := slices.Clone(in)
	want := hookglass.Headers{{Name: "A", Value: "1"}, {Name: "b", Value: "2"}, {Name: "A", Value: "1"}, {Name: "Te-st", Value: "kept"}, {Name: "Via", Value: "kept"}}
	if diff := cmp.Diff(want, outbound.Sanitize(in)); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(in, before) {
		t.Error("Sanitize changed what it was given")
	}

	// Do applies it, so that lies about framing never reach a target.
	handle, got := answering(noContent)
	s := serve(t, handle)
	if _, err := local(t).Do(t.Context(), outbound.Request{Method: "POST", URL: s.url("/"), Headers: in, Body: []byte("abc")}); err != nil {
		t.Fatal(err)
	}
	head, body := got()
	if want := "POST / HTTP/1.1\r\nHost: " + s.addr + "\r\nA: 1\r\nb: 2\r\nA: 1\r\nTe-st: kept\r\nVia: kept\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"; head != want || string(body) != "abc" {
		t.Errorf("%q, %q", head, body)
	}
}

func TestRequestsThatCanNotBeSent(t *testing.T) {
	c := outbound.New(outbound.Config{Resolver: noResolver{t}})
	c.OnConnect(noConnect(t))
	for _, r := range []outbound.Request{
		{Method: ""}, {Method: "CONNECT"}, {Method: "G T"}, {Method: "GET\r\n"}, {Method: "GET / HTTP/1.1\r\nX:"},
		{Method: "GET", Headers: hookglass.Headers{{Name: "", Value: "x"}}},
		{Method: "GET", Headers: hookglass.Headers{{Name: "A B", Value: "x"}}},
		{Method: "GET", Headers: hookglass.Headers{{Name: "A:", Value: "x"}}},
		{Method: "GET", Headers: hookglass.Headers{{Name: "A\r\nB", Value: "x"}}},
		{Method: "GET", Headers: hookglass.Headers{{Name: "A", Value: "x\r\nB: y"}}},
		{Method: "GET", Headers: hookglass.Headers{{Name: "A", Value: "x\nB"}}},
		{Method: "GET", Headers: hookglass.Headers{{Name: "A", Value: "x\x00"}}},
		{Method: "GET", Headers: hookglass.Headers{{Name: "A", Value: "secret\x7f"}}},
	} {
		r.URL = "http://example.com/"
		_, err := c.Do(t.Context(), r)
		if f := failure(t, err); f.Code != outbound.CodeInvalidRequest || f.Sent != outbound.NotSent || !hookglass.Is(err, hookglass.CodeValidationFailed) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestAnswers(t *testing.T) {
	h := func(pairs ...string) (h hookglass.Headers) {
		for i := 0; i < len(pairs); i += 2 {
			h = append(h, hookglass.Header{Name: pairs[i], Value: pairs[i+1]})
		}
		return h
	}
	for _, c := range []struct {
		name, method, wire string
		want               outbound.Response
	}{
		{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", outbound.Response{Status: 200, Headers: h("Content-Length", "5"), Body: []byte("hello")}},
		{"order, spelling, duplicates", "GET", "HTTP/1.1 200 OK\r\nb: 1\r\nB:2\r\na: \t x \r\nSet-Cookie: a\r\nset-cookie: b\r\nE:\r\nL: caf\xe9\r\nContent-Length: 0\r\n\r\n", outbound.Response{Status: 200, Headers: h("b", "1", "B", "2", "a", "x", "Set-Cookie", "a", "set-cookie", "b", "E", "", "L", "caf\xe9", "Content-Length", "0")}},
		{"read to the end", "GET", "HTTP/1.1 200 OK\r\n\r\nuntil the end", outbound.Response{Status: 200, Body: []byte("until the end")}},
		{"HTTP/1.0, no reason", "GET", "HTTP/1.0 200\r\n\r\nx", outbound.Response{Status: 200, Proto: "HTTP/1.0", Body: []byte("x")}},
		{"LF alone", "GET", "HTTP/1.1 200 OK\nA: 1\n\nx", outbound.Response{Status: 200, Headers: h("A", "1"), Body: []byte("x")}},
		{"folded", "GET", "HTTP/1.1 200 OK\r\nA: 1\r\n  2\r\n\t3\r\n\r\n", outbound.Response{Status: 200, Headers: h("A", "1 2 3")}},
		{"chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;ext=\"a\"\r\n \r\n05 \r\nworld\r\n0\r\nTrailer: x\r\n\r\n", outbound.Response{Status: 200, Headers: h("Transfer-Encoding", "chunked"), Body: []byte("hello world")}},
		{"chunked stands above length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: CHUNKED\r\n\r\na\r\n0123456789\r\n0\r\n\r\n", outbound.Response{Status: 200, Headers: h("Content-Length", "3", "Transfer-Encoding", "CHUNKED"), Body: []byte("0123456789")}},
		{"the same length twice", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nab", outbound.Response{Status: 200, Headers: h("Content-Length", "2, 2", "Content-Length", "2"), Body: []byte("ab")}},
		{"more than its length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 500 Other\r\n\r\n", outbound.Response{Status: 200, Headers: h("Content-Length", "2"), Body: []byte("ab")}},
		{"interim", "GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", outbound.Response{Status: 201, Headers: h("Content-Length", "0")}},
		{"8 interim", "GET", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 8) + "HTTP/1.1 200 OK\r\n\r\n", outbound.Response{Status: 200}},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", outbound.Response{Status: 200, Headers: h("Content-Length", "1000")}},
		{"204", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc", outbound.Response{Status: 204, Headers: h("Content-Length", "3")}},
		{"304", "GET", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", outbound.Response{Status: 304, Headers: h("Transfer-Encoding", "chunked")}},
		{"500", "GET", "HTTP/1.1 500 Oh no\r\nContent-Length: 2\r\n\r\nno", outbound.Response{Status: 500, Headers: h("Content-Length", "2"), Body: []byte("no")}},
		{"999", "GET", "HTTP/1.1 999 Request denied\r\nContent-Length: 0\r\n\r\n", outbound.Response{Status: 999, Headers: h("Content-Length", "0")}},
		{"at the bound by length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n0123456789abcdef", outbound.Response{Status: 200, Headers: h("Content-Length", "16"), Body: []byte("0123456789abcdef")}},
		{"above it", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n0123456789abcdefg", outbound.Response{Status: 200, Headers: h("Content-Length", "17"), Body: []byte("0123456789abcdef"), Truncated: true}},
		{"at the bound by end", "GET", "HTTP/1.1 200 OK\r\n\r\n0123456789abcdef", outbound.Response{Status: 200, Body: []byte("0123456789abcdef")}},
		{"above it", "GET", "HTTP/1.1 200 OK\r\n\r\n0123456789abcdefg", outbound.Response{Status: 200, Body: []byte("0123456789abcdef"), Truncated: true}},
		{"at the bound by chunks", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n8\r\n89abcdef\r\n0\r\n\r\n", outbound.Response{Status: 200, Headers: h("Transfer-Encoding", "chunked"), Body: []byte("0123456789abcdef")}},
		{"above it", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n9\r\n89abcdefg\r\n0\r\n\r\n", outbound.Response{Status: 200, Headers: h("Transfer-Encoding", "chunked"), Body: []byte("0123456789abcdef"), Truncated: true}},
		{"above it by a chunk", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n1\r\ng\r\n0\r\n\r\n", outbound.Response{Status: 200, Headers: h("Transfer-Encoding", "chunked"), Body: []byte("0123456789abcdef"), Truncated: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			handle, _ := answering(c.wire)
			got, err := local(t).Do(t.Context(), outbound.Request{Method: c.method, URL: serve(t, handle).url("/"), MaxResponseBytes: 16})
			if err != nil {
				t.Fatal(err)
			}
			if c.want.Proto == "" {
				c.want.Proto = "HTTP/1.1"
			}
			if got.Duration <= 0 {
				t.Error("no duration")
			}
			got.Duration, got.RequestHeaders = 0, nil
			if len(got.Body) == 0 {
				got.Body = nil
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A redirect is a result. Nothing follows it, and credentials go nowhere else.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := serve(t, func(net.Conn) {})
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{other.url("/"), "http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "//" + other.addr} {
			handle, _ := answering(fmt.Sprintf("HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", status, location))
			s := serve(t, handle)
			resp, err := local(t).Do(t.Context(), outbound.Request{Method: "POST", URL: s.url("/"), Headers: hookglass.Headers{{Name: "Authorization", Value: "Bearer x"}}, Body: []byte("x")})
			if err != nil || resp.Status != status || resp.Headers.Get("Location") != location || s.count() != 1 {
				t.Errorf("%d %s: %+v, %v, %d hits", status, location, resp, err, s.count())
			}
		}
	}
	if other.count() != 0 {
		t.Error("a redirect was followed")
	}
}

func TestNoProxyIsAsked(t *testing.T) {
	proxy := serve(t, func(net.Conn) {})
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, "http://"+proxy.addr)
	}
	t.Setenv("NO_PROXY", "")
	handle, got := answering(noContent)
	s := serve(t, handle)
	c := local(t)
	if _, err := c.Do(t.Context(), outbound.Request{Method: "GET", URL: s.url("/x")}); err != nil {
		t.Fatal(err)
	}
	if head, _ := got(); !strings.HasPrefix(head, "GET /x HTTP/1.1\r\n") {
		t.Error(head)
	}
	if _, err := c.Do(t.Context(), outbound.Request{Method: "GET", URL: "http://169.254.169.254/"}); failure(t, err).Code != outbound.CodeTargetNotAllowed {
		t.Error(err)
	}
	if proxy.count() != 0 {
		t.Error("the proxy of the environment was asked")
	}
}

func TestNothingIsDecompressed(t *testing.T) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write(make([]byte, 10<<20))
	w.Close()
	handle, got := answering("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + zipped.String())
	resp, err := local(t).Do(t.Context(), outbound.Request{Method: "GET", URL: serve(t, handle).url("/")})
	if err != nil || !bytes.Equal(resp.Body, zipped.Bytes()) || resp.Truncated {
		t.Fatal(resp, err)
	}
	if head, _ := got(); strings.Contains(head, "Accept-Encoding") || strings.Contains(head, "User-Agent") {
		t.Error(head)
	}
}

// A connection that dies is a failure, never a second request; not even one that net/http would call safe to repeat.
func TestADeadConnectionIsHitOnce(t *testing.T) {
	for _, r := range []outbound.Request{
		{Method: "GET"},
		{Method: "POST", Body: []byte("x"), Headers: hookglass.Headers{{Name: "Idempotency-Key", Value: "k"}, {Name: "X-Idempotency-Key", Value: "k"}}},
	} {
		s := serve(t, func(c net.Conn) { readRequest(c) })
		r.URL = s.url("/")
		_, err := local(t).Do(t.Context(), r)
		if f := failure(t, err); f.Code != outbound.CodeReset || f.Sent != outbound.MaybeSent || s.count() != 1 {
			t.Errorf("%v, %v, %d hits", f, f.Sent, s.count())
		}
	}
}

// A target may answer before it has read everything. If it reads on, it gets everything; if not, its answer counts all
// the same.
func TestAnEarlyAnswerCounts(t *testing.T) {
	const size = 8 << 20 // more than a connection holds
	got := make(chan int64, 2)
	for _, reads := range []bool{true, false} {
		s := serve(t, func(c net.Conn) {
			io.ReadFull(c, make([]byte, 10))
			io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!")
			if reads {
				n, _ := io.Copy(io.Discard, c)
				got <- n + 10
			}
		})
		resp, err := local(t).Do(t.Context(), outbound.Request{Method: "POST", URL: s.url("/"), Body: make([]byte, size)})
		if reads {
			if n := <-got; n < size {
				t.Errorf("%d bytes arrived", n)
			}
			if err != nil || resp.Status != 413 || string(resp.Body) != "no!" {
				t.Error(resp, err)
			}
			continue
		}
		// A connection that is reset may lose the answer on its way; it is then a failure that may have arrived.
		if err == nil && resp.Status != 413 || err != nil && failure(t, err).Sent != outbound.MaybeSent {
			t.Error(resp, err)
		}
	}
}

// Sent tells a request that cannot have arrived from one that may have.
func TestSentStates(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	silence := serve(t, func(c net.Conn) { c.Read(make([]byte, 1)); io.Copy(io.Discard, c) })
	nothing := outbound.New(outbound.Config{Resolver: answers(nil)})
	stuck := outbound.New(outbound.Config{Resolver: resolverFunc(func(ctx context.Context, _ string) ([]netip.Addr, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})})
	for _, c := range []struct {
		name   string
		client *outbound.Client
		ctx    context.Context
		r      outbound.Request
		code   outbound.Code
		sent   outbound.SentState
	}{
		{"refused", local(t), t.Context(), outbound.Request{URL: "http://127.0.0.1:1"}, outbound.CodeConnectionRefused, outbound.NotSent},
		{"no such name", nothing, t.Context(), outbound.Request{URL: "http://example.com/"}, outbound.CodeDNSError, outbound.NotSent},
		{"DNS takes all the time", stuck, t.Context(), outbound.Request{URL: "http://example.com/", Timeout: 20 * time.Millisecond}, outbound.CodeTimeout, outbound.NotSent},
		{"canceled before", local(t), canceled, outbound.Request{URL: silence.url("/")}, outbound.CodeCanceled, outbound.NotSent},
		{"silence", local(t), t.Context(), outbound.Request{URL: silence.url("/"), Timeout: 100 * time.Millisecond}, outbound.CodeTimeout, outbound.MaybeSent},
		{"silence in the handshake", local(t), t.Context(), outbound.Request{URL: "https://" + silence.addr, Timeout: 50 * time.Millisecond}, outbound.CodeTimeout, outbound.NotSent},
		{"garbage", local(t), t.Context(), outbound.Request{URL: serve(t, func(c net.Conn) { readRequest(c); io.WriteString(c, "220 smtp.example.com ESMTP\r\n") }).url("/")}, outbound.CodeProtocolError, outbound.MaybeSent},
	} {
		c.r.Method = "GET"
		_, err := c.client.Do(c.ctx, c.r)
		for c.sent == outbound.MaybeSent && c.r.Timeout > 0 && c.r.Timeout < time.Minute && failure(t, err).Sent == outbound.NotSent {
			c.r.Timeout *= 4 // a busy machine did not come to send it
			_, err = c.client.Do(c.ctx, c.r)
		}
		if f := failure(t, err); f.Code != c.code || f.Sent != c.sent || strings.Contains(f.Error(), "127.0.0.1") {
			t.Errorf("%s: %v, %v; want %s, %v", c.name, f, f.Sent, c.code, c.sent)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	holding := serve(t, func(c net.Conn) { readRequest(c); cancel(); io.Copy(io.Discard, c) })
	_, err := local(t).Do(ctx, outbound.Request{Method: "GET", URL: holding.url("/")})
	if f := failure(t, err); f.Code != outbound.CodeCanceled || f.Sent != outbound.MaybeSent {
		t.Errorf("canceled while the target held it: %v, %v", f, f.Sent)
	}
}

func TestDialContext(t *testing.T) {
	s := serve(t, func(c net.Conn) { io.WriteString(c, "220 hello\r\n") })
	_, port, _ := net.SplitHostPort(s.addr)
	c := outbound.New(outbound.Config{Allow: rules(t, "127.0.0.1"), Resolver: answers{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("127.0.0.1")}})
	for _, a := range []string{s.addr, "localhost:" + port, "mail.example.com:" + port} {
		conn, err := c.DialContext(t.Context(), "tcp", a)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(conn); err != nil || string(b) != "220 hello\r\n" {
			t.Errorf("%s: %q, %v", a, b, err)
		}
		conn.Close()
	}
	before := s.count()
	for _, a := range []string{"127.0.0.2:" + port, "[::1]:" + port, "169.254.169.254:25", "0:" + port, "[::ffff:10.0.0.1]:25", "[fe80::1%lo]:25"} {
		if _, err := c.DialContext(t.Context(), "tcp", a); !hookglass.Is(err, hookglass.CodeTargetNotAllowed) {
			t.Errorf("%s: %v", a, err)
		}
	}
	for _, a := range []string{"", "example.com", "example.com:smtp", "example.com:0", "127.1:" + port, ":25"} {
		if _, err := c.DialContext(t.Context(), "tcp", a); !hookglass.Is(err, hookglass.CodeValidationFailed) {
			t.Errorf("%q: %v", a, err)
		}
	}
	if _, err := c.DialContext(t.Context(), "udp", s.addr); !hookglass.Is(err, hookglass.CodeValidationFailed) {
		t.Errorf("udp: %v", err)
	}
	if _, err := c.DialContext(t.Context(), "tcp6", "mail.example.com:25"); !hookglass.Is(err, hookglass.CodeTargetNotAllowed) {
		t.Errorf("tcp6: %v", err)
	}
	if s.count() != before {
		t.Error("a refused address was reached")
	}
	// Ports that HTTP is kept from are open to the protocol that they are for.
	c = outbound.New(outbound.Config{})
	var to netip.AddrPort
	c.OnConnect(func(_ context.Context, at netip.AddrPort) (net.Conn, error) { to = at; return nil, io.EOF })
	if _, err := c.DialContext(t.Context(), "tcp4", "8.8.8.8:25"); failure(t, err).Code != outbound.CodeConnectionRefused || to.String() != "8.8.8.8:25" {
		t.Errorf("%v, %v", to, err)
	}
}
