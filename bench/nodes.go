package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The goals.
const (
	quietP99Goal  = 250 * time.Millisecond // of an endpoint beside another that is flooded
	eraseP99Goal  = time.Second            // of captures while a large endpoint is erased
	nodesConns    = 64
	floodConns    = 256
	manyConns     = 512
	floodTimes    = 5  // the capacity, offered to the one endpoint
	quietRate     = 50 // captures a second of the other
	quietConns    = 8
	otherEndpoint = `{"endpoint":{"name":"beside"}}`
)

// nodesRow compares one node with two on one PostgreSQL: medians of the rounds.
type nodesRow struct {
	one, two, ratio float64 // captures a second, and the ratio within a round
	oneP99, twoP99  time.Duration
	conns           int
}

// quietRow is what an endpoint sees while something happens to another.
type quietRow struct {
	database string
	what     string
	alone    outcome
	beside   outcome
	goal     time.Duration
	note     string
}

// beside starts another node on the same database.
func (s *service) beside(ctx context.Context) (*service, error) {
	o := &service{database: s.database, binary: s.binary, dsn: s.dsn, token: s.token, endpoint: s.endpoint, keys: filepath.Join(s.dir, "data", "keys.json")}
	var err error
	if o.dir, err = os.MkdirTemp(filepath.Dir(s.dir), "node"); err != nil {
		return nil, err
	}
	if _, err := o.start(ctx); err != nil {
		return nil, errors.Join(err, o.remove())
	}
	o.hook = o.base + "/hooks/" + o.endpoint
	return o, nil
}

// measureNodes has two nodes on one PostgreSQL capture, one of them alone and both with as many connections together,
// in an order that is drawn. There are two generators of load either way: they take the processors that the nodes
// share.
func (p *plan) measureNodes(ctx context.Context, dir string, r *report) (err error) {
	s, err := p.service(ctx, dir, postgres)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	other, err := s.beside(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.remove()) }()
	var seen outcome
	for _, conns := range []int{nodesConns, floodConns, manyConns} {
		row, all, err := p.compareNodes(ctx, s, other, conns)
		if err != nil {
			return err
		}
		seen.acked, seen.unsure = seen.acked+all.acked, seen.unsure+all.unsure
		r.nodes = append(r.nodes, row)
	}
	return s.checkStored(ctx, 0, seen)
}

// compareNodes loads one node and both, and returns the medians and what was sent in all.
func (p *plan) compareNodes(ctx context.Context, s, other *service, conns int) (row nodesRow, seen outcome, err error) {
	var one, two []outcome
	for round := range p.rounds {
		var alone, halves outcome
		loads := []func() error{
			func() (err error) { alone, err = p.halves(ctx, s, s, conns); return err },
			func() (err error) { halves, err = p.halves(ctx, s, other, conns); return err },
		}
		if rand.IntN(2) == 1 { // by turns would keep time with the checkpoints of PostgreSQL, which then fall on one of the two
			slices.Reverse(loads)
		}
		for _, send := range loads {
			if err := errors.Join(p.disk.await(ctx, s.dir), send()); err != nil {
				return row, seen, err
			}
		}
		p.log("nodes: %d connections, round %d of %d: one node %.0f/s  p99 %v, two nodes %.0f/s  p99 %v", conns, round+1, p.rounds, alone.perSecond, alone.p99, halves.perSecond, halves.p99)
		one, two = append(one, alone), append(two, halves)
		for _, o := range []outcome{alone, halves} {
			seen.acked, seen.unsure, seen.failed = seen.acked+o.acked, seen.unsure+o.unsure, seen.failed+o.failed
		}
	}
	if seen.failed > 0 {
		return row, seen, fmt.Errorf("%d requests failed", seen.failed)
	}
	rate := func(_ int, o outcome) float64 { return o.perSecond }
	p99 := func(_ int, o outcome) float64 { return float64(o.p99) }
	return nodesRow{
		one: medianOf(one, rate), two: medianOf(two, rate), ratio: medianOf(two, func(i int, o outcome) float64 { return o.perSecond / one[i].perSecond }),
		oneP99: time.Duration(medianOf(one, p99)), twoP99: time.Duration(medianOf(two, p99)), conns: conns,
	}, seen, nil
}

// halves sends half of a load to one node and half to another, or the same, at the same time and sums up what came of
// it.
func (p *plan) halves(ctx context.Context, s, other *service, conns int) (sum outcome, err error) {
	var mu sync.Mutex
	var loads sync.WaitGroup
	for _, to := range []*service{s, other} {
		loads.Go(func() {
			o, e := p.capture(ctx, to.dir, to.hook, conns/2)
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, e)
			sum.acked, sum.unsure, sum.failed, sum.perSecond = sum.acked+o.acked, sum.unsure+o.unsure, sum.failed+o.failed, sum.perSecond+o.perSecond
			sum.p50, sum.p99 = max(sum.p50, o.p50), max(sum.p99, o.p99)
		})
	}
	loads.Wait()
	return sum, err
}

