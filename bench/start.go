package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// startRow is how long starts took until /readyz answered 200.
type startRow struct {
	database  string
	events    int64
	what      string
	median    time.Duration
	worst     time.Duration
	starts    int
	stoppedIn time.Duration // the longest soft stop; 0 after kill -9
}

// measureStarts stops and starts the service, softly and with kill -9 under load.
func (p *plan) measureStarts(ctx context.Context, s *service, r *report) error {
	events, err := s.stored(ctx)
	if err != nil {
		return err
	}
	soft := startRow{database: s.database, what: "after SIGTERM"}
	hard := startRow{database: s.database, what: "after kill -9 under load"}
	var softly, killed []time.Duration
	for range p.starts {
		began := time.Now()
		if err := s.stop(); err != nil {
			return err
		}
		soft.stoppedIn = max(soft.stoppedIn, time.Since(began))
		took, err := s.start(ctx)
		if err != nil {
			return err
		}
		softly = append(softly, took)

		took, err = p.killUnderLoad(ctx, s)
		if err != nil {
			return err
		}
		killed = append(killed, took)
	}
	for _, row := range []struct {
		startRow
		took []time.Duration
	}{{soft, softly}, {hard, killed}} {
		slices.Sort(row.took)
		row.events, row.starts = events, len(row.took)
		row.median, row.worst = quantile(row.took, 0.5), row.took[len(row.took)-1]
		p.log("start: %s, %s events, %s: median %s, worst %s", s.database, thousands(events), row.what, duration(row.median), duration(row.worst))
		r.starts = append(r.starts, row.startRow)
	}
	return nil
}

// killUnderLoad kills the service while it captures, starts it, and checks that what it acknowledged is there.
func (p *plan) killUnderLoad(ctx context.Context, s *service) (time.Duration, error) {
	before, err := s.stored(ctx)
	if err != nil {
		return 0, err
	}
	var o outcome
	ended := make(chan error, 1)
	go func() {
		// It ends by itself: a sender whose server is gone gives up.
		var err error
		o, err = load{conns: fillConns, time: time.Minute}.send(ctx, s.hook)
		ended <- err
	}()
	select {
	case <-time.After(min(p.time, 2*time.Second)):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err := s.kill(); err != nil {
		return 0, err
	}
	if err := <-ended; err != nil {
		return 0, err
	}
	took, err := s.start(ctx)
	if err != nil {
		return 0, err
	}
	http.DefaultClient.CloseIdleConnections() // they led to the process that is gone
	return took, s.checkStored(ctx, before, o)
}

// memoryRow is what one process took.
type memoryRow struct {
	database string
	events   int64
	idle     int64 // bytes, resident, a while after a start
	loaded   int64 // bytes, resident at the highest, during the bodies
	bodies   int
	size     int // bytes of each
	acked    int64
	took     time.Duration // until the last was answered
}

// measureMemory reads the memory of a fresh process, idle and with many large bodies at once.
func (p *plan) measureMemory(ctx context.Context, s *service, r *report) error {
	if err := s.stop(); err != nil {
		return err
	}
	if _, err := s.start(ctx); err != nil {
		return err
	}
	http.DefaultClient.CloseIdleConnections()
	row := memoryRow{database: s.database, bodies: p.bodies, size: p.bodyBytes}
	var err error
	if row.events, err = s.stored(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(p.settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	if row.idle, _, err = s.memory(); err != nil {
		return err
	}
	began := time.Now()
	o, err := sendAtOnce(ctx, s.hook, p.bodies, p.bodyBytes)
	if err != nil {
		return err
	}
	row.took, row.acked = time.Since(began), o.acked
	if o.failed > 0 {
		p.log("memory: %s: %d of %d bodies were not taken: %s", s.database, o.failed, p.bodies, o.firstFail)
	}
	if _, row.loaded, err = s.memory(); err != nil {
		return err
	}
	if err := s.checkStored(ctx, row.events, o); err != nil {
		return fmt.Errorf("large bodies: %w", err)
	}
	p.log("memory: %s: idle %s, loaded %s", s.database, mebibytes(row.idle), mebibytes(row.loaded))
	r.memories = append(r.memories, row)
	return nil
}
