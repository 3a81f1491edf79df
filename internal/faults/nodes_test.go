//go:build linux

package faults_test

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// twoNodes are two processes on one PostgreSQL.
func twoNodes(t *testing.T) (a, b *node) {
	t.Helper()
	s := postgresSite(t)
	return s.serve(), s.serve()
}

func TestTwoNodesShowTheSameEventsInTheSameOrder(t *testing.T) {
	beside(t)
	a, b := twoNodes(t)
	l := a.endpoint()
	onA, onB := a.follow(l.endpoint), b.follow(l.endpoint)
	load{to: []*node{a, b}, ledger: l, conns: 16, rate: 600}.during(pick(time.Second, 20*time.Second))
	r := l.check(t, a)
	l.check(t, b)
	checkRefusals(t, l.all(), 8*time.Second, http.StatusOK)
	fromA, _ := a.list(l.endpoint)
	fromB, _ := b.list(l.endpoint)
	if !slices.Equal(fromA, fromB) {
		t.Error("the nodes list the events differently")
	}
	slices.Reverse(fromA)
	want := make([]string, len(fromA))
	for i, e := range fromA {
		want[i] = e.ID
	}
	for name, f := range map[string]*following{"a": onA, "b": onB} {
		eventually(t, patience, "the whole stream of node "+name, func() bool { return len(f.seen()) >= len(want) })
		for i, id := range f.seen() {
			if i >= len(want) || id != want[i] {
				t.Errorf("the stream of node %s has %d events and the list %d; number %d is %s in the stream (number %d of the list)",
					name, len(f.seen()), len(want), i, id, slices.Index(want, id))
				break
			}
		}
	}
	t.Logf("%v; both streams had all in the order of the list", r)
}

func TestANodeThatIsKilledTakesNothingAcknowledgedAlong(t *testing.T) {
	beside(t)
	a, b := twoNodes(t)
	l := a.endpoint()
	for range pick(1, 10) {
		onB := b.follow(l.endpoint)
		before, _ := b.list(l.endpoint)
		toA := load{to: []*node{a}, ledger: l, conns: 8, rate: 300}.start()
		toB := load{to: []*node{b}, ledger: l, conns: 8, rate: 300}.start()
		<-time.After(between(300*time.Millisecond, 800*time.Millisecond))
		a.kill()
		killed := time.Now()
		toA.stop()
		<-time.After(500 * time.Millisecond)
		l.since(t, killed, 1)
		toB.stop()
		r := l.check(t, b)
		afterKill := 0
		for _, x := range l.all() {
			if x.status != 0 && x.status != http.StatusOK {
				t.Errorf("request %d was answered %d", x.number, x.status)
			}
			if x.begun.After(killed) && x.status == http.StatusOK {
				afterKill++
			}
		}
		if afterKill == 0 {
			t.Error("the other node captured nothing after the kill")
		}
		eventually(t, patience, "the stream of the other node", func() bool { return len(onB.seen()) >= r.stored-len(before) })
		t.Logf("%v; %d on the other node after the kill", r, afterKill)
		a.start()
		a.ready(patience)
	}
}

// A node that is frozen, as by a machine that swaps or a paused container, may hold what its transaction has locked.
func TestAFrozenNodeDoesNotHoldUpTheOther(t *testing.T) {
	beside(t)
	a, b := twoNodes(t)
	l := a.endpoint()
	toB := &ledger{endpoint: l.endpoint}
	var slowest time.Duration
	for range pick(4, 40) {
		// As many as there are, so that a group is always on its way when it freezes.
		onA := load{to: []*node{a}, ledger: l, conns: 16}.start()
		onB := load{to: []*node{b}, ledger: toB, conns: 4, rate: 100}.start()
		<-time.After(between(100*time.Millisecond, 300*time.Millisecond))
		a.signal(syscall.SIGSTOP)
		<-time.After(pick(500*time.Millisecond, time.Second))
		onB.stop()
		a.signal(syscall.SIGCONT)
		onA.stop()
	}
	checkRefusals(t, l.all(), 8*time.Second, http.StatusOK)
	checkRefusals(t, toB.all(), 8*time.Second, http.StatusOK)
	for _, x := range toB.all() {
		slowest = max(slowest, x.took())
	}
	t.Logf("%d captured by the node that froze, %d by the other, the slowest after %v", len(l.all()), len(toB.all()), slowest)
}

func TestAnEndpointDeletedOnOneNodeIsGoneOnAll(t *testing.T) {
	beside(t)
	a, b := twoNodes(t)
	var gone, stored int
	for range pick(3, 30) {
		l := a.endpoint()
		under := load{to: []*node{a, b}, ledger: l, conns: 8, rate: 300}.start()
		<-time.After(between(100*time.Millisecond, 300*time.Millisecond))
		eventually(t, patience, "captures", func() bool { return l.count(http.StatusOK) > 0 })
		a.api(http.MethodDelete, "/endpoints/"+l.endpoint, "", nil)
		deleted := time.Now()
		<-time.After(200 * time.Millisecond)
		l.since(t, deleted, 1)
		under.stop()
		for _, x := range l.all() {
			if x.begun.After(deleted) {
				gone++
				if x.status != http.StatusNotFound {
					t.Errorf("%v after the deletion was answered a request was answered %d (%v)", x.begun.Sub(deleted), x.status, x.err)
				}
			} else if x.status == http.StatusOK {
				stored++
			}
		}
		checkRefusals(t, l.all(), 8*time.Second, http.StatusOK, http.StatusNotFound)
		for _, n := range []*node{a, b} {
			if status, _, err := n.call(n.token, http.MethodGet, "/endpoints/"+l.endpoint, ""); err != nil || status != http.StatusNotFound {
				t.Errorf("the endpoint is read as %d %v", status, err)
			}
		}
	}
	if gone == 0 || stored == 0 {
		t.Errorf("%d requests before and %d after the deletions: too few to tell", stored, gone)
	}
	t.Logf("%d stored before a deletion, %d not found after it", stored, gone)
}

// following is a stream of events that is being read.
type following struct {
	mu  sync.Mutex
	ids []string
}

func (f *following) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ids)
}

// follow opens the stream of an endpoint and reads it until the test ends or the node does.
func (n *node) follow(endpoint string) *following {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, fmt.Sprintf("http://%s/api/v1/endpoints/%s/stream", n.addr, endpoint), nil)
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+n.token)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		n.t.Fatalf("stream: %s", resp.Status)
	}
	f := &following{}
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() { // it says something at once, from where on it follows
		n.t.Fatal("the stream ended at once")
	}
	go func() {
		defer resp.Body.Close()
		id := ""
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = text
			} else if strings.HasPrefix(lines.Text(), "data: ") { // an id without data only tells the place
				f.mu.Lock()
				f.ids = append(f.ids, id)
				f.mu.Unlock()
			}
		}
	}()
	return f
}
