package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The goals: forwards a second that are kept up.
const (
	forwardGoalSQLite   = 500
	forwardGoalPostgres = 2000
)

// forwardLimit is how long the last forward may take to arrive after the last capture.
const forwardLimit = 2 * time.Minute

// forwardRow is what the forward part found on one database.
type forwardRow struct {
	database   string
	goal       int
	rounds     []forwardRound
	twice      int64 // events that arrived again
	replayAdds time.Duration
}

// forwardRound is one load without a target and one with it.
type forwardRound struct {
	alone, beside outcome
	forwards      float64 // a second, until the last had arrived
	lag           time.Duration
	cpuAlone      float64 // µs of the service and its database for a capture
	cpuForward    float64 // and for a forward beyond it
}

func (f forwardRow) median(value func(forwardRound) float64) float64 {
	return medianOf(f.rounds, func(_ int, r forwardRound) float64 { return value(r) })
}

func (f forwardRow) medianTime(value func(forwardRound) time.Duration) time.Duration {
	return time.Duration(f.median(func(r forwardRound) float64 { return float64(value(r)) }))
}

// measureForward captures at the rate of the goal, without a target and with one by turns, and then replays.
func (p *plan) measureForward(ctx context.Context, dir, database string, r *report) (err error) {
	s, err := p.service(ctx, dir, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	to, err := startTarget(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.kill()) }()
	row := forwardRow{database: database, goal: forwardGoalSQLite}
	if database == postgres {
		row.goal = forwardGoalPostgres
	}
	var target struct {
		Data struct{ ID int64 }
	}
	if err := s.call(ctx, http.MethodPost, "/endpoints/"+s.endpoint+"/forwarding_targets", fmt.Sprintf(`{"forwarding_target":{"name":"bench","url":%q,"enabled":false}}`, to.url), &target); err != nil {
		return err
	}
	enable := func(on bool) error {
		return s.call(ctx, http.MethodPatch, fmt.Sprintf("/endpoints/%s/forwarding_targets/%d", s.endpoint, target.Data.ID), fmt.Sprintf(`{"forwarding_target":{"enabled":%t}}`, on), nil)
	}
	for range p.rounds {
		round, err := p.forwardRound(ctx, s, to, row.goal, enable)
		if err != nil {
			return err
		}
		row.rounds = append(row.rounds, round)
	}
	arrived, err := to.arrived(ctx)
	if err != nil {
		return err
	}
	row.twice = arrived.Hits - arrived.Events
	if row.replayAdds, err = p.replayAdds(ctx, s, to); err != nil {
		return err
	}
	p.log("forward: %-10s a replay adds %v", database, row.replayAdds)
	r.forwards = append(r.forwards, row)
	return nil
}

// forwardRound loads once without the target and once with it.
func (p *plan) forwardRound(ctx context.Context, s *service, to *target, rate int, enable func(bool) error) (round forwardRound, err error) {
	l := load{conns: 64, warm: p.warm, time: p.time, rate: rate}
	if err := p.disk.await(ctx, s.dir); err != nil {
		return round, err
	}
	before, err := to.arrived(ctx)
	if err != nil {
		return round, err
	}
	idle, err := s.spent()
	if err != nil {
		return round, err
	}
	if round.alone, err = l.send(ctx, s.hook); err != nil {
		return round, err
	}
	captures, err := s.spent()
	if err != nil {
		return round, err
	}
	if err := enable(true); err != nil {
		return round, err
	}
	if err := p.disk.await(ctx, s.dir); err != nil {
		return round, err
	}
	ready, err := s.spent()
	if err != nil {
		return round, err
	}
	began := time.Now()
	var captured, last time.Time
	err = p.profiled(ctx, s, "forward", func() (err error) {
		if round.beside, err = l.send(ctx, s.hook); err != nil {
			return err
		}
		captured = time.Now()
		last, err = to.await(ctx, before.Events+round.beside.acked)
		return err
	})
	if err != nil {
		return round, err
	}
	forwards, err := s.spent()
	if err != nil {
		return round, err
	}
	if n := round.beside.failed + round.alone.failed; n > 0 {
		return round, fmt.Errorf("%d requests failed: %s%s", n, round.alone.firstFail, round.beside.firstFail)
	}
	round.forwards, round.lag = float64(round.beside.acked)/last.Sub(began).Seconds(), max(0, last.Sub(captured))
	service, database := captures.minus(idle).each(round.alone.acked)
	serviceBeside, databaseBeside := forwards.minus(ready).each(round.beside.acked)
	round.cpuAlone, round.cpuForward = service+database, serviceBeside+databaseBeside-service-database
	p.log("forward: %-10s %6.0f captures/s, p50 %v alone and %v beside, p99 %v and %v; %6.0f forwards/s, the last %v after; µs of CPU of service and database: %.0f + %.0f for a capture, %.0f + %.0f with its forward",
		s.database, round.beside.perSecond, round.alone.p50, round.beside.p50, round.alone.p99, round.beside.p99, round.forwards, round.lag, service, database, serviceBeside, databaseBeside)
	return round, enable(false)
}

// replayAdds is what a replay takes longer than the same request made directly, by the medians of both made by turns.
func (p *plan) replayAdds(ctx context.Context, s *service, to *target) (time.Duration, error) {
	newest, err := s.list(ctx, map[string][]string{"limit": {"1"}})
	if err != nil {
		return 0, err
	}
	if len(newest.Data) == 0 {
		return 0, errors.New("no event to replay")
	}
	path, body := "/endpoints/"+s.endpoint+"/requests/"+newest.Data[0].ID+"/replay", fmt.Sprintf(`{"target_url":%q}`, to.url)
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: answerLimit} // a replay makes a connection of its own
	if err := p.disk.await(ctx, s.dir); err != nil {
		return 0, err
	}
	replayed, made := make([]time.Duration, 0, p.samples), make([]time.Duration, 0, p.samples)
	for range p.samples {
		began := time.Now()
		if err := s.call(ctx, http.MethodPost, path, body, nil); err != nil {
			return 0, err
		}
		replayed, began = append(replayed, time.Since(began)), time.Now()
		resp, err := direct.Post(to.url, "application/json", strings.NewReader(strings.Repeat("x", 1500)))
		if err != nil {
			return 0, err
		}
		if err := drain(resp.Body); err != nil {
			return 0, err
		}
		made = append(made, time.Since(began))
	}
	slices.Sort(replayed)
	slices.Sort(made)
	return quantile(replayed, 0.5) - quantile(made, 0.5), nil
}
