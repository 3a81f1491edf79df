//go:build unix

package ingest

import (
	"io"
	"syscall"
)

// waiter reads from a socket and holds a buffer only while there is something to read, so that thousands of silent
// connections need no buffers.
type waiter struct {
	conn *conn
	raw  syscall.RawConn
	read func(fd uintptr) bool // readable, bound once to avoid allocations
	n    int
	err  error
	last bool // the next read does not wait
}

// init binds the waiter to its connection. A connection that is not a socket is read with a buffer held.
func (w *waiter) init(c *conn) {
	w.conn = c
	socket, ok := c.nc.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	w.raw, w.read = raw, w.readable
}

// readable reads into the connection's buffer. It returns false, with the buffer released, if it must be called again
// once there is something to read.
func (w *waiter) readable(fd uintptr) bool {
	w.conn.ready()
	last := w.last
	w.last = false
	for {
		w.n, w.err = syscall.Read(int(fd), w.conn.space())
		switch w.err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			if last {
				return true
			}
			w.conn.park()
			return false
		}
		return true
	}
}

// fill reads once into the connection's buffer, waiting until the socket's read deadline at most.
func (w *waiter) fill() (int, error) {
	if w.raw == nil {
		w.conn.ready()
		return w.conn.nc.Read(w.conn.space())
	}
	err := w.raw.Read(w.read)
	switch {
	case err != nil:
		w.conn.ready()
		return 0, err
	case w.err != nil:
		return 0, w.err
	case w.n == 0:
		return 0, io.EOF
	}
	return w.n, nil
}
