// Package move copies an embedded installation into an empty PostgreSQL database: every table in the order of its key,
// a batch at a time, how far it is beside the rows in one transaction. Killed at any point it goes on where it was; at
// the end both databases are read from end to end and compared row by row. It hides what is copied when, what is
// compared with what, and how long it will take.
//
// The embedded database is held against writing for as long as [Run] runs, and is not changed.
package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hookglass/internal/store"
)

// Bounds of a batch: what is held in memory, three times at most, and what one transaction stores.
const (
	batchRows  = 10_000
	batchBytes = 8 << 20
)

// Options say how to move.
type Options struct {
	// Restart empties first what an earlier move put into the destination.
	Restart bool
	// Progress is told after each batch, from one goroutine; nil: nobody is.
	Progress func(Progress)
	// BatchRows and BatchBytes bound a batch; 0: what is best.
	BatchRows, BatchBytes int
}

// The two things that a move does with a table.
const (
	Copying   = "copying"
	Comparing = "comparing"
)

// Progress says how far a move is.
type Progress struct {
	Doing     string // Copying or Comparing
	Table     string
	TableRows int64 // of the table, done
	TableOf   int64 // of the table, all
	Rows      int64 // of all tables, done, with those of earlier calls
	Of        int64
	Bytes     int64   // of all tables, done
	PerSecond float64 // rows, in this call
	Left      time.Duration
}

// Report says what came of a move.
type Report struct {
	Schema   int64
	Resumed  bool // an earlier call had begun
	Complete bool // an earlier call had finished, and this one compared alone
	Equal    bool
	Tables   []TableReport
	Counters []string // tables whose next id would not be the same, in words
	Copied   int64    // rows, in this call
	CopyTime time.Duration
	Took     time.Duration
}

// TableReport compares one table.
type TableReport struct {
	Table       string
	Source      int64 // rows
	Destination int64
	Bytes       int64
	Digest      string // of the source's rows, in hexadecimal
	Differing   int64
	Differences []Difference // the first of them
}

// Difference is one row that is not the same on both sides.
type Difference struct {
	Key  string
	What string // "missing", "extra" or "altered", in the destination
}

// move is one call of Run.
type move struct {
	Options
	from   *store.MoveSource
	to     *store.MoveTarget
	counts map[string]int64
	meter  meter
	report Report
}

