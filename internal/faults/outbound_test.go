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

// What a dead node had in hand is taken over within takeover and the timeout of the step (spec: decisions, section 14,
// "Operation").
const (
	takeover      = 60 * time.Second
	caseTimeout   = 30 * time.Second
	targetTimeout = 5 * time.Second
)

// holder is a target that counts what it gets, by path, and answers nothing while it holds.
type holder struct {
	*httptest.Server
	mu      sync.Mutex
	hits    map[string]int
	origins map[string]map[string]bool // the event that a request says it is, by path
	release chan struct{}
}

func newHolder(t *testing.T) *holder {
	h := &holder{hits: make(map[string]int), origins: make(map[string]map[string]bool), release: make(chan struct{})}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h.mu.Lock()
		h.hits[r.URL.Path]++
		if h.origins[r.URL.Path] == nil {
			h.origins[r.URL.Path] = make(map[string]bool)
		}
		h.origins[r.URL.Path][r.Header.Get("X-Service-Original-Request")] = true
		held := h.release
		h.mu.Unlock()
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { h.let(); h.Close() })
	return h
}

// let lets go of what is held and of what comes; hold holds again.
func (h *holder) let() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.release:
	default:
		close(h.release)
	}
}

func (h *holder) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.release = make(chan struct{})
}

func (h *holder) at(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hits[path]
}

// event captures one event and returns its id.
func (n *node) event(endpoint string) string {
	n.t.Helper()
	resp, err := plain.Post("http://"+n.addr+"/hooks/"+endpoint, "application/json", strings.NewReader(`{"a":1}`))
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	var told struct{ ID string }
	if err := json.NewDecoder(resp.Body).Decode(&told); err != nil || told.ID == "" {
		n.t.Fatalf("captured: %s %v", resp.Status, err)
	}
	return told.ID
}

// runCase makes a case of an event for a target and has it run once. It returns the run's id.
func (n *node) runCase(endpoint, event, target string) string {
	n.t.Helper()
	var made struct{ Data struct{ ID string } }
	n.api(http.MethodPost, "/endpoints/"+endpoint+"/replay_cases",
		fmt.Sprintf(`{"replay_case":{"source_id":%q,"name":"n","target_url":%q,"assertions":{"status":{"class":"2xx"}}}}`, event, target), &made)
	return n.runSaved(endpoint, made.Data.ID, "once")
}

// runSaved has a case run, and returns the run's id.
func (n *node) runSaved(endpoint, caseID, key string) string {
	n.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+n.addr+"/api/v1/endpoints/"+endpoint+"/replay_cases/"+caseID+"/run", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+n.token)
	req.Header.Set("Idempotency-Key", key)
	resp, err := plain.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	var run struct{ Data struct{ ID string } }
	if err := json.NewDecoder(resp.Body).Decode(&run); err != nil || resp.StatusCode != http.StatusAccepted {
		n.t.Fatalf("run: %s %v", resp.Status, err)
	}
	return run.Data.ID
}

// runState is the state of a run.
func (n *node) runState(endpoint, run string) string {
	n.t.Helper()
	var got struct{ Data struct{ State string } }
	n.api(http.MethodGet, "/endpoints/"+endpoint+"/replay_case_runs/"+run, "", &got)
	return got.Data.State
}

// forwardTo gives an endpoint a target.
func (n *node) forwardTo(endpoint, url string) (target string) {
	n.t.Helper()
	var made struct{ Data struct{ ID int64 } }
	n.api(http.MethodPost, "/endpoints/"+endpoint+"/forwarding_targets",
		fmt.Sprintf(`{"forwarding_target":{"name":"n","url":%q,"timeout_seconds":%d,"retry_count":5}}`, url, int(targetTimeout.Seconds())), &made)
	return fmt.Sprint(made.Data.ID)
}

// deliveryStates are the states of the deliveries to a target, by event.
func (n *node) deliveryStates(endpoint, target string) map[string]string {
	n.t.Helper()
	var got struct {
		Data []struct {
			EventID string `json:"event_id"`
			Status  string
		}
	}
	n.api(http.MethodGet, "/endpoints/"+endpoint+"/forwarding_targets/"+target+"/deliveries?limit=100", "", &got)
	states := make(map[string]string)
	for _, d := range got.Data {
		states[d.EventID] = d.Status
	}
	return states
}