// other makes a second endpoint and returns its address.
func (s *service) other(ctx context.Context) (hook string, err error) {
	var made struct{ Data struct{ ID string } }
	err = s.call(ctx, http.MethodPost, "/endpoints", otherEndpoint, &made)
	return s.base + "/hooks/" + made.Data.ID, err
}

// quietly captures at a low rate at an address for a time.
func (p *plan) quietly(ctx context.Context, hook string, d time.Duration) (outcome, error) {
	return load{conns: quietConns, rate: quietRate, time: d}.send(ctx, hook)
}

// measureFlood floods one endpoint with several times what it can take, and times captures at another meanwhile.
func (p *plan) measureFlood(ctx context.Context, dir, database string, r *report) (err error) {
	s, err := p.service(ctx, dir, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	quiet, err := s.other(ctx)
	if err != nil {
		return err
	}
	capacity, err := load{conns: nodesConns, warm: p.warm, time: p.time}.send(ctx, s.hook)
	if err != nil {
		return err
	}
	row := quietRow{database: database, what: "another is flooded", goal: quietP99Goal}
	if row.alone, err = p.quietly(ctx, quiet, p.time); err != nil {
		return err
	}
	var flood outcome
	ended := make(chan error, 1)
	go func() {
		var err error
		flood, err = load{conns: floodConns, rate: floodTimes * int(capacity.perSecond), time: p.warm + 2*p.time}.send(ctx, s.hook)
		ended <- err
	}()
	wait(ctx, p.warm)
	if row.beside, err = p.quietly(ctx, quiet, 2*p.time); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return err
	}
	row.note = fmt.Sprintf("capacity %s/s; of the flood %s/s were taken, %s refused", thousands(int64(capacity.perSecond)), thousands(int64(flood.perSecond)), thousands(flood.failed))
	p.log("nodes: %s: beside a flood p99 %v, alone %v; %s", database, row.beside.p99, row.alone.p99, row.note)
	r.quiets = append(r.quiets, row)
	return nil
}

// measureErase deletes all that the endpoint holds, and times captures at another until some time after.
func (p *plan) measureErase(ctx context.Context, s *service, r *report) error {
	events, err := s.stored(ctx)
	if err != nil {
		return err
	}
	quiet, err := s.other(ctx)
	if err != nil {
		return err
	}
	row := quietRow{database: s.database, what: "destroy_all of " + thousands(events) + " events", goal: eraseP99Goal}
	if row.alone, err = p.quietly(ctx, quiet, min(p.time, p.quiet)); err != nil {
		return err
	}
	var took time.Duration
	ended := make(chan error, 1)
	go func() {
		wait(ctx, p.settle/5)
		began := time.Now()
		err := s.call(ctx, http.MethodDelete, "/endpoints/"+s.endpoint+"/requests/destroy_all", "", nil)
		took = time.Since(began)
		ended <- err
	}()
	if row.beside, err = p.quietly(ctx, quiet, p.quiet+p.settle/5); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return err
	}
	if left, err := s.stored(ctx); err != nil || left != 0 {
		return errors.Join(err, fmt.Errorf("%d events are left of what was deleted", left))
	}
	row.note = "answered after " + duration(took)
	p.log("nodes: %s: %s: p99 %v, before %v; %s", s.database, row.what, row.beside.p99, row.alone.p99, row.note)
	r.quiets = append(r.quiets, row)
	return nil
}

func (r *report) writeNodes(b *strings.Builder) {
	if len(r.nodes) == 0 && len(r.quiets) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Nodes and neighbours\n")
	if len(r.nodes) > 0 {
		fmt.Fprintf(b, "\nTwo nodes on one PostgreSQL, one of them loaded alone and both with as many connections together, in an order that is drawn; medians of %d rounds of %v.\n"+
			"Two are to capture as many a second as one: all share the machine's cores.\n\n", r.plan.rounds, r.plan.time)
		t := table{{"connections", "one node", "p99", "two nodes", "p99", "ratio (goal 1.0)"}}
		for _, n := range r.nodes {
			t = append(t, []string{fmt.Sprint(n.conns), thousands(int64(n.one)) + "/s", duration(n.oneP99), thousands(int64(n.two)) + "/s", duration(n.twoP99), fmt.Sprintf("%.2f", n.ratio)})
		}
		t.write(b)
	}
	if len(r.quiets) > 0 {
		fmt.Fprintf(b, "\nWhat an endpoint with %d captures a second sees of what happens to another.\n\n", quietRate)
		t := table{{"database", "meanwhile", "p99 alone", "p50", "p99", "goal", "captures", "failed", ""}}
		for _, q := range r.quiets {
			t = append(t, []string{title(q.database), q.what, duration(q.alone.p99), duration(q.beside.p50), duration(q.beside.p99), duration(q.goal),
				thousands(q.beside.acked), thousands(q.beside.failed), q.note})
		}
		t.write(b)
	}
}
