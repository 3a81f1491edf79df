//go:build linux

package faults_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// repeated is a target of webhooks that come again. It counts by their ids those that it answered, and those whose
// sender was gone before the answer.
type repeated struct {
	*httptest.Server
	mu       sync.Mutex
	held     chan struct{} // requests wait until it is closed
	got      map[string]int
	asked    int
	lost     int
	slowness time.Duration
}

func newRepeated(t *testing.T) *repeated {
	p := &repeated{got: map[string]int{}, held: make(chan struct{})}
	p.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not see that the sender goes
		p.mu.Lock()
		held, slowness := p.held, p.slowness
		p.asked++
		p.mu.Unlock()
		select {
		case <-held:
			<-time.After(between(0, slowness+1))
		case <-r.Context().Done():
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if r.Context().Err() != nil {
			p.lost++
			return
		}
		p.got[r.Header.Get("X-Id")]++
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *repeated) counts() (asked, lost int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked, p.lost
}

// repeat sends a webhook with an id and returns its event, or nothing if it was not acknowledged.
func (n *node) repeat(endpoint, id string) string {
	req, err := http.NewRequest(http.MethodPost, "http://"+n.addr+"/hooks/"+endpoint, strings.NewReader(`{"a":1}`))
	if err != nil {
		return ""
	}
	req.Header.Set("X-Id", id)
	resp, err := plain.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var told struct{ ID string }
	_ = json.NewDecoder(resp.Body).Decode(&told) // cut: not acknowledged
	return told.ID
}

type repeatedDelivery struct {
	EventID string `json:"event_id"`
	Status  string
	SameAs  string `json:"same_as"`
}

// onceTo adds a target that gets a webhook once, by its X-Id, and returns how to read its deliveries, 100 at most.
func (n *node) onceTo(endpoint, url string, timeout time.Duration) (deliveries func(n *node) map[string]repeatedDelivery) {
	n.t.Helper()
	var made struct{ Data struct{ ID int64 } }
	path := "/endpoints/" + endpoint + "/forwarding_targets"
	n.api(http.MethodPost, path, fmt.Sprintf(`{"forwarding_target":{"name":"n","url":%q,"timeout_seconds":%d,"retry_count":5,"dedupe_by":"header.X-Id"}}`, url, int(timeout.Seconds())), &made)
	return func(n *node) map[string]repeatedDelivery {
		var got struct{ Data []repeatedDelivery }
		n.api(http.MethodGet, fmt.Sprintf("%s/%d/deliveries?limit=100", path, made.Data.ID), "", &got)
		all := map[string]repeatedDelivery{}
		for _, d := range got.Data {
			all[d.EventID] = d
		}
		return all
	}
}

// onceEnded checks that all deliveries end, that one was skipped only where another arrived, that the target answered
// each webhook that was acknowledged, and that the ledger adds up.
func (n *node) onceEnded(endpoint string, p *repeated, acknowledged map[string]string, limit time.Duration, deliveries func(n *node) map[string]repeatedDelivery) {
	n.t.Helper()
	count := map[string]int{}
	all := map[string]repeatedDelivery{}
	takenOver(n.t, limit, "all deliveries have ended", func() bool {
		clear(count)
		all = deliveries(n)
		for _, d := range all {
			count[d.Status]++
		}
		return count["pending"]+count["sending"] == 0
	})
	if count["failed"] > 0 {
		n.t.Errorf("%v", count)
	}
	for event, d := range all {
		if d.Status == "skipped" && (all[d.SameAs].Status != "delivered" || d.SameAs == event || acknowledged[event] != "" && acknowledged[d.SameAs] != "" && acknowledged[event] != acknowledged[d.SameAs]) {
			n.t.Errorf("%+v was skipped for %+v", d, all[d.SameAs])
		}
	}
	p.mu.Lock()
	ids, twice := map[string]bool{}, 0
	for event, id := range acknowledged {
		ids[id] = true
		if p.got[id] == 0 {
			n.t.Errorf("the webhook %s was never answered: %+v", id, all[event])
		}
		if _, there := all[event]; !there {
			n.t.Errorf("%s has no delivery", event)
		}
	}
	for _, times := range p.got {
		if times > 1 {
			twice++
		}
	}
	p.mu.Unlock()
	var got struct {
		Data struct {
			Balanced  bool
			Consumers []struct{ Delivered, Skipped, Failed, Pending int }
		}
	}
	n.api(http.MethodGet, "/endpoints/"+endpoint+"/ledger?from=24h", "", &got)
	if c := got.Data.Consumers; !got.Data.Balanced || len(c) != 1 || c[0].Delivered != count["delivered"] || c[0].Skipped != count["skipped"] || c[0].Pending != 0 {
		n.t.Errorf("the ledger: %+v of %v", got.Data, count)
	}
	n.t.Logf("%d webhooks, %v; %d were sent twice or more", len(ids), count, twice)
}

// A node is killed while it sends webhooks and duplicates of them wait. Nobody got the first ones, so they are sent
// again, and not given up for a duplicate. With PostgreSQL, another node goes on.
func TestKill9WhileDuplicatesWaitForTheFirst(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		const timeout = 20 * time.Second
		p := newRepeated(t)
		n := s.serve("--outbound-allow", "127.0.0.0/8")
		l := n.endpoint()
		deliveries := n.onceTo(l.endpoint, p.URL, timeout)
		const ids = 5
		firsts, acknowledged := map[string]string{}, map[string]string{}
		for i := range ids {
			id := fmt.Sprint(i)
			firsts[id] = n.repeat(l.endpoint, id)
			acknowledged[firsts[id]] = id
		}
		eventually(t, patience, "the firsts are under way", func() bool { asked, _ := p.counts(); return asked == ids })
		nodes := []*node{n}
		if s.dsn != "" {
			nodes = append(nodes, s.serve("--outbound-allow", "127.0.0.0/8"))
		}
		for i := range 4 * ids {
			id := fmt.Sprint(i % ids)
			acknowledged[nodes[i%len(nodes)].repeat(l.endpoint, id)] = id
		}
		if len(acknowledged) != 5*ids || acknowledged[""] != "" {
			t.Fatalf("captured: %v", acknowledged)
		}
		eventually(t, timeout/2, "the duplicates wait", func() bool {
			waiting := 0
			for event, d := range deliveries(n) {
				if first := firsts[acknowledged[event]]; event != first && d.Status == "pending" && d.SameAs == first {
					waiting++
				}
			}
			return waiting == 4*ids
		})
		n.kill()
		eventually(t, patience, "the target lost all", func() bool { _, lost := p.counts(); return lost == ids })
		close(p.held)
		next := nodes[len(nodes)-1]
		if next == n {
			n.start()
			n.ready(patience)
		}
		next.onceEnded(l.endpoint, p, acknowledged, takeover+timeout+patience, deliveries)
		for event, d := range deliveries(next) {
			if want := map[bool]string{true: "delivered", false: "skipped"}[firsts[acknowledged[event]] == event]; d.Status != want {
				t.Errorf("%+v, want %s", d, want)
			}
		}
	})
}

