package ingest

import (
	"io"
	"time"
)

// collect reads a body to its end. Memory grows with what has come, not with what was announced, and with
// what the lease is granted; the time that a large body waited for that is reported to waited. size is
// -1 when only the end of the reader tells it.
func (f *Front) collect(r io.Reader, size int64, l *lease, waited func(time.Duration)) ([]byte, error) {
	limit := f.cfg.MaxBodyBytes
	first := int64(4 << 10)
	if size >= 0 {
		first = min(first, size)
	}
	body := make([]byte, 0, first)
	for int64(len(body)) != size {
		if len(body) == cap(body) {
			if int64(len(body)) > limit {
				return nil, errTooLarge
			}
			// One byte more than the limit tells a body at the limit from one beyond it.
			grown := min(int64(4*cap(body)), limit+1)
			if size >= 0 {
				grown = min(grown, size)
			}
			start := time.Now()
			if err := l.grow(grown, f.cfg.BudgetWait); err != nil {
				return nil, err
			}
			if grown > freeBytes {
				waited(time.Since(start))
			}
			body = append(make([]byte, 0, grown), body...)
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if int64(len(body)) > limit {
			return nil, errTooLarge
		}
		if err == io.EOF && (size < 0 || int64(len(body)) == size) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return body, nil
}

// pace tells when a body that comes too slowly is given up: a bucket of BodyGrace that empties as time
// passes and fills as bytes come, never beyond full, so that no early burst pays for a long stall.
type pace struct {
	due   time.Time
	grace time.Duration
	rate  int64 // bytes a second
}

func (f *Front) newPace(now time.Time) pace {
	return pace{now.Add(f.cfg.BodyGrace), f.cfg.BodyGrace, f.cfg.MinBodyRate}
}

// came counts bytes that came and returns the new deadline.
func (p *pace) came(n int, now time.Time) time.Time {
	p.due = p.due.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	if full := now.Add(p.grace); p.due.After(full) {
		p.due = full
	}
	return p.due
}

// stood excuses time in which the body was not read, and demands more of one that holds a share of the budget.
func (p *pace) stood(d time.Duration, fastest int64) {
	p.due = p.due.Add(d)
	p.rate = fastest
}
