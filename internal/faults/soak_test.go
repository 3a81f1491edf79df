//go:build linux

package faults_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hookglass/internal/store/storetest"
)

// A soak is everything at once for a long time, with random blows, and the balance at its end. HOOKGLASS_SOAK says how
// long, as 10m; HOOKGLASS_SOAK_SEED repeats the blows of another one. `make crash` runs it for a moment, `make soak` at
// length with the race detector.

// soakReady is how long a start may take: the race detector, and all the others that want the processor, make it ten
// times as long.
const soakReady = 3 * time.Minute

// soakFor is how long the soak takes, 0 when nobody asked for one.
func soakFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("HOOKGLASS_SOAK")
	if text == "" {
		return pick(0, 30*time.Second)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal("HOOKGLASS_SOAK:", err)
	}
	return d
}

func soakSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("HOOKGLASS_SOAK_SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal("HOOKGLASS_SOAK_SEED:", err)
	}
	return seed
}

func TestSoak(t *testing.T) {
	length := soakFor(t)
	if length == 0 {
		return
	}
	binary := program
	if os.Getenv("HOOKGLASS_SOAK") != "" {
		binary = filepath.Join(t.TempDir(), "hookglass-race")
		build := exec.Command("go", "build", "-race", "-o", binary, "hookglass/cmd/hookglass")
		build.Env = append(os.Environ(), "CGO_ENABLED=1")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build with the race detector: %v\n%s", err, out)
		}
	}
	seed := soakSeed(t)
	t.Logf("seed %d, %v on each database", seed, length)
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		newSoak(t, binary, seed, true).run(length)
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		newSoak(t, binary, seed+1, false).run(length)
	})
}

// soak is one installation under load: two nodes on a PostgreSQL of their own, or one on SQLite, on a disk that can be
// filled.
type soak struct {
	t       *testing.T
	site    *site
	cluster *storetest.Cluster // nil: SQLite
	disk    string             // empty: it cannot be filled
	nodes   []*node
	smtps   []string
	random  *rand.Rand // of the blows

	plain, forwarded, acting, tunnelled *ledger
	mailbox, address                    string
	targets                             map[string]*receiver // of the endpoint forwarded, by their id
	client                              *listener
	handler                             *handled
	mails                               posting
	agents, replays                     atomic.Int64
	story                               []string
	batches                             []string
	mu                                  sync.Mutex
}

// receiver is a target: it says which events it has had.
type receiver struct {
	*httptest.Server
	name string
	mu   sync.Mutex
	had  map[string]int
}

func newReceiver(t *testing.T, name string, answer func(http.ResponseWriter, *http.Request)) *receiver {
	r := &receiver{name: name, had: make(map[string]int)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		id := req.Header.Get("X-Service-Original-Request")
		r.mu.Lock()
		r.had[id]++
		r.mu.Unlock()
		answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

// posting is what senders of mail were told, by the number in the subject.
type posting struct {
	mu            sync.Mutex
	next          int
	acked, unsure map[int]bool
}

func newSoak(t *testing.T, binary string, seed uint64, onPostgres bool) *soak {
	k := &soak{t: t, random: rand.New(rand.NewPCG(seed, 0)), targets: make(map[string]*receiver), mails: posting{acked: make(map[int]bool), unsure: make(map[int]bool)}}
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		k.disk = smallDisk(t, "6g")
		for _, dir := range []string{k.disk, filepath.Dir(k.disk)} { // the database's own user has to pass through
			if err := os.Chmod(dir, 0o711); err != nil {
				t.Fatal(err)
			}
		}
		dir = filepath.Join(k.disk, "site")
	}
	nodes, dsn := 1, ""
	if onPostgres {
		nodes = 2
		var err error
		if k.cluster, err = storetest.Start(k.disk); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := k.cluster.Stop(); err != nil {
				t.Error(err)
			}
		})
		dsn = database(t, k.cluster)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	k.site = newSite(t, dir, dsn)
	for range nodes {
		smtpAddr := freePort(t)
		n := k.site.node("--outbound-allow", "127.0.0.0/8", "--smtp-listen", smtpAddr, "--mail-dns", os.DevNull, "--retention", "720h")
		n.binary, n.env = binary, []string{"GORACE=halt_on_error=0"}
		n.start()
		n.ready(soakReady)
		k.nodes, k.smtps = append(k.nodes, n), append(k.smtps, smtpAddr)
	}
	k.furnish()
	return k
}

