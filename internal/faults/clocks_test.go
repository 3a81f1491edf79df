//go:build linux && long

package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// skewVariable names the variable by which a program made by skewable has its clock put forward or back: by how much, or
// a file that says so and may change.
const skewVariable = "FAULTS_CLOCK_SKEW"

// skewable builds the program with a standard library whose clock can be put forward or back, and with it whatever the
// program compares with its own clock. Nothing of that is in the program that is released.
func skewable(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const reads = "\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), reads) != 1 {
		t.Fatal("the clock of this version of Go is read in another way")
	}
	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		original: put("time.go", strings.Replace(string(source), reads, reads+"\tsec += skew.Load()\n", 1)),
		filepath.Join(filepath.Dir(original), "skew.go"): put("skew.go", `package time

import (
	"sync/atomic"
	"syscall"
)

var skew atomic.Int64

func init() {
	text, _ := syscall.Getenv("`+skewVariable+`")
	d, err := ParseDuration(text)
	skew.Store(int64(d / Second))
	if err == nil || text == "" {
		return
	}
	go func() {
		for ; ; Sleep(5 * Millisecond) {
			var said [32]byte
			if fd, err := syscall.Open(text, syscall.O_RDONLY, 0); err == nil {
				n, _ := syscall.Read(fd, said[:])
				syscall.Close(fd)
				if d, err := ParseDuration(string(said[:max(n, 0)])); err == nil {
					skew.Store(int64(d / Second))
				}
			}
		}
	}()
}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "hookglass")
	build := exec.Command("go", "build", "-overlay", put("overlay.json", string(overlay)), "-o", binary, "hookglass/cmd/hookglass")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// Three nodes, of which one is an hour ahead and one an hour behind, do all that nodes do for one another as if their
// clocks were right (reliability, row 50). The first that starts keeps the schedule.
func TestClocksAnHourApartHarmNothing(t *testing.T) {
	binary := skewable(t)
	for name, skews := range map[string][]string{"the schedule is ahead": {"1h", "-1h", "0s"}, "the schedule is behind": {"-1h", "1h", "0s"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := postgresSite(t)
			var nodes []*node
			for _, skew := range skews {
				n := s.node("--outbound-allow", "127.0.0.0/8")
				n.binary, n.env = binary, []string{skewVariable + "=" + skew}
				n.start()
				n.ready(patience)
				nodes = append(nodes, n)
			}
			clocks(t, s, nodes)
		})
	}
}

// A clock that is put forward and back while a node works, again and again, moves nothing of what goes by the database's.
func TestAClockThatJumpsHarmsNothing(t *testing.T) {
	clock := filepath.Join(t.TempDir(), "clock")
	jump := func(to string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(clock+".new", []byte(to), 0o600), os.Rename(clock+".new", clock)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // it is looked at all the time
	}
	jump("0s")
	s := postgresSite(t)
	n := s.node("--outbound-allow", "127.0.0.0/8")
	n.binary, n.env = skewable(t), []string{skewVariable + "=" + clock}
	n.start()
	n.ready(patience)
	l := n.endpoint()
	target := n.forwardTo(l.endpoint, newFlaky(t).URL)
	n.acting(l.endpoint, fmt.Sprintf(`[{"step_type":"forward","name":"On","config":{"url":"%s/"}}]`, newFlaky(t).URL))

	var events []string
	for range 3 {
		for _, to := range []string{"1h", "0s", "-1h", "0s", "-1h", "1h"} {
			jump(to)
			id := n.event(l.endpoint)
			events = append(events, id)
			var detail struct {
				Data struct {
					RequestedAt time.Time `json:"requested_at"`
				}
			}
			n.api(http.MethodGet, "/endpoints/"+l.endpoint+"/requests/"+id, "", &detail)
			if off := time.Since(detail.Data.RequestedAt); off.Abs() > 30*time.Second {
				t.Errorf("event %s was received %v ago", id, off)
			}
		}
	}
	eventually(t, patience, "every event is forwarded, at the second attempt", func() bool {
		states := n.deliveryStates(l.endpoint, target)
		return !slices.ContainsFunc(events, func(e string) bool { return states[e] != "delivered" })
	})
	eventually(t, patience, "every action has run", func() bool {
		done := 0
		for _, r := range n.actionRuns(l.endpoint) {
			if r.Status == "completed" {
				done++
			}
		}
		return done == len(events)
	})
}

func clocks(t *testing.T, s *site, nodes []*node) {
	each := func(do func(n, other *node)) {
		for i, n := range nodes {
			for j, other := range nodes {
				if i != j {
					do(n, other)
				}
			}
		}
	}
	p := newPushes(t)
	l := nodes[0].endpoint()
	nodes[1].api(http.MethodPost, "/endpoints/"+l.endpoint+"/alerts", `{"alert":{"name":"k","kind":"keyword_match","config":{"keyword":"\"a\":1","field":"body"}}}`, nil)
	nodes[2].api(http.MethodPost, "/notification_channels", fmt.Sprintf(`{"notification_channel":{"name":"n","kind":"webhook","config":{"url":%q,"events":["webhook.received","alert.triggered"]}}}`, p.URL), nil)
	nodes[1].api(http.MethodPost, "/endpoints/"+l.endpoint+"/alerts", `{"alert":{"name":"e","kind":"error_response","config":{"threshold":10,"window_minutes":5}}}`, nil)
	nodes[0].acting(l.endpoint, fmt.Sprintf(`[{"step_type":"tag","name":"Mark","config":{"tag":"t"}},{"step_type":"forward","name":"On","config":{"url":"%s/refused","retry_count":0}}]`, p.URL))
	flaky := newFlaky(t)
	target := nodes[1].forwardTo(l.endpoint, flaky.URL)

	// Sockets by tickets of other nodes, which stay while the leases of all are renewed.
	token, _ := s.newToken()
	var sockets []*cableClient
	each(func(n, other *node) {
		c := n.cable(other.ticket(token, l.endpoint), l.endpoint)
		if c == nil {
			t.Fatalf("node %d does not take a ticket of node %d", n.n, other.n)
		}
		eventually(t, patience, "the subscription", func() bool { return c.saw("confirm_subscription") })
		sockets = append(sockets, c)
	})
	connected := time.Now()

	var events []string
	for range 5 {
		for _, n := range nodes {
			events = append(events, n.event(l.endpoint))
		}
	}
	for _, n := range nodes {
		var page struct {
			Data []struct {
				ID          string
				RequestedAt time.Time `json:"requested_at"`
			}
		}
		n.api(http.MethodGet, "/endpoints/"+l.endpoint+"/requests?after=5m", "", &page)
		if len(page.Data) != len(events) {
			t.Errorf("node %d lists %d of %d events of the last minutes", n.n, len(page.Data), len(events))
		}
		for i, e := range page.Data {
			if off := time.Since(e.RequestedAt); off.Abs() > 30*time.Second {
				t.Errorf("event %s was received %v ago", e.ID, off)
			}
			if i > 0 && (e.RequestedAt.After(page.Data[i-1].RequestedAt.Add(clockGrain)) || e.ID > page.Data[i-1].ID && e.RequestedAt.Before(page.Data[i-1].RequestedAt.Add(-clockGrain))) {
				t.Errorf("event %s is out of order", e.ID)
			}
		}
		var feed struct{ Data []struct{ Type string } }
		n.api(http.MethodGet, "/events?since=5m&limit=200", "", &feed)
		if len(feed.Data) < len(events) {
			t.Errorf("node %d shows %d activities", n.n, len(feed.Data))
		}
		var figures struct {
			Data struct{ Total int }
		}
		n.api(http.MethodGet, "/endpoints/"+l.endpoint+"/metrics?window=1h", "", &figures)
		if figures.Data.Total != len(events) {
			t.Errorf("node %d counts %d events", n.n, figures.Data.Total)
		}
		var made struct {
			Data struct {
				ID        string
				TunnelKey string    `json:"tunnel_key"`
				ExpiresAt time.Time `json:"expires_at"`
			}
		}
		n.api(http.MethodPost, "/temporary_endpoints", "", &made)
		if off := time.Until(made.Data.ExpiresAt) - 24*time.Hour; off.Abs() > time.Minute {
			t.Errorf("a temporary endpoint lives %v too long", off)
		}
		for _, other := range nodes {
			other.event(made.Data.ID)
			if status, text, err := other.call(made.Data.TunnelKey, http.MethodGet, "/endpoints/"+made.Data.ID+"/requests", ""); err != nil || status != http.StatusOK {
				t.Errorf("node %d refuses a key of node %d: %d %v %s", other.n, n.n, status, err, text)
			}
		}
	}
	eventually(t, patience, "every event is forwarded, at the second attempt", func() bool {
		states := nodes[0].deliveryStates(l.endpoint, target)
		for _, e := range events {
			if states[e] != "delivered" {
				return false
			}
		}
		return true
	})
	eventually(t, patience, "every action has run", func() bool {
		done := 0
		for _, r := range nodes[2].actionRuns(l.endpoint) {
			if r.Status == "failed" { // its target refuses; that is what the other alert watches
				done++
			}
		}
		return done == len(events)
	})
	eventually(t, patience, "the alerts are triggered and all is pushed", func() bool { return p.of("alert.triggered") == 2 && p.of("webhook.received") == len(events) })
	for _, n := range nodes {
		run := n.runCase(l.endpoint, events[0], flaky.URL+"/case")
		eventually(t, patience, "a case has run", func() bool { return n.runState(l.endpoint, run) == "passed" })
		var batch struct{ Data struct{ ID, State string } }
		n.api(http.MethodPost, "/endpoints/"+l.endpoint+"/replay_batches", fmt.Sprintf(`{"target_url":"%s/batch"}`, flaky.URL), &batch)
		eventually(t, patience, "a bulk replay has ended", func() bool {
			n.api(http.MethodGet, "/endpoints/"+l.endpoint+"/replay_batches/"+batch.Data.ID, "", &batch)
			return batch.Data.State == "completed"
		})
	}

	// The leases of sockets have been renewed, looked at by the others, and none was taken for lost.
	<-time.After(20*time.Second - min(20*time.Second, time.Since(connected)))
	for i, c := range sockets {
		for _, e := range events {
			if !c.saw(e) {
				t.Errorf("socket %d did not see %s", i, e)
			}
		}
		select {
		case <-c.gone:
			t.Errorf("socket %d ended: %v", i, c.seen)
		default:
		}
	}
	limited, _ := s.newToken()
	var given int
	for i := range 60 {
		status, answer, err := nodes[i%3].call(limited, http.MethodPost, "/tunnel/connect", `{"endpoint_id":"`+l.endpoint+`"}`)
		var told struct {
			RetryAfter int `json:"retry_after"`
		}
		if err != nil || json.Unmarshal(answer, &told) != nil || told.RetryAfter > 60 {
			t.Errorf("connect: %d %v %s", status, err, answer)
		}
		if status == http.StatusOK {
			given++
		}
	}
	if given < 30 || given > 40 {
		t.Errorf("%d tickets were given where 30 a minute are the limit", given)
	}

	// Retention and deletion.
	rows := nodes[0].rowCounter()
	nodes[1].api(http.MethodDelete, "/endpoints/"+l.endpoint, "", nil)
	eventually(t, patience, "what was deleted is erased", func() bool {
		return rows("SELECT count(*) FROM events WHERE endpoint NOT IN (SELECT num FROM endpoints)") == 0 && rows("SELECT count(*) FROM events") == 9
	})
	if n := rows("SELECT count(*) FROM tunnel_gaps"); n != 0 {
		t.Errorf("%d gaps although every socket was there", n)
	}
	for _, n := range nodes {
		if strings.Contains(n.log(), "level=ERROR") || strings.Contains(n.log(), "taken over") {
			t.Errorf("the log of node %d:\n%s", n.n, tail(n.log(), 2000))
		}
	}
}

// clockGrain is how far the times may be apart that nodes give to what happens at once.
const clockGrain = 2 * time.Second

// newFlaky is a target that fails at the first attempt of each forward.
func newFlaky(t *testing.T) *httptest.Server {
	var mu sync.Mutex
	tried := make(map[string]bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if id := r.Header.Get("X-Service-Original-Request"); r.URL.Path == "/" && !tried[id] {
			tried[id] = true
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	return s
}
