//go:build linux

package faults_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// listener is a process of `hookglass listen`.
type listener struct {
	t    *testing.T
	args []string
	env  []string
	log  string
	cmd  *exec.Cmd
	over chan struct{} // closed when the process has ended
}

// listen starts a listener on an endpoint of a node, and returns when it is connected: what came before that fell into
// no gap.
func (n *node) listen(endpoint, to string) *listener {
	n.t.Helper()
	l := &listener{
		t: n.t, log: filepath.Join(n.t.TempDir(), "listen"), env: append(environment(), "HOOKGLASS_TOKEN="+n.token, "HOOKGLASS_SERVER=http://"+n.addr, "HOME="+n.t.TempDir()),
		args: []string{"listen", to, "-e", endpoint, "--recover", "all"},
	}
	l.start()
	n.t.Cleanup(func() {
		l.kill()
		if n.t.Failed() {
			text, _ := os.ReadFile(l.log)
			// The lines of events follow from the handler's count.
			said := regexp.MustCompile(`(?m)^\d\d:.*\n`).ReplaceAllString(string(text), "")
			n.t.Logf("the end of what the listener printed:\n%s", tail(said, 3000))
		}
	})
	eventually(n.t, patience, "the listener is connected", func() bool {
		text, err := os.ReadFile(l.log)
		return err == nil && strings.Contains(string(text), "connected;")
	})
	return l
}

func (l *listener) start() {
	l.t.Helper()
	log, err := os.OpenFile(l.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	defer log.Close()
	l.cmd = exec.Command(program, l.args...)
	l.cmd.Env, l.cmd.Stdout, l.cmd.Stderr = l.env, log, log
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	cmd, over := l.cmd, make(chan struct{})
	l.over = over
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		close(over)
	}()
}

// keep starts a process again that has ended by itself, as whoever runs it would: one that begins while its server is
// gone says so and ends.
func (l *listener) keep() (again bool) {
	l.t.Helper()
	select {
	case <-l.over:
		if code := l.cmd.ProcessState.ExitCode(); code != 1 {
			l.t.Fatalf("the listener ended with %d", code)
		}
		l.start()
		return true
	default:
		return false
	}
}

func (l *listener) signal(sig syscall.Signal) {
	l.t.Helper()
	if err := l.cmd.Process.Signal(sig); err != nil {
		l.t.Fatal(err)
	}
}

func (l *listener) kill() {
	_ = l.cmd.Process.Kill()
	<-l.over
}

// handled counts what a local handler got, by event.
type handled struct {
	*httptest.Server
	mu    sync.Mutex
	count map[string]int
}

func newHandled(t *testing.T) *handled { return newHandledBy(t, "X-Service-Request-Id") }

// newHandledBy counts by what another header says.
func newHandledBy(t *testing.T, header string) *handled {
	h := &handled{count: make(map[string]int)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.count[r.Header.Get(header)]++
		h.mu.Unlock()
	}))
	t.Cleanup(h.Close)
	return h
}

// of is how many it got of one.
func (h *handled) of(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count[name]
}

// lacks are the events that the handler did not get, and again is how many it got more than once.
func (h *handled) lacks(events []stored) (lacks []stored, again int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range events {
		switch n := h.count[e.ID]; {
		case n == 0:
			lacks = append(lacks, e)
		case n > 1:
			again++
		}
	}
	return lacks, again
}

// Client and server are killed, and frozen, at random moments under load. In the end each event that is stored was
// delivered and reported, and the counts of every gap add up at any time.
func TestTheTunnelLosesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		n := s.serve()
		l := n.endpoint()
		h := newHandled(t)
		client := n.listen(l.endpoint, h.URL)
		blows := map[string]func(){
			"kill -9 of the client": func() { client.kill(); client.start() },
			"kill -9 of the server": func() { n.kill(); n.start(); n.ready(patience) },
			"the client is frozen": func() {
				client.signal(syscall.SIGSTOP)
				<-time.After(between(time.Second, pick(2*time.Second, 20*time.Second)))
				client.signal(syscall.SIGCONT)
			},
			"the server is frozen": func() {
				n.signal(syscall.SIGSTOP)
				<-time.After(between(time.Second, pick(2*time.Second, 15*time.Second)))
				n.signal(syscall.SIGCONT)
			},
			"both are killed at once": func() { client.kill(); n.kill(); n.start(); client.start(); n.ready(patience) },
		}
		var names []string
		for name := range blows {
			names = append(names, name)
		}
		var story []string
		keep := func() {
			if client.keep() {
				story = append(story, fmt.Sprintf("%s: the client had ended, and was started again", time.Now().UTC().Format("15:04:05.0")))
			}
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("what was done:\n%s", strings.Join(story, "\n"))
			}
		})
		for round := range pick(1, 6) {
			rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			for _, name := range names {
				under := load{to: []*node{n}, ledger: l, conns: 4, rate: pick(60, 150)}.start()
				<-time.After(between(300*time.Millisecond, pick(time.Second, 3*time.Second)))
				keep()
				blows[name]()
				story = append(story, fmt.Sprintf("%s: %s, at number %d", time.Now().UTC().Format("15:04:05.0"), name, l.next.Load()))
				<-time.After(between(100*time.Millisecond, time.Second))
				under.stop()
				if n.balance(l.endpoint); t.Failed() {
					t.Fatalf("round %d, after %s", round, name)
				}
			}
		}
		if r := l.check(t, n); t.Failed() {
			t.Fatal(r)
		}
		events, _ := n.list(l.endpoint)
		began := time.Now()
		for lacks, _ := h.lacks(events); len(lacks) > 0; lacks, _ = h.lacks(events) {
			if time.Since(began) > patience {
				t.Fatalf("%d events were not delivered: %v", len(lacks), lacks)
			}
			keep()
			<-time.After(100 * time.Millisecond)
		}
		took := time.Since(began)
		eventually(t, patience, "every delivery is reported", func() bool { return n.undelivered(l.endpoint) == 0 })
		n.balance(l.endpoint)
		_, again := h.lacks(events)
		// What was under way, or reported and not yet stored, when a process died comes again; nothing else does.
		if again > len(events)/2 {
			t.Errorf("%d of %d events were delivered more than once", again, len(events))
		}
		t.Logf("%d events, all delivered %v after the last blow, %d of them more than once", len(events), took, again)
	})
}

// balance checks the counts of the gaps.
func (n *node) balance(endpoint string) {
	n.t.Helper()
	var gaps struct {
		Data []struct {
			ID     string
			State  string
			Counts map[string]int64
		}
	}
	n.api(http.MethodGet, "/tunnel/gaps?"+url.Values{"endpoint_ids[]": {endpoint}}.Encode(), "", &gaps)
	for _, g := range gaps.Data {
		c := g.Counts
		if sum := c["recovered_count"] + c["failed_count"] + c["pending_count"] + c["expired_count"]; c["total_count"] != sum || c["total_count"] == 0 && g.State != "open" {
			n.t.Errorf("gap %s is %s with %v", g.ID, g.State, c)
		}
	}
}

// undelivered is how many events of the last day no report says were delivered.
func (n *node) undelivered(endpoint string) int {
	n.t.Helper()
	var list struct{ Data []struct{ ID string } }
	n.api(http.MethodGet, fmt.Sprintf("/tunnel/undelivered?minutes=1440&%s", url.Values{"endpoint_ids[]": {endpoint}}.Encode()), "", &list)
	return len(list.Data)
}
