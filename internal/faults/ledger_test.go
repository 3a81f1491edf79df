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
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// answer is one request and what its sender was told.
type answer struct {
	number       int64 // of the request; its path and its body follow from it
	begun, ended time.Time
	status       int    // 0: none came
	id           string // of a 200
	retryAfter   bool
	err          error // why none came
}

// took is how long the sender waited while the machine ran.
func (a answer) took() time.Duration { return passed(a.begun, a.ended) }

// ledger holds all requests to one endpoint.
type ledger struct {
	endpoint string
	next     atomic.Int64 // number of the last request

	mu      sync.Mutex
	answers []answer

	checked map[string]bool // ids whose body was compared
}

func (l *ledger) note(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, a)
}

// all returns the answers so far.
func (l *ledger) all() []answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.answers)
}

// since waits until so many requests that were begun after a moment have been answered.
func (l *ledger) since(t *testing.T, moment time.Time, n int) {
	t.Helper()
	eventually(t, patience, "requests that were begun later", func() bool {
		later := 0
		for _, a := range l.all() {
			if a.begun.After(moment) && a.status != 0 {
				later++
			}
		}
		return later >= n
	})
}

func (l *ledger) count(status int) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.answers {
		if a.status == status {
			n++
		}
	}
	return n
}

// bodyOf is the body of a request: any bytes, mostly of the size of a webhook, now and then larger.
func bodyOf(number int64) []byte {
	r := rand.New(rand.NewPCG(uint64(number), 7))
	size := 100 + r.IntN(2000)
	if number%40 == 0 {
		size = 20_000 + r.IntN(60_000)
	}
	body := make([]byte, size)
	for i := 0; i < size; i += 8 {
		v := r.Uint64()
		for j := i; j < min(i+8, size); j++ {
			body[j] = byte(v)
			v >>= 8
		}
	}
	return body
}

// load is senders at work: each on a connection of its own that it keeps, waiting for an answer before it sends
// again.
type load struct {
	to     []*node
	ledger *ledger
	conns  int
	rate   int // requests a second over all connections; 0: as fast as answers come
}

// loading is a load under way.
type loading struct {
	stop func() // ends it, every request that was begun being waited for
}

func (l load) start() *loading {
	quit := make(chan struct{})
	var senders sync.WaitGroup
	tokens := make(chan struct{})
	if l.rate > 0 {
		senders.Go(func() {
			tick := time.NewTicker(time.Second / time.Duration(l.rate))
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-quit:
					return
				}
				select {
				case tokens <- struct{}{}:
				case <-quit:
					return
				}
			}
		})
	} else {
		close(tokens)
	}
	for i := range l.conns {
		s := &sender{addr: l.to[i%len(l.to)].addr, ledger: l.ledger}
		senders.Go(func() { s.run(tokens, quit) })
	}
	var once sync.Once
	return &loading{stop: func() { once.Do(func() { close(quit) }); senders.Wait() }}
}

// during runs the load for a time, and until there has been an answer.
func (l load) during(d time.Duration) {
	had := len(l.ledger.all())
	under := l.start()
	<-time.After(d)
	for began := time.Now(); len(l.ledger.all()) == had && time.Since(began) < patience; {
		<-time.After(10 * time.Millisecond)
	}
	under.stop()
}

// until runs the load until so many more requests have been acknowledged, however long the machine takes.
func (l load) until(t *testing.T, n int) {
	t.Helper()
	had := l.ledger.count(http.StatusOK)
	under := l.start()
	defer under.stop()
	limit := patience + time.Duration(n)*2*time.Millisecond
	eventually(t, limit, fmt.Sprintf("%d requests are acknowledged", n), func() bool { return l.ledger.count(http.StatusOK) >= had+n })
}

type sender struct {
	addr   string
	ledger *ledger
	conn   net.Conn
	in     *bufio.Reader
}

func (s *sender) run(tokens, quit <-chan struct{}) {
	defer s.hangUp()
	for {
		select {
		case <-quit:
			return
		default:
		}
		select {
		case <-tokens:
		case <-quit:
			return
		}
		a := s.send()
		s.ledger.note(a)
		if a.status != http.StatusOK {
			// A sender that was refused or cut off comes back a moment later.
			select {
			case <-time.After(20 * time.Millisecond):
			case <-quit:
				return
			}
		}
	}
}

