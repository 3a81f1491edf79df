package ingest_test

import (
	"runtime"
	"testing"
	"time"

	"hookglass/internal/ingest"
)

// TestHalfSentHeadsAreCheap holds thousands of connections that have begun a head and say no more: each may
// cost a goroutine and little else, another webhook is served at once, and all are cut off in the end.
func TestHalfSentHeadsAreCheap(t *testing.T) {
	const crowd = 2000
	memory := func() uint64 {
		runtime.GC()
		runtime.GC() // buffers in a pool outlive one
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	s := new(stub)
	sv := start(t, ingest.Config{HeaderTimeout: 2 * time.Second}, s, nil)
	before := memory()
	senders := make([]*sender, crowd)
	for i := range senders {
		senders[i] = sv.dial()
		senders[i].r = nil // a reader of ours would be counted
		senders[i].send("POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nX-Half: ")
	}
	c := sv.dial() // served behind all of them
	c.send(get(hook("")))
	c.want(200)
	each := int64(memory()-before) / crowd
	t.Logf("%d bytes a connection, both ends together", each)
	if each > 12<<10 {
		t.Errorf("a connection with half a head holds %d bytes", each)
	}
	for _, c := range senders {
		if n, _ := c.nc.Read(make([]byte, len("HTTP/1.1 408"))); n != len("HTTP/1.1 408") {
			t.Fatalf("read %d bytes, want the answer", n)
		}
		c.nc.Close()
	}
	if n := len(s.all()); n != 1 {
		t.Errorf("%d arrivals", n)
	}
}