// Nodes are killed at any moment while webhooks come, each several times.
func TestKill9WhileWebhooksComeAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		nodes := []*node{s.serve("--outbound-allow", "127.0.0.0/8")}
		if s.dsn != "" {
			nodes = append(nodes, s.serve("--outbound-allow", "127.0.0.0/8"))
		}
		for range pick(1, 10) {
			p := newRepeated(t)
			p.slowness = 30 * time.Millisecond
			close(p.held)
			l := nodes[0].endpoint()
			deliveries := nodes[0].onceTo(l.endpoint, p.URL, targetTimeout)
			var mu sync.Mutex
			var sending sync.WaitGroup
			acknowledged := map[string]string{}
			for i := range 90 {
				sending.Go(func() {
					<-time.After(between(0, 200*time.Millisecond))
					id := fmt.Sprint(i % 30)
					if event := nodes[i%len(nodes)].repeat(l.endpoint, id); event != "" {
						mu.Lock()
						defer mu.Unlock()
						acknowledged[event] = id
					}
				})
			}
			<-time.After(between(50*time.Millisecond, 300*time.Millisecond))
			nodes[0].kill()
			sending.Wait()
			nodes[0].start()
			nodes[0].ready(patience)
			nodes[0].onceEnded(l.endpoint, p, acknowledged, 2*(takeover+targetTimeout), deliveries)
		}
	})
}
