//go:build linux

package faults_test

import (
	"database/sql"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"hookglass/internal/store/storetest"
)

func TestKill9OfPostgreSQLLosesNothingAcknowledged(t *testing.T) {
	beside(t)
	c := storetest.NewCluster(t)
	n := newSite(t, t.TempDir(), database(t, c)).serve()
	l := n.endpoint()
	rounds := pick(2, 20)
	var slowest time.Duration
	for range rounds {
		under := load{to: []*node{n}, ledger: l, conns: 16, rate: 500}.start()
		<-time.After(between(200*time.Millisecond, 600*time.Millisecond))
		if err := c.Kill9(); err != nil {
			t.Fatal(err)
		}
		down := time.Now()
		<-time.After(pick(time.Second, 2*time.Second))
		l.since(t, down, 1)
		up := time.Now()
		if err := c.Restart(); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		eventually(t, patience, "captures again after PostgreSQL came back", func() bool {
			answers := l.all() // one at least, which was refused
			last := answers[len(answers)-1]
			return last.status == http.StatusOK && last.begun.After(up)
		})
		slowest = max(slowest, time.Since(back))
		under.stop()
		refused := 0
		for _, a := range l.all() {
			if a.begun.After(down) && a.ended.Before(up) {
				refused++
				if a.status != http.StatusServiceUnavailable {
					t.Errorf("while the database was down request %d was answered %d (%v)", a.number, a.status, a.err)
				}
			}
		}
		if refused == 0 {
			t.Error("nothing was sent while the database was down")
		}
		if r := l.check(t, n); t.Failed() {
			t.Fatal(r)
		}
	}
	checkRefusals(t, l.all(), 8*time.Second, http.StatusOK, http.StatusServiceUnavailable)
	t.Logf("%d kills: %v; captures again at most %v after PostgreSQL took connections", rounds, l.check(t, n), slowest)
}

func TestFrozenPostgreSQLIs503InTime(t *testing.T) {
	beside(t)
	c := storetest.NewCluster(t)
	n := newSite(t, t.TempDir(), database(t, c)).serve()
	l := n.endpoint()
	const rate = 100
	under := load{to: []*node{n}, ledger: l, conns: 10 * rate, rate: rate}.start() // enough to wait 8 s each
	<-time.After(time.Second)
	if err := c.Freeze(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Thaw() }) // before the cluster is stopped; a second time is no harm
	frozen := time.Now()
	var callers sync.WaitGroup
	if long() { // they wait longer than the short form freezes
		for _, path := range []string{"/auth/verify", "/endpoints", "/endpoints/" + l.endpoint + "/requests", "/events"} {
			callers.Go(func() {
				began := time.Now()
				status, _, err := n.call(n.token, http.MethodGet, path, "")
				if took := time.Since(began); err != nil || status != http.StatusServiceUnavailable || took > 18*time.Second {
					t.Errorf("GET %s while storage hangs: %d %v after %v", path, status, err, took)
				}
			})
		}
	}
	<-time.After(pick(10*time.Second, 30*time.Second))
	eventually(t, patience, "refusals", func() bool { return l.count(http.StatusServiceUnavailable) >= rate })
	if status, body, err := n.get("/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("healthz while storage hangs: %d %s %v", status, body, err)
	}
	if status, body, err := n.get("/readyz"); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("readyz while storage hangs: %d %s %v", status, body, err)
	}
	thawing := time.Now() // it answers before the call returns
	if err := c.Thaw(); err != nil {
		t.Fatal(err)
	}
	thawed := time.Now()
	<-time.After(5600 * time.Millisecond)
	l.since(t, thawed.Add(5*time.Second), rate/4)
	under.stop()
	callers.Wait()

	answers := l.all()
	checkRefusals(t, answers, 8*time.Second, http.StatusOK, http.StatusServiceUnavailable)
	var during, refused, late, after int
	var slowest, recovered time.Duration
	for _, a := range answers {
		switch {
		case a.begun.After(frozen) && a.ended.Before(thawing):
			during++
			slowest = max(slowest, a.took())
			if a.status == http.StatusOK {
				t.Errorf("request %d was begun and acknowledged while the storage could not write", a.number)
			}
		case a.begun.After(thawed.Add(5 * time.Second)):
			after++
			if a.status != http.StatusOK || a.took() > 3*time.Second {
				late++
			}
		}
		if a.status != http.StatusOK {
			refused++
			if a.begun.After(thawed) {
				recovered = max(recovered, a.begun.Sub(thawed))
			}
		}
	}
	if during < rate || after < rate/4 {
		t.Errorf("%d requests were begun and answered during the freeze, %d after it: too few to tell", during, after)
	}
	if late > 0 {
		t.Errorf("%d of %d requests that came 5 s after storage did again were refused or slow", late, after)
	}
	r := l.check(t, n)
	_, peak := n.memory()
	t.Logf("%v; refused after at most %v; the last refusal was begun %v after the thaw; memory peak %d MB; stored although refused: %d",
		r, slowest, recovered, peak>>20, r.unsure)
}

