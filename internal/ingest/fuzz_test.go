package ingest_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"

	"hookglass/internal/ingest"
)

// FuzzHead compares the head parser with net/http: what both accept they must understand alike, framing above
// all, because on one connection they read what the other left.
func FuzzHead(f *testing.F) {
	for _, text := range []string{
		odd("/a?b"), get(hook("")), get("*"), get("/%zz"),
		"GET " + hook("/%zz?") + " HTTP/1.0\r\nA: b\r\n c\r\n\t\r\n\r\n",
		"POST http://h:1" + hook("") + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nConnection: a, close\r\n\r\nb",
		"POST / HTTP/1.1\r\nHost: x\r\ncontent-length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nTRANSFER-ENCODING: Chunked\r\n\r\n0\r\n\r\n",
		"GET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 007\r\nContent-Length: 007\r\n\r\n",
		"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "\r\nGET / HTTP/1.1\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, n := ingest.ParseHead(text, 256)
		if got == nil {
			return
		}
		compareHead(t, got, text[:n])
	})
}

func compareHead(t *testing.T, got *ingest.ParsedHead, text []byte) {
	t.Helper()
	want, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		return // net/http refuses some targets that can be kept as they are
	}
	if got.Method != want.Method || got.Target != want.RequestURI || got.Proto != want.Proto || got.Host != want.Host && want.URL.Host == "" {
		t.Fatalf("%s %s %s %s, net/http: %s %s %s %s", got.Method, got.Target, got.Proto, got.Host, want.Method, want.RequestURI, want.Proto, want.Host)
	}
	length := want.ContentLength
	if got.Chunked {
		length = max(got.Length, -1)
	}
	if max(got.Length, 0) != max(length, 0) || got.Chunked != (len(want.TransferEncoding) == 1) || got.Close && !want.Close {
		t.Fatalf("length %d, chunked %v, close %v; net/http: %d, %v, %v", got.Length, got.Chunked, got.Close, want.ContentLength, want.TransferEncoding, want.Close)
	}
	values := make(http.Header)
	for _, h := range got.Headers {
		values.Add(h.Name, h.Value)
	}
	for name, v := range want.Header {
		for i := range v {
			v[i] = strings.TrimSpace(v[i]) // net/http leaves a blank behind a line that is folded onto nothing
		}
		if name != "Content-Length" && !slices.Equal(values[name], v) { // net/http drops a repeated length
			t.Fatalf("%s: %q, net/http: %q", name, values[name], v)
		}
	}
}

// FuzzChunked compares the chunk reader with net/http's: what ours accepts has the same data and the same end
// for both, in whatever pieces it comes.
func FuzzChunked(f *testing.F) {
	for _, text := range []string{
		"0\r\n\r\n", "1\r\na\r\n0\r\n\r\nrest", "A;x=\"y\"\r\n0123456789\r\n0;e\r\nX-T: v\r\n\r\n", "1 \r\na\r\n0\r\n\r\n",
		"1\na\n0\n\n", "ffffffffffffffff\r\n", "1\r\nab\r\n", "0\r\n\n", "0\r\nA: b\n\r\n\r\n", "-1\r\n", "1\r\n\r\n\r\n0\r\n\r\n",
	} {
		f.Add([]byte(text), 1)
	}
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		data, trailer, n, done, ok := ingest.DecodeChunks(text, 1<<20)
		if piece > 0 {
			d, tr, m, dn, o := ingest.DecodeChunks(text, piece)
			if !bytes.Equal(d, data) || !bytes.Equal(tr, trailer) || m != n || dn != done || o != ok {
				t.Fatalf("in pieces of %d: %q %q %d %v %v, whole: %q %q %d %v %v", piece, d, tr, m, dn, o, data, trailer, n, done, ok)
			}
		}
		if !done {
			return
		}
		r := bufio.NewReader(bytes.NewReader(text))
		want, err := io.ReadAll(httputil.NewChunkedReader(r))
		if err != nil || !bytes.Equal(data, want) {
			t.Fatalf("data %q, net/http: %q, %v", data, want, err)
		}
		behind, _ := io.ReadAll(r) // net/http reads the trailer section by itself
		if !bytes.Equal(behind, append(slices.Clone(trailer), text[n:]...)) {
			t.Fatalf("behind the data: %q and %q, net/http: %q", trailer, text[n:], behind)
		}
	})
}

// FuzzConnection sends arbitrary bytes to the whole of it: nothing may panic, and it must end.
func FuzzConnection(f *testing.F) {
	for _, text := range []string{
		odd("/1") + post("/api", "A") + odd("/2"), chunkedPost("/api", "1\r\na\r\n0\r\n\r\n") + get(hook("")),
		chunkedPost("/api", "1\r\nab") + get(hook("")), "GET /api HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\n\r\n" + get(hook("")),
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\x02\x00\x01", "\r\n\r\n\n\n" + get("/api") + get("/api"),
		"POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc" + get("/api"),
	} {
		f.Add([]byte(text), 7)
	}
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		var logged syncBuffer
		front := ingest.New(ingest.Config{MaxBodyBytes: 1 << 20}, new(stub), slog.New(slog.NewTextHandler(&logged, nil)))
		ln := make(pipes)
		served := make(chan error, 1)
		rest := &http.Server{Handler: front.Handler(http.HandlerFunc(echo)), ErrorLog: log.New(&logged, "", 0)}
		go func() { served <- front.Serve(ln, nil, rest) }()
		ours, theirs := net.Pipe()
		ln <- theirs
		go io.Copy(io.Discard, ours)
		for len(text) > 0 {
			n := len(text)
			if piece > 0 {
				n = min(n, piece)
			}
			if _, err := ours.Write(text[:n]); err != nil {
				break
			}
			text = text[n:]
		}
		ours.Close()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := front.Shutdown(ctx); err != nil {
			t.Fatalf("shutdown: %v", err)
		}
		if strings.Contains(logged.String(), "panic") {
			t.Fatal(logged.String())
		}
		<-served
	})
}
