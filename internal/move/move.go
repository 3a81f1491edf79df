// Package move copies an embedded installation into an empty PostgreSQL database: every table in the order of its key,
// in batches, each with its progress in one transaction. If it is killed it can be resumed. In the end it reads both
// databases completely and compares them row by row. It hides what is copied when, what is compared with what, and how
// long it will take.
//
// The embedded database is locked against writing while [Run] runs, and is not changed.
package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hookglass/internal/store"
)

// Bounds of a batch: what one transaction stores. At most three batches are in memory.
const (
	batchRows  = 10_000
	batchBytes = 8 << 20
)

// Options are the options of a move.
type Options struct {
	// Restart first deletes what an earlier move put into the destination.
	Restart bool
	// Progress is called after each batch, from one goroutine; it may be nil.
	Progress func(Progress)
	// BatchRows and BatchBytes bound a batch; 0 means the default.
	BatchRows, BatchBytes int
}

// The two things that a move does with a table.
const (
	Copying   = "copying"
	Comparing = "comparing"
)

// Progress is the progress of a move.
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

// Report is the result of a move.
type Report struct {
	Schema   int64
	Resumed  bool // an earlier call had begun
	Complete bool // an earlier call had finished, and this one only compared
	Equal    bool
	Tables   []TableReport
	Counters []string // descriptions of tables whose next ids differ
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

// Run moves source into target, which [store.DB.OpenMoveTarget] made. Both stay open. After an error, calling it again
// resumes the move. If the report says that both sides are equal, the destination may be served; otherwise it is
// refused until it has been filled again.
//
// It fails as [store.MoveTarget.Begin] does.
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

// copy copies the rest of a table. One goroutine reads ahead while this one writes.
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
		for range batches { // wait for the reader: the source has one reader at a time
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

// read passes on a table's rows after a key in batches.
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

// meter measures progress.
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

// Explain returns what the user has to do about an error of [Run], and whether there is anything to do.
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

// plain returns an error's text without the package name, which means nothing to users.
func plain(err error) string { return strings.ReplaceAll(err.Error(), "store: ", "") }