func (s *sender) hangUp() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// answerLimit is when a sender gives up.
const answerLimit = time.Minute

// send sends the next request of the ledger.
func (s *sender) send() answer { return s.sendAs(s.ledger.next.Add(1)) }

func (s *sender) sendAs(number int64) (a answer) {
	a.number = number
	body := bodyOf(a.number)
	var head strings.Builder
	fmt.Fprintf(&head, "POST /hooks/%s/%d HTTP/1.1\r\nHost: %s\r\nContent-Type: application/octet-stream\r\n", s.ledger.endpoint, a.number, s.addr)
	request := make([]byte, 0, len(body)+300)
	if a.number%7 == 0 {
		head.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		request = append(request, head.String()...)
		for chunk := range slices.Chunk(body, 1000) {
			request = fmt.Appendf(request, "%x\r\n", len(chunk))
			request = append(append(request, chunk...), "\r\n"...)
		}
		request = append(request, "0\r\n\r\n"...)
	} else {
		fmt.Fprintf(&head, "Content-Length: %d\r\n\r\n", len(body))
		request = append(append(request, head.String()...), body...)
	}
	a.begun = time.Now()
	defer func() {
		a.ended = time.Now()
		if a.err != nil {
			s.hangUp()
		}
	}()
	if s.conn == nil {
		if s.conn, a.err = net.DialTimeout("tcp", s.addr, answerLimit); a.err != nil {
			s.conn = nil
			return a
		}
		s.in = bufio.NewReaderSize(s.conn, 4<<10)
	}
	if a.err = s.conn.SetDeadline(a.begun.Add(answerLimit)); a.err != nil {
		return a
	}
	if _, a.err = s.conn.Write(request); a.err != nil {
		return a
	}
	resp, err := http.ReadResponse(s.in, nil)
	if err != nil {
		a.err = err
		return a
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		a.err = err
		return a
	}
	a.status, a.retryAfter = resp.StatusCode, resp.Header.Get("Retry-After") != ""
	if a.status == http.StatusOK {
		var told struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(text, &told); err != nil || told.ID == "" {
			a.err = fmt.Errorf("a 200 without an id: %q", text)
			return a
		}
		a.id = told.ID
	}
	if resp.Close {
		s.hangUp()
	}
	return a
}

