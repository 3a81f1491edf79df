//go:build !linux

package ingest

import "net"

// lastCall reports false: the system accepts connections until the listener is closed.
func lastCall(net.Listener) bool { return false }
