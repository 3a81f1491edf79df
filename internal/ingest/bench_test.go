package ingest_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"hookglass"
	"hookglass/internal/capture"
	"hookglass/internal/ingest"
)

// githubPush is a request of the size and the header of an ordinary delivery.
func githubPush(path string) []byte {
	body := strings.Repeat(`{"ref":"refs/heads/main","before":"0000"}`, 37)
	return []byte("POST " + path + " HTTP/1.1\r\n" + lines(
		"Host: 127.0.0.1:8080", "Accept: */*", "Content-Type: application/json", "User-Agent: GitHub-Hookshot/2a3b4c5",
		"X-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958", "X-GitHub-Event: push", "X-GitHub-Hook-ID: 292430182",
		"X-GitHub-Hook-Installation-Target-ID: 79929171", "X-GitHub-Hook-Installation-Target-Type: repository",
		"X-Hub-Signature: sha1=7d38cdd689735b008b3c702edd92eea23791c5f6",
		"X-Hub-Signature-256: sha256=d57c68ca6f92289e6987922ff26938930f6e66a2d161ef06abdf1859230aa23c",
		fmt.Sprintf("Content-Length: %d", len(body))) + "\r\n" + body)
}

// load sends the request again and again on many connections. The client costs the same for all that it
// is pointed at: it reads an answer up to its header and skips a body by its length.
func load(b *testing.B, addr string, conns int, request []byte) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(conns / 2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer nc.Close()
		r := bufio.NewReaderSize(nc, 1024)
		for pb.Next() {
			if _, err := nc.Write(request); err != nil {
				b.Error(err)
				return
			}
			length := 0
			for first := true; ; first = false {
				line, err := r.ReadSlice('\n')
				if err != nil || first && string(line[9:12]) != "200" {
					b.Errorf("%q, %v", line, err)
					return
				}
				if len(line) <= 2 {
					break
				}
				if rest, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
					length, _ = strconv.Atoi(string(bytes.TrimSpace(rest)))
				}
			}
			r.Discard(length)
		}
	})
}

func BenchmarkFront(b *testing.B) {
	reply := jsonReply(`{"received":true,"id":"req_01234567890123456789012345"}`)
	s := &stub{capture: func(context.Context, capture.Target, *capture.Arrival) (*hookglass.Reply, error) { return reply, nil }}
	for _, conns := range []int{16, 64, 256} {
		b.Run(fmt.Sprint(conns), func(b *testing.B) {
			sv := start(b, ingest.Config{}, s, nil)
			load(b, sv.addr, conns, githubPush(hook("")))
		})
	}
}

func BenchmarkNetHTTP(b *testing.B) {
	for _, conns := range []int{16, 64, 256} {
		b.Run(fmt.Sprint(conns), func(b *testing.B) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			reply := []byte(`{"received":true,"id":"req_01234567890123456789012345"}`)
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				w.Write(reply)
			})}
			go server.Serve(ln)
			defer server.Close()
			load(b, ln.Addr().String(), conns, githubPush(hook("")))
		})
	}
}
