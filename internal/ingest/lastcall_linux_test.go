package ingest_test

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hookglass/internal/ingest"
)

// Who comes while the server stops is answered or refused: a connection that was made is not reset, since its sender
// could not know whether the request was taken.
func TestNoConnectionIsResetWhenTheServerStops(t *testing.T) {
	s := new(stub)
	ln, err := ingest.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sv := startWith(t, ln, nil, ingest.Config{}, s, nil)
	senders := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var wg sync.WaitGroup
	var answered atomic.Int64
	for range 8 {
		wg.Go(func() {
			for {
				res, err := senders.Get("http://" + sv.addr + hook(""))
				if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && errors.Is(err, syscall.ECONNREFUSED) {
					return
				}
				if err != nil {
					t.Errorf("not refused: %v", err)
					return
				}
				if res.Body.Close(); res.StatusCode != http.StatusOK {
					t.Errorf("answered %d", res.StatusCode)
				}
				answered.Add(1)
			}
		})
	}
	for answered.Load() < 100 && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	if err := <-sv.shutdown(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}
