package ingest

import (
	"errors"
	"io"
	"net"
	"time"

	"hookglass"

	"hookglass/internal/intake"
)

// bodyReader reads the body of the request being served, from the connection's buffer and then its socket, and nothing
// beyond it.
type bodyReader struct {
	conn     *conn // nil: no request
	isChunks bool
	chunks   chunked
	left     int64 // bytes left of the Content-Length
	expected bool  // 100 Continue was sent if it was asked for, so the body comes
	pace     intake.Pace
	broken   error // why reading ended early
}

func (b *bodyReader) begin(c *conn, h *head) {
	*b = bodyReader{conn: c, isChunks: h.chunked, left: max(h.length, 0)}
	if h.tooBig {
		b.left = 1 << 62
	}
	if h.chunked {
		b.chunks.maxTrail = c.front.cfg.MaxHeaderBytes
	}
}

// ended reports whether the whole body has been read.
func (b *bodyReader) ended() bool {
	return b.conn == nil || !b.isChunks && b.left == 0 || b.isChunks && b.chunks.done()
}

// rest returns how much is left to read, as far as is known. An unfinished chunked body counts as very long.
func (b *bodyReader) rest() int64 {
	switch {
	case b.ended():
		return 0
	case b.isChunks:
		return 1 << 62
	}
	return b.left
}

func (b *bodyReader) Read(p []byte) (int, error) {
	if b.broken != nil {
		return 0, b.broken
	}
	n, err := b.read(p)
	if err != nil && err != io.EOF {
		b.broken = err
	}
	return n, err
}

func (b *bodyReader) read(p []byte) (int, error) {
	if b.isChunks {
		return b.readChunks(p)
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	c := b.conn
	p = p[:min(int64(len(p)), b.left)]
	if c.r < c.w {
		n := copy(p, c.buf[c.r:c.w])
		c.consume(n)
		b.left -= int64(n)
		return n, nil
	}
	c.setReadBy(b.pace.Due())
	n, err := c.nc.Read(p)
	b.left -= int64(n)
	b.pace.Came(n, time.Now())
	return n, b.failure(err)
}

func (b *bodyReader) readChunks(p []byte) (int, error) {
	c := b.conn
	for {
		for c.r < c.w {
			if b.chunks.done() {
				return 0, io.EOF
			}
			run := c.buf[c.r:c.w]
			if b.chunks.state == chunkData && len(run) > len(p) {
				run = run[:len(p)]
			}
			n, data, r := b.chunks.step(run)
			if r != nil {
				return 0, r
			}
			if data {
				copy(p, run[:n])
				c.consume(n)
				return n, nil
			}
			c.consume(n)
		}
		if b.chunks.done() {
			return 0, io.EOF
		}
		if b.chunks.state == chunkData && len(p) >= readBufSize {
			// Read a chunk's data directly into p.
			c.setReadBy(b.pace.Due())
			n, err := c.nc.Read(p[:min(int64(len(p)), b.chunks.left)])
			b.chunks.step(p[:n])
			b.pace.Came(n, time.Now())
			return n, b.failure(err)
		}
		c.setReadBy(b.pace.Due())
		n, err := c.wait.fill()
		c.w += n
		b.pace.Came(n, time.Now())
		if err = b.failure(err); err != nil {
			return 0, err
		}
	}
}

// failure distinguishes a body that is too slow from a sender that is gone.
func (b *bodyReader) failure(err error) error {
	switch {
	case err == nil:
		return nil
	case isTimeout(err):
		return errSlow
	case err == io.EOF:
		return errCutShort
	}
	return err
}

func isTimeout(err error) bool {
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// trailers returns the trailer section of a chunked body.
func (b *bodyReader) trailers() (hookglass.Headers, error) {
	if !b.isChunks || len(b.chunks.trailer) <= len("\r\n") {
		return nil, nil
	}
	fields, r := parseFields(string(b.chunks.trailer), 4)
	if r != nil {
		return nil, r
	}
	return fields, nil
}
