//go:build linux

package faults_test

import (
	"fmt"
	"net"
	"sync"
	"testing"
)

// ports gives out ports that nobody else takes while a node that has one is stopped and started again. The system gives
// those from 32768 on to whoever asks for any, so they are below; this process holds the first of a hundred.
var ports struct {
	mu   sync.Mutex
	held []net.Listener
	next int
}

const portBlock = 100

// freePort is an address on this machine that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for ports.next < 32_000 {
		if ports.next%portBlock == 0 {
			ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", max(ports.next, 10_000)))
			if err != nil { // another process has the block
				ports.next = max(ports.next, 10_000) + portBlock
				continue
			}
			ports.held = append(ports.held, ln)
			ports.next = max(ports.next, 10_000) + 1
		}
		addr := fmt.Sprintf("127.0.0.1:%d", ports.next)
		ports.next++
		if ln, err := net.Listen("tcp", addr); err == nil {
			ln.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}
