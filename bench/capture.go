package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// noop is the name of the ceiling in the report.
const noop = "net/http, no-op"

// choosyAction has a task written with each event, and worked meanwhile, which finds that no condition holds.
const choosyAction = `{"endpoint_action":{"name":"choosy","conditions":[{"field":"http_method","operator":"equals","value":"PUT"}],"steps":[{"step_type":"ignore","name":"ignore","config":{}}]}}`

// system is one thing that is loaded in turns with others.
type system struct {
	name    string
	url     string   // of a mail server: host:port
	to      string   // of a mail server: the recipient
	service *service // nil: not ours
	seen    outcome  // of all loads together
}

// captureRow is what the capture part found for one system at one number of connections: medians of the rounds.
type captureRow struct {
	system    string
	conns     int
	perSecond float64
	ratio     float64 // to the no-op of the same round
	p50, p99  time.Duration
	p99Ratio  float64
	failed    int64
}

// measureCapture loads the systems one after another, round by round, so that a noisy machine is noisy for all of them.
func (p *plan) measureCapture(ctx context.Context, dir string, r *report) (err error) {
	ceiling, err := startNoop(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ceiling.kill()) }()
	systems := []*system{{name: noop, url: ceiling.base + "/hooks/ep_noop"}}
	for _, database := range p.databases {
		s, err := p.service(ctx, dir, database)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.remove()) }()
		systems = append(systems, &system{name: "hookglass, " + title(database), url: s.hook, service: s})
		tasked, err := p.service(ctx, dir, database)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tasked.remove()) }()
		if err := tasked.call(ctx, http.MethodPost, "/endpoints/"+tasked.endpoint+"/actions", choosyAction, nil); err != nil {
			return err
		}
		systems = append(systems, &system{name: "hookglass, " + title(database) + ", a task each", url: tasked.hook, service: tasked})
	}
	for _, peer := range p.peers {
		systems = append(systems, &system{name: peer.name, url: peer.url})
	}
	for _, conns := range p.conns {
		rounds, err := p.inTurns(ctx, dir, fmt.Sprintf("capture, %d connections", conns), systems, func(s *system) (outcome, error) { return p.capture(ctx, dir, s.url, conns) })
		if err != nil {
			return err
		}
		for i, s := range systems {
			r.captures = append(r.captures, captureMedians(s.name, conns, rounds[i], rounds[0]))
		}
	}
	for _, s := range systems {
		if s.service == nil {
			continue
		}
		if err := s.service.checkStored(ctx, 0, s.seen); err != nil {
			return err
		}
		r.checked = append(r.checked, fmt.Sprintf("%s: acknowledged %s events and holds them all", s.name, thousands(s.seen.acked)))
	}
	return nil
}

// inTurns loads each system once in each round, and returns the outcomes of each. what says what is measured.
func (p *plan) inTurns(ctx context.Context, dir, what string, systems []*system, load func(*system) (outcome, error)) ([][]outcome, error) {
	rounds := make([][]outcome, len(systems))
	for round := range p.rounds {
		for i, s := range systems {
			if err := p.disk.await(ctx, dir); err != nil {
				return nil, err
			}
			o, err := load(s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			p.log("%s: round %d of %d, %-22s %8.0f/s  p50 %v  p99 %v", what, round+1, p.rounds, s.name, o.perSecond, o.p50, o.p99)
			if o.failed > 0 {
				p.log("%s: %s: %d failed: %s", what, s.name, o.failed, o.firstFail)
			}
			rounds[i] = append(rounds[i], o)
			s.seen.acked += o.acked
			s.seen.unsure += o.unsure
			s.seen.failed += o.failed
		}
	}
	return rounds, nil
}

// captureMedians sums up the rounds of one system next to those of the ceiling.
func captureMedians(name string, conns int, rounds, ceiling []outcome) captureRow {
	row := captureRow{system: name, conns: conns}
	row.perSecond = medianOf(rounds, func(_ int, o outcome) float64 { return o.perSecond })
	row.ratio = medianOf(rounds, func(i int, o outcome) float64 { return o.perSecond / ceiling[i].perSecond })
	row.p50 = time.Duration(medianOf(rounds, func(_ int, o outcome) float64 { return float64(o.p50) }))
	row.p99 = time.Duration(medianOf(rounds, func(_ int, o outcome) float64 { return float64(o.p99) }))
	row.p99Ratio = medianOf(rounds, func(i int, o outcome) float64 { return float64(o.p99) / float64(ceiling[i].p99) })
	for _, o := range rounds {
		row.failed += o.failed
	}
	return row
}

func medianOf[R any](rounds []R, value func(int, R) float64) float64 {
	var all []float64
	for i, o := range rounds {
		all = append(all, value(i, o))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
