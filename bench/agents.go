package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"hookglass/client"
)

const (
	agentEvents = 100 // that there are to be listed
	agentWaits  = 500 // at a time
)

// agentRow is what one thing took by MCP, and what the same took by REST.
type agentRow struct {
	database    string
	what        string
	median, p99 time.Duration
	twin        time.Duration // 0: there is none
	bytes       int
}

// measureAgents asks by MCP what it asks by REST as well, and has many wait for one event.
func (p *plan) measureAgents(ctx context.Context, dir, database string, r *report) (err error) {
	s, err := p.service(ctx, dir, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	if _, err := (load{conns: 8, count: agentEvents}).send(ctx, s.hook); err != nil {
		return err
	}
	c, err := client.New(s.base, s.token)
	if err != nil {
		return err
	}
	newest, err := s.list(ctx, url.Values{"limit": {"1"}})
	if err != nil {
		return err
	}
	if len(newest.Data) == 0 {
		return errors.New("no event was captured")
	}
	id := newest.Data[0].ID
	call := func(tool, arguments string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
	}
	in := fmt.Sprintf(`"endpoint_id":%q`, s.endpoint)
	for _, one := range []struct {
		what, message string
		twin          func() error
	}{
		{"tools/list", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil},
		{"get_endpoint", call("get_endpoint", "{"+in+"}"), func() error { _, err := c.Endpoint(ctx, s.endpoint); return err }},
		{"list_requests, 25", call("list_requests", "{"+in+"}"), func() error { _, err := s.list(ctx, url.Values{"limit": {"25"}}); return err }},
		{"get_request", call("get_request", fmt.Sprintf(`{%s,"request_id":%q}`, in, id)), func() error { _, err := c.Request(ctx, s.endpoint, id); return err }},
	} {
		row := agentRow{database: database, what: one.what}
		var answer []byte
		row.median, row.p99, err = p.sample(func() (err error) {
			answer, err = c.Message(ctx, []byte(one.message), http.Header{})
			if err == nil && (bytes.Contains(answer, []byte(`"isError":true`)) || !bytes.Contains(answer, []byte(`"result"`))) {
				err = fmt.Errorf("%s: %.300s", one.what, answer)
			}
			return err
		})
		if err != nil {
			return err
		}
		if row.bytes = len(answer); one.twin != nil {
			if row.twin, _, err = p.sample(one.twin); err != nil {
				return err
			}
		}
		p.log("agents: %s, %-22s %s", database, row.what, duration(row.median))
		r.agents = append(r.agents, row)
	}
	row, err := p.measureWaits(ctx, s, c, call("wait_for_request", "{"+in+`,"timeout_seconds":30,"provider":"github"}`))
	r.agents = append(r.agents, row)
	return err
}

// sample takes the time of something as often as the figures need.
func (p *plan) sample(do func() error) (median, p99 time.Duration, err error) {
	took := make([]time.Duration, 0, p.samples)
	for range p.samples {
		began := time.Now()
		if err := do(); err != nil {
			return 0, 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return quantile(took, 0.5), quantile(took, 0.99), nil
}

// measureWaits has many wait and then sends one event; each row is about when they had it.
func (p *plan) measureWaits(ctx context.Context, s *service, c *client.Client, message string) (agentRow, error) {
	row := agentRow{database: s.database, what: fmt.Sprintf("%d waits woken by one event", agentWaits)}
	var waits sync.WaitGroup
	var mu sync.Mutex
	var ended []time.Time
	var failed error
	for range agentWaits {
		waits.Go(func() {
			answer, err := c.Message(ctx, []byte(message), http.Header{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil && !strings.Contains(string(answer), `"timed_out":false`) {
				err = fmt.Errorf("a wait: %.300s", answer)
			}
			if err != nil {
				failed = err
			}
			ended = append(ended, time.Now())
		})
	}
	select {
	case <-time.After(3 * time.Second): // for all of them to have come
	case <-ctx.Done():
		return row, ctx.Err()
	}
	sent := time.Now()
	_, err := load{conns: 1, count: 1}.send(ctx, s.hook)
	waits.Wait()
	if err = errors.Join(err, failed); err != nil {
		return row, err
	}
	took := make([]time.Duration, len(ended))
	for i, at := range ended {
		took[i] = at.Sub(sent)
	}
	slices.Sort(took)
	row.median, row.p99 = quantile(took, 0.5), quantile(took, 0.99)
	p.log("agents: %s, %s: the last after %s", s.database, row.what, duration(took[len(took)-1]))
	return row, nil
}

func (r *report) writeAgents(b *strings.Builder) {
	if len(r.agents) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Agents (MCP)\n\nOne after another on one connection, beside the same by REST. The goals: tools/list under 5 ms, and under 2 ms more than REST.\n\n")
	t := table{{"database", "what", "p50", "p99", "REST p50", "adds", "bytes"}}
	for _, a := range r.agents {
		cells := []string{a.database, a.what, duration(a.median), duration(a.p99), "", "", ""}
		if a.twin > 0 {
			cells[4], cells[5] = duration(a.twin), duration(max(0, a.median-a.twin))
		}
		if a.bytes > 0 {
			cells[6] = thousands(int64(a.bytes))
		}
		t = append(t, cells)
	}
	t.write(b)
}
