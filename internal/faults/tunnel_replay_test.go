//go:build linux

package faults_test

import (
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Of two listeners the newer one is at a node that is frozen, and then killed: a replay reaches the older one, at the
// living node, in seconds. None is made twice, also not when the node goes on.
func TestAReplayReachesAListenerAtALivingNode(t *testing.T) {
	beside(t)
	a, b := twoNodes(t)
	l := a.endpoint()
	event := b.event(l.endpoint)
	older, newer := newHandledBy(t, "X-Replay"), newHandledBy(t, "X-Replay")
	b.listen(l.endpoint, older.URL)
	a.listen(l.endpoint, newer.URL)
	var all sync.WaitGroup
	var mu sync.Mutex
	var slowest time.Duration
	number := 0
	replay := func() {
		number++
		n := number
		all.Go(func() {
			began := time.Now()
			status, answer, err := b.call(b.token, http.MethodPost, "/endpoints/"+l.endpoint+"/requests/"+event+"/replay",
				fmt.Sprintf(`{"target_url":"tunnel","overrides":{"headers":{"X-Replay":"%d"}}}`, n))
			if got := older.of(fmt.Sprint(n)) + newer.of(fmt.Sprint(n)); err != nil || status != http.StatusOK || got != 1 {
				t.Errorf("replay %d: %d %s %v, made %d times", n, status, answer, err, got)
			}
			mu.Lock()
			slowest = max(slowest, passed(began, time.Now()))
			mu.Unlock()
		})
	}
	replay()
	all.Wait()
	if newer.of("1") != 1 {
		t.Error("the newest listener is not the one that replays go to")
	}
	for during := range pick(1, 4) {
		a.signal(syscall.SIGSTOP)
		frozen := time.Now()
		for replay(); time.Since(frozen) < time.Duration(during)*13*time.Second; replay() {
			<-time.After(time.Second)
		}
		all.Wait()
		a.signal(syscall.SIGCONT)
		replay()
		all.Wait()
	}
	a.kill()
	replay()
	all.Wait()
	if slowest > 8*time.Second {
		t.Errorf("the slowest replay took %v", slowest)
	}
	for n := range number {
		if got := older.of(fmt.Sprint(n+1)) + newer.of(fmt.Sprint(n+1)); got != 1 {
			t.Errorf("replay %d was made %d times", n+1, got)
		}
	}
	t.Logf("%d replays, each made once; the slowest took %v", number, slowest)
}
