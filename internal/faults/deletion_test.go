//go:build linux

package faults_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

func TestDestroyAllDuringCapture(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		n := s.serve()
		l := n.endpoint()
		for range pick(2, 20) {
			had := l.count(http.StatusOK)
			under := load{to: []*node{n}, ledger: l, conns: 8, rate: 400}.start()
			eventually(t, patience, "the first captures", func() bool { return l.count(http.StatusOK) > had })
			<-time.After(between(200*time.Millisecond, 400*time.Millisecond))
			called := time.Now()
			var answer struct {
				Data struct {
					Deleted int `json:"deleted"`
				} `json:"data"`
			}
			n.api(http.MethodDelete, "/endpoints/"+l.endpoint+"/requests/destroy_all", "", &answer)
			done := time.Now()
			<-time.After(200 * time.Millisecond)
			l.since(t, done, 1)
			under.stop()
			checkRefusals(t, l.all(), 8*time.Second, http.StatusOK)

			events, total := n.list(l.endpoint)
			if count := n.eventCount(l.endpoint); total != int64(len(events)) || count != total {
				t.Errorf("the list holds %d events, its total says %d, the endpoint's event_count %d", len(events), total, count)
			}
			left := make(map[string]bool, len(events))
			for _, e := range events {
				left[e.ID] = true
			}
			var before, after, between int
			for _, a := range l.all() {
				switch {
				case a.ended.Before(called):
					if before++; left[a.id] {
						t.Errorf("%s was acknowledged before the deletion was asked for, and is still there", a.id)
					}
				case a.begun.After(done):
					if after++; !left[a.id] {
						t.Errorf("%s was captured after the deletion was answered, and is gone", a.id)
					}
				default:
					between++
				}
			}
			if before == 0 || after == 0 || answer.Data.Deleted == 0 {
				t.Errorf("%d captures before, %d after, %d deleted: too few to tell", before, after, answer.Data.Deleted)
			}
			t.Logf("%d before, %d while it ran, %d after; %d deleted in %v", before, between, after, answer.Data.Deleted, done.Sub(called))
		}
	})
}

func TestDeletingALargeEndpointDoesNotStopCapture(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *site) {
		n := s.serve()
		large, other := n.endpoint(), n.endpoint()
		load{to: []*node{n}, ledger: large, conns: 32}.until(t, pick(3000, 100_000))
		under := load{to: []*node{n}, ledger: other, conns: 8, rate: 100}.start()
		alsoLarge := load{to: []*node{n}, ledger: large, conns: 4, rate: 50}.start()
		<-time.After(500 * time.Millisecond)
		called := time.Now()
		n.api(http.MethodDelete, "/endpoints/"+large.endpoint, "", nil)
		done := time.Now()

		count := n.rowCounter()
		erased := eventually(t, 2*time.Minute, "the rows of the endpoint are erased", func() bool {
			return count("SELECT count(*) FROM endpoints WHERE id = '"+large.endpoint+"'") == 0
		})
		alsoLarge.stop()
		under.stop()
		r := other.check(t, n)
		checkRefusals(t, other.all(), 8*time.Second, http.StatusOK)
		for _, a := range large.all() {
			if a.begun.After(done) && a.status != http.StatusNotFound {
				t.Errorf("%v after the deletion was answered a request was answered %d", a.begun.Sub(done), a.status)
			}
		}
		if events, payloads := count("SELECT count(*) FROM events"), count("SELECT count(*) FROM payloads"); events != r.stored || payloads != r.stored {
			t.Errorf("%d rows of events and %d of payloads are left, want %d", events, payloads, r.stored)
		}
		var quiet, busy []answer
		for _, a := range other.all() {
			if a.begun.Before(called) {
				quiet = append(quiet, a)
			} else if a.begun.Before(called.Add(done.Sub(called) + erased)) {
				busy = append(busy, a)
			}
		}
		p99Quiet, _ := percentile(quiet, http.StatusOK, 0.99)
		p99Busy, n99 := percentile(busy, http.StatusOK, 0.99)
		t.Logf("%d events: deleted in %v, erased %v later; p99 of another endpoint %v before, %v meanwhile (%d requests)",
			large.count(http.StatusOK), done.Sub(called), erased, p99Quiet, p99Busy, n99)
	})
}

// rowCounter counts rows in the node's database, past the service.
func (n *node) rowCounter() func(query string) int {
	n.t.Helper()
	driver, address := "pgx", n.dsn
	if n.dsn == "" {
		driver, address = "sqlite", "file:"+filepath.Join(n.data(n.n), "hookglass.db")+"?mode=ro&_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { db.Close() })
	return func(query string) (count int) {
		n.t.Helper()
		if err := db.QueryRow(query).Scan(&count); err != nil {
			n.t.Fatal(err)
		}
		return count
	}
}
