// Package intake receives bodies of unknown size from unknown senders. It hides how the memory for them is shared, that
// it grows with what arrives rather than with what was announced, and how slowly a body may arrive; and how an accept
// loop behaves when accepting fails.
package intake

import (
	"errors"
	"io"
	"time"
)

// ErrTooLarge says that a body exceeds the limit.
var ErrTooLarge = errors.New("the body is too large")

// Collect reads a body to its end. Memory grows with what arrives, not with what was announced, and only as the lease
// grants it, waiting up to wait each time; a large body must then keep up a faster pace. size is -1 if it is not known
// in advance. It returns ErrTooLarge beyond the limit, unavailable if there is no memory in time, and errors of the
// reader.
func Collect(r io.Reader, size, limit int64, l *Lease, wait time.Duration, pace *Pace) ([]byte, error) {
	first := int64(4 << 10)
	if size >= 0 {
		first = min(first, size)
	}
	body := make([]byte, 0, first)
	for int64(len(body)) != size {
		if len(body) == cap(body) {
			if int64(len(body)) > limit {
				return nil, ErrTooLarge
			}
			// One byte more than the limit, to tell a body at the limit from a larger one.
			grown := min(int64(4*cap(body)), limit+1)
			if size >= 0 {
				grown = min(grown, size)
			}
			start := time.Now()
			if err := l.Grow(grown, wait); err != nil {
				return nil, err
			}
			if grown > FreeBytes {
				pace.Stood(time.Since(start))
			}
			body = append(make([]byte, 0, grown), body...)
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if int64(len(body)) > limit {
			return nil, ErrTooLarge
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
