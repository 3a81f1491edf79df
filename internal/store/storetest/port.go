package storetest

import (
	"net"
	"testing"
)

// HoldPort keeps the port of a TCP listener from others until the test ends, also while nothing listens there: a
// connection goes on. Tests of other packages run at the same time and are given the ports that are free.
func HoldPort(t testing.TB, l net.Listener) {
	t.Helper()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
}
