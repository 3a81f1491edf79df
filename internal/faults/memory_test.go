//go:build linux

package faults_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the service may hold.
const (
	idleLimit   = 60 << 20
	loadedLimit = 512 << 20
)

// The bodies go to memory where there is room for them: what is tried is what the service holds, not the disk.
func TestManyLargeBodiesAtOnceStayInMemory(t *testing.T) {
	for _, kind := range pick([]string{"sqlite"}, []string{"sqlite", "postgres"}) {
		t.Run(kind, func(t *testing.T) {
			if kind == "postgres" {
				largeBodies(t, postgresSite(t))
				return
			}
			dir := t.TempDir()
			if fast, err := os.MkdirTemp("/dev/shm", "hookglass-faults"); err == nil {
				dir = fast
				t.Cleanup(func() { os.RemoveAll(fast) })
			}
			largeBodies(t, sqliteSite(t, dir))
		})
	}
}

func largeBodies(t *testing.T, s *site) {
	const (
		senders = 100
		size    = 10 << 20
	)
	n := s.serve()
	// What starting took is given back after a moment.
	idle, _ := n.memory()
	for deadline := time.Now().Add(patience); idle > idleLimit && time.Now().Before(deadline); idle, _ = n.memory() {
		time.Sleep(100 * time.Millisecond)
	}
	if idle > idleLimit {
		t.Errorf("idle it holds %d MB, the limit is %d MB", idle>>20, idleLimit>>20)
	}
	l := n.endpoint()
	rest := make([]byte, size-8)
	for i, r := 0, rand.New(rand.NewPCG(1, 2)); i < len(rest); i++ {
		rest[i] = byte(r.Uint32())
	}
	body := func(number int64) []byte { return append(fmt.Appendf(nil, "%08d", number), rest...) }

	began := time.Now()
	var all sync.WaitGroup
	for i := range senders {
		all.Go(func() { l.note(sendLarge(n, l.endpoint, int64(i+1), rest)) })
	}
	all.Wait()
	took := time.Since(began)
	after, peak := n.memory()
	checkRefusals(t, l.all(), time.Minute+answerLimit, http.StatusOK, http.StatusServiceUnavailable)
	if peak > loadedLimit {
		t.Errorf("it held %d MB, the limit is %d MB", peak>>20, loadedLimit>>20)
	}

	events, _ := n.list(l.endpoint)
	there := make(map[string]stored, len(events))
	for _, e := range events {
		there[e.ID] = e
	}
	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	acked := 0
	for _, a := range l.all() {
		if a.status != http.StatusOK {
			continue
		}
		if acked++; there[a.id].Size != size {
			t.Errorf("request %d was acknowledged as %s, which holds %d bytes", a.number, a.id, there[a.id].Size)
			continue
		}
		if acked%10 == 0 { // reading them all would take longer than sending them
			got, err := n.body(client, l.endpoint, a.id)
			if err != nil || !bytes.Equal(got, body(a.number)) {
				t.Errorf("request %d is stored with SHA-256 %x, sent was %x (%v)", a.number, sha256.Sum256(got), sha256.Sum256(body(a.number)), err)
			}
		}
	}
	if acked == 0 {
		t.Error("none was acknowledged")
	}
	if long() {
		given := eventually(t, time.Minute, "the memory is given back", func() bool { now, _ := n.memory(); return now < loadedLimit/3 })
		t.Logf("memory below %d MB after %v", loadedLimit/3>>20, given)
	}
	p99, _ := percentile(l.all(), http.StatusOK, 0.99)
	t.Logf("%d of %d bodies of 10 MiB acknowledged in %v (p99 %v), %d refused; memory idle %d MB, peak %d MB, right after %d MB",
		acked, senders, took, p99, l.count(http.StatusServiceUnavailable), idle>>20, peak>>20, after>>20)
}

// sendLarge sends one body: the number in eight digits and the rest.
func sendLarge(n *node, endpoint string, number int64, rest []byte) (a answer) {
	a = answer{number: number, begun: time.Now()}
	defer func() { a.ended = time.Now() }()
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		a.err = err
		return a
	}
	defer conn.Close()
	if a.err = conn.SetDeadline(a.begun.Add(3 * time.Minute)); a.err != nil {
		return a
	}
	go func() { // a refusal may come while the body is on its way
		fmt.Fprintf(conn, "POST /hooks/%s/%d HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%08d", endpoint, number, n.addr, 8+len(rest), number)
		_, _ = conn.Write(rest)
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		a.err = err
		return a
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.err = err
		return a
	}
	a.status, a.retryAfter = resp.StatusCode, resp.Header.Get("Retry-After") != ""
	var told struct {
		ID string `json:"id"`
	}
	if a.status == http.StatusOK {
		if a.err = json.NewDecoder(strings.NewReader(string(text))).Decode(&told); a.err == nil {
			a.id = told.ID
		}
	}
	return a
}