func TestPostgreSQLDownAtStartIsWaitedFor(t *testing.T) {
	beside(t)
	c := storetest.NewCluster(t)
	n := newSite(t, t.TempDir(), database(t, c)).serve()
	l := n.endpoint()
	n.kill()
	if err := c.Shutdown(); err != nil {
		t.Fatal(err)
	}
	n.start()
	if status, body, err := n.get("/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("healthz: %d %s %v", status, body, err)
	}
	if status, body, err := n.get("/readyz"); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("readyz: %d %s %v", status, body, err)
	}
	if status, body, err := n.call(n.token, http.MethodGet, "/endpoints", ""); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("the API: %d %s %v", status, body, err)
	}
	load{to: []*node{n}, ledger: l, conns: 2, rate: 50}.during(300 * time.Millisecond)
	checkRefusals(t, l.all(), 3*time.Second, http.StatusServiceUnavailable) // and not when the time for storing is over
	if len(l.all()) == 0 {
		t.Error("nothing was sent")
	}
	if err := c.Restart(); err != nil {
		t.Fatal(err)
	}
	took := n.ready(patience)
	load{to: []*node{n}, ledger: l, conns: 2, rate: 50}.during(300 * time.Millisecond)
	r := l.check(t, n)
	if r.acked == 0 || r.acked != r.stored {
		t.Error("captures do not work after PostgreSQL came up")
	}
	t.Logf("ready %v after PostgreSQL was; %v", took, r)
}

func TestPostgreSQLThatDoesNotWriteThrough(t *testing.T) {
	beside(t)
	c := storetest.NewCluster(t)
	s := newSite(t, t.TempDir(), database(t, c))
	admin, err := sql.Open("pgx", s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	run := func(text string) {
		t.Helper()
		if _, err := admin.Exec(text); err != nil {
			t.Fatal(err)
		}
	}

	// What role, database or the address say of synchronous_commit, the service's sessions have it on.
	run(`alter role hookglass set synchronous_commit = off`)
	run(`do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$`)
	whole := s.dsn
	for _, options := range []string{"", "&options=" + "-c%20synchronous_commit%3Doff", "&synchronous_commit=off"} {
		s.dsn = whole + options
		n := s.serve()
		if got := n.storageFacts()["synchronous_commit"]; got != "on" {
			t.Errorf("with %q: readyz says synchronous_commit = %q, want on", options, got)
		}
		n.kill()
	}
	s.dsn = whole

	run(`alter system set fsync = off`)
	run(`select pg_reload_conf()`)
	eventually(t, patience, "fsync off", func() bool {
		var v string
		return admin.QueryRow(`show fsync`).Scan(&v) == nil && v == "off"
	})
	n := s.serve()
	if got := n.storageFacts()["fsync"]; got != "off" {
		t.Errorf("readyz says fsync = %q, want off", got)
	}
	if !strings.Contains(n.log(), "level=WARN") || !strings.Contains(n.log(), "fsync off") {
		t.Errorf("nothing warns of it: %s", n.log())
	}
	doctor := exec.Command(program, append([]string{"doctor", "--json"}, s.storage(0)...)...)
	doctor.Env = environment()
	said, err := doctor.Output()
	if doctor.ProcessState.ExitCode() != 1 || !strings.Contains(string(said), "fsync is off") {
		t.Errorf("doctor: %v\n%s", err, said)
	}
}

// database makes an empty database on the cluster.
func database(t *testing.T, c *storetest.Cluster) string {
	t.Helper()
	dsn, err := c.CreateDatabase("")
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}
