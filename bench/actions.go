package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The goals: action runs a second that are kept up.
const (
	runGoalSQLite   = 300
	runGoalPostgres = 1500
)

// benchAction has five steps, two of them transforms, and sends nothing: what is measured is the service.
const benchAction = `{"endpoint_action":{"name":"bench","conditions":[{"field":"http_method","operator":"equals","value":"POST"}],"steps":[
	{"step_type":"transform","name":"shape","config":{"source":"request","operations":[{"op":"select","path":"/headers"},{"op":"set","path":"/method","from":"/request/method"},{"op":"wrap","key":"event"}]}},
	{"step_type":"transform","name":"narrow","config":{"source":"steps.shape","operations":[{"op":"pick","fields":{"method":"/output/event/method"}}]}},
	{"step_type":"tag","name":"mark","config":{"tag":"bench"}},
	{"step_type":"tag","name":"again","config":{"tag":"bench"},"conditions":[{"source":"steps.narrow","path":"/output/method","operator":"equals","value":"POST"}]},
	{"step_type":"tag","name":"never","config":{"tag":"bench"},"conditions":[{"source":"steps.narrow","path":"/output/method","operator":"equals","value":"PUT"}]}]}}`

// actionRow is what the action part found on one database.
type actionRow struct {
	database string
	goal     int
	rounds   []actionRound
}

// actionRound is one load without an action and one with it.
type actionRound struct {
	alone, beside outcome
	runs          float64 // a second, until the last had ended
	lag           time.Duration
	// Microseconds of processor time: of a capture, and of a run beyond that of its capture.
	captureOwn, captureDatabase float64
	runOwn, runDatabase         float64
}

func (a actionRow) median(value func(actionRound) float64) float64 {
	return medianOf(a.rounds, func(_ int, r actionRound) float64 { return value(r) })
}

func (a actionRow) medianTime(value func(actionRound) time.Duration) time.Duration {
	return time.Duration(a.median(func(r actionRound) float64 { return float64(value(r)) }))
}

