package outbound_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"hookglass/internal/outbound"
)

// No spelling whose check passes reaches an address that is not public, even by a resolver as generous as the C
// library's; and the host that is asked for or dialled is the one that net/url reads.
func FuzzNoSpellingGetsInside(f *testing.F) {
	for _, u := range allForbiddenURLs() {
		f.Add(u)
	}
	for _, u := range []string{"http://example.com/", "https://8.8.8.8:8443/a?b", "http://[2606:4700::1111]/", "http://bücher.example./", "http://1.2.3.4.example/", "http://a_b-c/"} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		asked, reached := "", netip.AddrPort{}
		c := outbound.New(outbound.Config{Resolver: resolverFunc(func(_ context.Context, host string) ([]netip.Addr, error) {
			asked = host
			if a, ok := generous(host); ok {
				return answers{a}, nil
			}
			return addrs("8.8.8.8"), nil
		})})
		c.OnConnect(func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
			reached = to
			return nil, syscall.ECONNREFUSED
		})
		checked := c.Check("url", raw)
		_, err := c.Do(t.Context(), outbound.Request{Method: "GET", URL: raw})
		if (checked == nil) != (failure(t, err).Code == outbound.CodeConnectionRefused) {
			t.Fatalf("%q: Check says %v, Do says %v", raw, checked, err)
		}
		if checked != nil {
			if reached.IsValid() {
				t.Fatalf("%q: refused, and dialled %s", raw, reached)
			}
			return
		}
		if a := reached.Addr(); a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() || a.Is4In6() || !a.IsValid() {
			t.Fatalf("%q: dialled %s", raw, reached)
		}
		if a, ok := generous(asked); ok && asked != "" {
			t.Fatalf("%q: asked for %q, which some read as %s", raw, asked, a)
		}
		authority, _, _ := strings.Cut(raw[strings.Index(raw, "://")+3:], "#")
		if i := strings.IndexAny(authority, "/?"); i >= 0 {
			authority = authority[:i]
		}
		u, err := url.Parse("http://" + authority)
		if err != nil {
			t.Fatalf("%q: passes, and net/url says %v", raw, err)
		}
		switch host := u.Hostname(); {
		case !isASCII(host):
		case asked != "" && asked != strings.ToLower(host):
			t.Fatalf("%q: asked for %q, and net/url reads %q", raw, asked, host)
		case asked == "" && netip.MustParseAddr(host).Unmap() != reached.Addr():
			t.Fatalf("%q: dialled %s, and net/url reads %q", raw, reached, host)
		}
		if u.User != nil {
			t.Fatalf("%q passes with a user", raw)
		}
	})
}

func isASCII(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0 }

// generous reads a name as a resolver might that takes numbers in many forms.
func generous(host string) (netip.Addr, bool) {
	host = strings.ToLower(strings.TrimRight(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return netip.IPv6Loopback(), true
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return a, true
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true // or whatever it comes to
	}
	return netip.Addr{}, false
}

// Whatever a target answers is read within its bounds, and as net/http reads it where both do.
func FuzzAnswer(f *testing.F) {
	for _, wire := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.0 404 Not Found\r\n\r\nbody", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nA: b\r\n c\r\n\r\n", "HTTP/1.1 200\n\n", "HTTP/1.1 101 Switching\r\n\r\n", "SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na",
	} {
		f.Add([]byte(wire), false)
		f.Add([]byte(wire), true)
	}
	f.Fuzz(func(t *testing.T, wire []byte, head bool) {
		const maxBody = 64
		method := "GET"
		if head {
			method = "HEAD"
		}
		got, err := outbound.ReadAnswer(wire, method, maxBody)
		if err != nil {
			var failed *outbound.Failure
			if !errors.As(err, &failed) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if got.Status < 200 || got.Status > 999 || len(got.Body) > maxBody || got.Truncated && len(got.Body) != maxBody || len(got.Headers) > 256 {
			t.Fatalf("out of bounds: %+v", got)
		}
		for _, h := range got.Headers {
			if h.Name == "" || strings.ContainsAny(h.Name, " \r\n:") || strings.ContainsAny(h.Value, "\r\n\x00") {
				t.Fatalf("header %q: %q", h.Name, h.Value)
			}
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(wire)), &http.Request{Method: method})
		if err != nil || resp.StatusCode < 200 || resp.ProtoMinor == 0 && got.Headers.Has("Transfer-Encoding") {
			return
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
		if err != nil {
			return
		}
		if resp.StatusCode != got.Status || !bytes.Equal(body, got.Body) {
			t.Fatalf("%d %q, and net/http reads %d %q", got.Status, got.Body, resp.StatusCode, body)
		}
	})
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "10.1.2.3:9000-9010", "[fd00::1]:443", "fd00::/8:1", "::1", "", "[", ":", "/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := outbound.ParseRule(s)
		if err != nil {
			return
		}
		if again, err := outbound.ParseRule(r.String()); err != nil || again != r {
			t.Fatalf("%q reads as %s, which reads as %v, %v", s, r, again, err)
		}
	})
}