// Run moves source into target, which [store.DB.OpenMoveTarget] made. Both stay open. An error means that it did not
// come to its end: calling it again goes on. Where the report says that both sides are equal, the destination may be
// served; where it does not, the destination is refused until it has been filled again.
//
// It answers what [store.MoveTarget.Begin] answers.
func Run(ctx context.Context, from *store.MoveSource, to *store.MoveTarget, o Options) (*Report, error) {
	began := time.Now()
	if o.BatchRows == 0 {
		o.BatchRows = batchRows
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = batchBytes
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	m := &move{Options: o, from: from, to: to, counts: make(map[string]int64)}
	if err := m.run(ctx); err != nil {
		return nil, err
	}
	m.report.Took = time.Since(began)
	return &m.report, nil
}

func (m *move) run(ctx context.Context) error {
	mark, err := m.from.Mark(ctx)
	if err != nil {
		return err
	}
	tables := m.from.Tables()
	done, complete, err := m.to.Begin(ctx, tables, mark, m.Restart)
	if err != nil {
		return err
	}
	m.report.Resumed, m.report.Complete = len(done) > 0, complete
	var all int64
	for _, t := range tables {
		n, err := m.from.Count(ctx, t)
		if err != nil {
			return err
		}
		m.counts[t.Name] = n
		all += n
	}
	m.meter.begin(all)
	copied := time.Now()
	for _, t := range tables {
		if err := m.copy(ctx, t, done[t.Name]); err != nil {
			return err
		}
	}
	m.report.Copied, m.report.CopyTime = m.meter.fresh, time.Since(copied)
	counters, err := m.from.Counters(ctx)
	if err != nil {
		return err
	}
	if !complete {
		if err := m.to.SetCounters(ctx, counters); err != nil {
			return err
		}
		if err := m.to.Analyze(ctx); err != nil {
			return err
		}
	}
	m.meter.begin(all)
	m.report.Equal = true
	for _, t := range tables {
		r, err := m.compare(ctx, t)
		if err != nil {
			return err
		}
		m.report.Tables = append(m.report.Tables, r)
		m.report.Equal = m.report.Equal && r.Differing == 0
	}
	if err := m.compareCounters(ctx, counters); err != nil {
		return err
	}
	if m.report.Equal && !complete {
		return m.to.Complete(ctx)
	}
	return nil
}

// batch is what one transaction stores.
type batch struct {
	tuples []byte
	after  []byte
	rows   int64
	bytes  int64 // of the tuples
	err    error
}

// copy copies what is not there yet of a table. One goroutine reads ahead while this one writes.
func (m *move) copy(ctx context.Context, t store.MoveTable, p store.MoveProgress) error {
	m.meter.skip(p.Rows, p.Bytes)
	if p.Done {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	batches := make(chan batch)
	go func() {
		defer close(batches)
		m.read(ctx, t, p.After, func(b batch) bool {
			select {
			case batches <- b:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	defer func() {
		cancel()
		for range batches { // the source is read by one at a time
		}
	}()
	for b := range batches {
		if b.err != nil {
			return b.err
		}
		p.After, p.Rows, p.Bytes = b.after, p.Rows+b.rows, p.Bytes+b.bytes
		if err := m.to.Append(ctx, t, b.tuples, p); err != nil {
			return err
		}
		m.meter.add(b.rows, b.bytes)
		m.Progress(m.meter.progress(Copying, t.Name, p.Rows, m.counts[t.Name]))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.Done = true
	return m.to.Append(ctx, t, nil, p)
}

// read hands a table's rows behind a key over in batches.
func (m *move) read(ctx context.Context, t store.MoveTable, after []byte, give func(batch) bool) {
	var b batch
	for row, err := range m.from.Rows(ctx, t, after) {
		if err != nil {
			give(batch{err: err})
			return
		}
		b.tuples = append(b.tuples, row.Tuple...)
		b.after = append(b.after[:0], row.Key...)
		b.rows++
		b.bytes += int64(len(row.Tuple))
		if int(b.rows) < m.BatchRows && len(b.tuples) < m.BatchBytes {
			continue
		}
		size := min(len(b.tuples), 2*m.BatchBytes)
		if !give(b) {
			return
		}
		b = batch{tuples: make([]byte, 0, size)}
	}
	if b.rows > 0 {
		give(b)
	}
}

// meter measures.
type meter struct {
	began       time.Time
	all         int64
	rows, bytes int64
	fresh       int64 // rows of this call
}

func (m *meter) begin(all int64) { *m = meter{began: time.Now(), all: all} }

func (m *meter) skip(rows, bytes int64) { m.rows, m.bytes = m.rows+rows, m.bytes+bytes }

func (m *meter) add(rows, bytes int64) { m.skip(rows, bytes); m.fresh += rows }

func (m *meter) progress(doing, table string, rows, of int64) Progress {
	p := Progress{Doing: doing, Table: table, TableRows: rows, TableOf: of, Rows: m.rows, Of: m.all, Bytes: m.bytes}
	if took := time.Since(m.began).Seconds(); took > 0 {
		p.PerSecond = float64(m.fresh) / took
	}
	if p.PerSecond > 0 {
		p.Left = time.Duration(float64(max(0, m.all-m.rows)) / p.PerSecond * float64(time.Second)).Round(time.Second)
	}
	return p
}

// Explain says in words for people what an error of [Run] asks of them, and reports whether it asks anything.
func Explain(err error) (string, bool) {
	switch {
	case errors.Is(err, store.ErrMoveBusy):
		return "another process is filling the destination; wait for it", true
	case errors.Is(err, store.ErrForeign):
		return fmt.Sprintf("the destination is not empty: %s; make a new database for it", plain(err)), true
	case errors.Is(err, store.ErrNotEmpty):
		return fmt.Sprintf("the destination holds data that no move put there (%s): make a new, empty database", plain(err)), true
	case errors.Is(err, store.ErrMoveSource):
		return "an earlier move into the destination was made from another installation, or this one was served since: --restart empties the destination, with all that it received since, and begins anew", true
	}
	return "", false
}

// plain is an error without the name of the package that it comes from, which says nothing to people.
func plain(err error) string { return strings.ReplaceAll(err.Error(), "store: ", "") }
