//go:build linux

package faults_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// The process is killed while deliveries that failed are put in line again and sent. What was in line is sent, what was
// not is put there by the next call, and each goes once, and once more at most for the kill.
func TestKill9WhileFailedDeliveriesAreSentAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		var mu sync.Mutex
		up, hits := false, map[string]int{}
		target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if !up {
				w.WriteHeader(http.StatusBadRequest) // which is not tried again
				return
			}
			hits[r.Header.Get("X-Service-Original-Request")]++
		}))
		t.Cleanup(target.Close)
		n := s.serve("--outbound-allow", "127.0.0.0/8")
		l := n.endpoint()
		path := "/endpoints/" + l.endpoint + "/forwarding_targets/" + n.forwardTo(l.endpoint, target.URL) + "/resend"
		stand := func() (delivered, failed, pending int) {
			var got struct {
				Data struct {
					Balanced  bool
					Consumers []struct{ Delivered, Failed, Pending int }
				}
			}
			n.api(http.MethodGet, "/endpoints/"+l.endpoint+"/ledger?from=24h", "", &got)
			if len(got.Data.Consumers) != 1 || !got.Data.Balanced {
				t.Fatalf("the ledger: %+v", got.Data)
			}
			c := got.Data.Consumers[0]
			return c.Delivered, c.Failed, c.Pending
		}
		const each = 300 // more than one piece
		all := 0
		for round := range pick(1, 10) {
			mu.Lock()
			up = false
			clear(hits)
			mu.Unlock()
			for range each {
				n.event(l.endpoint)
			}
			all += each
			eventually(t, patience, "all have failed", func() bool { _, failed, _ := stand(); return failed == each })
			mu.Lock()
			up = true
			mu.Unlock()
			called := make(chan struct{})
			go func() {
				defer close(called)
				_, _, _ = n.call(n.token, http.MethodPost, path, "") // the kill may end it
			}()
			<-time.After(between(0, 80*time.Millisecond))
			n.kill()
			<-called
			n.start()
			n.ready(patience)
			var again struct{ Data struct{ Resent int } }
			n.api(http.MethodPost, path, "", &again)
			takenOver(t, takeover+targetTimeout, "all have arrived", func() bool {
				delivered, failed, pending := stand()
				return delivered == all && failed+pending == 0
			})
			mu.Lock()
			twice := 0
			if len(hits) != each {
				t.Errorf("%d of %d were sent", len(hits), each)
			}
			for id, h := range hits {
				if h > 2 {
					t.Errorf("%s was sent %d times", id, h)
				}
				if h == 2 {
					twice++
				}
			}
			mu.Unlock()
			t.Logf("round %d: %d of %d were put in line after the kill, %d were sent twice", round, again.Data.Resent, each, twice)
		}
	})
}
