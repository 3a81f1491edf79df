package delivery_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// quickSink answers each connection's one request with as little work as can be, and counts.
func quickSink(b *testing.B) (url string, hits *atomic.Int64) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(b, err)
	hits = new(atomic.Int64)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				r, err := http.ReadRequest(bufio.NewReaderSize(c, 1024))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				hits.Add(1)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
			})
		}
	})
	b.Cleanup(func() { l.Close(); serving.Wait() })
	return "http://" + l.Addr().String(), hits
}

// BenchmarkForwarding is the rate at which what waits is delivered to four targets, with captures going on.
func BenchmarkForwarding(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) *store.DB{
		"sqlite":   func(b *testing.B) *store.DB { return storetest.SQLite(b) },
		"postgres": func(b *testing.B) *store.DB { return storetest.Open(b, store.Config{URL: storetest.Postgres(b)}) },
	} {
		b.Run(name, func(b *testing.B) {
			y := newYard(b, open(b))
			url, hits := quickSink(b)
			const targets = 4
			for range targets {
				y.target(y.ep, url, 0)
			}
			var senders sync.WaitGroup
			per := (b.N + targets - 1) / targets
			work := make(chan struct{}, per)
			for range per {
				work <- struct{}{}
			}
			close(work)
			y.start(y.db)
			began := time.Now()
			b.ResetTimer()
			for range 16 {
				senders.Go(func() {
					for range work {
						y.capture(y.ep, "Content-Type: application/json\r\n", `{"amount":100,"currency":"eur"}`)
					}
				})
			}
			senders.Wait()
			captured := time.Since(began)
			until(b, "the last delivery", func() bool { return hits.Load() >= int64(per*targets) })
			b.StopTimer()
			b.ReportMetric(float64(per*targets)/time.Since(began).Seconds(), "deliveries/s")
			b.ReportMetric(float64(per)/captured.Seconds(), "captures/s")
		})
	}
}