// stored is one event of a list.
type stored struct {
	ID   string `json:"id"`
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// list reads all events of the endpoint, the newest first, and the total that the first page named.
func (n *node) list(endpoint string) (events []stored, total int64) {
	n.t.Helper()
	cursor := ""
	for {
		var page struct {
			Data []stored `json:"data"`
			Meta struct {
				Total      int64   `json:"total"`
				NextCursor *string `json:"next_cursor"`
			} `json:"meta"`
		}
		n.api(http.MethodGet, "/endpoints/"+endpoint+"/requests?limit=100&ignored=any"+cursor, "", &page)
		if cursor == "" {
			total = page.Meta.Total
		}
		events = append(events, page.Data...)
		if page.Meta.NextCursor == nil {
			return events, total
		}
		cursor = "&cursor=" + url.QueryEscape(*page.Meta.NextCursor)
	}
}

// eventCount is what the endpoint's record says.
func (n *node) eventCount(endpoint string) int64 {
	n.t.Helper()
	var e struct {
		Data struct {
			EventCount int64 `json:"event_count"`
		} `json:"data"`
	}
	n.api(http.MethodGet, "/endpoints/"+endpoint, "", &e)
	return e.Data.EventCount
}

// tally is what a check of the ledger found.
type tally struct {
	sent, acked, stored int
	unsure              int // stored although no 200 reached the sender: permitted, and counted
	statuses            map[int]int
}

func (r tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d sent, %d acknowledged, %d stored, %d of them unacknowledged; answers", r.sent, r.acked, r.stored, r.unsure)
	statuses := make([]int, 0, len(r.statuses))
	for s := range r.statuses {
		statuses = append(statuses, s)
	}
	slices.Sort(statuses)
	for _, s := range statuses {
		fmt.Fprintf(&b, " %d:%d", s, r.statuses[s])
	}
	return b.String()
}

// check compares the ledger with what the node has stored: every acknowledged id with the body that was sent, no
// request twice, nothing that was not sent, and counters that agree. The load must have stopped.
func (l *ledger) check(t *testing.T, n *node) tally {
	t.Helper()
	r := tally{statuses: make(map[int]int)}
	acked := make(map[string]int64)
	for _, a := range l.all() {
		r.sent++
		r.statuses[a.status]++
		if a.status != http.StatusOK {
			continue
		}
		if other, twice := acked[a.id]; twice {
			t.Errorf("requests %d and %d were given the same id %s", a.number, other, a.id)
		}
		acked[a.id] = a.number
	}
	r.acked = len(acked)

	events, total := n.list(l.endpoint)
	r.stored = len(events)
	if count := n.eventCount(l.endpoint); total != int64(len(events)) || count != total {
		t.Errorf("the list holds %d events, its total says %d, the endpoint's event_count %d", len(events), total, count)
	}
	numbers := make(map[int64]string, len(events))
	var unread []stored
	for _, e := range events {
		number, err := strconv.ParseInt(strings.TrimPrefix(e.Path, "/"), 10, 64)
		if err != nil || number < 1 || number > l.next.Load() {
			t.Errorf("%s has the path %q, which nobody sent", e.ID, e.Path)
			continue
		}
		if other, twice := numbers[number]; twice {
			t.Errorf("request %d is stored twice: %s and %s", number, other, e.ID)
		}
		numbers[number] = e.ID
		if sent, ok := acked[e.ID]; ok {
			if sent != number {
				t.Errorf("%s was acknowledged to request %d and holds request %d", e.ID, sent, number)
			}
			delete(acked, e.ID)
		} else {
			r.unsure++
		}
		if !l.checked[e.ID] {
			unread = append(unread, e)
		}
	}
	lost := 0
	for id, number := range acked {
		if lost++; lost <= 5 {
			t.Errorf("LOST: request %d was acknowledged as %s and is not there", number, id)
		}
	}
	if lost > 0 {
		t.Errorf("%d acknowledged events of %d are lost", lost, r.acked)
	}
	l.compareBodies(t, n, unread)
	return r
}

// compareBodies reads the bodies of events and compares them with what was sent.
func (l *ledger) compareBodies(t *testing.T, n *node, events []stored) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	work := make(chan stored)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for e := range work {
				number, _ := strconv.ParseInt(strings.TrimPrefix(e.Path, "/"), 10, 64) // was parsed before
				body, err := n.body(client, l.endpoint, e.ID)
				if err != nil {
					t.Errorf("the body of %s: %v", e.ID, err)
				} else if want := bodyOf(number); !bytes.Equal(body, want) || e.Size != int64(len(want)) {
					t.Errorf("the body of %s (request %d) has %d bytes of SHA-256 %x, sent were %d of %x; its size says %d",
						e.ID, number, len(body), sha256.Sum256(body), len(want), sha256.Sum256(want), e.Size)
				}
			}
		})
	}
	for _, e := range events {
		work <- e
		l.checked[e.ID] = true
	}
	close(work)
	readers.Wait()
}

func (n *node) body(client *http.Client, endpoint, id string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+n.addr+"/api/v1/endpoints/"+endpoint+"/requests/"+id+"/body", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+n.token)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	return b, err
}

// percentile is the time below which that part of the answers of a status came, and how many there are.
func percentile(answers []answer, status int, q float64) (took time.Duration, n int) {
	var all []time.Duration
	for _, a := range answers {
		if a.status == status {
			all = append(all, a.took())
		}
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))], len(all)
}

// checkRefusals fails for an answer that is not among the allowed, for a 429 or 503 without Retry-After, and for
// one that came later than limit.
func checkRefusals(t *testing.T, answers []answer, limit time.Duration, allowed ...int) {
	t.Helper()
	faults := 0
	fault := func(format string, args ...any) {
		if faults++; faults <= 5 {
			t.Errorf(format, args...)
		}
	}
	for _, a := range answers {
		switch {
		case a.status == http.StatusServiceUnavailable && halts.between(a.begun, a.ended) > time.Second:
			// The time for storing was over while nothing ran.
		case !slices.Contains(allowed, a.status):
			fault("request %d was answered %d (%v)", a.number, a.status, a.err)
		case (a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable) && !a.retryAfter:
			fault("request %d was answered %d without Retry-After", a.number, a.status)
		case a.took() > limit:
			fault("request %d was answered %d after %v, the limit is %v", a.number, a.status, a.took(), limit)
		}
	}
	if faults > 5 {
		t.Errorf("and %d more", faults-5)
	}
}
