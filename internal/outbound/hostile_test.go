package outbound_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass/internal/outbound"
)

// endless writes until the other side has enough.
func endless(c net.Conn, start, again string) {
	io.WriteString(c, start)
	block := []byte(strings.Repeat(again, max(1, 32<<10/len(again))))
	for {
		if _, err := c.Write(block); err != nil {
			return
		}
	}
}

// slowly writes a byte every now and then.
func slowly(c net.Conn, start, again string) {
	io.WriteString(c, start)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		<-tick.C
		if _, err := c.Write([]byte{again[i%len(again)]}); err != nil {
			return
		}
	}
}

// Whatever a target does, a call ends in its time, with bounded memory and the right word.
func TestHostileTargets(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 32 {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	ok := "HTTP/1.1 200 OK\r\n"
	for _, c := range []struct {
		name   string
		handle func(net.Conn)
		code   outbound.Code // "" for an answer
		body   int           // of the answer
		cut    bool
	}{
		{"accepts and is silent", func(c net.Conn) { io.Copy(io.Discard, c) }, outbound.CodeTimeout, 0, false},
		{"slow status line", func(c net.Conn) { slowly(c, "HTTP/1.1 200 ", "O") }, outbound.CodeTimeout, 0, false},
		{"slow header", func(c net.Conn) { slowly(c, ok, "A") }, outbound.CodeTimeout, 0, false},
		{"slow body", func(c net.Conn) { slowly(c, ok+"\r\n", "x") }, outbound.CodeTimeout, 0, false},
		{"slow chunks", func(c net.Conn) { slowly(c, ok+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n") }, outbound.CodeTimeout, 0, false},
		{"short body", func(c net.Conn) { io.WriteString(c, ok+"Content-Length: 10\r\n\r\nshort"); readRequest(c) }, outbound.CodeReset, 0, false},
		{"body stalls", func(c net.Conn) { io.WriteString(c, ok+"Content-Length: 10\r\n\r\nshort"); io.Copy(io.Discard, c) }, outbound.CodeTimeout, 0, false},
		{"10 GB body", func(c net.Conn) { endless(c, ok+"Content-Length: 10000000000\r\n\r\n", "x") }, "", 1 << 20, true},
		{"endless body", func(c net.Conn) { endless(c, ok+"\r\n", "x") }, "", 1 << 20, true},
		{"a huge length and nothing", func(c net.Conn) {
			io.WriteString(c, ok+"Content-Length: 9223372036854775807\r\n\r\n")
			io.Copy(io.Discard, c)
		}, outbound.CodeTimeout, 0, false},
		{"endless small chunks", func(c net.Conn) {
			endless(c, ok+"Transfer-Encoding: chunked\r\n\r\n", "400\r\n"+strings.Repeat("x", 1024)+"\r\n")
		}, "", 1 << 20, true},
		{"a huge chunk", func(c net.Conn) { endless(c, ok+"Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", "x") }, "", 1 << 20, true},
		{"endless chunk extension", func(c net.Conn) { endless(c, ok+"Transfer-Encoding: chunked\r\n\r\n1;", "x") }, outbound.CodeProtocolError, 0, false},
		{"endless trailers", func(c net.Conn) { endless(c, ok+"Transfer-Encoding: chunked\r\n\r\n0\r\n", "T: x\r\n") }, outbound.CodeResponseTooLarge, 0, false},
		{"endless headers", func(c net.Conn) { endless(c, ok, "A: b\r\n") }, outbound.CodeResponseTooLarge, 0, false},
		{"100 MB of one header", func(c net.Conn) { endless(c, ok+"A: ", "b") }, outbound.CodeResponseTooLarge, 0, false},
		{"endless folded header", func(c net.Conn) { endless(c, ok+"A: b\r\n", " b\r\n") }, outbound.CodeResponseTooLarge, 0, false},
		{"endless status line", func(c net.Conn) { endless(c, "HTTP/1.1 200 ", "O") }, outbound.CodeResponseTooLarge, 0, false},
		{"endless 1xx", func(c net.Conn) { endless(c, "", "HTTP/1.1 100 Continue\r\n\r\n") }, outbound.CodeProtocolError, 0, false},
		{"endless 1xx with headers", func(c net.Conn) {
			endless(c, "", "HTTP/1.1 103 Early Hints\r\nA: "+strings.Repeat("b", 20<<10)+"\r\n\r\n")
		}, outbound.CodeResponseTooLarge, 0, false},
		{"101", func(c net.Conn) { endless(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "\x00") }, outbound.CodeProtocolError, 0, false},
		{"HTTP/0.9", func(c net.Conn) { endless(c, "", "<html>") }, outbound.CodeProtocolError, 0, false},
		{"HTTP/2", func(c net.Conn) { endless(c, "\x00\x00\x12\x04\x00\x00\x00\x00\x00", "\x00") }, outbound.CodeProtocolError, 0, false},
		{"an SSH server", func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n"); io.Copy(io.Discard, c) }, outbound.CodeProtocolError, 0, false},
		{"garbage", func(c net.Conn) { endless(c, "", "\xff\x00\n\r") }, outbound.CodeProtocolError, 0, false},
		{"closes at once", func(c net.Conn) {}, outbound.CodeReset, 0, false},
		{"closes after reading", func(c net.Conn) { readRequest(c) }, outbound.CodeReset, 0, false},
		{"resets", func(c net.Conn) { readRequest(c); c.(*net.TCPConn).SetLinger(0) }, outbound.CodeReset, 0, false},
		{"closes in the head", func(c net.Conn) { readRequest(c); io.WriteString(c, ok+"A: b\r\n") }, outbound.CodeReset, 0, false},
		{"closes in a chunk", func(c net.Conn) { readRequest(c); io.WriteString(c, ok+"Transfer-Encoding: chunked\r\n\r\n5\r\nab") }, outbound.CodeReset, 0, false},
		{"closes before the last chunk", func(c net.Conn) { readRequest(c); io.WriteString(c, ok+"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n") }, outbound.CodeReset, 0, false},
		{"gzip bomb", func(c net.Conn) { readRequest(c); io.WriteString(c, ok+"Content-Encoding: gzip\r\n\r\n"+bomb.String()) }, "", bomb.Len(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.handle)
			client := local(t)
			allowed := 2 * time.Minute
			if c.code == outbound.CodeTimeout {
				allowed = 500 * time.Millisecond
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			resp, err := client.Do(t.Context(), outbound.Request{Method: "GET", URL: s.url("/"), Timeout: allowed, MaxResponseBytes: 1 << 20})
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if took > allowed+time.Minute {
				t.Errorf("took %v", took)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4<<20 {
				t.Errorf("allocated %d KiB, in all", allocated>>10)
			}
			if s.count() != 1 {
				t.Errorf("%d hits", s.count())
			}
			if c.code != "" {
				if f := failure(t, err); f.Code != c.code {
					t.Errorf("%v, want %s", f, c.code)
				}
			} else if err != nil || len(resp.Body) != c.body || resp.Truncated != c.cut {
				t.Errorf("%d bytes, truncated %v, %v", len(resp.Body), resp.Truncated, err)
			}
		})
	}
}

// A target that never reads holds no call beyond its time, though most of the request is still to be written.
func TestATargetThatNeverReads(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // and nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for timeout := 500 * time.Millisecond; ; timeout *= 4 {
		start := time.Now()
		_, err = local(t).Do(t.Context(), outbound.Request{Method: "POST", URL: "http://" + l.Addr().String(), Body: make([]byte, 25<<20), Timeout: timeout})
		f := failure(t, err)
		if f.Sent == outbound.NotSent && timeout < time.Minute {
			continue // a busy machine did not come to send it
		}
		if took := time.Since(start); f.Code != outbound.CodeTimeout || f.Sent != outbound.MaybeSent || took > timeout+time.Minute {
			t.Errorf("%v, %v, after %v", f, f.Sent, took)
		}
		return
	}
}

// Fifty hostile targets at once cost what their bounds allow, and nothing stays behind.
func TestFiftyHostileTargets(t *testing.T) {
	s := serve(t, func(c net.Conn) { endless(c, "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n", "x") })
	c := local(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var calls sync.WaitGroup
	responses := make([]*outbound.Response, 50)
	for i := range responses {
		calls.Go(func() {
			var err error
			if responses[i], err = c.Do(t.Context(), outbound.Request{Method: "GET", URL: s.url("/"), Timeout: 2 * time.Minute, MaxResponseBytes: 256 << 10}); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 50*(256+128)<<10 {
		t.Errorf("%d KiB are held for 50 answers of 256 KiB", held>>10)
	}
	runtime.KeepAlive(responses)
	stacks := make([]byte, 1<<20)
	if stacks = stacks[:runtime.Stack(stacks, true)]; bytes.Contains(stacks, []byte("outbound.(*Client).exchange")) {
		t.Errorf("a goroutine of a call is left:\n%s", stacks)
	}
}

// The bounds of a head at their edges, and what is not HTTP.
func TestHeadsAtTheirBounds(t *testing.T) {
	head := func(lines int) string {
		return "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", lines) + "\r\n"
	}
	sized := func(n int) string {
		s := "HTTP/1.1 200 OK\r\nA: \r\n\r\n"
		return strings.Replace(s, "A: ", "A: "+strings.Repeat("b", n-len(s)), 1)
	}
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct {
		name, wire string
		code       outbound.Code
	}{
		{"256 lines", head(256), ""},
		{"257 lines", head(257), outbound.CodeResponseTooLarge},
		{"64 KiB", sized(64 << 10), ""},
		{"64 KiB and a byte", sized(64<<10 + 1), outbound.CodeResponseTooLarge},
		{"256 lines with trailers", chunked + "0\r\n" + strings.Repeat("T: x\r\n", 255) + "\r\n", ""},
		{"257 lines with trailers", chunked + "0\r\n" + strings.Repeat("T: x\r\n", 256) + "\r\n", outbound.CodeResponseTooLarge},
		{"9 interim", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 9) + head(0), outbound.CodeProtocolError},
		{"chunk line of 256 bytes", chunked + "1;" + strings.Repeat("x", 252) + "\r\na\r\n0\r\n\r\n", ""},
		{"chunk line of 257 bytes", chunked + "1;" + strings.Repeat("x", 253) + "\r\na\r\n0\r\n\r\n", outbound.CodeProtocolError},
		{"no chunk size", chunked + "\r\n", outbound.CodeProtocolError},
		{"only an extension", chunked + ";x\r\n", outbound.CodeProtocolError},
		{"negative chunk size", chunked + "-1\r\n", outbound.CodeProtocolError},
		{"chunk size with 0x", chunked + "0x1\r\na\r\n0\r\n\r\n", outbound.CodeProtocolError},
		{"chunk size with an underscore", chunked + "1_0\r\n", outbound.CodeProtocolError},
		{"chunk size beyond 63 bits", chunked + "8000000000000000\r\n", outbound.CodeProtocolError},
		{"no end of chunk", chunked + "1\r\nab\r\n0\r\n\r\n", outbound.CodeProtocolError},
		{"an end of chunk that never ends", chunked + "1\r\na" + strings.Repeat("x", 8<<10), outbound.CodeProtocolError},
		{"gzip as transfer encoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", outbound.CodeProtocolError},
		{"chunked twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", outbound.CodeProtocolError},
		{"identity as transfer encoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", outbound.CodeProtocolError},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", outbound.CodeProtocolError},
		{"two lengths in one", "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nab", outbound.CodeProtocolError},
		{"none and another length", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 2\r\n\r\nab", outbound.CodeProtocolError},
		{"another protocol, and an answer", "HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", outbound.CodeProtocolError},
		{"negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", outbound.CodeProtocolError},
		{"length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", outbound.CodeProtocolError},
		{"empty length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", outbound.CodeProtocolError},
		{"length beyond 63 bits", "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n", outbound.CodeProtocolError},
		{"HTTP/2.0", "HTTP/2.0 200 OK\r\n\r\n", outbound.CodeProtocolError},
		{"HTTP/1.", "HTTP/1. 200 OK\r\n\r\n", outbound.CodeProtocolError},
		{"HTTP/1.10", "HTTP/1.10 200 OK\r\n\r\n", outbound.CodeProtocolError},
		{"HTTP/1.x", "HTTP/1.x 200 OK\r\n\r\n", outbound.CodeProtocolError},
		{"lower case", "http/1.1 200 OK\r\n\r\n", outbound.CodeProtocolError},
		{"no status", "HTTP/1.1\r\n\r\n", outbound.CodeProtocolError},
		{"status 99", "HTTP/1.1 099 OK\r\n\r\n", outbound.CodeProtocolError},
		{"status 1000", "HTTP/1.1 1000 OK\r\n\r\n", outbound.CodeProtocolError},
		{"status 2e2", "HTTP/1.1 2e2 OK\r\n\r\n", outbound.CodeProtocolError},
		{"status +20", "HTTP/1.1 +20 OK\r\n\r\n", outbound.CodeProtocolError},
		{"two spaces", "HTTP/1.1  200 OK\r\n\r\n", outbound.CodeProtocolError},
		{"header without a colon", "HTTP/1.1 200 OK\r\nnope\r\n\r\n", outbound.CodeProtocolError},
		{"header without a name", "HTTP/1.1 200 OK\r\n: x\r\n\r\n", outbound.CodeProtocolError},
		{"space before the colon", "HTTP/1.1 200 OK\r\nA : x\r\n\r\n", outbound.CodeProtocolError},
		{"space in a name", "HTTP/1.1 200 OK\r\nA B: x\r\n\r\n", outbound.CodeProtocolError},
		{"NUL in a value", "HTTP/1.1 200 OK\r\nA: \x00\r\n\r\n", outbound.CodeProtocolError},
		{"CR in a value", "HTTP/1.1 200 OK\r\nA: a\rb\r\n\r\n", outbound.CodeProtocolError},
		{"CR in a folded value", "HTTP/1.1 200 OK\r\nA: a\r\n b\rc\r\n\r\n", outbound.CodeProtocolError},
		{"folded first line", "HTTP/1.1 200 OK\r\n A: x\r\n\r\n", outbound.CodeProtocolError},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := outbound.ReadAnswer([]byte(c.wire), "GET", 100)
			if c.code == "" && err != nil {
				t.Fatal(err)
			}
			if c.code != "" {
				if f := failure(t, err); f.Code != c.code {
					t.Errorf("%v, want %s", f, c.code)
				}
			}
		})
	}
	// Any prefix of an answer is an answer that broke off, or one that ended.
	whole := "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n c\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: x\r\n\r\n"
	for i := range len(whole) {
		if _, err := outbound.ReadAnswer([]byte(whole[:i]), "GET", 100); err == nil || fmt.Sprint(err) != "EOF" && fmt.Sprint(err) != "unexpected EOF" {
			t.Errorf("after %d bytes: %v", i, err)
		}
	}
}
