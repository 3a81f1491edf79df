package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The goals of issue 5: action runs a second that are kept up.
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
	database            string
	goal                int
	captures            float64 // a second, while actions ran on them
	runs                float64 // a second, until the last had ended
	lag                 time.Duration
	p99Alone, p99Beside time.Duration
}

// measureActions captures at the rate of the goal, without an action and with one that runs on each event.
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
	l := load{conns: 64, warm: p.warm, time: p.time, rate: row.goal}
	alone, err := l.send(ctx, s.hook)
	if err != nil {
		return err
	}
	if err := s.call(ctx, http.MethodPost, "/tags", `{"tag":{"name":"bench"}}`, nil); err != nil {
		return err
	}
	if err := s.call(ctx, http.MethodPost, "/endpoints/"+s.endpoint+"/actions", benchAction, nil); err != nil {
		return err
	}
	began := time.Now()
	beside, err := l.send(ctx, s.hook)
	if err != nil {
		return err
	}
	captured := time.Now()
	if beside.failed+alone.failed > 0 {
		return fmt.Errorf("%d requests failed: %s%s", beside.failed+alone.failed, alone.firstFail, beside.firstFail)
	}
	var ended int64
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if ended, err = s.runsEnded(ctx); err != nil {
			return err
		}
		if ended >= beside.acked {
			tick.Stop()
			break
		}
		if time.Since(captured) > forwardLimit {
			return fmt.Errorf("%d of %d runs ended within %v", ended, beside.acked, forwardLimit)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	row.captures, row.p99Alone, row.p99Beside = beside.perSecond, alone.p99, beside.p99
	row.runs, row.lag = float64(ended)/time.Since(began).Seconds(), time.Since(captured)
	p.log("actions: %-10s %6.0f captures/s, p99 %v alone and %v beside %6.0f runs/s, the last ended %v after",
		database, row.captures, row.p99Alone, row.p99Beside, row.runs, row.lag)
	r.actions = append(r.actions, row)
	return nil
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
	fmt.Fprintf(b, "\n### Actions\n\nThe same requests at a fixed rate, first to an endpoint without an action, then with one of five steps, two of them transforms, that runs on\n"+
		"each event. Runs/s are over the time until the last had ended.\n\n")
	t := table{{"database", "captures/s", "p99 alone", "p99 beside runs", "ratio", "runs/s", "last after", "at the goal"}}
	for _, a := range r.actions {
		reached := "yes"
		if a.runs < 0.95*float64(a.goal) {
			reached = "no: " + thousands(int64(a.goal))
		}
		t = append(t, []string{title(a.database), thousands(int64(a.captures)), duration(a.p99Alone), duration(a.p99Beside), fmt.Sprintf("%.2f", float64(a.p99Beside)/float64(a.p99Alone)),
			thousands(int64(a.runs)), duration(a.lag), reached})
	}
	t.write(b)
}
