package delivery_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"hookglass"
)

// A target that closes a connection instead of answering a second request on it costs a delivery one attempt and no
// more: what is tried again, and what cannot be, goes over a connection of its own.
func TestTheLastAttemptHasAConnectionOfItsOwn(t *testing.T) {
	eachYard(t, func(t *testing.T, y *yard) {
		type served struct{}
		target := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Context().Value(served{}).(*atomic.Int64).Add(1) > 1 {
				panic(http.ErrAbortHandler)
			}
		}))
		target.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, served{}, new(atomic.Int64))
		}
		target.Start()
		defer target.Close()
		again, once := y.target(y.ep, target.URL, 1), y.target(y.ep, target.URL, 0)
		const n = 100
		for range n {
			y.capture(y.ep, "", "{}")
		}
		y.start(y.db)
		until(t, "the end of all deliveries", func() bool {
			return len(y.failures()) > 0 || y.settledAll(again, n, hookglass.ForwardDelivered)() && y.settledAll(once, n, hookglass.ForwardDelivered)()
		})
		for _, f := range append(y.deliveries(again), y.deliveries(once)...) {
			if f.State == hookglass.ForwardFailed {
				t.Fatalf("a delivery failed after %s", text(f.Attempts))
			}
		}
	})
}
