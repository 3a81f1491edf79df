package ingest_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"runtime"
	"syscall"
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
	ending.Wait() // what they give back would be counted
	before := memory()
	senders := make([]*sender, crowd)
	for i := range senders {
		senders[i] = sv.dial()
		senders[i].r = nil // a reader of ours would be counted
		senders[i].send("POST " + hook("") + " HTTP/1.1\r\nHost: x\r\nX-Half: ")
	}
	for { // served behind all of them
		c := sv.dial()
		c.send(get(hook("")))
		if res, err := http.ReadResponse(c.r, nil); err == nil {
			if res.StatusCode != 200 {
				t.Errorf("answered %d", res.StatusCode)
			}
			break
		} else if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(err)
		} // the process stood still for the time that a head has
	}
	each := int64(memory()-before) / crowd
	t.Logf("%d bytes a connection, both ends together", each)
	if each > 12<<10 {
		t.Errorf("a connection with half a head holds %d bytes", each)
	}
	told := 0
	for _, c := range senders {
		answer := make([]byte, len("HTTP/1.1 408"))
		n, err := c.nc.Read(answer)
		switch {
		case string(answer) == "HTTP/1.1 408":
			told++
		case n > 0 || errors.Is(err, os.ErrDeadlineExceeded):
			t.Fatalf("read %q, %v, want the answer", answer[:n], err)
		} // else the process stood still before its first byte was read
		c.nc.Close()
	}
	if told < crowd/2 {
		t.Errorf("%d of %d were answered", told, crowd)
	}
	if n := len(s.all()); n != 1 {
		t.Errorf("%d arrivals", n)
	}
}
