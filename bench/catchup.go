package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// catchUpGoal is for a client that comes back, from its start until the service says that all it missed was delivered.
const catchUpGoal = 5 * time.Second

// catchUp measures how long the program's own client takes to come back and to deliver what it missed: it is killed,
// events come, and it is started again. The time ends when a local target has each event and the gap is recovered,
// which the stored reports decide.
func (p *plan) catchUp(ctx context.Context, s *service, row *tunnelRow) (err error) {
	ctx, cancel := context.WithTimeout(ctx, forwardLimit)
	defer cancel()
	if s, err = s.elsewhere(ctx); err != nil { // the sockets before left gaps behind
		return err
	}
	got := new(distinct)
	target := httptest.NewServer(got)
	defer target.Close()
	client, err := s.listen(ctx, target.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.kill()) }()
	if err := s.active(ctx); err != nil {
		return err
	}
	if err := client.kill(); err != nil {
		return err
	}
	if err := s.gaps(ctx, 1); err != nil {
		return err
	}
	if err := s.sendAll(ctx, p.missed); err != nil {
		return err
	}
	began := time.Now()
	if client, err = s.listen(ctx, target.URL); err != nil {
		return err
	}
	if err := s.gaps(ctx, 0); err != nil {
		return err
	}
	row.missed, row.caughtUp = p.missed, time.Since(began)
	if n := got.n.Load(); n != int64(p.missed) {
		return fmt.Errorf("the gap of %d events is recovered and the target had %d", p.missed, n)
	}
	return client.stop()
}

// elsewhere is the same service with an endpoint that nothing happened at.
func (s *service) elsewhere(ctx context.Context) (*service, error) {
	var made struct {
		Data struct {
			ID         string `json:"id"`
			WebhookURL string `json:"webhook_url"`
		} `json:"data"`
	}
	err := s.call(ctx, http.MethodPost, "/endpoints", `{"endpoint":{"name":"bench"}}`, &made)
	other := *s
	other.endpoint, other.hook = made.Data.ID, made.Data.WebhookURL
	return &other, err
}

// listen starts the program's client, which sends the endpoint's events to a target.
func (s *service) listen(ctx context.Context, target string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(s.dir, "listen.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, s.binary, "listen", target, "-e", s.endpoint, "--recover", "all", "--output", "quiet")
	cmd.Env = append(os.Environ(), "HOOKGLASS_SERVER="+s.base, "HOOKGLASS_TOKEN="+s.token)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan error, 1)}
	go func() { p.exited <- cmd.Wait() }()
	return p, nil
}

// sendAll sends so many events and fails unless each was acknowledged.
func (s *service) sendAll(ctx context.Context, total int) error {
	client := senders64()
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var mu sync.Mutex
	var failed error
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for n := next.Add(1); n <= int64(total); n = next.Add(1) {
				if err := s.post(ctx, client, int(n)); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
	}
	senders.Wait()
	return failed
}

// active waits until a client is connected to the endpoint.
func (s *service) active(ctx context.Context) error {
	return soon(ctx, func() (bool, error) {
		var one struct {
			Data struct {
				TunnelActive bool `json:"tunnel_active"`
			} `json:"data"`
		}
		err := s.call(ctx, http.MethodGet, "/endpoints/"+s.endpoint, "", &one)
		return one.Data.TunnelActive, err
	})
}

// gaps waits until the endpoint has so many gaps that are not recovered.
func (s *service) gaps(ctx context.Context, n int) error {
	return soon(ctx, func() (bool, error) {
		var all page
		err := s.call(ctx, http.MethodGet, "/tunnel/gaps?endpoint_ids[]="+s.endpoint, "", &all)
		return len(all.Data) == n, err
	})
}

// soon asks again and again, with a pause that the service hardly notices, until it is so.
func soon(ctx context.Context, so func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := so(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// distinct is a target that counts the events it was sent, each once.
type distinct struct {
	seen sync.Map
	n    atomic.Int64
}

// ServeHTTP implements http.Handler.
func (d *distinct) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // what cannot be read shows as an event that is missing
	if _, again := d.seen.LoadOrStore(r.Header.Get("X-Service-Request-Id"), true); !again {
		d.n.Add(1)
	}
}
