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
