package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// fillConns is how many connections fill a database.
const fillConns = 64

// searchLimit is how long a search may take before the benchmark gives it up.
const searchLimit = 60 * time.Second

// readRow is what one reading took at one number of events.
type readRow struct {
	database string
	events   int
	what     string
	median   time.Duration
	p99      time.Duration
	samples  int
	found    int
	problem  string // instead of figures
}

// reading is one thing that a reader asks.
type reading struct {
	what  string
	query url.Values
	slow  bool // it may look at every event; asked a few times only
}

// measureReads fills the endpoint through its own reception to each size and asks at each.
func (p *plan) measureReads(ctx context.Context, s *service, r *report) error {
	for _, size := range p.sizes {
		before, err := s.stored(ctx)
		if err != nil {
			return err
		}
		if missing := int64(size) - before; missing > 0 {
			p.log("read: %s: filling up to %s events", s.database, thousands(int64(size)))
			o, err := load{conns: fillConns, count: missing}.send(ctx, s.hook)
			if err != nil {
				return err
			}
			if o.failed > 0 {
				return fmt.Errorf("%d of %d requests failed: %s", o.failed, missing, o.firstFail)
			}
			if err := s.checkStored(ctx, before, o); err != nil {
				return err
			}
		}
		readings, err := s.readings(ctx, size)
		if err != nil {
			return err
		}
		for _, what := range readings {
			row := p.ask(ctx, s, size, what)
			p.log("read: %s, %9s events, %-52s %s", s.database, thousands(int64(size)), row.what, row.figures())
			r.reads = append(r.reads, row)
		}
	}
	return ctx.Err()
}

// readings are what is asked of an endpoint with so many events.
func (s *service) readings(ctx context.Context, size int) ([]reading, error) {
	middle, err := s.list(ctx, url.Values{"limit": {"25"}, "offset": {strconv.Itoa(size / 2)}})
	if err != nil {
		return nil, err
	}
	end, err := s.list(ctx, url.Values{"limit": {"25"}, "offset": {strconv.Itoa(max(0, size-50))}})
	if err != nil {
		return nil, err
	}
	// The fill numbered its events from 1 in each step, so the first of the last step is found once or a few times.
	needle := fmt.Sprintf("%0*d", serialDigits, 1)
	all := []reading{{what: "newest 25", query: url.Values{}}}
	if middle.Meta.NextCursor != nil {
		all = append(all, reading{what: "25 by cursor, from the middle", query: url.Values{"cursor": {*middle.Meta.NextCursor}}})
	}
	if end.Meta.NextCursor != nil {
		all = append(all, reading{what: "25 by cursor, the oldest", query: url.Values{"cursor": {*end.Meta.NextCursor}}})
	}
	return append(all,
		reading{what: "25 by offset, from the middle", query: url.Values{"offset": {strconv.Itoa(size / 2)}}, slow: true},
		reading{what: "filter: provider and event type, all match", query: url.Values{"provider": {"github"}, "event_type": {"push"}}},
		reading{what: "filter: event type, none matches", query: url.Values{"event_type": {"issues"}}, slow: true},
		reading{what: "q: method, path and provider, all match", query: url.Values{"q": {"method:POST path:/ provider:github"}}},
		reading{what: "q: a word of every body", query: url.Values{"q": {"Codertocat"}}, slow: true},
		reading{what: "q: a field of one body", query: url.Values{"q": {"body./serial:" + needle}}, slow: true},
		reading{what: "q: a word of no event", query: url.Values{"q": {"nowheretobefound"}}, slow: true},
	), nil
}

// ask asks often enough for the figures, or once a minute's patience ends.
func (p *plan) ask(ctx context.Context, s *service, size int, what reading) readRow {
	row := readRow{database: s.database, events: size, what: what.what}
	samples := p.samples
	if what.slow {
		samples = min(samples, 5)
	}
	q := url.Values{"limit": {"25"}}
	for k, v := range what.query {
		q[k] = v
	}
	var took []time.Duration
	for range samples {
		one, cancel := context.WithTimeout(ctx, searchLimit)
		began := time.Now()
		page, err := s.list(one, q)
		cancel()
		if err != nil {
			p.log("read: %s: %s: %v", s.database, what.what, err)
			row.problem = "failed after " + duration(time.Since(began))
			return row
		}
		took = append(took, time.Since(began))
		row.found = len(page.Data)
		if what.slow && time.Since(began) > searchLimit/10 {
			break // once is enough to know
		}
	}
	slices.Sort(took)
	row.samples, row.median, row.p99 = len(took), quantile(took, 0.5), quantile(took, 0.99)
	return row
}
