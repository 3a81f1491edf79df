package capture

import (
	"context"
	"sync"
	"time"

	"hookglass"
	"hookglass/internal/store"
)

// maxRefusals bounds the counters kept while they cannot be stored: one per endpoint, minute and code.
const maxRefusals = 100_000

// refusals counts refused arrivals until the counts are stored.
type refusals struct {
	clock func() time.Time

	mu     sync.Mutex
	counts map[refusal]int64
}

// refusal identifies a counter.
type refusal struct {
	endpoint int64
	minute   int64 // of Unix time
	code     hookglass.Code
}

// add counts an arrival that was answered with an error. It ignores nil, and endpoints that do not exist.
func (r *refusals) add(endpoint int64, err error) {
	if err == nil || hookglass.Is(err, hookglass.CodeNotFound) {
		return
	}
	r.put(map[refusal]int64{{endpoint, r.clock().Unix() / 60, hookglass.CodeOf(err)}: 1})
}

func (r *refusals) put(counts map[refusal]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = make(map[refusal]int64)
	}
	for k, n := range counts {
		if _, known := r.counts[k]; known || len(r.counts) < maxRefusals {
			r.counts[k] += n
		}
	}
}

func (r *refusals) take() map[refusal]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := r.counts
	r.counts = nil
	return counts
}

// writeRefusals stores the counts. If that fails, they are kept for the next time.
func (s *Service) writeRefusals(ctx context.Context) error {
	counts := s.refused.take()
	if len(counts) == 0 {
		return nil
	}
	rows := make([]store.Refused, 0, len(counts))
	for k, n := range counts {
		rows = append(rows, store.Refused{EndpointNum: k.endpoint, At: time.Unix(k.minute*60, 0), Code: k.code, N: n})
	}
	err := s.db.Update(ctx, hookglass.System, func(tx *store.Tx) error { return tx.CountRefused(rows) })
	if err != nil {
		s.refused.put(counts)
	}
	return err
}
