package neterr_test

import (
	"net"
	"os"
	"testing"

	"hookglass/internal/neterr"
)

// What the system itself answers is recognised, whichever system it is.
func TestWhatTheSystemAnswersIsRecognised(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, err = net.Listen("tcp", ln.Addr().String())
	if !neterr.InUse(err) || neterr.NotOurs(err) {
		t.Errorf("an address in use: %v", err)
	}
	_, err = net.Listen("tcp", "192.0.2.1:0") // RFC 5737, for documentation
	if !neterr.NotOurs(err) || neterr.InUse(err) {
		t.Errorf("an address of nobody: %v", err)
	}

	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	taken, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := taken.(*net.TCPConn).SetLinger(0); err != nil { // it is reset
		t.Fatal(err)
	}
	taken.Close()
	_, err = conn.Read(make([]byte, 1))
	if !neterr.Closed(err) || neterr.Refused(err) {
		t.Errorf("a connection that was closed: %v", err)
	}

	ln.Close()
	_, err = net.Dial("tcp", ln.Addr().String())
	if !neterr.Refused(err) || neterr.Closed(err) {
		t.Errorf("where nothing listens: %v", err)
	}
}

func TestAPipeThatNobodyReadsIsRecognised(t *testing.T) {
	unread, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	unread.Close()
	if _, err = out.WriteString("x"); !neterr.Unread(err) {
		t.Errorf("%v", err)
	}
}
