package move

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"

	"hookglass/internal/store"
)

// maxDifferences bounds how many differing rows of a table are listed; the rest is counted.
const maxDifferences = 10

// digested is a row in the form in which it is compared.
type digested struct {
	key   []byte
	sum   [sha256.Size]byte
	bytes int64
	err   error
}

// digestChunk is how many rows are passed between goroutines at once.
const digestChunk = 256

// digests reads rows in a goroutine and sends their digests until ctx ends.
func digests(ctx context.Context, rows iter.Seq2[store.MovedRow, error]) <-chan []digested {
	chunks := make(chan []digested, 4)
	go func() {
		defer close(chunks)
		var chunk []digested
		give := func() bool {
			select {
			case chunks <- chunk:
				chunk = make([]digested, 0, digestChunk)
				return true
			case <-ctx.Done():
				return false
			}
		}
		for row, err := range rows {
			d := digested{err: err}
			if err == nil {
				d = digested{key: bytes.Clone(row.Key), sum: sha256.Sum256(row.Tuple), bytes: int64(len(row.Tuple))}
			}
			if chunk = append(chunk, d); len(chunk) >= digestChunk && !give() {
				return
			}
		}
		if len(chunk) > 0 {
			give()
		}
	}()
	return chunks
}

// reader returns digests one by one.
type reader struct {
	chunks <-chan []digested
	chunk  []digested
}

// next returns nil at the end.
func (r *reader) next() (*digested, error) {
	if len(r.chunk) == 0 {
		r.chunk = <-r.chunks
		if len(r.chunk) == 0 {
			return nil, nil
		}
	}
	d := &r.chunk[0]
	r.chunk = r.chunk[1:]
	return d, d.err
}

func (r *reader) drain() {
	for range r.chunks {
	}
}

// compare reads both copies of a table completely and compares them row by row.
func (m *move) compare(ctx context.Context, t store.MoveTable) (TableReport, error) {
	if t.Queue() {
		return m.compareJobs(ctx, t)
	}
	reading, stop := context.WithCancel(ctx)
	from, to := reader{chunks: digests(reading, m.from.Rows(reading, t, nil))}, reader{chunks: digests(reading, m.to.Rows(reading, t))}
	defer func() {
		stop()
		from.drain()
		to.drain()
	}()
	r := TableReport{Table: t.Name}
	all := sha256.New()
	a, err := from.next()
	if err != nil {
		return r, err
	}
	b, err := to.next()
	for ; err == nil && (a != nil || b != nil); err = ctx.Err() {
		order := 0
		switch {
		case a == nil:
			order = 1
		case b == nil:
			order = -1
		default:
			order = t.Compare(a.key, b.key)
		}
		switch {
		case order < 0:
			r.differ(t.Describe(a.key), "missing")
		case order > 0:
			r.differ(t.Describe(b.key), "extra")
		case a.sum != b.sum:
			r.differ(t.Describe(a.key), "altered")
		}
		if order <= 0 {
			all.Write(a.sum[:])
			r.Source++
			r.Bytes += a.bytes
			if m.meter.add(1, a.bytes); r.Source%batchRows == 0 {
				m.Progress(m.meter.progress(Comparing, t.Name, r.Source, m.counts[t.Name]))
			}
			if a, err = from.next(); err != nil {
				return r, err
			}
		}
		if order >= 0 {
			r.Destination++
			if b, err = to.next(); err != nil {
				return r, err
			}
		}
	}
	r.Digest = hex.EncodeToString(all.Sum(nil))
	return r, err
}

func (r *TableReport) differ(key, what string) {
	r.Differing++
	if len(r.Differences) < maxDifferences {
		r.Differences = append(r.Differences, Difference{key, what})
	}
}

// compareJobs compares the pending jobs regardless of their ids: how often each occurs.
func (m *move) compareJobs(ctx context.Context, t store.MoveTable) (TableReport, error) {
	r := TableReport{Table: t.Name}
	all := sha256.New()
	surplus := make(map[[sha256.Size]byte]int64) // how many more the source has than the destination
	for row, err := range m.from.Rows(ctx, t, nil) {
		if err != nil {
			return r, err
		}
		sum := sha256.Sum256(row.Tuple)
		all.Write(sum[:])
		surplus[sum]++
		r.Source++
		r.Bytes += int64(len(row.Tuple))
		m.meter.add(1, int64(len(row.Tuple)))
	}
	for row, err := range m.to.Rows(ctx, t) {
		if err != nil {
			return r, err
		}
		sum := sha256.Sum256(row.Tuple)
		r.Destination++
		if surplus[sum]--; surplus[sum] < 0 {
			r.differ(t.Describe(row.Key), "extra")
		}
	}
	for sum, n := range surplus {
		for ; n > 0; n-- {
			r.differ("digest="+hex.EncodeToString(sum[:8]), "missing")
		}
	}
	r.Digest = hex.EncodeToString(all.Sum(nil))
	return r, nil
}

func (m *move) compareCounters(ctx context.Context, want map[string]int64) error {
	have, err := m.to.Counters(ctx)
	if err != nil {
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(want)) {
		if want[table] != have[table] {
			m.report.Counters = append(m.report.Counters, fmt.Sprintf("%s: %d in the source, %d in the destination", table, want[table], have[table]))
			m.report.Equal = false
		}
	}
	return nil
}
