package outbound_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"testing"

	"hookglass"
	"hookglass/internal/outbound"
)

// BenchmarkDo measures a request of 1.5 KB to a target on loopback that does nothing, and, as what it is compared with,
// the same bytes written to and read from a new connection by hand.
func BenchmarkDo(b *testing.B) {
	s := serve(b, func(c net.Conn) {
		if _, _, err := readRequest(c); err == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		}
	})
	r := outbound.Request{Method: "POST", URL: s.url("/webhooks"), Body: bytes.Repeat([]byte("x"), 1500), Key: "tenant"}
	for range 12 {
		r.Headers = append(r.Headers, hookglass.Header{Name: "X-Some-Header", Value: "some value of a common length"})
	}
	client := local(b)
	b.Run("client", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if resp, err := client.Do(b.Context(), r); err != nil || resp.Status != 200 {
				b.Fatal(resp, err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if resp, err := client.Do(b.Context(), r); err != nil || resp.Status != 200 {
					b.Error(resp, err)
				}
			}
		})
	})
	resp, err := client.Do(b.Context(), r)
	if err != nil {
		b.Fatal(err)
	}
	wire := append(resp.RequestHeaders.AppendWire([]byte("POST /webhooks HTTP/1.1\r\n")), "\r\n"+string(r.Body)...)
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c, err := net.Dial("tcp", s.addr)
			if err != nil {
				b.Fatal(err)
			}
			c.Write(wire)
			if line, err := bufio.NewReader(c).ReadString('\n'); err != nil {
				b.Fatal(line, err)
			}
			c.Close()
		}
	})
}