// furnish makes endpoints with all that happens to their events.
func (k *soak) furnish() {
	n := k.nodes[0]
	k.plain, k.forwarded, k.acting, k.tunnelled = n.endpoint(), n.endpoint(), n.endpoint(), n.endpoint()
	k.mailbox, k.address = n.emailEndpoint()
	slow := rand.New(rand.NewPCG(k.random.Uint64(), 1))
	var mu sync.Mutex
	for _, r := range []*receiver{
		newReceiver(k.t, "good", func(http.ResponseWriter, *http.Request) {}),
		newReceiver(k.t, "slow", func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			wait := time.Duration(slow.IntN(1500)) * time.Millisecond
			mu.Unlock()
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
			}
		}),
		newReceiver(k.t, "bad", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }),
	} {
		k.targets[n.forwardTo(k.forwarded.endpoint, r.URL)] = r
	}
	good := newReceiver(k.t, "step", func(http.ResponseWriter, *http.Request) {})
	n.acting(k.acting.endpoint, fmt.Sprintf(`[{"step_type":"forward","name":"On","config":{"url":%q,"timeout_seconds":5}},{"step_type":"tag","name":"Mark","config":{"tag":"t"}}]`, good.URL))
	k.handler = newHandled(k.t)
	k.client = n.listen(k.tunnelled.endpoint, k.handler.URL)
}

// run loads and strikes for a time, lets all settle, and balances.
func (k *soak) run(length time.Duration) {
	t := k.t
	quit := make(chan struct{})
	var others sync.WaitGroup
	for every, do := range map[time.Duration]func(){
		70 * time.Millisecond: k.mail, 230 * time.Millisecond: k.agent, 400 * time.Millisecond: k.read, 900 * time.Millisecond: k.replay, 11 * time.Second: k.replayMany,
	} {
		others.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					do()
				case <-quit:
					return
				}
			}
		})
	}
	var loads []*loading
	for l, rate := range map[*ledger]int{k.plain: 60, k.forwarded: 20, k.acting: 10, k.tunnelled: 20} {
		loads = append(loads, load{to: k.nodes, ledger: l, conns: 2 * len(k.nodes), rate: rate}.start())
	}
	began := time.Now()
	blows := k.blows()
	for time.Since(began) < length {
		<-time.After(time.Duration(500+k.random.IntN(3500)) * time.Millisecond)
		blow := blows[k.random.IntN(len(blows))]
		blow.strike()
		k.story = append(k.story, blow.name)
		t.Logf("%6.1fs %-28s %s", time.Since(began).Seconds(), blow.name, k.progress())
		if t.Failed() {
			break
		}
	}
	for _, l := range loads {
		l.stop()
	}
	close(quit)
	others.Wait()
	for _, n := range k.nodes {
		n.ready(soakReady)
	}
	k.balance(time.Since(began))
}

func (k *soak) progress() string {
	statuses := make(map[int]int)
	sent := 0
	for _, l := range []*ledger{k.plain, k.forwarded, k.acting, k.tunnelled} {
		for _, a := range l.all() {
			sent++
			statuses[a.status]++
		}
	}
	k.mails.mu.Lock()
	defer k.mails.mu.Unlock()
	return fmt.Sprintf("%d sent, answers %v; mail %d, %d unsure; %d agents, %d replays", sent, statuses, len(k.mails.acked), len(k.mails.unsure), k.agents.Load(), k.replays.Load())
}

// blow is something bad that happens and is over when it returns, though not what follows from it.
type blow struct {
	name   string
	strike func()
}

func (k *soak) blows() []blow {
	pause := func(from, to int) { <-time.After(time.Duration(from+k.random.IntN(to-from)) * time.Millisecond) }
	any := func() *node { return k.nodes[k.random.IntN(len(k.nodes))] }
	must := func(err error) {
		if err != nil {
			k.t.Error(err)
		}
	}
	all := []blow{
		{"kill -9 of a node", func() { n := any(); n.kill(); pause(100, 2000); n.start(); n.ready(soakReady) }},
		{"a node is frozen", func() { n := any(); n.signal(syscall.SIGSTOP); pause(500, 5000); n.signal(syscall.SIGCONT) }},
		{"a node is restarted", func() {
			n := any()
			n.signal(syscall.SIGTERM)
			if code := n.exit(patience); code != 0 {
				k.t.Errorf("node %d: exit code %d", n.n, code)
			}
			n.start()
			n.ready(soakReady)
		}},
		{"kill -9 of the client", func() { k.client.kill(); pause(100, 3000); k.client.start() }},
		{"the client is frozen", func() { k.client.signal(syscall.SIGSTOP); pause(500, 15000); k.client.signal(syscall.SIGCONT) }},
	}
	if k.cluster != nil {
		all = append(all,
			blow{"kill -9 of the database", func() { must(k.cluster.Kill9()); pause(200, 2000); must(k.cluster.Restart()) }},
			blow{"the database hangs", func() { must(k.cluster.Freeze()); pause(1000, 9000); must(k.cluster.Thaw()) }},
		)
	}
	if k.disk != "" {
		all = append(all, blow{"the disk is full", k.fillDisk})
	}
	return all
}