// measureActions captures at the rate of the goal, without an action and with one that runs on each event, by turns.
func (p *plan) measureActions(ctx context.Context, dir, database string, r *report) (err error) {
	s, err := p.service(ctx, dir, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	row := actionRow{database: database, goal: runGoalSQLite}
	if database == postgres {
		row.goal = runGoalPostgres
	}
	if err := s.call(ctx, http.MethodPost, "/tags", `{"tag":{"name":"bench"}}`, nil); err != nil {
		return err
	}
	var made struct {
		Data struct{ ID string }
	}
	if err := s.call(ctx, http.MethodPost, "/endpoints/"+s.endpoint+"/actions", benchAction, &made); err != nil {
		return err
	}
	enable := func(on bool) error {
		return s.call(ctx, http.MethodPatch, "/endpoints/"+s.endpoint+"/actions/"+made.Data.ID, fmt.Sprintf(`{"endpoint_action":{"enabled":%t}}`, on), nil)
	}
	if err := enable(false); err != nil {
		return err
	}
	for i := range p.rounds {
		round, err := p.actionRound(ctx, s, row.goal, enable)
		if err != nil {
			return err
		}
		row.rounds = append(row.rounds, round)
		p.log("actions: %-10s round %d of %d: %6.0f captures/s, p50 %v alone and %v beside, p99 %v and %v; %6.0f runs/s, the last %v after; CPU of a run %.0f and of its database %.0f µs, of a capture %.0f and %.0f",
			database, i+1, p.rounds, round.beside.perSecond, round.alone.p50, round.beside.p50, round.alone.p99, round.beside.p99, round.runs, round.lag,
			round.runOwn, round.runDatabase, round.captureOwn, round.captureDatabase)
	}
	r.actions = append(r.actions, row)
	return nil
}

// actionRound loads once without the action and once with it.
func (p *plan) actionRound(ctx context.Context, s *service, rate int, enable func(bool) error) (round actionRound, err error) {
	l := load{conns: 64, warm: p.warm, time: p.time, rate: rate}
	before, err := s.runsEnded(ctx)
	if err != nil {
		return round, err
	}
	if err := p.disk.await(ctx, s.dir); err != nil {
		return round, err
	}
	start, err := s.spent()
	if err != nil {
		return round, err
	}
	if round.alone, err = l.send(ctx, s.hook); err != nil {
		return round, err
	}
	captured, err := s.spent()
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
	var began, ended time.Time
	err = p.profiled(ctx, s, "actions", func() (err error) {
		began = time.Now()
		if round.beside, err = l.send(ctx, s.hook); err != nil {
			return err
		}
		last := time.Now()
		ended, err = s.awaitRuns(ctx, before+round.beside.acked)
		round.lag = max(0, ended.Sub(last))
		return err
	})
	if err != nil {
		return round, err
	}
	ran, err := s.spent()
	if err != nil {
		return round, err
	}
	if n := round.beside.failed + round.alone.failed; n > 0 {
		return round, fmt.Errorf("%d requests failed: %s%s", n, round.alone.firstFail, round.beside.firstFail)
	}
	round.runs = float64(round.beside.acked) / ended.Sub(began).Seconds()
	round.captureOwn, round.captureDatabase = captured.minus(start).each(round.alone.acked)
	round.runOwn, round.runDatabase = ran.minus(ready).each(round.beside.acked)
	round.runOwn, round.runDatabase = round.runOwn-round.captureOwn, round.runDatabase-round.captureDatabase
	return round, enable(false)
}

// awaitRuns waits until so many runs have ended and returns when the last did, as the newest of them tell.
func (s *service) awaitRuns(ctx context.Context, runs int64) (last time.Time, err error) {
	tick := time.NewTicker(100 * time.Millisecond) // each look costs the service a scan of the last minutes
	defer tick.Stop()
	for began := time.Now(); ; {
		ended, err := s.runsEnded(ctx)
		if err != nil {
			return last, err
		}
		if ended >= runs {
			break
		}
		if time.Since(began) > forwardLimit {
			return last, fmt.Errorf("%d of %d runs ended within %v", ended, runs, forwardLimit)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last, ctx.Err()
		}
	}
	var newest struct {
		Data []struct {
			FinishedAt time.Time `json:"finished_at"`
		}
	}
	err = s.call(ctx, http.MethodGet, "/endpoints/"+s.endpoint+"/action_runs?limit=100", "", &newest)
	for _, r := range newest.Data {
		if r.FinishedAt.After(last) {
			last = r.FinishedAt
		}
	}
	return last, err
}

// runsEnded is the number of the endpoint's runs that completed, as its metrics tell. One that did not is an error.
func (s *service) runsEnded(ctx context.Context) (int64, error) {
	var m struct {
		Data struct {
			Actions struct {
				RunsByStatus map[string]int64 `json:"runs_by_status"`
			} `json:"actions"`
		} `json:"data"`
	}
	if err := s.call(ctx, http.MethodGet, "/endpoints/"+s.endpoint+"/metrics?window=24h&step=1h", "", &m); err != nil {
		return 0, err
	}
	runs := m.Data.Actions.RunsByStatus
	if runs["failed"]+runs["stopped"] > 0 {
		return 0, fmt.Errorf("runs that did not complete: %v", runs)
	}
	return runs["completed"], nil
}

func (r *report) writeActions(b *strings.Builder) {
	if len(r.actions) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Actions\n\nThe same requests at a fixed rate, without an action and with one of five steps, two of them transforms, that runs on each event, by turns.\n"+
		"Runs/s are over the time until the last had ended. Medians of %d rounds of %v a load, of ratios those within a round. The processor time of a run is that\n"+
		"of the service and its database beside runs, less that of the captures alone.\n\n", r.plan.rounds, r.plan.time)
	t := table{{"database", "captures/s", "p99 alone", "p99 beside runs", "ratio", "p50 ratio", "runs/s", "last after", "CPU a capture", "CPU a run", "at the goal"}}
	for _, a := range r.actions {
		reached := "yes"
		runs := a.median(func(r actionRound) float64 { return r.runs })
		if runs < 0.95*float64(a.goal) {
			reached = "no: " + thousands(int64(a.goal))
		}
		t = append(t, []string{
			title(a.database), thousands(int64(a.median(func(r actionRound) float64 { return r.beside.perSecond }))),
			duration(a.medianTime(func(r actionRound) time.Duration { return r.alone.p99 })), duration(a.medianTime(func(r actionRound) time.Duration { return r.beside.p99 })),
			fmt.Sprintf("%.2f", a.median(func(r actionRound) float64 { return float64(r.beside.p99) / float64(r.alone.p99) })),
			fmt.Sprintf("%.2f", a.median(func(r actionRound) float64 { return float64(r.beside.p50) / float64(r.alone.p50) })),
			thousands(int64(runs)), duration(a.medianTime(func(r actionRound) time.Duration { return r.lag })),
			fmt.Sprintf("%.0f µs", a.median(func(r actionRound) float64 { return r.captureOwn + r.captureDatabase })),
			fmt.Sprintf("%.0f µs", a.median(func(r actionRound) float64 { return r.runOwn + r.runDatabase })), reached,
		})
	}
	t.write(b)
}
