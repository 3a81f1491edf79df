package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// The goals of issue 4: forwards a second that are kept up.
const (
	forwardGoalSQLite   = 500
	forwardGoalPostgres = 2000
)

// forwardLimit is how long the last forward may take to arrive after the last capture.
const forwardLimit = 2 * time.Minute

// forwardRow is what the forward part found on one database.
type forwardRow struct {
	database            string
	goal                int
	captures            float64 // a second, while they were forwarded
	forwards            float64 // a second, until the last had arrived
	lag                 time.Duration
	twice               int64 // events that arrived again
	p99Alone, p99Beside time.Duration
	replayAdds          time.Duration
}

// sink is a target that answers at once and counts the events that arrive.
type sink struct {
	url  string
	mu   sync.Mutex
	seen map[string]bool
	hits int64
	last time.Time
}

func startSink() (*sink, func() error, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	s := &sink{url: "http://" + l.Addr().String() + "/", seen: make(map[string]bool)}
	server := &http.Server{Handler: s, ReadHeaderTimeout: answerLimit}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return s, func() error {
		if err := server.Close(); err != nil {
			return err
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, nil
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the sender is gone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hits++
	s.seen[r.Header.Get("X-Service-Original-Request")] = true
	s.last = time.Now()
}

func (s *sink) counts() (events, hits int64, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.seen)), s.hits, s.last
}

// measureForward captures at the rate of the goal, without a target and with one, and then replays.
func (p *plan) measureForward(ctx context.Context, dir, database string, r *report) (err error) {
	s, err := p.service(ctx, dir, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	to, stop, err := startSink()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	row := forwardRow{database: database, goal: forwardGoalSQLite}
	if database == postgres {
		row.goal = forwardGoalPostgres
	}
	l := load{conns: 64, warm: p.warm, time: p.time, rate: row.goal}
	alone, err := l.send(ctx, s.hook)
	if err != nil {
		return err
	}
	if err := s.call(ctx, http.MethodPost, "/endpoints/"+s.endpoint+"/forwarding_targets", fmt.Sprintf(`{"forwarding_target":{"name":"bench","url":%q}}`, to.url), nil); err != nil {
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
	arrived, hits, last := to.counts()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for arrived < beside.acked {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if time.Since(captured) > forwardLimit {
			return fmt.Errorf("%d of %d events arrived within %v", arrived, beside.acked, forwardLimit)
		}
		arrived, hits, last = to.counts()
	}
	row.captures, row.p99Alone, row.p99Beside = beside.perSecond, alone.p99, beside.p99
	row.forwards, row.lag, row.twice = float64(arrived)/last.Sub(began).Seconds(), max(0, last.Sub(captured)), hits-arrived
	if row.replayAdds, err = p.replayAdds(ctx, s, to); err != nil {
		return err
	}
	p.log("forward: %-10s %6.0f captures/s, p99 %v alone and %v beside %6.0f forwards/s, the last %v after; a replay adds %v",
		database, row.captures, row.p99Alone, row.p99Beside, row.forwards, row.lag, row.replayAdds)
	r.forwards = append(r.forwards, row)
	return nil
}

// replayAdds is what a replay takes longer than the same request made directly, by the medians.
func (p *plan) replayAdds(ctx context.Context, s *service, to *sink) (time.Duration, error) {
	newest, err := s.list(ctx, map[string][]string{"limit": {"1"}})
	if err != nil {
		return 0, err
	}
	if len(newest.Data) == 0 {
		return 0, errors.New("no event to replay")
	}
	path, body := "/endpoints/"+s.endpoint+"/requests/"+newest.Data[0].ID+"/replay", fmt.Sprintf(`{"target_url":%q}`, to.url)
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: answerLimit} // a replay makes a connection of its own
	median := func(do func() error) (time.Duration, error) {
		var took []time.Duration
		for range p.samples {
			began := time.Now()
			if err := do(); err != nil {
				return 0, err
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[len(took)/2], nil
	}
	replayed, err := median(func() error { return s.call(ctx, http.MethodPost, path, body, nil) })
	if err != nil {
		return 0, err
	}
	made, err := median(func() error {
		resp, err := direct.Post(to.url, "application/json", strings.NewReader(strings.Repeat("x", 1500)))
		if err != nil {
			return err
		}
		return drain(resp.Body)
	})
	return replayed - made, err
}
