package ingest

import (
	"net"
	"sync"
)

// handoff is the listener from which net/http accepts the connections handed to it.
type handoff struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	close sync.Once
}

func newHandoff(addr net.Addr) *handoff {
	return &handoff{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// give hands over a connection and reports whether net/http took it.
func (h *handoff) give(nc net.Conn) bool {
	select {
	case h.conns <- nc:
		return true
	case <-h.done:
		return false
	}
}

// Accept implements net.Listener.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handoff) Close() error {
	h.close.Do(func() { close(h.done) })
	return nil
}

// Addr implements net.Listener.
func (h *handoff) Addr() net.Addr { return h.addr }
