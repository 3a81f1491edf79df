//go:build linux

package faults_test

import (
	"net/http"
	"testing"
	"time"
)

func TestAFloodOfOneEndpointLeavesAnotherAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s *site) {
		n := s.serve()
		flooded, quiet := n.endpoint(), n.endpoint()
		slow := load{to: []*node{n}, ledger: quiet, conns: 5, rate: 5}.start()
		flood := load{to: []*node{n}, ledger: flooded, conns: pick(400, 2000)}.start()
		<-time.After(pick(time.Second, 30*time.Second))
		eventually(t, patience, "answers to the flood", func() bool { return len(flooded.all()) >= 1000 })
		eventually(t, patience, "answers to the quiet endpoint", func() bool { return quiet.count(http.StatusOK) >= 5 })
		flood.stop()
		slow.stop()
		checkRefusals(t, quiet.all(), 8*time.Second, http.StatusOK)
		checkRefusals(t, flooded.all(), 8*time.Second, http.StatusOK, http.StatusTooManyRequests, http.StatusServiceUnavailable)
		r := quiet.check(t, n)
		if r.acked < 5 {
			t.Errorf("only %d requests to the quiet endpoint: too few to tell", r.acked)
		}
		p99, _ := percentile(quiet.all(), http.StatusOK, 0.99)
		p99Flood, acked := percentile(flooded.all(), http.StatusOK, 0.99)
		_, peak := n.memory()
		t.Logf("quiet: %v, p99 %v; flood: %d sent, %d acknowledged, p99 %v; memory peak %d MB", r, p99, len(flooded.all()), acked, p99Flood, peak>>20)
	})
}