// Rows 69 and 70: the process is killed while targets hold its requests. A case run is sent once and ends as unknown; a
// forward is sent again, as the same, until it arrives. Nothing goes on for ever.
func TestKill9WhileTargetsHoldRequests(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		h := newHolder(t)
		n := s.serve("--outbound-allow", "127.0.0.0/8")
		l := n.endpoint()
		source := n.event(l.endpoint) // before there is a target
		target := n.forwardTo(l.endpoint, h.URL+"/forward")
		var runs, events []string
		rounds := pick(3, 20)
		var killed time.Time
		for i := range rounds {
			h.hold()
			before := h.at("/forward")
			runs = append(runs, n.runCase(l.endpoint, source, fmt.Sprintf("%s/case/%d", h.URL, i)))
			events = append(events, n.event(l.endpoint))
			eventually(t, patience, "the targets hold both requests", func() bool { return h.at(fmt.Sprintf("/case/%d", i)) > 0 && h.at("/forward") > before })
			n.kill()
			killed = time.Now()
			n.start()
			n.ready(patience)
		}
		h.let()
		took := takenOver(t, takeover+targetTimeout-passed(killed, time.Now()), "every forward has arrived", func() bool {
			states := n.deliveryStates(l.endpoint, target)
			for _, e := range events {
				if states[e] != "delivered" {
					return false
				}
			}
			return true
		})
		takenOver(t, takeover+caseTimeout-passed(killed, time.Now()), "every run has ended", func() bool {
			for _, r := range runs {
				if state := n.runState(l.endpoint, r); state == "queued" || state == "running" {
					return false
				}
			}
			return true
		})
		for i, r := range runs {
			if state, hits := n.runState(l.endpoint, r), h.at(fmt.Sprintf("/case/%d", i)); state != "unknown" || hits != 1 {
				t.Errorf("run %d is %s, its target was hit %d times", i, state, hits)
			}
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.origins["/forward"]) != rounds {
			t.Errorf("forwards of %d events were sent as %v", rounds, h.origins["/forward"])
		}
		t.Logf("%d kills: every run unknown with one hit; %d forwards in %d requests, the last %v after everything was let go", rounds, rounds, h.hits["/forward"], took)
	})
}

// Rows 69 and 70 with two nodes on one PostgreSQL, of which one is killed: what the other has in hand ends as if
// nothing had happened, and it takes over the rest.
func TestANodeThatIsKilledWhileTargetsHoldItsRequests(t *testing.T) {
	beside(t)
	s := postgresSite(t)
	a, b := s.serve("--outbound-allow", "127.0.0.0/8"), s.serve("--outbound-allow", "127.0.0.0/8")
	h := newHolder(t)
	l := a.endpoint()
	source := a.event(l.endpoint)
	target := a.forwardTo(l.endpoint, h.URL+"/forward")
	const each = 8
	for range pick(1, 5) {
		h.hold()
		before := h.at("/forward")
		var runs, paths, events []string
		for i := range each {
			n := []*node{a, b}[i%2]
			paths = append(paths, fmt.Sprintf("/case/%s/%d", time.Now().Format("150405.000000"), i))
			runs = append(runs, n.runCase(l.endpoint, source, h.URL+paths[i]))
			events = append(events, n.event(l.endpoint))
		}
		eventually(t, patience, "the targets hold all requests", func() bool {
			for _, p := range paths {
				if h.at(p) == 0 {
					return false
				}
			}
			return h.at("/forward") >= before+each
		})
		a.kill()
		killed := time.Now()
		h.let()
		takenOver(t, takeover+targetTimeout-passed(killed, time.Now()), "every forward has arrived", func() bool {
			states := b.deliveryStates(l.endpoint, target)
			for _, e := range events {
				if states[e] != "delivered" {
					return false
				}
			}
			return true
		})
		arrived := time.Since(killed)
		takenOver(t, takeover+caseTimeout-passed(killed, time.Now()), "every run has ended", func() bool {
			for _, r := range runs {
				if state := b.runState(l.endpoint, r); state == "queued" || state == "running" {
					return false
				}
			}
			return true
		})
		ended := make(map[string]int)
		for i, r := range runs {
			state := b.runState(l.endpoint, r)
			ended[state]++
			if hits := h.at(paths[i]); hits != 1 || state != "passed" && state != "unknown" {
				t.Errorf("run %d is %s, its target was hit %d times", i, state, hits)
			}
		}
		t.Logf("runs %v, each with one hit; %d forwards in %d requests, the last arrived %v after the kill; all ended after %v", ended, each, h.at("/forward")-before, arrived, time.Since(killed))
		a.start()
		a.ready(patience)
	}
}
