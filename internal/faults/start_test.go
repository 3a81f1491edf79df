//go:build linux

package faults_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"hookglass/internal/store/storetest"
)

func TestNodesThatStartTogetherOnAnEmptyDatabase(t *testing.T) {
	beside(t)
	for range pick(1, 10) {
		s := &site{t: t, dir: t.TempDir(), dsn: storetest.Postgres(t)}
		nodes := []*node{s.node(), s.node(), s.node()}
		for _, n := range nodes {
			n.start()
		}
		for _, n := range nodes {
			n.ready(patience)
		}
		made := newSite(t, s.dir, s.dsn)
		for _, n := range nodes {
			n.token = made.token
			l := n.endpoint()
			load{to: nodes, ledger: l, conns: 6, rate: 200}.during(100 * time.Millisecond)
			checkRefusals(t, l.all(), 8*time.Second, http.StatusOK)
			l.check(t, nodes[0])
			n.kill()
			nodes = nodes[1:]
		}
	}
}

func TestKill9DuringTheFirstStart(t *testing.T) {
	beside(t)
	run := func(t *testing.T, s *site) {
		n := s.node()
		for range pick(5, 60) {
			n.start()
			<-time.After(between(0, 150*time.Millisecond))
			n.kill()
		}
		n.start()
		took := n.ready(patience)
		made := newSite(t, s.dir, s.dsn)
		n.token = made.token
		l := n.endpoint()
		load{to: []*node{n}, ledger: l, conns: 4, rate: 200}.during(200 * time.Millisecond)
		checkRefusals(t, l.all(), 8*time.Second, http.StatusOK)
		t.Logf("ready %v after the last start; %v", took, l.check(t, n))
	}
	t.Run("sqlite", func(t *testing.T) { run(t, &site{t: t, dir: filepath.Join(t.TempDir(), "new")}) })
	t.Run("postgres", func(t *testing.T) { run(t, &site{t: t, dir: t.TempDir(), dsn: storetest.Postgres(t)}) })
}
