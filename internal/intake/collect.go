// Package intake receives bodies of unknown size from senders that nobody knows: it hides how the memory for them is
// shared, how it grows with what has come rather than with what was announced, and how slowly a body may come; and what
// a loop that accepts connections does where none can be accepted.
package intake

import (
	"errors"
	"io"
	"time"
)

// ErrTooLarge says that a body is larger than the limit.
var ErrTooLarge = errors.New("the body is too large")

// Collect reads a body to its end. Memory grows with what has come, not with what was announced, and with what the
// lease is granted, for which it waits at most so long each time; the time that a large body waited is reported to
// waited. size is -1 when only the end of the reader tells it. It answers ErrTooLarge beyond the limit, unavailable
// when there is no memory in time, and else the errors of the reader.
func Collect(r io.Reader, size, limit int64, l *Lease, wait time.Duration, waited func(time.Duration)) ([]byte, error) {
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
			// One byte more than the limit tells a body at the limit from one beyond it.
			grown := min(int64(4*cap(body)), limit+1)
			if size >= 0 {
				grown = min(grown, size)
			}
			start := time.Now()
			if err := l.Grow(grown, wait); err != nil {
				return nil, err
			}
			if grown > FreeBytes {
				waited(time.Since(start))
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
