//go:build linux

package faults_test

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"hookglass/internal/store/storetest"
)

// onEach runs a test on both databases, in directories of their own.
func onEach(t *testing.T, test func(t *testing.T, s *site)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newSite(t, t.TempDir(), ""))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newSite(t, t.TempDir(), storetest.Postgres(t)))
	})
}

// between is a random time, so that a kill hits any moment.
func between(from, to time.Duration) time.Duration { return from + rand.N(to-from) }

func TestKill9LosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		n := s.serve()
		l := n.endpoint()
		var slowest time.Duration
		rounds := pick(3, 20)
		for range rounds {
			under := load{to: []*node{n}, ledger: l, conns: 16, rate: pick(800, 1500)}.start()
			<-time.After(between(200*time.Millisecond, pick(700*time.Millisecond, 2*time.Second)))
			n.kill()
			under.stop()
			n.start()
			slowest = max(slowest, n.ready(10*time.Second))
			if r := l.check(t, n); t.Failed() {
				t.Fatal(r)
			} else if r.acked == 0 {
				t.Fatal("nothing was acknowledged: nothing was tried")
			}
		}
		if slowest > 3*time.Second { // decisions, section 14, "Operation"
			t.Errorf("ready %v after a kill, the limit is 3s", slowest)
		}
		t.Logf("%d kills: %v; ready at most %v after it listened", rounds, l.check(t, n), slowest)
	})
}

func TestSIGTERMAnswersWhatWasAccepted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		n := s.serve()
		l := n.endpoint()
		for range pick(1, 10) {
			under := load{to: []*node{n}, ledger: l, conns: 16}.start()
			<-time.After(between(300*time.Millisecond, 600*time.Millisecond))
			began := time.Now()
			n.signal(syscall.SIGTERM)
			if code := n.exit(30 * time.Second); code != 0 {
				t.Errorf("exit code %d", code)
			}
			took := time.Since(began)
			under.stop()
			n.start()
			n.ready(10 * time.Second)
			r := l.check(t, n)
			if r.unsure > 0 {
				t.Errorf("%d requests were stored, and their senders not answered", r.unsure)
			}
			t.Logf("ended %v after SIGTERM: %v", took, r)
		}
	})
}
