//go:build unix

package ingest_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"hookglass/internal/ingest"
)

// A connection that is told to end does not wait in its last look: what came while it waited and before it ran again
// would be reset unanswered.
func TestShutdownEndsAConnectionRightAfterItsLastLook(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan int, 2)
	s := new(stub)
	sv := startWith(t, waitingListener{ln.(*net.TCPListener), waited}, nil, ingest.Config{HeaderTimeout: patience}, s, nil)
	idle := sv.dial()
	idle.send(get(hook("")))
	idle.want(200)
	done := sv.shutdown()
	idle.wantEnd()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := len(waited); n != 1 {
		t.Errorf("waited %d times for a request, want once", n)
	}
}

// waitingListener accepts connections that tell when a read waited until its deadline.
type waitingListener struct {
	*net.TCPListener
	waited chan int
}

func (l waitingListener) Accept() (net.Conn, error) {
	nc, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return waitingConn{nc, l.waited}, nil
}

type waitingConn struct {
	*net.TCPConn
	waited chan int
}

func (c waitingConn) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.TCPConn.SyscallConn()
	return waitingRaw{raw, c.waited}, err
}

type waitingRaw struct {
	syscall.RawConn
	waited chan int
}

func (r waitingRaw) Read(read func(fd uintptr) bool) error {
	err := r.RawConn.Read(read)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.waited <- 1
	}
	return err
}