// fillDisk leaves no room on the disk for a while. PostgreSQL ends itself where its log cannot grow.
func (k *soak) fillDisk() {
	ballast := filepath.Join(k.disk, "ballast")
	var fs syscall.Statfs_t
	f, err := os.Create(ballast)
	if err == nil {
		err = errors.Join(syscall.Statfs(k.disk, &fs), syscall.Fallocate(int(f.Fd()), 0, 0, int64(fs.Bavail-fs.Bavail/100)*fs.Bsize), f.Close())
	}
	if err != nil {
		k.t.Log("most of the disk could not be taken at once:", err)
	}
	fill(k.t, ballast)
	<-time.After(time.Duration(500+k.random.IntN(3000)) * time.Millisecond)
	if err := os.Remove(ballast); err != nil {
		k.t.Error(err)
	}
	if k.cluster != nil {
		_ = k.cluster.Restart() // where it runs it says so
	}
}

// mail sends one mail over a connection of its own.
func (k *soak) mail() {
	k.mails.mu.Lock()
	k.mails.next++
	number := k.mails.next
	k.mails.mu.Unlock()
	err := smtp.SendMail(k.smtps[number%len(k.smtps)], nil, "a@example.org", []string{k.address}, fmt.Appendf(nil, "Subject: %d\r\n\r\n%s\r\n", number, strings.Repeat("x", 500)))
	k.mails.mu.Lock()
	defer k.mails.mu.Unlock()
	if err == nil {
		k.mails.acked[number] = true
	} else {
		k.mails.unsure[number] = true // most were not taken; some were, and the answer was lost
	}
}

// agent asks as agents do; while something is down its answer does not matter.
func (k *soak) agent() {
	n := k.nodes[int(k.agents.Add(1))%len(k.nodes)]
	_, _ = n.tool("list_requests", `{"endpoint_id":"`+k.plain.endpoint+`"}`)
	_, _ = n.tool("wait_for_request", `{"endpoint_id":"`+k.plain.endpoint+`","timeout_seconds":1}`)
}

// read follows a stream for a moment, and looks something up.
func (k *soak) read() {
	n := k.nodes[k.agents.Load()%int64(len(k.nodes))]
	_, _, _ = n.call(n.token, http.MethodGet, "/endpoints/"+k.forwarded.endpoint+"/requests?q=nowhere", "")
	req, err := http.NewRequest(http.MethodGet, "http://"+n.addr+"/api/v1/endpoints/"+k.plain.endpoint+"/stream", nil)
	if err != nil {
		k.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+n.token)
	resp, err := (&http.Client{Timeout: 700 * time.Millisecond}).Do(req)
	if err != nil {
		return
	}
	_, _ = fmt.Fscan(resp.Body, new(string))
	resp.Body.Close()
}

// replay sends what one sender was told is stored, to a target that takes it.
func (k *soak) replay() {
	answers := k.plain.all()
	if len(answers) == 0 {
		return
	}
	a := answers[int(k.replays.Add(1)*7919)%len(answers)]
	if a.status != http.StatusOK {
		return
	}
	n := k.nodes[a.number%int64(len(k.nodes))]
	_, _, _ = n.call(n.token, http.MethodPost, "/endpoints/"+k.plain.endpoint+"/requests/"+a.id+"/replay", `{"target_url":"`+k.handler.URL+`"}`)
}

// replayMany begins a bulk replay, whose counts must add up in the end.
func (k *soak) replayMany() {
	n := k.nodes[k.replays.Load()%int64(len(k.nodes))]
	var made struct{ Data struct{ ID string } }
	status, answer, err := n.call(n.token, http.MethodPost, "/endpoints/"+k.acting.endpoint+"/replay_batches", fmt.Sprintf(`{"target_url":%q,"rate":100,"query":"after:20s"}`, k.handler.URL))
	if err != nil || status/100 != 2 {
		return
	}
	decode(k.t, answer, &made)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.batches = append(k.batches, made.Data.ID)
}
