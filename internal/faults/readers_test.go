//go:build linux

package faults_test

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAStreamWhoseAnnouncementsAreCutOffMissesNothing(t *testing.T) {
	beside(t)
	a, b := twoNodes(t)
	l := a.endpoint()
	onB := b.follow(l.endpoint)
	admin, err := sql.Open("pgx", a.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	under := load{to: []*node{a}, ledger: l, conns: 8, rate: 400}.start()
	cut := 0
	for range pick(3, 30) {
		<-time.After(200 * time.Millisecond)
		var n int
		err := admin.QueryRow(`select count(pg_terminate_backend(pid)) from pg_stat_activity
			where datname = current_database() and query like 'LISTEN%' and pid <> pg_backend_pid()`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		cut += n
	}
	under.stop()
	if cut == 0 {
		t.Error("no listening connection was found to be cut off")
	}
	checkRefusals(t, l.all(), 8*time.Second, http.StatusOK)
	r := l.check(t, a)
	took := eventually(t, patience, "the whole stream", func() bool { return len(onB.seen()) >= r.stored })
	t.Logf("%d connections cut off; the stream was whole %v after the load: %v", cut, took, r)
}

func TestSlowReadersDoNotHoldUpCapture(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		n := s.serve()
		full, quiet := n.endpoint(), n.endpoint()
		load{to: []*node{n}, ledger: full, conns: 16}.until(t, pick(3000, 40_000))

		var readers sync.WaitGroup
		var answered, refused, gaveUp atomic.Int64
		ctx, quit := context.WithCancel(t.Context())
		for range pick(100, 200) {
			readers.Go(func() {
				for ctx.Err() == nil {
					// No event holds it: every body is looked through.
					status, err := n.search(ctx, full.endpoint)
					switch {
					case ctx.Err() != nil:
						return
					case err == nil && status == http.StatusOK:
						answered.Add(1)
					case err == nil && (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests):
						refused.Add(1)
					case err != nil:
						gaveUp.Add(1)
					default:
						t.Errorf("a search was answered %d", status)
						return
					}
				}
			})
		}
		load{to: []*node{n}, ledger: quiet, conns: 8, rate: 50}.during(pick(3*time.Second, 30*time.Second)) // what is known of an endpoint is read again meanwhile
		quit()
		readers.Wait()
		checkRefusals(t, quiet.all(), 8*time.Second, http.StatusOK)
		p99, count := percentile(quiet.all(), http.StatusOK, 0.99)
		t.Logf("%d searches of %d events answered, %d refused, %d given up after %v; %d captures meanwhile with p99 %v",
			answered.Load(), full.count(http.StatusOK), refused.Load(), gaveUp.Load(), searchLimit, count, p99)
	})
}

// searchLimit is when a reader gives up.
const searchLimit = 10 * time.Second

// search looks for what is nowhere.
func (n *node) search(ctx context.Context, endpoint string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, searchLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.addr+"/api/v1/endpoints/"+endpoint+"/requests?q=nowheretobefound", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+n.token)
	resp, err := plain.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
